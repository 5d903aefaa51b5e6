"""Gaussian kernel regression, against statsmodels and against sums written out."""

import inspect
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from perun.models.kernel import estimates as bandwidths
from perun.models.kernel import local as local_sums
from perun.models.kernel.estimates import (
    EstimatorSettings,
    estimator_settings,
    method_selection,
    user_selection,
)
from perun.models.kernel.local import KernelEstimate, KernelPoints, fitted, leave_one_out, points_of
from perun.models.record import NoModel

Floats = NDArray[np.float64]
BANDWIDTH, ESTIMATE = 1e-3, 1e-6


def shapes(number: int = 90) -> dict[str, tuple[Floats, Floats]]:
    """Points with distinct x, few distinct x, in an order, around 0, and with x in large and small units."""
    rng = np.random.default_rng(20)
    made = {
        "uniform": rng.uniform(0, 100, number),
        "sizes": rng.integers(1, 30, number).astype(float),
        "ascending": np.arange(float(number)),
        "normal": rng.normal(0, 1, number),
        "bytes": rng.integers(1, 300, number) * 4096.0,
        "unit": rng.uniform(0, 1, number),
    }
    noise = rng.normal(0, 0.5, number)
    return {name: (x, 5 * np.sin(6 * x / np.ptp(x)) + 20 + noise) for name, x in made.items()}


def the_points(x: Floats, y: Floats) -> KernelPoints:
    points = points_of(x, y)
    assert not isinstance(points, NoModel)
    return points


def the_estimate(made: KernelEstimate | NoModel) -> KernelEstimate:
    assert isinstance(made, KernelEstimate), made
    return made


class Oracle:
    """statsmodels' KernelReg: its bandwidth, estimates at ascending x, and coefficient of determination."""

    def __init__(self, x: Floats, y: Floats, **options: Any) -> None:
        module = pytest.importorskip(
            "statsmodels.nonparametric.kernel_regression", reason="statsmodels is the oracle of this test"
        )
        settings = options.pop("settings", None)
        if settings is not None:
            options["defaults"] = module.EstimatorSettings(n_jobs=1, **settings)
        if "rng" in inspect.signature(module.KernelReg).parameters:
            options["rng"] = 0
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            self.reg = module.KernelReg([y], [x], "c", **options)
            self.values = self.reg.fit(np.sort(x))[0]
            self.r_square = float(self.reg.r_squared())
        self.bandwidth = abs(float(self.reg.bw[0]))

    def check(self, made: KernelEstimate | NoModel) -> None:
        estimate = the_estimate(made)
        assert estimate.bandwidth == pytest.approx(self.bandwidth, rel=BANDWIDTH)
        assert estimate.values == pytest.approx(self.values, rel=ESTIMATE)
        assert estimate.r_square == pytest.approx(self.r_square, rel=ESTIMATE)


@pytest.mark.parametrize("regression", ["ll", "lc"])
@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(shape, marks=pytest.mark.slow if shape in ("ascending", "unit") else ())
        for shape in shapes()
    ],
)
@pytest.mark.each_value("shape", "regression")
def test_the_search_by_cross_validation_finds_what_statsmodels_finds(shape: str, regression: Any) -> None:
    x, y = shapes()[shape]
    oracle = Oracle(x, y, reg_type=regression, bw="cv_ls")
    oracle.check(estimator_settings(x, y, EstimatorSettings(regression)))


@pytest.mark.slow
@pytest.mark.parametrize("regression", ["ll", "lc"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.each_value("seed", "regression")
def test_the_search_is_no_worse_than_that_of_statsmodels_beside_outliers(seed: int, regression: Any) -> None:
    # There the estimates of single points hang on weights down to 1e-300, of which statsmodels loses digits.
    rng = np.random.default_rng(seed)
    x = rng.lognormal(3, 1, 50)
    y = np.sqrt(x) + rng.normal(0, 0.5, 50)
    points = the_points(x, y)
    found = the_estimate(estimator_settings(x, y, EstimatorSettings(regression)))
    theirs = Oracle(x, y, reg_type=regression).bandwidth
    with np.errstate(all="ignore"):
        ours, other = (
            bandwidths.cross_validation(points, bandwidth, regression)
            for bandwidth in (found.bandwidth, theirs)
        )
    assert ours <= other * (1 + 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["uniform", "sizes"])
def test_the_search_by_aic_finds_what_statsmodels_finds(shape: str) -> None:
    x, y = shapes()[shape]
    Oracle(x, y, bw="aic").check(estimator_settings(x, y, EstimatorSettings("ll", "aic")))


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["ascending", "normal", "unit"])
def test_the_search_by_aic_finds_it_for_other_shapes(shape: str) -> None:
    test_the_search_by_aic_finds_what_statsmodels_finds(shape)


def test_aic_is_infinite_where_the_formula_praises_an_estimate_through_all_points() -> None:
    x, y = shapes()["uniform"]
    points = the_points(x, y)
    # Beyond a trace of n - 2 the formula goes to minus infinity, into which statsmodels falls here.
    assert bandwidths.aic(points, 1e-6, "lc") == np.inf
    found = the_estimate(estimator_settings(x, y, EstimatorSettings("lc", "aic")))
    around = [bandwidths.aic(points, found.bandwidth * factor, "lc") for factor in (0.9, 1, 1.1)]
    assert around[1] == min(around) and np.isfinite(around).all()
    assert found.bandwidth > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("randomize", [False, True])
@pytest.mark.parametrize("median", [False, True])
@pytest.mark.each_value("randomize", "median")
def test_sub_samples_give_what_statsmodels_gives(randomize: bool, median: bool) -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(0, 10, 90)
    y = np.sin(x) + rng.normal(0, 0.3, 90)
    given = {"efficient": True, "randomize": randomize, "n_sub": 30, "n_res": 3, "return_median": median}
    ours = EstimatorSettings(
        efficient=True, randomize=randomize, n_sub_samples=30, n_re_samples=3, return_median=median
    )
    Oracle(x, y, settings=given).check(estimator_settings(x, y, ours))


def test_random_sub_samples_are_the_same_each_time() -> None:
    x, y = shapes()["uniform"]
    settings = EstimatorSettings(efficient=True, randomize=True, n_sub_samples=30, n_re_samples=3)
    first, second = (the_estimate(estimator_settings(x, y, settings)) for _ in range(2))
    assert first.bandwidth == second.bandwidth
    other = the_estimate(estimator_settings(x, y, settings._replace(seed=1)))
    assert other.bandwidth != first.bandwidth


@pytest.mark.parametrize("regression", ["ll", "lc"])
@pytest.mark.parametrize("bandwidth", [0.05, 1.0, 7.0, 1000.0])
def test_a_given_bandwidth_gives_the_estimates_of_statsmodels(regression: Any, bandwidth: float) -> None:
    for shape in ("uniform", "sizes"):
        x, y = shapes()[shape]
        Oracle(x, y, reg_type=regression, bw=[bandwidth]).check(user_selection(x, y, bandwidth, regression))


@pytest.mark.parametrize("regression", ["ll", "lc"])
def test_so_small_a_bandwidth_that_nothing_has_weight_gives_means(regression: Any) -> None:
    made = the_estimate(user_selection([1.0, 2, 2, 3], [5.0, 1, 3, 7], 1e-10, regression))
    assert made.values.tolist() == [5, 2, 2, 7] and made.bandwidth == 1e-10


@pytest.mark.parametrize(("rule", "factor"), [("scott", 1.059), ("silverman", 0.9)])
def test_rules_are_those_of_the_manual(rule: Any, factor: float) -> None:
    x = np.random.default_rng(1).standard_t(2, 80)  # so that the quartiles decide
    upper, lower = np.percentile(x, (75, 25))
    spread = (upper - lower) / 1.349
    assert spread < x.std(ddof=1)
    assert bandwidths.rule_of_thumb(x, rule) == pytest.approx(factor * spread * 80**-0.2)
    wide = np.repeat([0.0, 1.0], 40)  # so that the deviation does
    assert bandwidths.rule_of_thumb(wide, rule) == pytest.approx(factor * wide.std(ddof=1) * 80**-0.2)
    ties = np.append(np.ones(70), np.arange(10.0))  # quartiles are equal
    assert bandwidths.rule_of_thumb(ties, rule) == pytest.approx(factor * ties.std(ddof=1) * 80**-0.2)


def test_rules_are_those_of_statsmodels() -> None:
    oracle = pytest.importorskip("statsmodels.nonparametric.bandwidths", reason="statsmodels is the oracle")
    for x, y in shapes().values():
        for rule in ("scott", "silverman"):
            bandwidth = oracle.select_bandwidth(x, rule, None)
            made = the_estimate(method_selection(x, y, rule))  # type: ignore[arg-type]
            assert made.bandwidth == pytest.approx(bandwidth, rel=1e-12)
            expected = the_estimate(user_selection(x, y, bandwidth))
            assert made.values == pytest.approx(expected.values, rel=1e-9)


def test_the_order_of_the_points_does_not_matter() -> None:
    x, y = shapes()["sizes"]
    order = np.random.default_rng(0).permutation(x.size)
    first, second = (
        the_estimate(estimator_settings(x, y)),
        the_estimate(estimator_settings(x[order], y[order])),
    )
    assert second.bandwidth == pytest.approx(first.bandwidth, rel=1e-6)
    assert second.values == pytest.approx(first.values, rel=ESTIMATE)
    assert first.x.tolist() == sorted(x.tolist())


def test_the_unit_of_x_does_not_matter_to_a_local_linear_estimate() -> None:
    x, y = shapes()["uniform"]
    made = the_estimate(user_selection(x, y, 3))
    assert the_estimate(user_selection(x * 1e9, y, 3e9)).values == pytest.approx(made.values, rel=1e-9)
    small = the_estimate(estimator_settings(x * 1e-9, y))
    usual = the_estimate(estimator_settings(x, y))
    assert small.bandwidth * 1e9 == pytest.approx(usual.bandwidth, rel=0.02)


@pytest.mark.parametrize("regression", ["ll", "lc"])
def test_equal_y_are_estimated_exactly(regression: Any) -> None:
    made = the_estimate(estimator_settings(np.arange(20.0), np.full(20, 3.1), EstimatorSettings(regression)))
    assert made.values == pytest.approx(np.full(20, 3.1)) and made.r_square == 1


# -- sums of weights --------------------------------------------------------------------------------------


def by_definition(points: KernelPoints, bandwidth: float) -> local_sums.LocalMoments:
    z = (points.x - points.x[:, None]) / bandwidth
    kernel = np.exp(-0.5 * z * z)
    np.fill_diagonal(kernel, 0)
    counted, total = kernel * points.counts, kernel * points.total
    weight = counted.sum(1)
    mean_z, mean_y = (counted * z).sum(1) / weight, total.sum(1) / weight
    variance = (counted * (z - mean_z[:, None]) ** 2).sum(1) / weight
    covariance = ((z - mean_z[:, None]) * (total - counted * mean_y[:, None])).sum(1) / weight
    return local_sums.LocalMoments(weight, mean_z, mean_y, variance, covariance)


@pytest.mark.parametrize("bandwidth", [0.2, 1.0, 10.0, 100.0, 3000.0])
@pytest.mark.parametrize("kind", ["uniform", "clusters", "sizes"])
def test_sums_by_way_of_boxes_are_those_of_single_weights(kind: str, bandwidth: float) -> None:
    rng = np.random.default_rng(7)
    x = {
        "uniform": rng.uniform(0, 100, 700),
        "clusters": np.concatenate(
            (rng.normal(0, 1, 400), rng.normal(60, 2, 300), [-7.0, 100.0 * bandwidth / 20])
        ),
        "sizes": rng.integers(0, 600, 2000).astype(float),
    }[kind]
    points = the_points(x, 1e4 + rng.normal(0, 1, x.size))
    with np.errstate(all="ignore"):
        sums = local_sums.moments_of_others(points, bandwidth, True)
        expected = by_definition(points, bandwidth)
    # What counts in the end is compared with all points around x_i, those at x_i among them.
    here = expected.weight > 0
    tolerance = 1e-10 * (expected.weight + points.counts)[here]
    assert (np.abs(sums.weight - expected.weight)[here] <= tolerance).all()
    for values, right in zip(sums[1:], expected[1:], strict=True):
        assert (np.abs(values * sums.weight - right * expected.weight)[here] <= tolerance).all()


@pytest.mark.parametrize("far", [[1e8], [5.5, 7.0], [-8.0, 3.0]])
@pytest.mark.parametrize("extent", [9e-4, 1e-5, 1e-8])
def test_sums_among_points_close_together(extent: float, far: list[float]) -> None:
    rng = np.random.default_rng(8)
    place = np.append(rng.uniform(0, 1, 400), far)
    place = np.append(place, place[:30])  # some of equal x
    x = np.where(np.isin(place, far), place, place * extent)
    y = 1e3 + 3 * np.minimum(place, 10) + rng.normal(size=x.size)
    points = the_points(x, y)
    with np.errstate(all="ignore"):
        sums = local_sums.moments_of_others(points, 1.0, True)
        everything = np.arange(points.x.size)
        expected = local_sums._direct_sums(points, 1.0, everything)
    close = np.abs(points.x) < 1e-2
    for name, values, right in zip(sums._fields, sums, expected, strict=True):
        scale = np.abs(right[close]).max()
        assert np.abs(values - right)[close].max() <= 1e-7 * scale, name


@pytest.mark.parametrize("regression", ["ll", "lc"])
def test_leaving_one_out_is_the_estimate_of_the_others(regression: Any) -> None:
    rng = np.random.default_rng(11)
    x = np.append(rng.uniform(0, 50, 120), rng.integers(0, 10, 40))
    y = x**1.5 + rng.normal(size=x.size)
    points = the_points(x, y)
    order = np.argsort(x, kind="stable")
    made = leave_one_out(points, 2.5, regression)
    for position in range(0, x.size, 13):
        others = np.delete(order, position)
        here = x[order[position]]
        distance = (x[others] - here) / 2.5
        weights = np.exp(-0.5 * distance**2)
        if regression == "lc":
            expected = np.average(y[others], weights=weights)
        else:
            expected = np.polynomial.Polynomial.fit(distance, y[others], 1, w=np.sqrt(weights))(0.0)
        assert made[position] == pytest.approx(expected, rel=1e-8)


def test_many_points_agree_with_single_weights() -> None:
    rng = np.random.default_rng(12)
    x, y = rng.uniform(0, 1000, 3000), rng.normal(size=3000)
    points = the_points(x, y)
    values, weights = fitted(points, 8.0, "ll")
    for position in range(0, 3000, 301):
        z = (x - points.x[position]) / 8
        kernel = np.exp(-0.5 * z * z)
        assert weights[position] == pytest.approx(kernel.sum(), rel=1e-10)
        fit = np.polynomial.Polynomial.fit(z, y, 1, w=np.sqrt(kernel))
        assert values[position] == pytest.approx(fit(0.0), rel=1e-8, abs=1e-10)


# -- degenerate data --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("x", "y", "reason"), [
    ([], [], "it has no point"),
    ([1.0], [2.0], "it has one point only"),
    ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0], "all x are equal"),
    ([1.0, np.nan], [1.0, 2.0], "a value is not a finite number"),
    ([1.0, 1e308], [1.0, 2.0], "a value is beyond 1e+100"),
    ([1.0, 2.0], [1.0, -1e308], "a value is beyond 1e+100"),
])  # fmt: skip
def test_there_is_a_reason_for_no_model(x: list[float], y: list[float], reason: str) -> None:
    assert estimator_settings(x, y) == NoModel(reason)
    assert method_selection(x, y) == NoModel(reason)


def test_no_sub_sample_may_be_of_use() -> None:
    settings = EstimatorSettings(efficient=True, n_sub_samples=1)
    assert estimator_settings([1.0, 2, 3], [1.0, 2, 3], settings) == NoModel(
        "no sub-sample of 1 points has a bandwidth"
    )


def test_an_outlier_that_no_other_point_reaches_does_not_stop_the_search() -> None:
    x = np.append(np.arange(5000) / 50.0, 1e9)
    made = the_estimate(estimator_settings(x, np.sqrt(x), EstimatorSettings("lc")))
    assert np.isfinite(made.values).all()


def test_too_few_points_for_aic_get_the_normal_reference() -> None:
    x = np.array([1.0, 4.0, 6.0])
    made = the_estimate(estimator_settings(x, [1.0, 2, 0], EstimatorSettings("lc", "aic")))
    assert made.bandwidth == pytest.approx(1.06 * x.std() * 3**-0.2)


values = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-5, 5).map(float),
    st.sampled_from([0.0, -0.0, 1e308, -1e308, 5e-324, 1e99, 1e-99, 1e16, 1e16 + 2]),
)
points = st.lists(st.tuples(values, values), max_size=12)


@settings(max_examples=15, deadline=None)
@given(
    points=points, regression=st.sampled_from(["ll", "lc"]), criterion=st.sampled_from(["cv_ls", "aic"]),
    efficient=st.booleans()
)  # fmt: skip
def test_any_data_give_a_finite_model_or_none(points, regression: Any, criterion: Any, efficient) -> None:
    x, y = np.array([one for one, _ in points]), np.array([one for _, one in points])
    given = EstimatorSettings(regression, criterion, efficient, n_sub_samples=4)
    results = [
        estimator_settings(x, y, given),
        estimator_settings(x, y, given._replace(randomize=True, n_re_samples=3)),
        method_selection(x, y, "silverman", regression),
        user_selection(x, y, 1e-10, regression),
        user_selection(x, y, 1e6, regression),
    ]
    for made in results:
        if isinstance(made, NoModel):
            assert made.reason
        else:
            assert np.isfinite([made.bandwidth, made.r_square, *made.values.tolist()]).all()
            assert made.values.size == len(points)
