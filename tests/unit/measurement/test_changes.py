"""Levels of a few versions, drifts, and the quick look for places where a verdict may say something."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from generated_history import points
from perun.history.changes.history import cell
from perun.measurement.changes import (
    FEWEST_RUNS,
    LONGEST,
    MANY,
    Excursion,
    Track,
    drift,
    is_climb,
    may_decide,
    short_levels,
)  # fmt: skip
from perun.measurement.difference import Rules, of_one
from perun.measurement.estimate import Kind, Point, Round, Sample
from perun.measurement.noise import WINDOW
from perun.measurement.verdict import along, severity
from perun.models.change_detectors import deviation_of_differences

COUNT = 60
EFFECT = 0.01


def track(values: Any, *, error: float = 0.003, samples: Any = 5, sessions: Any = 1, marks: Any = 0) -> Track:
    """A series each of whose points was measured so often."""
    values = np.asarray(values, float)
    errors, sizes, seen, own = (np.full(values.size, 1.0) * one for one in (error, samples, sessions, marks))
    return Track(values, errors, sizes, seen, seen, own.astype(np.uint32))


def noisy(levels: Any, seed: int = 1, noise: float = 0.01) -> Any:
    levels = np.asarray(levels, float)
    return 7 * levels * np.exp(np.random.default_rng(seed).normal(0, noise, levels.size))


def level(first: int, length: int, size: float = 1.2, count: int = COUNT) -> Any:
    """1 but for the versions of the level."""
    found = np.ones(count)
    found[first : first + length] = size
    return found


def spans(found: list[Excursion]) -> list[tuple[int, int]]:
    """The first and the last version of what is certain."""
    return [(one.first, one.end) for one in found if one.certain]


@pytest.mark.parametrize("size", [1.2, 1 / 1.2])
@pytest.mark.parametrize(
    ("first", "length"), [(30, 1), (30, 2), (30, 5), (30, LONGEST), (55, 5), (59, 1), (0, 3)]
)
def test_a_level_of_a_few_versions_is_found_where_it_is(first: int, length: int, size: float) -> None:
    found = short_levels(track(noisy(level(first, length, size))), [0, COUNT], EFFECT)
    (one,) = [own for own in found if own.certain]  # and none of the versions beside it
    assert (one.first, one.end) == (first, first + length)
    around = min(first, 8) + min(COUNT - first - length, 8)
    usual = 0.01 * math.sqrt(1 / length + 1.57 / around)
    assert one.error == pytest.approx(usual, rel=0.35)
    assert one.freedom == pytest.approx(0.55 * (COUNT - 1))


def test_longer_levels_are_left_to_those_that_last() -> None:
    assert spans(short_levels(track(noisy(level(25, LONGEST + 3))), [0, COUNT], EFFECT)) != [
        (25, 28 + LONGEST)
    ]
    for few in (FEWEST_RUNS - 1, FEWEST_RUNS):
        found = short_levels(track(noisy(level(4, 1, 1.5, few), noise=0.001)), [0, few], EFFECT)
        assert spans(found) == ([(4, 5)] if few == FEWEST_RUNS else [])


def test_levels_that_do_not_touch_are_found_together() -> None:
    both = level(20, 3) * level(40, 2, 0.8)
    assert spans(short_levels(track(noisy(both)), [0, COUNT], EFFECT)) == [(20, 23), (40, 42)]
    stairs = level(30, 2, 1.2) * level(32, 2, 1.5)
    assert spans(short_levels(track(noisy(stairs)), [0, COUNT], EFFECT)) in ([(30, 34)], [(32, 34)])


@pytest.mark.parametrize("seeds", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_of_noise_two_levels_are_told_and_hardly_one_for_certain(seeds: int) -> None:
    found = [
        one
        for seed in range(seeds)
        for one in short_levels(track(noisy(np.ones(COUNT), seed)), [0, COUNT], EFFECT)
    ]
    assert len(found) <= 2.1 * seeds
    assert sum(one.certain for one in found) <= max(1, 0.01 * seeds)


def test_a_level_has_to_differ_by_what_matters() -> None:
    values = noisy(level(30, 4, 1.05), noise=0.001)
    assert spans(short_levels(track(values, error=0.0003), [0, COUNT], 0.04)) == [(30, 34)]
    assert short_levels(track(values, error=0.0003), [0, COUNT], 0.06) == []


def test_beside_a_lasting_level_its_ends_are_none() -> None:
    """There the place of the change is off."""
    values = noisy(np.where(np.arange(COUNT) < 30, 1.0, 1.5))
    assert spans(short_levels(track(values), [0, 30, COUNT], EFFECT)) == []
    assert spans(short_levels(track(values), [0, 29, COUNT], EFFECT)) == []
    assert spans(short_levels(track(values), [0, 31, COUNT], EFFECT)) == []
    inner = values * level(40, 2)
    assert spans(short_levels(track(inner), [0, 30, COUNT], EFFECT)) == [(40, 42)]
    assert spans(short_levels(track(values * level(57, 3)), [0, 30, COUNT], EFFECT)) == [(57, 60)]


def test_a_short_level_beside_a_drift_is_none_of_it() -> None:
    slope = np.exp(np.linspace(0, 0.3, COUNT))
    assert spans(short_levels(track(noisy(slope)), [0, COUNT], EFFECT)) == []
    assert spans(short_levels(track(noisy(slope * level(30, 2))), [0, COUNT], EFFECT)) == [(30, 32)]


@pytest.mark.parametrize(
    ("error", "samples", "sessions", "factor"),
    [
        (0.0005, 5, 4, 0.5),  # nearly all noise is that between sessions
        (0.0005, 20, 1, 1.0),  # of which more runs say nothing
        (0.02, 20, 1, 0.5),  # all of it is within them
        (0.02, 5, 4, 1.0),
    ],
)
def test_a_point_that_was_measured_more_often_is_known_better(
    error: float, samples: int, sessions: int, factor: float
) -> None:
    values, there = noisy(level(30, 1)), np.arange(COUNT) == 30

    def variance(samples: int, sessions: int) -> float:
        own = track(
            values, error=error, samples=5 + (samples - 5) * there, sessions=1 + (sessions - 1) * there
        )
        (one,) = (run for run in short_levels(own, [0, COUNT], EFFECT) if run.first == 30)
        return one.error**2

    one, four = variance(5, 1), variance(samples, sessions)
    around = 1.2533**2 / 16
    own = one / (1 + around)  # that of a single version
    assert four == pytest.approx(own * (factor**2 + around), rel=0.02)


def test_what_repeats_exactly_has_levels_too() -> None:
    values = 100.0 * level(30, 2, 1.02)
    (one,) = short_levels(track(values, error=0.0), [0, COUNT], EFFECT)
    assert (one.first, one.end, one.certain) == (30, 32, True) and 0 < one.error < 1e-4
    unknown = short_levels(track(values, error=math.nan), [0, COUNT], EFFECT)
    assert spans(unknown) == [(30, 32)]


@pytest.mark.parametrize("size", [1.3, 1 / 1.3])
def test_a_drift_is_the_newest_fifth_by_the_oldest(size: float) -> None:
    slope = np.exp(np.linspace(0, math.log(size), COUNT))
    for seed in range(5):
        found = drift(noisy(slope, seed), EFFECT)
        assert found == pytest.approx(size**0.8, rel=0.02)


@pytest.mark.parametrize(
    "values",
    [
        np.ones(COUNT),
        np.where(np.arange(COUNT) < 27, 1.0, 1.3),  # a jump
        np.where(np.arange(COUNT) < 30, 1.0, 1.3),  # in the exact middle
        np.exp(np.linspace(0, 0.3, 14)),  # too few
        np.exp(np.linspace(0, 0.004, COUNT)),  # less than matters
        1 + 0.3 * np.sin(np.linspace(0, 8, COUNT)),  # back and forth
        np.concatenate([np.linspace(1, 1.3, 40), np.linspace(1.3, 1.1, 20)]),
    ],
    ids=str,
)
def test_what_is_no_drift(values: Any) -> None:
    for seed in range(5):
        assert drift(noisy(values, seed, 0.002), EFFECT) is None


def test_a_drift_of_fifteen_versions_is_one() -> None:
    assert drift(np.exp(np.linspace(0, 0.3, 15)), EFFECT) == pytest.approx(math.exp(0.3 * 12 / 14))


def test_a_slope_is_no_jump() -> None:
    for seed in range(10):
        chance = np.random.default_rng(seed).normal(0, 0.01, COUNT)
        assert is_climb(np.linspace(0, 0.3, COUNT) + chance, 30)
        assert not is_climb(np.where(np.arange(COUNT) < 30, 0.0, 0.3) + chance, 30)
        assert not is_climb(np.where(np.arange(COUNT) < 30, 0.3, 0.0) + chance, 30)


def cells(own: list[Point]) -> Track:
    made = [cell(one) for one in own]
    fields = ("value", "error", "samples", "rounds", "sessions", "mark")
    return Track(*(np.array([getattr(one, field) for one in made]) for field in fields))


def judged(own: list[Point]) -> list[Any]:
    found = [None, *(along(own[place], own[:place][::-1]) for place in range(1, len(own)))]
    assert all(found[1:])
    return found


@pytest.mark.parametrize("maybe", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_quick_look_leaves_out_only_what_says_nothing(seed: int, maybe: bool) -> None:
    chance = np.random.default_rng(seed)
    moves = (chance.random(COUNT) < 0.1) * chance.normal(0, 0.1, COUNT)
    own = points(np.exp(np.cumsum(moves)), seed)
    may = may_decide(cells(own), Kind.TIMED, Rules(), maybe=maybe, alone=True)
    verdicts = judged(own)
    says = [severity(one.change) != 0 and (one.decides or maybe) for one in verdicts[1:]]
    assert not may[0] and (may[1:] >= says).all()
    # It is worth its while: nearly all of the others are left out.
    assert (may[1:] & ~np.array(says)).sum() <= 4
    doubted = may_decide(cells(own), Kind.TIMED, Rules(), maybe=maybe, alone=False)
    assert (doubted >= may).all()


def test_the_quick_look_knows_what_it_cannot_know() -> None:
    """A point of several sessions or one beside it, or a value of 0, is looked at in any case."""
    values = noisy(np.ones(COUNT))
    plain = may_decide(track(values), Kind.TIMED, Rules(), maybe=False, alone=True)
    assert not plain.any()
    for place, own in ((30, {"marks": MANY}), (30, {"marks": 77})):
        marks = np.zeros(COUNT)
        marks[[place, place + 1]] = own["marks"]
        seen = may_decide(track(values, marks=marks), Kind.TIMED, Rules(), maybe=False, alone=True)
        beside = {31} if own["marks"] == 77 else {30, 31, 32}
        assert set(np.flatnonzero(seen)) >= beside and not seen[:30].any()
        assert not seen[32 + WINDOW :].any()
    values[30] = 0.0
    seen = may_decide(track(values), Kind.TIMED, Rules(), maybe=False, alone=True)
    assert set(np.flatnonzero(seen)) >= {30, 31} and not seen[:30].any()
    assert may_decide(track([1.0]), Kind.TIMED, Rules(), maybe=True, alone=True).tolist() == [False]


def test_what_scatters_by_more_than_the_bound_is_looked_at_from_there() -> None:
    """The interval of a point of few rounds is no wider than where nothing is known."""
    values = noisy(np.ones(COUNT))
    values[-1] *= 3.0
    own = track(values)
    errors = own.errors.copy()
    errors[-1] = 0.5
    rules = Rules()
    assert may_decide(own._replace(errors=errors), Kind.TIMED, rules, maybe=False, alone=True)[-1]
    # A single measurement, or a round where there are several, is as much less certain.
    assert of_one(0.1, 10, 1) == pytest.approx(0.1 * np.sqrt(10))
    assert of_one(0.1, 10, 5) == pytest.approx(0.1 * np.sqrt(5))


def test_each_other_count_is_looked_at() -> None:
    values = [100, 100, 103, 103, 0, 0, 7]
    own = [Point((Round(f"#{n}", 0, {"": Sample(3, float(one), 0.0, one > 0)}),), Kind.COUNTED)
           for n, one in enumerate(values)]  # fmt: skip
    may = may_decide(cells(own), Kind.COUNTED, Rules(), maybe=False, alone=True)
    says = [severity(one.change) != 0 for one in judged(own)[1:]]
    assert (may[1:] >= says).all() and not may[1] and not may[3]
    varies = track([100.0, 100.5, 130.0], error=0.01)  # of which the own scatter says enough
    assert may_decide(varies, Kind.COUNTED, Rules(), maybe=False, alone=True).tolist() == [False, False, True]


def test_few_neighbours_leave_the_cautious_bound() -> None:
    """Before anything is known of the noise, only what the machine cannot have made is looked at."""
    for factor, seen in ((1.9, False), (2.1, True)):
        may = may_decide(track([1.0, 1.0, factor]), Kind.TIMED, Rules(threshold=0.0), maybe=False, alone=True)
        assert bool(may[2]) is seen
    scatters = track([1.0, 1.0, 2.1], error=0.1)
    assert not may_decide(scatters, Kind.TIMED, Rules(threshold=0.0), maybe=False, alone=True).any()
    small = Rules(threshold=0.0, unpaired_tolerance=0.1)
    assert may_decide(track([1.0, 1.0, 1.2]), Kind.TIMED, small, maybe=False, alone=True)[2]


def test_a_short_level_has_twelve_versions_at_most() -> None:
    (twelve,) = short_levels(track(noisy(level(24, 12))), [0, COUNT], EFFECT)
    assert (twelve.first, twelve.end) == (24, 36)
    for length in (13, 14):
        found = short_levels(track(noisy(level(24, length))), [0, COUNT], EFFECT)
        assert all(one.end - one.first <= 12 for one in found)


def test_four_versions_beside_it_are_enough() -> None:
    for start, found in ((20, True), (21, False)):
        values = noisy(np.where(np.arange(28) < start, 3.0, 1.0) * level(24, 4, 1.3, 28))
        assert ((24, 28) in spans(short_levels(track(values), [0, start, 28], EFFECT))) is found


def test_of_noise_seven_newest_versions_of_a_hundred_are_told() -> None:
    """By Student's distribution: the least that is told of the newest one is at its quantile."""
    values = noisy(np.ones(COUNT))

    def newest(size: float) -> list[Excursion]:
        values[-1] = 7 * size
        return [one for one in short_levels(track(values), [0, COUNT], 0.0) if one.end == COUNT]

    low, high = 1.0, 1.1
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if newest(middle) else (middle, high)
    (one,) = newest(high)
    moved = math.log(values[-1]) - np.median(np.log(values[-9:-1]))
    assert one.first == COUNT - 1
    assert moved / one.error == pytest.approx(stats.t.isf(0.035, one.freedom), rel=1e-3)


def test_a_value_that_repeats_is_known_to_a_hundred_thousandth() -> None:
    (one,) = short_levels(track(100.0 * level(30, 2, 1.02), error=0.0), [0, COUNT], EFFECT)
    assert one.error == pytest.approx(1e-5 * math.sqrt(1 / 2 + 1.2533**2 / 16))


def test_steps_are_no_noise() -> None:
    """What neighbours differ by more than two and a half deviations does not make anything less certain."""

    def error(values: Any, bounds: list[int]) -> float:
        every = short_levels(track(values, error=math.nan), bounds, EFFECT)
        return next(one.error for one in every if one.end == COUNT)

    values = noisy(np.ones(COUNT))
    values[-1] = 20.0
    plain = error(values, [0, COUNT])
    for factor, is_noise in ((3.25, False), (2.25, True)):
        logs = np.log(values)
        step = factor * math.sqrt(2) * deviation_of_differences(logs)
        for place, sign in ((15, 1), (30, -1), (45, 1)):
            logs[place:] += logs[place - 1] + sign * step - logs[place]
        assert (error(np.exp(logs), [0, 15, 30, 45, COUNT]) > 1.1 * plain) is is_noise


def test_a_point_of_several_sessions_is_looked_at_in_any_case() -> None:
    own = points(np.ones(COUNT), 1)
    own[30] = points([1.0], 2, sessions=2)[0]
    may = may_decide(cells(own), Kind.TIMED, Rules(), maybe=False, alone=True)
    assert may[30] and may[31] and not may[:30].any()
