"""Which model is the best one: the simpler one where noise alone makes the other fit better."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.models.clusters import ClusterWindow, sliding_window, sort_order
from perun.models.outliers import NORMAL_MAD, Spread, deviation_multiple
from perun.models.regression.fits import MODELS, Fit, points_of
from perun.models.regression.methods import FitQuality, best_of


def best(*models: tuple[str, float]) -> str | None:
    """By R^2 alone, as of profiles that have nothing else."""
    found = best_of((FitQuality(*one) for one in models), lambda one: one)
    return found.model if found else None


def explaining(points: int, **shares: float) -> str:
    """By the shares that they explain; the R^2 that a profile keeps say the opposite."""
    ratings = [FitQuality(model, 1 - share, share, points, (0.0, 1.0)) for model, share in shares.items()]
    found = best_of(ratings, lambda one: one)
    assert found
    return found.model


def fitted(x: np.ndarray, y: np.ndarray) -> str:
    points = points_of(x, y)
    fits = [made for made in (MODELS[name](points) for name in MODELS) if isinstance(made, Fit)]
    found = best_of(fits, lambda fit: FitQuality(fit.model, fit.r_square, fit.explained, fit.points))
    assert found
    return found.model


def test_highest_coefficient_of_determination() -> None:
    assert best(("linear", 0.5), ("power", 0.9), ("logarithmic", 0.7)) == "power"
    assert best(("nonsense", 0.9), ("linear", 0.5)) == "nonsense" and best() is None


def test_equally_good_is_the_simpler_one() -> None:
    assert best(("exponential", 1.0), ("quadratic", 1.0), ("power", 1 - 1e-16), ("linear", 1.0)) == "linear"
    assert best(("linear", 0.0), ("constant", 0.0)) == "constant"


def test_a_constant_is_not_rated_by_how_little_the_line_explains() -> None:
    assert best(("constant", 0.49), ("linear", 0.51)) == "linear"
    assert best(("constant", 0.69), ("linear", 0.31), ("exponential", 0.55)) == "exponential"
    assert best(("constant", 0.69), ("linear", 0.31), ("exponential", 0.45)) == "constant"


def test_one_scale_wins_over_r_square() -> None:
    assert explaining(20, constant=0.0, linear=0.6, power=0.9) == "power"
    # Of 1,000 points, a twentieth of the variance is no chance; of ten it is.
    assert explaining(1000, constant=0.0, linear=0.05) == "linear"
    assert explaining(10, constant=0.0, linear=0.05) == "constant"
    # Of very few points there is no criterion: half of the variance has to be explained.
    assert explaining(4, constant=0.0, linear=0.51) == "linear"
    assert explaining(4, constant=0.0, linear=0.49) == "constant"


def test_models_of_different_points_are_compared_by_r_square() -> None:
    whole = FitQuality("linear", 0.7, 0.99, 20, (0.0, 20.0))
    piece = FitQuality("power", 0.9, 0.5, 10, (0.0, 10.0))
    assert best_of([whole, piece], lambda one: one) is piece


def test_a_curve_must_be_worth_it() -> None:
    assert best(("linear", 0.90), ("quadratic", 0.905)) == "linear"
    assert best(("linear", 0.90), ("quadratic", 0.915)) == "quadratic"
    assert best(("quadratic", 0.905), ("power", 0.90)) == "quadratic"  # none of the two contains the other


@pytest.mark.parametrize("noise", [0.01, 1.0, 20.0])
def test_lines_with_noise_are_lines_and_curves_are_curves(noise: float) -> None:
    x = np.arange(1.0, 201.0)
    lines = curves = 0
    for seed in range(100):
        scatter = np.random.default_rng(seed).normal(0, noise, x.size)
        lines += fitted(x, 300 + 2 * x + scatter) == "linear"
        curves += fitted(x, 300 + 2 * x + 0.05 * x**2 + scatter) == "quadratic"
    assert lines == 100 and curves == 100


@given(st.lists(st.tuples(st.sampled_from([*MODELS, "other"]), st.floats(0, 1)), min_size=1, max_size=8))
def test_properties(models: list[tuple[str, float]]) -> None:
    chosen = best(*models)
    found = {r_square for name, r_square in models if name == chosen}
    rivals = [r_square for name, r_square in models if name not in (chosen, "quadratic", "constant")]
    enough = 0.5 if chosen == "constant" else max(found)
    assert all(enough >= r_square - 1e-12 for r_square in rivals)
    assert chosen == best(*reversed(models))


# -- The rule of outliers, on differences whose spread can be worked out by hand ---------------------


RESOLUTION = 1e-9
EVEN = np.array([-4.0, -2.0, 0.0, 2.0, 4.0])
"""Median 0, quartiles -2 and 2, MAD 2."""


def test_the_spread_and_the_distances_from_it() -> None:
    assert Spread.of(EVEN, RESOLUTION) == (0.0, 2.0, -2.0, 2.0, RESOLUTION)
    assert Spread.of(EVEN + 10, RESOLUTION) == (10.0, 2.0, 8.0, 12.0, RESOLUTION)
    spread = Spread.of(EVEN + 10, RESOLUTION)
    assert spread.modified_z(np.array([10.0, 12.0, 8.0, 0.0])).tolist() == pytest.approx(
        [0, NORMAL_MAD, NORMAL_MAD, 5 * NORMAL_MAD]
    )
    spread = Spread.of(EVEN + 10, RESOLUTION)
    at = np.array([8.0, 9.0, 12.0, 6.0, 14.0, 2.0, 18.0])
    assert spread.quartile_multiple(at).tolist() == [0, 0, 0, 0.5, 0.5, 1.5, 1.5]


@pytest.mark.parametrize(("median", "difference", "stands_out"), [
    (10.0, 12.0, True),  # slower by more than the median function
    (10.0, 8.0, False),  # slower, but by less
    (10.0, 0.0, False),  # unchanged among slower ones: an outlier, and no change
    (10.0, -1.0, True),  # faster, where most are slower
    (10.0, 10.0, False),  # the median function itself
    (-10.0, -12.0, True),
    (-10.0, -8.0, False),
    (-10.0, 0.0, False),
    (-10.0, 1.0, True),
    (0.0, 1.0, True),
    (0.0, -1.0, True),
    (0.0, 0.0, False),  # no change is none, although its sign is that of its distance from the median
])  # fmt: skip
def test_a_change_stands_out_in_its_own_direction(median: float, difference: float, stands_out: bool) -> None:
    spread = Spread.of(EVEN + median, RESOLUTION)
    assert spread.away_from_zero(np.array([difference])).tolist() == [stands_out]


def test_the_multiple_of_the_deviation_counts_from_zero() -> None:
    # sigma of the even differences is sqrt(40 / 4); it is the same ten further up, where d is not.
    assert deviation_multiple(EVEN + 10, EVEN + 10, RESOLUTION) == pytest.approx((EVEN + 10) / np.sqrt(10))
    assert deviation_multiple(np.array([-20.0]), EVEN, RESOLUTION) == pytest.approx(20 / np.sqrt(10))
    assert deviation_multiple(np.array([3.0]), np.array([1.0, 3.0]), 0.5) == pytest.approx(3 / np.sqrt(2))
    for too_few in ([], [7.0]):
        assert deviation_multiple(np.array([3.0]), np.array(too_few), 0.5).tolist() == [6.0]


def test_the_resolution_is_the_least_spread_of_each_measure() -> None:
    level = np.full(5, 2.0)
    spread = Spread.of(level, 0.5)
    at = np.array([2.0, 3.0, 1.0])
    assert spread.modified_z(at).tolist() == pytest.approx([0, 2 * NORMAL_MAD, 2 * NORMAL_MAD])
    assert spread.quartile_multiple(at).tolist() == [0, 2, 2]
    assert deviation_multiple(at, level, 0.5).tolist() == [4, 6, 2]


# -- Clusters of amounts: against the definition written as a loop, and on whatever amounts there may be


FINITE = st.lists(st.integers(-50, 50).map(lambda number: number / 4), max_size=40)
ANY = st.lists(st.floats() | st.sampled_from([0.0, -0.0, 1.0, 1e308, -1e308, 5e-324]), max_size=40)
WINDOWS = st.builds(
    ClusterWindow,
    st.floats(0, 1e308) | st.integers(0, 9).map(float) | st.sampled_from([0.01, 0.1, 0.5]),
    st.sampled_from(["absolute", "relative", "weighted"]),
    st.floats(0, 1e308) | st.sampled_from([0.01, 0.1, 1.0]),
    st.sampled_from(["absolute", "relative"]),
)


def array(values: list[float]) -> np.ndarray:
    return np.array(values, dtype=float)


def slid(values: list[float], *window: float | str) -> list[int]:
    return sliding_window(array(values), ClusterWindow(*window)).tolist()


def by_definition(amounts: list[float], window: ClusterWindow) -> list[int]:
    """The same with a loop over the amounts, and nothing computed beforehand."""
    clusters = [0] * len(amounts)
    number, taken, first = 0, [], math.nan
    for position in sorted(range(len(amounts)), key=amounts.__getitem__):
        amount = amounts[position]
        reach = abs(first) * window.height if window.height_kind == "relative" else window.height
        used = len({*taken, amount}) if window.width_kind == "weighted" else len(taken) + 1
        width = window.width * len(amounts) if window.width_kind == "relative" else window.width
        if not taken or used > width or amount > first + reach:
            number, taken, first = number + 1, [], amount
        taken.append(amount)
        clusters[position] = number
    return clusters


def test_sort_order_is_the_rank() -> None:
    assert sort_order(array([3, 1, 2])).tolist() == [3, 1, 2]
    assert sort_order(array([5, 5, 1, 5])).tolist() == [2, 3, 1, 4]
    assert sort_order(array([math.nan, 0, -1])).tolist() == [3, 2, 1] and sort_order(array([])).tolist() == []


@pytest.mark.parametrize(("window", "clusters"), [
    # The example of the manual: of 100 and a height of 0.1, everything from 100 to 110.
    ((9, "absolute", 0.1, "relative"), [1, 1, 1, 2, 3]),
    ((2, "absolute", 0.1, "relative"), [1, 1, 2, 2, 3]),
    ((9, "absolute", 10, "absolute"), [1, 1, 1, 2, 3]),
    ((9, "absolute", 11, "absolute"), [1, 1, 1, 1, 2]),
    ((9, "absolute", 1000, "absolute"), [1, 1, 1, 1, 1]),
    ((0.4, "relative", 1000, "absolute"), [1, 1, 2, 2, 3]),
    ((0.6, "relative", 1000, "absolute"), [1, 1, 1, 2, 2]),
    ((0.01, "relative", 1000, "absolute"), [1, 2, 3, 4, 5]),
    ((0, "absolute", 1000, "absolute"), [1, 2, 3, 4, 5]),
])  # fmt: skip
def test_width_and_height(window: tuple[float, str, float, str], clusters: list[int]) -> None:
    assert slid([100, 104, 110, 111, 300], *window) == clusters


def test_weighted_width_takes_all_occurrences() -> None:
    amounts = [1, 1, 1, 2, 3, 3, 9]
    assert slid(amounts, 1, "weighted", 100, "absolute") == [1, 1, 1, 2, 3, 3, 4]
    assert slid(amounts, 0.01, "weighted", 100, "absolute") == [1, 1, 1, 2, 3, 3, 4]
    assert slid(amounts, 2, "weighted", 100, "absolute") == [1, 1, 1, 1, 2, 2, 2]
    assert slid(amounts, 2, "weighted", 5, "absolute") == [1, 1, 1, 1, 2, 2, 3]


def test_amounts_of_zero_below_it_and_that_are_no_number() -> None:
    assert slid([0, 0, 1], 9, "absolute", 0.5, "relative") == [1, 1, 2]
    assert slid([-100, -91, -90, -89], 9, "absolute", 0.1, "relative") == [1, 1, 1, 2]
    nan = math.nan
    assert slid([nan, 1, nan, 5], 1, "absolute", 1, "absolute") == [3, 1, 3, 2]
    assert slid([nan, nan], 1, "relative", 1, "relative") == [1, 1]
    assert slid([], 1, "relative", 1, "relative") == []


def test_rounding_does_not_move_the_edge() -> None:
    for first in (0.3, 0.7, 1.1, 2.3, 100.1, 1e-9, 1e17):
        for height in (0.1, 0.2, 0.7):
            highest = float(f"{first * (1 + height):.15g}")
            assert slid([first, highest], 9, "absolute", height, "relative") == [1, 1]
    # 29 % of 100 is 29, although 0.29 * 100 is a little less.
    assert slid([1.0] * 100, 0.29, "relative", 1, "absolute").count(1) == 29


@given(FINITE, WINDOWS)
def test_as_defined(amounts: list[float], window: ClusterWindow) -> None:
    # Sizes that no rounding can move across an edge.
    exact = window._replace(
        width=max(1, math.floor(min(window.width, 50))), height=math.floor(min(window.height, 9)) / 2
    )
    assert sliding_window(array(amounts), exact).tolist() == by_definition(amounts, exact)


@pytest.mark.filterwarnings("error")
@given(ANY, WINDOWS)
def test_any_amounts_get_clusters_from_1_without_gaps(amounts: list[float], window: ClusterWindow) -> None:
    for clusters in (sliding_window(array(amounts), window), sort_order(array(amounts))):
        assert clusters.shape == (len(amounts),)
        assert set(clusters.tolist()) == set(range(1, clusters.max(initial=0) + 1))
        ascending = clusters[np.argsort(array(amounts), kind="stable")]
        assert (np.diff(ascending) >= 0).all()
