"""What programs of criterion, divan and the standard library of Rust are asked, and what they answer."""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from perun.harness._common import output_of, text_of
from perun.plugin.suites import (
    BenchmarkCommand,
    BenchmarkRound,
    BenchmarkValue,
    HarnessContext,
    NamedBenchmark,
    SuiteProgram,
    ToolOutput,
)

_TOO_SHORT: Final = "takes too short to be measured"
_LISTED: Final = re.compile(r"^(.+): bench(?:mark)?$", re.MULTILINE)
_SECONDS: Final = {
    "ps": 1e-12, "ns": 1e-9, "µs": 1e-6, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3.6e3, "d": 8.64e4,
}  # fmt: skip
_BYTES: Final = {unit: 1000.0**power for power, unit in enumerate(("B", "KB", "MB", "GB", "TB", "PB"))}
_META: Final = re.compile(r"[\\.+*?()|\[\]{}^$#&~-]")
"""What the regular expressions of Rust, older ones too, take a backslash before."""
_CRITERION_UNIT: Final = re.compile(r"time: +\[[\d.e+-]+ (\S+)")
_LIBTEST: Final = re.compile(r"\.\.\. bench: +([\d,]+(?:\.\d+)?) ns/iter")
_DIVAN_SAMPLES: Final = 3
_DIVAN_MOST: Final = 2**32 - 1
_DIVAN_TRIES: Final = 12
_SHORTEST: Final = 1e-10
"""Seconds: what takes less is no operation, but was left out by the compiler."""
_FASTER: Final = 100.0
"""How much more a number is tried with at most: of a first operation that is cold little can be told."""


class _Library(NamedTuple):
    """What tells and runs the benchmarks of a library. `mark`: bytes of the programs that use it."""

    mark: bytes
    names: Callable[[SuiteProgram, HarnessContext], list[NamedBenchmark]]
    measure: Callable[[SuiteProgram, NamedBenchmark, int, HarnessContext], BenchmarkRound]
    one: Callable[[SuiteProgram, NamedBenchmark, int], BenchmarkCommand]


def library_of(executable: Path) -> str:
    """The library that a program of benchmarks uses, by the variables of the environment that it reads; empty
    where it is none of these. The program is not started: one that takes no options would measure."""
    try:
        content = executable.read_bytes()
    except OSError:
        return ""
    return next((name for name, library in LIBRARIES.items() if library.mark in content), "")


def _failed(why: str) -> BenchmarkRound:
    return BenchmarkRound(0, (), why)


def _ended(done: ToolOutput) -> BenchmarkRound:
    """Why a program failed: what it panicked with, or the last that it wrote."""
    panicked = re.search(r"panicked at (.*(?:\n.+)?)", f"{done.stderr}\n{done.stdout}")
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
    said = " ".join((panicked[0] if panicked else "".join(lines)).split())
    return _failed(f"ended with status {done.status}: {said}".rstrip(": "))


def _seconds(samples: Sequence[float]) -> BenchmarkValue:
    return BenchmarkValue("time", "", "s", tuple(samples))


def _listed(program: SuiteProgram, ctx: HarnessContext, *words: str) -> list[str]:
    environ = {"NEXTEST": "1"}  # divan says whole names only to this program
    text = output_of(ctx, [*program.argv, "--bench", "--list", *words], program.folder, environ)
    return list(dict.fromkeys(_LISTED.findall(text)))


def _within(program: SuiteProgram, benchmark: NamedBenchmark) -> str:
    return benchmark.name.removeprefix(program.name + ".")


# Criterion: `group/function/parameter`.


def _criterion_names(program: SuiteProgram, ctx: HarnessContext) -> list[NamedBenchmark]:
    parts = [one.rsplit("/", 1) if one.count("/") == 2 else [one] for one in _listed(program, ctx)]
    return [NamedBenchmark(f"{program.name}.{first}", "".join(last)) for first, *last in parts]


def _criterion(
    program: SuiteProgram, benchmark: NamedBenchmark, iterations: int, ctx: HarnessContext
) -> BenchmarkRound:
    seconds, before = ctx.seconds, ctx.seconds / 2
    if program.data["whole_seconds"]:
        seconds, before = math.ceil(seconds), 1
    with tempfile.TemporaryDirectory(dir=ctx.scratch) as home:
        words = ["--bench", "--noplot", "--color", "never", "--sample-size", "10", "--nresamples", "1001"]
        words += ["--warm-up-time", str(before), "--measurement-time", str(seconds)]
        words.append(_criterion_filter(program, benchmark))
        done = ctx.run([*program.argv, *words], program.folder, {"CRITERION_HOME": home})
        files = sorted(Path(home).glob("**/new/sample.json"))
        return _ended(done) if done.status else criterion_round(done.stdout, [text_of(one) for one in files])


def _criterion_filter(program: SuiteProgram, benchmark: NamedBenchmark) -> str:
    whole = "/".join(part for part in (_within(program, benchmark), benchmark.parameters) if part)
    return "^" + _META.sub(r"\\\g<0>", whole) + "$"


def _criterion_once(program: SuiteProgram, benchmark: NamedBenchmark, iterations: int) -> BenchmarkCommand:
    chosen = _criterion_filter(program, benchmark) if iterations else "^$"
    return BenchmarkCommand((*program.argv, "--bench", "--test", chosen), min(iterations, 1))


def criterion_round(stdout: str, files: Sequence[str]) -> BenchmarkRound:
    """What criterion measured of one benchmark, by what it has written to its `sample.json`, one file."""
    unit = _CRITERION_UNIT.search(stdout)
    if unit and unit[1] not in _SECONDS:
        return _failed(f"criterion measures {unit[1]} here, and no times")
    if len(files) != 1:
        return _failed(f"criterion measured {len(files) or 'no'} benchmarks of this name")
    try:
        sample = json.loads(files[0])
        numbers = [float(one) for one in sample["iters"]]
        times = [float(one) for one in sample["times"]]
        samples = [time / number * 1e-9 for number, time in zip(numbers, times, strict=True)]
        iterations = round(sum(numbers) / len(numbers))
    except (ValueError, KeyError, TypeError, ArithmeticError, RecursionError):
        return _failed("criterion has written samples that cannot be read")
    if not all(0 < one < math.inf for one in samples):
        return _failed("criterion measured a time that is none")
    return BenchmarkRound(max(iterations, 1), (_seconds(samples),))


# Divan: a tree with a table. The names of its leaves are functions, what follows them are arguments.


def _divan_names(program: SuiteProgram, ctx: HarnessContext) -> list[NamedBenchmark]:
    tree = output_of(ctx, [*program.argv, "--bench", "--list", "--color", "never"], program.folder)
    leaves = divan_leaves(tree)
    names = []
    for one in _listed(program, ctx, "--format", "terse"):
        leaf = next((leaf for leaf in leaves if one.startswith(leaf + "::")), one)
        within = leaf.removeprefix(_crate(program))
        names.append(NamedBenchmark(f"{program.name}.{within}", one[len(leaf) + 2 :]))
    return names


def divan_leaves(tree: str) -> list[str]:
    """The paths of the leaves of a tree that divan has printed."""
    leaves: list[str] = []
    path: list[str] = []
    for line in tree.splitlines():
        branch = re.match(r"((?:│  |   )*(?:├─ |╰─ ))?(.*)", line)
        if not branch or not branch[2].strip():
            continue
        depth = len(branch[1] or "") // 3
        path = [*path[:depth], branch[2].removesuffix("(ignored)").strip()]
        whole = "::".join(path)
        leaves = [one for one in leaves if not whole.startswith(one + "::")] + [whole]
    return leaves


def _crate(program: SuiteProgram) -> str:
    return str(program.data["target"]).replace("-", "_") + "::"


def _divan(
    program: SuiteProgram, benchmark: NamedBenchmark, iterations: int, ctx: HarnessContext
) -> BenchmarkRound:
    whole = _divan_path(program, benchmark)
    aim = ctx.seconds / _DIVAN_SAMPLES
    most = min(_DIVAN_MOST, math.ceil(aim / _SHORTEST))
    number = min(iterations, _DIVAN_MOST) or 1
    for _ in range(_DIVAN_TRIES):
        words = ["--bench", "--exact", whole, "--color", "never", "--bytes-format", "decimal"]
        words += ["--sample-count", str(_DIVAN_SAMPLES), "--sample-size", str(number)]
        done = ctx.run([*program.argv, *words, "--min-time", "0"], program.folder, {})
        if done.status:
            return _ended(done)
        measured = divan_round(done.stdout, number)
        took = number * measured.values[0].samples[0] if measured.values else 0.0
        if iterations or took >= aim / 2 or number == most or measured.failure not in ("", _TOO_SHORT):
            return measured
        number = min(most, math.ceil(number * min(_FASTER, aim / took if took else _FASTER)))
    return measured


def _divan_path(program: SuiteProgram, benchmark: NamedBenchmark) -> str:
    path = _crate(program) + _within(program, benchmark)
    return "::".join(part for part in (path, benchmark.parameters) if part)


def _divan_once(program: SuiteProgram, benchmark: NamedBenchmark, iterations: int) -> BenchmarkCommand:
    number = min(iterations, _DIVAN_MOST)
    chosen = _divan_path(program, benchmark) if number else "^$"
    words = ("--bench", "--exact", chosen, "--color", "never", "--sample-count", "1", "--min-time", "0")
    return BenchmarkCommand((*program.argv, *words, "--sample-size", str(max(1, number))), number)


def divan_round(stdout: str, iterations: int) -> BenchmarkRound:
    """What divan measured of one benchmark, by the table that it has printed, which has one line of times."""
    rows = [[cell.strip() for cell in line.split("│")] for line in stdout.splitlines()]
    times = [row for row in rows if len(row) >= 6 and row[-2].isdecimal() and row[-1].isdecimal()]
    if any("(ignored)" in line for line in stdout.splitlines()):
        return _failed("is ignored")
    if len(times) > 1:
        return _failed("runs with several numbers of threads: choose one by the variable DIVAN_THREADS")
    middle = _quantity(times[0][-4], _SECONDS) if times else None
    if middle is None:
        return _failed("divan printed no time")
    if middle == 0:
        return _failed(_TOO_SHORT)
    return BenchmarkRound(iterations, (_seconds([middle]), *_allocations(rows)))


def _allocations(rows: Sequence[Sequence[str]]) -> list[BenchmarkValue]:
    for at, row in enumerate(rows[:-2]):
        if any(cell == "alloc:" for cell in row) and min(map(len, rows[at + 1 : at + 3])) >= 6:
            count, size = _quantity(rows[at + 1][-4], {"": 1.0}), _quantity(rows[at + 2][-4], _BYTES)
            if count is not None and size is not None:
                return [
                    BenchmarkValue("memory", "allocated", "B", (size,), is_count=True),
                    BenchmarkValue("memory", "allocations", "", (count,), is_count=True),
                ]
    return []


def _quantity(text: str, units: dict[str, float]) -> float | None:
    number, _, unit = text.partition(" ")
    if not re.fullmatch(r"\d{1,30}(\.\d{1,30})?", number, re.ASCII) or unit not in units:
        return None
    return float(number) * units[unit]


# The standard library.


def _libtest_names(program: SuiteProgram, ctx: HarnessContext) -> list[NamedBenchmark]:
    return [NamedBenchmark(f"{program.name}.{one}") for one in _listed(program, ctx)]


def _libtest(
    program: SuiteProgram, benchmark: NamedBenchmark, iterations: int, ctx: HarnessContext
) -> BenchmarkRound:
    done = ctx.run([*program.argv, "--bench", "--exact", _within(program, benchmark)], program.folder, {})
    return _ended(done) if done.status else libtest_round(done.stdout)


def _libtest_once(program: SuiteProgram, benchmark: NamedBenchmark, iterations: int) -> BenchmarkCommand:
    """Without `--bench` a benchmark is a test, which makes one operation."""
    chosen = _within(program, benchmark) if iterations else "^$"
    return BenchmarkCommand((*program.argv, "--exact", chosen, "--test-threads=1"), min(iterations, 1))


def libtest_round(stdout: str) -> BenchmarkRound:
    """What a `#[bench]` measured, by the one line that it has printed."""
    measured = _LIBTEST.findall(stdout)
    if not measured:
        return _failed("is ignored" if re.search(r"\.\.\. ignored", stdout) else "printed no time")
    time = float(measured[0].replace(",", "")) * 1e-9
    return BenchmarkRound(1, (_seconds([time]),)) if 0 < time < math.inf else _failed(_TOO_SHORT)


LIBRARIES: Final = {
    "criterion": _Library(b"CRITERION_HOME", _criterion_names, _criterion, _criterion_once),
    "divan": _Library(b"DIVAN_SAMPLE_COUNT", _divan_names, _divan, _divan_once),
    "libtest": _Library(b"RUST_TEST_THREADS", _libtest_names, _libtest, _libtest_once),
}
