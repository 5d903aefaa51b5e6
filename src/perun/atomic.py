"""Files that are either wholly the old or wholly the new ones, whenever the power fails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import BinaryIO
from zlib import crc32

TEMPORARY_PREFIX = ".tmp-"
"""Start of the name of every file that is not finished; whatever bears it may be removed."""


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
            _make_folder(path.parent)
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


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        flush_folder(folder.parent)


def flush_folder(folder: Path) -> None:
    """Flush the names in the folder: else a rename may be lost with the power, though never half done."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # some file systems cannot flush a folder
    finally:
        os.close(descriptor)
