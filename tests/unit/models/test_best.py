"""Which model is the best one: the simpler one where noise alone makes the other fit better."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.models.regression.best import best_of
from perun.models.regression.fits import MODELS, Fit, points_of


class Named(NamedTuple):
    name: str
    r_square: float


def best(*models: tuple[str, float]) -> str | None:
    found = best_of((Named(*one) for one in models), lambda one: one.name, lambda one: one.r_square)
    return found.name if found else None


def fitted(x: np.ndarray, y: np.ndarray) -> str:
    points = points_of(x, y)
    fits = [made for made in (MODELS[name](points) for name in MODELS) if isinstance(made, Fit)]
    found = best_of(fits, lambda fit: fit.model, lambda fit: fit.r_square)
    assert found
    return found.model


def test_highest_coefficient_of_determination() -> None:
    assert best(("linear", 0.5), ("power", 0.9), ("logarithmic", 0.7)) == "power"
    assert best(("nonsense", 0.9), ("linear", 0.5)) == "nonsense"
    assert best() is None


def test_equally_good_is_the_simpler_one() -> None:
    assert best(("exponential", 1.0), ("quadratic", 1.0), ("power", 1 - 1e-16), ("linear", 1.0)) == "linear"
    assert best(("linear", 0.0), ("constant", 0.0)) == "constant"


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
    rivals = [r_square for name, r_square in models if name not in (chosen, "quadratic")]
    assert all(max(found) >= r_square - 1e-12 for r_square in rivals)
    assert chosen == best(*reversed(models))
