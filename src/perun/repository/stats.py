"""`perun stats`: what collectors and checks have kept of minor versions (manual 3.6.6 - 3.6.14)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from perun.core.errors import ProfileNotFound, VersionControlError
from perun.repository import walking
from perun.repository.repository import Repository
from perun.store import tree


class StatsFile(NamedTuple):
    """One file of statistics, its size in bytes."""

    minor_version: str
    name: str
    size: int


class StatsVersion(NamedTuple):
    """A minor version that has statistics: the size of all in bytes, and how many files these are."""

    minor_version: str
    size: int
    files: int


class StatsVersions(NamedTuple):
    """Minor versions with statistics, newest first, and how many older ones were left out."""

    names: list[str]
    left_out: int


def versions(repo: Repository, top: int, start: str | None) -> StatsVersions:
    """The newest `top` versions that have statistics, all if it is 0, from `start` (HEAD) on.

    The order is that of their dates.
    """
    known = repo.store.stats.versions()
    newest = _date(repo, start)
    names = [minor for minor, date in known if not newest or date <= newest]
    return StatsVersions(names[:top] if top else names, max(0, len(names) - top) if top else 0)


def files(repo: Repository, chosen: StatsVersions) -> list[StatsFile]:
    """The files of the versions."""
    stats = repo.store.stats
    return [
        StatsFile(minor, name, stats.size(minor, name))
        for minor in chosen.names
        for name in stats.names(minor)
    ]


def sizes(repo: Repository, chosen: StatsVersions) -> list[StatsVersion]:
    """The versions with the sizes and numbers of their files."""
    found = files(repo, chosen)
    rows = []
    for minor in chosen.names:
        own = [file.size for file in found if file.minor_version == minor]
        rows.append(StatsVersion(minor, sum(own), len(own)))
    return rows


def delete_file(repo: Repository, name: str, version: str | None, *, keep_folder: bool = False) -> list[str]:
    """Delete the statistics `name` of one version (HEAD if None), or of all that have it if it is `.`.

    :return: the versions.
    :raises ProfileNotFound: if no version has it.
    """
    stats = repo.store.stats
    if version == ".":
        having = [minor for minor in stats.found() if name in stats.names(minor)]
        if not having:
            raise ProfileNotFound(f"no version has statistics {name}", "see perun stats list-files --top 0")
    else:
        having = [_resolved(repo, version)]
    with repo.store.lock():
        for minor in having:
            stats.delete(minor, name, keep_folder)
    return having


def delete_version(repo: Repository, version: str, *, keep_folder: bool = False) -> str:
    """Delete all statistics of the version; its checksum."""
    minor = _resolved(repo, version)
    repo.store.stats.delete_minor(minor, keep_folder)
    return minor


def delete_all(repo: Repository, *, keep_folders: bool = False) -> int:
    """Delete all statistics; of how many versions."""
    count = len(repo.store.stats.found())
    repo.store.stats.delete_all(keep_folders)
    return count


def clean(
    repo: Repository, *, keep_custom: bool = False, keep_empty: bool = False, keep_unknown: bool = True
) -> tuple[list[Path], int]:
    """Remove what cannot be statistics, and empty folders.

    :return: what was removed, and of how many versions that are not in this clone there were statistics.

    :param keep_unknown: keep those.
    :raises VersionControlError: if the version control itself does not answer; nothing is removed then.
    """
    stats = repo.store.stats
    with repo.store.lock():
        dates = _dates(repo)
        unknown = sum(1 for minor in stats.found() if minor not in dates and stats.names(minor))
        removed = stats.clean(
            dates.get, keep_foreign=keep_custom, keep_empty=keep_empty, keep_unknown=keep_unknown
        )
    return removed, unknown


def sync(repo: Repository) -> int:
    """Rebuild the index of versions; how many it has.

    :raises VersionControlError: if the version control itself does not answer.
    """
    with repo.store.lock():
        repo.store.stats.sync(_dates(repo).get)
    return len(repo.store.stats.versions())


def date_of(repo: Repository, minor: str) -> str | None:
    """The date of the minor version; None if this clone does not know it.

    :raises VersionControlError: if the version control itself does not answer.
    """
    return {one: info.date for one, info in walking.infos(repo, [minor]).items()}.get(minor)


def _dates(repo: Repository) -> dict[str, str]:
    """The dates of the versions with statistics that are in this clone."""
    return {minor: info.date for minor, info in walking.infos(repo, repo.store.stats.found()).items()}


def _date(repo: Repository, start: str | None) -> str:
    try:
        return repo.vcs.get_minor_version_info(repo.version(start)).date
    except VersionControlError:
        if start is not None:
            raise
        return ""  # there is no version yet, so nothing to begin with


def _resolved(repo: Repository, version: str | None) -> str:
    # A version that the version control has forgotten, e.g. after a rebase, still has its statistics.
    if version is not None and tree.is_minor_version(version) and version in repo.store.stats.found():
        return version
    return repo.version(version)
