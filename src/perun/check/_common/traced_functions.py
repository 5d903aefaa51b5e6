"""The functions of two traces side by side: their times, and what of a difference may be noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from perun.check._common.amounts import ENOUGH_TO_TRIM
from perun.check._common.exclusive import Calls, Place, Times
from perun.check._common.standard_errors import CONFIDENCE, STEADY, WEAKER, error_of_others

_ERRORS: Final = 3.0
"""Standard errors that a difference has to exceed, if it is to be certain."""
_NS_IN_MS: Final = 1e6
_INTERRUPTION: Final = 100.0
"""Milliseconds that a program may be kept waiting where several share a processor."""


class Function(NamedTuple):
    """One function; None in a profile without it."""

    place: Place
    name: str
    baseline: Calls | None
    target: Calls | None

    @property
    def before(self) -> float:
        """The time in the baseline in milliseconds, NaN where a time is no number."""
        return self.baseline.total / _NS_IN_MS if self.baseline else 0.0

    @property
    def after(self) -> float:
        """The time in the target in milliseconds, NaN where a time is no number."""
        return self.target.total / _NS_IN_MS if self.target else 0.0

    @property
    def difference(self) -> float:
        """Target - baseline in milliseconds."""
        return self.after - self.before

    @property
    def is_in_both(self) -> bool:
        """Whether neither profile is without it."""
        return self.baseline is not None and self.target is not None

    @property
    def usual(self) -> tuple[float, float]:
        """The times in milliseconds without the slowest calls of each profile."""
        before, after = (calls.usual / _NS_IN_MS if calls else 0.0 for calls in self[2:])
        return before, after

    @property
    def error(self) -> float:
        """The standard error of the difference in milliseconds, by how much the calls differ."""
        return math.hypot(*(calls.error / _NS_IN_MS for calls in self[2:] if calls))

    @property
    def is_steady(self) -> bool:
        """Whether its calls do not scatter at all, as those of nothing that is timed do."""
        both = [calls for calls in self[2:] if calls]
        return all(
            calls.number >= ENOUGH_TO_TRIM and calls.error * math.sqrt(calls.number) <= STEADY * calls.usual
            for calls in both
        )

    @property
    def could_be_an_interruption(self) -> bool:
        """Whether interruptions of single calls by the system explain the difference as well."""
        fewest = min((calls.number for calls in self[2:] if calls), default=0)
        if fewest < ENOUGH_TO_TRIM and abs(self.difference) < _INTERRUPTION:
            return True
        before, after = self.usual
        return abs(after - before) < _ERRORS * self.error


def functions_of(place: Place, old: Times, new: Times) -> Iterator[Function]:
    """The functions of a binary in both profiles, sorted by name."""
    before, after = old.get(place.baseline or "", {}), new.get(place.target or "", {})
    for name in sorted(before.keys() | after.keys()):
        yield Function(place, name, before.get(name), after.get(name))


class Scale(NamedTuple):
    """What differences are compared with.

    :param whole: the time that percentages are of; :param usual: the same without the slowest calls.
    :param resolution: what is no difference; all in milliseconds.
    :param cutoff: percentage below which nothing is reported.
    """

    whole: float
    usual: float
    resolution: float
    cutoff: float

    def percent(self, difference: float) -> float:
        """The difference in percent of the whole."""
        return 100 * difference / self.whole if self.whole else 0.0

    def certain_percent(self, functions: list[Function]) -> float:
        """What functions differ by together in percent, without slowest calls and interruptions; 0 where that
        is within their error."""
        certain = [one.usual for one in functions if not one.could_be_an_interruption]
        difference = math.fsum(after - before for before, after in certain)
        if abs(difference) < _ERRORS * math.hypot(*(one.error for one in functions)):
            return 0.0
        return 100 * difference / self.usual if self.usual else 0.0

    def is_small(self, one: Function) -> bool:
        """Whether the function takes too little time in one of the versions to be looked at."""
        return not min(one.usual) > 0 or max(one.before, one.after) * 100 < self.cutoff * self.whole

    def is_negligible(self, difference: float) -> bool:
        """Whether the difference is too small to be reported."""
        return abs(difference) <= self.resolution or abs(self.percent(difference)) < self.cutoff


class Noise:
    """What the machine makes of two runs of the same program, by what became of the other functions.

    Nothing, where each version was run several times: the spread of these runs is in the error of a function.

    :param functions: of two single runs, with times that are numbers. :param apart: share that it makes at
        most.
    """

    def __init__(self, functions: list[Function], apart: float, scale: Scale) -> None:
        self._most = math.log1p(apart)
        ratios = {one: _log_ratio(one) for one in functions if not scale.is_small(one)}
        errors = error_of_others(np.array([*ratios.values()]))
        self._errors = dict(zip(ratios, errors, strict=True))

    def may_explain(self, one: Function) -> bool:
        """Whether the 99 % interval of the ratio of the two times includes 1."""
        return self._explains(one, CONFIDENCE)

    def explains(self, one: Function) -> bool:
        """Whether the 95 % interval does as well."""
        return self._explains(one, WEAKER)

    def _explains(self, one: Function, confidence: float) -> bool:
        if one not in self._errors or one.is_steady:
            return False
        half = self._errors[one].half_width(confidence)
        if math.isinf(half) and confidence == WEAKER:
            return False  # too few functions tell of the noise, but it may be a change
        return abs(_log_ratio(one)) <= min(half, self._most)


def _log_ratio(one: Function) -> float:
    before, after = one.usual
    return math.log(after / before)
