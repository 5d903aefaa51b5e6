"""The harness of Catch2, with real programs."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.errors import JobFailed
from perun.harness.catch2 import Catch2Harness, Catch2Params, parsed
from perun.plugin.suites import HarnessContext, NamedBenchmark, SuiteProgram, ToolOutput

Context = Callable[..., HarnessContext]
HARNESS = Catch2Harness()
PARAMS = Catch2Params()
DONE = ToolOutput(0, "", "")
SOURCE = """
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#define CATCH_CONFIG_MAIN
#define CATCH_CONFIG_ENABLE_BENCHMARKING
#include <catch2/catch.hpp>
#endif
#include <cstdio>
#include <stdexcept>
#include <thread>
static volatile int sink;
static int sum(int n) { for (int i = 0; i < n; i++) sink = sink + i; return sink; }
TEST_CASE("Sums, of ~[all] \\"kinds\\" * \\\\ <&>", "[!benchmark]") {
  std::puts("<printed>");
  BENCHMARK("first/second") { return sum(64); };
  SECTION("in a section") { BENCHMARK("sum") { return sum(1000); }; }
  SECTION("other") { BENCHMARK("sum") { return sum(1000); }; }
}
TEST_CASE("Crash", "[!benchmark]") { BENCHMARK("at once") { return *(volatile int*)nullptr; }; }
TEST_CASE("Crash again", "[!benchmark]") { BENCHMARK("at once") { return *(volatile int*)nullptr; }; }
TEST_CASE("Throw", "[!benchmark]") {
  BENCHMARK("throwing") { if (sum(1) >= 0) throw std::runtime_error("no <data>"); return 1; };
}
TEST_CASE("Slow", "[bench]") {
  BENCHMARK("sleep") { std::this_thread::sleep_for(std::chrono::milliseconds(2)); return 1; };
  REQUIRE(1 == 2);
}
TEST_CASE("a test", "[unit]") { throw std::runtime_error("tests do not run"); }
"""
FIRST = 'Sums, of ~[all] "kinds" * \\ <&>'


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose build has made a program."""
    if not shutil.which("g++"):
        pytest.skip("there is no g++")
    folder = tmp_path_factory.mktemp("project")
    (folder / "bench.cpp").write_text(SOURCE)
    (folder / "build").mkdir()
    newer = ["g++", "-fsyntax-only", "-include", "catch2/catch_all.hpp", "-x", "c++", "/dev/null"]
    is_newer = not subprocess.run(newer, capture_output=True, check=False).returncode
    libraries = ["-lCatch2Main", "-lCatch2"] if is_newer else []
    done = subprocess.run(
        ["g++", "-O0", "bench.cpp", "-o", "build/bench", *libraries],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "catch2/catch.hpp" in done.stderr:
        pytest.skip("there is no catch2")
    assert done.returncode == 0, done.stderr
    return folder


def test_it_finds_the_files_with_benchmarks(tmp_path: Path) -> None:
    (tmp_path / "bench.cpp").write_text(SOURCE)
    (tmp_path / "google.cc").write_text("#include <benchmark/benchmark.h>\nBENCHMARK(x);")
    (tmp_path / "test.cpp").write_text('#include "catch.hpp"\nTEST_CASE("x") {}')
    assert HARNESS.detect(tmp_path) == ["bench.cpp"]


@pytest.mark.slow
def test_each_benchmark_is_measured(compiled: Path, context: Context) -> None:
    (program,) = HARNESS.build(compiled, PARAMS, context())
    assert program.name == "build/bench"
    names = HARNESS.list(program, PARAMS, context())
    assert [str(name) for name in names] == [
        f"{FIRST}/first/second", f"{FIRST}/in a section/sum", f"{FIRST}/other/sum",
        "Crash/at once", "Crash again/at once", "Throw/throwing", "Slow/sleep",
    ]  # fmt: skip
    rounds = HARNESS.round(program, dict.fromkeys(reversed(names), 3), PARAMS, context())
    assert list(rounds) == names[::-1]
    assert [rounds[name].iterations for name in names] == [3, 3, 3, 0, 0, 0, 3]
    assert [len(value.samples) for name in names for value in rounds[name].values] == [2, 1, 1, 1]
    assert ["SIGSEGV" in rounds[name].failure for name in names[3:5]] == [True, True]
    assert rounds[names[5]].failure == "no <data>"
    assert 2e-3 < rounds[names[6]].values[0].samples[0] < 0.1
    gone = NamedBenchmark("Gone/x")
    assert HARNESS.round(program, {gone: 1}, PARAMS, context())[gone].failure == "it is not there"


@pytest.mark.slow
def test_without_a_number_it_finds_one(compiled: Path, context: Context) -> None:
    notes: list[str] = []
    named = Catch2Params(programs=("build/bench",), tests="Sums*,Slow")
    (program,) = HARNESS.build(compiled, named, context(note=notes.append))
    names = HARNESS.list(program, named, context())
    rounds = HARNESS.round(program, dict.fromkeys(names, 0), named, context(seconds=0.02))
    assert rounds[NamedBenchmark("Slow/sleep")].iterations in (4, 8)
    first = {rounds[name].iterations for name in names[:3]}
    assert len(first) == 1 and min(first) > 10
    assert notes == []
    HARNESS.build(compiled, Catch2Params(tests="[none]"), context(note=notes.append))
    assert "no test case of build/bench is [none]" in notes[0]


def test_programs_that_are_none_fail_by_name(tmp_path: Path, context: Context) -> None:
    notes: list[str] = []
    assert HARNESS.build(tmp_path, PARAMS, context(note=notes.append)) == []
    assert "execute.pre_run" in notes[0]
    (tmp_path / "odd").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "odd").chmod(0o755)
    with pytest.raises(JobFailed, match="does not list its test cases"):
        HARNESS.build(tmp_path, Catch2Params(programs=("odd",)), context())
    odd = SuiteProgram(("/bin/true",), tmp_path, data={"tests": ["x"]})
    assert HARNESS.list(odd, PARAMS, context()) == []
    name = NamedBenchmark("x/y")
    assert HARNESS.round(odd, {name: 0}, PARAMS, context())[name].failure == "it is not there"


def result(mean: str, samples: str = "2", iterations: str = "7") -> str:
    return (
        f'<BenchmarkResults name=" y " samples="{samples}" iterations="{iterations}">'
        f'<mean value="{mean}"/></BenchmarkResults>'
    )


@pytest.mark.parametrize(
    "text", [result("nan"), result("x"), result("-1"), result("1", "x"), result("1", "1e999")]
)
def test_numbers_that_are_none_fail_by_name(text: str) -> None:
    with pytest.raises(JobFailed, match="Catch2 wrote"):
        parsed(f'<Catch><TestCase name="x">{text}', {}, DONE)


def test_what_is_cut_off_counts_as_far_as_it_goes() -> None:
    measured: dict[str, object] = {}
    whole = f'<Catch><Group><TestCase name="x"><Section name="s">{result("2e3")}{result("4e3")}</Section>'
    cut = whole + '</TestCase><TestCase name="z"><BenchmarkResults name="w"><fai'
    assert parsed(cut, measured, ToolOutput(139, "", "")) == "z"  # type: ignore[arg-type]
    assert measured == {"x/s/y": ("x", [2e-6, 4e-6], 14, ""), "z/w": ("z", [], 0, "it ended with status 139")}


TAGS = st.sampled_from([
    "<Catch>", "</Catch>", '<TestCase name="x">', "</TestCase>", '<Section name="s">', "<TestCase>", "&x;",
    "<", "</Section>", result("1"), result("0", "0"), "<BenchmarkResults>",
    '<BenchmarkResults name="z"><failed message="m"/></BenchmarkResults>',
])  # fmt: skip


@given(st.lists(TAGS | st.text(max_size=3)).map("".join))
def test_whatever_is_written_is_read_as_far_as_it_goes(text: str) -> None:
    for one in (text, "<Catch><TestCase>" + text, "<Catch>" + "<Section>" * 20_000):
        measured: dict[str, object] = {}
        parsed(one, measured, DONE)  # type: ignore[arg-type]
        assert all(bool(found[1]) or bool(found[3]) for found in measured.values())  # type: ignore[index]
