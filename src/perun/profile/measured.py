"""What a profile measured, in one value: the time of a command, the peak of its memory, its instructions.

Lists of profiles show that value beside that of an earlier version. It is a fact of one profile, and the
difference of two of them is no verdict: `perun check` and `perun compare` give those.

Nothing heavy is imported here, as every saved profile passes by.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.models.student import quantile
from perun.profile.format.grouping import Group
from perun.profile.uid import flatten
from perun.profile.uncertainty import of_function
from perun.profile.units import larger_is_better, units

if TYPE_CHECKING:
    from perun.profile.factory import Profile

CONFIDENCE: Final = 0.95
"""Of the interval of a difference."""
_CALLS: Final = "mixed"
_ENTRY: Final = "main"


class Measured(NamedTuple):
    """The value that stands for a profile.

    :param metric: what it is: `real time`, `peak memory`, `instructions`, or the name of a series.
    :param value: the mean of the repeated measurements, in `unit`; always finite.
    :param unit: as the profile gives it, else "".
    :param spread: the standard deviation of the measurements; None of a single one.
    :param samples: how many measurements there are.
    :param larger_is_better: whether a growth is an improvement.
    """

    metric: str
    value: float
    unit: str
    spread: float | None
    samples: int
    larger_is_better: bool = False


class Difference(NamedTuple):
    """How a value differs from an earlier one, as shares of the earlier one: 0.05 is 5 % more.

    :param low: and :param high: the interval at 95 %, from Welch's standard error of the difference; both
        None where one of the values was measured once.
    """

    share: float
    low: float | None
    high: float | None


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
    have cost. The only series of any other profile stands for it.
    """
    groups = [group for group in profile.groups() if group.size]
    chosen = _by_choice(groups) or _by_calls(groups) or _only_series(groups)
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


def of_values(
    metric: str, values: Sequence[float], unit: str, larger_is_better: bool = False
) -> Measured:
    """The value of measurements of one metric, one at least, all finite."""
    count = len(values)
    mean = math.fsum(values) / count
    spread = None
    if count > 1:
        spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    return Measured(metric, mean, unit, spread, count, larger_is_better)


def precision(one: Measured) -> float | None:
    """Half the width of the interval of the mean at 95 %, as a share of it; None of a single measurement."""
    if one.spread is None or not one.value:
        return None
    half = quantile(1 - CONFIDENCE, one.samples - 1) * one.spread / math.sqrt(one.samples)
    return half / abs(one.value)


def pooled(parts: Sequence[Measured]) -> Measured:
    """Several profiles of one configuration and version as one sample.

    :param parts: one at least, all of one metric and unit.
    """
    if len(parts) == 1:
        return parts[0]
    count = sum(part.samples for part in parts)
    mean = math.fsum(part.value * part.samples for part in parts) / count
    within = math.fsum((part.samples - 1) * (part.spread or 0.0) ** 2 for part in parts)
    squares = within + math.fsum(part.samples * (part.value - mean) ** 2 for part in parts)
    return parts[-1]._replace(value=mean, spread=math.sqrt(squares / (count - 1)), samples=count)


def difference(earlier: Measured, later: Measured, *, interval: bool = True) -> Difference | None:
    """How the later value differs; None where they are of two metrics or units, or the earlier one is 0.

    :param interval: compute the interval too, which takes most of the time.
    """
    if (earlier.metric, earlier.unit) != (later.metric, later.unit) or earlier.value <= 0:
        return None
    share = later.value / earlier.value - 1
    if earlier.spread is None or later.spread is None or not interval:
        return Difference(share, None, None)
    # Welch's standard error and degrees of freedom; the error of the ratio by the delta method.
    old = earlier.spread**2 / earlier.samples / earlier.value**2
    new = later.spread**2 / later.samples / earlier.value**2
    old *= (later.value / earlier.value) ** 2
    if not old + new:
        return Difference(share, share, share)
    freedom = (old + new) ** 2 / (old**2 / (earlier.samples - 1) + new**2 / (later.samples - 1))
    half = quantile(1 - CONFIDENCE, freedom) * math.sqrt(old + new)
    return Difference(share, share - half, share + half)


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


def _by_calls(groups: Sequence[Group]) -> tuple[str, Group, list[float]] | None:
    calls = [group for group in groups if group.constants.get("type") == _CALLS]
    entry = [group for group in calls if _uid(group).rpartition(":")[2] == _ENTRY]
    if not entry or len({_uid(group) for group in entry}) > 1:
        return None
    return f"time of {_ENTRY}", entry[0], [math.fsum(_amounts(entry))]


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
