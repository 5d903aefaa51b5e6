"""Versions along first parents, from the newest on: a merge is one point of the history, and not what it
merges. And which versions this clone knows at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Final

from perun.core.errors import VersionControlError
from perun.plugin.versions import MinorVersion
from perun.repository.repository import Repository

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MOMENT: Final = "%Y-%m-%d %H:%M:%S"


def first_parents(repo: Repository, head: str) -> Iterator[MinorVersion]:
    """The version and its first parents, as `git log --first-parent` gives them."""
    wanted: str | None = head
    # Where clocks disagreed, a parent may come before its child.
    early: dict[str, MinorVersion] = {}
    for version in repo.vcs.walk_subjects(head):
        early[version.checksum] = version
        while wanted in early:
            one = early.pop(wanted)
            yield one
            wanted = one.parents[0] if one.parents else None
        if wanted is None:
            return


def ancestors(repo: Repository, head: str, most: int | None = None) -> Iterator[MinorVersion]:
    """The ancestors of a version in the order in which the version before it is looked for: along first
    parents, the nearest first, and after the last of them the others, as history walks them.

    :param most: versions of the history that are looked at; where it has more, only first parents are given.
    """
    wanted: str | None = None
    waiting: dict[str, MinorVersion] = {}
    for number, version in enumerate(repo.vcs.walk_subjects(head)):
        if number == 0:
            wanted = version.parents[0] if version.parents else None
            continue
        if most is not None and number > most:
            return
        waiting[version.checksum] = version
        while wanted in waiting:
            one = waiting.pop(wanted)
            yield one
            wanted = one.parents[0] if one.parents else None
    yield from waiting.values()


def before_both(
    repo: Repository, one: MinorVersion, other: MinorVersion
) -> tuple[MinorVersion, Iterator[MinorVersion]]:
    """The older one of two versions, and what comes before it in the order of the ancestors of the newer one;
    of versions of two branches, in that of its own."""
    for older, newer in ((one, other), (other, one)):
        walk = ancestors(repo, newer.checksum)
        if any(found.checksum == older.checksum for found in walk):
            return older, walk
    older = min(one, other, key=lambda version: (version.date, version.checksum))
    return older, ancestors(repo, older.checksum)


def since(repo: Repository, versions: Iterator[MinorVersion], start: str | None) -> Iterator[MinorVersion]:
    """Of versions from the newest on those that are newer than a version, which is left out with its
    ancestors, or whose own date is not before a day of the local time, `2026-11-22`; all if None.

    A version that was made by a wrong clock may be older than the one before it, so none ends the walk.
    """
    return versions if start is None else filter(newer_than(repo, start), versions)


def newer_than(repo: Repository, start: str) -> Callable[[MinorVersion], bool]:
    """What tells of a version whether :func:`since` keeps it."""
    if first := _first_moment(start):
        return lambda version: version.date >= first
    old = {version.checksum for version in repo.vcs.walk_subjects(repo.version(start))}
    return lambda version: version.checksum not in old


def _first_moment(day: str) -> str:
    """When the local day begins, in UTC as dates of versions are; empty if it is no day."""
    if not _DATE.fullmatch(day):
        return ""
    from datetime import UTC, datetime

    try:
        return datetime.strptime(day, "%Y-%m-%d").astimezone(UTC).strftime(_MOMENT)
    except (ValueError, OverflowError):
        return ""


def infos(repo: Repository, versions: Collection[str]) -> dict[str, MinorVersion]:
    """What version control says of those of the versions that are in this clone.

    A clone may lack any of them: it is shallow, has one branch only, or their history was rewritten.

    :raises VersionControlError: if the version control itself does not answer.
    """
    left = set(versions)
    found = {}
    for one in repo.vcs.walk_subjects(repo.version(None)) if left else ():
        if one.checksum in left:
            left.discard(one.checksum)
            found[one.checksum] = one
            if not left:
                break
    for version in left:
        try:
            found[version] = repo.vcs.get_minor_version_info(version)
        except VersionControlError:
            continue
    return found
