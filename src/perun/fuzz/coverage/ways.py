"""Running a program that shares its counters: in copies, or started anew where it cannot be copied."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import numpy
from numpy.typing import NDArray

from perun.core.errors import JobFailed
from perun.fuzz.coverage import shared
from perun.fuzz.coverage.api import Coverage, Execution, Target
from perun.fuzz.coverage.inputs import Input
from perun.fuzz.coverage.running import Ended, ForkServer, NoServer, spawn
from perun.fuzz.coverage.shared import Record

# Whether a program opens its input before it is copied: then all copies would see the same one.

_OPENED: Final = 0x20  # IN_OPEN
_READ: Final = 0x01  # IN_ACCESS


class Watch:
    """Watches one file, where the kernel lets us (inotify); elsewhere nothing is seen."""

    def __init__(self, path: Path) -> None:
        self._fd = -1
        with contextlib.suppress(OSError, AttributeError):
            library = ctypes.CDLL(None, use_errno=True)
            self._fd = int(library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
            if self._fd >= 0:
                library.inotify_add_watch(self._fd, os.fsencode(path), ctypes.c_uint32(_OPENED | _READ))

    def saw_something(self) -> bool:
        """Whether the file was opened or read since; ends the watch."""
        if self._fd < 0:
            return False
        try:
            return bool(os.read(self._fd, 4096))
        except BlockingIOError:
            return False
        finally:
            os.close(self._fd)
            self._fd = -1


SLOWER = "the program is started anew for each input, which is slower: "
"""What a note begins with."""


class Way(Protocol):
    """One way to run the program."""

    def run(self, data: bytes, timeout: float, until: float = math.inf) -> Ended:
        """Run it once; the input is written already, but for one that is an argument.

        :raises JobFailed: if it can be run no more.
        """
        ...

    def close(self) -> None:
        """End what is left."""
        ...


class Shared(NamedTuple):
    """A way with the record that holds the counters, and what the user should know of it."""

    way: Way
    record: Record
    note: str


def share(
    target: Target,
    given: Input,
    make: Callable[[bool], Record],
    environ: Callable[[Record], Mapping[str, str]],
) -> Shared:
    """The fastest way to run the program that works.

    :param make: makes the record, for a program that is started anew if its argument is true.
    :param environ: the environment that tells the program of the record.
    """
    watch = Watch(given.path)
    record = make(False)
    copying = Copying(target, given, record, environ(record))
    try:
        copying.start()
    except NoServer:
        reason = copying.reason()
        watch.saw_something()
    else:
        if not watch.saw_something():
            return Shared(copying, record, "")
        reason = "it reads its input before main"
    copying.close()
    record = make(True)
    return Shared(Starting(target, given, record, environ(record)), record, SLOWER + reason)


class Copying:
    """By the fork server, which is started again should it end."""

    def __init__(self, target: Target, given: Input, record: Record, environ: Mapping[str, str]) -> None:
        self._target = target
        self._given = given
        self._record = record
        self._environ = environ
        self._server: ForkServer | None = None

    def start(self) -> None:
        """:raises NoServer: if it cannot be used."""
        self._server = ForkServer(self._given, self._target.cwd, self._environ, self._record)

    def reason(self) -> str:
        """Why it did not start."""
        if self._record.state == shared.THREADS:
            return "it starts threads before main"
        if self._record.state == shared.REFUSED:
            return f"sharing its counters failed ({os.strerror(self._record.problem)})"
        return "it ends before main"

    def run(self, data: bytes, timeout: float, until: float = math.inf) -> Ended:
        """Run the program in a copy."""
        if self._given.index:
            self._record.set_argument(self._given.argument(data))
        for _ in range(2):
            try:
                if self._server is None:
                    self.start()
                assert self._server is not None
                ended = self._server.run(timeout, until)
                if ended.outcome == "hang":
                    return ended
                return Ended(ended.outcome, ended.code, self._record.seconds)
            except NoServer:
                self._end()
        why = "run it by hand with the same input"
        if self._record.state == shared.REFUSED:
            why = f"the system refused to copy it: {os.strerror(self._record.problem)}"
        raise JobFailed(f"{self._given.program} ended while it was copied for its next input", why)

    def close(self) -> None:
        """End the server."""
        self._end()
        self._record.close()

    def _end(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None


class Starting:
    """By starting the program for each run."""

    def __init__(self, target: Target, given: Input, record: Record, environ: Mapping[str, str]) -> None:
        self._target = target
        self._given = given
        self._record = record
        self._environ = environ

    def run(self, data: bytes, timeout: float, until: float = math.inf) -> Ended:
        """Start it; an input that is an argument is among its words."""
        self._record.clear()
        target = self._target
        inherit = (self._record.fd,)
        return spawn(self._given, data, target.cwd, self._environ, timeout, until, target.memory, inherit)

    def close(self) -> None:
        """Give the record back."""
        self._record.close()


# What all ways to count have in common: a run, and the end.


class Counting(Coverage):
    """A coverage whose :meth:`start` sets the input and the way to run the program; where it was closed, the
    next run starts it again.

    :param scratch: an empty folder.
    """

    def __init__(self, target: Target, scratch: Path) -> None:
        self.note = ""
        self._target = target
        self._scratch = scratch
        self._given: Input | None = None
        self._way: Way | None = None

    def run(self, data: bytes, timeout: float, until: float = math.inf) -> Execution:
        """Run the program on `data`."""
        if self._way is None or self._given is None:
            self.start()
        assert self._way is not None and self._given is not None
        self._given.write(data)
        try:
            ended = self._way.run(data, timeout, until)
        except BaseException:
            self.close()
            raise
        counts = self._counts()
        total = int(numpy.add.reduce(counts))  # as sum(), which takes twice as long for a few counts
        return Execution(ended.outcome, ended.code, total, counts, ended.seconds)

    def close(self) -> None:
        """End the program."""
        if self._way is not None:
            self._way.close()
            self._way = None
        if self._given is not None:
            self._given.close()
            self._given = None

    @abstractmethod
    def _counts(self) -> NDArray[numpy.int64]:
        """A copy of the counts of the last run."""
