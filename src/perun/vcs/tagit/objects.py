"""Contents of files by their SHA-256, compressed: `.tagit/objects/<2 hex>/<62 hex>`."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from perun import atomic
from perun.errors import VersionControlError
from perun.regular import open_regular

_PIECE: Final = 1 << 20
_MAX_BYTES: Final = 1 << 40
_LEVEL: Final = 6


class Objects:
    """The contents of all snapshots, each once; a file that is there is never written again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: dict[str, Path] | None = None

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let what is put in the block be there at its end, all at once: much quicker for many files.

        The contents are on the disk before they get their names. Only for who keeps all others from writing.
        """
        for left in self._folder.glob(f"{atomic.TEMPORARY_PREFIX}*"):
            left.unlink()
        self._waiting = {}
        try:
            yield
            os.sync()
            for checksum, unfinished in self._waiting.items():
                path = self._path(checksum)
                path.parent.mkdir(exist_ok=True)
                os.replace(unfinished, path)
            os.sync()
        finally:
            self._waiting = None

    def put(self, data: bytes) -> str:
        """Keep `data`; its checksum."""
        import hashlib

        checksum = hashlib.sha256(data).hexdigest()
        if not self._has(checksum):
            with self._writing(checksum) as out:
                out.write(zlib.compress(data, _LEVEL))
        return checksum

    def put_file(self, file: Path) -> str:
        """Keep the content of `file`, piece by piece; its checksum.

        :raises VersionControlError: where it changes meanwhile.
        """
        import hashlib

        checksum = checksum_of(file)
        if self._has(checksum):
            return checksum
        digest, packer = hashlib.sha256(), zlib.compressobj(_LEVEL)
        with self._writing(checksum) as out:
            for piece in _pieces(file):
                digest.update(piece)
                out.write(packer.compress(piece))
            out.write(packer.flush())
            if digest.hexdigest() != checksum:
                raise VersionControlError(
                    f"{file} changes while it is read", "try again when nobody writes it"
                )
        return checksum

    def get(self, checksum: str) -> bytes:
        """The content of that checksum.

        :raises VersionControlError: where it is missing or damaged.
        """
        return b"".join(self._read(checksum))

    def copy_to(self, checksum: str, out: BinaryIO) -> None:
        """Write the content of that checksum to `out`.

        :raises VersionControlError: as :meth:`get`; something may have been written then.
        """
        for piece in self._read(checksum):
            out.write(piece)

    def _read(self, checksum: str) -> Iterator[bytes]:
        import hashlib

        path = self._path(checksum)
        digest, unpacker = hashlib.sha256(), zlib.decompressobj()
        try:
            with open_regular(path, _MAX_BYTES) as file:
                while packed := file.read(_PIECE):
                    piece = unpacker.decompress(packed)
                    digest.update(piece)
                    yield piece
        except OSError as problem:
            raise VersionControlError(
                f"a part of the snapshots cannot be read: {path}: {problem.strerror}",
                "restore it from a backup",
            ) from problem
        except zlib.error:
            raise _damaged(path) from None
        if not unpacker.eof or unpacker.unused_data or digest.hexdigest() != checksum:
            raise _damaged(path)

    def _has(self, checksum: str) -> bool:
        return checksum in (self._waiting or ()) or self._path(checksum).exists()

    @contextmanager
    def _writing(self, checksum: str) -> Iterator[BinaryIO]:
        if self._waiting is None:
            with atomic.writing(self._path(checksum)) as out:
                yield out
            return
        unfinished = self._folder / f"{atomic.TEMPORARY_PREFIX}{checksum}"
        with open(unfinished, "wb") as out:
            yield out
        self._waiting[checksum] = unfinished

    def _path(self, checksum: str) -> Path:
        return self._folder / checksum[:2] / checksum[2:]


def checksum_of(file: Path) -> str:
    """The checksum that the content of `file` has, or would have."""
    import hashlib

    digest = hashlib.sha256()
    for piece in _pieces(file):
        digest.update(piece)
    return digest.hexdigest()


def _pieces(file: Path) -> Iterator[bytes]:
    with open(file, "rb") as source:
        while piece := source.read(_PIECE):
            yield piece


def _damaged(path: Path) -> VersionControlError:
    return VersionControlError(f"a part of the snapshots is damaged: {path}", "restore it from a backup")
