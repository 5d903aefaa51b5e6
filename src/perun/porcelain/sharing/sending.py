"""Sending to a remote what a batch measures, while it goes on: `perun run matrix --push`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from perun.errors import PerunError
from perun.porcelain.repository import Repository
from perun.porcelain.sharing.transfer import push
from perun.remote.contract import Remote

EVERY: Final = 30.0
"""Seconds after which what was registered meanwhile is sent."""


class Sent(NamedTuple):
    """What was sent in all: how many profiles, how many bytes, and why some were refused."""

    profiles: int
    bytes: int
    refused: list[str]


class Sender:
    """Sends what is registered as `perun push` does, again and again.

    :param meanwhile: whether to send before the end: not where that would disturb what is measured.
    :raises RemoteError: if the remote cannot be read: nobody wants to know that after hours.
    """

    def __init__(
        self,
        repo: Repository,
        remote: Remote,
        *,
        meanwhile: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._repo = repo
        self._remote = remote
        self._meanwhile = meanwhile
        self._clock = clock
        self._next = clock()
        self._sent = Sent(0, 0, [])
        self._told = ""
        push(repo, remote, dry_run=True)

    @property
    def url(self) -> str:
        """Where it sends to."""
        return self._remote.url

    def look(self) -> str:
        """Send if it is time for it; why that could not be done, which is told once and tried again later."""
        if not self._meanwhile or self._clock() < self._next:
            return ""
        before, self._told = self._told, ""
        try:
            self.send()
        except PerunError as problem:
            self._told = problem.message
        self._next = self._clock() + EVERY
        return self._told if self._told != before else ""

    def send(self) -> Sent:
        """Send now what is not there; what was sent in all.

        :raises PerunError: as :func:`.transfer.push`. What was sent stays.
        """
        done = push(self._repo, self._remote)
        before = self._sent
        self._sent = Sent(before.profiles + len(done.entries), before.bytes + done.sent, done.refused)
        return self._sent
