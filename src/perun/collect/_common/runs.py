"""What collectors do after a run: refuse one that failed, and mark an incomplete profile."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.core.errors import CollectorUnavailable, JobFailed, UsageError
from perun.core.extras import reinstall_command
from perun.core.process import programs
from perun.core.process.command import failed, find_executable, outcome
from perun.core.process.execution import INTERRUPTED, TIMEOUT, RunSample
from perun.native.elf import read_elf
from perun.plugin.api import Interrupted, Readiness, Run
from perun.plugin.params import param
from perun.profile import incomplete
from perun.profile.factory import Profile
from perun.profile.incomplete import Incomplete

IGNORE_FAILURE: Final = "correct the command, or measure it anyway with --ignore-failure (-i)"
"""The hint for a command that fails."""
CONFINED: Final = 4095
"""The number of an error in files of recorders: RECORD_CONFINED of `native/confining.h`."""
_CONFINED_ITSELF: Final = (
    " and forbids itself system calls (seccomp), so that what the recorder does within it may be the reason"
)
_INSTEAD: Final = (
    "; measure it without its seccomp, or by what does nothing within it: perun collect time, or trace with "
    "--engine ebpf"
)


def require_recorded(
    run: Run, sample: RunSample, errors: Sequence[str], *, ignore_failure: bool, hint: str = IGNORE_FAILURE
) -> None:
    """Refuse a run of a command that failed.

    A run that was stopped or killed by a signal is not refused: what it did until then may be what the user
    looks for.

    :param errors: the last lines of the standard error of the command.
    :raises JobFailed: where the command ended by itself and failed, unless `ignore_failure` is true.
    """
    if sample.early or not sample.status or os.WIFSIGNALED(sample.status) or ignore_failure:
        return
    raise failed(run, sample.status, errors, hint)


def shortfalls(sample: RunSample, timeout: float, lost: int = 0, what: str = "calls") -> list[Incomplete]:
    """What a recording of the run lacks.

    :param timeout: the time limit of the run in seconds. :param lost: number of events that were lost.
    :param what: what these events are, in the plural.
    """
    found = []
    if sample.early == INTERRUPTED:
        found.append(incomplete.interrupted(sample.real))
    elif sample.early == TIMEOUT:
        found.append(incomplete.timed_out(timeout))
    elif os.WIFSIGNALED(sample.status):
        found.append(incomplete.killed(os.WTERMSIG(sample.status)))
    if lost:
        found.append(incomplete.lost(lost, what))
    return found


def stopped_because(error: int) -> str:
    """Why a recorder stopped recording, for the number of an error in its files."""
    if error == CONFINED:
        return "the program took system calls or the clock from itself: seccomp or PR_SET_TSC"
    return os.strerror(error)


def ended(sample: RunSample) -> str:
    """How the run ended, in words; also that a recorder may be why a program that confines itself did so."""
    return outcome(sample.status) + _CONFINED_ITSELF * sample.confined


def instead(sample: RunSample) -> str:
    """How to measure a program that a recorder within it may have ended, to go on from :func:`ended`."""
    return _INSTEAD * sample.confined


def early_end(sample: RunSample, timeout: float) -> str:
    """How the run ended early, in words; empty if it ended normally."""
    if os.WIFSIGNALED(sample.status) and not sample.early:
        return ended(sample)
    return "".join(f"was {reason}" for reason in shortfalls(sample, timeout))


def completed(profile: Profile, sample: RunSample, lacks: Iterable[Incomplete]) -> Profile:
    """The profile, marked as incomplete where it lacks a part of the run.

    :raises Interrupted: where the user interrupted the run; it has the profile.
    """
    incomplete.mark(profile, lacks)
    if sample.interruption is not None:
        raise Interrupted(profile) from sample.interruption
    return profile


# The regions that the profiles of all collectors begin with (manual 2.1).


def new_profile(
    run: Run, kind: str, units: Mapping[str, str], collector: str, params: Mapping[str, Any]
) -> Profile:
    """A profile of a run without resources.

    :param kind: the type of the profile, e.g. `time`. :param units: type of resources to its unit.
    :param collector: name of the collector, and :param params: its parameters.
    """
    return Profile(
        {
            "header": {
                "type": kind,
                "units": dict(units),
                "cmd": run.cmd,
                "args": run.args,
                "workload": run.workload,
            },
            "collector_info": {"name": collector, "params": dict(params)},
            "postprocessors": [],
        }
    )


# Parameters that several collectors have.


def timeout(*, kept: bool = False) -> Any:
    """Seconds after which a run is stopped, a `float`.

    :param kept: what was recorded until then is kept; otherwise the job fails.
    """
    then = "fail the job"
    if kept:
        then = "keep what was recorded until then as an incomplete profile"
    return param(
        0.0,
        metavar="<seconds>",
        minimum=0,
        help=f"Stop the command after so many seconds, and {then}; 0 means no limit.",
    )


def ignore_failure() -> Any:
    """Whether a command that fails has a profile, a `bool`; one that a signal kills always has one."""
    return param(
        False,
        short="-i",
        help="Also make a profile if the command fails; a command killed by a signal always gets one.",
    )


# The compiled libraries that some collectors need, which the build puts beside them.


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


def has_other_privileges(program: str) -> bool:
    """Whether a program runs with the privileges of another user, of a group, or with capabilities.

    :raises OSError: where it cannot be looked at.
    """
    status = os.stat(program)
    if status.st_mode & 0o6000 and (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        return True
    try:
        return "security.capability" in os.listxattr(program)
    except OSError:  # the file system has no attributes
        return False


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


def refuse_sanitizer(program: str, what: str) -> None:
    """Check that a program is not built with AddressSanitizer, which ends where another library is loaded
    first or its memory lies elsewhere.

    :param what: what cannot be done then, for the message: `record its allocations`.
    :raises JobFailed: where it is.
    """
    try:
        with open(program, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            found = content[:4] == b"\x7fELF" and content.find(b"\0__asan_init\0") >= 0
    except (OSError, ValueError):  # it is empty, or cannot be read
        return
    if found:
        raise JobFailed(
            f"{program} is built with AddressSanitizer, which allows nothing else to {what}",
            "build it without -fsanitize=address, or use perun collect time, or trace with --engine ebpf",
        )


# Which Python interpreter a command runs, and what program in it.

_NAME: Final = re.compile(r"python(\d+(\.\d+)?)?[dt]?")
_WITH_VALUE: Final = ("-W", "-X", "--check-hash-based-pycs")


class InterpreterCommand(NamedTuple):
    """A Python program: the path of its interpreter, the interpreter's options, and the words after them."""

    python: str
    options: list[str]
    words: list[str]


_OTHERS: Final = "leave out --python for other programs"


def python_program_of(run: Run, what: str = "--python", others: str = _OTHERS) -> InterpreterCommand:
    """The Python program that the command runs.

    :param what: needs one, for the message. :param others: what to do with programs of other languages.
    :raises UsageError: if the command runs something else, or a program from standard input.
    :raises JobFailed: if the command does not exist.
    """
    argv = run.command().argv
    path = find_executable(argv[0], run.cwd, run.environ)
    if not _NAME.fullmatch(os.path.basename(path)):
        interpreter = _interpreter(path)
        if not interpreter:
            raise UsageError(
                f"{what} needs a Python program, but {argv[0]!r} is not one",
                f"measure `python3 program.py`, or a script whose '#!' line names a Python; {others}",
            )
        argv = [*interpreter, path, *argv[1:]]
        path = find_executable(argv[0], run.cwd, run.environ)
    options, words = _split(argv[1:])
    if not words:
        raise UsageError(
            f"{what} cannot record {str(run)!r}, because it reads its program from standard input",
            "put the program into a file, and measure that",
        )
    return InterpreterCommand(path, options, words)


def succeeds(code: str, run: Run, python: str, options: Sequence[str] = ()) -> bool:
    """Whether the interpreter, in the place of the run, executes the code and ends with success."""
    return not programs.run([python, *options, "-c", code], cwd=run.cwd, environ=run.environ).code


def _interpreter(path: str) -> list[str]:
    """The words of the `#!` line of a script, if they name a Python; else none."""
    with open(path, "rb") as file:
        first = file.readline(1024)
    if not first.startswith(b"#!"):
        return []
    words = first[2:].decode("utf-8", "replace").split()
    if words and os.path.basename(words[0]) == "env":
        words = words[2:] if words[1:2] == ["-S"] else words[1:]
    return words if words and _NAME.fullmatch(os.path.basename(words[0])) else []


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The options of the interpreter, and the rest: a program, or `-m` or `-c` and a value; and arguments."""
    options: list[str] = []
    position = 0
    while position < len(words):
        word = words[position]
        if word == "-" or not word.startswith("-"):
            return options, [] if word == "-" else list(words[position:])
        # Options of one letter may be joined: `-Bm module`.
        cluster = "" if word.startswith(("--", "-W", "-X")) else word[1:]
        ends = [place for place, letter in enumerate(cluster) if letter in "cm"]
        if ends:
            options += [f"-{cluster[: ends[0]]}"] * bool(ends[0])
            value = cluster[ends[0] + 1 :]
            rest = [value, *words[position + 1 :]] if value else list(words[position + 1 :])
            return options, [f"-{cluster[ends[0]]}", *rest] if rest else []
        taken = 2 if word in _WITH_VALUE else 1
        options += words[position : position + taken]
        position += taken
    return options, []
