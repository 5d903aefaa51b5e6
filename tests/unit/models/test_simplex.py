"""The search downhill, step by step against scipy's."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest

from perun.models.kernel.bandwidth import minimum

FUNCTIONS: dict[str, Callable[[float], float]] = {
    "parabola": lambda x: (x - 3) ** 2,
    "valley far away": lambda x: abs(x - 1e4) ** 1.5,
    "waves": lambda x: math.sin(5 * x) + x * x / 40,
    "steps": lambda x: math.floor(abs(x - 2) * 4),
    "level": lambda x: 1.0,
    "nothing below -1": lambda x: (x + 0.99) ** 2 if x >= -1 else math.nan,
    "infinite beyond 2": lambda x: -x if x < 2 else math.inf,
    "no end": lambda x: -x,
}


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # scipy's, of the infinity
@pytest.mark.filterwarnings("ignore:Maximum number of function evaluations:RuntimeWarning")
@pytest.mark.parametrize("start", [1.0, 1.25, 0.0, 40.0])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_step_is_that_of_scipy(name: str, start: float) -> None:
    optimize = pytest.importorskip("scipy.optimize", reason="the oracle scipy is not installed")
    function = FUNCTIONS[name]
    paths: tuple[list[float], list[float]] = ([], [])

    def followed(path: list[float]) -> Callable[[float], float]:
        def call(x: float) -> float:
            path.append(float(x))
            return function(float(x))

        return call

    ours = minimum(followed(paths[0]), start, evaluations=200)
    theirs = optimize.fmin(lambda x: followed(paths[1])(x[0]), [start], maxfun=200, maxiter=200, disp=False)
    # scipy asks for the value in the middle a second time, where it shrinks to that point.
    mine, expected = ([x for x, _ in itertools.groupby(path)] for path in paths)
    both = min(len(mine), len(expected))
    assert mine[:both] == pytest.approx(expected[:both], rel=1e-12, abs=1e-12)
    if len(paths[1]) < 200:
        assert ours == pytest.approx(float(theirs[0]), rel=1e-12, abs=1e-12)
    assert len(paths[0]) <= 202


def test_the_tolerances_end_the_search() -> None:
    calls: list[float] = []

    def parabola(x: float) -> float:
        calls.append(x)
        return (x - 3) ** 2

    assert minimum(parabola, 1.0, x_tolerance=1e-9, y_tolerance=1e-12) == pytest.approx(3, abs=1e-6)
    exact = len(calls)
    calls.clear()
    assert minimum(parabola, 1.0, x_tolerance=0.1, y_tolerance=0.1) == pytest.approx(3, abs=0.5)
    assert len(calls) < exact
