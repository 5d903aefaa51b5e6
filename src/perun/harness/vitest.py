"""The benchmarks that `vitest bench` runs in projects of JavaScript."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

from perun.core.errors import CollectorUnavailable
from perun.harness._common import files_with, json_of, text_of
from perun.harness._js import FOLDER, INSTALL, ScriptAnswer, imports, node, package_of
from perun.plugin.params import NoParams
from perun.plugin.suites import BenchmarkRound, HarnessContext, NamedBenchmark, SuiteProgram

_SUFFIXES: Final = tuple(
    f".{kind}.{dialect}" for kind in ("bench", "benchmark")
    for dialect in ("js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx")
)  # fmt: skip
_VERSIONS: Final = ("1", "2", "3", "4")
"""Version 5 has other benchmarks."""
_OURS: Final = ("vitest_start.mjs", "vitest.mjs")


class VitestHarness:
    """Runs the benchmarks of vitest (1 to 4): those of a file in one process a round, by a runner that is put
    into `node_modules/.perun` of the package. Those of vitest 5 are others, and not supported.

    Options of a benchmark for times, iterations and warming up are replaced. Each is warmed up for a tenth
    of a second at least, then run five times; each run is a sample, the mean of its calls. What one does to
    the compiler of the process may change the times of the next ones in the file.
    """

    name: ClassVar[str] = "vitest"
    help: ClassVar[str] = "Runs the benchmarks of `vitest bench` in projects of JavaScript and TypeScript."
    command: ClassVar[str] = "vitest bench"
    Params: ClassVar[type] = NoParams
    together: ClassVar[bool] = True

    def detect(self, folder: Path) -> Sequence[str]:
        """The files named like `x.bench.ts` that import vitest, or have its names as globals."""
        return files_with(folder, _SUFFIXES, lambda _, text: imports("vitest", text) or "bench(" in text)

    def build(self, folder: Path, params: NoParams, ctx: HarnessContext) -> Sequence[SuiteProgram]:
        """Put the runner where it finds vitest; the packages of the project have to be installed before."""
        programs = []
        for path in self.detect(folder):
            package = package_of(folder, path)
            _check(folder, package)
            ours = package / "node_modules" / ".perun"
            ours.mkdir(parents=True, exist_ok=True)
            for name in _OURS:
                shutil.copyfile(FOLDER / name, ours / name)
            argv = (node(), str(ours / _OURS[0]), str((folder / path).relative_to(package)))
            programs.append(SuiteProgram(argv, package, path.partition(".")[0]))
        return programs

    def list(self, program: SuiteProgram, params: NoParams, ctx: HarnessContext) -> Sequence[NamedBenchmark]:
        """The benchmarks of the file, named with their suites; nothing is measured."""
        return ScriptAnswer(program, ctx, None).names(program)

    def round(
        self,
        program: SuiteProgram,
        iterations: Mapping[NamedBenchmark, int],
        params: NoParams,
        ctx: HarnessContext,
    ) -> Mapping[NamedBenchmark, BenchmarkRound]:
        """Measure the benchmarks in the order of the file, in one process: to start vitest takes a second."""
        keys = {one: one.name.removeprefix(program.name + ".") for one in iterations}
        answer = ScriptAnswer(program, ctx, {keys[one]: number for one, number in iterations.items()})
        return {one: answer.round(key) for one, key in keys.items()}


def _check(folder: Path, package: Path) -> None:
    for one in (one for one in (package, *package.parents) if one == folder or folder in one.parents):
        if text := text_of(one / "node_modules" / "vitest" / "package.json"):
            version = str(json_of(text, "the package of vitest").get("version"))
            if version.partition(".")[0] not in _VERSIONS:
                raise CollectorUnavailable(
                    f"vitest {version} is installed", "its versions 1 to 4 are supported"
                )
            return
    raise CollectorUnavailable(f"vitest is not installed in {package}", INSTALL)


PLUGIN = VitestHarness
