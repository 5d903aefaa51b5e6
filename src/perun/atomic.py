"""Files that are either wholly the old or wholly the new ones, whenever the power fails."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple
from zlib import crc32

TEMPORARY_PREFIX = ".tmp-"
"""Start of the name of every file that is not finished; whatever bears it may be removed."""
_FLUSHED_AT_ONCE: Final = 16
"""Files from which on the whole file system is flushed for them: with it goes what others have written."""


def temporary_name() -> str:
    """A new name for an unfinished file; it tells which process writes it (:mod:`perun.leftovers`)."""
    return f"{TEMPORARY_PREFIX}{os.getpid()}-{system()}-{os.urandom(6).hex()}"


@cache
def system() -> str:
    """Eight hexadecimal digits for the running system that numbers this process: its boot and PID namespace.

    On a network file system, or beside a container, the same number is that of another process.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            identity = file.read() + os.readlink("/proc/self/ns/pid").encode()
    except OSError:
        identity = os.uname().nodename.encode()
    return f"{crc32(identity):08x}"


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

    :param scratch: a folder of their file system, which unfinished files are in: file systems keep those of
        one folder together, and write them sooner.
    :raises OSError: as :func:`write`.
    """
    unfinished: dict[str, NewFile] = {}
    changed: set[str] = set()
    system = -1
    try:
        for file in files:
            if system < 0:
                # The files leave it for others: both are to be flushed.
                changed.update(map(str, (scratch, *_make_folder(scratch))))
                # Opened before anything is written: flushing tells what failed since.
                system = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY)
            folder = os.path.dirname(file.path)
            if folder not in changed:
                changed.update(map(str, _make_folder(Path(folder))), [folder])
            temporary = f"{scratch}/{temporary_name()}"
            unfinished[temporary] = file._replace(pieces=())
            _write_unflushed(temporary, file)
        at_once = len(unfinished) >= _FLUSHED_AT_ONCE
        if not (at_once and _flush_system(system, scratch)):
            for temporary in unfinished:
                _flush(temporary, os.O_RDONLY)
        for temporary, file in list(unfinished.items()):
            os.replace(temporary, file.path)
            del unfinished[temporary]
            if file.modified is not None:
                with suppress(OSError, OverflowError):  # it orders what was made within a second, no more
                    os.utime(file.path, ns=(file.modified, file.modified))
        if not (at_once and _flush_system(system, scratch)):
            for folder in changed:
                flush_folder(folder)
    finally:
        for temporary in unfinished:
            Path(temporary).unlink(missing_ok=True)
        if system >= 0:
            os.close(system)


def _write_unflushed(temporary: str, file: NewFile) -> None:
    """Write the content to a temporary file with the permissions of the file that is there."""
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            with suppress(FileNotFoundError):
                os.fchmod(descriptor, os.stat(file.path).st_mode & 0o7777)
            for piece in file.pieces:
                data = memoryview(piece)
                while data:
                    data = data[os.write(descriptor, data) :]
        finally:
            os.close(descriptor)
    except OSError as problem:
        problem.filename = str(file.path)  # of a full disk the system says no more
        raise


def _flush_system(descriptor: int, folder: Path) -> bool:
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
        raise OSError(number, os.strerror(number), str(folder))
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
