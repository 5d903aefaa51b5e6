"""Which model is the best one: the simpler one where noise alone makes the other fit better."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.models.regression.best import Rating, best_of
from perun.models.regression.fits import MODELS, Fit, points_of


def best(*models: tuple[str, float]) -> str | None:
    """By R^2 alone, as of profiles that have nothing else."""
    found = best_of((Rating(*one) for one in models), lambda one: one)
    return found.model if found else None


def explaining(points: int, **shares: float) -> str:
    """By the shares that they explain; the R^2 that a profile keeps say the opposite."""
    ratings = [Rating(model, 1 - share, share, points, (0.0, 1.0)) for model, share in shares.items()]
    found = best_of(ratings, lambda one: one)
    assert found
    return found.model


def fitted(x: np.ndarray, y: np.ndarray) -> str:
    points = points_of(x, y)
    fits = [made for made in (MODELS[name](points) for name in MODELS) if isinstance(made, Fit)]
    found = best_of(fits, lambda fit: Rating(fit.model, fit.r_square, fit.explained, fit.points))
    assert found
    return found.model


def test_highest_coefficient_of_determination() -> None:
    assert best(("linear", 0.5), ("power", 0.9), ("logarithmic", 0.7)) == "power"
    assert best(("nonsense", 0.9), ("linear", 0.5)) == "nonsense"
    assert best() is None


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
    whole = Rating("linear", 0.7, 0.99, 20, (0.0, 20.0))
    piece = Rating("power", 0.9, 0.5, 10, (0.0, 10.0))
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
    assert lines == 100
    assert curves == 100


@given(st.lists(st.tuples(st.sampled_from([*MODELS, "other"]), st.floats(0, 1)), min_size=1, max_size=8))
def test_properties(models: list[tuple[str, float]]) -> None:
    chosen = best(*models)
    found = {r_square for name, r_square in models if name == chosen}
    rivals = [r_square for name, r_square in models if name not in (chosen, "quadratic", "constant")]
    enough = 0.5 if chosen == "constant" else max(found)
    assert all(enough >= r_square - 1e-12 for r_square in rivals)
    assert chosen == best(*reversed(models))
