"""The versions that the dashboard knows: the first parents of one version, and branches not merged in it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perun.errors import VersionControlError
from perun.plugin.api import MinorVersion
from perun.porcelain.repository import Repository

MOST_BRANCHES: Final = 200
"""Branches that are followed; the others are named in no list."""
MAIN: Final = 0


@dataclass(frozen=True)
class Commits:
    """Versions in the order of time, parents before their children; the place of one is its position.

    :ivar line: of each version, the branch that it is on, a place in `branches`; 0 is the line of `head`.
    :ivar heads: of each branch. :ivar tags: names and positions, the oldest first. :ivar problem: why there
    are none.
    """

    versions: tuple[MinorVersion, ...] = ()
    line: tuple[int, ...] = ()
    branches: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    tags: tuple[tuple[str, int], ...] = ()
    problem: str = ""

    @cached_property
    def place(self) -> dict[str, int]:
        """The position of each checksum."""
        return {one.checksum: number for number, one in enumerate(self.versions)}

    @cached_property
    def main(self) -> NDArray[np.intp]:
        """The positions of the versions along first parents, ascending, shape (n,)."""
        return np.flatnonzero(np.array(self.line, np.int32) == MAIN)

    @cached_property
    def dates(self) -> NDArray[np.int64]:
        """Seconds since 1970, shape (n,); 0 where a version control system says what is no date."""
        try:
            texts = [one.date[:19].replace(" ", "T") for one in self.versions]
            return np.array(texts, "datetime64[s]").astype(np.int64)
        except ValueError:
            return np.zeros(len(self.versions), np.int64)

    @property
    def head(self) -> MinorVersion | None:
        """The version whose first parents the main line is; None before the first one."""
        return self.versions[self.main[-1]] if self.main.size else None


def known(repo: Repository, revision: str | None) -> Commits:
    """The versions that are known from `revision`, HEAD if None; none before the first version.

    :raises VersionControlError: if there is no version of that name.
    """
    try:
        head = repo.version(revision)
    except VersionControlError as problem:
        if revision is not None:
            raise
        return Commits(problem=problem.message)
    branches = _branches(repo)[:MOST_BRANCHES]
    heads = dict.fromkeys((head, *(checksum for _, checksum in branches)))
    seen = {one.checksum: one for one in repo.vcs.walk_together([*heads])}
    lines = [_Line(_name(repo, revision, head), list(_first_parents(seen, head)))]
    merged = _ancestors(seen, head)
    on_lines = {one.checksum for one in lines[0].versions}
    for name, checksum in branches:
        if checksum not in merged:
            own = list(_first_parents(seen, checksum, on_lines))
            lines.append(_Line(name, own))
            on_lines.update(one.checksum for one in own)
    return _merged(lines, repo.vcs.tags())


@dataclass
class _Line:
    """A line of versions, the newest first."""

    name: str
    versions: list[MinorVersion] = field(default_factory=list)


def _name(repo: Repository, revision: str | None, head: str) -> str:
    if revision is not None:
        return revision
    try:
        return repo.vcs.get_head_major_version()
    except VersionControlError:
        return head


def _branches(repo: Repository) -> list[tuple[str, str]]:
    """The names and the heads of branches; none where the system cannot tell."""
    try:
        return [(one.name, one.head) for one in repo.vcs.walk_major_versions()]
    except VersionControlError:
        return []


def _first_parents(
    seen: Mapping[str, MinorVersion], head: str, known: Container[str] = ()
) -> Iterator[MinorVersion]:
    """The version and its first parents, the newest first, down to one that is known."""
    one = seen.get(head)
    while one is not None and one.checksum not in known:
        yield one
        one = seen.get(one.parents[0]) if one.parents else None


def _ancestors(seen: Mapping[str, MinorVersion], head: str) -> set[str]:
    """The checksums of the version and of all its ancestors."""
    found = {head}
    left = [head]
    while left:
        one = seen.get(left.pop())
        for parent in one.parents if one is not None else ():
            if parent not in found:
                found.add(parent)
                left.append(parent)
    return found


def _merged(lines: list[_Line], tags: Iterable[tuple[str, str]]) -> Commits:
    """The lines as one list in the order of time; a version is never older than its parent."""
    late: dict[str, str] = {}
    keyed: list[tuple[str, int, int]] = []
    for number, line in enumerate(lines):
        for place in range(len(line.versions) - 1, -1, -1):
            one = line.versions[place]
            date = max(one.date, late.get(one.parents[0], "")) if one.parents else one.date
            late[one.checksum] = date
            keyed.append((date, number, -place))
    keyed.sort()
    versions = tuple(lines[number].versions[-place] for _, number, place in keyed)
    place_of = {one.checksum: place for place, one in enumerate(versions)}
    found = sorted((place_of[checksum], name) for name, checksum in tags if checksum in place_of)
    return Commits(
        versions,
        tuple(number for _, number, _ in keyed),
        tuple(line.name for line in lines),
        tuple(line.versions[0].checksum if line.versions else "" for line in lines),
        tuple((name, place) for place, name in found),
    )
