"""What is run: a command as the user writes it, and the words and the standard input that this means."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from perun.core.errors import JobFailed, UsageError

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
    return [*_words(what, text)]


@lru_cache(maxsize=4096)
def _words(what: str, text: str) -> tuple[str, ...]:
    """As a tuple, as thousands of runs have the same command."""
    import shlex

    try:
        return tuple(shlex.split(text))
    except ValueError as problem:
        raise UsageError(f"the {what} {text!r} cannot be split: {problem}", "close the quotes") from None


# How a command ended, in words and as a shell says it.

_TAIL_LINES: Final = 10
_TAIL_BYTES: Final = 16 * 1024
_LINE_LIMIT: Final = 300


def outcome(status: int) -> str:
    """How a run ended, in words: `exited with status 3`, `was killed by SIGSEGV (Segmentation fault)`."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        return f"was killed by {name} ({signal.strsignal(number) or 'unknown'})"
    return f"exited with status {os.waitstatus_to_exitcode(status)}"


def failed(run: Run, status: int, errors: Sequence[str], hint: str, which: str = "") -> JobFailed:
    """The error for a command that failed: how it ended, and the last lines of its standard error.

    :param which: of several runs, which one.
    """
    message = f"the command {str(run)!r} {outcome(status)}" + (f" ({which})" if which else "")
    if errors:
        message += "\n" + "\n".join(["the end of its standard error:", *("  " + line for line in errors)])
    return JobFailed(message, hint)


def exit_status(status: int) -> int:
    """The exit status as a shell gives it: 128 and the number of the signal for a run that one killed."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def last_lines(descriptor: int) -> list[str]:
    """The last lines of a file that is opened for reading, without control characters."""
    start = max(0, os.fstat(descriptor).st_size - _TAIL_BYTES)
    text = os.pread(descriptor, _TAIL_BYTES, start).decode("utf-8", "replace")
    return [_printable(line) for line in text.rstrip().split("\n")[-_TAIL_LINES:] if text.strip()]


def _printable(line: str) -> str:
    return "".join(char if char.isprintable() else " " for char in line.rstrip()[:_LINE_LIMIT])


# Which file a command runs, and in which language.


def is_python(word: str, program: Path | None) -> bool:
    """Whether a command runs Python: by its name, or as the first line of the script says.

    :param word: the first one of the command. :param program: its file, None where that is not known.
    :raises OSError: if it cannot be read.
    """
    is_named_so = os.path.basename(word).startswith("python")
    if is_named_so or program is None:
        return is_named_so
    with program.open("rb") as file:
        first = file.read(200).partition(b"\n")[0]
    return first.startswith(b"#!") and b"python" in first


# It may be set, but not make this program.
_BUILD_IT: Final = (
    "a fresh working copy of another version holds only what is in git: "
    "set execute.pre_run to what builds the program"
)


def find_executable(name: str, cwd: Path, environ: Mapping[str, str]) -> str:
    """Absolute path of the program `name`: relative to `cwd` if it has a slash, else on the PATH.

    :raises JobFailed: if there is none, or it may not be executed.
    """
    folders = [""] if "/" in name else environ.get("PATH", os.defpath).split(os.pathsep)
    refused = ""
    for folder in folders:
        candidate = os.path.join(cwd, folder, name)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
        if os.path.exists(candidate):
            refused = refused or candidate
    if refused and os.path.isdir(refused):
        raise JobFailed(f"the command {name!r} is a folder: {refused}")
    if refused:
        raise JobFailed(f"the command {name!r} is not executable: {refused}", f"chmod +x {refused}")
    if "/" in name:
        raise JobFailed(f"command not found: {name!r} in {cwd}", _BUILD_IT)
    raise JobFailed(
        f"command not found: {name!r} is in no folder of the PATH (running in {cwd})",
        f"write ./{name} for a program in that folder; {_BUILD_IT}",
    )
