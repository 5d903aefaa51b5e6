"""Kernel smoothing and kernel ridge, against weights and polynomials written out, and scikit-learn."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from perun.models.kernel.estimates import KERNELS, ridge, smoothing
from perun.models.kernel.local import KernelEstimate
from perun.models.record import NoModel
from shared import examples

Floats = NDArray[np.float64]
POSITIVE = [name for name, kernel in KERNELS.items() if kernel.positive]


def the_estimate(made: KernelEstimate | NoModel) -> KernelEstimate:
    assert isinstance(made, KernelEstimate), made
    return made


def data(number: int = 150) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(9)
    x = np.sort(np.append(rng.uniform(0, 60, number), rng.integers(0, 60, number // 2)))
    return x, 100 + 10 * np.sin(x / 8) + rng.normal(size=x.size)


def weights(kernel: str, z: Floats) -> Floats:
    """The kernels as the manual writes them, those of finite support but the last stretched to variance 1."""
    normal = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    inner, tri = z / np.sqrt(5), z * np.sqrt(35 / 243)
    made: Floats = {
        "normal": normal,
        "epanechnikov": 3 / 4 * (1 - inner**2) * (np.abs(inner) <= 1),
        "tricube": 70 / 81 * (1 - np.abs(tri**3)) ** 3 * (np.abs(tri) <= 1),
        "normal4": (3 - z**2) * normal / 2,
        "epanechnikov4": (9 / 8 - 15 / 8 * z**2) * (np.abs(z) <= 1),
    }[kernel]
    return made


@pytest.mark.parametrize(
    ("kernel", "variance"),
    [("normal", 1), ("epanechnikov", 1), ("tricube", 1), ("normal4", 0), ("epanechnikov4", 0)],
)
def test_kernels_have_the_variance_that_they_should(kernel: str, variance: float) -> None:
    z = np.linspace(-12, 12, 40_001)
    made = KERNELS[kernel].weights(z)
    assert (z**2 @ made) / made.sum() == pytest.approx(variance, abs=1e-3)
    ratio = weights(kernel, np.array([0.0]))[0] / KERNELS[kernel].weights(np.array([0.0]))[0]
    np.testing.assert_allclose(made * ratio, weights(kernel, z), rtol=0, atol=1e-12)
    assert (made >= 0).all() == KERNELS[kernel].positive


@pytest.mark.parametrize("kernel", list(KERNELS))
def test_the_spatial_average_is_the_weighted_mean(kernel: str) -> None:
    x, y = data()
    made = the_estimate(smoothing(x, y, kernel, bandwidth=6.3))
    all_weights = weights(kernel, (x - x[:, None]) / 6.3)
    expected = (all_weights @ y) / all_weights.sum(1)
    assert made.values == pytest.approx(expected, rel=1e-9)
    assert made.r_square == pytest.approx(1 - np.square(y - expected).sum() / np.square(y - y.mean()).sum())


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("kernel", POSITIVE)
def test_the_local_polynomial_is_the_weighted_least_squares_one(kernel: str, order: int) -> None:
    x, y = data()
    made = the_estimate(smoothing(x, y, kernel, "local-polynomial", 8.0, order))
    for position in range(0, x.size, 7):
        z = x - x[position]
        here = weights(kernel, z / 8)
        fit = np.polynomial.Polynomial.fit(z[here > 0], y[here > 0], order, w=np.sqrt(here[here > 0]))
        assert made.values[position] == pytest.approx(fit(0.0), rel=1e-6)


@pytest.mark.parametrize("kernel", ["normal4", "epanechnikov4"])
def test_the_local_polynomial_of_a_kernel_of_order_4_solves_the_normal_equations(kernel: str) -> None:
    x, y = data()
    made = the_estimate(smoothing(x, y, kernel, "local-polynomial", 20.0))
    for position in range(0, x.size, 7):
        z = (x - x[position]) / 20
        design, here = np.vander(z, 4, increasing=True), weights(kernel, z)
        expected = np.linalg.solve(design.T @ (here[:, None] * design), design.T @ (here * y))
        assert made.values[position] == pytest.approx(expected[0], rel=1e-6)


def test_the_local_linear_method_has_normal_weights_whatever_the_kernel() -> None:
    x, y = data()
    expected = the_estimate(smoothing(x, y, "normal", "local-polynomial", 4.0, 1)).values
    for kernel in KERNELS:
        made = the_estimate(smoothing(x, y, kernel, "local-linear", 4.0))
        assert made.values == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("rule", "factor"), [("scott", 1.0), ("silverman", 0.75**-0.2)])
def test_rules_are_for_a_kernel_of_variance_1(rule: Any, factor: float) -> None:
    x, y = data()
    made = the_estimate(smoothing(x, y, bandwidth=rule))
    assert made.bandwidth == pytest.approx(factor * x.std(ddof=1) * x.size**-0.2)


@pytest.mark.parametrize("kernel", list(KERNELS))
def test_a_bandwidth_too_low_for_a_polynomial_is_raised(kernel: str) -> None:
    x = np.array([0.0, 1, 2, 3, 10, 11, 12, 20])
    y = x**3 - 4 * x
    made = the_estimate(smoothing(x, y, kernel, "local-polynomial", 0.1))
    # The third nearest neighbour of 20 is 10.
    assert made.bandwidth == pytest.approx(10 / KERNELS[kernel].fit_reach)
    if KERNELS[kernel].positive:
        assert made.values == pytest.approx(y, rel=1e-6, abs=1e-4)
    assert the_estimate(smoothing(x, y, kernel, "local-polynomial", 30.0)).bandwidth == 30


def test_a_polynomial_needs_more_x_than_its_order() -> None:
    made = smoothing([1.0, 2, 2, 3], [1.0, 2, 3, 4], method="local-polynomial", order=3)
    assert made == NoModel("a local polynomial of order 3 needs more than 3 different x")


def test_blocks_do_not_show() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.uniform(0, 100, 3000), rng.normal(size=3000)
    made = the_estimate(smoothing(x, y, "tricube", bandwidth=5.0))
    order = np.argsort(x)
    for position in range(0, 3000, 301):
        here = weights("tricube", (x - x[order[position]]) / 5)
        assert made.values[position] == pytest.approx(np.average(y, weights=here), abs=1e-10)


# -- kernel ridge -----------------------------------------------------------------------------------------


def test_the_ridge_takes_the_gamma_of_the_least_error_and_its_weighted_mean() -> None:
    pairwise = pytest.importorskip(
        "sklearn.metrics.pairwise", reason="scikit-learn is the oracle of this test"
    )
    selection = pytest.importorskip(
        "sklearn.model_selection", reason="scikit-learn is the oracle of this test"
    )
    x, y = data(40)
    column = x[:, None]
    gammas = [1e-3, 1e-2, 5e-2, 0.2, 5.0]

    def estimate(train: Any, test: Any, gamma: float) -> Floats:
        kernel = pairwise.rbf_kernel(column[test], column[train], gamma=gamma)
        means: Floats = (kernel @ y[train]) / kernel.sum(1)
        return means

    folds = list(selection.LeaveOneOut().split(x))
    errors = [
        np.mean([(y[test] - estimate(train, test, gamma)) ** 2 for train, test in folds]) for gamma in gammas
    ]
    made = the_estimate(ridge(x, y, gammas))
    assert made.bandwidth == gammas[int(np.argmin(errors))]
    assert 0 < int(np.argmin(errors)) < len(gammas) - 1
    everything = np.arange(x.size)
    expected = estimate(everything, everything, made.bandwidth)
    assert made.values == pytest.approx(expected, rel=1e-9)
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is the oracle of this test")
    assert made.r_square == pytest.approx(metrics.r2_score(y, expected), rel=1e-9)


def test_a_gamma_that_reaches_nothing_is_not_taken() -> None:
    x, y = [0.0, 1.0, 2.0], [1.0, 2.0, 4.0]
    assert the_estimate(ridge(x, y, [1e6, 1.0])).bandwidth == 1
    assert ridge(x, y, [1e6]) == NoModel("with every gamma of the range, some x is too far from all others")


# -- degenerate data --------------------------------------------------------------------------------------

values = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-5, 5).map(float),
    st.sampled_from([0.0, -0.0, 1e308, -1e308, 5e-324, 1e99, 1e-99, 1e16, 1e16 + 2]),
)


@settings(max_examples=examples(100), deadline=None)
@given(
    points=st.lists(st.tuples(values, values), max_size=12), kernel=st.sampled_from(list(KERNELS)),
    method=st.sampled_from(["spatial-average", "local-linear", "local-polynomial"]),
    bandwidth=st.sampled_from(["scott", "silverman", 1e-10, 1.0, 1e6, 1e300]), order=st.integers(1, 8)
)  # fmt: skip
def test_any_data_give_a_finite_model_or_none(points, kernel, method, bandwidth: Any, order: int) -> None:
    x, y = np.array([one for one, _ in points]), np.array([one for _, one in points])
    for made in (smoothing(x, y, kernel, method, bandwidth, order), ridge(x, y, [1e-10, 1e-5, 1.0, 1e10])):
        if isinstance(made, NoModel):
            assert made.reason
        else:
            assert np.isfinite([made.bandwidth, made.r_square, *made.values.tolist()]).all()
