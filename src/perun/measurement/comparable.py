"""Whether two profiles were measured under conditions under which they can be compared.

A program is faster on a faster machine, with another kernel, or built with other flags: a difference between
such profiles tells nothing of the change of the program. What a profile does not say (older releases recorded
less) does not differ from anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeGuard

from perun.profile import session

if TYPE_CHECKING:
    from perun.profile.factory import Profile

COUNTED: Final = frozenset({"memory", "instructions"})
"""Types of profiles that count: what only makes a machine faster makes no difference to them."""
WITHOUT_RUNS: Final = frozenset({"bound"})
"""Types of profiles for which nothing runs: no machine makes a difference to them."""
_BUSY: Final = 4.0
"""Load of a machine, in multiples of its processors, at which times tell little of a quiet machine."""
_QUIET: Final = "at most 1 per processor"
_LOADED: Final = f"more than {_BUSY:.0f} per processor"
SPEED: Final = "speed"
"""The condition that is measured: what it differs by is told by :func:`slower`."""
PROCESSOR: Final = 0
"""The clock of the fixed loop that tells of times of the processor."""
WALL: Final = 1
"""The one that tells of times that passed, which other programs make longer, too."""
_SCATTER: Final = (0.025, 0.25)
"""The standard deviations of logarithms of single loops, by clock, at least, where few loops tell them."""
_FEW: Final = 5
_SURE: Final = 2.6
"""Standard deviations beyond which a difference is no scatter of the loop, in 99 of 100 cases."""
_LEAST_SPEED: Final = math.log(1.03)
_LONGEST: Final = 1e15
"""Nanoseconds: what is more is no time of the loop."""
_THIRD: Final = 5
"""Loops at least in a third of a session of which it is told that the machine changed."""
_BESIDE: Final = "program beside it"
_UNSAID: Final = {_BESIDE: "none"}
"""What holds where a profile does not say: only duets run something beside a program."""
Conditions = tuple[tuple[str, str], ...]
"""Names of conditions, as of :class:`ProfileMismatch`, and their values."""


class ProfileMismatch(NamedTuple):
    """What differs, and how it was for each of the two profiles."""

    name: str
    baseline: str
    target: str


def differences(baseline: Profile, target: Profile) -> list[ProfileMismatch]:
    """What differs of the conditions of the two; none for profiles of one session, as they were measured side
    by side."""
    sessions = session.session_of(baseline), session.session_of(target)
    if sessions[0] and sessions[1] and sessions[0].id == sessions[1].id:
        return []
    return unlike(conditions(baseline), conditions(target))


def unlike(baseline: Conditions, target: Conditions) -> list[ProfileMismatch]:
    """What differs of conditions that both name, or that are known without."""
    if baseline == target:
        return []
    found = []
    old, new = dict(baseline), dict(target)
    for name in old | new:
        before, now = (one.get(name, _UNSAID.get(name)) for one in (old, new))
        if before is not None and now is not None and before != now and name != SPEED:
            found.append(ProfileMismatch(name, before, now))
    return found


def refused(found: Sequence[ProfileMismatch]) -> str:
    """Why nothing is said of two measurements whose conditions differ."""
    names = ", ".join(one.name for one in found)
    return f"not comparable, as these differ: {names}; compare nevertheless with perun check --force"


def conditions(profile: Profile) -> Conditions:
    """The conditions that were noted when the profile was measured; none where nothing ran.

    Of what is counted only those that matter to counts: the architecture, the C library and the build.
    """
    if profile.type in WITHOUT_RUNS:
        return ()
    machine = _mapping(profile.get("machine"))
    counted = profile.type in COUNTED
    parts = [(name, of(machine)) for name, of, only_times in _PARTS if not (counted and only_times)]
    if session.is_duet(profile) and not counted:
        parts.append((_BESIDE, "the other side of the comparison"))
    return tuple((name, value) for name, value in parts if value)


def speed_of(under: Conditions) -> str:
    """The speed among conditions; empty where it is not known."""
    return next((value for name, value in reversed(under) if name == SPEED), "")


def usual(speeds: Sequence[str], loop: int) -> float | None:
    """The median of the nanoseconds of processor time that this version of the loop took; None of none.

    :param speeds: as of :func:`speed_of`.
    """
    times = [one.times[PROCESSOR] for one in map(_read, speeds) if one and one.loop == loop]
    return _median(times) if times else None


def slower(baseline: Sequence[str], target: Sequence[str], clock: int) -> float:
    """The logarithm of how many times as long the machine took for the same work when the target was
    measured; 0 where it is not known of all, or no larger than the scatter of the loop and 3 %.

    :param baseline: and :param target: the speeds of profiles, as of :func:`speed_of`.
    :param clock: :data:`PROCESSOR` or :data:`WALL`.
    """
    sides = [[_read(one) for one in speeds] for speeds in (baseline, target)]
    known = [[one for one in own if one] for own in sides]
    if sides != known or len({one.loop for own in known for one in own}) != 1 or not all(known):
        return 0.0
    (old, error), (new, other) = (_centre(own, clock) for own in known)
    least = max(_LEAST_SPEED, _SURE * math.hypot(error, other))
    return new - old if abs(new - old) > least else 0.0


def drifted(machine: Mapping[str, Any]) -> Iterator[str]:
    """A sentence on a machine whose speed changed for certain from the first third of a session to the last.

    :param machine: the description in a profile of the session.
    """
    found = _mapping(machine.get(SPEED))
    times = _times(found, "processor")
    size = len(times) // 3
    if size >= _THIRD:
        ends = ({**found, "processor": one, "wall": one} for one in (times[:size], times[-size:]))
        first, last = (_speed({SPEED: one}) for one in ends)
        speed = slower([first], [last], PROCESSOR)
        if speed:
            yield f"the machine became {told_slower(speed)} during the session"


def told_slower(speed: float) -> str:
    """What :func:`slower` has found, in words: `12 % slower`."""
    if speed < 0:
        return f"{-100 * math.expm1(speed):.0f} % faster"
    return f"{100 * math.expm1(speed):.0f} % slower"


class _Loops(NamedTuple):
    """The version of the loop, how often it ran, and by clock its median in ns and the standard deviation of
    its logarithm."""

    loop: int
    runs: int
    times: tuple[float, float]
    spreads: tuple[float, float]


@lru_cache(maxsize=4096)
def _read(speed: str) -> _Loops | None:
    """What :func:`_speed` has written; None of anything else."""
    try:
        loop, count, processor, wall, *spreads = map(float, speed.split())
        first, last = (min(spread, _LONGEST) for spread in spreads)
    except (ValueError, TypeError):
        return None
    if not all(1 <= one <= _LONGEST for one in (loop, count, processor, wall)):
        return None
    return _Loops(int(loop), int(count), (processor, wall), (first, last))


def _centre(rows: Sequence[_Loops], clock: int) -> tuple[float, float]:
    """The median of the logarithms of the loop, and its error: what loops scatter, and profiles."""
    logs = [math.log(one.times[clock]) for one in rows]
    middle, count = _median(logs), sum(one.runs for one in rows)
    within = math.fsum(one.runs * one.spreads[clock] ** 2 for one in rows) / count
    between = math.fsum((one - middle) ** 2 for one in logs) / max(len(logs) - 1, 1)
    least = _SCATTER[clock] ** 2 if count <= _FEW else 0.0
    square = max(within, least) / count + between / len(logs)
    return middle, math.sqrt(square * (math.pi / 2 if count > 2 else 1.0))  # of a median


def _speed(machine: Mapping[str, Any]) -> str:
    """What is kept of the times of the loop: its version, how many there are, their medians in ns, and the
    standard deviations of their logarithms from these, of both clocks."""
    found = _mapping(machine.get(SPEED))
    times = [_times(found, name) for name in ("processor", "wall")]
    loop = found.get("loop")
    if not (isinstance(loop, int) and 0 < loop < _LONGEST and all(times)):
        return ""
    middles = [_median(own) for own in times]
    spreads = [
        math.sqrt(math.fsum(math.log(one / middle) ** 2 for one in own) / max(len(own) - 1, 1))
        for own, middle in zip(times, middles, strict=True)
    ]
    return " ".join(f"{one:.6g}" for one in (loop, len(times[0]), *middles, *spreads))


def _times(found: Mapping[str, Any], name: str) -> list[float]:
    times = found.get(name)
    if not isinstance(times, list):
        return []
    return [float(one) for one in times if _is_number(one) and 1 <= one <= _LONGEST]


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def _load(machine: Mapping[str, Any]) -> str:
    """Whether the machine was quiet in the minute before, or many programs competed; empty in between."""
    load, cpu = machine.get("load"), _mapping(machine.get("cpu"))
    processors = cpu.get("available") or cpu.get("total")
    if not (isinstance(load, list) and load and _is_number(load[0]) and _is_number(processors)):
        return ""
    each = float(load[0]) / max(float(processors), 1.0)
    return _QUIET if each <= 1 else _LOADED if each > _BUSY else ""


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(*path: str) -> Callable[[Mapping[str, Any]], str]:
    def of(machine: Mapping[str, Any]) -> str:
        value: Any = machine
        for key in path:
            value = _mapping(value).get(key)
        return str(value) if isinstance(value, (str, int)) else ""

    return of


_PARTS: Final[tuple[tuple[str, Callable[[Mapping[str, Any]], str], bool], ...]] = (
    ("processor", _text("cpu", "model"), True),
    ("number of processors", _text("cpu", "total"), True),
    ("architecture", _text("architecture"), False),
    ("CPU governor", _text("cpu", "governor"), True),
    ("kernel", _text("release"), True),
    ("C library", _text("libc"), False),
    ("build", _text("build"), False),
    ("load", _load, True),
    (SPEED, _speed, True),
)
"""What is compared, how it is read from the description, and whether it matters to times only."""
