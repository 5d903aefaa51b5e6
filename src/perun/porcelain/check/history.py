"""The ancestry of a version, read from the version control only as far as it is needed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from perun.plugin.api import MinorVersion
from perun.porcelain.repository import Repository


class History:
    """The versions that `head` (a full checksum) comes from, itself included.

    :param ordered: whether iteration must give children before parents; a drawn tree needs that.
    """

    def __init__(self, repo: Repository, head: str, *, ordered: bool = False) -> None:
        self._walk = repo.vcs.walk_subjects(head, ordered=ordered)
        self._known: dict[str, MinorVersion] = {}
        self._waiting: deque[MinorVersion] = deque()

    def __iter__(self) -> Iterator[MinorVersion]:
        """All of them, children before parents, once.

        A version is forgotten when the next one is asked for: nothing that follows comes from it.
        """
        while self._waiting or self._advance():
            version = self._waiting.popleft()
            yield version
            del self._known[version.checksum]

    def get(self, checksum: str) -> MinorVersion | None:
        """The version, or None if it is not part of the history (beyond the edge of a shallow clone)."""
        while checksum not in self._known:
            if not self._advance():
                return None
        return self._known[checksum]

    def ancestors(self, checksum: str) -> Iterator[MinorVersion]:
        """Those that `checksum` comes from, nearest first: breadth first over all parents, without itself."""
        start = self.get(checksum)
        queue = deque(start.parents if start else ())
        seen = set(queue)
        while queue:
            version = self.get(queue.popleft())
            if version is None:
                continue
            yield version
            for parent in version.parents:
                if parent not in seen:
                    seen.add(parent)
                    queue.append(parent)

    def _advance(self) -> bool:
        version = next(self._walk, None)
        if version is None:
            return False
        self._known[version.checksum] = version
        self._waiting.append(version)
        return True
