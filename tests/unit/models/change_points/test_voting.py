"""The vote over histories whose changes are known."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perun.models.change_points import change_points

GENERATOR = Path(__file__).parents[4] / "benchmarks" / "histories.py"


@pytest.fixture(scope="module")
def histories() -> Any:
    """The committed generator of histories."""
    spec = importlib.util.spec_from_file_location("histories", GENERATOR)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def scores(histories: Any, seeds: range) -> tuple[float, float, float]:
    """Precision and recall of the vote, and the share of series without steps where it finds one."""
    hits = found = steps = quiet = flagged = 0
    for seed in seeds:
        history = histories.history(seed)
        places = [place for place, _ in history.steps]
        seen = [change.place for change in change_points(history.values).changes]
        hits += histories.matched(seen, places)
        found += len(seen)
        steps += len(places)
        quiet += not places
        flagged += bool(seen) and not places
    return hits / found, hits / steps, flagged / quiet


@pytest.mark.slow
def test_it_finds_the_steps_and_little_else(histories: Any) -> None:
    precision, recall, flagged = scores(histories, range(100))
    assert precision >= 0.93 and recall >= 0.85 and flagged <= 0.06


@pytest.mark.slow
def test_it_keeps_its_promise_over_many_histories(histories: Any) -> None:
    precision, recall, flagged = scores(histories, range(2000))
    assert precision >= 0.95 and recall >= 0.85 and flagged <= 0.05


@pytest.mark.parametrize("ratio", [0.5, 0.98, 1.02, 1.3, 4.0])
def test_levels_and_their_interval(ratio: float) -> None:
    covered = 0
    for seed in range(20):
        values = 7 * np.exp(np.random.default_rng(seed).normal(0, 0.005, 120))
        values[70:] *= ratio
        (change,) = change_points(values).changes
        assert abs(change.place - 70) <= 2
        assert (change.before, change.after) == pytest.approx((7, 7 * ratio), rel=0.01)
        covered += abs(np.log(change.ratio / ratio)) <= 1.96 * change.error
    assert covered >= 17


def test_spikes_are_no_change() -> None:
    values = np.exp(np.random.default_rng(3).normal(0, 0.01, 100))
    values[[20, 50, 51, 99]] *= 3
    found = change_points(values)
    assert found.changes == []
    assert np.flatnonzero(found.outliers).tolist() == [20, 50, 51, 99]


@pytest.mark.parametrize("bad", [[1.0, 0.0], [1.0, -1.0], [1.0, float("nan")], [float("inf")]], ids=str)
def test_values_that_are_none(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="positive"):
        change_points(np.array(bad))


@pytest.mark.parametrize("count", range(12))
def test_short_series(count: int) -> None:
    assert change_points(np.ones(count)).changes == []
