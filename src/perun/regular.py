"""Reading files of a repository that a stranger may have filled: regular ones only, never more than a limit.

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

_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY

_GROWN: Final = 1 << 16


class IrregularFile(OSError):
    """There is something in the place of the file that is not read: a link, a pipe, a device, a folder."""


class TooLarge(OSError):
    """The file has more bytes than the caller accepts."""


def open_regular(path: Path | str, limit: int) -> BinaryIO:
    """Open the file for reading; its size is checked before anything is read.

    :param limit: largest accepted size in bytes. The file may grow afterwards: read at most this many.
    :raises FileNotFoundError: where there is none.
    :raises IrregularFile: where it is a symbolic link, or no regular file; it is never waited for.
    :raises TooLarge: where it has more than `limit` bytes; the message gives both numbers.
    :raises OSError: where it cannot be opened.
    """
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            raise IrregularFile(errno.ELOOP, "it is a symbolic link", str(path)) from None
        if problem.errno == errno.ENXIO:  # a socket
            raise IrregularFile(errno.ENXIO, "it is not a regular file", str(path)) from None
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise IrregularFile(errno.EINVAL, "it is not a regular file", str(path))
        if status.st_size > limit:
            reason = f"it has {status.st_size} bytes, more than the limit of {limit}"
            raise TooLarge(errno.EFBIG, reason, str(path))
    except BaseException:
        os.close(descriptor)
        raise
    return open(descriptor, "rb")


def read_regular(path: Path | str, limit: int) -> bytes:
    """The content of the file; errors as :func:`open_regular`, also where it grows meanwhile."""
    with open_regular(path, limit) as file:
        # By its size: a buffer as large as the limit would be reserved for the smallest file.
        data = file.read(os.fstat(file.fileno()).st_size + 1)
        while len(data) <= limit and (more := file.read(_GROWN)):
            data += more
    if len(data) > limit:
        raise TooLarge(errno.EFBIG, f"it has more than the limit of {limit} bytes", str(path))
    return data
