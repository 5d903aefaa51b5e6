"""Versions along first parents, from the newest on: a merge is one point of the history, and not what it
merges."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from perun.plugin.api import MinorVersion
from perun.porcelain.repository import Repository

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


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


def since(
    repo: Repository, versions: Iterator[MinorVersion], start: str | None
) -> Iterator[MinorVersion]:
    """Of versions from the newest on those that are newer than a version, which is left out with its
    ancestors, or not older than a date, `2026-11-22`; all if None."""
    if start is None:
        yield from versions
    elif _DATE.fullmatch(start):
        for version in versions:
            if version.date[: len(start)] < start:
                return
            yield version
    else:
        old = {version.checksum for version in repo.vcs.walk_subjects(repo.version(start))}
        for version in versions:
            if version.checksum in old:
                return
            yield version
