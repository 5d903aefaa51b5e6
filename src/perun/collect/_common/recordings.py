"""What the readers of all recordings share: headers and files of 64-bit words.

A recording has the byte order of the machine. Its header begins with eight bytes that name the format, a
mark of the byte order and the version, both numbers of 32 bits.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.core.atomic import PathErrors
from perun.core.errors import ProfileError

BYTE_ORDER: Final = 0x01020304
WORD: Final = 8
"""Bytes of a word."""
Words = NDArray[np.uint64]


class DamagedRecording(ProfileError):
    """A file is not what the recorder writes."""


class HeaderLayout(NamedTuple):
    """The layout of a header: the bytes that name the format, its version, and all fields as a struct."""

    magic: bytes
    version: int
    form: struct.Struct


class RecordedFile(NamedTuple):
    """A file of a recording.

    :param path: where it is. :param content: what it holds, in the plural, for messages.
    """

    path: Path
    content: str

    def damaged(self, reason: str) -> DamagedRecording:
        """The error for a file that no recorder writes, for this reason."""
        return DamagedRecording(
            f"{self.path}: the {self.content} are damaged: {reason}", "collect the profile again"
        )

    def open(self) -> BinaryIO:
        """The file, opened for reading.

        :raises DamagedRecording: where it cannot be read.
        """
        try:
            return open(self.path, "rb")
        except OSError as problem:
            raise DamagedRecording(
                f"cannot read {self.path}: {problem.strerror}", "collect the profile again"
            ) from None

    def header(self, layout: HeaderLayout, data: bytes) -> list[Any]:
        """The fields of a header after magic, byte order and version.

        :param data: begins with the header.
        :raises DamagedRecording: where it is the header of another format, byte order or version.
        """
        if len(data) < layout.form.size:
            raise self.damaged("the file is too short for its header")
        magic, order, version, *fields = layout.form.unpack_from(data)
        if magic != layout.magic:
            raise self.damaged(f"the header does not begin with {layout.magic.decode()}")
        if order != BYTE_ORDER:
            raise self.damaged("it was written by a machine with another byte order")
        if version != layout.version:
            raise self.damaged(
                f"its format has version {version}, but this release of Perun reads version {layout.version}"
            )
        return fields


def require_room(file: Path, size: int) -> None:
    """Ask for the room that a recorder needs for a file, where it recorded nothing.

    It is within the program, and cannot tell anybody what the system refused it.

    :param file: that it writes. :param size: bytes that it reserves at once.
    :raises OSError: with the name of the file, where there is no such room: a full disk, a quota, a limit.
    """
    from tempfile import TemporaryFile

    with PathErrors(file), TemporaryFile(dir=file.parent) as same:
        os.posix_fallocate(same.fileno(), 0, size)


def words(file: BinaryIO, most: int, total: int | None = None) -> Iterator[Words]:
    """The words of a file from its position on, in arrays of at most `most` words.

    :param total: how many words to read; all whole ones by default.
    """
    left = total
    while left is None or left:
        piece = np.fromfile(file, np.uint64, most if left is None else min(most, left))
        if not len(piece):
            return
        yield piece
        left = None if left is None else left - len(piece)
