"""`perun stats`: what collectors and checks have kept of minor versions (manual 3.6.6 - 3.6.14)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from perun.errors import ProfileNotFound, VersionControlError
from perun.porcelain.repository import Repository
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


class Versions(NamedTuple):
    """Minor versions with statistics, newest first, and how many older ones were left out."""

    names: list[str]
    left_out: int


def versions(repo: Repository, top: int, start: str | None) -> Versions:
    """The newest `top` versions that have statistics, all if it is 0, from `start` (HEAD) on.

    The order is that of their dates.
    """
    known = repo.store.stats.versions()
    newest = _date(repo, start)
    names = [minor for minor, date in known if not newest or date <= newest]
    return Versions(names[:top] if top else names, max(0, len(names) - top) if top else 0)


def files(repo: Repository, chosen: Versions) -> list[StatsFile]:
    """The files of the versions."""
    stats = repo.store.stats
    return [
        StatsFile(minor, name, stats.size(minor, name))
        for minor in chosen.names
        for name in stats.names(minor)
    ]


def sizes(repo: Repository, chosen: Versions) -> list[StatsVersion]:
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


def clean(repo: Repository, *, keep_custom: bool = False, keep_empty: bool = False) -> list[Path]:
    """Remove what cannot be statistics, and empty folders; what was removed."""
    _require_version_control(repo)
    return repo.store.stats.clean(
        lambda minor: _known_date(repo, minor), keep_foreign=keep_custom, keep_empty=keep_empty
    )


def sync(repo: Repository) -> int:
    """Rebuild the index of versions; how many it has."""
    _require_version_control(repo)
    repo.store.stats.sync(lambda minor: _known_date(repo, minor))
    return len(repo.store.stats.versions())


def date_of(repo: Repository, minor: str) -> str | None:
    """The date of the minor version; None if there is none of that name.

    :raises VersionControlError: if the version control itself does not answer.
    """
    _require_version_control(repo)
    return _known_date(repo, minor)


def _require_version_control(repo: Repository) -> None:
    """Raise if the version control does not answer: every version would look unknown."""
    if repo.store.stats.found():
        repo.version(None)


def _date(repo: Repository, start: str | None) -> str:
    try:
        return repo.vcs.get_minor_version_info(repo.version(start)).date
    except VersionControlError:
        if start is not None:
            raise
        return ""  # there is no version yet, so nothing to begin with


def _known_date(repo: Repository, minor: str) -> str | None:
    try:
        return repo.vcs.get_minor_version_info(minor).date
    except VersionControlError:
        return None


def _resolved(repo: Repository, version: str | None) -> str:
    # A version that the version control has forgotten, e.g. after a rebase, still has its statistics.
    if version is not None and tree.is_minor_version(version) and version in repo.store.stats.found():
        return version
    return repo.version(version)
