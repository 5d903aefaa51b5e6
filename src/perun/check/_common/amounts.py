"""The amounts of a profile by uid and by what they measure, with their sums, means and robust means.

Nothing heavy is imported here: most checks of most histories need no more than this.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import ceil, fsum, isfinite, nan
from operator import add
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from perun.profile.amounts import common_unit, units, written
from perun.profile.session import count_of

if TYPE_CHECKING:
    from perun.profile.factory import Profile

CPU: Final = "cpu"
_TIME: Final = "time"
_MEMORY: Final = "memory"
_CPU_PARTS: Final = ("user", "sys")
_SECONDS: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_SLOWEST: Final = 0.05
"""Share of the calls that the trimmed mean leaves out: those that the system interrupted are among them."""
ENOUGH_TO_TRIM: Final = 3
"""Calls of which one can be left out."""


@dataclass(slots=True)
class Amounts:
    """The amounts of one uid that measure the same thing.

    :ivar metric: what they measure: the subtype, or the type where there is none, or :data:`CPU`.
    :ivar total: their sum. :ivar count: how many measurements they stand for.
    :ivar runs: how many profiles were pooled into the one that they are of.
    :ivar unit: empty where it is not known, or not the same for all.
    :ivar trouble: why they have no mean; empty where they have one.
    :ivar from_zero: whether a profile without them has an amount of 0, and more is worse.
    :ivar is_calls: whether each amount is of one call or one allocation; otherwise of one run of the command.
    :ivar is_exact: whether the amount is the same in each run of the same program.
    :ivar columns: the amounts themselves, those of a profile, not copies.
    """

    metric: str = ""
    total: float = 0.0
    count: float = 0
    runs: int = 1
    unit: str | None = None
    trouble: str = "no amount"
    from_zero: bool = False
    is_calls: bool = False
    is_exact: bool = False
    columns: list[Sequence[float]] = field(default_factory=list)

    @classmethod
    def absent_like(cls, other: Amounts | None) -> Amounts | None:
        """What a profile without the amounts has of them, where the other profile says that; else None."""
        if other is None or not other.from_zero or other.mean is None:
            return None
        return cls(other.metric, count=1, unit=other.unit, trouble="", from_zero=True)

    def add(self, amounts: Sequence[float], count: float, unit: str) -> None:
        """Take in more amounts.

        :param count: the number of measurements that they stand for.
        """
        if not self.count:
            self.unit, self.trouble = unit, ""
        elif unit != self.unit:
            self.unit = ""
        self.total += _sum(amounts)
        self.count += count
        self.columns.append(amounts)
        if not isfinite(self.total):
            self.trouble = "an amount is not a number"

    @property
    def mean(self) -> float | None:
        """The mean amount; None where there is none."""
        return None if self.trouble else self.total / self.count

    @property
    def sum(self) -> float | None:
        """The sum of the amounts of one run; None where there is none."""
        return None if self.trouble else self.total / self.runs

    @property
    def runs_calls(self) -> float:
        """The mean number of calls in one run."""
        return self.count / self.runs

    @property
    def robust_name(self) -> str:
        """What :attr:`robust_mean` is."""
        return "trimmed means" if self.is_calls else "fastest runs"

    @property
    def robust_mean(self) -> float:
        """The mean without the slowest 5 % (at least one) of the calls; the fastest of repeated runs.

        Whatever disturbs a run makes it slower: how fast the command can be is the best known.
        """
        values = chain.from_iterable(self.columns)
        if not self.is_calls:
            return min(values)
        ordered = sorted(values)
        return fmean(ordered[: without_slowest(len(ordered))])

    @property
    def is_part_of_cpu(self) -> bool:
        """Whether it is user or system time, which the kernel tells apart in whole ticks of its clock."""
        return self.metric in _CPU_PARTS and self.unit in _SECONDS

    @property
    def seconds(self) -> float:
        """Seconds of one unit; 1 where the unit is none of time."""
        return _SECONDS.get(self.unit or "", 1.0)

    def __str__(self) -> str:
        return self.trouble or written(self.total / self.count, self.unit or "")

    @property
    def sum_text(self) -> str:
        """The sum with the number of calls: `3.5ms (7 calls)`."""
        calls = round(self.runs_calls, 2)
        noun = "call" if calls == 1 else "calls"
        return self.trouble or f"{written(self.total / self.runs, self.unit or '')} ({calls:g} {noun})"


Metrics = dict[str, Amounts]


def without_slowest(calls: int) -> int:
    """How many calls are left without the slowest 5 % (at least one); of fewer than 3 calls all.

    Which calls the system interrupted is not known, but an interruption is far longer than most calls.
    """
    return calls if calls < ENOUGH_TO_TRIM else calls - ceil(_SLOWEST * calls)


def ratio(target: float, baseline: float) -> float:
    """target / baseline within the range of numbers; the baseline is not 0."""
    return max(-sys.float_info.max, min(target / baseline, sys.float_info.max))


def amounts(profile: Profile) -> dict[str, Metrics]:
    """The amounts by uid as text and by what they measure, summed up without making single resources.

    Resources without an amount are kept under the empty metric. A uid that has user and system time of the
    same runs has their sums as :data:`CPU`, too.
    """
    unit_of = units(profile)
    runs = count_of(profile)
    found: dict[str, Metrics] = {}
    for key, constants, columns, size in profile.groups():
        # The key of a group is the uid as text, `#`, and a number.
        own = found.setdefault(key.rpartition("#")[0] or key, {})
        kind, subtype = constants.get("type"), constants.get("subtype")
        unit, factor = unit_of(kind, subtype), 1.0
        if subtype == unit:  # a rate, which is one metric whatever its unit
            factor, subtype = common_unit(unit)
            unit = subtype
        has_amounts = "amount" in columns or "amount" in constants
        metric = str(subtype or kind or "") if has_amounts else ""
        group = own.get(metric)
        if group is None:
            group = own[metric] = Amounts(metric, runs=runs)
            group.is_calls = kind != _TIME and not _is_repeated(columns, constants)
            group.is_exact = kind == _MEMORY and group.is_calls
        group.from_zero = constants.get("absent") == 0
        if has_amounts and size:
            values: Sequence[float] = columns.get("amount") or [constants["amount"]] * size
            count = _count(columns, size) if kind == _MEMORY else size
            group.add(values if factor == 1 else [factor * one for one in values], count, unit)
    for own in found.values():
        _add_cpu(own)
    return found


def _is_repeated(columns: Mapping[str, Any], shared: Mapping[str, Any]) -> bool:
    """Whether the resources are numbered by runs of the command; single allocations are numbered, too."""
    return ("order" in columns or "order" in shared) and "trace" not in shared


def _add_cpu(metrics: Metrics) -> None:
    parts = [metrics[name] for name in _CPU_PARTS if name in metrics]
    if len(parts) < len(_CPU_PARTS) or CPU in metrics or any(part.trouble for part in parts):
        return
    user, system = (list(chain.from_iterable(part.columns)) for part in parts)
    if len(user) != len(system) or parts[0].unit != parts[1].unit:
        return
    cpu = metrics[CPU] = Amounts(CPU, runs=parts[0].runs)
    cpu.add(list(map(add, user, system)), len(user), parts[0].unit or "")


def _count(columns: Mapping[str, Any], size: int) -> float:
    """How many measurements the resources of a group stand for."""
    count = _sum(columns["count"]) if "count" in columns else nan
    return count if count >= size else size


def _sum(values: Iterable[Any]) -> float:
    try:
        return fsum(values)
    except (TypeError, ValueError, OverflowError):
        return nan
