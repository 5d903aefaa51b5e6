"""What is known of listed profiles: from the cache of facts, else read from the profiles themselves.

A store of an old release has no facts, nor has one whose caches were deleted. So that lists show values there
too, a bounded number of profiles is read, and noted: the next list reads the next ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from perun.errors import PerunError
from perun.porcelain.repository import Repository
from perun.profile.helpers import ProfileInfo
from perun.store.facts import READ_BY_LISTS, Fact, fact_of

if TYPE_CHECKING:
    from perun.profile.factory import Profile

MOST_READ: Final = 1000
"""Profiles that one command reads for their facts."""
MOST_BYTES: Final = 32 * READ_BY_LISTS
"""Bytes of their files, as they are stored. One of more than :data:`READ_BY_LISTS` stays unknown until `perun
fsck --repair`."""


class KnownFacts:
    """The facts of profiles for one command. It takes no lock, and never waits.

    :param most: profiles that are read at most because the cache lacks them.
    :ivar unread: how many profiles stayed unknown.
    """

    def __init__(self, repo: Repository, most: int = MOST_READ, most_bytes: int = MOST_BYTES) -> None:
        self._store = repo.store
        self._most = most
        self._bytes = most_bytes
        self.unread = 0

    def of_pending(self, infos: Iterable[ProfileInfo]) -> dict[ProfileInfo, Fact]:
        """The facts of pending profiles."""
        infos = list(infos)
        if not infos:
            return {}
        pending = self._store.pending
        noted = self._store.facts.of_pending()
        found = {info: noted[key] for info in infos if (key := (info.source, info.time)) in noted}
        new = self._read(infos, found, lambda info: (info.realpath, lambda: pending.load(info.realpath)))
        self._store.facts.add_pending({(info.source, info.time): fact for info, fact in new.items()})
        return found | new

    def of_version(self, minor: str, infos: Iterable[ProfileInfo]) -> dict[ProfileInfo, Fact]:
        """The facts of profiles that are registered in the minor version."""
        infos = list(infos)
        if not infos:
            return {}
        store = self._store
        noted = store.facts.of_version(minor)
        found = {info: noted[info.checksum] for info in infos if info.checksum in noted}
        new = self._read(
            infos,
            found,
            lambda info: (
                str(store.object_path(info.checksum)),
                lambda: store.objects.get(info.checksum),
            ),
        )
        self._store.facts.add_registered(minor, {info.checksum: fact for info, fact in new.items()})
        return found | new

    def _read(
        self,
        infos: Iterable[ProfileInfo],
        known: dict[ProfileInfo, Fact],
        source: Callable[[ProfileInfo], tuple[str, Callable[[], Profile]]],
    ) -> dict[ProfileInfo, Fact]:
        """The facts of those that are not known, as far as the bounds allow."""
        found: dict[ProfileInfo, Fact] = {}
        for info in infos:
            if info in known:
                continue
            fact = None
            if self._most > 0:
                path, load = source(info)
                fact = self._of_file(path, load)
            if fact is None:
                self.unread += 1
            else:
                found[info] = fact
        return found

    def _of_file(self, path: str, load: Callable[[], Profile]) -> Fact | None:
        try:
            size = self._store.files.state(path).st_size
            if size > min(self._bytes, READ_BY_LISTS):
                return None
            self._most -= 1
            self._bytes -= size
            return fact_of(load())
        except (PerunError, OSError):
            return None  # whoever needs the profile itself says what is wrong with it
