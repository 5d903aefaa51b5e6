"""Giving an input to the program: as a file, on standard input, or as an argument."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from perun.core.atomic import PathErrors
from perun.core.errors import CollectorUnavailable, JobFailed, UsageError
from perun.core.process import programs
from perun.core.process.command import find_executable
from perun.fuzz.coverage.api import PLACE, Backend, CoverageTarget
from perun.fuzz.coverage.shared import ARGUMENT_SIZE, LIBRARY


class TargetInput:
    """The input of one target, in a folder of its own.

    :ivar argv: the words of the command; the input is written in them where :data:`PLACE` was.
    :ivar index: which argument is the input itself, 0 if none is.
    :ivar path: the file of the input, which is there whatever the way, for programs that look at it.
    """

    def __init__(self, target: CoverageTarget, scratch: Path) -> None:
        """
        :raises UsageError: if an argument is the input and the command has several places for it.
        :raises JobFailed: if there is no such program.
        """
        self.way = target.input
        self.path = scratch / f"input{target.suffix}"
        words = list(target.argv)
        self.program = Path(find_executable(words[0], target.cwd, target.environ))
        if self.way != "stdin" and not any(PLACE in word for word in words[1:]):
            words.append(PLACE)
        self.index = 0
        if self.way == "argument":
            places = [index for index, word in enumerate(words) if index and PLACE in word]
            if len(places) > 1 or words[places[0]].count(PLACE) > 1:
                raise UsageError(
                    f"the command has {PLACE} more than once, but the input is an argument",
                    f"write {PLACE} once, or pass the input as a file",
                )
            self.index = places[0]
            before, _, after = words[self.index].partition(PLACE)
            self._around = os.fsencode(before), os.fsencode(after)
            self.argv = words
        else:
            self.argv = [words[0], *(word.replace(PLACE, str(self.path)) for word in words[1:])]
        self.path.write_bytes(b"")
        self._standard = os.open(self.path, os.O_RDWR | os.O_CLOEXEC) if self.way == "stdin" else -1

    @property
    def stdin(self) -> int | None:
        """The descriptor that is standard input of the program; None for an empty one."""
        return self._standard if self.way == "stdin" else None

    def write(self, data: bytes) -> None:
        """Make `data` the input of the next run.

        :raises OSError: if it cannot be written, with the name of its file.
        """
        with PathErrors(self.path):
            self._write(data)

    def _write(self, data: bytes) -> None:
        if self.way == "file":
            # Opened anew, as the program may have removed it; not emptied first, which some file systems make
            # ten times as slow.
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                _write(file, data)
            finally:
                os.close(file)
        elif self.way == "stdin":
            _write(self._standard, data)
            os.lseek(self._standard, 0, os.SEEK_SET)

    def argument(self, data: bytes) -> bytes:
        """The argument that the input is a part of; see :func:`as_argument`."""
        before, after = self._around
        return (before + as_argument(data) + after)[: ARGUMENT_SIZE - 1]

    def words(self, data: bytes) -> list[str | bytes]:
        """The command with the input."""
        words: list[str | bytes] = list(self.argv)
        if self.index:
            words[self.index] = self.argument(data)
        return words

    def close(self) -> None:
        """Close what is open."""
        if self._standard >= 0:
            os.close(self._standard)
            self._standard = -1


def _write(file: int, data: bytes) -> None:
    """Make `data` the whole content."""
    done = 0
    while done < len(data):
        done += os.pwrite(file, data[done:] if done else data, done)
    if os.lseek(file, 0, os.SEEK_END) > len(data):  # to look costs less than to cut what is not longer
        os.ftruncate(file, len(data))


def as_argument(data: bytes) -> bytes:
    """What a program sees of an input that is an argument: it ends at the first zero byte."""
    return data.partition(b"\0")[0][: ARGUMENT_SIZE - 1]


# Building the program that is fuzzed, with counters: `perun fuzz --build "make CFLAGS={flags}"`.

_PLACES: Final = ("flags", "cc", "cxx")
_VARIABLES: Final = ("CFLAGS", "CXXFLAGS", "LDFLAGS")
_LAST_LINES: Final = 15
"""How much of what a failed build printed is shown."""


class CompilerFlags(NamedTuple):
    """What a program is compiled and linked with.

    :ivar flags: for each call of the compiler, those that link included; `{flags}` in the command.
    :ivar cc: the C compiler; `{cc}`, and the variable CC.
    :ivar cxx: the C++ compiler; `{cxx}`, and the variable CXX.
    """

    flags: str
    cc: str
    cxx: str


def build_flags(backend: Backend) -> CompilerFlags:
    """What programs for a backend are compiled with; for `auto` those of gcc."""
    if backend == "sancov":
        library = shlex.quote(str(LIBRARY))
        return CompilerFlags(
            "-g -O1 -fsanitize-coverage=trace-pc-guard -fno-sanitize-link-runtime "
            f"-Wno-unused-command-line-argument -Wl,--no-as-needed {library}",
            "clang",
            "clang++",
        )
    return CompilerFlags("-g -O1 --coverage", "gcc", "g++")


def build(
    command: str, backend: Backend, cwd: Path, environ: Mapping[str, str], made: CompilerFlags | None = None
) -> None:
    """Run the user's command that builds the program, by a shell, with the flags written in it.

    Where the command has no place for them they are in the variables CFLAGS, CXXFLAGS and LDFLAGS, which most
    builds heed; CC and CXX name the compilers.

    :param made: other flags than those of the backend.
    :raises UsageError: if the command has an unknown place in braces.
    :raises CollectorUnavailable: if there is no such compiler.
    :raises JobFailed: if the command fails; the hint has the end of what it printed.
    """
    made = made or build_flags(backend)
    words = _filled(command, made)
    if shutil.which(made.cc, path=environ.get("PATH")) is None:
        package = "clang" if backend == "sancov" else "gcc"
        raise CollectorUnavailable(f"there is no {made.cc} to build with", f"apt-get install {package}")
    variables = {
        "CC": made.cc,
        "CXX": made.cxx,
        **{name: f"{environ.get(name, '')} {made.flags}".strip() for name in _VARIABLES},
    }
    done = programs.run(
        ["/bin/sh", "-c", words], cwd=cwd, environ={**environ, **variables}, stderr=programs.STDOUT
    )
    if done.code:
        printed = done.stdout.decode(errors="replace").rstrip().splitlines()
        raise JobFailed(
            f"--build {command!r} failed with exit code {done.code}, run in {cwd} as: {words}",
            "\n".join(printed[-_LAST_LINES:]) or "it printed nothing",
        )


def _filled(command: str, made: CompilerFlags) -> str:
    """The command with `{flags}`, `{cc}` and `{cxx}` replaced; other braces are the shell's."""
    filled = command
    for name, value in zip(_PLACES, (made.flags, made.cc, made.cxx), strict=True):
        filled = _replace(filled, "{" + name + "}", value)
    if not command.strip():
        raise UsageError("--build has no command", "write for example --build 'make CFLAGS={flags}'")
    return filled


def _replace(command: str, place: str, value: str) -> str:
    """The value in the place; quoted, unless the place is already in quotes or a word of flags of its own."""
    parts = command.split(place)
    made = parts[0]
    for part in parts[1:]:
        assignment = made.rpartition(" ")[2]
        inside = made.count('"') % 2 or made.count("'") % 2
        made += (shlex.quote(value) if assignment.endswith("=") and not inside else value) + part
    return made
