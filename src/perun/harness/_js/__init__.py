"""Benchmarks of Node.js: a program is started with the modules of this folder, which change what its library
of benchmarks does, is asked by a variable of the environment, and answers by a file (`asked.mjs`)."""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from perun.core.errors import JobFailed
from perun.harness._common import files_with, json_of, needed, text_of
from perun.plugin.params import NoParams
from perun.plugin.suites import (
    BenchmarkRound,
    BenchmarkValue,
    HarnessContext,
    NamedBenchmark,
    SuiteProgram,
    ToolOutput,
)

FOLDER: Final = Path(__file__).parent
SUFFIXES: Final = (".js", ".mjs", ".ts", ".mts")
INSTALL: Final = "install its packages by `execute.pre_run`, e.g. `npm ci`"


def node() -> str:
    """The path of Node.js."""
    return needed("node", "install Node.js 20.6 or newer: https://nodejs.org")


def imports(library: str, text: str) -> bool:
    """Whether a text in JavaScript imports from the library."""
    return re.search(rf"""\bfrom\s*['"]{re.escape(library)}['"]""", text) is not None


def package_of(folder: Path, path: str) -> Path:
    """Where a file of the folder runs: in the nearest folder above it with a `package.json`, as npm does."""
    above = [folder / parent for parent in Path(path).parents]
    return next((one for one in above if (one / "package.json").is_file()), folder)


class ScriptAnswer:
    """What a program was asked, and how it answered.

    :param wanted: operations of a sample by keys of benchmarks, none to list them.
    """

    def __init__(self, program: SuiteProgram, ctx: HarnessContext, wanted: Mapping[str, int] | None) -> None:
        with tempfile.TemporaryDirectory(dir=ctx.scratch) as folder:
            file = Path(folder, "answer.json")
            asked = {
                "list": wanted is None,
                "wanted": wanted or {},
                "seconds": ctx.seconds,
                "answer": str(file),
            }
            environ = {
                "PERUN_HARNESS_ASKED": json.dumps(asked),
                "PERUN_HARNESS_FOLDER": FOLDER.as_uri() + "/",
            }
            self.done = ctx.run(program.argv, program.folder, environ)
            text = text_of(file)
        answer = json_of(text, program.name) if text else {"listed": [], "measured": {}}
        try:
            self.listed = [(str(one["name"]), str(one["parameters"])) for one in answer["listed"]]
            self.measured = {str(key): round_of(found) for key, found in answer["measured"].items()}
        except (LookupError, TypeError, AttributeError, ValueError, OverflowError):
            raise JobFailed(f"{program.name} wrote no answer that can be read", INSTALL) from None

    def names(self, program: SuiteProgram) -> list[NamedBenchmark]:
        """The benchmarks, in their order.

        :raises JobFailed: where the program failed before there was one.
        """
        if self.done.status and not self.listed:
            raise JobFailed(f"{program.name} cannot be run: {_reason(self.done)}", INSTALL)
        return [NamedBenchmark(f"{program.name}.{name}", parameters) for name, parameters in self.listed]

    def round(self, key: str) -> BenchmarkRound:
        """What was measured of one benchmark."""
        why = _reason(self.done) if self.done.status else "is not there any more, or was not run"
        return self.measured.get(key) or BenchmarkRound(0, (), why)


def round_of(found: Any) -> BenchmarkRound:
    """A round by what a program has answered of a benchmark.

    :raises LookupError: and TypeError, ValueError, OverflowError where it is no such answer.
    """
    if "failure" in found:
        return BenchmarkRound(0, (), str(found["failure"]) or "failed without a reason")
    samples = [one if isinstance(one, (int, float)) else 0.0 for one in found["samples"]]
    if not samples or not all(0 < one < math.inf for one in samples):
        return BenchmarkRound(0, (), "takes too short to be measured")
    value = BenchmarkValue("time", "", "s", tuple(map(float, samples)))
    return BenchmarkRound(max(int(found["iterations"]), 1), (value,))


def _reason(done: ToolOutput) -> str:
    """Why a program ended: its error, which Node.js writes among the places where it was."""
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines()]
    errors = [line for line in lines if re.match(r"(\w*Error\b|\S*node: )", line)]
    said = (errors or [line for line in lines if line][-1:])[:1]
    return ": ".join([f"ended with status {done.status}", *said])


class NodeScripts:
    """What harnesses of scripts that import a library of benchmarks and run them have in common.

    Each script is run by `node` in the folder of its package, once for each benchmark of a round. TypeScript
    runs where Node.js itself takes it. Scripts that use `require` are not found.
    """

    library: ClassVar[str]
    by_position: ClassVar[bool] = False
    """Whether the key of a benchmark is its position in the list, or its name."""
    Params: ClassVar[type] = NoParams

    def detect(self, folder: Path) -> Sequence[str]:
        """The scripts that import the library."""
        return files_with(folder, SUFFIXES, lambda _, text: imports(self.library, text))

    def build(self, folder: Path, params: NoParams, ctx: HarnessContext) -> Sequence[SuiteProgram]:
        """Nothing is built: the packages of the project have to be installed before."""
        preload = (FOLDER / "preload.mjs").as_uri()
        programs = []
        for path in self.detect(folder):
            argv = (node(), "--expose-gc", "--import", preload, str(folder / path))
            programs.append(SuiteProgram(argv, package_of(folder, path), path.rpartition(".")[0]))
        return programs

    def list(self, program: SuiteProgram, params: NoParams, ctx: HarnessContext) -> Sequence[NamedBenchmark]:
        """The benchmarks of the script, which runs, without them."""
        return ScriptAnswer(program, ctx, None).names(program)

    def round(
        self,
        program: SuiteProgram,
        iterations: Mapping[NamedBenchmark, int],
        params: NoParams,
        ctx: HarnessContext,
    ) -> Mapping[NamedBenchmark, BenchmarkRound]:
        """Run the script once for each benchmark."""
        order = self.list(program, params, ctx) if self.by_position else []
        position = {one: str(number) for number, one in enumerate(order)}
        rounds = {}
        for one, number in iterations.items():
            key = position.get(one, "") if self.by_position else one.name.removeprefix(program.name + ".")
            rounds[one] = ScriptAnswer(program, ctx, {key: number}).round(key)
        return rounds
