"""The compiled libraries that some collectors need, which the build puts beside them."""

from __future__ import annotations

from pathlib import Path

from perun.collect._common.elf import read_elf
from perun.errors import CollectorUnavailable, JobFailed
from perun.extras import reinstall_command
from perun.plugin.api import Readiness, Run
from perun.process.finding import find_executable


def readiness(library: Path, what: str) -> Readiness:
    """Whether the library was built; `what` it is, for the message: `the recorder of allocations`."""
    if library.is_file():
        return Readiness()
    hint = f"on 64-bit Linux with glibc, reinstall Perun from its sources: {reinstall_command()}"
    return Readiness("", f"{what} is missing", hint)


def require(library: Path, what: str) -> None:
    """Check that the library was built.

    :raises CollectorUnavailable: where it was not.
    """
    missing = readiness(library, what)
    if missing.missing:
        raise CollectorUnavailable(f"{missing.missing}: {library}", missing.hint)


def program_of(run: Run) -> str:
    """The path of the program or script that a run executes.

    :raises JobFailed: where it does not exist.
    """
    return find_executable(run.command().argv[0], run.cwd, run.environ)


def require_glibc(program: str, what: str) -> None:
    """Check that a program can load a library that was built for glibc. One that is linked statically, or is
    a script, passes.

    :param what: what the library does, for the message: `records allocations`.
    :raises JobFailed: where the program has another C library: the library would keep it from starting.
    """
    elf = read_elf(program)
    if elf is not None and elf.c_library not in ("", "glibc"):
        raise JobFailed(
            f"{program} is built for the C library {elf.c_library}, but the library that {what} is for glibc",
            "build the program for glibc, the usual C library of Linux",
        )
