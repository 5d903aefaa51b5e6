"""The profile of what an engine recorded, and what the user should know of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from perun.collect._calls.profile import CallTable, Function
from perun.collect._common.runs import early_end
from perun.collect.trace.constant_sizes import ConstantSizes
from perun.collect.trace.engines import calibration
from perun.collect.trace.plan import shown_name
from perun.process.outcome import outcome
from perun.wording import counted, listed

if TYPE_CHECKING:
    from perun.collect._calls.events import Calls
    from perun.collect.trace.engines import Engine, Recorded
    from perun.collect.trace.params import TraceParams
    from perun.collect.trace.plan import Plan
    from perun.collect.trace.work_folder import WorkFolder
    from perun.plugin.api import Run


class Traced(NamedTuple):
    """A trace that is over: what was planned, which engine recorded it, and what it recorded."""

    run: Run
    params: TraceParams
    plan: Plan
    engine: Engine
    recorded: Recorded

    @property
    def early(self) -> str:
        """How the run ended early, e.g. `was killed by SIGKILL`; empty where it did not."""
        return early_end(self.recorded.sample, self.params.timeout)


def table_of(traced: Traced, folder: WorkFolder) -> tuple[CallTable, ConstantSizes]:
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


def functions_of(plan: Plan) -> list[Function]:
    """The functions and pairs of probes of a plan, by their numbers in the recorded calls."""
    found = [
        Function(shown_name(probe.function), probe.path, probe.size.text if probe.size else "")
        for probe in plan.probes
    ]
    return found + [Function(pair.name, pair.path) for pair in plan.pairs]


def notes_of(traced: Traced, total: int, constant: ConstantSizes, overhead: dict[str, Any]) -> Iterator[str]:
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


def summary_of(traced: Traced, total: int, overhead: dict[str, Any], notes: Sequence[str]) -> dict[str, Any]:
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


def _notes_of_end(traced: Traced) -> Iterator[str]:
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


def _notes_of_sizes(plan: Plan, sizes: ConstantSizes) -> Iterator[str]:
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
