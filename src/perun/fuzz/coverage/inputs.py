"""Giving an input to the program: as a file, on standard input, or as an argument."""

from __future__ import annotations

import os
from pathlib import Path

from perun.atomic import Naming
from perun.errors import UsageError
from perun.fuzz.coverage.api import PLACE, Target
from perun.fuzz.coverage.shared import ARGUMENT_SIZE
from perun.process.finding import find_executable


class Input:
    """The input of one target, in a folder of its own.

    :ivar argv: the words of the command; the input is written in them where :data:`PLACE` was.
    :ivar index: which argument is the input itself, 0 if none is.
    :ivar path: the file of the input, which is there whatever the way, for programs that look at it.
    """

    def __init__(self, target: Target, scratch: Path) -> None:
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
        with Naming(self.path):
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
