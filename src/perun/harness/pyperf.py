"""Harness of pyperf: scripts that measure by `pyperf.Runner`.

Each benchmark of a script runs in a process of its own, a worker as pyperf starts them (`--worker
--worker-task`), for one value of a fixed number of loops after another one that warms up. To choose the
loops is left to pyperf (`--calibrate-loops`), which doubles them until they take the time; the last of these
values is the sample.
"""

from __future__ import annotations

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
)

_IMPORT: Final = re.compile(r"^\s*(import|from)\s+pyperf\b", re.MULTILINE)
_RUNNER: Final = re.compile(r"\bRunner\s*\(")
_UNITS: Final = {"second": ("time", "", "s"), "byte": ("memory", "peak", "B"), "integer": ("printed", "", "")}
"""The units of pyperf, to type, subtype and unit of resources."""
_HINT: Final = "run the script by hand with `--fast` to see more"


@dataclass(frozen=True)
class PyperfParams:
    """Where the project is installed, and which scripts measure it."""

    python: str = common.python_param()
    path: tuple[str, ...] = common.path_param()
    scripts: tuple[str, ...] = param(
        (),
        metavar="<path>",
        help="Run this script; may be given several times. Without it these are the files that make a "
        "`pyperf.Runner`.",
    )


class PyperfHarness:
    """Runs the benchmarks of scripts of pyperf."""

    name: ClassVar[str] = "pyperf"
    help: ClassVar[str] = "Runs the benchmarks of scripts that measure by the runner of pyperf."
    command: ClassVar[str] = "pyperf"
    Params: ClassVar[type] = PyperfParams

    def detect(self, folder: Path) -> Sequence[str]:
        """The scripts that import pyperf and make a runner."""
        return common.files_with(
            folder, (".py",), lambda _, text: bool(_IMPORT.search(text) and _RUNNER.search(text))
        )

    def build(self, folder: Path, params: PyperfParams, ctx: HarnessContext) -> Sequence[SuiteProgram]:
        """A program for each script; nothing is built."""
        python = common.python_of(folder, params.python, {"pyperf": "pyperf"}, params.path, ctx)
        words = common.python_words(python, folder, params.path)
        names = str(common.copy_of("_pyperf_names.py", ctx.scratch))
        scripts = params.scripts or self.detect(folder)
        if not scripts:
            raise JobFailed("no script makes a runner of pyperf", "the parameter `scripts` names some")
        return [SuiteProgram((*words, str(folder / one)), folder, one, {"names": names}) for one in scripts]

    def list(
        self, program: SuiteProgram, params: PyperfParams, ctx: HarnessContext
    ) -> Sequence[NamedBenchmark]:
        """The names that the script gives its runner, which measures nothing."""
        return list(_tasks(program, ctx))

    def round(
        self,
        program: SuiteProgram,
        iterations: Mapping[NamedBenchmark, int],
        params: PyperfParams,
        ctx: HarnessContext,
    ) -> Mapping[NamedBenchmark, BenchmarkRound]:
        """One worker of pyperf for each benchmark."""
        tasks, said = _tasks(program, ctx), {}
        for number, (benchmark, loops) in enumerate(iterations.items()):
            if benchmark not in tasks:
                said[benchmark] = BenchmarkRound(0, (), "the script does not have it")
                continue
            file = ctx.scratch / f"{number}.json"
            options = ["--worker", f"--worker-task={tasks[benchmark]}", f"--output={file}"]
            if loops:
                options += [f"--loops={loops}", "--warmups=1", "--values=1"]
            else:  # two values, as the first may have waited for the processor
                options += ["--calibrate-loops", f"--min-time={ctx.seconds:f}", "--warmups=0", "--values=2"]
            done = ctx.run((*program.argv, *options), program.folder, {})
            if done.status or not file.exists():
                why = common.shortened(done.stderr) or common.shortened(done.stdout)
                said[benchmark] = BenchmarkRound(0, (), why or f"the worker ended with status {done.status}")
            else:
                said[benchmark] = round_of(file.read_text(encoding="utf-8"))
        return said

    def one(
        self,
        program: SuiteProgram,
        benchmark: NamedBenchmark,
        iterations: int,
        params: PyperfParams,
        ctx: HarnessContext,
    ) -> BenchmarkCommand:
        """A worker with one value, without any that warms up. Without operations, of a task that is none."""
        tasks = _tasks(program, ctx)
        if benchmark not in tasks:
            raise JobFailed(f"{program.name} does not have {benchmark}", _HINT)
        argv, environ = common.plain_python(program.argv)
        task = tasks[benchmark] if iterations else len(tasks)
        words = ("--worker", f"--worker-task={task}", f"--loops={max(1, iterations)}", "--warmups=0")
        return BenchmarkCommand((*argv, *words, "--values=1"), iterations, environ)


def _tasks(program: SuiteProgram, ctx: HarnessContext) -> dict[NamedBenchmark, int]:
    """The benchmarks of the script in its order, and the numbers that workers are given."""
    *words, script = program.argv
    file = ctx.scratch / "names.json"
    common.output_of(ctx, (*words, program.data["names"], script, str(file)), program.folder, hint=_HINT)
    if not file.exists():
        raise JobFailed(f"{program.name} ended before it named its benchmarks", _HINT)
    tasks: dict[NamedBenchmark, int] = {}
    for number, name in enumerate(common.json_of(file.read_text(encoding="utf-8"), program.name)):
        tasks.setdefault(NamedBenchmark(name), number)
    return tasks


def round_of(text: str) -> BenchmarkRound:
    """What the JSON of a worker has: its values, or the last one of those that chose the loops.

    :raises JobFailed: where it is none, or not as it should be.
    """
    report = common.json_of(text, "pyperf")
    try:
        (benchmark,) = report["benchmarks"]
        (run,) = benchmark["runs"]
        metadata: dict[str, Any] = {}
        for one in (report, benchmark, run):
            metadata |= one.get("metadata", {})
        samples = [float(one) for one in run.get("values") or [run["warmups"][-1][1]]]
        loops = int(metadata.get("loops", 1)) if run.get("values") else int(run["warmups"][-1][0])
        if not all(math.isfinite(one) for one in samples):
            return BenchmarkRound(0, (), "its value is no finite number")
        kind = _UNITS[metadata.get("unit", "second")]
        return BenchmarkRound(loops, (BenchmarkValue(*kind, tuple(samples)),))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as problem:
        raise JobFailed(f"pyperf wrote another JSON than is known: {problem!r}", _HINT) from None


PLUGIN = PyperfHarness
