"""Paths of a store whose files are in a database, for tests that look at files and damage them.

Such a path does by the database what one of the disk does by the disk, so that the same test holds for both.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from perun.store.database import KEPT, DatabaseFiles

LARGEST = 1 << 40
_listdir, _utime = os.listdir, os.utime


class StorePath(type(Path())):  # type: ignore[misc]  # which of two classes it is depends on the system
    """A path below the `.perun` of a store; `files` are those of the store of the test that runs."""

    files: DatabaseFiles

    @property
    def stored(self) -> bool:
        """Whether it is in the database."""
        return self.files.holds(self)

    def read_bytes(self) -> bytes:
        """Its content."""
        return self.files.read(self, LARGEST) if self.stored else super().read_bytes()

    def read_text(self, *options: Any) -> str:
        """Its content as text."""
        return self.read_bytes().decode()

    def write_bytes(self, data: bytes) -> int:
        """Make the file, or replace it."""
        if not self.stored:
            return super().write_bytes(data)
        self.files.write(self, data)
        return len(data)

    def write_text(self, data: str, *options: Any) -> int:
        """Make the file of this text, or replace it."""
        return self.write_bytes(data.encode())

    def touch(self, *options: Any) -> None:
        """Make the file, or change its time."""
        self.write_bytes(self.read_bytes() if self.exists() else b"")

    def stat(self, **options: bool) -> Any:
        """Its times and size, or what the system says of a folder."""
        return _Stat(*self.files.state(self)[:3]) if self.stored else super().stat(**options)

    def exists(self) -> bool:
        """Whether it is there."""
        return self.files.exists(self) if self.stored else super().exists()

    def is_file(self) -> bool:
        """Whether it is a file."""
        return self.files.is_file(self) if self.stored else super().is_file()

    def is_dir(self) -> bool:
        """Whether it is a folder."""
        return self.files.is_folder(self) if self.stored else super().is_dir()

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the file."""
        if not self.stored:
            super().unlink(missing_ok)
        elif not missing_ok or self.exists():
            self.files.remove(self)

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Make the folder; in a database it comes with its first file."""
        if not self.stored:
            super().mkdir(mode, parents, exist_ok)

    def rmdir(self) -> None:
        """Remove the folder."""
        if not self.stored:
            super().rmdir()

    def iterdir(self) -> Iterator[StorePath]:
        """What is in the folder."""
        yield from map(self.joinpath, self.files.listing(self) if self.stored else _listdir(self))
        if self.name == ".perun":
            yield from (self / name for name in KEPT if self.files.is_folder(self / name))

    def rglob(self, pattern: str) -> Iterator[StorePath]:
        """All that is below the folder."""
        if not self.stored and pattern != "*":
            yield from super().rglob(pattern)
            return
        assert pattern == "*", pattern
        for path in sorted(self.iterdir()):
            yield path
            if path.is_dir():
                yield from path.rglob(pattern)

    def glob(self, pattern: str) -> Iterator[StorePath]:
        """What is in the folder and has such a name."""
        return (path for path in self.iterdir() if path.match(pattern))


def listdir(path: Path | str = ".") -> list[str]:
    """As `os.listdir`, of a folder wherever it is."""
    if isinstance(path, StorePath) and path.stored:
        return path.files.listing(path)
    return _listdir(path)


def utime(path: Path, times: tuple[float, float] | None = None, *, ns: tuple[int, int] | None = None) -> None:
    """As `os.utime`, of a file wherever it is."""
    if isinstance(path, StorePath) and path.stored:
        moment = ns[1] if ns else int(times[1] * 10**9) if times else time.time_ns()
        path.files.set_time(path, moment)
    elif ns:
        _utime(path, ns=ns)
    else:
        _utime(path, times)


class _Stat(NamedTuple):
    """What a file of the database has of what the system says of files."""

    st_mtime_ns: int
    st_ctime_ns: int
    st_size: int

    @property
    def st_atime_ns(self) -> int:
        return self.st_mtime_ns

    @property
    def st_mtime(self) -> float:
        return self.st_mtime_ns / 10**9
