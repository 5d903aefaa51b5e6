"""The snapshots in their order, `.tagit/history`, and which of them the folder holds, `.tagit/HEAD`.

The history is one JSON object a line, oldest first; a snapshot is there when the file is renamed into place.
HEAD is `main` while the folder holds the newest snapshot, which so needs no second write; else a checksum.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun import atomic
from perun.errors import VersionControlError
from perun.plugin.api import MinorVersion
from perun.regular import read_regular

LINE: Final = "main"
_MAX_BYTES: Final = 256 << 20
"""The only line of development."""
_STEPS = re.compile(r"(.*?)((?:~[0-9]*|\^)*)", re.DOTALL)
_SHORTEST: Final = 4


class Snapshot(NamedTuple):
    """One version: `tree` is the checksum of its list of files, `parent` empty for the first one."""

    checksum: str
    tag: str
    date: str
    author: str
    email: str
    message: str
    tree: str
    parent: str

    def version(self) -> MinorVersion:
        """As all version control systems tell it: the tag is the subject."""
        desc = f"{self.tag}\n\n{self.message}" if self.message else self.tag
        parents = (self.parent,) if self.parent else ()
        return MinorVersion(self.date, self.author, self.email, self.checksum, desc, parents)


def named(content: Mapping[str, str]) -> Snapshot:
    """The snapshot of that content, named by the checksum of all of it, its parent included."""
    import hashlib

    text = json.dumps(content, sort_keys=True)
    return Snapshot(checksum=hashlib.sha256(text.encode()).hexdigest(), **content)


class History:
    """Reads and writes both files in `folder`, which is `.tagit`; what was read is kept in memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def snapshots(self) -> list[Snapshot]:
        """All snapshots, oldest first."""
        return list(self._read())

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {snapshot.checksum: place for place, snapshot in enumerate(self.snapshots)}

    @property
    def newest(self) -> Snapshot | None:
        """The last snapshot; None where there is none yet."""
        return self.snapshots[-1] if self.snapshots else None

    def head(self) -> Snapshot | None:
        """The snapshot that the folder holds; None where there is none yet."""
        text = self._file("HEAD")
        if text in ("", LINE):
            return self.newest
        place = self._places.get(text)
        if place is None:
            raise VersionControlError(
                f"{self._folder / 'HEAD'} names no snapshot: {text[:80]!r}", f"write {LINE} into it"
            )
        return self.snapshots[place]

    def set_head(self, snapshot: Snapshot) -> None:
        """Note that the folder holds that snapshot."""
        text = LINE if snapshot == self.newest else snapshot.checksum
        atomic.write(self._folder / "HEAD", f"{text}\n".encode())

    def append(self, snapshot: Snapshot) -> None:
        """Make it the newest one, which the folder holds."""
        self.snapshots.append(snapshot)
        lines = (json.dumps(one._asdict()) + "\n" for one in self.snapshots)
        atomic.write(self._folder / "history", "".join(lines).encode())
        self.forget()

    def forget(self) -> None:
        """Read the file again when it is needed next."""
        self.__dict__.pop("snapshots", None)
        self.__dict__.pop("_places", None)

    def down_from(self, snapshot: Snapshot) -> Iterator[Snapshot]:
        """The snapshot and all before it, newest first."""
        return iter(self.snapshots[self._places[snapshot.checksum] :: -1])

    def get(self, checksum: str) -> Snapshot | None:
        """The snapshot of that full checksum."""
        place = self._places.get(checksum)
        return None if place is None else self.snapshots[place]

    def find(self, name: str) -> Snapshot:
        """The snapshot of any spelling: HEAD, main, a tag, a checksum or a prefix of one; with `~2` or `^`.

        :raises VersionControlError: where there is none, or more than one.
        """
        match = _STEPS.fullmatch(name)
        assert match  # whatever it is, the first group may hold it
        start, steps = self._named(match[1]), _count(match[2])
        place = -1 if start is None else self._places[start.checksum] - steps
        if place < 0:
            if match[1] in ("HEAD", "@", LINE) and not self.snapshots:
                raise empty(self._folder.parent)
            raise VersionControlError(f"tagit knows no snapshot {name!r}", "see perun log")
        return self.snapshots[place]

    def _named(self, name: str) -> Snapshot | None:
        if name in ("HEAD", "@"):
            return self.head()
        if name == LINE:
            return self.newest
        for snapshot in self.snapshots:
            if name in (snapshot.tag, snapshot.checksum):
                return snapshot
        if len(name) < _SHORTEST:
            return None
        matching = [snapshot for snapshot in self.snapshots if snapshot.checksum.startswith(name)]
        if len(matching) > 1:
            tags = ", ".join(snapshot.tag for snapshot in matching)
            raise VersionControlError(f"{name!r} begins the checksums of several snapshots: {tags}")
        return matching[0] if matching else None

    def _read(self) -> Iterator[Snapshot]:
        parent = ""
        for number, line in enumerate(self._file("history").splitlines(), 1):
            snapshot = _parsed(line)
            if snapshot is None or snapshot.parent != parent:
                raise VersionControlError(
                    f"{self._folder / 'history'}, line {number} is damaged", "restore the file from a backup"
                )
            parent = snapshot.checksum
            yield snapshot

    def _file(self, name: str) -> str:
        try:
            return read_regular(self._folder / name, _MAX_BYTES).decode("utf-8", "replace").strip()
        except FileNotFoundError:
            if self._folder.is_dir():
                return ""
            raise VersionControlError(
                f"{self._folder.parent} is not under the version control tagit",
                "put it there with: perun init --vcs-type tagit",
            ) from None
        except OSError as problem:
            raise VersionControlError(
                f"{self._folder / name} cannot be read: {problem.strerror}", "check its permissions"
            ) from None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from writing; waits for one that does.

        :raises VersionControlError: where nothing may be written at all, now or within the block.
        """
        self._file("history")  # tells where there is no such system
        try:
            descriptor = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                self.forget()
                yield
            finally:
                os.close(descriptor)
        except OSError as problem:
            where = problem.filename or self._folder
            raise VersionControlError(
                f"tagit cannot go on: {where}: {problem.strerror}",
                "check permissions and the space on the disk",
            ) from problem


def empty(root: Path) -> VersionControlError:
    """The error where there is no version to tell of."""
    return VersionControlError(f"{root} has no snapshot yet", "make the first one with: perun tag NAME")


def _count(steps: str) -> int:
    return sum(
        1 if step == "^" or step == "~" else int(step[1:]) for step in re.findall(r"\^|~[0-9]*", steps)
    )


def _parsed(line: str) -> Snapshot | None:
    try:
        fields: dict[str, Any] = json.loads(line)
        snapshot = Snapshot(**fields)
    except (ValueError, TypeError, RecursionError):
        return None
    return snapshot if all(isinstance(field, str) for field in snapshot) else None
