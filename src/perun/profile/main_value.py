"""The value that stands for a profile: the time of a command, the peak of its memory, its instructions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.profile.format.grouping import Group
from perun.profile.measured import Measured, of_values
from perun.profile.uid import flatten
from perun.profile.uncertainty import of_function
from perun.profile.units import larger_is_better, units

if TYPE_CHECKING:
    from perun.profile.factory import Profile

_CALLS: Final = "mixed"
_ENTRY: Final = "main"


class _Choice(NamedTuple):
    """The rule for the profiles of one kind: which series stands for them, and what it is called."""

    type: str
    subtype: str
    metric: str


_CHOICES: Final = (
    _Choice("time", "real", "real time"),
    _Choice("memory", "peak", "peak memory"),
    _Choice("instructions", "inclusive", "instructions"),
)
"""Where several series of one program fit, the largest is that of the program: a function has no more."""


def of(profile: Profile) -> Measured | None:
    """The value that stands for the profile; None where no single series does.

    Of a command it is its real time, of memory the peak of the program, of instructions their number. Where
    calls were recorded, it is the time of `main`, in all its calls, if that is above what recording them may
    have cost; with the optimisations of the trace, as recording fewer calls makes it shorter. The only series
    of any other profile stands for it.
    """
    groups = [group for group in profile.groups() if group.size]
    chosen = _by_choice(groups) or _by_calls(groups, _optimized(profile)) or _only_series(groups)
    if chosen is None:
        return None
    metric, same, values = chosen
    uncertain = of_function(profile, _uid(same), "inclusive", total=True)
    if uncertain is not None and uncertain.below:
        return None
    values = [value for value in values if math.isfinite(value)]
    if not values:
        return None
    kind, subtype = _kind(same)
    unit = units(profile)(kind, subtype)
    better = bool(larger_is_better(profile) & {_uid(same), kind, subtype, unit})
    return of_values(metric, values, unit, better)


def _by_choice(groups: Sequence[Group]) -> tuple[str, Group, list[float]] | None:
    for choice in _CHOICES:
        fitting = [group for group in groups if _kind(group) == (choice.type, choice.subtype)]
        found = [(_amounts([group]), group) for group in fitting]
        if found and choice.type == "time":
            # The workloads of one profile would be several series; the first stands for all.
            return choice.metric, found[0][1], found[0][0]
        if found:
            values, group = max(found, key=lambda one: math.fsum(one[0]))
            return choice.metric, group, values
    return None


def _by_calls(groups: Sequence[Group], optimized: str) -> tuple[str, Group, list[float]] | None:
    calls = [group for group in groups if group.constants.get("type") == _CALLS]
    entry = [group for group in calls if _uid(group).rpartition(":")[2] == _ENTRY]
    if not entry or len({_uid(group) for group in entry}) > 1:
        return None
    return f"time of {_ENTRY}{optimized}", entry[0], [math.fsum(_amounts(entry))]


def _optimized(profile: Profile) -> str:
    """The optimisations that chose what was traced: ` (basic)`; empty where none did."""
    region = profile.get("trace")
    found = region.get("optimization") if isinstance(region, dict) else None
    if not isinstance(found, dict):
        return ""
    pipeline, methods = found.get("pipeline"), found.get("methods")
    named = isinstance(pipeline, str) and pipeline != "custom"
    name = pipeline if named else ", ".join(map(str, methods if isinstance(methods, list) else ()))
    return f" ({name})" if name else ""


def _only_series(groups: Sequence[Group]) -> tuple[str, Group, list[float]] | None:
    series = {(_uid(group), *_kind(group)) for group in groups}
    if len(series) != 1 or any("uid" in group.columns for group in groups):
        return None
    return _uid(groups[0]) or _kind(groups[0])[0], groups[0], _amounts(groups)


def _amounts(groups: Iterable[Group]) -> list[float]:
    """The amounts of the groups; what is no number is left out."""
    found: list[float] = []
    for group in groups:
        column = group.columns.get("amount")
        values = [group.constants.get("amount")] * group.size if column is None else column
        found += [float(one) for one in values if isinstance(one, (int, float)) and abs(one) < 1e300]
    return found


def _kind(group: Group) -> tuple[str, str]:
    constants: Mapping[str, Any] = group.constants
    return str(constants.get("type", "")), str(constants.get("subtype", ""))


def _uid(group: Group) -> str:
    return str(flatten(group.constants.get("uid", "")))
