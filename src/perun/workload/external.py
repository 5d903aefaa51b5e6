"""External generator: a program of the user's own that writes workloads."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from perun.core.errors import JobFailed
from perun.core.process import programs
from perun.plugin.api import GenerateContext, Workload
from perun.plugin.params import param

_SHOWN_LINES: Final = 10


@dataclass(frozen=True)
class ExternalParams:
    """The program, and how the sizes of its workloads are known."""

    cmd: str = param(
        dataclasses.MISSING,
        help="The program with its arguments; {folder} and {seed} in them are where it writes, and the seed.",
    )
    size: str = param(
        "",
        help="Regular expression that finds the size in the name of a file, or in a line: its group `size`, "
        "or the first.",
    )
    timeout: float = param(0.0, minimum=0, help="Seconds after which it is ended; 0 for never.")

    def __post_init__(self) -> None:
        try:
            arguments = shlex.split(self.cmd)
        except ValueError as problem:
            raise ValueError(f"cmd {self.cmd!r} cannot be split: {problem}") from None
        if not arguments:
            raise ValueError("cmd is empty")
        try:
            groups = re.compile(self.size).groups
        except (re.error, RecursionError, OverflowError) as problem:
            raise ValueError(f"size {self.size!r} is not a regular expression: {problem}") from None
        if self.size and not groups:
            raise ValueError(rf"size {self.size!r} has no group, e.g. (\d+)")


class ExternalGenerator:
    """Runs a program, whose files are the workloads, or the lines of its output if it writes no files.

    It finds the folder for its files in the variable `PERUN_WORKLOADS`, and in `PERUN_SEED` a number to
    begin its random numbers with. Files are taken in the order of their names, numbers in these as numbers.
    """

    name: ClassVar[str] = "external"
    help: ClassVar[str] = "Generates what a program writes: files, or lines."
    Params: ClassVar[type] = ExternalParams

    def generate(self, params: ExternalParams, ctx: GenerateContext) -> Iterator[Workload]:
        """The files or lines, with the size found by `size`; else it is that in bytes, or the line as number.

        :raises JobFailed: if the program cannot be run, fails or writes nothing, or a size is not found.
        """
        output = _run(params, ctx)
        files = [path for path in ctx.folder.rglob("*") if path.is_file()]
        names = {path.relative_to(ctx.folder).as_posix(): path for path in files}
        for name in sorted(names, key=_natural):
            path = names[name]
            yield Workload(name, _found(params.size, name) if params.size else path.stat().st_size, path)
        lines = [] if names else [line for line in output.splitlines() if line.strip()]
        for line in lines:
            yield Workload(line, _found(params.size, line) if params.size else _number(line))
        if not names and not lines:
            hint = f"write files into {{folder}} (also ${{PERUN_WORKLOADS}}), or lines: {params.cmd}"
            raise JobFailed("the program wrote no workloads", hint)


def _run(params: ExternalParams, ctx: GenerateContext) -> str:
    known = {"{folder}": str(ctx.folder), "{seed}": str(ctx.seed)}
    arguments = shlex.split(params.cmd)
    for mark, value in known.items():
        arguments = [argument.replace(mark, value) for argument in arguments]
    environ = {**ctx.environ, "PERUN_WORKLOADS": str(ctx.folder), "PERUN_SEED": str(ctx.seed)}
    if "/" in arguments[0]:
        arguments[0] = os.path.join(ctx.cwd, arguments[0])
    try:
        done = programs.run(arguments, cwd=ctx.cwd, environ=environ, timeout=params.timeout)
    except OSError as problem:
        raise JobFailed(
            f"{params.cmd!r} cannot be started in {ctx.cwd}: {problem.strerror}",
            "it runs without a shell; write `sh -c '...'` if one is needed",
        ) from None
    except programs.TimeoutExpired:
        what = f"{params.cmd!r} did not end within {params.timeout:g} s"
        raise JobFailed(what, "set the parameter timeout of the generator; 0 is no limit") from None
    if done.code:
        lines = done.stderr.decode("utf-8", "replace").splitlines()[-_SHOWN_LINES:]
        how = f"status {done.code}" if done.code > 0 else f"signal {-done.code}"
        raise JobFailed("\n".join([f"{params.cmd!r} ended with {how}", *("  " + line for line in lines)]))
    return done.stdout.decode("utf-8", "surrogateescape")


def _found(pattern: str, text: str) -> float:
    match = re.search(pattern, text)
    if match is not None:
        number = _number(match["size"] if "size" in match.re.groupindex else match[1])
        if number is not None:
            return number
    raise JobFailed(f"no size in the workload {text!r}", f"{pattern!r} has to find a number in each")


def _number(text: str | None) -> float | None:
    for kind in (int, float):
        try:
            number = kind(text or "")
        except ValueError:
            continue
        return number if abs(number) < float("inf") else None
    return None


def _natural(name: str) -> tuple[list[tuple[int, str]], str]:
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(int(part), "") if part[0] in "0123456789" else (0, part) for part in parts], name


PLUGIN = ExternalGenerator
