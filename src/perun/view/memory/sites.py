"""The resources of a memory profile, added up by call stack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from perun.profile.factory import Group, flatten
from perun.profile.memory import is_release, is_summary, number_of

if TYPE_CHECKING:
    from perun.profile.factory import Profile

SUMS: Final = ("amount", "count", "peak", "leaked", "leaked-blocks", "temporary")


@dataclass
class CallStack:
    """What one call stack allocated in the whole run.

    :ivar frames: the innermost frame first. :ivar sums: a number for each of :data:`SUMS`, sizes in bytes.
    """

    frames: tuple[str, ...]
    sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(SUMS, 0.0))


def call_stacks(profile: Profile) -> list[CallStack]:
    """The call stacks that allocate, in the order of the profile; none if no resource has a trace.

    A resource without `count`, as older releases and `--raw` write them, is a single allocation.
    """
    found: dict[tuple[str, ...], CallStack] = {}
    for group in profile.groups():
        trace = group.constants.get("trace")
        if not trace or is_release(group.constants) or is_summary(group.constants):
            continue
        frames = tuple(map(_shown, trace)) if isinstance(trace, Sequence) else (str(flatten(trace)),)
        stack = found.setdefault(frames, CallStack(frames))
        for name in SUMS:
            stack.sums[name] += _sum(group, name)
    return list(found.values())


def _sum(group: Group, name: str) -> float:
    if name == "count" and not _has(group, "count"):  # single events
        return group.size
    if name == "leaked-blocks" and not _has(group, "count"):
        return sum(map(bool, _numbers(group, "leaked")))
    return sum(_numbers(group, name))


def _has(group: Group, name: str) -> bool:
    return name in group.columns or name in group.constants


def _numbers(group: Group, name: str) -> Iterator[float]:
    values = group.columns.get(name)
    if values is None:
        values = [group.constants.get(name, 0)] * group.size
    return (number for value in values if (number := number_of(value)) is not None)


def _shown(frame: Any) -> str:
    if not isinstance(frame, Mapping):
        return str(flatten(frame))
    function, source = frame.get("function", "?"), frame.get("source", "")
    if not source or source == "unreachable":
        return str(function)
    return f"{function}  {source}:{frame.get('line', 0)}"
