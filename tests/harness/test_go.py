"""The harness of Go, with real packages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.errors import CollectorUnavailable, JobFailed
from perun.harness.go import GoHarness, GoParams, parsed
from perun.plugin.suites import (
    BenchmarkCommand,
    BenchmarkRound,
    HarnessContext,
    NamedBenchmark,
    SuiteProgram,
    ToolOutput,
)

Context = Callable[..., HarnessContext]
Alone = Callable[[BenchmarkCommand, Path], str]
GO = GoHarness()
CACHE = os.environ.get("GOCACHE") or str(Path.home() / ".cache" / "go-build")
"""Of the user, whose home the tests do not see: else each test would build the standard library anew."""
needs_go = pytest.mark.skipif(not shutil.which("go"), reason="there is no Go")
MODULE = "module example.com/thing/v2\n\ngo 1.19\n"
ROOT = """package thing
import ("fmt"; "testing")
var sink []byte
func work(b *testing.B, times int) {
    for i := 0; i < b.N; i++ { for k := 0; k < times; k++ { sink = make([]byte, 64) } }
}
func BenchmarkWork(b *testing.B) { work(b, 100) }
func BenchmarkWorkers(b *testing.B) { work(b, 1) }
func BenchmarkSizes(b *testing.B) {
    for _, name := range []string{"size=10", "mode=a b+c(x)/[y]|{z}^$."} {
        b.Run(name, func(b *testing.B) {
            b.SetBytes(10); work(b, 2); b.ReportMetric(3.5, "hits/op")
        })
    }
    b.Run("deep", func(b *testing.B) { b.Run("x-8", func(b *testing.B) { work(b, 3) }) })
}
func BenchmarkFails(b *testing.B) { b.Fatal("no such thing") }
func BenchmarkSkips(b *testing.B) { b.Skip("not today") }
func BenchmarkPanics(b *testing.B) { sink[len(sink)+b.N] = 1 }
func BenchmarkPrints(b *testing.B) { fmt.Print("printed"); b.Log("hello\\nBenchmarkNone"); work(b, 1) }
func TestFails(t *testing.T) { t.Fatal("tests do not run") }
"""
INNER = """package inner_test
import ("os"; "testing")
func BenchmarkRead(b *testing.B) {
    for i := 0; i < b.N; i++ { if _, err := os.ReadFile("testdata/x"); err != nil { b.Fatal(err) } }
}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two modules with three packages with benchmarks, and what is none of them."""
    monkeypatch.setenv("GOCACHE", CACHE)
    monkeypatch.setenv("GOFLAGS", "-mod=mod")
    monkeypatch.setenv("GOTOOLCHAIN", "local")
    files = {
        "go.mod": MODULE, "a_test.go": ROOT, "a.go": "package thing\n",
        "inner/s.go": "package inner\n", "inner/s_test.go": INNER, "inner/testdata/x": "hi",
        "inner/testdata/y_test.go": ROOT, "plain/p_test.go": "package plain\n",
        "tool/go.mod": MODULE.replace("thing", "tool"),
        "tool/t_test.go": 'package tool\nimport "testing"\nfunc BenchmarkTool(b *testing.B) {}\n',
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "project" / name).write_text(text)
    return tmp_path / "project"


def test_it_finds_the_files_with_benchmarks(project: Path) -> None:
    assert GO.detect(project) == ["a_test.go", "inner/s_test.go", "tool/t_test.go"]
    assert GO.detect(project / "plain") == []


@needs_go
def test_each_benchmark_is_measured_at_its_number_of_operations(project: Path, context: Context) -> None:
    ctx = context()
    programs = GO.build(project, GoParams(), ctx)
    assert [program.name for program in programs] == ["", "inner", "tool"]
    found = [(program, GO.list(program, GoParams(), context())) for program in programs]
    assert [str(one) for _, names in found for one in names] == [
        "BenchmarkWork", "BenchmarkWorkers", "BenchmarkSizes size=10",
        "BenchmarkSizes mode=a_b+c(x)/[y]|{z}^$.",
        "BenchmarkSizes deep/x-8", "BenchmarkFails", "BenchmarkSkips", "BenchmarkPanics", "BenchmarkPrints",
        "inner.BenchmarkRead", "tool.BenchmarkTool",
    ]  # fmt: skip
    rounds: dict[str, BenchmarkRound] = {}
    for program, names in found:
        wanted = {name: 7 + number for number, name in enumerate(names)}
        answered = GO.round(program, wanted, GoParams(), context())
        assert list(answered) == list(wanted)
        assert all(one.iterations == (0 if one.failure else wanted[name]) for name, one in answered.items())
        rounds |= {str(name): one for name, one in answered.items()}
    failures = {name: one.failure for name, one in rounds.items() if one.failure}
    assert list(failures) == ["BenchmarkFails", "BenchmarkSkips", "BenchmarkPanics"]
    assert "no such thing" in failures["BenchmarkFails"]
    assert "skipped" in failures["BenchmarkSkips"]
    assert "index out of range" in failures["BenchmarkPanics"]
    values = {(one.type, one.subtype): one for one in rounds["BenchmarkSizes size=10"].values}
    assert list(values) == [
        ("time", ""), ("printed", "MB/s"), ("printed", "hits/op"), ("memory", "allocated"),
        ("memory", "allocations"),
    ]  # fmt: skip
    assert values["printed", "MB/s"].larger_is_better and not values["printed", "hits/op"].larger_is_better
    assert values["memory", "allocations"].samples == (2,) * 5
    assert not any(value.is_count for value in values.values())  # they vary, see the harness
    assert 0 < values["time", ""].samples[0] < 1


@needs_go
def test_without_a_number_it_finds_one(project: Path, context: Context) -> None:
    (program, *_) = GO.build(project, GoParams(packages=(".",)), context())
    name = NamedBenchmark("BenchmarkWork")
    one = GO.round(program, {name: 0}, GoParams(), context(seconds=0.01))[name]
    seconds = one.iterations * one.values[0].samples[0]
    assert one.iterations > 1 and 0.005 < seconds < 1  # an operation takes some microseconds
    again = GO.round(program, {name: one.iterations}, GoParams(), context())[name]
    assert again.iterations == one.iterations


@pytest.mark.slow
@needs_go
def test_more_work_is_seen_in_counts(project: Path, context: Context) -> None:
    name = NamedBenchmark("BenchmarkWork")

    def allocations() -> float:
        (program,) = GO.build(project, GoParams(packages=(".",)), context())[:1]
        one = GO.round(program, {name: 100}, GoParams(), context())[name]
        return {value.subtype: value.samples[0] for value in one.values}["allocations"]

    before = allocations()
    (project / "a_test.go").write_text(ROOT.replace("work(b, 100)", "work(b, 130)"))
    assert (before, allocations()) == (100, 130)


@needs_go
def test_what_cannot_be_built_says_why(project: Path, context: Context) -> None:
    (project / "inner" / "s_test.go").write_text(INNER + "\nvar x int = nonsense\n")
    with pytest.raises(JobFailed, match="nonsense"):
        GO.build(project, GoParams(), context())
    notes: list[str] = []
    assert GO.build(project, GoParams(packages=("./plain",)), context(note=notes.append)) == []
    assert notes == ["no package of ./plain has benchmarks"]
    with pytest.raises(JobFailed, match="not in"):
        GO.build(project / "inner", GoParams(packages=("../",)), context())


def test_without_go_it_says_what_installs_it(
    project: Path, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(project))
    with pytest.raises(CollectorUnavailable, match="go is not installed") as problem:
        GO.build(project, GoParams(), context())
    assert "golang" in problem.value.hint


def test_a_program_that_is_none_fails_by_name(tmp_path: Path, context: Context) -> None:
    odd = SuiteProgram(("/bin/echo",), tmp_path)
    assert GO.list(odd, GoParams(), context()) == []
    name = NamedBenchmark("BenchmarkX", "a/b")
    assert "gave no result" in GO.round(odd, {name: 3}, GoParams(), context())[name].failure
    with pytest.raises(JobFailed):
        GO.list(SuiteProgram((str(tmp_path / "gone"),), tmp_path), GoParams(), context())


@pytest.mark.parametrize(
    ("text", "operations", "samples"),
    [
        ("BenchmarkX-8 \tprinted\n   7\t  8853 ns/op\nPASS", 7, [8853e-9]),
        ("printedBenchmarkX\t5\t 1e+06 ns/op\t NaN q/s\t+Inf z\t 3 y", 5, [1e-3, 3]),
        ("BenchmarkX\t5\t 77 q/s", 5, [77]),
        ("BenchmarkX\t5\nPASS", 0, []),
        ("BenchmarkX\t" + "9" * 5000 + "\t 1 ns/op", 0, []),
        ("BenchmarkX\t0\t 1 ns/op", 0, []),
        ("1\ta b", 0, []),
    ],
)
def test_lines_of_results(text: str, operations: int, samples: list[float]) -> None:
    one = parsed(ToolOutput(0, text, ""))
    assert (one.iterations, [value.samples[0] for value in one.values]) == (
        operations,
        pytest.approx(samples),
    )
    assert bool(one.failure) == (not samples)


_PIECES = st.sampled_from(
    ["Benchmark", "\t", " ", "\n", "1", "99", "ns/op", "B/op", "q/s", "-", "e", "nan", "--- FAIL: "]
)


@given(st.lists(_PIECES | st.text(max_size=4), max_size=30).map("".join), st.integers(0, 2))
def test_whatever_is_printed_is_a_result_or_a_reason(text: str, status: int) -> None:
    one = parsed(ToolOutput(status, text, text))
    assert bool(one.values) != bool(one.failure)
    assert bool(one.values) == (one.iterations > 0)


@needs_go
def test_one_makes_so_many_operations(project: Path, context: Context, alone: Alone) -> None:
    (program,) = GO.build(project, GoParams(packages=(".",)), context())[:1]
    for name in (NamedBenchmark("BenchmarkWork"), NamedBenchmark("BenchmarkSizes", "size=10")):
        nothing, five = (
            alone(GO.one(program, name, number, GoParams(), context()), program.folder) for number in (0, 5)
        )
        assert "ns/op" not in nothing and five.count("ns/op") == 1 and "\t       5\t" in five
