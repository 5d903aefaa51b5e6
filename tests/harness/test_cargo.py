"""The harness of Rust, with what real programs have written, and real projects."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.errors import CollectorUnavailable, JobFailed
from perun.harness._rust import criterion_round, divan_leaves, divan_round, library_of, libtest_round
from perun.harness.cargo import CargoHarness, CargoParams
from perun.importer.criterion import CriterionImporter
from perun.plugin.interchange import ImportContext, ImportFile
from perun.plugin.params import NoParams
from perun.plugin.suites import BenchmarkCommand, BenchmarkRound, HarnessContext, NamedBenchmark, SuiteProgram
from perun.running.interchange import read_all
from shared import folder_of_run, made_once

Context = Callable[..., HarnessContext]
Alone = Callable[[BenchmarkCommand, Path], str]
CARGO = CargoHarness()
PARAMS = CargoParams()
HOMES = {
    "CARGO_HOME": os.environ.get("CARGO_HOME") or str(Path.home() / ".cargo"),
    "RUSTUP_HOME": os.environ.get("RUSTUP_HOME") or str(Path.home() / ".rustup"),
}
"""Of the user, whose home the tests do not see."""
DEBIAN = Path("/usr/share/cargo/registry")
needs_cargo = pytest.mark.skipif(not shutil.which("cargo"), reason="there is no cargo")
MOST_ROUNDS = 5
"""Of those that compare times: more of them where the machine is loaded."""
PACKAGE = '[package]\nname = "sums"\nversion = "0.1.0"\nedition = "2021"\n'

DIVAN = """\
tree           fastest       │ slowest       │ median        │ mean          │ samples │ iters
╰─ inner                     │               │               │               │         │
   ╰─ words                  │               │               │               │         │
      ╰─ c  d  28.57 ns      │ 43.33 ns      │ 39.23 ns      │ 37.04 ns      │ 3       │ 3000
               139.9 MB/s    │ 92.29 MB/s    │ 101.9 MB/s    │ 107.9 MB/s    │         │
               max alloc:    │               │               │               │         │
                 9           │ 9             │ 9             │ 9             │         │
                 9 B         │ 9 B           │ 9 B           │ 9 B           │         │
               alloc:        │               │               │               │         │
                 1           │ 1             │ 1             │ 1             │         │
                 1.5 KB      │ 1.5 KB        │ 1.5 KB        │ 1.5 KB        │         │
"""
THREADS = """\
tree        fastest       │ slowest       │ median        │ mean          │ samples │ iters
╰─ threads                │               │               │               │         │
   ├─ t=1   0.343 ns      │ 0.396 ns      │ 0.354 ns      │ 0.364 ns      │ 3       │ 3000
   ╰─ t=2   0.364 ns      │ 0.704 ns      │ 0.483 ns      │ 0.508 ns      │ 4       │ 4000
"""
IGNORED = """\
tree        fastest       │ slowest       │ median        │ mean          │ samples │ iters
╰─ ignored  (ignored)     │               │               │               │         │
"""
TREE = """\
tree
├─ boxes
├─ ignored       (ignored)
├─ plain
╰─ inner
   ├─ words
   ╰─ generic
      ├─ String
      ╰─ u8

"""
LIBTEST = """
running 1 test
test slow    ... bench:       9,172.12 ns/iter (+/- 1,696.92) = 10000 MB/s

test result: ok. 0 passed; 0 failed; 0 ignored; 1 measured; 2 filtered out; finished in 3.04s
"""
SAMPLE = '{"sampling_mode":"Linear","iters":[100.0,200.0],"times":[1000.0,3000.0]}'
CRITERION = "group/sum/10            time:   [7.8468 ns 25.951 ns 45.038 ns]\n"


def seconds_of(measured: BenchmarkRound) -> tuple[float, ...]:
    assert not measured.failure, measured.failure
    time = measured.values[0]
    assert (time.type, time.subtype, time.unit) == ("time", "", "s")
    return time.samples


def test_the_table_of_divan() -> None:
    measured = divan_round(DIVAN, 1000)
    assert seconds_of(measured) == pytest.approx([39.23e-9])
    assert [(v.subtype, v.unit, v.samples, v.is_count) for v in measured.values[1:]] == [
        ("allocated", "B", (1500.0,), True),
        ("allocations", "", (1.0,), True),
    ]
    assert measured.iterations == 1000
    assert "DIVAN_THREADS" in divan_round(THREADS, 1).failure
    assert divan_round(IGNORED, 1).failure == "is ignored"
    assert divan_round(DIVAN.replace("39.23 ns", "0 ns    "), 1).failure == "takes too short to be measured"


@pytest.mark.parametrize(
    ("text", "seconds"), [("1.5 µs", 1.5e-6), ("2 ms", 2e-3), ("3.25 s", 3.25), ("2 m", 120)]
)
def test_units_of_divan(text: str, seconds: float) -> None:
    assert seconds_of(divan_round(DIVAN.replace("39.23 ns", text), 1)) == pytest.approx([seconds])


def test_the_tree_of_divan() -> None:
    assert divan_leaves(TREE) == [
        "tree::boxes", "tree::ignored", "tree::plain", "tree::inner::words", "tree::inner::generic::String",
        "tree::inner::generic::u8",
    ]  # fmt: skip


def test_the_line_of_the_standard_library() -> None:
    assert seconds_of(libtest_round(LIBTEST)) == pytest.approx([9172.12e-9])
    assert seconds_of(libtest_round(LIBTEST.replace("9,172.12", "1,234,567"))) == pytest.approx([1234567e-9])
    assert libtest_round("test tests::skipped ... ignored\n").failure == "is ignored"
    assert libtest_round(LIBTEST.replace("9,172.12", "0.00")).failure


def test_the_samples_of_criterion() -> None:
    measured = criterion_round(CRITERION, [SAMPLE])
    assert seconds_of(measured) == pytest.approx([10e-9, 15e-9])
    assert measured.iterations == 150
    assert criterion_round(CRITERION.replace(" ns", " cycles"), [SAMPLE]).failure == (
        "criterion measures cycles here, and no times"
    )
    assert criterion_round("", []).failure == "criterion measured no benchmarks of this name"
    for broken in (
        "",
        "[]",
        "null",
        '{"iters": [0], "times": [1]}',
        '{"iters": [], "times": []}',
        "[" * 100_000,
    ):
        assert criterion_round(CRITERION, [broken]).failure


LINES = [line for text in (DIVAN, THREADS, IGNORED, TREE, LIBTEST) for line in text.splitlines()]
ODD = ["│", "alloc:", "1e400 ns", "٣ ns", "1 │" * 6, '{"iters":', SAMPLE]
pieces = st.lists(st.one_of(st.sampled_from(LINES), st.text(max_size=20), st.sampled_from(ODD)))


@given(pieces, st.sampled_from(["\n", "", " "]))
def test_odd_answers_are_a_reason(parts: list[str], between: str) -> None:
    text = between.join(parts)
    divan_leaves(text)
    for measured in (divan_round(text, 1), libtest_round(text), criterion_round(text, [text])):
        assert bool(measured.failure) != bool(measured.values)
        assert all(0 < one < float("inf") for value in measured.values[:1] for one in value.samples)


def test_what_is_found(tmp_path: Path) -> None:
    for name, text in {
        "benches/a.rs": "criterion_main!(benches);",
        "benches/common/mod.rs": "pub fn helper() {}",
        "deep/benches/b.rs": "fn main() { divan::main(); }",
        "src/lib.rs": "#[bench]\nfn inner(b: &mut Bencher) {}",
        "src/main.rs": "fn main() {}",
        "target/c.rs": "criterion_main!(benches);",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert CARGO.detect(tmp_path) == ["benches/a.rs", "deep/benches/b.rs", "src/lib.rs"]


def test_without_cargo(tmp_path: Path, context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CollectorUnavailable, match="cargo is not installed"):
        CARGO.build(tmp_path, PARAMS, context())


@pytest.mark.parametrize("library", ["criterion", "divan", "libtest"])
def test_a_program_that_answers_nothing_of_it(tmp_path: Path, context: Context, library: str) -> None:
    program = tmp_path / "odd"
    program.write_text(
        "#!/bin/sh\necho 'a: benchmark'; printf '\\377\\0'; case $* in *--list*) ;; *) exit 3; esac\n"
    )
    program.chmod(0o755)
    odd = SuiteProgram(
        (str(program),), tmp_path, "odd", {"library": library, "target": "odd", "whole_seconds": False}
    )
    names = CARGO.list(odd, PARAMS, context())
    assert names == [NamedBenchmark("odd.a")]
    measured = CARGO.round(odd, {names[0]: 0}, PARAMS, context())
    assert measured[names[0]].failure.startswith("ended with status 3")
    assert library_of(program) == ""


def project(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def homes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in HOMES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CARGO_BUILD_JOBS", "1")


@needs_cargo
@pytest.mark.usefixtures("homes")
def test_a_project_that_does_not_compile(tmp_path: Path, context: Context) -> None:
    project(tmp_path, {"Cargo.toml": PACKAGE, "src/lib.rs": "", "benches/a.rs": "criterion_main!(nothing);"})
    with pytest.raises(JobFailed, match="cannot find macro `criterion_main`"):
        CARGO.build(tmp_path, PARAMS, context())


LIBRARY = """
pub fn sum(n: u64) -> u64 { (0..std::hint::black_box(n)).fold(0, |a, x| std::hint::black_box(a + x * x)) }
"""
SUMS = """
use criterion::*;
use sums::sum;
fn all(c: &mut Criterion) {
    c.bench_function("plain (and [more])", |b| b.iter(|| sum(500)));
    let mut group = c.benchmark_group("group");
    for n in [500u64, 600] {
        group.bench_with_input(BenchmarkId::new("sum", n), &n, |b, n| b.iter(|| sum(*n)));
    }
    group.finish();
    for n in 0..6 { c.bench_function(&format!("n{}", n), |b| b.iter(|| sum(500))); }
    c.bench_function("fails", |_| if std::env::args().any(|one| one.contains("fails")) { panic!("no good") });
}
criterion_group!(benches, all);
criterion_main!(benches);
"""
TREES = """
#[global_allocator]
static ALLOCATOR: divan::AllocProfiler = divan::AllocProfiler::system();
fn main() { divan::main(); }
#[divan::bench]
fn plain() -> u64 { sums::sum(500) }
#[divan::bench(args = [1, 600])]
fn boxes(n: usize) -> Vec<u8> { vec![1; std::hint::black_box(n)] }
#[divan::bench]
fn fails() { panic!("no good") }
mod inner {
    #[divan::bench(args = ["a b"], min_time = 1)]
    fn words(word: &str) -> String { word.to_uppercase() }
    #[divan::bench]
    fn slow() -> u64 { sums::sum(650) }
}
"""
NIGHTLY = """
#![feature(test)]
extern crate test;
#[bench] fn plain(b: &mut test::Bencher) { b.iter(|| sums::sum(500)); }
#[bench] fn fails(_: &mut test::Bencher) { panic!("no good"); }
#[bench] #[ignore] fn skipped(b: &mut test::Bencher) { b.iter(|| 1); }
#[test] fn is_no_benchmark() {}
"""
LIBRARIES = {
    "criterion": ("a", '[[bench]]\nname = "a"\nharness = false\n', SUMS),
    "divan": ("a", '[[bench]]\nname = "a"\nharness = false\n', TREES),
}


def made(factory: pytest.TempPathFactory, library: str) -> Path:
    """A project whose dependencies are built once a run; a copy of it is the test's own."""
    name, bench, text = LIBRARIES[library]
    features = (
        ', default-features = false, features = ["cargo_bench_support"]' if library == "criterion" else ""
    )
    files = {
        "Cargo.toml": f'{PACKAGE}[dev-dependencies]\n{library} = {{ version = "*"{features} }}\n{bench}',
        "src/lib.rs": LIBRARY,
        f"benches/{name}.rs": text,
    }
    if list(DEBIAN.glob(f"{library}-[0-9]*")):
        source = f'[source.crates-io]\nreplace-with = "debian"\n[source.debian]\ndirectory = "{DEBIAN}"\n'
        files[".cargo/config.toml"] = source

    def make(folder: Path) -> None:
        environ = {**os.environ, **HOMES, "CARGO_BUILD_JOBS": "1", "CARGO_NET_RETRY": "0"}
        environ["CARGO_TARGET_DIR"] = str(project(folder, files) / "target")
        fetched = subprocess.run(["cargo", "fetch"], cwd=folder, env=environ, capture_output=True)
        if fetched.returncode:
            pytest.skip(f"there is no crate {library}: no registry, and no librust-{library}-dev")
        subprocess.run(["cargo", "bench", "--no-run"], cwd=folder, env=environ, check=True)

    return made_once(folder_of_run(factory) / f"crate_{library}", make)


def build(folder: Path, context: Context) -> SuiteProgram:
    (program,) = [one for one in CARGO.build(folder, PARAMS, context()) if one.name == "a"]
    return program


def measured_twice(
    folder: Path, context: Context
) -> tuple[dict[NamedBenchmark, BenchmarkRound], dict[NamedBenchmark, BenchmarkRound]]:
    """All benchmarks of a project, without a number and with the one that was found."""
    program = build(folder, context)
    names = CARGO.list(program, PARAMS, context())
    first = CARGO.round(program, dict.fromkeys(names, 0), PARAMS, context())
    numbers = {one: found.iterations or 1 for one, found in first.items()}
    return dict(first), dict(CARGO.round(program, numbers, PARAMS, context()))


@needs_cargo
@pytest.mark.slow
@pytest.mark.usefixtures("homes")
def test_criterion(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, context: Context) -> None:
    base, target = tmp_path / "base", tmp_path / "target"
    for folder in (base, target):
        shutil.copytree(made(tmp_path_factory, "criterion"), folder)
    (target / "benches" / "a.rs").write_text(SUMS.replace("sum(500)));\n    let", "sum(650)));\n    let"))
    programs = {folder: build(folder, context) for folder in (base, target)}
    best: dict[Path, dict[str, float]] = {base: {}, target: {}}
    for _ in range(MOST_ROUNDS):
        for folder, program in programs.items():
            for name, time in round_of_criterion(program, context).items():
                best[folder][name] = min(time, best[folder].get(name, time))
        ratios = {one: best[target][one] / best[base][one] for one in best[base]}
        slower = ratios.pop("a.plain (and [more])") / statistics.median(ratios.values())
        if slower == pytest.approx(1.3, abs=0.1):
            break
    assert slower == pytest.approx(1.3, abs=0.1)
    assert not (base / "target" / "criterion").exists()


@needs_cargo
@pytest.mark.slow
@pytest.mark.usefixtures("homes")
def test_what_criterion_writes_is_imported(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    shutil.copytree(made(tmp_path_factory, "criterion"), tmp_path / "own")
    options = "--noplot --sample-size 10 --measurement-time 1 --warm-up-time 1 n1|group"
    words = ["cargo", "bench", "--offline", "--bench", "a", "--", *options.split()]
    subprocess.run(words, cwd=tmp_path / "own", env={**os.environ, **HOMES}, check=True)
    folder = tmp_path / "own" / "target" / "criterion"
    importer = CriterionImporter()
    assert importer.recognizes(b"", str(folder))
    told = {}
    for one in read_all(importer, ImportFile("it", folder), NoParams(), ImportContext(print, tmp_path)):
        assert not one.means
        told[one.profile.configuration.args] = [row["amount"] for _, row in one.profile.all_resources()]
    assert sorted(told) == ["group/sum/500", "group/sum/600", "n1"]
    for name, times in told.items():
        assert len(times) == 10
        path = next(one for one in folder.rglob("new/benchmark.json") if f'"{name}"' in one.read_text())
        mean = json.loads(path.with_name("estimates.json").read_text())["mean"]["point_estimate"]
        assert statistics.fmean(times) * 1e9 == pytest.approx(mean)


def round_of_criterion(program: SuiteProgram, context: Context) -> dict[str, float]:
    """The shortest times of all benchmarks of the program, which are those of the text above."""
    names = CARGO.list(program, PARAMS, context())
    measured = dict(CARGO.round(program, dict.fromkeys(names, 0), PARAMS, context()))
    assert [str(one) for one in measured] == [
        "a.plain (and [more])", "a.group/sum 500", "a.group/sum 600", *(f"a.n{n}" for n in range(6)),
        "a.fails",
    ]  # fmt: skip
    assert "no good" in measured.pop(NamedBenchmark("a.fails")).failure
    assert all(len(seconds_of(found)) == 10 and found.iterations > 1 for found in measured.values())
    return {str(one): min(seconds_of(found)) for one, found in measured.items()}


@needs_cargo
@pytest.mark.slow
@pytest.mark.usefixtures("homes")
def test_divan(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, context: Context) -> None:
    folder = tmp_path / "project"
    shutil.copytree(made(tmp_path_factory, "divan"), folder)
    first, second = measured_twice(folder, context)
    assert {str(one) for one in first} == {
        "a.plain", "a.boxes 1", "a.boxes 600", "a.fails", "a.inner::words a b", "a.inner::slow",
    }  # fmt: skip
    assert "no good" in first.pop(NamedBenchmark("a.fails")).failure
    assert all(seconds_of(one) and one.iterations > 1 for one in first.values())
    assert {second[one].iterations for one in first} == {found.iterations for found in first.values()}
    assert [value.samples for value in first[NamedBenchmark("a.boxes", "600")].values[1:]] == [
        (600.0,),
        (1.0,),
    ]


@needs_cargo
@pytest.mark.slow
@pytest.mark.usefixtures("homes")
def test_the_standard_library(tmp_path: Path, context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUSTUP_TOOLCHAIN", "nightly")
    if subprocess.run(["cargo", "--version"], capture_output=True).returncode:
        pytest.skip("there is no nightly Rust: rustup toolchain install nightly")
    project(tmp_path, {"Cargo.toml": PACKAGE, "src/lib.rs": LIBRARY, "benches/a.rs": NIGHTLY})
    first, second = measured_twice(tmp_path, context)
    assert {str(one): found.failure for one, found in first.items() if found.failure} == {
        "a.fails": first[NamedBenchmark("a.fails")].failure,
        "a.skipped": "is ignored",
    }
    assert "no good" in first[NamedBenchmark("a.fails")].failure
    assert seconds_of(first[NamedBenchmark("a.plain")]) and second.keys() == first.keys()


@needs_cargo
@pytest.mark.slow
@pytest.mark.usefixtures("homes")
def test_a_benchmark_of_another_kind_is_left_out(tmp_path: Path, context: Context) -> None:
    bench = '[[bench]]\nname = "own"\nharness = false\n'
    text = 'fn main() { println!("{}", "#[bench]"); }'
    project(tmp_path, {"Cargo.toml": PACKAGE + bench, "src/lib.rs": "", "benches/own.rs": text})
    notes: list[str] = []
    programs = CARGO.build(tmp_path, PARAMS, context(note=notes.append))
    assert [(one.name, one.data["library"]) for one in programs] == [("sums", "libtest")]
    assert len(notes) == 1 and notes[0].startswith("own:")
    assert not CARGO.list(programs[0], PARAMS, context())


@needs_cargo
@pytest.mark.slow
@pytest.mark.usefixtures("homes")
@pytest.mark.parametrize(
    ("library", "name", "most"),
    [
        ("criterion", NamedBenchmark("a.plain (and [more])"), 1),
        ("criterion", NamedBenchmark("a.group/sum", "500"), 1),
        ("divan", NamedBenchmark("a.plain"), 5),
        ("divan", NamedBenchmark("a.boxes", "600"), 5),
    ],
)
def test_one_makes_so_many_operations(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    context: Context,
    alone: Alone,
    library: str,
    name: NamedBenchmark,
    most: int,
) -> None:
    folder = tmp_path / "project"
    shutil.copytree(made(tmp_path_factory, library), folder)
    program = build(folder, context)
    nothing, five = (CARGO.one(program, name, number, PARAMS, context()) for number in (0, 5))
    assert (nothing.iterations, five.iterations) == (0, most)
    shown = name.name.removeprefix("a.")
    assert shown not in alone(nothing, folder) and shown in alone(five, folder)
