"""The standard streams, which may be closed, full, or without a reader."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing itself would take a third of the time of `perun --version`
if TYPE_CHECKING:
    from typing import TextIO

COMPLETE = "_PERUN_COMPLETE"
"""Variable that the shell sets to ask how a word may be completed; nothing but that is answered then."""
NO_READER = 141
NOT_WRITTEN = 3


def prepare() -> None:
    """Give the program streams that can be used, whatever it was started with.

    A stream that is closed becomes one of `/dev/null`, as in git; otherwise the next file that is opened
    would take its number, and get what is printed. Text that the encoding of the terminal lacks is escaped.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")


def finish(code: int) -> int:
    """Write what is still buffered; the exit code, which is `code` unless only this fails."""
    try:
        sys.stdout.flush()
    except OSError as problem:
        if not code:
            return failed(problem)
        discard(sys.stdout)
    finally:
        _flush_errors()
    return code


def reader_is_gone() -> bool:
    """Whether standard output is a pipe or a socket without a reader."""
    import select

    poll = select.poll()
    poll.register(sys.stdout, 0)  # poll reports errors always
    return bool(poll.poll(0))


def failed(problem: OSError) -> int:
    """End the use of standard output, which cannot be written; the exit code."""
    discard(sys.stdout)
    if isinstance(problem, BrokenPipeError):
        return NO_READER  # who has seen enough needs no message
    try:
        sys.stderr.write(f"error: the output cannot be written: {problem.strerror or problem}\n")
    except OSError:
        discard(sys.stderr)
    return NOT_WRITTEN


def discard(stream: TextIO) -> None:
    """Let what is still to come for the stream vanish, or Python would complain about it at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def _flush_errors() -> None:
    try:
        sys.stderr.flush()
    except OSError:
        discard(sys.stderr)
