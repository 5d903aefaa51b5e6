"""The trace collector: plans what to trace, has an engine record it, and makes a profile of the calls."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from perun.collect.trace.params import ENGINES, TraceParams
from perun.errors import CollectorUnavailable, JobFailed, PerunError, UsageError
from perun.plugin.api import CollectContext, Readiness, Run
from perun.plugin.params import to_mapping
from perun.process.finding import find_executable
from perun.process.outcome import outcome
from perun.wording import counted, listed

if TYPE_CHECKING:
    from perun.collect._calls.events import Calls
    from perun.collect._calls.profile import Function
    from perun.collect.trace.constant_sizes import ConstantSizes
    from perun.collect.trace.engines import Engine, Recorded
    from perun.collect.trace.optimized import Optimized
    from perun.collect.trace.plan import Plan
    from perun.profile.factory import Profile

COLLECTOR_TYPE: Final = "mixed"
COLLECTOR_DEFAULT_UNITS: Final = {"mixed(time delta)": "us"}


class TraceCollector:
    """Records every call of chosen functions: its duration, and the size of the structure it works on."""

    name: ClassVar[str] = "trace"
    help: ClassVar[str] = (
        "Records the calls of functions of a compiled program: their times, and the sizes of the structures "
        "that they work on."
    )
    Params: ClassVar[type] = TraceParams

    def readiness(self, environ: Mapping[str, str]) -> Iterator[Readiness]:
        """Whether any engine can trace on this machine, and what each of them lacks."""
        engines = [Readiness(name, *make_engine(name, environ).unavailable()) for name in ENGINES]
        if all(engine.missing for engine in engines):
            yield Readiness("", "no engine can trace on this machine", "make one of these work")
        else:
            yield Readiness()
        yield from engines

    def collect(self, run: Run, params: TraceParams, ctx: CollectContext) -> Profile:
        """Run the command once under an engine.

        :raises UsageError: where a named function, probe or size does not exist.
        :raises CollectorUnavailable: where no engine can run on this machine, or not the chosen one.
        :raises JobFailed: where the command cannot be started, fails, or is not a compiled program.
        """
        if params.diagnostics:
            params = dataclasses.replace(
                params, watchdog=True, verbose_trace=True, output_handling="capture", zip_temp=True
            )
        return _Session(run, params, ctx).profile()


class _Session:
    """One run of the collector."""

    def __init__(self, run: Run, params: TraceParams, ctx: CollectContext) -> None:
        self._run = run
        self._params = params
        self._ctx = ctx
        self._notes: list[str] = []
        self._folder = ctx.scratch / "trace"
        self._log: list[str] = []
        self._follow: Callable[[str], Plan] | None = None
        self._optimized: Optimized | None = None
        self._started = time.monotonic()

    def profile(self) -> Profile:
        from shutil import rmtree

        from perun.collect._common.runs import completed, require_recorded, shortfalls
        from perun.collect.trace.engines import EngineContext

        rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        try:
            self._report("finding functions")
            plan = self._optimize(self._plan())
            engine = self._engine(plan)
            self._note_switching(plan, engine)
            self._write_log(f"engine {engine.name}: {len(plan.probes)} functions, {len(plan.pairs)} pairs")
            self._report(f"tracing {self._run} with {engine.name}")
            context = EngineContext(
                self._run,
                self._folder,
                self._params.output_handling,
                self._params.timeout,
                not self._params.stap_cache_off,
                self._follow,
            )
            recorded = engine.record(plan, context)
            plan = recorded.plan or plan
            sample, limit = recorded.sample, self._params.timeout
            self._write_log(f"ended with status {sample.status} after {sample.real:.3f} s {sample.early}")
            require_recorded(
                self._run,
                sample,
                recorded.errors,
                ignore_failure=self._params.ignore_failure,
                hint="correct the command, or trace it anyway with --ignore-failure; if it does not fail "
                f"without Perun, the engine {engine.name} may be the reason: choose another one (--engine)",
            )
            self._report("making a profile of the calls")
            profile = self._make_profile(plan, engine, recorded)
            if self._optimized is not None and not (self._params.no_profile or self._params.no_ds_update):
                self._optimized.applied.update(profile)
            return completed(profile, sample, [*shortfalls(sample, limit, engine.lost), *recorded.lacks])
        finally:
            self._remove_temporary_files()

    def _plan(self) -> Plan:
        from contextlib import ExitStack

        from perun.collect._calls.binary import Binary
        from perun.collect.trace.libraries import find_library
        from perun.collect.trace.plan import Plan, Wanted, make_plan, plan_of_other

        run = self._run
        self._require_followable()
        program = find_executable(run.command().argv[0], run.cwd, run.environ)
        paths = [str(run.cwd / self._params.binary)] if self._params.binary else [program]
        if self._params.only_extract_cg:  # a stripped program has a call graph too, but no names to trace by
            return Plan((), (), False, paths[0])
        paths += [find_library(library, run, paths[0]) for library in self._params.libs]
        if not self._params.binary:
            self._note_interpreter(program)
        wanted = Wanted(*(getattr(self._params, name) for name in Wanted._fields))
        if self._params.follow_children:
            self._follow = partial(plan_of_other, wanted=wanted, cache=self._ctx.cache)
        with ExitStack() as stack:
            try:
                binaries = [stack.enter_context(Binary(path, self._ctx.cache)) for path in paths]
                for note in (note for binary in binaries for note in binary.notes):
                    self._note(note)
                return make_plan(binaries, wanted)
            except (JobFailed, UsageError) as problem:
                if not self._follow or self._params.libs:
                    raise
                try:
                    return self._follow(paths[0])
                except PerunError:  # a script, or a program without the functions that others have
                    self._note(f"only programs that the command executes are traced: {problem.message}")
                    return Plan((), (), False, paths[0])

    def _optimize(self, plan: Plan) -> Plan:
        """The plan without what the optimisations drop.

        :raises NoProfile: where the parameters ask for a call graph or for explanations alone.
        """
        from perun.collect.trace.optimized import optimize

        self._optimized = found = optimize(self._run, plan, self._params, self._ctx)
        if found is None:
            return plan
        for note in found.applied.notes:
            self._note(note)
        return found.plan

    def _note_switching(self, plan: Plan, engine: Engine) -> None:
        """Say what of the optimisations the engine cannot."""
        from perun.collect.trace.optimized import unsupported

        for note in unsupported(plan, engine):
            self._note(note)

    def _note_interpreter(self, program: str) -> None:
        """Say what records the functions of a Python program, which no engine sees.

        :raises JobFailed: where the program is a script of Python, and so nothing that can be traced.
        """
        from perun.collect._common.interpreter import program_of
        try:
            python = program_of(self._run).python
        except PerunError:
            return
        hint = "perun collect instructions --python or perun collect memory --python"
        if python != program:
            raise JobFailed(
                f"{program} is a Python program, whose functions no engine of trace sees",
                f"record it with {hint}; or name a compiled program that it runs with --binary (-b)",
            )
        self._note(f"{self._run} is a Python program: its functions are not traced, but recorded by {hint}")

    def _engine(self, plan: Plan) -> Engine:
        """The engine to use: the chosen one, or the best that can run on this machine."""
        wanted = self._params.engine
        if wanted != "auto":
            engine = make_engine(wanted, self._run.environ, self._ctx.cache)
            why, hint = engine.unavailable(plan)
            if why:
                raise CollectorUnavailable(f"--engine {wanted} cannot trace {str(self._run)!r}: {why}", hint)
            return engine
        order, reason = suitable_engines(plan)
        if self._params.follow_children:
            order, reason = ("ebpf",), "it follows the programs that the command executes"
        refused: list[tuple[str, str, str]] = []
        for name in order:
            engine = make_engine(name, self._run.environ, self._ctx.cache, careful=True)
            why, hint = engine.unavailable(plan)
            if not why:
                others = "".join(f"; {other} cannot: {problem}" for other, problem, _ in refused)
                self._note(f"traced with {name}: {reason if not refused else 'the next best engine'}{others}")
                return engine
            refused.append((name, why, hint))
        raise CollectorUnavailable(
            "no engine can trace on this machine: " + "; ".join(f"{name}: {why}" for name, why, _ in refused),
            next((hint for _, _, hint in refused if hint), ""),
        )

    def _require_followable(self) -> None:
        """:raises UsageError: where `--follow-children` does not go with another option."""
        params = self._params
        if not params.follow_children:
            return
        if params.engine not in ("auto", "ebpf"):
            raise UsageError(
                f"--follow-children needs the engine ebpf: {params.engine} records one program only",
                "use --engine ebpf, or name the program to trace with --binary (-b)",
            )
        if params.usdt or params.dynamic or params.with_usdt:
            raise UsageError(
                "--follow-children follows functions, but not USDT probes or lines of source",
                "leave out --usdt, --dynamic and --with-usdt, or --follow-children",
            )

    def _make_profile(self, plan: Plan, engine: Engine, recorded: Recorded) -> Profile:
        from perun.collect._calls.profile import CallTable
        from perun.collect._common.runs import early_end
        from perun.collect.trace.constant_sizes import ConstantSizes
        from perun.collect.trace.engines import calibration

        sample = recorded.sample
        early = early_end(sample, self._params.timeout)
        if early:
            self._note(f"the run ended early: it {early}; the profile holds what was collected until then")
            if os.WIFSIGNALED(sample.status) and not sample.early:
                self._note(
                    f"the engine {engine.name} may be the reason why the program was killed: run it without "
                    "Perun, or trace it with another engine (--engine)"
                )
        elif sample.status:
            self._note(f"the command {str(self._run)!r} {outcome(sample.status)}")
        table = CallTable()
        constant = ConstantSizes(len(plan.sampling))
        if not self._params.no_profile:
            sampling = [1 if one in recorded.sampled else of for one, of in enumerate(plan.sampling)]
            for calls in _sampled(recorded.calls, sampling):
                constant.add(calls)
                if self._params.verbose_trace:
                    self._write_calls(plan, calls)
                table.add(calls, recorded.process(calls))
        total = table.total
        for note in engine.notes:
            self._note(note)
        if not self._params.size:
            self._note_constant_sizes(plan, constant)
        if engine.missed:
            reason = "the end of the run" if early else "longjmp, exit ..."
            self._note(
                f"{counted(engine.missed, 'call')} ended without an exit ({reason}); in the profile they end "
                "with their callers"
            )
        if engine.lost:
            self._note(f"the profile lacks {counted(engine.lost, 'call')} that the engine lost")
        overhead = calibration.summary(engine, [one.name for one in _functions(plan)])
        for note in calibration.notes(overhead):
            self._note(note)
        if self._params.no_profile:
            self._note("the profile is empty because of --no-profile")
        elif not total:
            why = ": it is stripped, so that only those that it exports are known; build it without strip"
            self._note("the program called none of the traced functions" + why * plan.stripped)
        summary = {
            "engine": engine.name,
            "calls": total,
            "functions": len(plan.probes),
            "missed-exits": engine.missed,
            "lost": engine.lost,
            "duration": round(sample.real, 6),
            "ended": f"early: {early}" if early else "normally",
            "overhead": overhead,
            "notes": list(self._notes),
        }
        if engine.method:
            summary["attached"] = engine.method
        if self._optimized is not None:
            summary["optimization"] = self._optimized.region(plan, recorded)
        info = {"name": TraceCollector.name, "params": to_mapping(self._params)}
        if not self._params.quiet:
            for note in self._notes:
                self._ctx.note(note)
        profile = table.profile(_functions(plan), self._run, info, summary)
        if self._optimized is not None:
            profile["header"]["optimization"] = self._optimized.applied.head()
        return profile

    def _note_constant_sizes(self, plan: Plan, sizes: ConstantSizes) -> None:
        found = [
            f"{probe.function.name} ({probe.size.text} = {size})"
            for number, size in sizes.found().items()
            if (probe := plan.probes[number]).size
        ]
        if found:
            self._note(
                f"the size was the same in all calls of {listed(found, 5)}; name one that "
                "tells the calls apart with --size, e.g. --size 'List_search=l->size'"
            )

    def _note(self, text: str) -> None:
        self._notes.append(text)
        self._write_log(text)

    def _report(self, activity: str) -> None:
        if not self._params.quiet:
            self._ctx.report(activity, 0, 0)
        self._write_log(activity)

    def _write_log(self, text: str) -> None:
        if self._params.watchdog:
            with open(self._folder / "watchdog.log", "a", encoding="utf-8") as file:
                file.write(f"{time.monotonic() - self._started:10.6f} {text}\n")

    def _write_calls(self, plan: Plan, calls: Calls) -> None:
        names = _functions(plan)
        with open(self._folder / "trace.txt", "a", encoding="utf-8") as file:
            for function, thread, start, duration, size in zip(
                *(
                    column.tolist()
                    for column in (calls.function, calls.thread, calls.start, calls.duration, calls.size)
                ),
                strict=True,
            ):
                file.write(f"{start} {thread} {duration} {size} {names[function].name}\n")

    def _remove_temporary_files(self) -> None:
        """Remove the temporary files, after copying them to where the parameters want them."""
        from shutil import copytree, make_archive, rmtree
        from tempfile import mkdtemp

        params = self._params
        if params.keep_temp:
            kept = mkdtemp(prefix="perun-trace-")
            copytree(self._folder, kept, dirs_exist_ok=True, symlinks=True)
            self._ctx.note(f"--keep-temp: the temporary files are in {kept}")
        if params.zip_temp:
            folder = self._ctx.logs or Path(os.path.dirname(self._ctx.scratch), "logs")
            folder.mkdir(parents=True, exist_ok=True)
            # A folder of its own, as another run may pack its files in the same second.
            kept = mkdtemp(prefix=time.strftime("trace-%Y-%m-%d-%H-%M-%S-"), dir=folder)
            archive = make_archive(os.path.join(kept, "trace"), "gztar", self._folder)
            self._ctx.note(f"--zip-temp: the temporary files are in {archive}")
        rmtree(self._folder, ignore_errors=True)


def suitable_engines(plan: Plan) -> tuple[tuple[str, ...], str]:
    """The engines that support a plan, the best first, and why it is the best."""
    if plan.pairs:
        return ("ebpf", "stap"), "it supports USDT probes and source lines"
    if plan.throws:
        return ("ebpf",), "its probes work with C++ exceptions, which the program throws"
    return ("ebpf", "uftrace", "stap"), "it does not change the program and records every call"


def make_engine(
    name: str, environ: Mapping[str, str], cache: Path | None = None, careful: bool = False
) -> Engine:
    """The engine of that name.

    :param careful: it refuses plans of which it can record a part only.
    """
    if name == "uftrace":
        from perun.collect.trace.engines.uftrace import UftraceEngine

        return UftraceEngine(environ, cache, careful)
    if name == "stap":
        from perun.collect.trace.engines.stap import StapEngine

        return StapEngine(environ, cache)
    from perun.collect.trace.engines.ebpf import EbpfEngine

    return EbpfEngine(environ, cache)


def _functions(plan: Plan) -> list[Function]:
    from perun.collect._calls.profile import Function
    from perun.collect.trace.plan import shown_name

    found = [
        Function(shown_name(probe.function), probe.path, probe.size.text if probe.size else "")
        for probe in plan.probes
    ]
    return found + [Function(pair.name, pair.path) for pair in plan.pairs]


def _sampled(pieces: Iterator[Calls], sampling: Sequence[int]) -> Iterator[Calls]:
    """Of each function the first call and then one in `sampling` calls."""
    import numpy as np

    wanted = np.array(sampling, np.int64)
    if (wanted <= 1).all():
        yield from pieces
        return
    seen = np.zeros(len(wanted), np.int64)
    for calls in pieces:
        # The number of each call among all calls of its function, over all batches.
        order = np.argsort(calls.function, kind="stable")
        functions = calls.function[order]
        starts = np.searchsorted(functions, functions, "left")
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order)) - starts + seen[functions]
        seen += np.bincount(calls.function, minlength=len(wanted))
        yield calls.where(number % wanted[calls.function] == 0)
