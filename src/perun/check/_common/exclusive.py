"""Exclusive times of a profile, by binary and function, and which binaries of two profiles are the same one.

The exclusive (self) time of a function is its duration without the functions that it calls. A resource has
it in the field `exclusive`, in nanoseconds whatever the unit of the amounts, and in `location` the path of
the binary that the function belongs to; a uid of several parts may name the binary as `bin` instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from difflib import SequenceMatcher
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.check._common import ENOUGH_TO_TRIM, without_slowest
from perun.check._common.points import CONFIDENCE, STEADY, WEAKER, error_of_others
from perun.models import student
from perun.profile.factory import Profile
from perun.profile.format.columns import Column
from perun.profile.format.grouping import ResourceGroup
from perun.profile.session import RUN, count_of
from perun.profile.uid import flatten

FIELD: Final = "exclusive"
PLACE: Final = "location"
_FEW: Final = 1000
"""Times that are summed up without rounding errors: of more, these are far below the noise."""
_THREE_ERRORS: Final = 0.0027
"""Probability that a normal variable is more than three standard errors off."""
_PROGRAM: Final = "program"
"""The binary where the profile does not even name the command."""


class ExclusiveTimes(NamedTuple):
    """The exclusive times of the calls of one function in one run, in nanoseconds.

    Of pooled runs, each sum is the median of those of the runs: what disturbs fewer than half of them does
    not move it.

    :param total: their sum; NaN where one of them is no number.
    :param usual: the sum without the slowest calls, see :func:`~perun.check._common.without_slowest`.
    :param number: how many calls there are, in all pooled runs.
    :param error: the standard error of `usual`: by how much the runs differ; of a single run, by the
        differences of calls that follow each other.
    """

    total: float
    usual: float
    number: int
    error: float = 0.0


Times = dict[str, dict[str, ExclusiveTimes]]
"""By location and function."""


def exclusive_times(profile: Profile) -> Times | None:
    """The sums of the exclusive times; None where there are resources, but not one with the field.

    Resources without a location belong to the command of the profile.
    """
    command = str((profile.get("header") or {}).get("cmd") or _PROGRAM)
    parts: dict[str, dict[str, list[_Part]]] = {}
    resources = found = False
    for group in profile.groups():
        resources = resources or bool(group.size)
        if FIELD not in group.columns and FIELD not in group.constants:
            continue
        for location, function, part in _named(group, command):
            found = True
            parts.setdefault(location, {}).setdefault(function, []).append(part)
    if resources and not found:
        return None
    runs = count_of(profile)
    return {
        location: {function: _calls(own, runs) for function, own in functions.items()}
        for location, functions in parts.items()
    }


class _Part(NamedTuple):
    """Times of calls, and the number of the run that they are of: one for each, or one for all."""

    times: Column
    runs: Column | float


def _named(group: ResourceGroup, command: str) -> Iterator[tuple[str, str, _Part]]:
    """The times of the group with their location and their function."""
    columns, constants = group.columns, group.constants
    values = columns.get(FIELD)
    if values is None:
        values = [constants[FIELD]] * group.size
    runs = columns.get(RUN, constants.get(RUN, 0))
    if "uid" not in columns and PLACE not in columns:
        if group.size:
            yield *_name(constants.get("uid", ""), constants.get(PLACE), command), _Part(values, runs)
        return
    for position, value in enumerate(values):
        uid, place, run = (
            columns[key][position] if key in columns else constants.get(key) for key in ("uid", PLACE, RUN)
        )
        yield *_name(uid, place, command), _Part([value], run or 0)


def _name(uid: Any, place: Any, command: str) -> tuple[str, str]:
    if isinstance(uid, Mapping) and "bin" in uid:
        place = place or uid["bin"]
        uid = {key: value for key, value in uid.items() if key != "bin"} or uid
    return str(flatten(place) if place else command), str(flatten(uid))


def _calls(parts: list[_Part], runs: int) -> ExclusiveTimes:
    """The calls of one function.

    :param runs: how many profiles were pooled.
    """
    number = sum(len(part.times) for part in parts)
    try:
        times = np.concatenate([np.asarray(part.times, np.float64) for part in parts])
        of_run = np.concatenate([np.broadcast_to(part.runs, len(part.times)) for part in parts])
    except (TypeError, ValueError, OverflowError):
        return ExclusiveTimes(math.nan, math.nan, number)
    if runs < 2:
        return _of_one_run(times)
    # A run without a call of it has spent no time in it.
    found = [_of_one_run(times[of_run == run]) for run in range(runs)]
    totals, usual = (np.array([one[at] for one in found]) for at in (0, 1))
    error = float(np.std(usual, ddof=1)) / math.sqrt(runs) * _widened(runs)
    return ExclusiveTimes(float(np.median(totals)), float(np.median(usual)), number, error)


def _widened(runs: int) -> float:
    """By how much the error of few runs is larger than it looks: by Student's t of two versions with so many
    runs each, at the level of three standard errors."""
    return student.quantile(_THREE_ERRORS, 2 * (runs - 1)) / 3


def _of_one_run(times: NDArray[np.float64]) -> ExclusiveTimes:
    kept = without_slowest(times.size)
    usual = times
    if kept < times.size:
        usual = np.delete(times, np.argpartition(times, kept)[kept:])
    return ExclusiveTimes(_sum(times), _sum(usual), times.size, _error(usual))


def _error(times: NDArray[np.float64]) -> float:
    """The standard error of the sum of calls, shape (n,); 0 for fewer than two.

    Half the mean square of the differences of neighbours is their variance (von Neumann et al., The Mean
    Square Successive Difference, Ann. Math. Stat. 12, 1941) also where the calls become longer and longer, as
    with a structure that grows. One interrupted call makes the error as large as the interruption.
    """
    if times.size < 2:
        return 0.0
    steps = np.diff(times)
    return math.sqrt(float(np.mean(steps * steps)) / 2 * times.size)


def _sum(times: NDArray[np.float64]) -> float:
    total = math.fsum(times) if times.size < _FEW and np.isfinite(times).all() else float(np.sum(times))
    return total if math.isfinite(total) else math.nan


class BinaryPair(NamedTuple):
    """One binary: a name to show, and its path in each profile, None where the profile has none."""

    name: str
    baseline: str | None
    target: str | None


def paired(baseline: Times, target: Times, similarity: float) -> list[BinaryPair]:
    """Which location of one profile is which of the other, sorted by name.

    Equal paths are the same binary; then, the best pair first, those of equal base names whose paths are
    closest, as their folders may be of one build only; then those that have a function in common and the
    closest base names, as these may hold a version. Closeness is the share of characters in common (difflib;
    Ratcliff and Metzener: Pattern Matching, Dr. Dobb's Journal 1988), the same in both directions.

    :param similarity: smallest closeness of base names, from 0 to 1.
    """
    left, right = dict.fromkeys(sorted(baseline)), dict.fromkeys(sorted(target))
    pairs = [(path, path) for path in left if path in right]
    for path, _ in pairs:
        del left[path], right[path]

    def of_equal_names(one: str, other: str) -> float:
        return _closeness(one, other) if _base(one) == _base(other) else -1.0

    def of_common_functions(one: str, other: str) -> float:
        shared = not baseline[one].keys().isdisjoint(target[other])
        return _closeness(_base(one), _base(other)) if shared else -1.0

    pairs += _closest(left, right, of_equal_names, 0.0)
    pairs += _closest(left, right, of_common_functions, similarity)
    return sorted(_shown([*pairs, *((path, None) for path in left), *((None, path) for path in right)]))


def _closest(
    left: dict[str, None], right: dict[str, None], measure: Callable[[str, str], float], enough: float
) -> Iterator[tuple[str, str]]:
    """Take pairs whose measure is at least `enough` out of the two, the closest first."""
    scored = ((measure(one, other), one, other) for one, other in product(left, right))
    candidates = [found for found in scored if found[0] >= enough]
    # Of equally close pairs the names decide, whichever of the two is the baseline.
    for _, one, other in sorted(candidates, key=lambda found: (-found[0], sorted(found[1:]))):
        if one in left and other in right:
            del left[one], right[other]
            yield one, other


def _closeness(one: str, other: str) -> float:
    first, second = sorted((one, other))  # the ratio depends on the order
    return SequenceMatcher(None, first, second, autojunk=False).ratio()


def _base(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path


def _shown(places: list[tuple[str | None, str | None]]) -> Iterator[BinaryPair]:
    """Each with its base name, that of the target where the two differ; the path where that is ambiguous."""
    paths = [target or baseline or "" for baseline, target in places]
    bases = [_base(path) for path in paths]
    for (baseline, target), path, base in zip(places, paths, bases, strict=True):
        yield BinaryPair(base if bases.count(base) == 1 else path, baseline, target)


# The functions of two traces side by side: their times, and what of a difference may be noise.

_ERRORS: Final = 3.0
"""Standard errors that a difference has to exceed, if it is to be certain."""
_NS_IN_MS: Final = 1e6
_INTERRUPTION: Final = 100.0
"""Milliseconds that a program may be kept waiting where several share a processor."""


class FunctionPair(NamedTuple):
    """One function; None in a profile without it."""

    place: BinaryPair
    name: str
    baseline: ExclusiveTimes | None
    target: ExclusiveTimes | None

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


def functions_of(place: BinaryPair, old: Times, new: Times) -> Iterator[FunctionPair]:
    """The functions of a binary in both profiles, sorted by name."""
    before, after = old.get(place.baseline or "", {}), new.get(place.target or "", {})
    for name in sorted(before.keys() | after.keys()):
        yield FunctionPair(place, name, before.get(name), after.get(name))


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

    def certain_percent(self, functions: list[FunctionPair]) -> float:
        """What functions differ by together in percent, without slowest calls and interruptions; 0 where that
        is within their error."""
        certain = [one.usual for one in functions if not one.could_be_an_interruption]
        difference = math.fsum(after - before for before, after in certain)
        if abs(difference) < _ERRORS * math.hypot(*(one.error for one in functions)):
            return 0.0
        return 100 * difference / self.usual if self.usual else 0.0

    def is_small(self, one: FunctionPair) -> bool:
        """Whether the function takes too little time in one of the versions to be looked at."""
        return not min(one.usual) > 0 or max(one.before, one.after) * 100 < self.cutoff * self.whole

    def is_negligible(self, difference: float) -> bool:
        """Whether the difference is too small to be reported."""
        return abs(difference) <= self.resolution or abs(self.percent(difference)) < self.cutoff


class MachineNoise:
    """What the machine makes of two runs of the same program, by what became of the other functions.

    Nothing, where each version was run several times: the spread of these runs is in the error of a function.

    :param functions: of two single runs, with times that are numbers. :param apart: share that it makes at
        most.
    """

    def __init__(self, functions: list[FunctionPair], apart: float, scale: Scale) -> None:
        self._most = math.log1p(apart)
        ratios = {one: _log_ratio(one) for one in functions if not scale.is_small(one)}
        errors = error_of_others(np.array([*ratios.values()]))
        self._errors = dict(zip(ratios, errors, strict=True))

    def may_explain(self, one: FunctionPair) -> bool:
        """Whether the 99 % interval of the ratio of the two times includes 1."""
        return self._explains(one, CONFIDENCE)

    def explains(self, one: FunctionPair) -> bool:
        """Whether the 95 % interval does as well."""
        return self._explains(one, WEAKER)

    def _explains(self, one: FunctionPair, confidence: float) -> bool:
        if one not in self._errors or one.is_steady:
            return False
        half = self._errors[one].half_width(confidence)
        if math.isinf(half) and confidence == WEAKER:
            return False  # too few functions tell of the noise, but it may be a change
        return abs(_log_ratio(one)) <= min(half, self._most)


def _log_ratio(one: FunctionPair) -> float:
    before, after = one.usual
    return math.log(after / before)
