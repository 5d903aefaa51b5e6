"""The collector of instruction counts: runs the command with an engine that counts, and makes a profile."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from perun.collect._common import runs as common
from perun.collect._common.runs import completed, early_end, require_recorded, shortfalls
from perun.collect.instructions.callgrind import CallgrindEngine
from perun.collect.instructions.engines import (
    CountingEngine,
    CountingOptions,
    InstructionCounts,
    repeatable,
)
from perun.collect.instructions.names import require_support
from perun.collect.instructions.perf import PerfEngine
from perun.core.errors import CollectorUnavailable, JobFailed
from perun.core.process.command import outcome
from perun.core.process.execution import Execution, RunSample
from perun.native.costs import resources
from perun.plugin.api import CollectContext, Readiness, Run
from perun.plugin.params import param, to_mapping
from perun.profile.factory import Profile

COLLECTOR_TYPE: Final = "mixed"
COLLECTOR_DEFAULT_UNITS: Final = {"instructions": "instr"}
_MARKED: Final = "callgrind"
"""The engine that programs can ask to begin."""
ENGINES: Final[Mapping[str, type[CountingEngine]]] = {"perf": PerfEngine, "callgrind": CallgrindEngine}
"""The engines, the one to be preferred first."""


@dataclass(frozen=True)
class InstructionsParams:
    """What counts, by which engine, and when to stop."""

    engine: str = param(
        "auto",
        short="-e",
        choices=("auto", *ENGINES),
        help="What counts: perf (counters of the processor; fast), callgrind (Valgrind; exact, 20 to 60 "
        "times slower than the program, and seconds to start), or auto: perf where this machine lets "
        "programs use counters, else callgrind.",
    )
    callers: int = param(
        10,
        formerly=["-c"],
        metavar="<int>",
        minimum=0,
        help="How many callers of a function callgrind tells apart: more make call stacks more exact, and "
        "the run slower; 0 is enough for the counts of functions.",
    )
    python: bool = param(
        False,
        help="The command is a Python program: tell the functions of Python instead of those of its "
        "interpreter. Needs Python 3.12 or newer.",
    )
    marked: bool = param(
        False,
        help="Count only from where the program asks for it: by CALLGRIND_START_INSTRUMENTATION of "
        "valgrind/callgrind.h. Until then it runs ten times as fast. Needs callgrind.",
    )
    no_children: bool = param(False, help="Count the process of the command only, not those that it starts.")
    warmup: int = param(
        1,
        short="-w",
        metavar="<int>",
        minimum=0,
        help="Before the run that is counted, the command is run <int> times as it is, so that caches of "
        "files, such as the compiled modules of Python, are there.",
    )
    ignore_failure: bool = common.ignore_failure()
    timeout: float = common.timeout(kept=True)


class InstructionsCollector:
    """Counts the instructions that a program executes, by function and call stack.

    Counts do not depend on the load of the machine: those of two runs of one program differ by less than a
    thousandth, mostly not at all.
    """

    name: ClassVar[str] = "instructions"
    help: ClassVar[str] = (
        "Generates `instructions` performance profile, counting the instructions that each function of a "
        "program executes, itself and with those that it calls."
    )
    Params: ClassVar[type] = InstructionsParams

    def readiness(self, environ: Mapping[str, str]) -> Iterator[Readiness]:
        """Whether any engine can count here, and what each of them lacks."""
        engines = [Readiness(name, *make(environ).unavailable()) for name, make in ENGINES.items()]
        if all(engine.missing for engine in engines):
            yield Readiness("", "no engine can count instructions on this machine", "one of these is enough")
        else:
            yield Readiness()
        yield from engines

    def collect(self, run: Run, params: InstructionsParams, ctx: CollectContext) -> Profile:
        """Run the command `warmup` times as it is, and once counted.

        :raises CollectorUnavailable: where no engine can run here, or not the one that was asked for.
        :raises JobFailed: where the command cannot be started, fails (unless that is to be ignored), or is of
            a kind that nothing can be counted of.
        :raises Interrupted: where the user ends the run; with what was counted until then.
        """
        engine, why = _engine(_MARKED if params.marked else params.engine, run.environ)
        if params.python:
            require_support(run)
        steady = repeatable(run)
        notes = [why] if why else []
        notes += _warm_up(steady, params, ctx)
        ctx.report(f"counting the instructions of {run} with {engine.name}", 0, 0)
        options = CountingOptions(
            params.callers, not params.no_children, params.python, params.timeout, params.marked
        )
        sample, errors = engine.record(steady, options, ctx)
        require_recorded(run, sample, errors, ignore_failure=params.ignore_failure)
        ctx.report("reading the counts", 0, 0)
        try:
            counted = engine.counted()
        except Exception:
            # What the user ended is no failure of the command, however little there is of it.
            if sample.interruption is not None:
                raise sample.interruption from None
            raise
        if params.marked and not counted.costs.tree.total:
            raise JobFailed(
                f"--marked: {str(run)!r} did not ask to count",
                "let it use CALLGRIND_START_INSTRUMENTATION of valgrind/callgrind.h, or leave --marked out",
            )
        early = early_end(sample, params.timeout)
        if early:
            notes.append(f"the run ended early: it {early}; the profile holds what was counted until then")
        elif sample.status:
            notes.append(f"the command {str(run)!r} {outcome(sample.status)}")
        notes += counted.notes
        for note in notes:
            ctx.note(note)
        profile = _profile(run, params, engine, counted, sample, notes)
        return completed(profile, sample, [*shortfalls(sample, params.timeout), *counted.lacks])


def _engine(wanted: str, environ: Mapping[str, str]) -> tuple[CountingEngine, str]:
    """The engine to use, and why it is not the best one."""
    refused: list[tuple[str, str, str]] = []
    for name in ENGINES if wanted == "auto" else (wanted,):
        engine = ENGINES[name](environ)
        why, hint = engine.unavailable()
        if not why:
            return engine, ""
        refused.append((name, why, hint))
    if wanted != "auto":
        raise CollectorUnavailable(f"the engine {wanted} cannot run here: {refused[0][1]}", refused[0][2])
    raise CollectorUnavailable(
        "no engine can count instructions on this machine: "
        + "; ".join(f"{name}: {why}" for name, why, _ in refused),
        refused[-1][2],
    )


def _warm_up(run: Run, params: InstructionsParams, ctx: CollectContext) -> list[str]:
    """Run the command as it is; what the user should know of that.

    :raises JobFailed: where it fails: then there is no need to wait for the slow run.
    """
    if params.warmup and _reads_pipe(run):
        return ["the command reads a pipe, which can be read once only: it was not run before it was counted"]
    for number in range(params.warmup):
        ctx.report(f"warming up {run}", number, params.warmup)
        with Execution(run, ctx.scratch, params.timeout) as execution:
            sample = execution.record()
            if sample.interruption is not None:
                raise sample.interruption
            errors = execution.last_errors()
            require_recorded(run, sample, errors, ignore_failure=params.ignore_failure)
        if sample.early:
            break
    return []


def _reads_pipe(run: Run) -> bool:
    stdin = run.command().stdin_file
    try:
        return stdin is not None and stat.S_ISFIFO(os.stat(run.cwd / stdin).st_mode)
    except OSError:
        return False


def _profile(
    run: Run,
    params: InstructionsParams,
    engine: CountingEngine,
    counted: InstructionCounts,
    sample: RunSample,
    notes: list[str],
) -> Profile:
    profile = Profile(
        {
            "header": {
                "type": COLLECTOR_TYPE,
                "units": dict(COLLECTOR_DEFAULT_UNITS),
                "cmd": run.cmd,
                "args": run.args,
                "workload": run.workload,
            },
            "collector_info": {"name": InstructionsCollector.name, "params": to_mapping(params)},
            "postprocessors": [],
            "instructions": {
                "engine": engine.name,
                "version": engine.version(),
                "exact": engine.exact,
                "total": counted.costs.tree.total,
                "processes": counted.processes,
                "duration": round(sample.real, 6),
                "notes": notes,
            },
        }
    )
    if counted.lines is not None and (lines := counted.lines.region(counted.costs.tree.total)):
        profile["lines"] = lines
    program = os.path.basename(run.command().argv[0])
    profile.update_resources(resources(counted.costs, program), columns=("calls",))
    return profile
