"""What is run: a command as the user writes it, and the words and the standard input that this means."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from perun.errors import UsageError


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

        :raises UsageError: if the quotes of a part are not closed, or the command is empty.
        """
        argv = _split("command", self.cmd) + _split("arguments", self.args)
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


def _split(what: str, text: str) -> list[str]:
    import shlex

    try:
        return shlex.split(text)
    except ValueError as problem:
        raise UsageError(f"the {what} {text!r} cannot be split: {problem}", "close the quotes") from None
