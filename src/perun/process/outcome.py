"""How a command ended, in words and as a shell says it."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Final

from perun.errors import JobFailed
from perun.process.command import Run

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
