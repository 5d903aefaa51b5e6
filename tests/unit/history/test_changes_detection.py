"""Which changes of generated histories are told: levels of a few versions, drifts, counts."""

from __future__ import annotations

import numpy as np
import pytest

from generated_history import KEY, VERSIONS, Kept, counts, name, points, told
from perun.history.changes.history import cell
from perun.measurement.changes import Track, may_decide
from perun.measurement.difference import Rules
from perun.measurement.estimate import Kind
from perun.measurement.verdict import along, severity

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


def test_each_other_count_is_a_change_also_to_and_from_zero():
    values = [100] * 10 + [103] * 2 + [100] * 10 + [0] * 5 + [7]
    found = told(counts(values), exact=True)
    assert found.definite() == [10, 12, 22, 27]
    ratios = [one.steps[0].ratio for one in found.changes]
    assert ratios[:3] == [1.03, 100 / 103, 0.0] and np.isnan(ratios[3])
    assert found.changes[0].steps[0].taken_back == name(12)


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
