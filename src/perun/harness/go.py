"""Benchmarks of Go: `func BenchmarkX(b *testing.B)` of the packages of a module, and their sub-benchmarks.

Each package is built once (`go test -c`), and each benchmark runs in a process of its own, in the folder of
its package, as `go test` runs it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from perun.core.errors import JobFailed
from perun.harness import _common as common
from perun.plugin.params import param
from perun.plugin.suites import (
    BenchmarkCommand,
    BenchmarkRound,
    BenchmarkValue,
    HarnessContext,
    NamedBenchmark,
    SuiteProgram,
    ToolOutput,
)

_DEFINITION: Final = re.compile(r"^func Benchmark\w*\(", re.MULTILINE)
_TEST_FILES: Final = (
    "{{range .TestGoFiles}}{{$.Dir}}/{{.}}\n{{end}}{{range .XTestGoFiles}}{{$.Dir}}/{{.}}\n{{end}}"
)
_STARTED: Final = re.compile(r"^(?:=== RUN +)?(Benchmark\S*)$", re.MULTILINE)
_RESULT: Final = re.compile(r"(?<!\d)(\d+)((?:\t *\S+ \S+)+)$")
"""The end of a line of benchmarks; what the benchmark prints may stand before it, or break the line there."""
_LONGEST_LINE: Final = 4000
_REASON: Final = re.compile(r"^(panic: .*|fatal error: .*|--- (?:FAIL|SKIP): .*(?:\n {4}.*)?)", re.MULTILINE)
_HINT: Final = "apt-get install golang-go, or https://go.dev/doc/install"
_UNITS: Final = {
    "ns/op": ("time", "", "s"), "B/op": ("memory", "allocated", "B"),
    "allocs/op": ("memory", "allocations", ""),
}  # fmt: skip
_MOST_ITERATIONS: Final = 10**12


@dataclass(frozen=True)
class GoParams:
    """Which packages have the benchmarks."""

    packages: tuple[str, ...] = param(
        ("./...",),
        metavar="<pattern>",
        help="Measure the benchmarks of these packages, as `go list` takes them. May be repeated.",
    )


class GoHarness:
    """Measures the benchmarks of Go packages.

    What Go counts is not exact: it divides what the whole process allocates by the operations, and rounds
    down. In 15 runs of the same program `B/op` varied by some hundred bytes a process. `allocs/op` of 100
    operations and more was mostly the same, but 63 or 64 where a map was filled (before Go 1.24, by a random
    seed), and 0 or 3 where a pool was used, as the garbage collector empties it when it comes.
    """

    name: ClassVar[str] = "go"
    help: ClassVar[str] = "Measures the benchmarks of Go packages (go test -bench)."
    command: ClassVar[str] = "go test -bench"
    Params: ClassVar[type] = GoParams

    def detect(self, folder: Path) -> Sequence[str]:
        """The files `*_test.go` that define benchmarks, but for those that Go leaves out by their folder."""
        return common.files_with(folder, ("_test.go",), _defines)

    def build(self, folder: Path, params: GoParams, ctx: HarnessContext) -> Sequence[SuiteProgram]:
        """A program for each package with benchmarks, of each module below the folder.

        :raises CollectorUnavailable: without Go. :raises JobFailed: where a package cannot be built.
        """
        go = common.needed("go", _HINT)
        packages: dict[Path, None] = {}
        for module in _modules(folder, self.detect(folder)):
            listed = common.output_of(ctx, (go, "list", "-e", "-f", _TEST_FILES, *params.packages), module)
            files = [Path(line) for line in listed.splitlines() if line.startswith("/")]
            packages |= {file.parent: None for file in files if _DEFINITION.search(common.text_of(file))}
        if not packages:
            ctx.note(f"no package of {' '.join(params.packages)} has benchmarks")
        programs = []
        for number, package in enumerate(packages):
            name = _relative(package, folder)
            ctx.report(f"building the benchmarks of {name or package.name}", number, len(packages))
            made = ctx.scratch / f"{number}.test"
            common.output_of(ctx, (go, "test", "-c", "-o", str(made), "."), package)
            if made.exists():
                programs.append(SuiteProgram((str(made),), package, name))
        return programs

    def list(self, program: SuiteProgram, params: GoParams, ctx: HarnessContext) -> Sequence[NamedBenchmark]:
        """The benchmarks and sub-benchmarks of a package. The latter are known only where the former run, so
        each runs one operation, in a process of its own: one that panics ends no other one."""
        listed = common.output_of(ctx, (*program.argv, "-test.list=^Benchmark"), program.folder)
        names = [line for line in listed.splitlines() if re.fullmatch(r"Benchmark\w*", line)]
        found: list[NamedBenchmark] = []
        for number, name in enumerate(names):
            ctx.report(f"looking for the benchmarks of {name}", number, len(names))
            done = ctx.run((*program.argv, *_measuring((name,), "1x"), "-test.v"), program.folder, {})
            found += [_named(program.name, path) for path in _leaves(name, done.stdout)]
        return list(dict.fromkeys(found))

    def round(
        self,
        program: SuiteProgram,
        iterations: Mapping[NamedBenchmark, int],
        params: GoParams,
        ctx: HarnessContext,
    ) -> Mapping[NamedBenchmark, BenchmarkRound]:
        """Measure each benchmark in a process of its own. Go runs one operation before those that count."""
        rounds = {}
        for number, (benchmark, wanted) in enumerate(iterations.items()):
            ctx.report(f"measuring {benchmark}", number, len(iterations))
            samples, each = common.shared(wanted, ctx.seconds)
            length = f"{each}x" if wanted else f"{max(ctx.seconds, 1e-9):.9f}s"
            argv = (*program.argv, *_measuring(_path(program, benchmark), length, samples))
            found = parsed(ctx.run(argv, program.folder, {}))
            rounds[benchmark] = found._replace(iterations=found.iterations and (wanted or found.iterations))
        return rounds

    def one(
        self,
        program: SuiteProgram,
        benchmark: NamedBenchmark,
        iterations: int,
        params: GoParams,
        ctx: HarnessContext,
    ) -> BenchmarkCommand:
        """On one processor, without signals that switch between goroutines: with these counts differ from run
        to run, and callgrind fails. Go runs one operation before the others."""
        path = _path(program, benchmark) if iterations else ("none",)
        argv = (*program.argv, *_measuring(path, f"{max(1, iterations)}x"))
        return BenchmarkCommand(argv, iterations, {"GOMAXPROCS": "1", "GODEBUG": "asyncpreemptoff=1"})


def _path(program: SuiteProgram, benchmark: NamedBenchmark) -> tuple[str, ...]:
    """The names of the benchmark and of those within it."""
    top = benchmark.name.removeprefix(program.name + "." if program.name else "")
    return (top, *benchmark.parameters.split("/")) if benchmark.parameters else (top,)


def parsed(done: ToolOutput) -> BenchmarkRound:
    """What one benchmark has measured; a failure where it has not."""
    lines = [line.rstrip() for line in done.stdout.splitlines() if len(line) < _LONGEST_LINE]
    results = [found for line in lines if (found := _RESULT.search(line))]
    if done.status or not results:
        return BenchmarkRound(0, (), _why(done))
    operations = int(results[-1][1][:20])
    if not 0 < operations <= _MOST_ITERATIONS:
        return BenchmarkRound(0, (), f"it says that it ran {operations} operations")
    values = tuple(_values([found[2] for found in results]))
    return BenchmarkRound(operations, values) if values else BenchmarkRound(0, (), "it measured nothing")


def _values(texts: Sequence[str]) -> Iterator[BenchmarkValue]:
    """Of the results of one benchmark, each metric that all of them have."""
    measured = [_numbers(text) for text in texts]
    for unit in measured[-1]:
        found = [one[unit] for one in measured if math.isfinite(one.get(unit, math.nan))]
        if len(found) == len(measured):
            type_, subtype, own = _UNITS.get(unit, ("printed", unit, unit))
            samples = tuple(one / 1e9 for one in found) if unit == "ns/op" else tuple(found)
            yield BenchmarkValue(type_, subtype, own, samples, larger_is_better=unit.endswith("/s"))


def _numbers(text: str) -> dict[str, float]:
    measured: dict[str, float] = {}
    for field in text.split("\t")[1:]:
        amount, unit = field.split()
        with suppress(ValueError):
            measured.setdefault(unit, float(amount))
    return measured


def _why(done: ToolOutput) -> str:
    if reason := _REASON.search(f"{done.stdout}\n{done.stderr}"):
        return " ".join(reason[0].removeprefix("--- ").split())
    if done.status:
        return common.why_not(done)
    return "it gave no result: it was skipped, or is not there any more"


def _measuring(path: Sequence[str], length: str, samples: int = 1) -> tuple[str, ...]:
    pattern = "/".join(common.exactly(part) for part in path)
    return (
        "-test.run=^$", f"-test.bench={pattern}", f"-test.benchtime={length}", f"-test.count={samples}",
        "-test.benchmem",
    )  # fmt: skip


def _leaves(name: str, text: str) -> list[str]:
    """Of the paths that were started, those without any below: others only hold them."""
    started = dict.fromkeys(
        path for path in _STARTED.findall(text) if path == name or path.startswith(name + "/")
    )
    holders = {path[:end] for path in started for end, sign in enumerate(path) if sign == "/"}
    return [path for path in started if path not in holders] or [name]


def _named(package: str, path: str) -> NamedBenchmark:
    top, _, parameters = path.partition("/")
    return NamedBenchmark(f"{package}.{top}" if package else top, parameters)


def _defines(path: str, text: str) -> bool:
    folders = path.split("/")[:-1]
    ignored = any(folder == "testdata" or folder.startswith("_") for folder in folders)
    return not ignored and bool(_DEFINITION.search(text))


def _modules(folder: Path, files: Sequence[str]) -> Iterator[Path]:
    """The folders of the modules that the files belong to; a module may begin above the folder."""
    found: dict[Path, None] = {}
    for file in files:
        parents = [folder / parent for parent in Path(file).parents]
        found[next((one for one in parents if (one / "go.mod").is_file()), folder)] = None
    yield from found


def _relative(package: Path, folder: Path) -> str:
    """The folder of a package, as its benchmarks are named by it: empty where it is that of the project."""
    real = folder.resolve()
    if not package.resolve().is_relative_to(real):
        raise JobFailed(f"the package in {package} is not in {folder}", "name packages of the project")
    found = package.resolve().relative_to(real).as_posix()
    return "" if found == "." else found


PLUGIN = GoHarness
