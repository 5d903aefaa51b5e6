"""Building the program that is fuzzed, with counters: `perun fuzz --build "make CFLAGS={flags}"`."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from perun.errors import CollectorUnavailable, JobFailed, UsageError
from perun.fuzz.coverage.api import Backend
from perun.fuzz.coverage.shared import LIBRARY
from perun.process import programs

_PLACES: Final = ("flags", "cc", "cxx")
_VARIABLES: Final = ("CFLAGS", "CXXFLAGS", "LDFLAGS")
_LAST_LINES: Final = 15
"""How much of what a failed build printed is shown."""


class Flags(NamedTuple):
    """What a program is compiled and linked with.

    :ivar flags: for each call of the compiler, those that link included; `{flags}` in the command.
    :ivar cc: the C compiler; `{cc}`, and the variable CC.
    :ivar cxx: the C++ compiler; `{cxx}`, and the variable CXX.
    """

    flags: str
    cc: str
    cxx: str


def build_flags(backend: Backend) -> Flags:
    """What programs for a backend are compiled with; for `auto` those of gcc."""
    if backend == "sancov":
        library = shlex.quote(str(LIBRARY))
        return Flags(
            "-g -O1 -fsanitize-coverage=trace-pc-guard -fno-sanitize-link-runtime "
            f"-Wno-unused-command-line-argument -Wl,--no-as-needed {library}",
            "clang",
            "clang++",
        )
    return Flags("-g -O1 --coverage", "gcc", "g++")


def build(
    command: str, backend: Backend, cwd: Path, environ: Mapping[str, str], made: Flags | None = None
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


def _filled(command: str, made: Flags) -> str:
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
