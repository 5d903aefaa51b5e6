"""Paths of a store whose files are in a database, for tests that look at files and damage them.

Such a path does by the database what one of the disk does by the disk, so that the same test holds for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from perun.store.files import Files

LARGEST = 1 << 40


class StorePath(type(Path())):  # type: ignore[misc]  # which of two classes it is depends on the system
    """A path below the `.perun` of a store; `files` are those of the store of the test that runs."""

    files: Files

    def read_bytes(self) -> bytes:
        """Its content."""
        return self.files.read(self, LARGEST)

    def read_text(self, *_options: Any) -> str:
        """Its content as text."""
        return self.read_bytes().decode()

    def write_bytes(self, data: bytes) -> int:
        """Make the file, or replace it."""
        self.files.write(self, data)
        return len(data)

    def write_text(self, data: str, *_options: Any) -> int:
        """Make the file of this text, or replace it."""
        return self.write_bytes(data.encode())

    def stat(self, **_options: bool) -> Any:
        """Its times and size, or what the system says of a folder."""
        state = self.files.state(self)
        return state if not hasattr(state, "_replace") else _Stat(state)

    def exists(self) -> bool:
        """Whether it is there."""
        return self.files.exists(self)

    def is_file(self) -> bool:
        """Whether it is a file."""
        return self.files.is_file(self)

    def is_dir(self) -> bool:
        """Whether it is a folder."""
        return self.files.is_folder(self)

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the file."""
        if not missing_ok or self.exists():
            self.files.remove(self)

    def rmdir(self) -> None:
        """Remove the folder."""
        self.files.remove_folder(self)

    def iterdir(self) -> Iterator[StorePath]:
        """What is in the folder."""
        for name in self.files.listing(self):
            yield self / name

    def rglob(self, pattern: str) -> Iterator[StorePath]:
        """All that is below the folder."""
        assert pattern == "*", pattern
        for path in sorted(self.iterdir()):
            yield path
            if path.is_dir():
                yield from path.rglob(pattern)

    def glob(self, pattern: str) -> Iterator[StorePath]:
        """What is in the folder and has such a name."""
        return (path for path in self.iterdir() if path.match(pattern))


class _Stat:
    """What a file of the database has of what the system says of files."""

    def __init__(self, state: Any) -> None:
        self.st_mtime_ns, self.st_ctime_ns, self.st_size = state
        self.st_mtime = self.st_mtime_ns / 10**9


def set_times(path: Path, ns: tuple[int, int], utime: Callable[..., None]) -> None:
    """As `os.utime`, of a file wherever it is."""
    if isinstance(path, StorePath):
        path.files.set_time(path, ns[1])
    else:
        utime(path, ns=ns)
