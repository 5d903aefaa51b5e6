"""The profile of what an engine recorded, and what the user should know of it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import copytree, make_archive, rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from perun.collect._calls.events import Calls
from perun.collect._calls.profile import CalledFunction, CallTable
from perun.collect._common.runs import early_end
from perun.collect.trace.engines import calibration
from perun.collect.trace.plan import shown_name
from perun.core.process.command import outcome
from perun.core.wording import counted, listed

if TYPE_CHECKING:
    from perun.collect.trace.engines import TraceEngine, TraceRecording
    from perun.collect.trace.params import TraceParams
    from perun.collect.trace.plan import TracePlan
    from perun.plugin.api import CollectContext, Run


# Sizes that tell no calls apart: of these no model can be made.


class ConstantSizes:
    """Finds the functions whose size is the same in all of many calls.

    :param functions: how many functions there are.
    """

    MANY: Final = 10

    def __init__(self, functions: int) -> None:
        self._first = [-1] * functions
        self._calls = [0] * functions
        self._varies = [False] * functions

    def add(self, calls: Calls) -> None:
        """Take note of the sizes of some calls."""
        sized = calls.size >= 0
        for number in np.unique(calls.function[sized]).tolist():
            if not self._varies[number]:
                sizes = calls.size[sized & (calls.function == number)]
                if self._first[number] < 0:
                    self._first[number] = int(sizes[0])
                self._varies[number] = bool((sizes != self._first[number]).any())
                self._calls[number] += len(sizes)

    def found(self) -> dict[int, int]:
        """The numbers of these functions, and their sizes."""
        return {
            number: self._first[number]
            for number, count in enumerate(self._calls)
            if count >= self.MANY and not self._varies[number]
        }


class Trace(NamedTuple):
    """A trace that is over: what was planned, which engine recorded it, and what it recorded."""

    run: Run
    params: TraceParams
    plan: TracePlan
    engine: TraceEngine
    recorded: TraceRecording

    @property
    def early(self) -> str:
        """How the run ended early, e.g. `was killed by SIGKILL`; empty where it did not."""
        return early_end(self.recorded.sample, self.params.timeout)


def table_of(traced: Trace, folder: WorkFolder) -> tuple[CallTable, ConstantSizes]:
    """The recorded calls, and which sizes were the same in all of them."""
    plan, recorded = traced.plan, traced.recorded
    table, constant = CallTable(), ConstantSizes(len(plan.sampling))
    if traced.params.no_profile:
        return table, constant
    names = [one.name for one in functions_of(plan)]
    sampling = [1 if one in recorded.sampled else of for one, of in enumerate(plan.sampling)]
    for calls in _sampled(recorded.calls, sampling):
        constant.add(calls)
        if traced.params.verbose_trace:
            folder.write_calls(names, calls)
        table.add(calls, recorded.process(calls))
    return table, constant


def functions_of(plan: TracePlan) -> list[CalledFunction]:
    """The functions and pairs of probes of a plan, by their numbers in the recorded calls."""
    found = [
        CalledFunction(shown_name(probe.function), probe.path, probe.size.text if probe.size else "")
        for probe in plan.probes
    ]
    return found + [CalledFunction(pair.name, pair.path) for pair in plan.pairs]


def notes_of(traced: Trace, total: int, constant: ConstantSizes, overhead: dict[str, Any]) -> Iterator[str]:
    """What the user should know of a trace with `total` calls.

    :param overhead: as :func:`perun.collect.trace.engines.calibration.summary` has it.
    """
    engine = traced.engine
    yield from _notes_of_end(traced)
    yield from engine.notes
    if not traced.params.size:
        yield from _notes_of_sizes(traced.plan, constant)
    if engine.missed:
        reason = "the end of the run" if traced.early else "longjmp, exit ..."
        missed = counted(engine.missed, "call")
        yield f"{missed} ended without an exit ({reason}); in the profile they end with their callers"
    if engine.lost:
        yield f"the profile lacks {counted(engine.lost, 'call')} that the engine lost"
    yield from calibration.notes(overhead)
    if traced.params.no_profile:
        yield "the profile is empty because of --no-profile"
    elif not total:
        why = ": it is stripped, so that only those that it exports are known; build it without strip"
        yield "the program called none of the traced functions" + why * traced.plan.stripped


def summary_of(traced: Trace, total: int, overhead: dict[str, Any], notes: Sequence[str]) -> dict[str, Any]:
    """The region `trace` of the profile, but for the optimisations."""
    engine, sample = traced.engine, traced.recorded.sample
    early = traced.early
    summary = {
        "engine": engine.name,
        "calls": total,
        "functions": len(traced.plan.probes),
        "missed-exits": engine.missed,
        "lost": engine.lost,
        "duration": round(sample.real, 6),
        "ended": f"early: {early}" if early else "normally",
        "overhead": overhead,
        "notes": list(notes),
    }
    if engine.method:
        summary["attached"] = engine.method
    return summary


def _notes_of_end(traced: Trace) -> Iterator[str]:
    sample, early = traced.recorded.sample, traced.early
    if early:
        yield f"the run ended early: it {early}; the profile holds what was collected until then"
        if os.WIFSIGNALED(sample.status) and not sample.early:
            yield (
                f"the engine {traced.engine.name} may be the reason why the program was killed: run it "
                "without Perun, or trace it with another engine (--engine)"
            )
    elif sample.status:
        yield f"the command {str(traced.run)!r} {outcome(sample.status)}"


def _notes_of_sizes(plan: TracePlan, sizes: ConstantSizes) -> Iterator[str]:
    found = [
        f"{probe.function.name} ({probe.size.text} = {size})"
        for number, size in sizes.found().items()
        if (probe := plan.probes[number]).size
    ]
    if found:
        yield (
            f"the size was the same in all calls of {listed(found, 5)}; name one that tells the calls apart "
            "with --size, e.g. --size 'List_search=l->size'"
        )


def _sampled(pieces: Iterator[Calls], sampling: Sequence[int]) -> Iterator[Calls]:
    """Of each function the first call and then one in `sampling` calls."""
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


# The folder of the temporary files of a trace, with its log, and what is kept of it.


class WorkFolder:
    """An empty folder for one trace. :ivar path: where it is."""

    def __init__(self, params: TraceParams, ctx: CollectContext) -> None:
        self.path = ctx.scratch / "trace"
        self._params = params
        self._ctx = ctx
        self._started = time.monotonic()
        rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True)

    def log(self, text: str) -> None:
        """Write a line of the log that `--watchdog` asks for."""
        if self._params.watchdog:
            with open(self.path / "watchdog.log", "a", encoding="utf-8") as file:
                file.write(f"{time.monotonic() - self._started:10.6f} {text}\n")

    def write_calls(self, names: Sequence[str], calls: Calls) -> None:
        """Write the calls that `--verbose-trace` asks for.

        :param names: of the functions, by their numbers.
        """
        with open(self.path / "trace.txt", "a", encoding="utf-8") as file:
            for function, thread, start, duration, size in zip(
                *(
                    column.tolist()
                    for column in (calls.function, calls.thread, calls.start, calls.duration, calls.size)
                ),
                strict=True,
            ):
                file.write(f"{start} {thread} {duration} {size} {names[function]}\n")

    def remove(self) -> None:
        """Remove the temporary files, after copying them to where the parameters want them."""
        params = self._params
        if params.keep_temp:
            kept = mkdtemp(prefix="perun-trace-")
            copytree(self.path, kept, dirs_exist_ok=True, symlinks=True)
            self._ctx.note(f"--keep-temp: the temporary files are in {kept}")
        if params.zip_temp:
            folder = self._ctx.logs or Path(os.path.dirname(self._ctx.scratch), "logs")
            folder.mkdir(parents=True, exist_ok=True)
            # A folder of its own, as another run may pack its files in the same second.
            kept = mkdtemp(prefix=time.strftime("trace-%Y-%m-%d-%H-%M-%S-"), dir=folder)
            archive = make_archive(os.path.join(kept, "trace"), "gztar", self.path)
            self._ctx.note(f"--zip-temp: the temporary files are in {archive}")
        rmtree(self.path, ignore_errors=True)
