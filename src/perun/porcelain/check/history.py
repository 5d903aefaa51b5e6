"""The ancestry of a version, read from the version control only as far as it is needed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Set

from perun.plugin.api import MinorVersion
from perun.porcelain.repository import Repository


class History:
    """The versions that `head` (a full checksum) comes from, itself included.

    :param ordered: whether iteration must give children before parents; a drawn tree needs that.
    :param among: the only versions that :meth:`ancestors` yields; all where it is None.
    """

    def __init__(
        self, repo: Repository, head: str, *, ordered: bool = False, among: Set[str] | None = None
    ) -> None:
        self._walk = repo.vcs.walk_subjects(head, ordered=ordered)
        self._known: dict[str, MinorVersion] = {}
        self._waiting: deque[MinorVersion] = deque()
        self._among = among
        self._jumps: dict[str, str] = {}

    def __iter__(self) -> Iterator[MinorVersion]:
        """All of them, children before parents, once.

        A version is forgotten when the next one is asked for: nothing that follows comes from it.
        """
        while self._waiting or self._advance():
            version = self._waiting.popleft()
            yield version
            del self._known[version.checksum]
            self._jumps.pop(version.checksum, None)

    def get(self, checksum: str) -> MinorVersion | None:
        """The version, or None if it is not part of the history (beyond the edge of a shallow clone)."""
        while checksum not in self._known:
            if not self._advance():
                return None
        return self._known[checksum]

    def ancestors(self, checksum: str) -> Iterator[MinorVersion]:
        """Those that `checksum` comes from, without itself, in the order of
        :func:`perun.porcelain.walking.ancestors`: along first parents, and after the last of them the
        others."""
        start = self.get(checksum)
        if start is None:
            return
        others: list[str] = []
        seen = {checksum}
        version: MinorVersion | None = start
        while version is not None and version.parents:
            others += version.parents[1:]
            version = self._landing(version.parents[0])
            if version is not None:
                seen.add(version.checksum)
                if self._is_among(version):
                    yield version
        if others:
            yield from self._off_the_line(others, seen)

    def _off_the_line(self, starts: list[str], seen: set[str]) -> Iterator[MinorVersion]:
        """The ancestors that are not on the line of first parents, in the order of the walk."""
        wanted: set[str] = set()
        while starts:
            version = self._landing(starts.pop())
            if version is None or version.checksum in seen or version.checksum in wanted:
                continue
            wanted.add(version.checksum)
            starts += version.parents
        for version in list(self._known.values()) if wanted else ():
            if version.checksum in wanted and self._is_among(version):
                yield version

    def _is_among(self, version: MinorVersion) -> bool:
        return self._among is None or version.checksum in self._among

    def _landing(self, checksum: str) -> MinorVersion | None:
        """The first version in a straight line from this one that is yielded, or where the line ends or
        branches. The versions between are passed over one by one only once."""
        passed: list[str] = []
        while True:
            checksum = self._jumps.get(checksum, checksum)
            version = self.get(checksum)
            if version is None or self._is_among(version) or len(version.parents) != 1:
                break
            passed.append(checksum)
            checksum = version.parents[0]
        for one in passed:
            self._jumps[one] = checksum
        return version

    def _advance(self) -> bool:
        version = next(self._walk, None)
        if version is None:
            return False
        self._known[version.checksum] = version
        self._waiting.append(version)
        return True
