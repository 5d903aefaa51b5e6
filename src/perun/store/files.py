"""Where the bytes of a store are: in files on the disk, or in a database (:mod:`perun.store.database`).

What the store keeps is named by paths below `.perun`, wherever it is, and all that is done with these paths
is done here. So no other part of Perun knows where it is. Any other path is that of a file on the disk.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from perun.core import atomic
from perun.core.regular import open_regular, read_regular

if TYPE_CHECKING:
    from perun.store.lock import Lock


class FileState(NamedTuple):
    """What is known of a file without reading it, by the names of :class:`os.stat_result`.

    Its modification time can be set; the time of its last change cannot. Both in nanoseconds.
    """

    st_mtime_ns: int
    st_ctime_ns: int
    st_size: int


class Draft(ABC):
    """A file that is written, and has no name yet. :ivar time: its modification time, in nanoseconds."""

    time: int

    @abstractmethod
    def claim(self, path: Path) -> bool:
        """Give it the name, if nothing has that yet; whether it has it now."""


class Files(ABC):
    """What the parts of a store do with their files.

    A file is there wholly or not at all, and is replaced as a whole, whenever its writer is killed. What is
    missing, no file, or too large is an `OSError` everywhere.
    """

    @abstractmethod
    def opened(self, path: Path | str, limit: int) -> BinaryIO:
        """The file for reading and seeking; errors as :func:`perun.core.regular.open_regular`.

        :param limit: largest accepted size in bytes.
        """

    def read(self, path: Path | str, limit: int) -> bytes:
        """The content of the file; errors as :func:`perun.core.regular.read_regular`."""
        with self.opened(path, limit) as file:
            return file.read()

    @abstractmethod
    def state(self, path: Path | str) -> FileState | os.stat_result:
        """The times and the size of the file.

        :raises FileNotFoundError: if there is none.
        """

    def states(self, folder: Path | str, names: Iterable[str]) -> Iterator[FileState | os.stat_result | None]:
        """The state of each of the files below the folder, None where there is none; quicker for many."""
        for name in names:
            try:
                yield self.state(f"{folder}/{name}")
            except OSError:
                yield None

    @abstractmethod
    def exists(self, path: Path | str) -> bool:
        """Whether there is something of that name."""

    @abstractmethod
    def is_file(self, path: Path | str) -> bool:
        """Whether there is a file of that name."""

    @abstractmethod
    def is_folder(self, path: Path | str) -> bool:
        """Whether there is a folder of that name, and no link to one. In a database a folder is there as long
        as it has a file."""

    @abstractmethod
    def listing(self, folder: Path | str) -> list[str]:
        """The names of the files and folders in the folder, unsorted.

        :raises FileNotFoundError: :raises NotADirectoryError: if there is no such folder.
        """

    @abstractmethod
    def beginnings(
        self, folder: Path | str, names: Iterable[str], length: int
    ) -> Iterator[tuple[str, bytes]]:
        """Each name with the first bytes of the file of the folder; without any where it cannot be opened."""

    @abstractmethod
    def writing(self, path: Path) -> AbstractContextManager[BinaryIO]:
        """What the block writes is the new content of the file; where it raises, that is as it was."""

    def write(self, path: Path, data: bytes) -> None:
        """Make `data` the content of the file, as :meth:`writing`."""
        with self.writing(path) as file:
            file.write(data)

    @abstractmethod
    def write_many(self, files: Iterable[atomic.NewFile], folder: Path) -> None:
        """As :meth:`write` for each; quicker where there are many. Where it raises, some may be new.

        :param folder: all of them are below it.
        """

    @abstractmethod
    def time_of(self, file: BinaryIO) -> int:
        """The modification time (ns) that what was written so far by :meth:`writing` will have."""

    @abstractmethod
    def drafted(self, folder: Path, pieces: Iterable[bytes]) -> AbstractContextManager[Draft]:
        """A file of the folder with this content, which gets its name later, or is gone after the block."""

    @abstractmethod
    def append(self, path: Path, data: bytes) -> int:
        """Write at the end of the file, which is made if there is none; its size in bytes then.

        It need not outlast a failure of the power.
        """

    @abstractmethod
    def set_time(self, path: Path | str, time: int) -> None:
        """Set the modification time, in nanoseconds."""

    @abstractmethod
    def remove(self, path: Path) -> None:
        """Remove the file.

        :raises FileNotFoundError: if there is none.
        """

    @abstractmethod
    def remove_folder(self, path: Path) -> None:
        """Remove the folder, which is empty."""

    def together(self) -> AbstractContextManager[None]:
        """Where that is quicker, what the block writes is there at its end, or nothing of it if it raises.

        Other threads that write wait for it.
        """
        return nullcontext()

    @abstractmethod
    def lock(self, timeout: float, after_kill: Callable[[], object]) -> Lock:
        """The lock of whoever writes, with the parameters of :class:`perun.store.lock.Lock`."""

    @abstractmethod
    def signature(self) -> object:
        """What is another one whenever something was stored."""

    @abstractmethod
    def create(self, folders: tuple[str, ...]) -> None:
        """Make what is missing of the store; what is there stays as it is."""

    def glimpse(self, folder: Path | str) -> Files:
        """The files as they are in the folder and below it at one moment, where that is quicker for who lists
        many and asks for the state of each."""
        return self

    def close(self) -> None:  # noqa: B027 - most need none
        """Give back what is open."""


class DiskFiles(Files):
    """Files on the disk. :param root: the folder `.perun`, of the lock; None for a part without one."""

    def __init__(self, root: Path | None = None) -> None:
        self._root = root

    def opened(self, path: Path | str, limit: int) -> BinaryIO:
        """As the interface describes it."""
        return open_regular(path, limit)

    def read(self, path: Path | str, limit: int) -> bytes:
        """As the interface describes it."""
        return read_regular(path, limit)

    def state(self, path: Path | str) -> FileState | os.stat_result:
        """As the interface describes it."""
        return os.stat(path)

    def states(self, folder: Path | str, names: Iterable[str]) -> Iterator[FileState | os.stat_result | None]:
        """As the interface describes it; the system finds the folder once."""
        try:
            opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            yield from (None for _ in names)
            return
        try:
            stat = os.stat
            for name in names:
                try:
                    yield stat(name, dir_fd=opened)
                except OSError:
                    yield None
        finally:
            os.close(opened)

    def exists(self, path: Path | str) -> bool:
        """As the interface describes it."""
        return os.path.lexists(path)

    def is_file(self, path: Path | str) -> bool:
        """As the interface describes it."""
        return os.path.isfile(path)

    def is_folder(self, path: Path | str) -> bool:
        """As the interface describes it."""
        return os.path.isdir(path) and not os.path.islink(path)

    def listing(self, folder: Path | str) -> list[str]:
        """As the interface describes it."""
        return os.listdir(folder)

    def beginnings(
        self, folder: Path | str, names: Iterable[str], length: int
    ) -> Iterator[tuple[str, bytes]]:
        """As the interface describes it."""
        for name in names:
            try:
                with open_regular(f"{folder}/{name}", sys.maxsize) as file:
                    start = file.read(length)
            except OSError:
                start = b""  # whoever reads the file itself will say why
            yield name, start

    def writing(self, path: Path) -> AbstractContextManager[BinaryIO]:
        """As the interface describes it."""
        return atomic.writing(path)

    def write(self, path: Path, data: bytes) -> None:
        """As the interface describes it."""
        atomic.write(path, data)

    def write_many(self, files: Iterable[atomic.NewFile], folder: Path) -> None:
        """As the interface describes it."""
        atomic.write_many(files, folder)

    def time_of(self, file: BinaryIO) -> int:
        """As the interface describes it."""
        file.flush()
        return os.fstat(file.fileno()).st_mtime_ns

    @contextmanager
    def drafted(self, folder: Path, pieces: Iterable[bytes]) -> Iterator[Draft]:
        """As the interface describes it."""
        temporary = folder / f"{atomic.temporary_name()}.new"
        try:
            with atomic.writing(temporary) as file:
                file.writelines(pieces)
            yield _DiskDraft(temporary)
        finally:
            temporary.unlink(missing_ok=True)

    def append(self, path: Path, data: bytes) -> int:
        """As the interface describes it."""
        path.parent.mkdir(exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(path, flags, 0o666)
        try:
            atomic.write_all(descriptor, data)
            return os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)

    def set_time(self, path: Path | str, time: int) -> None:
        """As the interface describes it."""
        with atomic.PathErrors(path):
            os.utime(path, ns=(time, time))

    def remove(self, path: Path) -> None:
        """As the interface describes it."""
        path.unlink()

    def remove_folder(self, path: Path) -> None:
        """As the interface describes it."""
        path.rmdir()

    def lock(self, timeout: float, after_kill: Callable[[], object]) -> Lock:
        """As the interface describes it."""
        from perun.store.lock import Lock

        assert self._root is not None, "a part of a store alone has no lock"
        return Lock(self._root / ".lock", timeout, after_kill)

    def signature(self) -> object:
        """As the interface describes it."""
        objects = f"{self._root}/objects"
        paths = [f"{self._root}/jobs", objects]
        with suppress(OSError):
            paths += [f"{objects}/{name}" for name in sorted(os.listdir(objects))]
        found = []
        for path in paths:
            with suppress(OSError):
                status = os.stat(path)
                found.append((path, status.st_mtime_ns, status.st_size))
        return tuple(found)

    def create(self, folders: tuple[str, ...]) -> None:
        """As the interface describes it."""
        assert self._root is not None, "a part of a store alone is not made"
        for name in folders:
            (self._root / name).mkdir(parents=True, exist_ok=True)


class _DiskDraft(Draft):
    def __init__(self, temporary: Path) -> None:
        self._temporary = temporary
        self.time = temporary.stat().st_mtime_ns

    def claim(self, path: Path) -> bool:
        # Old releases and users with `cp` take no lock, so that only the file system can say who was first.
        try:
            os.link(self._temporary, path)
        except FileExistsError:
            return False
        except OSError:  # no hard links here
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            except FileExistsError:
                return False
            os.replace(self._temporary, path)
        return True


ON_DISK: Final = DiskFiles()
"""What opens single files on the disk."""
