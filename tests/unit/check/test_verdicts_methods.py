"""What the methods say of pairs of recorded runs, of which the true change is known."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
DEFINITE = ("right", "wrong")


@pytest.fixture(scope="module")
def counted() -> Any:
    path = ROOT / "benchmarks/verdicts_methods.py"
    spec = importlib.util.spec_from_file_location("verdicts_methods", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.measure(32, list(module.OF_CALLS))


@pytest.mark.slow
def test_unchanged_pairs_of_a_quiet_machine_are_no_definite_change(counted: Any) -> None:
    for data, methods in counted.items():
        for method, by_effect in methods.items():
            alarms = sum(by_effect[0][kind] for kind in DEFINITE)
            if "quiet" in data:
                assert alarms <= 0.02 * by_effect[0].total(), (data, method)


@pytest.mark.slow
def test_a_large_slowdown_is_no_optimization(counted: Any) -> None:
    """But for the order of growth, which says nothing of amounts."""
    for data, methods in counted.items():
        for method, by_effect in methods.items():
            if "quiet" in data and method != "bmoe":
                assert not any(by_effect[effect]["wrong"] for effect in (20, 50, 100)), (data, method)
                assert by_effect[100]["right"], (data, method)
