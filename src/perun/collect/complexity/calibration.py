"""What the runtime adds to the times of calls: it records a program of empty functions, compiled for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from perun.collect._calls.calibration import (
    BARE,
    INSTRUMENTED,
    LOOP,
    LOOPED,
    ROUNDS,
    Costs,
    Measured,
    cost_of,
    empty_call,
    made,
    notes,
    region,
)
from perun.collect._calls.events import Calls
from perun.collect._calls.overhead import Cost, Overhead, merge
from perun.collect.complexity.build import ComplexityParams
from perun.collect.complexity.records import Place, Process, processes
from perun.collect.complexity.selection import Selection, select
from perun.core.errors import PerunError
from perun.core.process.execution import Execution, Output
from perun.native.binary import Binary
from perun.plugin.api import CollectContext, Run

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN, SIZED, LEFT_OUT = "no size", "with a size", "left out by sampling"
_FUNCTIONS: Final = {PLAIN: "calibration_stepped_0", SIZED: "calibration_emulated_0"}
_CALLS: Final = 200
"""Calls of each function in each round: the clock is coarse beside what such a call costs."""
_SECONDS: Final = 20.0
_SAMPLING: Final = 1 << 30


class Correction:
    """Subtracts the cost of recording from the calls of all processes of a run.

    :ivar why_not: why the times are as they were recorded; empty where they are corrected.
    """

    def __init__(self, costs: Mapping[str, Cost], selection: Selection, why_not: str = "") -> None:
        self.why_not = why_not
        self._costs = costs
        self._selection = selection
        self._processes: list[tuple[Sequence[Place], Overhead]] = []

    def of(self, process: Process) -> Overhead | None:
        """What is subtracted from the times of a process."""
        if self.why_not:
            return None
        own = [self._costs[self._way(place)] for place in process.places]
        # A call that sampling left out, but which has a recorded call within it, is written like others.
        overhead = Overhead([*own, *own, self._costs[LEFT_OUT]], process.speed)
        self._processes.append((process.places, overhead))
        return overhead

    def region(self, names: Mapping[Place, str]) -> dict[str, Any]:
        """The key `overhead` of the profile, once all calls are decoded."""
        if self.why_not:
            return {"why-not": self.why_not}
        sums: dict[str, dict[str, Any]] = {}
        for places, overhead in self._processes:
            merge(sums, overhead.by_function([names[place] for place in places]))
        return region(self._costs, [self._way(place) for place in names], sums)

    @staticmethod
    def notes(found: Mapping[str, Any]) -> list[str]:
        """What the user should know of a :meth:`region`."""
        return notes(found)

    def _way(self, place: Place) -> str:
        is_sized = place.path == self._selection.path and place.address in self._selection.sizes
        return SIZED if is_sized else PLAIN


def correction(
    library: Path, selection: Selection, environment: Callable[..., Run], ctx: CollectContext
) -> Correction:
    """What to subtract; measured unless that was done since the machine started.

    :param environment: makes a run that records, of a run, a folder for recordings and a table.
    """
    if not INSTRUMENTED.is_file():
        return Correction({}, selection, f"{INSTRUMENTED.name} was not built when Perun was installed")

    def measure(missing: Sequence[str]) -> dict[str, Cost]:
        return _measured(environment, ctx)

    status = library.stat()
    recorder = f"complexity {status.st_size}-{status.st_mtime_ns}"
    ways = (PLAIN, SIZED, LEFT_OUT)
    try:
        costs = Costs(ctx.cache, recorder, INSTRUMENTED).of(ways, measure)
    except (PerunError, OSError) as problem:
        return Correction({}, selection, str(problem))
    # Without debug information of its own the program has no calls with a size.
    costs = {SIZED: costs[PLAIN], **costs} if PLAIN in costs else costs
    missing = [way for way in ways if way not in costs]
    why_not = f"calls of the program {INSTRUMENTED.name} are missing" if missing else ""
    return Correction(costs, selection, why_not)


def _measured(environment: Callable[..., Run], ctx: CollectContext) -> dict[str, Cost]:
    folder = ctx.scratch / "calibration"
    folder.mkdir(exist_ok=True)
    table = folder / "table"
    params = ComplexityParams(sampling=((LOOPED, _SAMPLING),))
    table.write_bytes(select(str(INSTRUMENTED), params, ctx).table)
    run = environment(Run(str(INSTRUMENTED), f"{ROUNDS} {_CALLS}", "", cwd=ctx.scratch), folder, table)
    with Execution(run, ctx.scratch, _SECONDS, output=Output.DISCARD, single_run=True) as execution:
        sample = execution.record()
    if sample.interruption is not None:
        raise sample.interruption
    recorded = processes(folder)
    if not recorded:
        return {}
    process = recorded[0]
    calls = Calls.joined(list(process.calls(process.started)))
    with Binary(INSTRUMENTED, ctx.cache) as binary:
        addresses = {function.name: function.address for function in binary.functions}
    numbers = {place.address: number for number, place in enumerate(process.places)}

    def rows(name: str) -> Calls:
        own = calls.where(calls.function == numbers.get(addresses.get(name, -1), -2))
        return own.where(np.argsort(own.start, kind="stable"))

    bare = rows(BARE)
    costs: dict[str, Cost] = {}
    for way, name in _FUNCTIONS.items():
        own = rows(name)
        found = cost_of(Measured(own.start, own.duration), Measured(bare.start, bare.duration), _CALLS)
        if found is not None:
            costs[way] = found
    loop = rows(LOOP)
    if PLAIN in costs and len(loop):
        own_cost = costs[PLAIN].inside
        empty = empty_call(Measured(bare.start, bare.duration), own_cost, _CALLS)
        each = (loop.duration - own_cost) / _CALLS - empty
        inside = float(np.median(loop.duration - loop.exclusive)) / _CALLS
        costs[LEFT_OUT] = made(inside, max(float(np.median(each)), inside), each)
    return costs
