"""Measures what recording a call costs, on the empty functions of a program of our own.

The costs depend on the machine, the recorder and the way in which it records a function. Measuring them takes
some tenths of a second, so that they are kept until the machine is started anew.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from perun.collect._calls.events import Calls
from perun.collect._calls.overhead import CallCost, below
from perun.core import atomic
from perun.core.wording import listed
from perun.native.columns import Floats, Ints

PROGRAM: Final = Path(__file__).with_name("perun_calibration")
"""The program with the empty functions, which the build puts beside this module."""
INSTRUMENTED: Final = Path(__file__).with_name("perun_calibration_instrumented")
"""The same one, compiled for `perun collect complexity`."""
BARE: Final = "calibration_bare"
"""The function of the program that makes calls which are not recorded."""
LOOP: Final = "calibration_loop"
LOOPED: Final = "calibration_looped"
"""The function of the program that makes calls of which a recorder need not tell, and what it calls."""
ROUNDS: Final = 16
CALLS: Final = 32
"""Calls of each function in each round."""
UNCERTAIN: Final = 0.3
"""Share of a cost by which it may be wrong at least. It is measured in a moment and kept until the next
start, so that what counts is how far calibrations of one machine differ. `benchmarks/calibration.py` measures
that: of the pairs of 180 calibrations, in three runs on a busy machine, 97 % (uftrace) to 100 % (ebpf,
emulated) differ by no more than this, but only 50 % to 86 % by no more than the spread of the rounds of one.
Where calibration and recording met the same machine, times of calls of known length came out right to
0.1 us."""
_LONGEST_EMPTY: Final = 20.0
"""Nanoseconds that an empty call takes at most: more is what recording the function around it costs."""
_QUICK: Final = 0.9
"""Share of the calls of a round that are likely not interrupted."""
UNCERTAIN_TIMES: Final = "are within the uncertainty of what recording costs"
_BOOT: Final = "/proc/sys/kernel/random/boot_id"


class CalibrationCalls(NamedTuple):
    """The recorded calls of one function of the program, in the order of time; nanoseconds."""

    start: Ints
    duration: Ints

    @classmethod
    def of(cls, calls: Calls, function: int) -> CalibrationCalls:
        """The calls of the function with a number."""
        own = calls.where(calls.function == function)
        order = np.argsort(own.start, kind="stable")
        return cls(own.start[order], own.duration[order])


def cost_of(
    measured: CalibrationCalls, bare: CalibrationCalls | None = None, calls: int = CALLS
) -> CallCost | None:
    """The cost of recording a call: the median of rounds, which interruptions of the program do not move.

    :param measured: rounds of `calls` calls of an empty function, one directly after the other.
    :param bare: calls of :data:`BARE`, each of which makes `calls` calls that are not recorded.
    :returns: None where calls are missing.
    """
    count = len(measured.start)
    if count < 2 * calls or count % calls:
        return None
    steps = _usual(np.diff(measured.start.reshape(-1, calls), axis=1))
    inside = float(np.median(_usual(measured.duration.reshape(-1, calls))))
    whole = max(float(np.median(steps)) - empty_call(bare, inside, calls), inside)
    return made(inside, whole, steps)


def made(inside: float, whole: float, rounds: Floats) -> CallCost:
    """A cost with its spread: that of the rounds, and some of it in any case."""
    low, high = np.percentile(rounds, (10, 90))
    return CallCost(inside, whole - inside, max(float(high - low), UNCERTAIN * whole))


def empty_call(bare: CalibrationCalls | None, inside: float, calls: int = CALLS) -> float:
    """Nanoseconds of a call that is not recorded; 0 where that was not measured."""
    if bare is None or not len(bare.duration):
        return 0.0
    empty = (float(np.median(bare.duration)) - inside) / calls
    return min(max(empty, 0.0), _LONGEST_EMPTY)


def _usual(values: Ints) -> Floats:
    """The means of the rounds without their slowest calls: clocks are too coarse for the median of a call."""
    kept = ceil(_QUICK * values.shape[1])
    means: Floats = np.sort(values, axis=1)[:, :kept].mean(axis=1)
    return means


class CalibrationCosts:
    """Costs that were measured since the machine started, in a file; without a folder they are not kept."""

    def __init__(self, folder: Path | None, recorder: str, program: Path) -> None:
        """:param recorder: what the costs are of, with all that they depend on but the way of recording."""
        self._file = folder / "costs-of-recording.json" if folder else None
        self._key = "|".join((recorder, _boot(), _version(program)))

    def of(
        self, ways: Sequence[str], measure: Callable[[Sequence[str]], dict[str, CallCost]]
    ) -> dict[str, CallCost]:
        """The costs of ways of recording, by the way; those that are not known yet are measured."""
        known = self._read()
        missing = [way for way in dict.fromkeys(ways) if way not in known]
        if missing:
            known |= measure(missing)
            self._write(known)
        return {way: known[way] for way in ways if way in known}

    def _read(self) -> dict[str, CallCost]:
        return dict(self._all().get(self._key, {}))

    def _all(self) -> dict[str, dict[str, CallCost]]:
        if self._file is not None:
            with contextlib.suppress(OSError, msgspec.MsgspecError):
                return msgspec.json.decode(self._file.read_bytes(), type=dict[str, dict[str, CallCost]])
        return {}

    def _write(self, known: dict[str, CallCost]) -> None:
        """Keep the costs; those of earlier starts of the machine are dropped."""
        if self._file is None or not known:
            return
        kept = {key: costs for key, costs in self._all().items() if _boot() in key}
        with contextlib.suppress(OSError, ValueError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            atomic.write(self._file, msgspec.json.encode({**kept, self._key: known}))


def _boot() -> str:
    try:
        return Path(_BOOT).read_text("ascii").strip()
    except OSError:
        return str(os.getpid())  # never found again


def _version(program: Path) -> str:
    try:
        status = program.stat()
    except OSError:
        return ""
    return f"{status.st_size}-{status.st_mtime_ns}"


def region(
    costs: Mapping[str, CallCost], ways: Sequence[str], functions: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The key `overhead` of the region `trace` of a profile, which says what was subtracted from its times.

    :param ways: how each function was recorded. :param functions: see
        :meth:`perun.collect._calls.overhead.Overhead.by_function`.
    """
    shown = [
        {
            "recorded": way,
            "functions": ways.count(way),
            **{name: round(value, 1) for name, value in cost._asdict().items()},
        }
        for way, cost in sorted(costs.items())
    ]
    return {"costs": shown, "functions": dict(functions)}


def notes(found: Mapping[str, Any]) -> list[str]:
    """What the user should know of a :func:`region`, or of `why-not` in its place."""
    if "functions" not in found:
        return [f"times include the cost of recording, which was not measured: {found['why-not']}"]
    small = below(found["functions"])
    if not small:
        return []
    return [f"times that {UNCERTAIN_TIMES}, so that they say nothing: those of {listed(small)}"]
