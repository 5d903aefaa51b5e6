"""What collectors keep of versions, as statistics of these (manual 3.6.6), and find of earlier ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from perun.errors import DamagedStore, ProfileError, ProfileNotFound, VersionControlError
from perun.porcelain.repository import Repository
from perun.profile.head import Configuration

if TYPE_CHECKING:
    from perun.plugin.api import MinorVersion
    from perun.profile.factory import Profile
    from perun.profile.helpers import ProfileInfo

MOST_VERSIONS: Final = 2000
"""Ancestors that are looked at before a search ends."""


class VersionStatistics:
    """The :class:`~perun.plugin.api.Statistics` of one version of a repository."""

    def __init__(self, repo: Repository, version: MinorVersion) -> None:
        self._repo = repo
        self._version = version

    def load(self, name: str) -> dict[str, Any] | None:
        """What is kept of the version; None if there is nothing, or it is damaged."""
        return self._of(self._version.checksum, name)

    def save(self, name: str, values: Mapping[str, Any]) -> None:
        """Keep `values` of the version, in place of what was kept."""
        stats, version = self._repo.store.stats, self._version
        with self._repo.store.lock():
            stats.path(version.checksum, name).unlink(missing_ok=True)
            stats.add(version.checksum, version.date, name, values)

    def earlier(self, name: str, revision: str = "") -> tuple[str, dict[str, Any]] | None:
        """What is kept of the nearest ancestor that has any, or of `revision`, with the version."""
        if revision:
            checksum = self._repo.version(revision)
            found = self._of(checksum, name)
            return None if found is None else (checksum, found)
        for checksum in self._ancestors():
            found = self._of(checksum, name)
            if found is not None:
                return checksum, found
        return None

    def remove(self, name: str) -> None:
        """Forget what is kept under the name of any version."""
        stats = self._repo.store.stats
        for checksum in stats.found():
            if name in stats.names(checksum):
                stats.delete(checksum, name)

    def profile(self, collector: str, cmd: str | None) -> Profile | None:
        """The newest profile of the command, of the version or of the nearest ancestor that has one.

        Pending profiles count as well, of which a head says the version.
        """
        wanted = Configuration.of(collector, cmd or "", "", "", ())

        def is_wanted(info: ProfileInfo) -> bool:
            own = info.configuration
            return own.collector == wanted.collector and cmd in (None, own.cmd)

        pending = self._repo.store.pending
        indexes, objects = self._repo.store.indexes, self._repo.store.objects
        waiting = [one for one in pending.list() if is_wanted(one)]
        for checksum in (self._version.checksum, *self._ancestors()):
            registered = [one.info() for one in indexes.read(checksum)] if indexes.has(checksum) else []
            own = [one for one in registered if is_wanted(one)]
            own += [one for one in waiting if self._origin(one.realpath) == checksum]
            for info in sorted(own, key=lambda one: one.time, reverse=True):
                try:
                    return objects.get(info.checksum) if info.is_registered else pending.load(info.realpath)
                except ProfileError:
                    continue
        return None

    def _origin(self, path: str) -> str:
        try:
            return str(self._repo.store.pending.regions(path).get("origin", ""))
        except ProfileError:
            return ""

    def _ancestors(self) -> Iterator[str]:
        try:
            for number, version in enumerate(self._repo.vcs.walk_subjects(self._version.checksum)):
                if number > MOST_VERSIONS:
                    return
                if version.checksum != self._version.checksum:
                    yield version.checksum
        except VersionControlError:
            return  # there is no history yet

    def _of(self, checksum: str, name: str) -> dict[str, Any] | None:
        try:
            return self._repo.store.stats.get(checksum, name)
        except (ProfileNotFound, DamagedStore):
            return None
