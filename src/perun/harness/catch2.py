"""Benchmarks of Catch2, `BENCHMARK` in test cases, in programs that the project's own build has made."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple
from xml.etree import ElementTree

from perun.core.errors import JobFailed
from perun.harness import _common as common
from perun.plugin.params import param
from perun.plugin.suites import (
    BenchmarkRound,
    BenchmarkValue,
    HarnessContext,
    NamedBenchmark,
    SuiteProgram,
    ToolOutput,
)

_SUFFIXES: Final = (".cc", ".cpp", ".cxx", ".c++", ".C", ".h", ".hpp")
_INCLUDES: Final = re.compile(r"^\s*#\s*include\s*[<\"](?:.*/)?catch\w*\.hpp[>\"]", re.MULTILINE)
_REGISTERS: Final = re.compile(r"\bBENCHMARK(?:_ADVANCED)?\s*\(")
_MARKS: Final = (b"--benchmark-samples", b"libCatch2.so")
_TAGGED: Final = "[!benchmark],[benchmark],[benchmarks],[bench],[performance],[perf]"
_SPECIAL: Final = re.compile(r"[\\,\[\]\"*~]")
_HINT: Final = "is it built with Catch2, and does its `main` pass the arguments on?"
_WARM_UP: Final = 1
_MOST_SAMPLES: Final = 1 << 16


@dataclass(frozen=True)
class Catch2Params:
    """Which programs and which of their test cases have the benchmarks."""

    programs: tuple[str, ...] = param(
        (),
        metavar="<path>",
        help="Measure the benchmarks of this program, which the build has made (`execute.pre_run`); by "
        "default of each below the folder that Catch2 is built into. May be repeated.",
    )
    tests: str = param(
        _TAGGED,
        metavar="<spec>",
        help="Measure the benchmarks of these test cases, as Catch2 takes them. The others do not run.",
    )


class _Measured(NamedTuple):
    """A benchmark of a run. :param seconds: the mean of each time that its test case came by it."""

    test: str
    seconds: list[float]
    operations: float
    failure: str


class Catch2Harness:
    """Measures the benchmarks of programs that were built with Catch2 2.9 or newer.

    Catch2 chooses how many operations a sample of its own has, so that it takes a thousand ticks of the
    clock. What can be fixed is how many such samples there are: these are the iterations here, and their mean
    is what a round measures. A program takes half a second to look at the clock before the first benchmark:
    test cases with the same number of samples share a process. Where one ends it, those after it get another.
    """

    name: ClassVar[str] = "catch2"
    help: ClassVar[str] = "Measures the benchmarks of programs built with Catch2."
    command: ClassVar[str] = "catch2"
    Params: ClassVar[type] = Catch2Params
    together: ClassVar[bool] = True

    def detect(self, folder: Path) -> Sequence[str]:
        """The files that include its header and have benchmarks."""
        return common.files_with(
            folder, _SUFFIXES, lambda _, text: bool(_INCLUDES.search(text) and _REGISTERS.search(text))
        )

    def build(self, folder: Path, params: Catch2Params, ctx: HarnessContext) -> Sequence[SuiteProgram]:
        """The programs that the build of the project has made.

        :raises JobFailed: where one that is named is none, or does not list its test cases.
        """
        made = []
        for program in common.programs_of(folder, params.programs, _MARKS, "Catch2", ctx):
            tests = _tests(program, params.tests, ctx)
            if not tests:
                ctx.note(f"no test case of {program.name} is {params.tests}: name them in `tests`")
            made.append(program._replace(data={"tests": tests}))
        return made

    def list(
        self, program: SuiteProgram, params: Catch2Params, ctx: HarnessContext
    ) -> Sequence[NamedBenchmark]:
        """The benchmarks as `test case/section/benchmark`. They are known only where their test cases run: so
        these do, with one sample of each."""
        return [NamedBenchmark(name) for name in _run(program, program.data["tests"], 1, ctx)]

    def round(
        self,
        program: SuiteProgram,
        iterations: Mapping[NamedBenchmark, int],
        params: Catch2Params,
        ctx: HarnessContext,
    ) -> Mapping[NamedBenchmark, BenchmarkRound]:
        """Measure the benchmarks of the test cases, in the order of the program. Those of a test case cannot
        be measured apart: its time is shared by all, and where other numbers are asked for, it runs anew."""
        tests_of = {one: _test_of(one, program.data["tests"]) for one in iterations}
        unknown = {tests_of[one] for one, wanted in iterations.items() if not wanted}
        first = _run(program, [one for one in program.data["tests"] if one in unknown], 1, ctx)
        fitting = _fitting(first, ctx.seconds)
        groups: dict[int, dict[NamedBenchmark, str]] = {}
        for one, wanted in iterations.items():
            groups.setdefault(wanted or fitting.get(tests_of[one], 1), {})[one] = tests_of[one]
        found: dict[NamedBenchmark, BenchmarkRound] = {}
        for samples, group in groups.items():
            tests = [test for test in program.data["tests"] if test in group.values()]
            measured = _run(program, tests, samples, ctx)
            found |= {one: _round(measured.get(one.name), samples) for one in group}
        return {one: found[one] for one in iterations}


def _round(measured: _Measured | None, samples: int) -> BenchmarkRound:
    if measured is None or not measured.seconds:
        return BenchmarkRound(0, (), measured.failure if measured else "it is not there")
    return BenchmarkRound(samples, (BenchmarkValue("time", "", "s", tuple(measured.seconds)),))


def _fitting(measured: Mapping[str, _Measured], seconds: float) -> dict[str, int]:
    """How many samples of the benchmarks of each test case take as long as they may, as powers of two: then
    many test cases have the same number. :param measured: with one sample each."""
    by_test: dict[str, list[float]] = {}
    for one in measured.values():
        by_test.setdefault(one.test, []).extend(value * one.operations for value in one.seconds)
    shares = {test: seconds * len(took) / sum(took) for test, took in by_test.items() if sum(took) > 0}
    return {test: 1 << round(math.log2(min(max(1, share), _MOST_SAMPLES))) for test, share in shares.items()}


def _test_of(one: NamedBenchmark, tests: Sequence[str]) -> str:
    """The test case of a benchmark; empty where there is none."""
    return max((test for test in tests if one.name.startswith(test + "/")), key=len, default="")


def _tests(program: SuiteProgram, spec: str, ctx: HarnessContext) -> list[str]:
    done = ctx.run((*program.argv, "--list-tests", "--reporter", "xml", spec), program.folder, {})
    if "<MatchingTests" in done.stdout:
        found = [name.text or "" for name in _elements(done.stdout).iterfind(".//TestCase/Name")]
    else:  # before 3.0 this is text for people, and there is another option
        done = ctx.run((*program.argv, "--list-test-names-only", spec), program.folder, {})
        if done.status and not done.stdout:  # it is also the number of test cases
            raise JobFailed(f"{program.name} does not list its test cases: {common.why_not(done)}", _HINT)
        found = done.stdout.splitlines()
    return list(dict.fromkeys(name.strip() for name in found if name.strip()))


def _run(
    program: SuiteProgram, tests: Sequence[str], samples: int, ctx: HarnessContext
) -> dict[str, _Measured]:
    """What the benchmarks of these test cases measure; where one of these ends the program, another process
    goes on behind it."""
    measured: dict[str, _Measured] = {}
    left = list(tests)
    while left:
        ctx.report("running test cases", len(tests) - len(left), len(tests))
        file = ctx.scratch / "results.xml"
        file.unlink(missing_ok=True)
        argv = (
            *program.argv, ",".join(_SPECIAL.sub(r"\\\g<0>", test) for test in left), "--order", "decl",
            "--reporter", "xml", "--out", str(file), "--benchmark-samples", str(samples),
            "--benchmark-no-analysis", "--benchmark-warmup-time", str(_WARM_UP),
        )  # fmt: skip
        done = ctx.run(argv, program.folder, {})
        try:
            text = file.read_text("utf-8", "replace")
        except OSError:
            text = ""
        begun = parsed(text, measured, done)
        left = left[left.index(begun) + 1 :] if begun in left else []
    return measured


def parsed(text: str, measured: dict[str, _Measured], done: ToolOutput) -> str:
    """Add what an XML of Catch2 says; the rest of one that is cut off by a crash is missing.

    :return: the test case that began last. :raises JobFailed: where numbers are none.
    """
    test = ""
    for case in _elements(text).iter("TestCase"):
        test = case.get("name", "").strip()
        for path, result in _results(case, test):
            failed, mean, crash = (result.find(tag) for tag in ("failed", "mean", "FatalErrorCondition"))
            one = measured.setdefault(path, _Measured(test, [], 0, ""))
            if mean is not None:
                seconds = _number(mean.get("value")) / 1e9
                operations = _number(result.get("samples")) * _number(result.get("iterations"))
                measured[path] = one._replace(seconds=[*one.seconds, seconds], operations=operations)
            else:
                reason = (
                    failed.get("message") if failed is not None else crash.text if crash is not None else ""
                )
                failure = " ".join((reason or common.why_not(done)).split())
                measured[path] = one._replace(failure=failure)
    return test


def _results(case: ElementTree.Element, test: str) -> Iterator[tuple[str, ElementTree.Element]]:
    open_ = [(test, case)]
    while open_:
        path, element = open_.pop()
        if element.tag == "BenchmarkResults":
            yield path, element
            continue
        below = [one for one in element if one.tag in ("Section", "BenchmarkResults")]
        open_ += [(f"{path}/{one.get('name', '').strip()}", one) for one in reversed(below)]


def _elements(text: str) -> ElementTree.Element:
    """What there is of an XML that may be cut off. It comes of a program that runs here anyway."""
    parser: Any = ElementTree.XMLPullParser(("start",))
    try:
        parser.feed(text)
        for _, element in parser.read_events():
            if isinstance(element, ElementTree.Element):
                return element
    except ElementTree.ParseError:
        pass
    return ElementTree.Element("nothing")


def _number(text: str | None) -> float:
    try:
        number = float(text or "")
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise JobFailed(f"Catch2 wrote {text!r:.99} for a number", "is this version of it supported?")
    return number


PLUGIN = Catch2Harness
