"""Running a program that shares its counters: in copies, or started anew where it cannot be copied."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from perun.errors import JobFailed
from perun.fuzz.coverage import shared
from perun.fuzz.coverage.api import Target
from perun.fuzz.coverage.inputs import Input
from perun.fuzz.coverage.opened import Watch
from perun.fuzz.coverage.running import Ended, ForkServer, NoServer, spawn
from perun.fuzz.coverage.shared import Record

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
