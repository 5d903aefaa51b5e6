"""All that the pages need of a store, as it is at one moment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.core.errors import ConfigError, VersionControlError
from perun.history.acknowledged import Acknowledgement, Acknowledgements
from perun.history.changes import history
from perun.history.changes.data import ChangePoint, Changes, SeriesKey, VersionChanges
from perun.history.changes.finding import found_in
from perun.history.changes.history import HistoryTable
from perun.models import change_points
from perun.plugin.api import MinorVersion
from perun.profile.head import Configuration, shortest
from perun.repository.repository import Repository
from perun.web.data.form import Change, Ref, Series
from perun.web.data.naming import identity, is_whole

# The versions that the dashboard knows: the first parents of one version, and branches not merged in it.

MOST_BRANCHES: Final = 200
"""Branches that are followed; the others are named in no list."""
MAIN: Final = 0


@dataclass(frozen=True)
class CommitOrder:
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


def known(repo: Repository, revision: str | None) -> CommitOrder:
    """The versions that are known from `revision`, HEAD if None; none before the first version.

    :raises VersionControlError: if there is no version of that name.
    """
    try:
        head = repo.version(revision)
    except VersionControlError as problem:
        if revision is not None:
            raise
        return CommitOrder(problem=problem.message)
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


def _merged(lines: list[_Line], tags: Iterable[tuple[str, str]]) -> CommitOrder:
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
    return CommitOrder(
        versions,
        tuple(number for _, number, _ in keyed),
        tuple(line.name for line in lines),
        tuple(line.versions[0].checksum if line.versions else "" for line in lines),
        tuple((name, place) for place, name in found),
    )


Progress = Callable[[str, int, int], None]
"""Called with what is done, `versions` or `series`, how many are done, and of how many."""


class SeriesGroup(NamedTuple):
    """A series on all machines. :param rows: of the table, one for each machine."""

    id: str
    key: SeriesKey
    rows: tuple[int, ...]


class VersionChangePoint(NamedTuple):
    """A step with the version that brought it; :param entry: what acknowledges it."""

    of: VersionChanges
    step: ChangePoint
    entry: Acknowledgement | None


@dataclass(frozen=True)
class WebState:
    """What is stored. :ivar indexed: the checksums of versions with profiles.

    :ivar found: the changes along the main line.
    :ivar problems: sentences on what cannot be read; :ivar damaged: the same by version.
    :ivar listed: and :ivar shown: series and changes as pages show them that were made already.
    """

    repo: Repository
    commits: CommitOrder
    table: HistoryTable
    indexed: frozenset[str]
    found: Changes
    acknowledged: Acknowledgements
    problems: tuple[str, ...]
    damaged: Mapping[str, str]
    listed: dict[str, Series] = field(default_factory=dict)
    shown: dict[tuple[str, SeriesKey], Change] = field(default_factory=dict)

    @cached_property
    def lines(self) -> NDArray[np.int32]:
        """The branch of each known version, shape (commits,)."""
        return np.array(self.commits.line, np.int32)

    @cached_property
    def columns(self) -> NDArray[np.intp]:
        """The column of the table of each known version, shape (commits,); -1 without profiles."""
        place = self.table.place
        columns = (
            place.get(one.checksum, -1) if one.checksum in self.indexed else -1
            for one in self.commits.versions
        )  # fmt: skip
        return np.fromiter(columns, np.intp, len(self.commits.versions))

    @cached_property
    def there(self) -> NDArray[np.bool_]:
        """Of which versions each row of the table has a value, shape (rows, commits)."""
        found = np.zeros((len(self.table.row), len(self.columns)), np.bool_)
        known = self.columns >= 0
        found[:, known] = np.isfinite(self.table.values)[:, self.columns[known]]
        return found

    @cached_property
    def measured(self) -> NDArray[np.intp]:
        """The positions of the versions with values, ascending, shape (n,)."""
        return np.flatnonzero(self.there.any(axis=0))

    @cached_property
    def measured_main(self) -> NDArray[np.intp]:
        """The same of the main line alone."""
        found: NDArray[np.intp] = self.measured[self.lines[self.measured] == MAIN]
        return found

    @cached_property
    def there_main(self) -> NDArray[np.bool_]:
        """Which of `measured_main` each row of the table has a value of, shape (rows, n)."""
        found: NDArray[np.bool_] = self.there[:, self.measured_main]
        return found

    @cached_property
    def groups(self) -> dict[str, SeriesGroup]:
        """The series by their ids, those that were measured in a known version; the important ones first."""
        rows: dict[SeriesKey, list[int]] = {}
        keys = self.table.keys
        for number in np.flatnonzero(self.there.any(axis=1)).tolist():
            rows.setdefault(keys[number]._replace(machine=""), []).append(number)
        made = [SeriesGroup(identity(key), key, tuple(own)) for key, own in rows.items()]
        changed = {one.id: len(self.changes_of.get(one.id, ())) for one in made}
        made.sort(key=lambda one: (not is_whole(one.key), -changed[one.id], one.key))
        return {one.id: one for one in made}

    @cached_property
    def of_configuration(self) -> dict[Configuration, list[str]]:
        """The ids of the series of each configuration, in their order."""
        found: defaultdict[Configuration, list[str]] = defaultdict(list)
        for one in self.groups.values():
            found[one.key.configuration].append(one.id)
        return dict(found)

    @cached_property
    def names(self) -> dict[Configuration, str]:
        """The shortest names that tell the configurations apart."""
        return shortest(self.of_configuration)

    @cached_property
    def machines(self) -> list[str]:
        """The classes of machines that times were measured on, in the order in which they came."""
        keys = self.table.keys
        names = {keys[row].machine: None for row in sorted(self._rows())}
        return [name or "unknown machine" for name in names if name or self._has_nameless()]

    def _has_nameless(self) -> bool:
        keys = self.table.keys
        return any(not keys[row].machine and not keys[row].exact for row in self._rows())

    def _rows(self) -> Iterator[int]:
        """The rows of the table of all series."""
        return (row for one in self.groups.values() for row in one.rows)

    def machine_of(self, row: int) -> int | None:
        """The place of the machine of a row in `machines`; None where it makes no difference."""
        key = self.table.keys[row]
        return None if key.exact else self._machine_places[key.machine or "unknown machine"]

    def machine_place(self, name: str) -> int | None:
        """The place of the class of a machine in `machines`; None where nothing was timed on it."""
        return self._machine_places.get(name or "unknown machine")

    @cached_property
    def _machine_places(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.machines)}

    @cached_property
    def changes(self) -> list[VersionChangePoint]:
        """All definite steps, the newest first."""
        return [
            VersionChangePoint(one, step, one.entry_of(step, self.acknowledged))
            for one in reversed(self.found.found)
            for step in one.steps
        ]

    @cached_property
    def doubtful(self) -> list[VersionChangePoint]:
        """The others, the newest first."""
        return [
            VersionChangePoint(one, step, None) for one in reversed(self.found.found) for step in one.doubtful
        ]

    @cached_property
    def changes_of(self) -> dict[str, list[VersionChangePoint]]:
        """The same by the id of the series."""
        found: defaultdict[str, list[VersionChangePoint]] = defaultdict(list)
        ids = {key: identity(key) for key in {one.step.series for one in self.changes}}
        for one in self.changes:
            found[ids[one.step.series]].append(one)
        return dict(found)

    def place_of(self, checksum: str) -> int:
        """The position of a version, -1 of one that is not known."""
        return self.commits.place.get(checksum, -1)

    def ref(self, position: int) -> Ref:
        """The version at a position."""
        one = self.commits.versions[position]
        return Ref(position, one.checksum, int(self.commits.dates[position]), one.author, one.subject)

    def main_row(self, group: SeriesGroup) -> int:
        """The row of the machine that the series was measured on last along the main line."""
        if len(group.rows) == 1:
            return group.rows[0]
        newest = [np.flatnonzero(one)[-1] if one.any() else -1 for one in self.there_main[list(group.rows)]]
        return group.rows[int(np.argmax(newest))]

    def points(self, row: int) -> NDArray[np.intp]:
        """The positions at which a row of the table has a value, ascending."""
        return np.flatnonzero(self.there[row])

    def points_main(self, row: int) -> NDArray[np.intp]:
        """The same of the main line alone."""
        found: NDArray[np.intp] = self.measured_main[self.there_main[row]]
        return found


def load(
    repo: Repository,
    revision: str | None = None,
    progress: Progress = lambda what, done, total: None,
    before: WebState | None = None,
) -> WebState:
    """What is stored now. :param revision: the version whose first parents are the main line, HEAD if None.

    :param before: the state as it was the last time: what did not change is not read again.
    :raises VersionControlError: if there is no such version.
    """
    commits = known(repo, revision)
    indexed = history.states_of(repo, commits.versions)
    table, damaged = history.table_of(
        repo, indexed, lambda done, total: progress("versions", done, total), before.table if before else None
    )
    # Others read them, too, whom it does not concern where the project is on this machine.
    folder = f"{repo.root}/"
    damaged = {checksum: [one.replace(folder, "") for one in own] for checksum, own in damaged.items()}
    problems = [message for own in damaged.values() for message in own]
    problems += [commits.problem] if commits.problem else []
    try:
        acknowledged = Acknowledgements.load(repo)
    except ConfigError as problem:
        problems.append(problem.message)
        acknowledged = Acknowledgements()
    main = [commits.versions[place] for place in commits.main]
    points = history.HistoryPoints(repo, main[-1].checksum if main else "", (one.checksum for one in main))
    read = history.along(main, indexed, table, problems)
    found = found_in(repo, read, points, change_points.EFFECT, progress, keeps=revision is None)
    first = {checksum: own[0] for checksum, own in damaged.items()}
    return WebState(repo, commits, table, frozenset(indexed), found, acknowledged, tuple(problems), first)
