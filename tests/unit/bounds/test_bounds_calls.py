"""The cost of calls, from summaries of the functions that are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from perun.bounds.analysis import AnalysisOptions, analyse
from perun.bounds.front.read import read
from perun.bounds.front.unit import ReadOptions

SOURCE = """\
static int len(int n) { int c = 0; for (int i = 0; i < n; i++) c++; return c; }
int twice(int n) { return len(n) + len(n - 1); }
int product(int n, int m) { int s = 0; for (int i = 0; i < n; i++) s += len(m); return s; }
int triangle(int n) { int s = 0; for (int i = 0; i < n; i++) s += len(i); return s; }
int factorial(int n) { return n <= 1 ? 1 : n * factorial(n - 1); }
int caller(int n) { return factorial(n); }
int never(int n) { if (n > 0 && n < 0) return len(n); return 0; }
"""
EXPECTED = {
    "len": "1 + max(n, 0)",
    "twice": "2 + max(0, (n + -1)) + max(n, 0)",
    "product": "1 + max(m, 0) × max(n, 0) + 2 × max(n, 0)",
    "triangle": "1 + max(0, (n + -1)) × max(n, 0) + 2 × max(n, 0)",
    "factorial": "inf",
    "caller": "inf",
    "never": "0",
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("calls") / "calls.c"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def test_calls_cost_what_the_function_called_does(source: Path) -> None:
    unit = read(str(source), ReadOptions())
    found = {each.name: analyse(each, unit, AnalysisOptions(calls=True)) for each in unit.functions}
    assert {name: bounds.bound for name, bounds in found.items()} == EXPECTED
    assert found["factorial"].reason == "it calls itself"


def test_calls_cost_nothing_by_default(source: Path) -> None:
    unit = read(str(source), ReadOptions())
    found = {each.name: analyse(each, unit).bound for each in unit.functions}
    assert found["product"] == "1 + max(n, 0)"
    assert found["caller"] == "0"


def test_back_edges_alone_are_one_less(source: Path) -> None:
    unit = read(str(source), ReadOptions())
    bounds = analyse(unit.functions[0], unit, AnalysisOptions(count="backedges"))
    assert bounds.bound == "max(n, 0)"
