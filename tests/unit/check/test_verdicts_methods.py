"""What the methods say of pairs of recorded runs, of which the true change is known."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
DEFINITE = ("right", "wrong")
LARGE = 50


@pytest.fixture(scope="module")
def benchmark() -> Any:
    path = ROOT / "benchmarks/verdicts_methods.py"
    spec = importlib.util.spec_from_file_location("verdicts_methods", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assert_goals(counted: Any, most_false: float) -> None:
    """No more false alarms than that share, and no wrong sign at 20 % and more, on whatever machine."""
    for data, methods in counted.items():
        for method, by_effect in methods.items():
            alarms = sum(by_effect[0][kind] for kind in DEFINITE)
            # Of few answers, one false alarm is more than that already.
            assert alarms <= max(1, most_false * by_effect[0].total()), (data, method)
            for effect, counts in by_effect.items():
                assert effect < 20 or not counts["wrong"], (data, method, effect)


@pytest.mark.slow
def test_unchanged_functions_are_no_definite_change(benchmark: Any) -> None:
    """A few of the pairs. LREG and PREG say what FAST says."""
    methods = [method for method in benchmark.OF_CALLS if method not in ("lreg", "preg")]
    counted = benchmark.measure(2, methods, (0, LARGE))
    assert_goals(counted, 0.02)
    for data in ("calls, quiet", "calls, 5 rounds, quiet"):
        for method in ("fast", "int", "loc"):
            assert counted[data][method][LARGE]["right"], (data, method)


@pytest.mark.slow
def test_all_pairs(benchmark: Any) -> None:
    counted = benchmark.measure(64, benchmark.OF_CALLS)
    assert_goals(counted, 0.02)
    for data, methods in counted.items():
        for method in methods.keys() - {"bmoe", "hlr", "grow"}:
            if "quiet" in data:
                assert methods[method][100]["right"], (data, method)


@pytest.mark.slow
def test_unchanged_traces_pass_the_gate(benchmark: Any) -> None:
    assert set(benchmark.severe(benchmark.UNCHANGED).values()) == {benchmark.UNCHANGED}
