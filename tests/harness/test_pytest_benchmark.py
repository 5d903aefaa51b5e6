"""Tests of pytest that measure by pytest-benchmark, run by the real one."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.errors import CollectorUnavailable, JobFailed
from perun.harness.pytest_benchmark import (
    PytestBenchmarkHarness,
    PytestBenchmarkParams,
    node_of,
    rounds_of,
)
from perun.plugin.suites import BenchmarkCommand, BenchmarkRound, HarnessContext, NamedBenchmark

Context = Callable[..., HarnessContext]
Alone = Callable[[BenchmarkCommand, Path], str]
HARNESS = PytestBenchmarkHarness()
PYTHON = Path(__file__).parents[2] / "build" / "harnesses" / "bin" / "python"


@pytest.fixture(scope="module")
def params() -> PytestBenchmarkParams:
    for python in (str(PYTHON), sys.executable):
        words = [python, "-c", "import pytest_benchmark"]
        if Path(python).exists() and not subprocess.run(words, capture_output=True, check=False).returncode:
            return PytestBenchmarkParams(python=python)
    pytest.skip("there is no pytest-benchmark: `make build/harnesses/.made` installs it")


def project(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(textwrap.dedent(text))
    return folder


def measured(
    folder: Path, context: Context, params: PytestBenchmarkParams, iterations: int = 0
) -> dict[str, BenchmarkRound]:
    """One round of all that is listed."""
    (program,) = HARNESS.build(folder, params, context())
    names = HARNESS.list(program, params, context())
    said = HARNESS.round(program, dict.fromkeys(names, iterations), params, context())
    assert list(said) == list(names)
    return {str(name): one for name, one in said.items()}


TESTS = """
import pytest

@pytest.mark.parametrize("kind", ["a", "b-c"])
@pytest.mark.parametrize("size", [10, 1000])
def test_sum(benchmark, size, kind): benchmark(sum, range(size))

def test_plain(): raise AssertionError("not a benchmark")
def test_wrong(benchmark): assert benchmark(sum, [1]) == 2
def test_error(benchmark): benchmark(int, "x")
def test_skipped(benchmark): pytest.skip("needs Windows")
@pytest.mark.skip(reason="never")
def test_never(benchmark): benchmark(sum, [])
def test_unused(benchmark): pass
def test_twice(benchmark): benchmark(sum, []); benchmark(sum, [])

class TestGroup:
    def test_in_class(self, benchmark):
        @benchmark
        def call(): return [0] * 1000
"""


def test_every_benchmark_of_a_suite_is_measured(
    tmp_path: Path, context: Context, params: PytestBenchmarkParams
) -> None:
    folder = project(
        tmp_path,
        {
            "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--benchmark-disable -x'\n",
            "tests/test_x.py": TESTS,
            "tests/test_other.py": "def test_it(): pass\n",
        },
    )
    assert HARNESS.detect(folder) == ["tests/test_x.py"]
    said = {
        name.removeprefix("tests/test_x.py::"): one for name, one in measured(folder, context, params).items()
    }
    sums = [f"test_sum {size}-{kind}" for size in (10, 1000) for kind in ("a", "b-c")]
    assert list(said) == [
        *sums, "test_wrong", "test_error", "test_skipped", "test_never", "test_unused", "test_twice",
        "TestGroup::test_in_class",
    ]  # fmt: skip
    assert {name: one.failure for name, one in said.items() if not one.values} == {
        "test_wrong": "assert 1 == 2",
        "test_error": "ValueError: invalid literal for int() with base 10: 'x'",
        "test_skipped": "skipped: needs Windows",
        "test_never": "skipped: never",
        "test_unused": "the test did not run, or measured nothing",
        "test_twice": "pytest_benchmark.fixture.FixtureAlreadyUsed: Fixture can only be used once. "
        "Previously it was used in benchmark.pedantic(...) mode.",
    }
    for name in [*sums, "TestGroup::test_in_class"]:
        (value,) = said[name].values
        assert (value.type, value.subtype, value.unit, len(value.samples)) == ("time", "", "s", 5)
        assert value.samples[0] > 0


CLOCK = """
import time
passed = 0
def call():
    global passed
    passed += 1
def test_it(benchmark, monkeypatch):
    monkeypatch.setattr(time, "perf_counter", lambda: passed)
    benchmark(call)
"""


def test_a_sample_takes_the_time_that_there_is(
    tmp_path: Path, context: Context, params: PytestBenchmarkParams
) -> None:
    folder = project(tmp_path, {"test_it.py": CLOCK})
    (program,) = HARNESS.build(folder, params, context())
    name = NamedBenchmark("test_it.py::test_it")
    assert HARNESS.round(program, {name: 0}, params, context(1000.0))[name].iterations == 1000


COUNTED = """
from pathlib import Path
LOG = Path({log!r})

def count(name, *_):
    with LOG.open("a") as file: file.write(name + "\\n")

def test_called(benchmark): benchmark(count, "called")
def test_woven(benchmark): benchmark.pedantic(count, args=("pedantic",), rounds=2, iterations=3)
def test_set_up(benchmark): benchmark.pedantic(count, setup=lambda: (("set up",), {{}}), rounds=3)
"""


def test_iterations_and_order_are_those_asked_for(
    tmp_path: Path, context: Context, params: PytestBenchmarkParams
) -> None:
    log = tmp_path / "log"
    folder = project(tmp_path, {"test_it.py": COUNTED.format(log=str(log))})
    (program,) = HARNESS.build(folder, params, context())
    names = HARNESS.list(program, params, context())
    assert not log.exists()
    wanted = dict(zip(names[::-1], (1, 4, 5), strict=True))
    said = HARNESS.round(program, wanted, params, context())
    lines = log.read_text().splitlines()
    assert list(dict.fromkeys(lines)) == ["set up", "pedantic", "called"]
    # A round that warms up, those that count, and the call for the result, which one operation gives itself.
    assert {name: lines.count(name) for name in lines} == {
        "set up": 3,
        "pedantic": 2 * 4 + 1,
        "called": 1 + 5,
    }
    assert [(one.iterations, len(one.values[0].samples)) for one in said.values()] == [(1, 3), (4, 2), (5, 5)]
    again = HARNESS.round(program, {names[1]: 0}, params, context())
    assert again[names[1]].iterations == 3


def test_what_cannot_be_imported_is_noted_and_the_rest_measured(
    tmp_path: Path, context: Context, params: PytestBenchmarkParams, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = (
        "def test_it(benchmark): benchmark(sum, [])\n",
        "def test_it(benchmark): pass\nimport nothing_like\n",
    )
    folder = project(tmp_path, {"test_good.py": good, "test_bad.py": bad})
    said = measured(folder, context, params)
    assert list(said) == ["test_good.py::test_it"]
    assert "test_bad.py: " in capsys.readouterr().out
    (program,) = HARNESS.build(folder, params, context())
    gone = [NamedBenchmark(f"{file}::test_it") for file in ("gone.py", "test_bad.py", "test_good.py")]
    answers = HARNESS.round(program, dict.fromkeys(gone, 1), params, context())
    assert [bool(one.failure) for one in answers.values()] == [True, True, False]
    assert HARNESS.round(program, {gone[0]: 1}, params, context())[gone[0]].failure
    (folder / "test_good.py").unlink()
    with pytest.raises(JobFailed, match=r"pytest collects no benchmarks: .*test_bad\.py"):
        measured(folder, context, params)


@pytest.mark.slow
def test_modules_of_the_working_copy_come_first_where_they_are_named(
    tmp_path: Path, context: Context, params: PytestBenchmarkParams
) -> None:
    test = "import mine\ndef test_it(benchmark): benchmark(mine.call)\n"
    folder = project(tmp_path, {"tests/test_it.py": test, "src/mine.py": "def call(): pass\n"})
    with pytest.raises(JobFailed, match="mine"):
        measured(folder, context, params)
    own = PytestBenchmarkParams(python=params.python, path=("src",))
    assert measured(folder, context, own, 3)["tests/test_it.py::test_it"].iterations == 3


@pytest.mark.slow
def test_a_suite_that_ends_the_process_is_an_error(
    tmp_path: Path, context: Context, params: PytestBenchmarkParams
) -> None:
    test = "import os\ndef test_it(benchmark): os._exit(3)\n"
    with pytest.raises(JobFailed, match="runs no benchmarks: "):
        measured(project(tmp_path, {"test_it.py": test}), context, params)
    with pytest.raises(JobFailed, match="collects no benchmarks"):
        measured(project(tmp_path, {"conftest.py": "1 / 0\n"}), context, params)


def test_what_is_missing_is_said(tmp_path: Path, context: Context) -> None:
    assert HARNESS.detect(tmp_path) == []
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    with pytest.raises(CollectorUnavailable, match="has no pytest and pytest-benchmark") as caught:
        HARNESS.build(tmp_path, PytestBenchmarkParams(python="bare/bin/python"), context())
    assert "pip install pytest pytest-benchmark" in caught.value.hint


@given(st.text(), st.text(min_size=1))
def test_names_are_those_of_pytest(name: str, parameters: str) -> None:
    assert node_of(NamedBenchmark(name)) == name
    assert node_of(NamedBenchmark(name, parameters)) == f"{name}[{parameters}]"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["benchmarks", "stats", "data", "iterations", "fullname"]), inner)
    ),
    max_leaves=5,
)
STATS = st.fixed_dictionaries(
    {"stats": st.fixed_dictionaries({"data": JSON, "iterations": JSON}), "fullname": JSON}
)


@given(JSON | st.fixed_dictionaries({"benchmarks": st.lists(STATS, max_size=2)}))
def test_any_report_is_read_or_refused(report: Any) -> None:
    try:
        for one in rounds_of(json.dumps(report), "pytest-benchmark").values():
            assert bool(one.values) != bool(one.failure)
    except JobFailed as error:
        assert "pytest-benchmark" in error.message


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(JobFailed):
        rounds_of(text, "pytest-benchmark")


ALONE = """
def call():
    with open({log!r}, "a") as file: file.write("x")
def test_it(benchmark): benchmark(call)
def test_other(benchmark): benchmark(call)
"""


def test_one_makes_so_many_operations_however_often_it_runs(
    tmp_path: Path, context: Context, params: PytestBenchmarkParams, alone: Alone
) -> None:
    log = tmp_path / "log"
    (program,) = HARNESS.build(
        project(tmp_path, {"test_it.py": ALONE.format(log=str(log))}), params, context()
    )
    for number in (0, 3):
        command = HARNESS.one(program, NamedBenchmark("test_it.py::test_it"), number, params, context())
        for _ in range(2):
            log.write_text("")
            alone(command, program.folder)
            assert len(log.read_text()) == command.iterations == (7 if number else 0)
