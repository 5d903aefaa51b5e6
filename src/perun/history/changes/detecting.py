"""The steps of each series of a history."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from perun.core.wording import listed
from perun.history.changes.data import ChangePoint, Drift, History, Segment, SeriesKey
from perun.history.changes.history import HistoryPoints
from perun.history.changes.remembered import ChangesCache, SeriesChanges, VersionVerdict, digest
from perun.measurement.changes import FEWEST_RUNS, Excursion, Track, drift, is_climb, may_decide, short_levels
from perun.measurement.comparable import Conditions, speed_of, unlike
from perun.measurement.difference import Basis, Rules, allowing, hodges_lehmann, of_levels
from perun.measurement.estimate import Point, StandardError
from perun.measurement.many import LEAST_SHARE, share_of
from perun.measurement.noise import WINDOW, Kept, shared
from perun.measurement.series import SeriesName
from perun.measurement.verdict import Verdict, along, is_change, judge, reported, severity
from perun.models import change_points
from perun.models.two_samples.sequential import benjamini_hochberg
from perun.profile.changes import PerformanceChange
from perun.profile.sampled import SAMPLED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

FEWEST: Final = 2
"""Versions of a series, at least."""
ENOUGH: Final = 400
"""Points before the newest ones of a long series that are searched with them."""
DOUBTED: Final = 100
"""The newest points of a series at which what two neighbours leave in doubt is told. Of older ones the levels
are told, which so many versions after them have shown."""
_NORMAL: Final = 1.96
Progress = Callable[[int, int], None]


class ChangePointColumns(NamedTuple):
    """A step and the columns of the history: the last one of the old level, and the first one of the new
    one."""

    last: int
    first: int
    step: ChangePoint


class Detection(NamedTuple):
    """The steps of all series, what drifts, how many series have one version only, and whether anything can
    be said of one that stands for what was measured."""

    steps: list[ChangePointColumns]
    drifts: list[Drift]
    short: int
    says: bool


class _Row(NamedTuple):
    """A series that is looked at.

    :param columns: those of the history that its points are of; of versions that share one measurement, the
        first one. :param lasts: the last one of each point. :param every: all in which it was measured.
    :param whole: of what samples say of a function, the values of the program at the columns of the history.
    :param unsettled: the first of the points at which what two neighbours leave in doubt is told.
    """

    key: SeriesKey
    name: str
    columns: NDArray[np.intp]
    lasts: NDArray[np.intp]
    every: NDArray[np.intp]
    track: Track
    leads: bool
    unsettled: int
    values: Floats
    whole: Floats | None

    def is_small(self, place: int) -> bool:
        """Whether it is a function with too few of the samples for any verdict on a point."""
        if self.whole is None or not place:
            return False
        both = self.columns[place - 1 : place + 1]
        return share_of(self.values[both].tolist(), self.whole[both].tolist()) < LEAST_SHARE


class _Seen(NamedTuple):
    """A place where a level begins. :param error: of the logarithm of the ratio of both levels.

    :param votes: the detectors that see it. :param certain: whether it is no noise.
    """

    error: StandardError
    votes: tuple[str, ...]
    certain: bool


def detect(
    history: History,
    effect: float,
    rules: Rules,
    remembered: ChangesCache,
    points: HistoryPoints,
    progress: Progress,
) -> Detection:
    """The steps of each series: where neighbours differ for certain, levels that last by the vote of
    :mod:`perun.models.change_points`, and short ones.

    :param effect: the least change of a level, as a share of the one before.
    :param remembered: what was found before, for that effect and these rules.
    """
    steps: list[ChangePointColumns] = []
    drifts: list[Drift] = []
    rows = _rows(history)
    judged = _judged(history, rows, rules, remembered, points)
    for number, row in enumerate(rows):
        found = before = remembered.of(row.name, row.track)
        if found is None:
            progress(number, len(rows))
            before = remembered.before(row.name, row.track)
            found = searched(row.track, row.key.exact, effect, before)
        if found.points != len(row.columns) or not found.digest:
            runs = _runs(row.track, row.key.exact, found, effect, before)
            found = SeriesChanges(
                digest(row.track), len(row.columns), found.changes, runs, tuple(judged[row.name])
            )
            remembered.keep(row.name, found)
        steps += _Steps(history, row, found, effect, rules).placed()
        if not row.key.exact and row.track.positive:
            drifts += _drifts(history, row, found, effect)
    progress(len(rows), len(rows))
    remembered.save()
    says = any(_says(history, row, rules, points) for row in rows if row.leads)
    return Detection(steps, drifts, len(history.keys) - len(rows), says)


def _rows(history: History) -> list[_Row]:
    """The series that have versions to be compared."""
    leading = history.leading
    wholes = {
        (one.configuration, one.machine): history.values[number]
        for number, one in enumerate(history.keys) if one in leading and one.type == SAMPLED
    }  # fmt: skip
    rows = []
    for number, values in enumerate(history.values):
        every = np.flatnonzero(np.isfinite(values))
        if every.size < FEWEST:
            continue
        key = history.keys[number]
        whole = None
        if key.type == SAMPLED and key not in leading:
            whole = wholes.get((key.configuration, key.machine))
        if whole is not None and not (SeriesName(*key[2:]).is_part and (values >= LEAST_SHARE * whole).any()):
            continue  # what a function calls is told of that
        firsts = _firsts(*(one[number, every] for one in history.cells[-2:]))
        columns, lasts = every[firsts], every[np.append(firsts[1:], every.size) - 1]
        value, _, error, *counts, marks, _, _ = (one[number, columns] for one in history.cells)
        samples, rounds, sessions = (one.astype(np.float64) for one in counts)
        track = Track(value, error.astype(np.float64), samples, rounds, sessions, marks)
        unsettled = max(len(columns) - DOUBTED, 0) if _has_levels(track, key.exact) else 0
        rows.append(
            _Row(key, json.dumps(key), columns, lasts, every, track, key in leading, unsettled, values, whole)
        )
    return rows


def _firsts(shared: NDArray[np.integer], own: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The places of points that are no measurement of the one before them.

    :param shared: and :param own: as of :class:`~perun.history.changes.history.Cell`, shape (n,).
    """
    same = (shared[1:] == shared[:-1]) & (shared[1:] != 0) & ~(own[1:] & own[:-1])
    return np.flatnonzero(np.concatenate(([True], ~same)))


def _judged(
    history: History, rows: Sequence[_Row], rules: Rules, remembered: ChangesCache, points: HistoryPoints
) -> Mapping[str, list[VersionVerdict]]:
    """By the name of the series, the verdicts on versions against those before them that say something."""
    found: defaultdict[str, list[VersionVerdict]] = defaultdict(list)
    places: defaultdict[int, list[tuple[_Row, int]]] = defaultdict(list)
    kept: Kept = {}
    for row in rows:
        known = remembered.before(row.name, row.track)
        start = 1
        if known is not None:
            found[row.name] += (one for one in known.judged if _is_told(row, *one))
            start = known.points
        if start < len(row.columns):
            first = max(start - 3 * WINDOW, 0)  # what is learned before a version is of no more versions
            newest = row.track.since(first)
            alone = not points.merged
            may = may_decide(newest, row.key.kind, rules, maybe=row.leads, alone=alone)
            settled = row.unsettled - first
            if row.leads and settled > 0:
                definite = may_decide(newest, row.key.kind, rules, maybe=False, alone=alone)
                may[:settled] = definite[:settled]
            for place in (np.flatnonzero(may[start - first :]) + start).tolist():
                if not row.is_small(place):
                    places[int(row.columns[place])].append((row, place))
    # By versions, as what a version measured is read as a whole.
    for column in sorted(places):
        verdicts = {
            (row.name, place): verdict
            for row, place in places[column]
            if (verdict := _verdict(history, row, place, rules, points, kept)) is not None
        }
        details = [
            (row, place) for row, place in places[column] if not row.leads and (row.name, place) in verdicts
        ]
        _correct(history, rows, column, details, verdicts, rules)
        for row, place in places[column]:
            verdict = verdicts.get((row.name, place))
            if verdict is not None and _is_told(row, place, verdict):
                found[row.name].append(VersionVerdict(place, verdict))
    return found


def _is_told(row: _Row, place: int, verdict: Verdict) -> bool:
    """Whether the verdict on two neighbours says what the levels around them do not say better."""
    if is_change(verdict) or verdict.difference.unknown:
        return True
    return bool(severity(verdict.change)) and place >= row.unsettled


def _verdict(
    history: History, row: _Row, place: int, rules: Rules, points: HistoryPoints, kept: Kept | None = None
) -> Verdict | None:
    nearest_first = row.every[: np.searchsorted(row.every, row.columns[place], "right")][::-1]
    checksums = (history.versions[history.measured[column]].checksum for column in nearest_first)
    version, before = next(checksums), next(checksums)
    target = points.at(version, row.key)
    baseline = points.at(before, row.key)
    if target is None or baseline is None or (not row.leads and not _is_apart(baseline, target, rules)):
        return None
    line = points.before(version, row.key, chain((before,), checksums))
    return along(target, line, rules, larger_is_better=row.key.larger_is_better, kept=kept)


def _says(history: History, row: _Row, rules: Rules, points: HistoryPoints) -> bool:
    """Whether there are versions enough for levels, or a verdict on one of them decides."""
    if len(row.columns) >= FEWEST_RUNS or len(row.columns) < len(row.every):
        return True
    verdicts = (_verdict(history, row, place, rules, points) for place in range(1, len(row.columns)))
    return any(one is not None and one.decides for one in verdicts)


def _is_apart(baseline: Point, target: Point, rules: Rules) -> bool:
    """Whether rounds that visited both differ by more than does not matter, where there are any."""
    rounds = shared(baseline, target)
    if not rounds:
        return True
    limit = math.log1p(rules.threshold)
    return any(abs(hodges_lehmann(own)) > limit for own in rounds.values())


def _correct(
    history: History,
    rows: Sequence[_Row],
    column: int,
    details: Sequence[tuple[_Row, int]],
    verdicts: dict[tuple[str, int], Verdict],
    rules: Rules,
) -> None:
    """Adjust the p-values of the details of a version for how many there are: the functions of one profile
    are many, and one of them may differ by chance. Parts of a time are few."""
    groups: defaultdict[tuple[object, str], list[tuple[_Row, int]]] = defaultdict(list)
    for row, place in details:
        if row.key.type != "time" and verdicts[row.name, place].difference.basis is not Basis.COUNTS:
            groups[row.key.configuration, row.key.machine].append((row, place))
    for (configuration, machine), own in groups.items():
        many = sum(
            (one.key.configuration, one.key.machine) == (configuration, machine)
            and not one.leads
            and column in one.columns
            and not one.is_small(int(np.searchsorted(one.columns, column)))
            for one in rows
        )
        tested = [verdicts[row.name, place].difference for row, place in own]
        chances = [one.p_value for one in tested] + [1.0] * (many - len(own))
        adjusted = benjamini_hochberg(chances).tolist()
        for (row, place), difference, chance in zip(own, tested, adjusted, strict=False):
            better = row.key.larger_is_better
            verdicts[row.name, place] = judge(
                difference._replace(p_value=chance), rules, larger_is_better=better
            )


def searched(track: Track, exact: bool, effect: float, before: SeriesChanges | None) -> SeriesChanges:
    """The levels of a series.

    :param exact: whether it is counted.
    :param before: what was found in its first points. Of a long series only the end is searched then: what is
        new, with so many points before it as tell a level.
    """
    values = track.values
    if not _has_levels(track, exact):
        return SeriesChanges("", len(values), ())
    start = 0
    old: tuple[change_points.LevelChange, ...] = ()
    if before is not None and before.points > change_points.LONGEST:
        start = before.points - ENOUGH
        # A level is searched from its beginning, where that is not far.
        near = [one.place for one in before.changes if start - ENOUGH <= one.place <= start]
        start = near[-1] if near else start
        old = tuple(one for one in before.changes if one.place <= start)
    seen = change_points.change_points(values[start:], effect)
    new = [change._replace(place=change.place + start) for change in seen.changes]
    return SeriesChanges("", len(values), tuple(_jumps(values, (*old, *new))))


def _jumps(values: Floats, changes: Sequence[change_points.LevelChange]) -> list[change_points.LevelChange]:
    """Those of the changes that are no part of a slope."""
    kept = list(changes)
    logs = np.log(values)
    while True:
        bounds = [0, *(one.place for one in kept), len(values)]
        slopes = [
            number
            for number, (start, place, stop) in enumerate(zip(bounds, bounds[1:], bounds[2:], strict=False))
            if is_climb(logs[start:stop], place - start)
        ]
        if not slopes:
            # Where others are gone that a detector named, a level may begin elsewhere.
            places = [one.place for one in kept]
            return [one._replace(place=change_points.placed(logs, one.place, places)) for one in kept]
        del kept[min(slopes, key=lambda number: abs(math.log(kept[number].ratio)))]


def _runs(
    track: Track, exact: bool, found: SeriesChanges, effect: float, before: SeriesChanges | None
) -> tuple[Excursion, ...]:
    """The short levels beside those that last; parameters as of :func:`searched`."""
    if not _has_levels(track, exact):
        return ()
    start, least = 0, 0
    old: list[Excursion] = []
    if before is not None and before.points > change_points.LONGEST:
        start, least = before.points - ENOUGH, before.points - ENOUGH // 2
        old = [run for run in before.runs if run.first < least]
        least = max([least, *(run.end for run in old)])
    bounds = [start, *(one.place for one in found.changes if one.place > start), len(track.values)]
    runs = short_levels(track.since(start), [one - start for one in bounds], effect)
    new = (run._replace(first=run.first + start, end=run.end + start) for run in runs)
    return (*old, *(run for run in new if run.first >= least))


def _has_levels(track: Track, exact: bool) -> bool:
    """Whether levels are to be told from noise: a count that most versions share with the version before has
    none, and each other value of it is a change."""
    values = track.values
    if not track.positive or values.size < FEWEST_RUNS or bool((values == values[0]).all()):
        return False
    return not exact or int(np.count_nonzero(np.diff(values))) * 3 > values.size


class _Steps:
    """The steps of one series: what detectors, runs and neighbours say of the same place is one."""

    def __init__(
        self, history: History, row: _Row, found: SeriesChanges, effect: float, rules: Rules
    ) -> None:
        self._history = history
        self._row = row
        self._rules = rules
        self._judged = {one.place: one.verdict for one in found.judged}
        self._level = cache(partial(_level, row.track))  # each one is between two steps
        self._doubtful = [one for one in found.runs if not self._is_certain(one)]
        self._seen = self._places(found)

    def placed(self) -> list[ChangePointColumns]:
        """What is definite, and of series that stand for what was measured what is not, too."""
        count = len(self._row.columns)
        places = self._seen.keys() | {place for place, one in self._judged.items() if one.decides}
        bounds = [0, *sorted(places), count]
        found = {
            place: self._step(start, place, stop, self._seen.get(place))
            for start, place, stop in zip(bounds, bounds[1:], bounds[2:], strict=False)
        }
        if self._row.leads:
            for run in self._doubtful:
                seen = _Seen(StandardError(run.error, run.freedom), (), certain=False)
                start = max(one for one in bounds if one <= run.first)
                stop = min(one for one in bounds if one >= run.end)
                if run.first not in found and run.first:
                    found[run.first] = self._step(start, run.first, run.end, seen)
                if run.end not in found and run.end < count:
                    found[run.end] = self._step(run.first, run.end, stop, seen)
            for place in self._judged.keys() - found.keys():
                found[place] = self._step(place - 1, place, place + 1, None)
        columns, lasts = self._row.columns, self._row.lasts
        return [
            ChangePointColumns(int(lasts[place - 1]), int(columns[place]), step)
            for place, step in sorted(found.items())
            if severity(step.verdict) or step.conditions
        ]

    def _places(self, found: SeriesChanges) -> dict[int, _Seen]:
        """The first points of new levels. Where neighbours differ for certain near one, it begins there."""
        places: dict[int, _Seen] = {}
        taken = [change.place for change in found.changes]
        for change in found.changes:
            place = self._nearest(change.place, change.after > change.before, taken)
            freedom = max(len(self._row.track.values) - 2, 1)
            places[place] = _Seen(StandardError(change.error, freedom), change.votes, certain=True)
        ends = {
            place: _Seen(StandardError(run.error, run.freedom), (), certain=True)
            for run in found.runs
            if self._is_certain(run)
            for place in (run.first, run.end)
            if 0 < place < len(self._row.columns)
        }
        for place in sorted(ends.keys() - places.keys()):
            # Where two levels follow each other, a run of versions may begin in the one and end in the other.
            known = place in self._judged and self._judged[place].decides
            others = ends.keys() | places.keys()
            moved = (
                place
                if known
                else change_points.placed(np.log(self._row.track.values), place, sorted(others))
            )
            places.setdefault(moved, ends.pop(place))
        return places

    def _nearest(self, place: int, rises: bool, taken: Sequence[int]) -> int:
        """The place of the definite verdict in the same direction that is nearest to a change, where that is
        within what detectors may disagree by."""
        near = [
            other
            for other, verdict in self._judged.items()
            if verdict.decides
            and abs(other - place) <= change_points.TOLERANCE
            and (verdict.difference.values[1] > verdict.difference.values[0]) == rises
            and not any(min(other, place) <= one <= max(other, place) for one in taken if one != place)
        ]
        return min(near, key=lambda other: abs(other - place), default=place)

    def _is_certain(self, run: Excursion) -> bool:
        """Whether it was seen by several versions, or in several rounds or sessions of one."""
        rounds = self._row.track.rounds
        return run.certain and (run.end - run.first > 1 or bool(rounds[run.first] > 1))

    def _step(self, start: int, place: int, stop: int, seen: _Seen | None) -> ChangePoint:
        """The step between the levels `start` to `place` and `place` to `stop`."""
        row = self._row
        before, after = self._level(start, place), self._level(place, stop)
        verdict = self._judged.get(place)
        decides = verdict is not None and verdict.decides
        if not decides and seen is not None:
            # Of two single versions the verdict on these is all there is to say.
            seen = seen._replace(certain=seen.certain and max(before.points, after.points) > 1)
            of_levels = self._of_levels(before, after, seen, self._speeds_of(start, place, stop))
            verdict = reported(of_levels, verdict if row.leads else None)
            decides = seen.certain and verdict.decides
        assert verdict is not None
        difference = verdict.difference
        last, first = int(row.lasts[place - 1]), int(row.columns[place])
        changed = _changed_conditions(self._history, row.key, last, first)
        if changed:
            reason = f"it may be the machine, which changed: {listed(changed, 4)}"
            verdict, decides = verdict._replace(change=PerformanceChange.Unknown, reason=reason), False
        return ChangePoint(
            row.key, before, after, difference.ratio, verdict.low, verdict.high, difference.values,
            verdict.change, verdict.reason, decides, row.leads, seen.votes if seen else (),
            conditions=changed,
        )  # fmt: skip

    def _speeds_of(self, start: int, place: int, stop: int) -> tuple[list[str], list[str]]:
        """Those of the machine at the versions around the place that tell of both levels; none where the
        numbers do not depend on it."""
        if self._row.track.repeats(self._row.key.type, start, place, stop):
            return [], []
        return self._speeds(max(start, place - WINDOW), place), self._speeds(place, min(stop, place + WINDOW))

    def _speeds(self, start: int, stop: int) -> list[str]:
        columns = self._row.columns[start:stop].tolist()
        return [speed_of(_conditions_of(self._history, self._row.key, column)) for column in columns]

    def _of_levels(
        self, before: Segment, after: Segment, seen: _Seen, speeds: tuple[Sequence[str], Sequence[str]]
    ) -> Verdict:
        values, sizes = (before.value, after.value), (before.points, after.points)
        found = of_levels(values, seen.error, sizes, self._rules)
        found = allowing(found, speeds, self._row.key.kind)
        verdict = judge(found, self._rules, larger_is_better=self._row.key.larger_is_better)
        if seen.certain or not (verdict.decides and severity(verdict.change)):
            return verdict
        doubtful = PerformanceChange(int(math.copysign(1, severity(verdict.change))))
        return verdict._replace(change=doubtful, reason=f"{verdict.reason}, but it was seen once only")


def _level(track: Track, start: int, stop: int) -> Segment:
    """The level with the interval of the median, by the order statistics of the sign test.

    W. Conover: Practical Nonparametric Statistics, 3.2: ranks (n - 1.96 sqrt(n)) / 2 from either end.
    """
    if stop - start == 1:  # most verdicts are on neighbours
        value = float(track.values[start])
        return Segment(value, value, value, 1, int(track.samples[start]))
    ordered = np.sort(track.values[start:stop])
    count = len(ordered)
    rank = max(0, math.floor((count - _NORMAL * math.sqrt(count)) / 2))
    samples = int(track.samples[start:stop].sum())
    level = float(ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    return Segment(level, float(ordered[rank]), float(ordered[count - 1 - rank]), count, samples)


def _drifts(history: History, row: _Row, found: SeriesChanges, effect: float) -> Iterable[Drift]:
    """Whether the newest level moved little by little."""
    start = found.changes[-1].place if found.changes else 0
    ratio = drift(row.track.values[start:], effect)
    if ratio is not None:
        since = history.versions[history.measured[row.columns[start]]]
        yield Drift(row.key, ratio, len(row.columns) - start, since, row.leads)


def _changed_conditions(history: History, key: SeriesKey, last: int, first: int) -> tuple[str, ...]:
    """The names of conditions of the machine that differ between the two columns."""
    if history.conditions[last] == history.conditions[first]:
        return ()
    under = (_conditions_of(history, key, column) for column in (last, first))
    return tuple(one.name for one in unlike(*under))


def _conditions_of(history: History, key: SeriesKey, column: int) -> Conditions:
    """Those under which the series was measured at a version."""
    known = history.conditions[column]
    return next(
        (
            values
            for (configuration, machine), values in known.items()
            if configuration == key.configuration and (key.exact or machine == key.machine)
        ),
        (),
    )
