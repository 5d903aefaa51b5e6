"""The standard streams of a command: what it reads, and where what it writes goes."""

from __future__ import annotations

import contextlib
import os
import select
import stat
import sys
import threading
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from perun.errors import JobFailed
from perun.process import threads
from perun.process.command import Command
from perun.process.ending import GRACE

REPEATABLE = "the command runs several times: name a regular file as its standard input"
"""Hint if the standard input of a command can be read only once."""


class Output(Enum):
    """What becomes of what a command writes. Standard error goes to a file of its own unless it is shown."""

    DISCARD = "discard"
    """Standard output is thrown away."""
    KEEP = "keep"
    """Standard output goes to a file of its own."""
    SHOW = "show"
    """Both go where those of Perun go."""
    COPY = "copy"
    """Both go to one file and to the standard output of Perun."""


@contextlib.contextmanager
def opened(path: str | Path, flags: int) -> Iterator[int]:
    """The descriptor of a file, which programs that are started do not inherit; closed afterwards."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def standard_input(command: Command, cwd: Path, scratch: Path, *, single_run: bool) -> Iterator[int]:
    """The descriptor of what the command reads: a file, the text of its workload, or nothing.

    :param cwd: where a file is looked for. :param scratch: where text is put into a file.
    :param single_run: the command is run once, so that it may read a pipe, which cannot be read again.
    :raises JobFailed: if the file cannot be read, or not as often as the command is run.
    """
    path: str | Path = os.devnull
    if command.stdin_text is not None:
        path = scratch / "stdin"
        path.write_bytes(command.stdin_text.encode("utf-8", "surrogateescape"))
    elif command.stdin_file is not None:
        path = cwd / command.stdin_file
    refused = f"cannot read the workload {command.stdin_file!r}"
    hint = "its path is relative to the folder of the run; to build it first, set execute.pre_run"
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISFIFO(mode) and not single_run:
            raise JobFailed(f"{refused} more than once: {path} is a pipe, not a file", REPEATABLE)
        if not (stat.S_ISREG(mode) or stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)):
            raise JobFailed(f"{refused}: {path} is not a file", hint)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as problem:
        raise JobFailed(f"{refused}: {path}: {problem.strerror}", hint) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def copied(kept: int) -> Iterator[int]:
    """The descriptor of a pipe; what is written to it goes to a file and to the standard output of Perun.

    At the end all of it has been copied, but for what processes write that go on for longer than
    :data:`~perun.process.ending.GRACE`.

    :param kept: the descriptor of the file.
    """
    source, sink = os.pipe2(os.O_CLOEXEC)
    copier = threading.Thread(target=_copy, args=(source, kept), daemon=True)
    threads.start(copier)
    try:
        yield sink
    finally:
        os.close(sink)
        copier.join(GRACE)
        if not copier.is_alive():
            os.close(source)


def _copy(source: int, kept: int) -> None:
    """Copy to the end, to what still takes it: a command whose pipe nobody reads would wait for ever."""
    sinks = [kept]
    with contextlib.suppress(OSError, ValueError):
        sinks.append(sys.stdout.fileno())
    while piece := os.read(source, 1 << 16):
        for sink in list(sinks):
            try:
                _write_waiting(sink, piece)
            except OSError:  # its reader has gone (`| head`), or its disk is full
                sinks.remove(sink)


def _write_waiting(sink: int, piece: bytes) -> None:
    """Write all of it, also to a pipe or terminal that another program has made non-blocking."""
    rest = memoryview(piece)
    while rest:
        try:
            rest = rest[os.write(sink, rest) :]
        except BlockingIOError:
            ready = select.poll()
            ready.register(sink, select.POLLOUT)
            ready.poll()
