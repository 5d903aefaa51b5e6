"""Where a series left its level: for a few versions, little by little, or from one version to the next.

Lasting levels are found by :mod:`perun.models.change_points`, which needs several versions of each. Here are
those that last a few versions only, or that are so new that only a few have been measured: what a run of
versions differs from those around it, in the noise that is known of each of them.

Everything is of one series: arrays of the shape (n,), the oldest version first.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from perun.measurement.difference import Rules, of_one, unknown_noise
from perun.measurement.estimate import Kind, StandardError
from perun.measurement.noise import EFFICIENCY, FEWEST, WINDOW, scales
from perun.models.change_detectors import deviation_of_differences
from perun.models.student import quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

MANY: Final = 1
"""The mark of a point of several sessions or workloads, or of values that are not above 0."""
LONGEST: Final = 12
"""Versions of a short level: more of them are found as any other level."""
AROUND: Final = 8
"""Versions on either side that a run is compared with."""
_LEAST_AROUND: Final = 4
FEWEST_RUNS: Final = 8
"""Versions of a series from which on its short levels are looked for."""
CERTAIN: Final = 0.005
"""False short levels in the whole series: of those that are certain. As noise is estimated, it is one in a
hundred series."""
UNCERTAIN: Final = 3.0
"""The same of those that another measurement has to confirm: as few as are left if a single version that
differs by four standard deviations is to be found in 95 of 100 cases."""
NEWEST: Final = 0.07
"""The same of the newest versions alone: what is new is to be looked at soon."""
_TESTS: Final = 2.5
"""Independent tests for each version, as runs of several lengths overlap."""
_DRIFT_PARTS: Final = 5
_DRIFT_FEWEST: Final = 15
_DRIFT_STRENGTH: Final = 5.0
_DRIFT_JUMP: Final = 0.6
"""The largest share of a drift that one of its parts may bring."""
_OF_MEDIAN: Final = 1.2533
_USUAL: Final = 2.5
"""Standard deviations beyond which a difference of neighbours is a change, and no noise."""
_WITHIN_USUAL: Final = 0.9113
"""The variance of normal values that are nearer to 0 than that."""
_REPEATED: Final = 3
"""Versions whose printed number is no time where it is the same."""
_FREEDOM: Final = 0.55
"""Degrees of freedom of the noise for each difference, as neighbouring ones share a version."""
_MANY_DEGREES: Final = 1e9
"""Degrees of freedom with which an interval is as narrow as it gets."""
_SMALLEST: Final = 1e-5
"""The least standard deviation of a value: what repeats exactly has some as well, as nobody looks at less."""


class Track(NamedTuple):
    """The points of a series, as :class:`perun.history.changes.history.Cell` has each of them.

    :param marks: the same for points of the same session; 0 for one of its own, else :data:`MANY`. Versions
        that share one measurement are one point.
    """

    values: Floats
    errors: Floats
    samples: Floats
    rounds: Floats
    sessions: Floats
    marks: NDArray[np.integer]

    @property
    def positive(self) -> bool:
        """Whether all values have logarithms."""
        return bool((self.values > 0).all())

    def since(self, place: int) -> Track:
        """The points from that one on."""
        return Track._make(one[place:] for one in self)

    def repeats(self, type_: str, start: int, place: int, stop: int) -> bool:
        """Whether both levels, from `start` to `place` and to `stop`, are one number each, and one of them
        that of three versions or more: nothing that reacts to the machine repeats so, but times may, by a
        coarse clock.

        :param type_: of the resources.
        """
        if type_ == "time":
            return False
        levels = self.values[start:place], self.values[place:stop]
        one_each = all(own.min() == own.max() for own in levels)
        return one_each and max(own.size for own in levels) >= _REPEATED


class Excursion(NamedTuple):
    """A few versions of another level than those around them.

    :param first: the first of them. :param end: behind the last one.
    :param error: the standard error of the logarithm of how much it differs, of :param freedom: degrees.
    :param certain: whether it is no noise.
    """

    first: int
    end: int
    error: float
    freedom: float
    certain: bool


_Candidate = tuple[float, int, int, float, int, int]
"""A run: its strength, first point, end and error, and the lasting level that it is in."""


def may_decide(track: Track, kind: Kind, rules: Rules, *, maybe: bool, alone: bool) -> Flags:
    """At which points :func:`perun.measurement.verdict.along` may give a definite word other than No Change;
    at all others it does not.

    :param maybe: where it may give a maybe as well. :param alone: whether all versions before a point are in
        the track, and none beside it.
    """
    values, errors = track.values, track.errors
    found = np.zeros(values.size, bool)
    if values.size < 2:
        return found
    limit = 0.0 if maybe else math.log1p(rules.threshold)
    confidence = rules.maybe_confidence if maybe else rules.confidence
    positive = (values[1:] > 0) & (values[:-1] > 0)
    logs = np.log(np.where(values > 0, values, 1.0))
    apart = np.abs(np.diff(logs))
    own = np.nan_to_num(np.hypot(errors[1:], errors[:-1]))
    marks = track.marks
    plain = marks != MANY
    simple = plain[1:] & plain[:-1] & ~((marks[1:] == marks[:-1]) & (marks[1:] != 0))
    least = quantile(1 - confidence, 1e9) * (1 - 1e-6) * own
    if kind not in (Kind.TIMED, Kind.PROCESSOR, Kind.SAMPLED):
        found[1:] = ~simple | ~positive | ((values[1:] != values[:-1]) & (apart >= least))
        return found
    sizes, learned = _learned(apart, track, confidence, rules)
    # Where a version before had several sessions, or shared one, other differences were learned from.
    odd = np.concatenate(([0], np.cumsum(~(simple & positive))))
    places = np.arange(1, values.size)
    other = odd[places - 1] > odd[np.maximum(places - WINDOW, 0)]
    if not alone:
        other[:WINDOW] = True
    sizes[other], learned[other] = 0.0, 0.0
    # The larger one of both errors counts; where that is close, the smaller interval is the bound. That of
    # the own one is no wider than where nothing is known.
    least = np.minimum(least, np.maximum(learned, math.log1p(rules.unpaired_tolerance)))
    near = np.abs(own - sizes) <= 1e-6 * own
    half = np.where(near, np.minimum(least, learned), np.where(own > sizes, least, learned))
    found[1:] = ~simple | ~positive | (apart * (1 + 1e-9) >= limit + half)
    return found


def _learned(apart: Floats, track: Track, confidence: float, rules: Rules) -> tuple[Floats, Floats]:
    """The error that the differences of the neighbours before each point give, and half its interval, each of
    the shape (n - 1,); where these are too few, half the least interval of an unknown noise.

    :param apart: the differences of neighbours without their signs, shape (n - 1,).
    """
    most = WINDOW - 1
    padded = np.concatenate((np.full(most, np.nan), apart))
    windows = np.lib.stride_tricks.sliding_window_view(padded, most)[: apart.size]
    sizes, counts = scales(windows)
    factors = np.array([0.0, *(quantile(1 - confidence, EFFICIENCY * one) for one in range(1, most + 1))])
    sizes[counts < FEWEST] = np.inf
    half = np.nan_to_num(sizes, posinf=0) * factors[counts]
    once = [
        StandardError(of_one(*own), _MANY_DEGREES)
        for own in zip(
            np.nan_to_num(track.errors[: FEWEST + 1]).tolist(), track.samples.tolist(), track.rounds.tolist(),
            strict=False,
        )
    ]  # fmt: skip
    for place, pair in enumerate(itertools.pairwise(once)):
        half[place] = unknown_noise(pair, confidence, rules) * (1 - 1e-6)  # errors are kept as short floats
    return sizes, half * (1 - 1e-9)


def short_levels(track: Track, bounds: Sequence[int], effect: float) -> list[Excursion]:
    """The runs of up to :data:`LONGEST` versions of another level than those around them, the oldest first.

    The noise of a point is what its own measurements scatter, and what neighbours differ beyond that.

    :param track: of values above 0. :param bounds: the first points of lasting levels, from 0 to n.
    :param effect: the least difference, as a share of the level.
    """
    logs = np.log(track.values)
    count = logs.size
    if count < FEWEST_RUNS:
        return []
    variances = _variances(logs, track)
    freedom = max(_FREEDOM * (count - 1), 3.0)
    tests = _TESTS * max(count, 40)
    limits = quantile(UNCERTAIN / tests, freedom), quantile(NEWEST, freedom)
    certain = quantile(CERTAIN / tests, freedom)
    found: list[_Candidate] = []
    flat = logs.copy()
    for start, stop in itertools.pairwise(bounds):
        flat[start:stop] = _flat(track.values[start:stop], effect)
        found += _runs(count, flat[start:stop], variances, start, limits, math.log1p(effect))
    chosen: list[Excursion] = []
    taken, inside = bytearray(count + 2), np.zeros(count, bool)
    for strength, first, end, error, start, stop in sorted(found, reverse=True):
        if taken.find(1, first, end + 1) >= 0:
            continue
        # A level that stands out already says nothing of those beside it.
        beside = np.r_[max(first - AROUND, start) : first, end : min(end + AROUND, stop)]
        kept = beside[~inside[beside]]
        if kept.size < beside.size:
            if kept.size < _LEAST_AROUND:
                continue
            strength = abs(float(np.mean(flat[first:end]) - np.median(flat[kept]))) / error
            if strength < limits[end == count]:
                continue
        before = max(first - 1, 0)
        taken[before : end + 2] = b"\1" * (end + 2 - before)
        inside[first:end] = True
        chosen.append(Excursion(first, end, error, freedom, strength >= certain))
    return sorted(chosen)


def _variances(logs: Floats, track: Track) -> Floats:
    """The variance of each point: within by the number of its measurements, between by that of its
    sessions."""
    apart = np.abs(np.diff(logs))
    few = apart[apart <= _USUAL * math.sqrt(2) * deviation_of_differences(logs)]
    usual = float(np.mean(few**2)) / (2 * _WITHIN_USUAL) if few.size else 0.0
    within = float(np.nanmedian(track.errors**2)) if np.isfinite(track.errors).any() else 0.0
    within = min(within, usual)
    sizes, sessions = np.median(track.samples), np.median(track.sessions)
    parts: Floats = within * sizes / track.samples + (usual - within) * sessions / track.sessions
    return np.maximum(parts, _SMALLEST**2)


def _flat(values: Floats, effect: float) -> Floats:
    """The logarithms of a level, without its drift."""
    logs = np.log(values)
    if drift(values, effect) is None:
        return logs
    places = np.arange(logs.size)
    flat: Floats = logs - np.polyval(np.polyfit(places, logs, 1), places)
    return flat


def _runs(
    points: int, own: Floats, variances: Floats, start: int, limits: tuple[float, float], effect: float
) -> list[_Candidate]:
    """The runs of one lasting level that are strong enough.

    Runs at an end of the level that another one follows are none: there the place of the change is off.

    :param points: of the series. :param own: the logarithms of the level, from the point `start` on.
    :param limits: the least strength, and that of the newest versions.
    """
    count = own.size
    stop = start + count
    empty = np.full(AROUND, np.nan)
    near = np.lib.stride_tricks.sliding_window_view(np.concatenate((empty, own, empty)), AROUND)
    weights = 1 / variances[start:stop]
    sums = np.concatenate(([0.0], np.cumsum(weights * own)))
    totals = np.concatenate(([0.0], np.cumsum(weights)))
    usual = float(np.median(variances[start:stop]))
    found = []
    for length in range(1, min(LONGEST, count - _LEAST_AROUND) + 1):
        firsts = np.arange(0, count - length + 1)
        ends = firsts + length
        around = np.sort(np.concatenate((near[firsts], near[ends + AROUND]), axis=1), axis=1)
        there = np.isfinite(around).sum(axis=1)
        rows = np.arange(firsts.size)
        level = (around[rows, np.maximum(there - 1, 0) // 2] + around[rows, there // 2 % (2 * AROUND)]) / 2
        weight = totals[ends] - totals[firsts]
        errors = np.sqrt(1 / weight + _OF_MEDIAN**2 * usual / np.maximum(there, 1))
        moved = (sums[ends] - sums[firsts]) / weight - level
        strengths = np.abs(moved) / errors
        least = np.full(strengths.size, limits[0])
        if stop == points:
            least[-1] = limits[1]
        wanted = (strengths >= least) & (np.abs(moved) >= effect) & (there >= _LEAST_AROUND)
        if start:
            wanted[0] = False
        if stop < points:
            wanted[-1] = False
        for place in np.flatnonzero(wanted).tolist():
            ends_at = start + place, start + place + length
            found.append((float(strengths[place]), *ends_at, float(errors[place]), start, stop))
    return found


def drift(values: Floats, effect: float) -> float | None:
    """The ratio of the newest fifth of a level to the oldest one, where it moved little by little; None where
    it did not, or by a jump.

    :param values: above 0, of one lasting level.
    """
    if values.size < _DRIFT_FEWEST:
        return None
    logs = np.log(values)
    parts = np.array_split(logs, _DRIFT_PARTS)
    levels = np.array([np.median(one) for one in parts])
    moved = levels[-1] - levels[0]
    error = deviation_of_differences(logs) * _OF_MEDIAN * math.sqrt(2 * _DRIFT_PARTS / values.size)
    steps = np.diff(levels) * np.sign(moved)
    if abs(moved) < max(_DRIFT_STRENGTH * error, math.log1p(effect)) or (steps < -error).any():
        return None
    if steps.max() > _DRIFT_JUMP * abs(moved):
        return None
    # A jump in the middle of a part is half of a jump on either side of it.
    costs = np.cumsum(np.abs(logs - levels[0]) - np.abs(logs - levels[-1]))[:-1]
    return float(np.exp(moved)) if is_climb(logs, 1 + int(np.argmin(costs))) else None


def is_climb(logs: Floats, place: int) -> bool:
    """Whether values climb by a slope rather than by a jump at that place.

    :param logs: of the levels before and after the place.
    """
    before, after = logs[:place], logs[place:]
    jumps = np.abs(before - np.median(before)).sum() + np.abs(after - np.median(after)).sum()
    places = np.arange(logs.size)
    line = np.polyval(np.polyfit(places, logs, 1), places)
    return bool(np.abs(logs - line).sum() < jumps)
