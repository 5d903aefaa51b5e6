"""A remote in a folder, e.g. on a file system that the team shares: `file:///srv/perf`."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from perun.core import atomic, leftovers
from perun.core.errors import RemoteError
from perun.core.regular import TooLarge, open_regular, read_regular
from perun.store.remote.contract import MAX_HEAD, MAX_PIECE, PieceInfo, Remote, checked, is_key

_NO_LINKS: Final = (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS)
_LOCK: Final = ".lock"


class FileRemote(Remote):
    """Each piece is a file of its name below the folder, which is made when the first piece is put."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def url(self) -> str:
        """As the interface describes it."""
        return f"file://{self.folder}"

    def put(self, key: str, data: bytes) -> bool:
        """As the interface describes it: the whole file gets its name by a link, which fails where there is
        one."""
        path = self.folder / checked(key)
        with self._naming(key, "written"):
            if path.exists():
                return False
            unfinished = path.with_name(atomic.temporary_name())
            try:
                atomic.write(unfinished, data)
                return self._linked(unfinished, path)
            finally:
                unfinished.unlink(missing_ok=True)

    def _linked(self, unfinished: Path, path: Path) -> bool:
        try:
            os.link(unfinished, path)
        except FileExistsError:
            return False
        except OSError as problem:
            if problem.errno not in _NO_LINKS:
                raise
            # A file system without links. Two writers may both take a piece for new, which has one content
            # only.
            with self._locked():
                if path.exists():
                    return False
                os.replace(unfinished, path)
        atomic.flush_folder(path.parent)
        return True

    def get(self, key: str, limit: int = MAX_PIECE) -> bytes:
        """As the interface describes it."""
        try:
            with self._naming(key, "read"):
                return read_regular(self.folder / checked(key), limit)
        except FileNotFoundError:
            raise self.missing(key) from None
        except TooLarge:
            raise self.too_large(key, limit) from None

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """As the interface describes it."""
        try:
            with self._naming(key, "read"), open_regular(self.folder / checked(key), MAX_PIECE) as file:
                file.seek(start)
                return file.read(length)
        except FileNotFoundError:
            raise self.missing(key) from None
        except TooLarge:
            raise self.too_large(key, MAX_PIECE) from None

    def list(self, prefix: str) -> Iterator[PieceInfo]:
        """As the interface describes it; what else somebody put into the folder is passed over."""
        found = []
        with (
            self._naming(prefix, "listed"),
            suppress(FileNotFoundError),
            os.scandir(self.folder / prefix) as entries,
        ):
            for entry in entries:
                key = prefix + entry.name
                if is_key(key) and entry.is_file(follow_symlinks=False):
                    with suppress(FileNotFoundError):  # removed meanwhile
                        found.append(PieceInfo(key, entry.stat(follow_symlinks=False).st_size))
        yield from sorted(found)

    def replace(self, key: str, data: bytes, expected: bytes | None) -> bool:
        """As the interface describes it, under a lock of the folder."""
        with self._naming(key, "written"):
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._locked():
                path = self.folder / checked(key)
                try:
                    now = read_regular(path, MAX_HEAD)
                except FileNotFoundError:
                    now = None
                if now != expected:
                    return False
                atomic.write(path, data)
                return True

    def delete(self, key: str) -> None:
        """As the interface describes it."""
        with self._naming(key, "removed"):
            (self.folder / checked(key)).unlink(missing_ok=True)

    def sweep(self) -> None:
        """As the interface describes it."""
        with self._naming("what was left unfinished", "removed"):
            leftovers.sweep(self.folder)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self.folder / _LOCK, flags, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def _naming(self, key: str, done: str) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, TooLarge):
            raise
        except OSError as problem:
            raise RemoteError(
                f"{self.url}: {key} cannot be {done}: {problem.strerror}", _next_step(problem.errno)
            ) from None


def _next_step(number: int | None) -> str:
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "see that you may write there; `perun pull` needs to read only"
    if number in (errno.ENOSPC, errno.EDQUOT):
        return "make room there, and push again: what was sent is not sent again"
    return "see that the folder is there and can be reached"
