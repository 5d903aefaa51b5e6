"""The harness of Google Benchmark, with real programs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.errors import JobFailed
from perun.harness.google_benchmark import GoogleBenchmarkHarness, GoogleBenchmarkParams, named, parsed
from perun.plugin.suites import BenchmarkCommand, HarnessContext, NamedBenchmark, SuiteProgram

Context = Callable[..., HarnessContext]
Alone = Callable[[BenchmarkCommand, Path], str]
HARNESS = GoogleBenchmarkHarness()
PARAMS = GoogleBenchmarkParams()
SOURCE = """
#include <benchmark/benchmark.h>
#include <string>
static volatile int sink;
static void Sum(benchmark::State& state) {
  long work = 0;
  for (auto _ : state) for (int i = 0; i < state.range(0); i++, work++) sink = sink + i;
  state.counters["work"] = benchmark::Counter(work, benchmark::Counter::kAvgIterations);
  state.SetItemsProcessed(work);
  state.SetComplexityN(state.range(0));
}
BENCHMARK(Sum)->Arg(FIRST)->Arg(5120)->Complexity();
static void Wrong(benchmark::State& state) { state.SkipWithError("no \\"data\\""); for (auto _ : state) {} }
BENCHMARK(Wrong);
template <class T> void Make(benchmark::State& state) {
  for (auto _ : state) { T made(30, 1); benchmark::DoNotOptimize(made); }
}
BENCHMARK_TEMPLATE(Make, std::string)->ArgName("size")->Arg(3)->UseRealTime()->Threads(2);
struct Fixed : benchmark::Fixture {};
BENCHMARK_DEFINE_F(Fixed, Run)(benchmark::State& state) { for (auto _ : state) sink = 1; }
BENCHMARK_REGISTER_F(Fixed, Run)->Iterations(17)->Repetitions(3)->Unit(benchmark::kMillisecond);
static void Whole(benchmark::State& state) { for (auto _ : state) sink = 1; }
BENCHMARK(Whole)->Name("(whole) [a+b]{1}^|.*?$\\\\d")->Repetitions(2)->ReportAggregatesOnly();
static void Crash(benchmark::State& state) { for (auto _ : state) __builtin_trap(); }
BENCHMARK(Crash);
BENCHMARK_MAIN();
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose build has made a program."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "first.cc").write_text(SOURCE)
    (folder / "build").mkdir()
    for name, first in (("first", 100), ("slower", 130)):
        command = [
            "g++",
            "-O1",
            f"-DFIRST={first}",
            "first.cc",
            "-o",
            f"build/{name}",
            "-lbenchmark",
            "-lpthread",
        ]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        except OSError:
            pytest.skip("there is no g++")
        if "benchmark.h" in done.stderr or "-lbenchmark" in done.stderr:
            pytest.skip("there is no libbenchmark-dev")
        assert done.returncode == 0, done.stderr
    os.replace(folder / "build" / "slower", folder / "slower.out")
    (folder / "build" / "script").write_text("#!/bin/sh\n# --benchmark_filter\n")
    (folder / "build" / "script").chmod(0o755)
    (folder / "slower.out").chmod(0o644)
    return folder


def values_of(
    program: SuiteProgram, name: NamedBenchmark, ctx: HarnessContext, wanted: int = 0
) -> dict[str, Any]:
    one = HARNESS.round(program, {name: wanted}, PARAMS, ctx)[name]
    assert not one.failure
    return {value.subtype: value for value in one.values}


def test_it_finds_the_files_with_benchmarks(tmp_path: Path) -> None:
    (tmp_path / "first.cc").write_text(SOURCE)
    (tmp_path / "catch.cc").write_text('#include "catch2/catch.hpp"\nBENCHMARK("x") { return 1; };')
    (tmp_path / "main.cc").write_text("#include <benchmark/benchmark.h>\nBENCHMARK_MAIN();")
    assert HARNESS.detect(tmp_path) == ["first.cc"]


def test_each_benchmark_is_measured(compiled: Path, context: Context) -> None:
    notes: list[str] = []
    (program,) = HARNESS.build(compiled, PARAMS, context(note=notes.append))
    assert program.name == "build/first"
    assert bool(notes) != program.data["fixed"]
    names = HARNESS.list(program, PARAMS, context())
    assert [tuple(name) for name in names] == [
        ("Sum", "100"), ("Sum", "5120"), ("Wrong", ""), ("Make<std::string>", "size:3/real_time/threads:2"),
        ("Fixed/Run", "iterations:17/repeats:3"), ("(whole) [a+b]{1}^|.*?$\\d", "repeats:2"), ("Crash", ""),
    ]  # fmt: skip
    rounds = HARNESS.round(program, dict.fromkeys(names, 40), PARAMS, context())
    assert list(rounds) == names
    failures = [one.failure for one in rounds.values()]
    assert [bool(one) for one in failures] == [False, False, True, False, False, True, True]
    assert (failures[2], failures[5]) == ('no "data"', "it reports aggregates only")
    assert failures[6].startswith("it ended with status 132")
    numbers = [one.iterations for one in rounds.values()]
    assert numbers[4] == 17
    if program.data["fixed"]:
        assert numbers == [40, 40, 0, 40, 17, 0, 0]
    assert [len(value.samples) for value in rounds[names[4]].values[:2]] == [3, 3]
    values = {(one.type, one.subtype): one for one in rounds[names[0]].values}
    assert set(values) == {
        ("time", ""),
        ("time", "cpu"),
        ("printed", "items_per_second"),
        ("printed", "work"),
    }
    assert values["printed", "items_per_second"].larger_is_better
    assert 0 < values["time", ""].samples[0] < 1e-4


def test_without_a_number_it_finds_one(compiled: Path, context: Context) -> None:
    (program,) = HARNESS.build(compiled, GoogleBenchmarkParams(programs=("build/first",)), context())
    name = NamedBenchmark("Sum", "100")
    one = HARNESS.round(program, {name: 0}, PARAMS, context(seconds=0.01))[name]
    assert 0.005 < one.iterations * one.values[0].samples[0] < 1


def test_more_work_is_seen_in_counts(compiled: Path, context: Context, tmp_path: Path) -> None:
    (program,) = HARNESS.build(compiled, PARAMS, context())
    slower = program._replace(argv=(str(tmp_path / "slower"),))
    (tmp_path / "slower").write_bytes((compiled / "slower.out").read_bytes())
    (tmp_path / "slower").chmod(0o755)
    before = values_of(program, NamedBenchmark("Sum", "100"), context())["work"].samples
    assert before == (100,)
    assert values_of(slower, NamedBenchmark("Sum", "130"), context())["work"].samples == (130,)
    gone = NamedBenchmark("Sum", "100")
    assert HARNESS.round(slower, {gone: 1}, PARAMS, context())[gone].failure == "it is not there"


def test_programs_that_are_none_fail_by_name(tmp_path: Path, context: Context) -> None:
    notes: list[str] = []
    assert HARNESS.build(tmp_path, PARAMS, context(note=notes.append)) == []
    assert "execute.pre_run" in notes[0]
    with pytest.raises(JobFailed, match="gone is not a program"):
        HARNESS.build(tmp_path, GoogleBenchmarkParams(programs=("gone",)), context())
    odd = SuiteProgram(("/bin/false",), tmp_path)
    with pytest.raises(JobFailed):
        HARNESS.list(odd, PARAMS, context())
    name = NamedBenchmark("x")
    assert "status 1" in HARNESS.round(odd, {name: 1}, PARAMS, context())[name].failure
    assert HARNESS.round(SuiteProgram(("/bin/true",), tmp_path), {name: 1}, PARAMS, context())[name].failure


@given(st.text(min_size=1).filter(lambda name: not name.startswith("/")))
def test_a_name_is_put_together_again(line: str) -> None:
    name, parameters = named(line)
    assert (f"{name}/{parameters}" if parameters else name) == line


def test_what_only_newer_versions_write() -> None:
    row = {
        "name": "A/threads:2", "run_name": "A/threads:2", "threads": 2, "iterations": 80, "time_unit": "us",
        "real_time": 3, "cpu_time": 5.0, "allocs_per_iter": 2.5, "max_bytes_used": 99,
        "bytes_per_second": 7.0, "bad": float("nan"),
    }  # fmt: skip
    one = parsed(json.dumps({"benchmarks": [row]}), "A/threads:2")
    assert one.iterations == 40
    assert [(one.type, one.subtype, one.unit, *one.samples, one.is_count) for one in one.values] == [
        ("time", "", "s", 3e-6, False), ("time", "cpu", "s", 5e-6, False),
        ("memory", "allocations", "", 2.5, True), ("memory", "peak", "B", 99, False),
        ("printed", "bytes_per_second", "B/s", 7, False),
    ]  # fmt: skip
    skipped = {**row, "skipped": True, "skip_message": "not today"}
    assert parsed(json.dumps({"benchmarks": [skipped]}), "A/threads:2").failure == "not today"


FIELDS = st.sampled_from(
    ["name", "iterations", "real_time", "time_unit", "threads", "work", "run_type", "skipped"]
)
ODD = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["A", "ns", "iteration"])
    | st.just([])
)


@given(st.lists(st.dictionaries(FIELDS, ODD).map(lambda row: {"name": "A", **row}) | ODD, max_size=3))
def test_whatever_is_written_is_a_result_or_a_named_error(rows: list[Any]) -> None:
    try:
        one = parsed(json.dumps({"benchmarks": rows}), "A")
    except JobFailed:
        return
    assert bool(one.values) != bool(one.failure)
    assert bool(one.values) == (one.iterations > 0)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"benchmarks": 1}', '{"benchmarks": [1]}'])
def test_no_answer_fails_by_name(text: str) -> None:
    with pytest.raises(JobFailed, match="Google Benchmark wrote"):
        parsed(text, "A")


def test_one_makes_so_many_operations(compiled: Path, context: Context, alone: Alone) -> None:
    (program,) = HARNESS.build(compiled, PARAMS, context())
    name = NamedBenchmark("Sum", "100")
    nothing, five = (HARNESS.one(program, name, number, PARAMS, context()) for number in (0, 5))
    assert (nothing.iterations, five.iterations) == (0, 5)
    assert "Sum/100" not in alone(nothing, program.folder)
    said = alone(five, program.folder)
    assert "Sum/100" in said and "Sum/5120" not in said
