"""Bounds of loops: what small programs must give, and that no bound is below what compiled programs count."""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from compiling import CompilerCache
from counted import Comparison, bounds_of, compare, counting_functions
from perun.bounds.analysis import AnalysisOptions, analyse
from perun.bounds.front.read import read
from perun.bounds.front.unit import ReadOptions
from perun.bounds.paths import TooManyPaths
from random_programs import function, functions

PROGRAMS = sorted((Path(__file__).parent / "bounds" / "programs").glob("*.c"))
_EXPECTED = re.compile(r"// (bound|class): (.+)\n// why: .+\n")
_AT_ONCE = 50


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_has_the_bound_that_its_author_expects(path: Path) -> None:
    match = _EXPECTED.match(path.read_text(encoding="utf-8"))
    assert match, f"{path}: the first lines say what is expected, and why"
    kind, expected = match.groups()
    unit = read(str(path), ReadOptions())
    assert unit.unreadable == ()
    (function,) = (each for each in unit.functions if each.name.rstrip("_") == path.stem)
    answer = analyse(function, unit, AnalysisOptions())
    assert (answer.bound if kind == "bound" else answer.cls) == expected


def test_there_are_sixty_programs() -> None:
    assert len(PROGRAMS) >= 60


def test_loops_never_run_more_often_than_the_bounds_of_small_programs_say(compiled_once, tmp_path) -> None:
    parts, declared, bounds = [], [], {}
    for path in PROGRAMS:
        if path.stem == "recursive":  # it counts what its calls do, too, which its bound leaves out
            continue
        parts += counting_functions(path)
        declared += _DECLARATION.findall(path.read_text(encoding="utf-8"))
        bounds |= bounds_of(path)
    result = compare(parts, bounds, tmp_path, compiled_once, runs=30, preamble="\n".join(declared))
    assert result.violations == [] and result.finite >= 4_000


_DECLARATION = re.compile(r"^(?:typedef|enum|struct|static int \w+ =|int \w+;).*;?$", re.MULTILINE)


def test_loops_never_run_more_often_than_the_bounds_of_random_programs_say(compiled_once, tmp_path) -> None:
    result = _compared(_random_programs(12), compiled_once, tmp_path, runs=100)
    assert result.violations == [] and result.finite >= 500


@pytest.mark.parametrize("near", [3, 60])
def test_loops_never_run_more_often_than_bounds_that_are_found_near_them_say(
    compiled_once: CompilerCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, near: int
) -> None:
    """Each nest is analysed with the last locations before it only, as in functions that are too large."""

    def too_large(*_: object) -> None:
        raise TooManyPaths

    monkeypatch.setattr("perun.bounds.analysis.cost_of_calls", too_large)
    monkeypatch.setattr("perun.bounds.analysis.NEAR", near)
    result = _compared(_random_programs(5), compiled_once, tmp_path, runs=50)
    assert result.violations == [] and result.finite >= 50


@pytest.mark.slow
@pytest.mark.parametrize("number", range(10))
def test_loops_never_run_more_often_than_the_bounds_of_a_thousand_random_programs_say(
    compiled_once: CompilerCache, tmp_path: Path, number: int
) -> None:
    """A hundred programs in each part; all of them together make 200,000 comparisons at least."""
    result = _compared(_random_programs(100, number), compiled_once, tmp_path, runs=200)
    assert result.violations == [] and result.finite >= 20_000


def _random_programs(number: int, start: int = 0) -> list[str]:
    """So many different programs, the same at each run for the same start."""
    found: dict[str, None] = {}

    @seed(start)
    @settings(
        max_examples=3 * number, database=None, phases=[Phase.generate], deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(functions())
    def collect(body: str) -> None:
        if len(found) < number:
            found[body] = None

    collect()
    return list(found)


def _compared(bodies: list[str], compile_once: CompilerCache, folder: Path, runs: int) -> Comparison:
    """Compare in groups, each of them one compiled program."""
    whole = Comparison(0, 0, [])
    for begin in range(0, len(bodies), _AT_ONCE):
        source = folder / f"random_{begin}.c"
        group = enumerate(bodies[begin : begin + _AT_ONCE])
        source.write_text("\n".join(function(f"f{begin + number}", body) for number, body in group))
        result = compare(list(counting_functions(source)), bounds_of(source), folder, compile_once, runs)
        whole.compared += result.compared
        whole.finite += result.finite
        whole.violations += result.violations
    return whole
