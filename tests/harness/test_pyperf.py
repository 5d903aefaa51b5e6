"""Scripts that measure by pyperf, run by the real one."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.errors import CollectorUnavailable, JobFailed
from perun.harness.pyperf import PyperfHarness, PyperfParams, round_of
from perun.plugin.suites import BenchmarkCommand, BenchmarkRound, HarnessContext, NamedBenchmark

Context = Callable[..., HarnessContext]
Alone = Callable[[BenchmarkCommand, Path], str]
HARNESS = PyperfHarness()
PYTHON = Path(__file__).parents[2] / "build" / "harnesses" / "bin" / "python"


@pytest.fixture(scope="module")
def params() -> PyperfParams:
    for python in (str(PYTHON), sys.executable):
        words = [python, "-c", "import pyperf"]
        if Path(python).exists() and not subprocess.run(words, capture_output=True, check=False).returncode:
            return PyperfParams(python=python)
    pytest.skip("there is no pyperf: `make build/harnesses/.made` installs it")


def measured(
    folder: Path, script: str, context: Context, params: PyperfParams, iterations: int = 0
) -> dict[str, BenchmarkRound]:
    """One round of all that the script lists."""
    (folder / "bench_it.py").write_text(textwrap.dedent(script))
    (program,) = HARNESS.build(folder, params, context())
    assert program.name == "bench_it.py"
    names = HARNESS.list(program, params, context())
    said = HARNESS.round(program, dict.fromkeys(names, iterations), params, context())
    assert list(said) == list(names)
    return {str(name): one for name, one in said.items()}


SCRIPT = """
import pyperf

def fail(): raise ValueError("of no use")
async def coroutine(): pass
def loops(number): return 1.5 * number

if __name__ == "__main__":
    runner = pyperf.Runner()
    runner.metadata["description"] = "several"
    print("printed")
    runner.bench_func("sum of ten", sum, range(10))
    runner.bench_func("fails", fail)
    runner.timeit("sum", "sum(x)", setup="x = range(1000)")
    runner.bench_async_func("async", coroutine)
    runner.bench_time_func("own time", loops, inner_loops=3)
    runner.bench_time_func("bytes", loops, metadata={"unit": "byte"})
    runner.bench_command("command", ["true"])
"""


def test_every_benchmark_of_a_script_is_measured(
    tmp_path: Path, context: Context, params: PyperfParams
) -> None:
    said = measured(tmp_path, SCRIPT, context, params)
    assert HARNESS.detect(tmp_path) == ["bench_it.py"]
    assert list(said) == ["sum of ten", "fails", "sum", "async", "own time", "bytes", "command"]
    assert said.pop("fails") == BenchmarkRound(0, (), "ValueError: of no use")
    assert said.pop("bytes").values[0][:4] == ("memory", "peak", "B", (1.5,))
    assert said["own time"].values[0].samples == (0.5,)
    assert said["own time"].iterations == 1
    for name in ("sum of ten", "sum", "async"):
        (value,) = said[name].values
        assert value[:3] == ("time", "", "s")
        assert value.samples[0] > 0
    assert said["command"].values[0].samples[0] > 0


CLOCK = """
import pyperf, time
passed = 0
def call():
    global passed
    passed += 1
time.perf_counter = lambda: passed
pyperf.Runner().bench_func("second", call)
"""


def test_a_sample_takes_the_time_that_there_is(
    tmp_path: Path, context: Context, params: PyperfParams
) -> None:
    (tmp_path / "bench_it.py").write_text(CLOCK)
    (program,) = HARNESS.build(tmp_path, params, context())
    name = NamedBenchmark("second")
    said = HARNESS.round(program, {name: 0}, params, context(1000.0))[name]
    assert (said.iterations, said.values[0].samples) == (1024, (1.0,))


COUNTED = """
import pyperf
def call(name):
    with open({log!r}, "a") as file: file.write(name + "\\n")
runner = pyperf.Runner()
runner.bench_func("one", call, "one")
runner.bench_func("two", call, "two")
"""


def test_iterations_are_those_asked_for(tmp_path: Path, context: Context, params: PyperfParams) -> None:
    log = tmp_path / "log"
    said = measured(tmp_path, COUNTED.format(log=str(log)), context, params, 7)
    assert [one.iterations for one in said.values()] == [7, 7]
    lines = log.read_text().splitlines()  # one value warms up
    assert {name: lines.count(name) for name in lines} == {"one": 14, "two": 14}
    log.unlink()
    (program,) = HARNESS.build(tmp_path, params, context())
    names = [NamedBenchmark(one) for one in ("two", "gone", "one")]
    assert set(HARNESS.list(program, params, context())) == {names[0], names[2]}
    assert not log.exists()
    answers = HARNESS.round(program, dict.fromkeys(names, 2), params, context())
    assert list(answers) == names
    assert [one.failure for one in answers.values()] == ["", "the script does not have it", ""]
    assert log.read_text().split() == 4 * ["two"] + 4 * ["one"]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("raise SystemExit(3)", "status 3"),
        ("import os\nos._exit(0)", "ended before"),
    ],
)
def test_a_script_that_does_not_run_is_an_error(
    tmp_path: Path, context: Context, params: PyperfParams, script: str, why: str
) -> None:
    text = f"import pyperf\nrunner = pyperf.Runner()\n{script}\n"
    with pytest.raises(JobFailed, match=why):
        measured(tmp_path, text, context, params)


@pytest.mark.slow
def test_modules_of_the_working_copy_come_first_where_they_are_named(
    tmp_path: Path, context: Context, params: PyperfParams
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "mine.py").write_text("def call(): pass\n")
    script = "import mine, pyperf\npyperf.Runner().bench_func('it', mine.call)\n"
    with pytest.raises(JobFailed, match="mine"):
        measured(tmp_path, script, context, PyperfParams(params.python, (), ("bench_it.py",)))
    own = PyperfParams(params.python, ("src",), ("bench_it.py",))
    assert measured(tmp_path, script, context, own, 3)["it"].iterations == 3


def test_what_is_missing_is_said(tmp_path: Path, context: Context, params: PyperfParams) -> None:
    assert HARNESS.detect(tmp_path) == []
    with pytest.raises(JobFailed, match="no script makes a runner"):
        HARNESS.build(tmp_path, params, context())
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / ".venv")], check=True)
    with pytest.raises(CollectorUnavailable, match=r"\.venv/bin/python has no pyperf"):
        HARNESS.build(tmp_path, PyperfParams(), context())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["benchmarks", "runs", "values", "warmups", "metadata", "unit"]), inner
        )
    ),
    max_leaves=5,
)
RUN = st.fixed_dictionaries({"metadata": JSON, "values": JSON, "warmups": JSON})
REPORT = st.fixed_dictionaries(
    {"benchmarks": st.lists(st.fixed_dictionaries({"runs": st.lists(RUN, max_size=1)}), max_size=1)}
)


@given(JSON | REPORT)
def test_any_report_is_read_or_refused(report: Any) -> None:
    try:
        one = round_of(json.dumps(report))
        assert bool(one.values) != bool(one.failure)
    except JobFailed as error:
        assert "pyperf" in error.message


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(JobFailed):
        round_of(text)


ALONE = """
import pyperf
def call():
    with open({log!r}, "a") as file: file.write("x")
runner = pyperf.Runner()
runner.bench_func("other", sum, [1])
runner.bench_func("it", call)
"""


def test_one_makes_so_many_operations_however_often_it_runs(
    tmp_path: Path, context: Context, params: PyperfParams, alone: Alone
) -> None:
    log = tmp_path / "log"
    (tmp_path / "bench_it.py").write_text(ALONE.format(log=str(log)))
    (program,) = HARNESS.build(tmp_path, params, context())
    for number in (0, 3):
        command = HARNESS.one(program, NamedBenchmark("it"), number, params, context())
        for _ in range(2):
            log.write_text("")
            alone(command, program.folder)
            assert len(log.read_text()) == command.iterations == number
