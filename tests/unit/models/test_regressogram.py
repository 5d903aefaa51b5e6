import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from perun.models.record import NoModel
from perun.models.regressogram import (
    MAX_BUCKETS,
    METHODS,
    Regressogram,
    regressogram,
)

POINTS = st.lists(st.tuples(st.floats(), st.floats()), max_size=30)
STATISTICS = ("mean", "median")


def made(*args: object) -> Regressogram:
    model = regressogram(*args)  # type: ignore[arg-type]
    assert isinstance(model, Regressogram)
    return model


def samples(count: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [
        rng.normal(size=count),
        rng.exponential(size=count) * 1e6,
        rng.integers(0, 50, count).astype(float) + np.arange(count) % 2,
        np.concatenate((rng.normal(size=count), rng.normal(40, 1, size=count))),
    ]


def numpy_limits_auto() -> bool:
    """Older releases of numpy let the rule `auto` follow an outlier into any number of buckets."""
    return np.histogram_bin_edges(np.append(np.linspace(0, 1, 100), 1000.0), "auto").size < 1000


@pytest.mark.parametrize("method", sorted(METHODS))
@pytest.mark.parametrize("count", [2, 3, 10, 500])
@pytest.mark.filterwarnings("ignore:The number of bins estimated may be suboptimal")
def test_as_many_buckets_as_numpy(method: str, count: int) -> None:
    if method == "auto" and not numpy_limits_auto():
        pytest.skip("this numpy has an older rule 'auto'")
    for x in samples(count, seed=count):
        if x.min() < x.max():
            expected = np.histogram_bin_edges(x, method).size - 1
            assert made(x, x, method).stats.size == expected


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("buckets", [1, 2, 7, 100])
def test_statistics_as_scipy(statistic: str, buckets: int) -> None:
    for seed, x in enumerate(samples(300, seed=1)):
        y = np.random.default_rng(seed).normal(size=x.size) * 10.0**seed
        expected, edges, number = stats.binned_statistic(x, y, statistic, buckets)
        model = made(x, y, buckets, statistic)
        np.testing.assert_allclose(model.stats, np.nan_to_num(expected), rtol=1e-12, atol=1e-15)
        assert (model.x_start, model.x_end) == (edges[0], edges[-1])
        residual = y - expected[number - 1]
        assert model.r_square == pytest.approx(1 - (residual**2).sum() / ((y - y.mean()) ** 2).sum())


def test_the_example_of_the_manual() -> None:
    x = np.arange(10.0)
    model = made(x, 8 + 2.5 * x, 2)
    assert model.stats.tolist() == [13.0, 25.5] and (model.x_start, model.x_end) == (0.0, 9.0)
    assert model.r_square == pytest.approx(0.7575757575757576, rel=1e-12)


def test_an_older_release_took_the_width_for_the_number() -> None:
    # The example of the manual says 2 buckets for these points: 2.08 is how wide one is by this rule.
    x = np.arange(10.0)
    assert made(x, 8 + 2.5 * x, "doane").stats.tolist() == [9.25, 14.25, 19.25, 24.25, 29.25]


def test_what_is_in_a_bucket_and_in_an_empty_one() -> None:
    x, y = np.array([0.0, 1, 10]), np.array([5.0, 7, -3])
    assert made(x, y, 5, "mean").stats.tolist() == [6, 0, 0, 0, -3]
    assert made(x, y, 5, "median").stats.tolist() == [6, 0, 0, 0, -3]
    x = np.array([0.0, 1, 2, 3])
    assert made(x, np.array([1.0, 2, 4, 8]), 3).stats.tolist() == [1, 2, 6]
    x = np.array([3.0, 1, 2, 0])
    assert made(x, x, 2).stats.tolist() == made(np.sort(x), np.sort(x), 2).stats.tolist() == [0.5, 2.5]


def test_equal_amounts_fit_exactly() -> None:
    for value in (0.0, 0.1, -1e308, 5e-324):
        model = made(np.arange(11.0), np.full(11, value), 2)
        assert model.stats.tolist() == [value, value] and model.r_square == 1.0


@pytest.mark.parametrize(("x", "y", "reason"), [
    ([], [], "no point"),
    ([1.0], [2.0], "one point"),
    ([3.0, 3.0, 3.0], [1.0, 2.0, 3.0], "x are equal"),
    ([math.nan, 1.0, math.inf], [2.0, 2.0, 2.0], "one point"),
    ([1.0, 2.0], [math.nan, math.inf], "no point"),
])  # fmt: skip
def test_no_model(x: list[float], y: list[float], reason: str) -> None:
    model = regressogram(np.array(x), np.array(y))
    assert isinstance(model, NoModel) and reason in model.reason


def test_an_outlier_does_not_fill_the_memory() -> None:
    x = np.append(np.linspace(0, 1e-9, 1000), 1.0)
    model = regressogram(x, x, "fd")
    assert isinstance(model, NoModel) and str(MAX_BUCKETS) in model.reason
    assert isinstance(regressogram(x, x, MAX_BUCKETS + 1), NoModel)
    assert made(x, x, "auto").stats.size < 100


@given(POINTS, st.sampled_from([1, 3, 50, *METHODS]), st.sampled_from(STATISTICS))
def test_any_data(points: list[tuple[float, float]], buckets: int | str, statistic: str) -> None:
    x, y = (np.array([point[axis] for point in points], float) for axis in (0, 1))
    model = regressogram(x, y, buckets, statistic)
    if isinstance(model, NoModel):
        assert model.reason
        return
    finite = y[np.isfinite(x) & np.isfinite(y)]
    assert finite.size and model.x_start < model.x_end
    slack = 1e-290 * np.abs(finite).max()  # of values that are so much less than the largest
    assert min(0.0, finite.min()) - slack <= model.stats.min()
    assert model.stats.max() <= max(0.0, finite.max()) + slack and model.r_square <= 1
    if statistic == "mean":
        assert model.r_square >= -1e-9
