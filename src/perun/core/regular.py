"""Opening files of a repository that a stranger may have filled: regular ones only, never more than a limit.

A link, a pipe or a device in the place of a file would lead out of the repository, wait for ever or fill the
memory. Everything below `.perun` is opened here, and nowhere else.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    from pathlib import Path

_FLAGS: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_PIECE: Final = 1 << 16


class IrregularFile(OSError):
    """There is something in the place of the file that is not read: a link, a pipe, a device, a folder."""


class TooLarge(OSError):
    """The file has more bytes than the caller accepts."""


def open_regular(path: Path | str, limit: int) -> BinaryIO:
    """Open the file for reading; its size is checked before anything is read.

    :param limit: largest accepted size in bytes. The file may grow afterwards: read at most this many.
    :raises FileNotFoundError: if there is none.
    :raises IrregularFile: if it is a symbolic link, or no regular file; it is never waited for.
    :raises TooLarge: if it has more than `limit` bytes; the message gives both numbers.
    :raises OSError: if it cannot be opened.
    """
    descriptor = _opened(path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        if size > limit:
            reason = f"it has {size} bytes, more than the limit of {limit}"
            raise TooLarge(errno.EFBIG, reason, str(path))
    except BaseException:
        os.close(descriptor)
        raise
    return open(descriptor, "rb")


def open_for_writing(path: Path | str, *, append: bool = False) -> BinaryIO:
    """Open the file for writing, emptied or at its end; it is made if there is none.

    For logs, which are read while they are written: whatever else is replaced as a whole
    (`perun.core.atomic`).

    :raises IrregularFile: if it is a symbolic link, or no regular file; nothing is written then.
    :raises OSError: if it cannot be opened.
    """
    descriptor = _opened(path, os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else 0))
    try:
        if not append:
            os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return open(descriptor, "ab" if append else "wb")


def _opened(path: Path | str, flags: int) -> int:
    """The descriptor of the regular file, opened with these flags; it is never waited for."""
    try:
        descriptor = os.open(path, _FLAGS | flags, 0o666)
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            raise IrregularFile(errno.ELOOP, "it is a symbolic link", str(path)) from None
        if problem.errno == errno.ENXIO:  # a socket, or a pipe that nobody reads
            raise IrregularFile(errno.ENXIO, "it is not a regular file", str(path)) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise IrregularFile(errno.EINVAL, "it is not a regular file", str(path))
    return descriptor


def read_regular(path: Path | str, limit: int) -> bytes:
    """The content of the file; errors as :func:`open_regular`, also if it grows meanwhile."""
    with open_regular(path, limit) as file:
        # So much memory is taken before anything is read: what the file has, not what it might have.
        size = os.fstat(file.fileno()).st_size
        data = file.read(size + 1)
        while size < len(data) <= limit and (piece := file.read(_PIECE)):
            data += piece
    if len(data) > limit:
        raise TooLarge(errno.EFBIG, f"it has more than the limit of {limit} bytes", str(path))
    return data
