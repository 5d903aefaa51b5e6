"""All that the pages need of a store, as it is at one moment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.errors import ConfigError
from perun.models.change_points import voting
from perun.porcelain.acknowledged import Acknowledged, Entry
from perun.porcelain.changes import history
from perun.porcelain.changes.data import Changes, SeriesKey, Step, VersionChanges
from perun.porcelain.changes.finding import found_in
from perun.porcelain.changes.table import Table
from perun.porcelain.repository import Repository
from perun.porcelain.web.commits import MAIN, Commits, known
from perun.porcelain.web.data import Change, Ref, Series
from perun.porcelain.web.naming import identity, is_whole
from perun.profile.head import Configuration, shortest

Progress = Callable[[str, int, int], None]
"""Called with what is done, `versions` or `series`, how many are done, and of how many."""


class Group(NamedTuple):
    """A series on all machines. :param rows: of the table, one for each machine."""

    id: str
    key: SeriesKey
    rows: tuple[int, ...]


class Placed(NamedTuple):
    """A step with the version that brought it; :param entry: what acknowledges it."""

    of: VersionChanges
    step: Step
    entry: Entry | None


@dataclass(frozen=True)
class State:
    """What is stored. :ivar indexed: the checksums of versions with profiles.

    :ivar found: the changes along the main line.
    :ivar problems: sentences on what cannot be read; :ivar damaged: the same by version.
    :ivar listed: and :ivar shown: series and changes as pages show them that were made already.
    """

    repo: Repository
    commits: Commits
    table: Table
    indexed: frozenset[str]
    found: Changes
    acknowledged: Acknowledged
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
    def groups(self) -> dict[str, Group]:
        """The series by their ids, those that were measured in a known version; the important ones first."""
        rows: dict[SeriesKey, list[int]] = {}
        keys = self.table.keys
        for number in np.flatnonzero(self.there.any(axis=1)).tolist():
            rows.setdefault(keys[number]._replace(machine=""), []).append(number)
        made = [Group(identity(key), key, tuple(own)) for key, own in rows.items()]
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
    def changes(self) -> list[Placed]:
        """All definite steps, the newest first."""
        return [
            Placed(one, step, one.entry_of(step, self.acknowledged))
            for one in reversed(self.found.found)
            for step in one.steps
        ]

    @cached_property
    def doubtful(self) -> list[Placed]:
        """The others, the newest first."""
        return [Placed(one, step, None) for one in reversed(self.found.found) for step in one.doubtful]

    @cached_property
    def changes_of(self) -> dict[str, list[Placed]]:
        """The same by the id of the series."""
        found: defaultdict[str, list[Placed]] = defaultdict(list)
        for one in self.changes:
            found[identity(one.step.series)].append(one)
        return dict(found)

    def place_of(self, checksum: str) -> int:
        """The position of a version, -1 of one that is not known."""
        return self.commits.place.get(checksum, -1)

    def ref(self, position: int) -> Ref:
        """The version at a position."""
        one = self.commits.versions[position]
        return Ref(position, one.checksum, int(self.commits.dates[position]), one.author, one.subject)

    def main_row(self, group: Group) -> int:
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
    before: State | None = None,
) -> State:
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
        acknowledged = Acknowledged.load(repo)
    except ConfigError as problem:
        problems.append(problem.message)
        acknowledged = Acknowledged()
    main = [commits.versions[place] for place in commits.main]
    points = history.Points(repo, main[-1].checksum if main else "", (one.checksum for one in main))
    read = history.along(main, indexed, table, problems)
    found = found_in(repo, read, points, voting.EFFECT, progress, keeps=revision is None)
    first = {checksum: own[0] for checksum, own in damaged.items()}
    return State(repo, commits, table, frozenset(indexed), found, acknowledged, tuple(problems), first)
