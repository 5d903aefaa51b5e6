"""Which Python interpreter a command runs, and what program in it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from perun.errors import UsageError
from perun.plugin.api import Run
from perun.process import programs
from perun.process.finding import find_executable

_NAME: Final = re.compile(r"python(\d+(\.\d+)?)?[dt]?")
_WITH_VALUE: Final = ("-W", "-X", "--check-hash-based-pycs")


class Interpreted(NamedTuple):
    """A Python program: the path of its interpreter, the interpreter's options, and the words after them."""

    python: str
    options: list[str]
    words: list[str]


_OTHERS: Final = "leave out --python for other programs"


def program_of(run: Run, what: str = "--python", others: str = _OTHERS) -> Interpreted:
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
    return Interpreted(path, options, words)


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
