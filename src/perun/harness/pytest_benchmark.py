"""Harness of pytest-benchmark: tests that measure a function by the fixture `benchmark`.

All tests of a round run in one process, as pytest takes long to start, in the order that is asked for. A
sample is one round of pytest-benchmark; `_pytest_rounds.py`, which runs in the Python of the project, says
how its iterations are fixed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
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

_BENCHMARK: Final = re.compile(r"^\s*def \w+\([^)]*\bbenchmark(_weave)?\b", re.MULTILINE)
_NEEDED: Final = {"pytest": "pytest", "pytest_benchmark": "pytest-benchmark"}
_HINT: Final = "run `python -m pytest --benchmark-only` to see more"
_ANSWER: Final = "answer.json"
_NONE_FOUND: Final = 5
"""The status of pytest where it collects no test."""


@dataclass(frozen=True)
class PytestBenchmarkParams:
    """Where the project is installed, and where its benchmarks are."""

    python: str = common.python_param()
    path: tuple[str, ...] = common.path_param()
    tests: tuple[str, ...] = param(
        (),
        metavar="<path>",
        help="Look for benchmarks in this file or folder of tests; may be given several times. Without it "
        "these are the files whose functions have the fixture `benchmark`.",
    )


class PytestBenchmarkHarness:
    """Runs tests that have the fixture of pytest-benchmark."""

    name: ClassVar[str] = "pytest_benchmark"
    help: ClassVar[str] = "Runs the tests of pytest that measure by the fixture of pytest-benchmark."
    command: ClassVar[str] = "pytest --benchmark-only"
    Params: ClassVar[type] = PytestBenchmarkParams
    together: ClassVar[bool] = True

    def detect(self, folder: Path) -> Sequence[str]:
        """The files with functions that take the fixture."""
        return common.files_with(folder, (".py",), lambda _, text: bool(_BENCHMARK.search(text)))

    def build(
        self, folder: Path, params: PytestBenchmarkParams, ctx: HarnessContext
    ) -> Sequence[SuiteProgram]:
        """One program; nothing is built."""
        python = common.python_of(folder, params.python, _NEEDED, params.path, ctx)
        script = str(common.copy_of("_pytest_rounds.py", ctx.scratch))
        common.copy_of("_counting.py", ctx.scratch)
        files = list(params.tests or self.detect(folder))
        if not files:
            raise JobFailed(
                "no test has the fixture `benchmark`", "the parameter `tests` names files or folders"
            )
        return [
            SuiteProgram(
                (*common.python_words(python, folder, params.path), script), folder, "", {"files": files}
            )
        ]

    def list(
        self, program: SuiteProgram, params: PytestBenchmarkParams, ctx: HarnessContext
    ) -> Sequence[NamedBenchmark]:
        """The tests that pytest collects; a file that it cannot import is noted."""
        answer, done = _run(program, program.data["files"], {}, ctx)
        names = [NamedBenchmark(*one) for one in answer.get("names", ())]
        for problem in answer.get("problems", ()):
            ctx.note(problem)
        if not names and done.status not in (0, _NONE_FOUND):
            raise JobFailed(f"pytest collects no benchmarks: {_why(answer, done)}", _HINT)
        return names

    def round(
        self,
        program: SuiteProgram,
        iterations: Mapping[NamedBenchmark, int],
        params: PytestBenchmarkParams,
        ctx: HarnessContext,
    ) -> Mapping[NamedBenchmark, BenchmarkRound]:
        """One process runs all tests."""
        chosen = {node_of(one): number for one, number in iterations.items()}
        files = dict.fromkeys(one.split("::")[0] for one in chosen)
        there = [one for one in files if (program.folder / one).exists()]
        answer, done = _run(program, there, chosen, ctx) if there else ({}, ToolOutput(0, "", ""))
        file = ctx.scratch / "benchmarks.json"
        text = (
            file.read_text(encoding="utf-8") if file.exists() else ""
        )  # old versions make it at their start
        measured = rounds_of(text, "pytest-benchmark") if text else {}
        if not answer and not measured and there:
            raise JobFailed(f"pytest runs no benchmarks: {_why(answer, done)}", _HINT)
        for node, number in answer.get("iterations", {}).items():
            if node in measured and measured[node].values:
                measured[node] = measured[node]._replace(iterations=number)
        measured |= {node: BenchmarkRound(0, (), why) for node, why in answer.get("failures", {}).items()}
        missing = BenchmarkRound(0, (), _missing(answer))
        return {one: measured.get(node_of(one), missing) for one in iterations}

    def one(
        self,
        program: SuiteProgram,
        benchmark: NamedBenchmark,
        iterations: int,
        params: PytestBenchmarkParams,
        ctx: HarnessContext,
    ) -> BenchmarkCommand:
        """As many operations again warm up before, and one more gives the value of the function. Without any,
        the tests are collected."""
        argv, environ = common.plain_python(program.argv)
        node = node_of(benchmark)
        chosen = {node: iterations} if iterations else {}
        file = _request([node.split("::")[0]], chosen, ctx, marked=common.CAN_MARK)
        number = 2 * iterations + 1 if iterations else 0
        return BenchmarkCommand((*argv, str(file)), number, environ, marked=common.CAN_MARK)


def node_of(benchmark: NamedBenchmark) -> str:
    """What pytest calls a test."""
    return f"{benchmark.name}[{benchmark.parameters}]" if benchmark.parameters else benchmark.name


def _run(
    program: SuiteProgram, files: Sequence[str], chosen: Mapping[str, int], ctx: HarnessContext
) -> tuple[dict[str, Any], ToolOutput]:
    file = _request(files, chosen, ctx, common.samples_in(ctx.seconds))
    done = ctx.run((*program.argv, str(file)), program.folder, {})
    out = ctx.scratch / _ANSWER
    return (common.json_of(out.read_text(encoding="utf-8"), "pytest") if out.exists() else {}), done


def _request(
    files: Sequence[str],
    chosen: Mapping[str, int],
    ctx: HarnessContext,
    samples: int = 1,
    *,
    marked: bool = False,
) -> Path:
    """The file that says what is to run, and that the answer is to lie beside it."""
    file = ctx.scratch / "request.json"
    request = {"files": list(files), "chosen": list(chosen.items()), "seconds": ctx.seconds, "marked": marked}
    request["samples"] = samples
    request |= {"json": str(ctx.scratch / "benchmarks.json"), "out": str(ctx.scratch / _ANSWER)}
    file.write_text(json.dumps({**request, "scratch": str(ctx.scratch)}), encoding="utf-8")
    return file


def _why(answer: Mapping[str, Any], done: ToolOutput) -> str:
    problems = answer.get("problems") or [common.shortened(done.stderr) or common.shortened(done.stdout)]
    return str(problems[0] or f"it ended with status {done.status}")


def _missing(answer: Mapping[str, Any]) -> str:
    problems = answer.get("problems")
    return str(problems[0]) if problems else "the test did not run, or measured nothing"


def rounds_of(text: str, what: str) -> dict[str, BenchmarkRound]:
    """What the JSON of pytest-benchmark has, by the names of the tests.

    :raises JobFailed: where it is none, or not as it should be.
    """
    report = common.json_of(text, what)
    try:
        found = {}
        for one in report["benchmarks"]:
            stats = one["stats"]
            samples, number = tuple(float(sample) for sample in stats["data"]), int(stats["iterations"])
            good = bool(samples) and all(math.isfinite(sample) for sample in samples)
            values = (BenchmarkValue("time", "", "s", samples),) if good else ()
            found[str(one["fullname"])] = BenchmarkRound(
                number, values, "" if good else "it has no finite samples"
            )
        return found
    except (KeyError, TypeError, ValueError, OverflowError) as problem:
        raise JobFailed(f"{what} wrote another JSON than is known: {problem!r}", _HINT) from None


PLUGIN = PytestBenchmarkHarness
