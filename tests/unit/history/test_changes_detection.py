"""Which changes of generated histories are told, and which series are searched again."""

import numpy as np
import pytest

from generated_history import KEY, VERSIONS, Kept, counts, name, points, told
from perun.history.changes.detecting import DOUBTED, searched
from perun.history.changes.history import cell
from perun.history.changes.remembered import NEW, STEADY, ChangesCache, digest
from perun.measurement.changes import Track, may_decide
from perun.measurement.difference import Rules
from perun.measurement.estimate import Kind, Round, Sample, point_of
from perun.measurement.verdict import along, severity
from perun.models import change_points
from perun.repository.init import init
from perun.repository.repository import open_repository

SEEDS = [5, pytest.param(60, marks=pytest.mark.slow)]


def levels(first, length, size=1.05):
    found = np.ones(VERSIONS)
    found[first : first + length] = size
    return found


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("sessions", [1, 2])
def test_no_definite_change_is_told_of_noise(seeds, sessions):
    flagged = [
        seed for seed in range(seeds) if told(points(np.ones(VERSIONS), seed, sessions=sessions)).definite()
    ]
    assert len(flagged) <= seeds // 60


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("length", [1, 2, 3, 5, 10])
@pytest.mark.parametrize("newest", [False, True])
@pytest.mark.each_value("length", "newest")
def test_levels_of_a_few_versions_are_told(seeds, length, newest):
    place = VERSIONS - length if newest else 30
    # Of single versions measured once, noise makes one in twenty differ by hardly more than others do.
    for sessions, least in ((1, 0.93 if length == 1 else 0.95), (2, 0.95)):
        made = (told(points(levels(place, length), seed, sessions=sessions)) for seed in range(seeds))
        found = [any(abs(one - place) <= 1 for one in own.every()) for own in made]
        assert sum(found) >= int(least * seeds)


def test_a_drift_is_told_as_one():
    for seed in range(5):
        found = told(points(np.exp(np.linspace(0, np.log(1.3), VERSIONS)), seed))
        assert found.drifts == 1 and found.definite() == []


def test_a_level_that_a_slower_machine_may_have_made_is_not_definite() -> None:
    def definite(step: float, slower: float) -> list[int]:
        own = points([1.0] * 30 + [step] * 30, 3)
        times = [2e7 * (slower if number >= 30 else 1.0) for number in range(60)]
        speeds = [(f"1 1 {one:.6g} {one:.6g} 0 0",) for one in times]
        return told([one._replace(speeds=it) for one, it in zip(own, speeds, strict=True)]).definite()

    assert definite(1.04, 1.0) == definite(1.04, 1.01) == told(points([1.0] * 30 + [1.04] * 30, 3)).definite()
    assert len(definite(1.04, 1.0)) == 1
    assert definite(1.04, 1.05) == definite(1.04, 0.95) == [], "many loops show it where two of them do not"
    assert definite(1.2, 1.15) == [] and definite(2.0, 1.15) == [30]


def test_a_printed_number_that_repeats_does_not_depend_on_the_machine() -> None:
    def definite(values: list[int], type: str) -> list[int]:
        times = [2e7] * 10 + [2.2e7] * 10
        own = [
            point_of([(Round("", 0, {"": Sample(1, float(one), np.nan, True)}),)], Kind.TIMED)
            for one in values
        ]
        speeds = [(f"1 1 {one:.6g} {one:.6g} 0 0",) for one in times]
        return told(
            [one._replace(speeds=it) for one, it in zip(own, speeds, strict=True)], type=type
        ).definite()

    steps = [480] * 10 + [504] * 10
    assert definite(steps, "mixed") == [10] and definite(steps, "time") == []
    assert definite([480, 481] * 5 + [504, 505] * 5, "mixed") == []


def test_each_other_count_is_a_change_also_to_and_from_zero():
    values = [100] * 10 + [103] * 2 + [100] * 10 + [0] * 5 + [7]
    found = told(counts(values), exact=True)
    assert found.definite() == [10, 12, 22, 27]
    ratios = [one.steps[0].ratio for one in found.changes]
    assert ratios[:3] == [1.03, 100 / 103, 0.0] and np.isnan(ratios[3])
    assert found.changes[0].steps[0].reverted_by == name(12)


@pytest.mark.parametrize("sessions", [1, 2])
@pytest.mark.parametrize("maybe", [False, True])
def test_what_is_left_out_is_not_definite(sessions, maybe):
    """The quick look at the numbers leaves out no version of which the verdict says something."""
    for seed in range(4):
        chance = np.random.default_rng(seed)
        moves = (chance.random(VERSIONS) < 0.1) * chance.normal(0, 0.1, VERSIONS)
        own = points(np.exp(np.cumsum(moves)), seed, sessions=sessions)
        cells = [cell(one) for one in own]
        fields = ("value", "error", "samples", "rounds", "sessions", "mark")
        track = Track(*(np.array([getattr(one, field) for one in cells]) for field in fields))
        may = may_decide(track, Kind.TIMED, Rules(), maybe=maybe, alone=True)
        for place in range(1, VERSIONS):
            verdict = along(own[place], own[:place][::-1])
            assert verdict is not None
            said = severity(verdict.change)
            assert may[place] or not said or not (verdict.decides or maybe)
        assert not may.all() or sessions > 1


def test_definite_verdicts_of_neighbours_are_changes_with_their_numbers():
    own = points(levels(30, 4, 1.3), 3)
    kept = Kept(own)
    found = told(own)
    for one in found.changes:
        place = int(one.version.checksum, 16)
        verdict = along(own[place], kept.before("", KEY, [name(other) for other in range(place)][::-1]))
        for step in one.steps:
            if verdict is not None and verdict.decides and severity(verdict.change):
                numbers = (verdict.difference.ratio, verdict.low, verdict.high, verdict.change)
                assert numbers == (step.ratio, step.low, step.high, step.verdict)
    assert {30, 34} <= set(found.definite())


def test_what_neighbours_leave_in_doubt_is_told_of_the_newest_versions():
    """Of older ones the levels after them have shown whether it was noise."""
    own = points(np.ones(3 * DOUBTED), 7)
    verdicts = {place: along(own[place], own[:place][::-1]) for place in range(1, len(own))}
    doubts = {place for place, one in verdicts.items() if one is not None and severity(one.change)}
    newest = {place for place in doubts if place >= 2 * DOUBTED}
    every = set(told(own).every())
    assert newest and newest <= every
    older = doubts - newest
    assert len(older) > 4 * len(older & every)
    # Where levels are not looked for, nothing else tells.
    zero = [*own, *points(np.zeros(1), 1)]
    assert older <= set(told(zero).every())


def test_levels_that_follow_each_other_begin_where_they_do():
    """Each of six versions: a run of the ones beside it says where neither begins."""
    own = np.ones(40)
    for place in (8, 14):
        own[place:] /= 1.05
    own[20:] *= 1.08
    for seed in range(10):
        found = told(points(own, seed, sessions=4)).definite()
        assert all(min(abs(one - place) for place in (8, 14, 20)) <= 1 for one in found), (seed, found)
        assert len(found) >= 2


# -- which series are searched again -------------------------------------------------------------------------


OLD = 300


def track(values):
    """The points of a series of one measurement each."""
    ones = np.ones(len(values))
    return Track(values, np.full(len(values), np.nan), ones, ones, ones, np.zeros(len(values), int))


def found(values):
    """What is kept of these values once they are searched."""
    own = track(values)
    return searched(own, exact=False, effect=change_points.EFFECT, before=None)._replace(digest=digest(own))


@pytest.fixture
def remembered(tmp_path):
    """What is remembered of a series with one level of 300 points, and the series with a hundred more."""
    init(tmp_path, {}, vcs_type="svs")
    values = np.exp(0.01 * np.random.default_rng(3).standard_normal(OLD + 100))
    made = ChangesCache(open_repository(tmp_path, {}), change_points.EFFECT, Rules())
    made.keep("series", found(values[:OLD]))
    return made, values


def test_a_level_that_stays_is_searched_again_after_many_points_alone(remembered):
    made, values = remembered
    searches = [new for new in range(1, 100) if made.of("series", track(values[: OLD + new])) is None]
    assert STEADY[0] < searches[0] <= STEADY[1]
    assert searches == list(range(searches[0], 100))


@pytest.mark.parametrize("new", [NEW // 2, 3 * NEW])
@pytest.mark.parametrize("ratio", [1.05, 0.95])
def test_a_level_that_was_left_for_a_moment_is_searched_again(remembered, new, ratio):
    made, values = remembered
    assert made.of("series", track(values[: OLD + new])) is not None
    values[OLD + new // 2 - 2 : OLD + new // 2 + 2] *= ratio
    end = OLD + new if new > NEW else OLD + new // 2 + 2  # where a few are new, they are looked at at the end
    assert made.of("series", track(values[:end])) is None


def test_a_young_level_is_searched_again_after_a_few_points(remembered):
    made, values = remembered
    values[OLD - 50 :] *= 1.2
    made.keep("series", found(values[:OLD]))
    assert made.of("series", track(values[: OLD + 2])) is not None
    assert made.of("series", track(values[: OLD + NEW + 1])) is None


def test_what_comes_to_a_long_history_is_found_as_if_it_were_new(tmp_path):
    init(tmp_path, {}, vcs_type="svs")
    repo = open_repository(tmp_path, {})
    level = np.ones(1500)
    for first, length, size in (
        (300, 4, 1.1),
        (1200, 3, 0.9),
        (1395, 3, 1.1),
        (1460, 5, 1.1),
        (1497, 3, 0.9),
    ):
        level[first : first + length] *= size
    level[800:] *= 1.2
    own = points(level, 5)
    for end in (1400, 1470, 1500):
        known = told(own[:end], remembered=ChangesCache(repo, change_points.EFFECT, Rules()))
        assert known.every() == told(own[:end]).every()
    assert {300, 304, 800, 1395, 1398, 1460, 1465, 1497} <= set(known.every())
