"""Benchmarks of Google Benchmark, in programs that the project's own build has made."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

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

_SUFFIXES: Final = (".cc", ".cpp", ".cxx", ".c++", ".C", ".cu", ".h", ".hpp")
_INCLUDES: Final = re.compile(r"^\s*#\s*include\s*[<\"]benchmark/\w+\.h[>\"]", re.MULTILINE)
_REGISTERS: Final = re.compile(r"\bBENCHMARK(?!_MAIN\b)(?:_[A-Z0-9_]+)?\s*\(|\bRegisterBenchmark\s*\(")
_MARKS: Final = (b"--benchmark_filter", b"libbenchmark.so")
_PARAMETER: Final = re.compile(r"-?\d[\w.+-]*|\w+:(?!:).*|real_time|process_time|manual_time")
_NANOSECONDS: Final = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_FIELDS: Final = frozenset({
    "name", "run_name", "run_type", "family_index", "per_family_instance_index", "repetitions",
    "repetition_index", "threads", "iterations", "real_time", "cpu_time", "time_unit", "label",
    "error_occurred", "error_message", "skipped", "skip_message",
})  # fmt: skip
"""Numbers that a program counts itself stand beside these."""
_MEMORY: Final = {
    "allocs_per_iter": ("memory", "allocations", "", True), "max_bytes_used": ("memory", "peak", "B", False),
    "total_allocated_bytes": ("memory", "allocated", "B", False),
}  # fmt: skip
_PER_SECOND: Final = "_per_second"
_OWN_LENGTH: Final = "/iterations:"
"""In the name of a benchmark that says itself how many it has."""
_MOST_ITERATIONS: Final = 10**15


@dataclass(frozen=True)
class GoogleBenchmarkParams:
    """Which programs have the benchmarks."""

    programs: tuple[str, ...] = param(
        (),
        metavar="<path>",
        help="Measure the benchmarks of this program, which the build has made (`execute.pre_run`); by "
        "default of each below the folder that Google Benchmark is built into. May be repeated.",
    )


class GoogleBenchmarkHarness:
    """Measures the benchmarks of programs that were built with Google Benchmark.

    Each runs in a process of its own. Of what a benchmark counts itself only `allocs_per_iter` is known to
    be a count. Versions before 1.8 choose the number of iterations, by `ctx.seconds`, where they are many.
    """

    name: ClassVar[str] = "google_benchmark"
    help: ClassVar[str] = "Measures the benchmarks of programs built with Google Benchmark."
    command: ClassVar[str] = "google benchmark"
    Params: ClassVar[type] = GoogleBenchmarkParams

    def detect(self, folder: Path) -> Sequence[str]:
        """The files that include its header and register benchmarks."""
        return common.files_with(
            folder, _SUFFIXES, lambda _, text: bool(_INCLUDES.search(text) and _REGISTERS.search(text))
        )

    def build(
        self, folder: Path, params: GoogleBenchmarkParams, ctx: HarnessContext
    ) -> Sequence[SuiteProgram]:
        """The programs that the build of the project has made.

        :raises JobFailed: where one that is named is none.
        """
        made = []
        for program in common.programs_of(folder, params.programs, _MARKS, "Google Benchmark", ctx):
            argv = (*program.argv, "--benchmark_list_tests=true", "--benchmark_min_time=1x")
            fixed = ctx.run(argv, folder, {}).status == 0
            if not fixed:
                ctx.note(f"{program.name} has a Google Benchmark before 1.8, which chooses the iterations")
            made.append(program._replace(data={"fixed": fixed}))
        return made

    def list(
        self, program: SuiteProgram, params: GoogleBenchmarkParams, ctx: HarnessContext
    ) -> Sequence[NamedBenchmark]:
        """The benchmarks as the program lists them."""
        listed = common.output_of(ctx, (*program.argv, "--benchmark_list_tests=true"), program.folder)
        return list(dict.fromkeys(named(line) for line in listed.splitlines() if line.strip()))

    def round(
        self,
        program: SuiteProgram,
        iterations: Mapping[NamedBenchmark, int],
        params: GoogleBenchmarkParams,
        ctx: HarnessContext,
    ) -> Mapping[NamedBenchmark, BenchmarkRound]:
        """Measure each benchmark in a process of its own. One that says how often it is repeated has as many
        samples; one that says how many iterations it has gets these."""
        rounds = {}
        for number, (benchmark, wanted) in enumerate(iterations.items()):
            ctx.report(f"measuring {benchmark}", number, len(iterations))
            whole = _whole(benchmark)
            is_fixed = bool(program.data.get("fixed"))
            fixed = 0 if _OWN_LENGTH in whole or not (is_fixed or wanted <= common.MOST_SAMPLES) else wanted
            samples, length = 1, f"{max(ctx.seconds, 1e-9):.9f}"
            if fixed and is_fixed:
                samples, each = common.shared(fixed, ctx.seconds)
                length = f"{each}x"
            elif fixed:
                samples, length = fixed, "0"  # the least, which is one operation
            made = ctx.scratch / f"{number}.json"
            argv = (
                *program.argv, f"--benchmark_filter={common.exactly(whole)}",
                f"--benchmark_min_time={length}", f"--benchmark_repetitions={samples}",
                f"--benchmark_out={made}", "--benchmark_out_format=json",
            )  # fmt: skip
            done = ctx.run(argv, program.folder, {})
            found = _round(done, whole, made)
            rounds[benchmark] = found._replace(iterations=found.iterations and (fixed or found.iterations))
        return rounds

    def one(
        self,
        program: SuiteProgram,
        benchmark: NamedBenchmark,
        iterations: int,
        params: GoogleBenchmarkParams,
        ctx: HarnessContext,
    ) -> BenchmarkCommand:
        """Versions before 1.8 repeat one iteration, the least that they choose, with what sets it up."""
        chosen = common.exactly(_whole(benchmark)) if iterations else "^$"
        length, repeated = ("0", iterations) if not program.data.get("fixed") else (f"{iterations}x", 1)
        words = (
            f"--benchmark_filter={chosen}", f"--benchmark_min_time={length if iterations else '0'}",
            f"--benchmark_repetitions={repeated or 1}", "--benchmark_report_aggregates_only=true",
        )  # fmt: skip
        return BenchmarkCommand((*program.argv, *words), iterations)


def _whole(benchmark: NamedBenchmark) -> str:
    """The name of a benchmark in its program."""
    return benchmark.name + (f"/{benchmark.parameters}" if benchmark.parameters else "")


def named(line: str) -> NamedBenchmark:
    """A benchmark by its name in the program: `BM_Copy/64/threads:2` has the parameters `64/threads:2`."""
    parts = line.split("/")
    begin = next((at for at in range(1, len(parts)) if _PARAMETER.fullmatch(parts[at])), len(parts))
    return NamedBenchmark("/".join(parts[:begin]), "/".join(parts[begin:]))


def _round(done: ToolOutput, name: str, made: Path) -> BenchmarkRound:
    if done.status:
        return BenchmarkRound(0, (), common.why_not(done))
    try:
        text = made.read_text("utf-8", "replace")
    except OSError:
        text = ""
    return parsed(text, name) if text.strip() else BenchmarkRound(0, (), "it is not there")


def parsed(text: str, name: str) -> BenchmarkRound:
    """What the JSON of Google Benchmark says of a benchmark.

    :raises JobFailed: where it is not what Google Benchmark writes.
    """
    answer = common.json_of(text, "Google Benchmark")
    rows = answer.get("benchmarks") if isinstance(answer, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise JobFailed("Google Benchmark wrote no list of benchmarks", "is this version of it supported?")
    rows = [row for row in rows if name in (row.get("run_name"), row.get("name"))]
    singles = [row for row in rows if row.get("run_type", "iteration") == "iteration"]
    if wrong := next((row for row in singles if row.get("error_occurred") or row.get("skipped")), None):
        reason = wrong.get("error_message") or wrong.get("skip_message") or "it was skipped"
        return BenchmarkRound(0, (), str(reason))
    if not singles:
        return BenchmarkRound(0, (), "it reports aggregates only" if rows else "it is not there")
    values: dict[tuple[str, str, str, bool], list[float]] = {}
    for row in singles:
        for metric, value in _values(row):
            values.setdefault(metric, []).append(value)
    iterations = int(_number(singles[0].get("iterations")) / max(1, _number(singles[0].get("threads", 1))))
    if not 0 < iterations <= _MOST_ITERATIONS or not values:
        return BenchmarkRound(0, (), "it measured nothing")
    return BenchmarkRound(iterations, tuple(
        BenchmarkValue(type_, subtype, unit, tuple(samples), subtype.endswith(_PER_SECOND), counted)
        for (type_, subtype, unit, counted), samples in values.items()
    ))  # fmt: skip


def _values(row: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str, str, bool], float]]:
    scale = _NANOSECONDS.get(str(row.get("time_unit", "ns")))
    if scale is None:
        raise JobFailed(f"Google Benchmark gave times in {row['time_unit']!r}", "is this version supported?")
    for field, subtype in (("real_time", ""), ("cpu_time", "cpu")):
        if field in row:
            yield ("time", subtype, "s", False), _number(row[field]) * scale / 1e9
    for field, value in row.items():
        if field not in _FIELDS and (amount := _finite(value)) is not None:
            unit = {"bytes_per_second": "B/s", "items_per_second": "items/s"}.get(field, "")
            yield _MEMORY.get(field, ("printed", field, unit, False)), amount


def _number(value: Any) -> float:
    """:raises JobFailed: where a value is no finite number."""
    if (number := _finite(value)) is None:
        raise JobFailed(f"Google Benchmark wrote {value!r:.99} for a number", "is this version supported?")
    return number


def _finite(value: Any) -> float | None:
    try:
        number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


PLUGIN = GoogleBenchmarkHarness
