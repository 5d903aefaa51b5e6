"""Each detector beside a slow and plain form of the same definition."""

import itertools

import numpy as np
import pytest
import ruptures
from hypothesis import given
from hypothesis import strategies as st

from perun.history.changes.detecting import ENOUGH, searched
from perun.measurement.changes import Track
from perun.models import change_detectors, change_points
from perun.models.change_detectors import (
    BANDWIDTH,
    KERNEL_PRICE,
    SHORTEST,
    deviation_of_differences,
    kernel_changes,
)
from perun.models.change_points import DETECTORS, outliers


def stepped(seed: int, count: int = 60, size: float = 1.0, at: int = 30) -> np.ndarray:
    values = np.random.default_rng(seed).normal(0, 0.05, count)
    values[at:] += size
    return values


@pytest.mark.parametrize("name", DETECTORS)
def test_a_plain_step_is_found_by_each(name):
    assert any(abs(place - 30) <= 1 for place in DETECTORS[name](stepped(1)))


@pytest.mark.parametrize("name", DETECTORS)
@pytest.mark.parametrize(
    "values", [[], [1.0], [1.0] * 7, [2.0] * 100, list(range(100)), [-700.0, 700.0] * 20], ids=str
)
def test_odd_series_raise_nothing(name, values):
    found = DETECTORS[name](np.array(values, float))
    assert found == sorted(found) and all(0 < place < len(values) for place in found)


@given(st.lists(st.floats(-750, 750), max_size=120))
def test_any_logarithms_give_places_of_them(values):
    for detect in DETECTORS.values():
        assert all(0 < place < len(values) for place in detect(np.array(values, float)))


@given(st.integers(2, 9), st.integers(0, 2**32), st.floats(0.1, 5))
def test_the_cheapest_division_is_that_of_all_divisions(bounds, seed, price):
    costs = np.triu(np.random.default_rng(seed).exponential(1, (bounds, bounds)), 1)
    inner = range(1, bounds - 1)
    divisions = [
        list(chosen) for number in range(bounds - 1) for chosen in itertools.combinations(inner, number)
    ]

    def cost(division):
        return sum(costs[i, j] + price for i, j in itertools.pairwise([0, *division, bounds - 1]))

    assert cost(change_detectors.cheapest(costs, price)) == pytest.approx(min(map(cost, divisions)))


def test_deviations_are_those_from_the_median():
    values = np.random.default_rng(2).normal(0, 1, change_detectors.BINS)  # a bin for each
    bounds = np.array([0, 5, 6, 20, 33, len(values)])
    found = change_detectors.deviations(values, bounds)
    for i, j in itertools.combinations(range(len(bounds)), 2):
        part = values[bounds[i] : bounds[j]]
        assert found[i, j] == pytest.approx(np.abs(part - np.median(part)).sum())


def test_the_cost_in_the_kernel_is_its_definition():
    values = stepped(3, 40, 0.2, 20)
    width = change_detectors.BANDWIDTH * change_detectors.deviation_of_differences(values)
    bounds = [0, *change_detectors.candidates(values), len(values)]

    def cost(first, end):
        part = values[first:end]
        gram = np.exp(-0.5 * ((part[:, None] - part[None, :]) / width) ** 2)
        return len(part) - gram.sum() / len(part) + change_detectors.KERNEL_PRICE * np.log(len(values))

    def total(places):
        return sum(cost(i, j) for i, j in itertools.pairwise([0, *places, len(values)]))

    found = change_detectors.kernel_changes(values)
    assert found
    for one in bounds[1:-1]:
        near = [
            other for other in {*found, one} if abs(other - one) < change_detectors.SHORTEST and other != one
        ]
        ends = min(one, len(values) - one) < change_detectors.SHORTEST
        if not near and not ends:
            assert total(sorted({*found, one})) >= total(found) - 1e-3
    for one in found:
        assert total([other for other in found if other != one]) >= total(found) - 1e-3


def test_the_energy_distance_is_its_definition():
    values = stepped(4, 50, 0.15, 21)
    bounds = np.arange(len(values) + 1)
    distances = np.abs(values[:, None] - values[None, :])

    def energy_of(k):
        first, second = distances[:k, :k], distances[k:, k:]
        m = len(values) - k
        distance = 2 * distances[:k, k:].mean() - first.sum() / k**2 - second.sum() / m**2
        return distance * k * m / len(values)

    allowed = range(change_detectors.SHORTEST, len(values) - change_detectors.SHORTEST + 1)
    assert change_detectors._best(distances, bounds) == max(allowed, key=energy_of)


def test_the_p_value_of_the_largest_rank_sum_holds_its_level():
    """Without a change, the best place is significant at 5 % in about 5 % of series."""
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(150):
        values = rng.normal(0, 1, 60)
        smallest = min(change_detectors._p_value(values, k) for k in range(change_detectors.SHORTEST, 57))
        hits += smallest < 0.05
    assert hits <= 0.1 * 150


def test_the_statistic_of_windows_is_welch_with_weights():
    values = np.random.default_rng(6).normal(5, 1, 80)
    t = change_detectors.window_statistic(values)
    weights = np.arange(change_detectors.WIDTH, 0, -1) / change_detectors.WIDTH
    place = 37
    parts = []
    for part, weight in ((values[place - 20 : place], weights[::-1]), (values[place : place + 20], weights)):
        mean = np.average(part, weights=weight)
        worth = weight.sum() ** 2 / (weight**2).sum()
        variance = np.average((part - mean) ** 2, weights=weight) * worth / (worth - 1)
        parts.append((mean, variance / worth))
    (low, one), (high, two) = parts
    assert t[place] == pytest.approx((high - low) / np.sqrt(one + two))
    assert (t[:5] == 0).all() and (t[-4:] == 0).all()


def test_the_statistic_of_jumps_is_that_of_least_squares():
    statsmodels = pytest.importorskip("statsmodels.api")
    values = np.random.default_rng(7).normal(5, 1, 60) + np.linspace(0, 9, 60)
    t = change_detectors.jump_statistic(values, 12)
    for place in (12, 30, 48):
        part = values[place - 12 : place + 12]
        design = np.column_stack([np.ones(24), np.arange(24), np.arange(24) >= 12])
        assert t[place] == pytest.approx(statsmodels.OLS(part, design).fit().tvalues[2])
    assert t[11] == t[49] == 0


def test_a_slope_is_no_jump():
    values = np.random.default_rng(8).normal(0, 0.01, 200) + np.linspace(0, 1, 200)
    assert change_detectors.jump_changes(values) == []


@pytest.mark.parametrize(
    ("places", "expected"),
    [([20], [20]), ([20, 21], [20, 21]), ([20, 21, 22], []), ([0], [0]), ([59], [59])],
)
def test_one_or_two_points_far_away_are_spikes_and_three_are_a_level(places, expected):
    values = np.random.default_rng(9).normal(0, 0.01, 60)
    values[places] += 1
    assert np.flatnonzero(outliers(values)).tolist() == expected


def test_the_noise_is_measured_beside_a_step():
    values = stepped(10, 1000, 5.0, 500)
    assert change_detectors.deviation_of_differences(values) == pytest.approx(0.05, rel=0.15)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6])
def test_autocorrelation(rho):
    values = np.random.default_rng(11).normal(0, 1, 4000)
    for i in range(1, len(values)):
        values[i] += rho * values[i - 1]
    assert change_detectors.autocorrelation(values) == pytest.approx(rho, abs=0.06)


def test_candidates_hold_the_steps():
    assert 30 in change_detectors.candidates(stepped(12)) and change_detectors.candidates(np.zeros(0)) == []


# -- The search with a Gaussian kernel beside `ruptures`, which searches all places for the same cost


def reference(values: np.ndarray) -> list[int]:
    width = BANDWIDTH * deviation_of_differences(values)
    search = ruptures.KernelCPD(kernel="rbf", params={"gamma": 0.5 / width**2}, min_size=SHORTEST)
    found = search.fit(values.reshape(-1, 1)).predict(pen=KERNEL_PRICE * np.log(len(values)))
    return [int(place) for place in found[:-1]]


@pytest.mark.parametrize("seed", range(12))
def test_the_places_are_those_of_the_reference(seed: int) -> None:
    chance = np.random.default_rng(seed)
    sizes = chance.integers(20, 60, int(chance.integers(1, 5)))
    levels = np.cumsum(chance.choice([-1, 1], len(sizes)) * chance.uniform(4, 12, len(sizes)))
    values = np.repeat(levels, sizes) + chance.standard_normal(int(sizes.sum()))
    assert kernel_changes(values) == reference(values)


# -- Series that are longer than what detectors look at together -------------------------------------


def track(values):
    """The points of a series of one measurement each."""
    ones = np.ones(len(values))
    return Track(values, np.full(len(values), np.nan), ones, ones, ones, np.zeros(len(values), int))


def noisy(levels, seed=1):
    """Measurements of these levels: pairs of how many points and their level."""
    chance = np.random.default_rng(seed)
    values = np.concatenate([np.full(count, level) for count, level in levels])
    return values * np.exp(0.01 * chance.standard_normal(len(values)))


def test_a_long_series_shows_what_its_parts_show():
    values = noisy([(1300, 1.0), (700, 1.2), (1500, 0.9), (511, 1.1)])
    found = change_points.change_points(values).changes
    assert [change.place for change in found] == [1300, 2000, 3500]
    assert [change.ratio for change in found] == pytest.approx([1.2, 0.75, 1.222], rel=0.01)


@pytest.mark.parametrize("place", [768, 1024, 1280, 1536, 2047, 2500])
def test_a_change_at_the_border_of_two_parts_is_seen_once(place):
    found = change_points.change_points(noisy([(place, 1.0), (3000 - place, 1.05)])).changes
    assert len(found) == 1 and abs(found[0].place - place) <= 1


def test_of_a_long_series_the_end_alone_is_searched_again(monkeypatch):
    values = noisy([(1500, 1.0), (900, 1.3), (60, 1.1)])
    before = searched(track(values[:2400]), exact=False, effect=change_points.EFFECT, before=None)
    assert [change.place for change in before.changes] == [1500]
    seen = []
    search = change_points.change_points

    def watched(own, effect):
        seen.append(len(own))
        return search(own, effect)

    monkeypatch.setattr(change_points, "change_points", watched)
    again = searched(track(values), exact=False, effect=change_points.EFFECT, before=before)
    assert seen == [ENOUGH + 60]
    assert [change.place for change in again.changes] == [1500, 2400]
    assert again.changes[1].ratio == pytest.approx(1.1 / 1.3, rel=0.01)
    assert again.points == len(values)
