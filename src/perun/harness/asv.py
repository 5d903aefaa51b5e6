"""Harness of asv: runs its suites as they are, without asv.

A suite is a folder with `asv.conf.json`, which names the package of the benchmarks. A script finds and
measures them in the Python of the project (`_asv_runner.py`). It keeps to what asv documents, but for what
follows from rounds: Perun says how many there are (`rounds`) and how long samples take (`sample_time`). The
suite says `number`, unless the iterations are given, `repeat` (1 without it) and `warmup_time` (one sample).
"""

from __future__ import annotations

import json
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
)

_NAMES: Final = ("asv.conf.json", "asv.conf.jsonc")
_BENCHMARK: Final = re.compile(
    r"^\s*(async\s+)?def\s+((time|timeraw|mem|peakmem|track)_\w|(Time|Timeraw|Mem|PeakMem|Track)[A-Z_])", re.M
)
_IS_TIME: Final = re.compile(r"time(raw)?_|Time(raw)?[A-Z_]")
_COMMENT: Final = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_COMMA: Final = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
_TIMEOUT: Final = 60.0
"""Seconds of a benchmark, where neither it nor the configuration says it."""
_HINT: Final = "run the benchmarks by `asv run --python=same` to see more"


@dataclass(frozen=True)
class AsvParams:
    """Where the project is installed, and what of the configuration is left aside."""

    python: str = common.python_param()
    path: tuple[str, ...] = common.path_param()
    ignore_matrix: bool = param(
        False,
        help="Measure in the environment that is there, though the `matrix` of the suite asks for others.",
    )


class AsvHarness:
    """Runs the benchmarks of suites of asv."""

    name: ClassVar[str] = "asv"
    help: ClassVar[str] = (
        "Runs the benchmarks of suites of asv (airspeed velocity), which need not be installed."
    )
    command: ClassVar[str] = "asv"
    Params: ClassVar[type] = AsvParams
    together: ClassVar[bool] = True

    def detect(self, folder: Path) -> Sequence[str]:
        """The modules of benchmarks that the configurations of asv name."""
        found: list[str] = []
        for file in _configurations(folder):
            try:
                suite = _suite(file, config_of(common.text_of(file), file.name))
                inside = suite.relative_to(folder.resolve())
            except (JobFailed, ValueError):
                continue
            modules = common.files_with(suite, (".py",), lambda _, text: bool(_BENCHMARK.search(text)))
            found += [(inside / one).as_posix() for one in modules]
        return sorted(set(found))[: common.MOST_FOUND]

    def build(self, folder: Path, params: AsvParams, ctx: HarnessContext) -> Sequence[SuiteProgram]:
        """A program for each configuration; nothing is built."""
        python = common.python_of(folder, params.python, {}, params.path, ctx)
        words = (
            *common.python_words(python, folder, params.path),
            str(common.copy_of("_asv_runner.py", ctx.scratch)),
        )
        common.copy_of("_counting.py", ctx.scratch)
        programs = []
        for file in _configurations(folder):
            where = file.relative_to(folder).as_posix()
            config = config_of(common.text_of(file), where)
            environ = {} if params.ignore_matrix else _environ(config, where)
            suite = _suite(file, config)
            if not suite.is_dir():
                raise JobFailed(f"{where}: there is no folder {suite}", "`benchmark_dir` names it")
            data = {
                "suite": str(suite),
                "environ": {**environ, "ASV": "true"},
                "spawn": config.get("launch_method") == "spawn",
                "timeout": _number(config.get("default_benchmark_timeout")) or _TIMEOUT,
            }
            name = file.parent.relative_to(folder).as_posix()
            programs.append(SuiteProgram(words, file.parent, "" if name == "." else name, data))
        if not programs:
            raise JobFailed(f"there is no asv.conf.json in {folder}", "`asv quickstart` makes one")
        ctx.note(f"asv: measured is the environment of {python}; those of the configuration are not made")
        return programs

    def list(self, program: SuiteProgram, params: AsvParams, ctx: HarnessContext) -> Sequence[NamedBenchmark]:
        """The benchmarks by module; a module that cannot be imported is noted."""
        lines = _lines(program, {}, ctx)
        names, problems = names_of(next(lines))
        for problem in problems:
            ctx.note(problem)
        if problems and not names:
            raise JobFailed(f"the suite of asv has no benchmarks: {problems[0]}", _HINT)
        return names

    def round(
        self,
        program: SuiteProgram,
        iterations: Mapping[NamedBenchmark, int],
        params: AsvParams,
        ctx: HarnessContext,
    ) -> Mapping[NamedBenchmark, BenchmarkRound]:
        """One process imports the suite, and its copies measure."""
        lines = _lines(program, iterations, ctx)
        next(lines)
        said = dict(round_of(line) for line in lines)
        missing = BenchmarkRound(0, (), "the suite ended before")
        return {one: said.get(one, missing) for one in iterations}

    def one(
        self,
        program: SuiteProgram,
        benchmark: NamedBenchmark,
        iterations: int,
        params: AsvParams,
        ctx: HarnessContext,
    ) -> BenchmarkCommand:
        """In the process that imports the suite, one sample without any that warms up. What is no time runs
        once."""
        argv, environ = common.plain_python(program.argv)
        file = _request(program, {benchmark: iterations} if iterations else {}, ctx, alone=True)
        environ = {**program.data["environ"], **environ}
        is_time = _IS_TIME.match(benchmark.name.rpartition(".")[2]) is not None
        number = iterations if is_time else min(iterations, 1)
        return BenchmarkCommand((*argv, str(file)), number, environ, marked=is_time and common.CAN_MARK)


def _configurations(folder: Path) -> list[Path]:
    found = common.files_with(folder, _NAMES, lambda path, _: path.rsplit("/", 1)[-1] in _NAMES)
    return [folder / one for one in found]


def config_of(text: str, where: str) -> dict[str, Any]:
    """The configuration, which may have comments, and commas at the end of lists.

    :raises JobFailed: where it is no mapping in JSON.
    """
    plain = _COMMA.sub(_kept, _COMMENT.sub(_kept, text))
    try:
        config = json.loads(plain)
    except (ValueError, RecursionError) as problem:
        raise JobFailed(f"{where} is no JSON: {problem}") from None
    if not isinstance(config, dict):
        raise JobFailed(f"{where} is no mapping")
    return config


def _kept(match: re.Match[str]) -> str:
    return match[1] or ""


def _suite(file: Path, config: Mapping[str, Any]) -> Path:
    return (file.parent / str(config.get("benchmark_dir") or "benchmarks")).resolve()


def _environ(config: Mapping[str, Any], where: str) -> dict[str, str]:
    """The variables that the matrix sets.

    :raises JobFailed: where it asks for versions of packages, or for several environments.
    """
    matrix = config.get("matrix") or {}
    parts = matrix if isinstance(matrix, dict) else {"req": matrix}
    if not parts.keys() & {"req", "env", "env_nobuild"}:
        parts = {"req": parts}  # as it was before asv 0.5
    environ: dict[str, str] = {}
    for part, wanted in parts.items():
        for name, values in wanted.items() if isinstance(wanted, dict) else [(str(wanted), "")]:
            choices = [str(one) for one in (values if isinstance(values, list) else [values]) if one]
            if choices and (part == "req" or len(choices) > 1):
                raise JobFailed(
                    f"{where}: the matrix asks for {name} {', '.join(choices)}, and only the environment "
                    "that is there is measured",
                    "the parameter `ignore_matrix` measures it all the same",
                )
            if choices and part != "req":
                environ[str(name)] = choices[0]
    return environ


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) and value > 0 else 0.0


def _lines(
    program: SuiteProgram, iterations: Mapping[NamedBenchmark, int], ctx: HarnessContext
) -> Iterator[Any]:
    """What the runner answers: a line for the names, then one for each benchmark."""
    file, out = _request(program, iterations, ctx), ctx.scratch / "answer"
    common.output_of(ctx, (*program.argv, str(file)), program.folder, program.data["environ"], _HINT)
    lines = out.read_text().splitlines() if out.exists() else []
    if not lines:
        raise JobFailed("the suite of asv ended the process that imports it", _HINT)
    for line in lines:
        yield common.json_of(line, "the suite of asv")


def _request(
    program: SuiteProgram,
    iterations: Mapping[NamedBenchmark, int],
    ctx: HarnessContext,
    *,
    alone: bool = False,
) -> Path:
    """The file that says what is to be measured. :param alone: in one process, and once."""
    file, scratch = ctx.scratch / "request.json", ctx.scratch / "suite"
    scratch.mkdir()
    chosen = [[one.name, one.parameters, number] for one, number in iterations.items()]
    known = {name: program.data[name] for name in ("suite", "spawn", "timeout")}
    request = {**known, "seconds": ctx.seconds, "chosen": chosen, "scratch": str(scratch), "alone": alone}
    request["samples"] = common.samples_in(ctx.seconds)
    request["marked"] = alone and common.CAN_MARK
    file.write_text(json.dumps({**request, "out": str(ctx.scratch / "answer")}), encoding="utf-8")
    return file


def names_of(line: Any) -> tuple[list[NamedBenchmark], list[str]]:
    """The benchmarks of the first line, and what could not be imported."""
    return [NamedBenchmark(*one) for one in line["names"]], list(line["problems"])


def round_of(line: Any) -> tuple[NamedBenchmark, BenchmarkRound]:
    """What a line says of its benchmark."""
    values = [
        BenchmarkValue(**{**one, "samples": tuple(map(float, one["samples"]))})
        for one in line.get("values", ())
    ]
    name = NamedBenchmark(line["name"], line["parameters"])
    return name, BenchmarkRound(line.get("iterations", 0), tuple(values), line.get("failure", ""))


PLUGIN = AsvHarness
