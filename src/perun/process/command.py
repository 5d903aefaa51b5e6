"""What is run: a command as the user writes it, and the words and the standard input that this means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from perun.errors import UsageError

_WORD: Final = re.compile(r"""(?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^\s'"\\])+""", re.DOTALL)
"""A word as it is written, with its quotes."""
_OF_A_SHELL: Final = re.compile(r"\|\|?|&&?|[0-9&]?>.*|<.*|(?:.*[^\\])?;", re.DOTALL)
"""Words that are operators for a shell: pipes, lists, redirections."""


class Command(NamedTuple):
    """What is really executed: an argument vector, and what it reads from standard input.

    `stdin_file` is relative to the working directory of the run; at most one of the two is set.
    """

    argv: list[str]
    stdin_file: str | None
    stdin_text: str | None


class Run(NamedTuple):
    """One configuration of the measured program and the place where it runs (manual 7.2).

    `cmd`, `args` and `workload` are as the user wrote them; `cwd` is an absolute folder that holds the
    measured version of the project; `environ` is the whole environment of the measured command.
    """

    cmd: str
    args: str = ""
    workload: str = ""
    cwd: Path = Path()
    environ: Mapping[str, str] = MappingProxyType({})
    minor_version: str = ""

    def command(self) -> Command:
        """The command with its arguments and workload, split as a POSIX shell would, without a shell.

        A workload `< file` is read from standard input, a workload `<< "text"` is standard input itself;
        any other workload is appended as last arguments (manual 7.3).

        :raises UsageError: if the quotes of a part are not closed, the command is empty, or command or
            arguments hold an operator that only a shell knows.
        """
        argv = split("command", self.cmd) + split("arguments", self.args)
        if not argv:
            raise UsageError("the command to measure is empty", "name one with --cmd (-c or -b)")
        workload = self.workload.strip()
        if workload.startswith("<<"):
            return Command(argv, None, " ".join(_split("workload", workload[2:])))
        if workload.startswith("<"):
            files = _split("workload", workload[1:])
            if len(files) != 1:
                raise UsageError(f"workload {self.workload!r} must name one file after '<'")
            return Command(argv, files[0], None)
        return Command(argv + _split("workload", workload), None, None)

    def __str__(self) -> str:
        return " ".join(part for part in (self.cmd, self.args, self.workload) if part)


def split(what: str, text: str) -> list[str]:
    """The words of a command or its arguments, which run without a shell.

    :param what: what the text is, for messages.
    :raises UsageError: if quotes are not closed, or a word is an operator of the shell: the program would get
        it as an argument, and the rest of the text with it.
    """
    words = _split(what, text)
    for written in _WORD.findall(text):
        if _OF_A_SHELL.fullmatch(written):
            raise UsageError(
                f"the {what} {text!r}: only a shell understands {written!r}, and it runs without one",
                "a file for standard input is a workload: --workload '< FILE'"
                if written[0] == "<"
                else "write sh -c '...' around the whole, or quotes around what is an argument",
            )
    return words


def _split(what: str, text: str) -> list[str]:
    import shlex

    try:
        return shlex.split(text)
    except ValueError as problem:
        raise UsageError(f"the {what} {text!r} cannot be split: {problem}", "close the quotes") from None
