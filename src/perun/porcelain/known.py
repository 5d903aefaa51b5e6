"""What is known of listed profiles: from the cache of facts, else read from the profiles themselves.

A store of an old release has no facts, nor has one whose caches were deleted. So that lists show values there
too, a bounded number of profiles is read, and noted: the next list reads the next ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from perun.errors import PerunError
from perun.porcelain.repository import Repository
from perun.profile.helpers import ProfileInfo
from perun.store.facts import READ_BY_LISTS, Fact, fact_of, key_of

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

    def of(self, infos: Iterable[ProfileInfo]) -> dict[ProfileInfo, Fact]:
        """The facts of profiles, as far as they are known or the bounds allow to read them."""
        keys = {info: key_of(info) for info in infos}
        noted = self._store.facts.of(keys.values())
        found: dict[ProfileInfo, Fact] = {}
        new: dict[str, Fact] = {}
        for info, key in keys.items():
            fact = noted.get(key)
            if fact is None:
                fact = self._read(info) if self._most > 0 else None
                if fact is None:
                    self.unread += 1
                    continue
                new[key] = fact
            found[info] = fact
        self._store.facts.keep(new)
        return found

    def _read(self, info: ProfileInfo) -> Fact | None:
        store = self._store
        path = str(store.object_path(info.checksum)) if info.checksum else info.realpath
        try:
            size = store.files.state(path).st_size
            if size > min(self._bytes, READ_BY_LISTS):
                return None
            self._most -= 1
            self._bytes -= size
            return fact_of(store.objects.get(info.checksum) if info.checksum else store.pending.load(path))
        except (PerunError, OSError):
            return None  # whoever needs the profile itself says what is wrong with it
