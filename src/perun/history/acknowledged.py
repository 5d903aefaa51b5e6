"""`perun ack`: changes of performance that the team knows of and accepts, kept in `.perun/acknowledged.json`.

`perun log` and `perun status` load this, so nothing heavy is imported here.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.core import atomic
from perun.core.errors import ConfigError, UsageError
from perun.core.regular import read_regular
from perun.core.wording import listed
from perun.profile.uid import uid_in
from perun.store.changes import ChangePointCache

if TYPE_CHECKING:
    from perun.repository.repository import Repository

FILE: Final = "acknowledged.json"
SCHEMA: Final = "perun.acknowledged/1"
_LARGEST: Final = 16 << 20
"""Bytes of the file, at most."""
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


class Acknowledgement(NamedTuple):
    """One acknowledged change.

    :param version: the checksum of the version that brought it. :param location: where: a location, the part
        of one before its metric in brackets, or a pattern with `*`, `?` or `[`.
    :param until: the last day, as `2026-11-22`, that it holds; empty for ever. :param because: why.
    """

    version: str
    location: str
    until: str = ""
    because: str = ""

    def matches(self, location: str) -> bool:
        """Whether the location is one that it names."""
        name = uid_in(location)
        return self.location in (location, name) or fnmatchcase(location, self.location)

    def expired(self, today: str) -> bool:
        """Whether it holds no more on that day."""
        return bool(self.until) and self.until < today

    @property
    def text(self) -> str:
        """`acknowledged until 2026-11-22: the table was too large`."""
        until = f" until {self.until}" if self.until else ""
        return f"acknowledged{until}{': ' if self.because else ''}{self.because}"


class Acknowledgements:
    """The acknowledged changes of one repository, the oldest first."""

    def __init__(self, entries: Sequence[Acknowledgement] = ()) -> None:
        self.entries = tuple(entries)

    @classmethod
    def load(cls, repo: Repository) -> Acknowledgements:
        """What is kept by the repository; nothing if there is no such file.

        :raises ConfigError: if the file cannot be read, or is none of these.
        """
        path = path_of(repo)
        try:
            data = read_regular(path, _LARGEST)
        except FileNotFoundError:
            return cls()
        except OSError as problem:
            hint = "make it a file that you can read, or remove it"
            raise ConfigError(f"{path} cannot be read: {problem.strerror}", hint) from problem
        try:
            return cls(_entries(json.loads(data)))
        except (ValueError, TypeError, KeyError, RecursionError) as problem:
            hint = "repair it, or remove it and acknowledge the changes again: perun ack COMMIT LOCATION"
            raise ConfigError(f"{path} is no list of acknowledged changes: {problem}", hint) from problem

    def covers(self, version: str, location: str, today: str = "") -> Acknowledgement | None:
        """What acknowledges the change of a version (its checksum) at a location on that day, today if empty;
        None if nothing does."""
        return self.covers_any((version,), location, today)

    def covers_any(self, versions: Collection[str], location: str, today: str = "") -> Acknowledgement | None:
        """The same of a change that one of the versions brought."""
        if not self.entries:
            return None
        day = today or this_day()
        for entry in reversed(self.entries):
            if entry.version in versions and entry.matches(location) and not entry.expired(day):
                return entry
        return None


def path_of(repo: Repository) -> Path:
    """The file of the acknowledged changes."""
    return repo.store.root / FILE


def this_day() -> str:
    """The date of today, local time, as `2026-11-22`."""
    return time.strftime("%Y-%m-%d")


def acknowledge(
    repo: Repository, revision: str, location: str, *, until: str = "", because: str = ""
) -> tuple[Acknowledgement, bool]:
    """Acknowledge what a version changed at a location; what was said of both before is replaced.

    :param until: the last day that it holds, as `2026-11-22`; for ever if empty.
    :returns: the entry, and whether a change is known that it is of.
    :raises UsageError: if the date is none or over, or the changes of the version that are known are all
        elsewhere.
    :raises VersionControlError: if there is no such version.
    """
    if not location.strip():
        raise UsageError("LOCATION is empty", "name the location, or '*' for all that the version changed")
    _check_date(until)
    version = repo.version(revision)
    entry = Acknowledgement(version, location, until, " ".join(because.split()))
    known = changed_at(repo, version)
    is_known = any(map(entry.matches, known))
    if known and not is_known:
        there = listed(known, 5)
        raise UsageError(f"{revision} changed nothing at {location!r}", f"it changed: {there}")
    with repo.store.lock():
        before = Acknowledgements.load(repo).entries
        kept = [one for one in before if (one.version, one.location) != (version, location)]
        _save(repo, [*kept, entry])
    return entry, is_known


def remove(repo: Repository, revision: str, location: str | None = None) -> list[Acknowledgement]:
    """Take back what was acknowledged of a version: at a location as it was given then, or all.

    :raises UsageError: if nothing was.
    :raises VersionControlError: if there is no such version, unless entries are of exactly that checksum.
    """
    with repo.store.lock():
        before = Acknowledgements.load(repo).entries
        # The commit may be gone since.
        known = {entry.version for entry in before}
        version = revision if revision in known else repo.version(revision)
        gone = [one for one in before if one.version == version and location in (None, one.location)]
        if not gone:
            names = [repr(one.location) for one in before if one.version == version]
            where = f" at {location!r}" if location is not None else ""
            of_it = f"acknowledged of it: {listed(names, 5)}"
            hint = of_it if names else "list what is acknowledged with: perun ack --list"
            raise UsageError(f"nothing is acknowledged of {revision}{where}", hint)
        _save(repo, [one for one in before if one not in gone])
    return gone


def changed_at(repo: Repository, version: str) -> list[str]:
    """The locations of the changes of a version that `perun check` or `perun changes` found, in order."""
    steps = ChangePointCache.load(repo.store.cache).of_version(version)
    found = [step.location for step in steps if version in step.possible]
    found += [record.info.location for record in repo.store.changes.read(version)]
    return list(dict.fromkeys(found))


def _check_date(until: str) -> None:
    if not until:
        return
    try:
        if not _DATE.fullmatch(until):
            raise ValueError
        time.strptime(until, "%Y-%m-%d")
    except ValueError:
        raise UsageError(f"--until {until} is no date", "write it as in 2026-11-22") from None
    if until < this_day():
        raise UsageError(f"--until {until} is over", "give today or a later day")


def _entries(data: Any) -> list[Acknowledgement]:
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise ValueError(f"its schema is not {SCHEMA}")
    found: list[Acknowledgement] = []
    for one in data["acknowledged"]:
        entry = Acknowledgement(*(one.get(name, "") for name in Acknowledgement._fields))
        if not all(isinstance(value, str) for value in entry) or not (entry.version and entry.location):
            raise ValueError(f"entry {len(found) + 1} has no version and location, or what is no text")
        found.append(entry)
    return found


def _save(repo: Repository, entries: Iterable[Acknowledgement]) -> None:
    """Write them, one a line, so that two lists can be merged as text."""
    path = path_of(repo)
    given = ({name: value for name, value in one._asdict().items() if value} for one in entries)
    lines = ",\n".join(map(json.dumps, given))
    text = f'{{"schema": {json.dumps(SCHEMA)}, "acknowledged": [\n{lines}\n]}}\n'
    try:
        atomic.write(path, text.encode())
    except OSError as problem:
        raise ConfigError(f"{path} cannot be written: {os.strerror(problem.errno or 0)}") from problem
