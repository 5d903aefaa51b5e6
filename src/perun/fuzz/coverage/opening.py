"""Choosing the way in which a program is counted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perun.core.errors import PerunError, UsageError
from perun.core.process.command import find_executable
from perun.fuzz.coverage.api import BACKENDS as BACKENDS
from perun.fuzz.coverage.api import Backend, Coverage, CoverageTarget
from perun.fuzz.coverage.edges import AflCoverage, EdgeCoverage
from perun.fuzz.coverage.gcno import NotElf, read_module
from perun.fuzz.coverage.gcov import GcovCoverage
from perun.fuzz.coverage.inputs import build_flags as build_flags
from perun.fuzz.coverage.lines import HOW_TO_COMPILE


def open_coverage(
    target: CoverageTarget, scratch: Path, backend: Backend = "auto", *, notes: Sequence[Path] = ()
) -> Coverage:
    """What counts the executions of a program; it is not started yet.

    :param scratch: an empty folder, for nothing else.
    :param backend: `auto` takes the one that the program is compiled for.
    :param notes: folders with `.gcno` files (`--gcno-path`, `--source-path`), for programs that were moved
        after they were built.
    :raises UsageError: if the program is compiled for another backend than the one that is wanted.
    :raises JobFailed: if there is no such program.
    """
    program = Path(find_executable(target.argv[0], target.cwd, target.environ))
    kind = _kind(program)
    if kind == "clang-gcov":
        raise UsageError(
            f"{program} is compiled with --coverage of clang, whose counters are not read", HOW_TO_COMPILE
        )
    has = "sancov" if kind in ("edges", "afl") else kind
    if backend != "auto" and has and has != backend:
        raise UsageError(
            f"{program} is compiled for the coverage backend {has}, not for {backend}",
            f"leave --backend away, or build the program for {backend} with --build",
        )
    if kind == "afl":
        return AflCoverage(target, scratch)
    if kind == "edges" or (backend == "sancov" and not has):
        return EdgeCoverage(target, scratch)
    return GcovCoverage(target, scratch, notes)


def _kind(program: Path) -> str:
    """What the program is compiled for; empty where it cannot be told, as of a script."""
    try:
        module = read_module(program)
    except NotElf:
        return ""
    except OSError as problem:
        raise PerunError(f"cannot read {program}: {problem.strerror}") from None
    return "clang-gcov" if module.clang else module.kind
