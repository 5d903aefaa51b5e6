"""Average Amount Threshold: mean amounts of baseline and target, compared by division (manual 8.2.2)."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import fsum, isfinite, nan
from typing import TYPE_CHECKING, Any, ClassVar, Final

from perun.plugin.api import CheckContext
from perun.plugin.params import param
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.units import readable, units

if TYPE_CHECKING:
    from perun.profile.factory import Profile

_ABSENT: Final = "-"


@dataclass(frozen=True)
class ThresholdParams:
    """The ratios of target and baseline from which on a change is reported."""

    degradation: float = param(
        2.0, metavar="<ratio>", minimum=0, help="A mean that grew at least this many times is a degradation."
    )
    optimization: float = param(
        0.5, metavar="<ratio>", minimum=0, help="A mean at most this many times the old is an optimization."
    )


@dataclass(slots=True)
class _Group:
    """What is known of the amounts of one uid; `trouble` says why they have no mean.

    `from_zero` is for amounts that are 0 where nobody tells of them, and bad where they are more.
    """

    total: float = 0.0
    count: float = 0
    unit: str | None = None
    trouble: str = "no amount"
    from_zero: bool = False
    text: str = ""

    def add(self, total: float, count: float, unit: str) -> None:
        """Count in some more amounts; of different units the group keeps none."""
        if not self.count:
            self.unit, self.trouble = unit, ""
        elif unit != self.unit:
            self.unit = ""
        self.total += total
        self.count += count
        if not isfinite(self.total):
            self.trouble = "an amount is not a number"

    @property
    def mean(self) -> float | None:
        """The mean amount, None where there is none."""
        return None if self.trouble else self.total / self.count

    def __str__(self) -> str:
        if not self.text:
            self.text = self.trouble or readable(self.total / self.count, self.unit or "")
        return self.text


class AverageAmountThreshold:
    """Reports every uid, also the unchanged ones; the rate of a change is the ratio target / baseline."""

    name: ClassVar[str] = "average_amount_threshold"
    short: ClassVar[str] = "AAT"
    help: ClassVar[str] = "Compares the average amounts of each uid: twice as much is a degradation."
    Params: ClassVar[type] = ThresholdParams

    def compare(
        self, baseline: Profile, target: Profile, params: ThresholdParams, ctx: CheckContext
    ) -> Iterator[DegradationInfo]:
        """One change of type `ratio` for each uid, in the order of their names.

        A uid in one of the profiles only is NotInBaseline or NotInTarget. Unknown is one that cannot be
        compared, because amounts are absent or not numbers, or only that of the baseline is zero. A resource
        of memory with a `count` stands for so many, and its amount is their sum. One with `absent: 0`, as
        leaked memory has it, counts as 0 in a profile without it, and more than 0 is a degradation then.
        """
        old, new = ctx.cached(baseline, _groups), ctx.cached(target, _groups)
        for uid in sorted(old.keys() | new.keys()):
            before, after = old.get(uid), new.get(uid)
            before, after = before or _nothing(after), after or _nothing(before)
            change, rate = _classify(before, after, params)
            yield DegradationInfo(
                res=change,
                loc=uid,
                fb=_ABSENT if before is None else str(before),
                tt=_ABSENT if after is None else str(after),
                t="ratio",
                rd=rate,
            )


def _nothing(other: _Group | None) -> _Group | None:
    """What a profile that lacks a uid has of it, by what the other one says."""
    if other is None or not other.from_zero or other.mean is None:
        return None
    return _Group(count=1, unit=other.unit, trouble="", from_zero=True)


def _classify(
    before: _Group | None, after: _Group | None, params: ThresholdParams
) -> tuple[PerformanceChange, float]:
    if before is None:
        return PerformanceChange.NotInBaseline, 0.0
    if after is None:
        return PerformanceChange.NotInTarget, 0.0
    old, new = before.mean, after.mean
    if old is None or new is None:
        return PerformanceChange.Unknown, 0.0
    if old == new:
        return PerformanceChange.NoChange, 1.0
    if before.from_zero and after.from_zero and 0 in (old, new):
        return (PerformanceChange.Degradation if new > old else PerformanceChange.Optimization), 0.0
    if old == 0:
        return PerformanceChange.Unknown, 0.0
    ratio = max(-sys.float_info.max, min(new / old, sys.float_info.max))
    if ratio >= params.degradation:
        return PerformanceChange.Degradation, ratio
    if 0 < ratio <= params.optimization:
        return PerformanceChange.Optimization, ratio
    return PerformanceChange.NoChange, ratio


def _groups(profile: Profile) -> dict[str, _Group]:
    """The amounts by uid as text, summed up column by column without making single resources."""
    unit_of = units(profile)
    constants = _mapping(profile.get("resource_type_map"))
    groups: dict[str, _Group] = {}
    for key, columns in _mapping(profile.get("resources")).items():
        # The key of a group is the uid as text, `#`, and a number.
        uid = key.rpartition("#")[0] or key
        group = groups.get(uid)
        if group is None:
            group = groups[uid] = _Group()
        shared = constants.get(key)
        if not isinstance(columns, dict) or not isinstance(shared, dict):
            columns, shared = _mapping(columns), _mapping(shared)
        group.from_zero = shared.get("absent") == 0
        amounts = _amounts(columns, shared)
        if amounts:
            unit = unit_of(shared.get("type"), shared.get("subtype"))
            count = _count(columns, len(amounts)) if shared.get("type") == "memory" else len(amounts)
            group.add(_sum(amounts), count, unit)
    return groups


def _amounts(columns: Mapping[str, Any], constants: Mapping[str, Any]) -> list[Any]:
    amounts = columns.get("amount")
    if isinstance(amounts, list):
        return amounts
    if "amount" not in constants:
        return []
    return [constants["amount"]] * next((len(one) for one in columns.values() if isinstance(one, list)), 1)


def _count(columns: Mapping[str, Any], size: int) -> float:
    """How many measurements the resources of a group stand for."""
    counts = columns.get("count")
    count = _sum(counts) if isinstance(counts, list) else nan
    return count if count >= size else size


def _sum(amounts: list[Any]) -> float:
    try:
        return fsum(amounts)
    except (TypeError, ValueError, OverflowError):
        return nan


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


PLUGIN = AverageAmountThreshold
