"""What an engine adds to the times of the calls it records: it records the program of empty functions once.

The program is traced by the engine itself, with a plan like that of the user: functions with the same kinds
of instructions, and sizes that take as many reads of memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from perun.collect._calls.calibration import (
    BARE,
    CALLS,
    LOOP,
    LOOPED,
    PROGRAM,
    ROUNDS,
    UNCERTAIN,
    CalibrationCalls,
    CalibrationCosts,
    cost_of,
    made,
    region,
)
from perun.collect._calls.calibration import notes as notes_of
from perun.collect._calls.events import UNKNOWN, Calls
from perun.collect._calls.overhead import CallCost, Overhead
from perun.collect._calls.sizes import Size, Term
from perun.collect._common.recordings import Words, words
from perun.collect.trace.engines import EngineContext
from perun.collect.trace.plan import Probe, ProbePair, TracePlan
from perun.core.errors import PerunError
from perun.core.wording import counted
from perun.native.binary import Binary, Usdt
from perun.native.columns import Ints
from perun.plugin.api import Run

if TYPE_CHECKING:
    from perun.collect.trace.engines import TraceEngine


_MAX_READS: Final = 6
"""The program has eight functions of a kind: one without a size, and one for each number of reads, 0 to 6."""
_SAMPLING: Final = 1 << 30
_SECONDS: Final = 20.0
_LEFT_OUT: Final = "left out by sampling"
_PLAIN: Final = ("stepped, no size", "emulated, no size")
_PAIR_KINDS: Final = ("pair stepped", "pair emulated")
_PAIRS: Final = {"pair emulated": ("calibration_pair", 1), "pair stepped": ("calibration_line", 3)}
"""Of pairs of probes the function, and where the second probe is, in bytes."""


class ProbeMode(NamedTuple):
    """How a function is recorded, as far as the cost of it depends on that.

    :param is_emulated: whether the kernel emulates the probed instruction.
    :param reads: how often memory is read for the size; -1 where no size is read.
    """

    is_emulated: bool
    reads: int

    def __str__(self) -> str:
        size = "no size" if self.reads < 0 else f"size with {counted(self.reads, 'read')}"
        return f"{'emulated' if self.is_emulated else 'stepped'}, {size}"

    @classmethod
    def of(cls, probe: Probe, is_emulated: bool) -> ProbeMode:
        """The way of a probe."""
        if probe.size is None:
            return cls(is_emulated, -1)
        return cls(is_emulated, min(sum(len(term.offsets) for term in probe.size.terms), _MAX_READS))


class TimeCorrection(NamedTuple):
    """What is subtracted from the times of a recording, and how it was found.

    :param overhead: None where the times are as they were recorded. :param why_not: why so.
    """

    overhead: Overhead | None
    costs: Mapping[str, CallCost] = {}
    ways: Sequence[str] = ()
    why_not: str = ""


def summary(engine: TraceEngine, names: Sequence[str]) -> dict[str, Any]:
    """The key `overhead` of the region `trace` of the profile, once all calls are decoded.

    :param names: the names of the functions in the profile, by their numbers.
    """
    found = engine.correction or TimeCorrection(None, why_not=f"the engine {engine.name} is not calibrated")
    if found.overhead is None:
        return {"why-not": found.why_not}
    return region(found.costs, found.ways, found.overhead.by_function(names))


def notes(found: Mapping[str, Any]) -> list[str]:
    """What the user should know of a :func:`summary`."""
    return notes_of(found)


def correction(
    engine: TraceEngine,
    plan: TracePlan,
    context: EngineContext,
    ways: Sequence[ProbeMode],
    cache: Path | None,
    sampled: Set[int] = frozenset(),
) -> TimeCorrection:
    """What to subtract from the times of a plan; measured unless that was done since the machine started.

    :param ways: of each probe of the plan. :param sampled: numbers of those that the engine samples itself.
    """
    names = [str(way) for way in ways]
    names += [_PAIR_KINDS[any(one.provider for one in pair.start)] for pair in plan.pairs]
    needed = [*names, *(_PLAIN if sampled else ()), *((_LEFT_OUT,) if sampled else ())]
    by_name = {str(way): way for way in (*ways, ProbeMode(False, -1), ProbeMode(True, -1))}
    throws = "at returns" if plan.throws else ""
    recorder = " ".join((engine.name, engine.method, throws, os.uname().release))

    def measure(missing: Sequence[str]) -> dict[str, CallCost]:
        return _measured(engine, plan.throws, context, missing, by_name)

    if not PROGRAM.is_file():
        return TimeCorrection(None, why_not=f"{PROGRAM.name} was not built when Perun was installed")
    try:
        costs = CalibrationCosts(cache, recorder, PROGRAM).of(needed, measure)
    except (PerunError, OSError) as problem:
        return TimeCorrection(None, why_not=str(problem))
    if not costs.keys() >= set(needed):
        return TimeCorrection(None, why_not=f"calls of the program {PROGRAM.name} are missing")
    found = [costs[name] for name in names]
    for number in sampled:
        found[number] = _with_left_out(found[number], ways[number], plan.probes[number].sampling, costs)
    return TimeCorrection(Overhead(found), costs, names)


def _with_left_out(cost: CallCost, way: ProbeMode, sampling: int, costs: Mapping[str, CallCost]) -> CallCost:
    """The cost of a recorded call and of those that sampling left out since the one before.

    They are time of the caller. A probe costs them as much more as a recorded call where it is not emulated.
    """
    left_out, (stepped, emulated) = costs[_LEFT_OUT], (costs[name] for name in _PLAIN)
    each = left_out.inside + left_out.outside
    if not way.is_emulated:
        each += max(stepped.inside + stepped.outside - emulated.inside - emulated.outside, 0.0)
    spread = max(left_out.spread, UNCERTAIN * each)
    return CallCost(cost.inside, cost.outside + (sampling - 1) * each, cost.spread + (sampling - 1) * spread)


def _measured(
    engine: TraceEngine,
    throws: bool,
    context: EngineContext,
    missing: Sequence[str],
    ways: Mapping[str, ProbeMode],
) -> dict[str, CallCost]:
    """Record the program with an engine of the same kind."""
    folder = context.folder / "calibration"
    folder.mkdir(exist_ok=True)
    with Binary(PROGRAM) as binary:
        places = _Places(binary)
        known = {name: places.probe(ways[name]) for name in missing if name in ways}
        pairs = {name: places.pair(name) for name in missing if name in _PAIRS}
        bare, loop, looped = (
            Probe(binary.path, binary.find(name)[0], None, 1) for name in (BARE, LOOP, LOOPED)
        )
    others = (bare, loop, looped._replace(sampling=_SAMPLING)) if _LEFT_OUT in missing else (bare,)
    plan = TracePlan((*known.values(), *others), tuple(pairs.values()), throws, bare.path)
    recorder = type(engine)(context.run.environ)
    recorder.method = engine.method
    recorder.correction = TimeCorrection(None)
    run = Run(str(PROGRAM), f"{ROUNDS} {CALLS}", "", cwd=context.run.cwd, environ=context.run.environ)
    recorded = recorder.record(plan, EngineContext(run, folder, "suppress", _SECONDS))
    calls = Calls.joined(list(recorded.calls))
    if recorded.sample.interruption is not None:
        raise recorded.sample.interruption
    rows = {name: CalibrationCalls.of(calls, number) for number, name in enumerate(known)}
    rows |= {name: CalibrationCalls.of(calls, number) for number, name in enumerate(pairs, len(plan.probes))}
    empty = CalibrationCalls.of(calls, len(known))
    costs = {name: cost for name, row in rows.items() if (cost := cost_of(row, empty)) is not None}
    if _LEFT_OUT in missing and len(empty.duration):
        loops = CalibrationCalls.of(calls, len(known) + 1).duration
        # Both functions are recorded in the same way, so that the difference is what is in them.
        each = (loops - float(np.median(empty.duration))) / CALLS
        costs[_LEFT_OUT] = made(0.0, max(float(np.median(each)), 0.0), each)
    return costs


class _Places:
    """The functions of the program, for each way one."""

    def __init__(self, binary: Binary) -> None:
        self._binary = binary

    def probe(self, way: ProbeMode) -> Probe:
        """A function that is recorded in a way; each number of reads has its own."""
        kind = "emulated" if way.is_emulated else "stepped"
        function = self._binary.find(f"calibration_{kind}_{way.reads + 1}")[0]
        return Probe(self._binary.path, function, _size(way.reads), 1)

    def pair(self, name: str) -> ProbePair:
        """Two probes in a function, with no instruction that does anything between them."""
        symbol, distance = _PAIRS[name]
        one = self._binary.find(symbol)[0]
        start, end = (
            Usdt("", symbol, one.address + shift, one.offset + shift, 0, "") for shift in (0, distance)
        )
        return ProbePair(self._binary.path, (start,), (end,), symbol, 1)


def _size(reads: int) -> Size | None:
    """A size that takes so many reads of memory, of what the parameter of the function points to."""
    if reads < 0:
        return None
    if reads == 0:
        return Size(0, 0, (Term(1, (), 8, True),))
    return Size(0, 0, tuple(Term(1, (0,), 8, True) for _ in range(reads)))


# Recordings of the engines: records of two or three words of eight bytes.

PIECE: Final = 1 << 18
"""How many words of a recording are decoded at once."""
NOT_READ: Final = -(1 << 63)
"""The sum of a size whose memory could not be read."""


class RecordingPiece:
    """A piece of a recording; the reader sets `consumed` to the number of words of its complete records."""

    def __init__(self, values: Words) -> None:
        self.values = values
        self.consumed = 0


def pieces(file: Path) -> Iterator[RecordingPiece]:
    """The words of a file, piece by piece; the next piece begins with what was not consumed of the last."""
    with open(file, "rb") as stream:
        rest = np.zeros(0, np.uint64)
        for piece in words(stream, PIECE):
            joined = RecordingPiece(np.concatenate([rest, piece]))
            yield joined
            rest = joined.values[joined.consumed :]


def boundaries(values: Words, bit: int) -> tuple[Ints, int]:
    """The positions at which the records of a piece begin, and the end of the last complete one.

    :param bit: the bit of the second word of a record that says that it has a third one.
    """
    count = len(values)
    if count < 2:
        return np.zeros(0, np.int64), 0
    has_third = (values[1:] & np.uint64(1 << bit)) != 0
    if not has_third[::2].any():
        at = np.arange(0, count - 1, 2, dtype=np.int64)
        return at, len(at) * 2
    # The start of a record depends on the length of the one before, so that this cannot be an array
    # operation. Bytes are read faster than elements of an array.
    extra = has_third.tobytes()
    starts = []
    position = 0
    while position < count - 1:
        starts.append(position)
        position += 2 + extra[position]
    if position > count:
        position = starts.pop()
    return np.array(starts, np.int64), position


def sizes_from_sums(size: Size, sums: Ints) -> Ints:
    """The sizes for the sums of their terms; UNKNOWN for negative ones and those that could not be read."""
    values = (sums + size.constant) // size.divisor
    return np.where((sums == NOT_READ) | (values < 0), UNKNOWN, values)
