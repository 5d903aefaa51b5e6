"""Files that are either wholly the old or wholly the new ones, whenever the power fails."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO, Final, Literal, NamedTuple
from zlib import crc32

TEMPORARY_PREFIX = ".tmp-"
"""Start of the name of every file that is not finished; whatever bears it may be removed."""
_FLUSHED_AT_ONCE: Final = 16
"""Files from which on the whole file system is flushed for them: with it goes what others have written."""


def temporary_name() -> str:
    """A new name for an unfinished file; it tells which process writes it (:mod:`perun.core.leftovers`)."""
    return f"{TEMPORARY_PREFIX}{process_mark()}-{os.urandom(6).hex()}"


def process_mark() -> str:
    """What names of unfinished files and of folders of a run tell of their process: `4711-0badcafe12ab`.

    That are its number, eight digits for the system that gave it that, and four for when it started: a number
    alone is also that of other processes, elsewhere or later. All but the number has one length.
    """
    return _mark_of(os.getpid())


@cache
def _mark_of(this_process: int) -> str:
    return f"{this_process}-{system()}{started('self')}"


@cache
def system() -> str:
    """Eight hexadecimal digits for the running system that numbers this process: its boot and namespaces.

    On a network file system, or beside a container, the same number is that of another process.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            identity = file.read() + os.readlink("/proc/self/ns/pid").encode()
    except OSError:
        identity = os.uname().nodename.encode()
    with suppress(OSError):  # an older kernel has none, and no starts that depend on it
        identity += os.readlink("/proc/self/ns/time").encode()
    return f"{crc32(identity):08x}"


def started(process: int | Literal["self"]) -> str:
    """Four hexadecimal digits for when the process started; empty if it has ended and is only waited for.

    :raises OSError: if the system does not tell.
    """
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            state, *fields = file.read().rpartition(b")")[2].split()  # the name before it may hold anything
    except OSError:
        if process == "self":
            return "0" * 4
        raise
    return "" if state in (b"Z", b"X") else f"{int(fields[18]) & 0xFFFF:04x}"


def write(path: Path, data: bytes, *, private: bool = False, executable: bool = False) -> None:
    """Make `data` the content of `path`: a temporary file beside it, flushed to the disk, then renamed.

    The permissions of a file that is there are kept. The folder is made if it is missing.

    :param private: nobody but the user may read the file.
    :param executable: whoever may read it may execute it.
    :raises OSError: if that cannot be done, e.g. as the disk is full; `path` is then as it was.
    """
    with writing(path, private=private, executable=executable) as file:
        file.write(data)


@contextmanager
def writing(
    path: Path, *, private: bool = False, executable: bool = False, make_folder: bool = True
) -> Iterator[BinaryIO]:
    """As :func:`write`, for data that comes piece by piece: what the block writes is the new content.

    Where the block raises, `path` is as it was.

    :param make_folder: make the folder if it is missing; not for a name that the user types, where it is a
        mistake.
    """
    try:
        mode = path.stat().st_mode & 0o7777
    except FileNotFoundError:
        mode = None
        if make_folder:
            for folder in _make_folder(path.parent):
                flush_folder(folder)
    if private:
        mode = 0o600
    temporary = path.with_name(temporary_name())
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600 if private else 0o666)
    try:
        with open(descriptor, "wb") as file:
            if mode is not None:
                os.fchmod(descriptor, mode)
            if executable:
                now = os.fstat(descriptor).st_mode & 0o7777
                os.fchmod(descriptor, now | (now & 0o444) >> 2)
            yield file
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException as problem:
        temporary.unlink(missing_ok=True)
        if isinstance(problem, OSError) and str(problem.filename or temporary) == str(temporary):
            problem.filename, problem.filename2 = str(path), None  # of a full disk the system says no more
        raise
    flush_folder(path.parent)


class NewFile(NamedTuple):
    """A file that is to be written: its name, its content and its modification time (ns), None for now."""

    path: Path | str
    pieces: Iterable[bytes | memoryview]
    modified: int | None = None


def write_many(files: Iterable[NewFile], scratch: Path) -> None:
    """As :func:`write` for each of the files, but the disk is flushed once for all their contents, and once
    for all their names. Each is wholly the old or the new one; where it fails, some may be new.

    :param scratch: a folder of their file system, which unfinished files are in.
    :raises OSError: as :func:`write`.
    """
    unfinished = _Unfinished(str(scratch))
    try:
        for file in files:
            unfinished.write(file)
        unfinished.finish()
    finally:
        unfinished.clean()


class _Unfinished:
    """Files that are written, and do not have their names yet.

    Those of a folder that is missing are in an unfinished folder, which is named as a whole: file systems
    need much less for one name than for one of each file. The others are in the scratch folder itself.
    """

    def __init__(self, scratch: str) -> None:
        self._scratch = scratch
        self._folders: dict[str, str] = {}
        """The unfinished folders, by the name that each gets."""
        self._files: dict[str, str] = {}
        """Unfinished files in the scratch folder, each with the name that it gets."""
        self._within: dict[str, str] = {}
        """Files in the unfinished folders, each with the name that it gets with its folder."""
        self._changed: set[str] = set()
        """Folders whose names are to be flushed."""
        self._system = -1

    def write(self, file: NewFile) -> None:
        """Write the content of one more file."""
        if self._system < 0:
            self._changed.update(map(str, (self._scratch, *_make_folder(Path(self._scratch)))))
            # Opened before anything is written: flushing tells what failed since.
            self._system = os.open(self._scratch, os.O_RDONLY | os.O_DIRECTORY)
        folder, name = os.path.split(file.path)
        if folder not in self._changed and folder not in self._folders:
            if os.path.isdir(folder):
                self._changed.add(folder)
            else:
                self._start_folder(folder)
        if unfinished := self._folders.get(folder):
            within = f"{unfinished}/{name}"
            self._within[within] = os.fspath(file.path)
            _write_unflushed(within, file)
        else:
            alone = f"{self._scratch}/{temporary_name()}"
            self._files[alone] = os.fspath(file.path)
            _write_unflushed(alone, file, keep_mode=True)

    def _start_folder(self, folder: str) -> None:
        parent = Path(folder).parent
        self._changed.update(map(str, (parent, *_make_folder(parent))))
        self._folders[folder] = f"{self._scratch}/{temporary_name()}"
        os.mkdir(self._folders[folder])

    def finish(self) -> None:
        """Give all their names, once the disk has their contents."""
        at_once = len(self._files) + len(self._within) >= _FLUSHED_AT_ONCE
        if not (at_once and _flush_system(self._system, self._scratch)):
            for written, path in [*self._files.items(), *self._within.items()]:
                with PathErrors(path):
                    _flush(written, os.O_RDONLY)
            for unfinished in self._folders.values():
                flush_folder(unfinished)
        for folder, unfinished in list(self._folders.items()):
            self._name_folder(unfinished, folder)
            del self._folders[folder]
        for unfinished, path in list(self._files.items()):
            os.replace(unfinished, path)
            del self._files[unfinished]
        if not (at_once and _flush_system(self._system, self._scratch)):
            for folder in self._changed:
                flush_folder(folder)

    def _name_folder(self, unfinished: str, folder: str) -> None:
        try:
            os.replace(unfinished, folder)
        except OSError as problem:
            if problem.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            # Somebody else has made one meanwhile.
            self._changed.add(folder)
            for name in os.listdir(unfinished):
                os.replace(f"{unfinished}/{name}", f"{folder}/{name}")
            os.rmdir(unfinished)

    def clean(self) -> None:
        """Remove what did not get its name."""
        for unfinished in [*self._files, *self._folders.values()]:
            with suppress(FileNotFoundError):
                remove_unfinished(unfinished)
        if self._system >= 0:
            os.close(self._system)


def remove_unfinished(path: Path | str) -> None:
    """Remove an unfinished file, or an unfinished folder with the files in it.

    :raises OSError: if that cannot be done.
    """
    try:
        os.unlink(path)
    except IsADirectoryError:
        for name in os.listdir(path):
            os.unlink(f"{path}/{name}")
        os.rmdir(path)


def _write_unflushed(unfinished: str, file: NewFile, *, keep_mode: bool = False) -> None:
    """Write the content to an unfinished file.

    :param keep_mode: give it the permissions of the file that is there.
    """
    # The same name may come twice within an unfinished folder: the last one counts.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with PathErrors(file.path):
        descriptor = os.open(unfinished, flags, 0o666)
        try:
            if keep_mode:
                with suppress(FileNotFoundError):
                    os.fchmod(descriptor, os.stat(file.path).st_mode & 0o7777)
            for piece in file.pieces:
                write_all(descriptor, piece)
            if file.modified is not None:
                with suppress(OSError, OverflowError):  # it orders what was made within a second, no more
                    os.utime(descriptor, ns=(file.modified, file.modified))
        finally:
            os.close(descriptor)


class PathErrors:
    """A block whose errors of the system name the path: of a full disk, or a descriptor, the system tells
    none."""

    __slots__ = ("_path",)

    def __init__(self, path: Path | str) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, OSError):
            problem.filename = str(self._path)


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of the data where the descriptor is.

    :raises OSError: without the name of a file, see :class:`PathErrors`.
    """
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _flush_system(descriptor: int, folder: str) -> bool:
    """Flush the file system of the folder, which is open; whether the system can do that.

    :raises OSError: if something could not be written.
    """
    import ctypes

    syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if syncfs is None:
        return False
    if syncfs(descriptor):
        number = ctypes.get_errno()
        if number == errno.ENOSYS:
            return False
        raise OSError(number, os.strerror(number), folder)
    return True


def _make_folder(folder: Path) -> list[Path]:
    """Make the folder, if it is missing; the folders in which there is a new one then."""
    if folder.is_dir():
        return []
    changed = _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    return [*changed, folder.parent]


def flush_folder(folder: Path | str) -> None:
    """Flush the names in the folder: else a rename may be lost with the power, though never half done."""
    with suppress(OSError):  # some file systems cannot flush a folder
        _flush(folder, os.O_RDONLY | os.O_DIRECTORY)


def _flush(path: Path | str, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
