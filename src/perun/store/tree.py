"""The tree `.perun/objects/<2 hex>/<rest>` that objects, indexes and changes share (manual 13.2)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from perun.core.errors import DamagedStore, ProfileNotFound
from perun.core.regular import IrregularFile, TooLarge
from perun.store.files import ON_DISK, Files

if TYPE_CHECKING:
    import hashlib


try:
    from _sha1 import sha1 as _small_sha1  # type: ignore[import-not-found]
except ImportError:  # not a CPython, or built without it
    _small_sha1 = None


_HEX = frozenset("0123456789abcdef")
ONLY_VERSION = "HEAD"
"""The name of the only version of a folder without version control, as older releases write it, too."""
INDEX_SIGNATURE = b"pidx"
CHANGES_SUFFIX = ".changes"
OPENSSL_FROM = 1 << 20
"""Size in bytes from which hashing by OpenSSL saves more time than loading it takes."""
MAX_BYTES = 256 << 20
"""Largest file of the store that is read as a whole, other than profiles, which have a limit of their own."""
_PIECE = 1 << 18
_ZLIB = 2  # bytes of the header that compressed data begins with


def is_checksum(name: str) -> bool:
    """Whether `name` is that of an object: 40 lower-case hexadecimal digits."""
    return len(name) == 40 and _HEX.issuperset(name)


def is_minor_version(name: str) -> bool:
    """Whether `name` is a full name of a minor version: a SHA-1 or a SHA-256 in hexadecimal digits, or HEAD
    where there is one only."""
    return name == ONLY_VERSION or (len(name) in (40, 64) and _HEX.issuperset(name))


def object_path(root: Path, checksum: str) -> Path:
    """The file of the object.

    :raises ProfileNotFound: if `checksum` is none, so that no name leads out of the folder.
    """
    return Path(object_name(str(root), checksum))


def object_name(root: str, checksum: str) -> str:
    """As :func:`object_path`, quicker where there are many."""
    if not is_checksum(checksum):
        raise ProfileNotFound(f"{checksum!r} is not the checksum of a profile: 40 hexadecimal digits")
    return f"{root}/{checksum[:2]}/{checksum[2:]}"


def minor_path(root: Path, minor: str, suffix: str = "") -> Path:
    """The file that belongs to the minor version: its index, or another one with `suffix`.

    :raises ProfileNotFound: if `minor` is not the full name of a minor version.
    """
    if not is_minor_version(minor):
        raise ProfileNotFound(
            f"{minor!r} is not the full name of a minor version", "resolve it with the version control first"
        )
    return root / f"{minor[:2]}/{minor[2:]}{suffix}"


def read(path: Path, limit: int = MAX_BYTES, files: Files = ON_DISK) -> bytes | None:
    """The content of a file of the store; None if there is none.

    :param limit: largest accepted size in bytes. :param files: those of the store.
    :raises DamagedStore: if there is something that cannot be read, is no file, or too large.
    """
    try:
        return files.read(path, limit)
    except FileNotFoundError:
        return None
    except IrregularFile as problem:
        raise DamagedStore(f"{path} cannot be read: {problem.strerror}", "move it away") from problem
    except OSError as problem:
        raise unreadable(path, problem) from problem


def unreadable(path: Path | str, problem: OSError) -> DamagedStore:
    """The error for a file of the store that is there but does not open."""
    return DamagedStore(
        f"{path} cannot be read: {problem.strerror or problem}", "check its permissions and the disk"
    )


def folders(root: Path, files: Files = ON_DISK) -> list[str]:
    """The folders of the tree, named by two characters, sorted; none if the tree itself is missing."""
    names = listing(root, files)
    known = ONLY_VERSION[:2]
    return sorted(name for name in names if len(name) == 2 and (_HEX.issuperset(name) or name == known))


def listing(folder: Path | str, files: Files = ON_DISK) -> list[str]:
    """The names in a folder, unsorted; none if it is missing or not a folder."""
    try:
        return files.listing(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as problem:
        raise unreadable(folder, problem) from problem


def names(root: Path, files: Files = ON_DISK) -> Iterator[str]:
    """All names of files in the tree, the two digits of the folder in front, sorted."""
    for folder in folders(root, files):
        for name in sorted(listing(root / folder, files)):
            yield folder + name


def beginnings(root: Path, files: Files, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Those of :func:`names` that are wanted, each with the first bytes of its file, as far as that can be
    opened."""
    for folder in folders(root, files):
        within = f"{root}/{folder}"
        wanted = [name for name in sorted(listing(within, files)) if is_wanted(folder + name)]
        for name, start in files.beginnings(within, wanted, len(INDEX_SIGNATURE)):
            yield folder + name, start


def is_index(start: bytes) -> bool:
    """Whether a file that begins so is an index; objects are compressed and never do."""
    return start == INDEX_SIGNATURE


def may_be_index(start: bytes) -> bool:
    """Whether a file that begins so may be an index, a damaged one too: whatever does not begin like an
    object."""
    start = start[:_ZLIB]
    return len(start) < _ZLIB or start[0] & 0x0F != 8 or int.from_bytes(start) % 31 != 0


def sha1(*data: bytes) -> bytes:
    """The SHA-1 of `data`, one after the other; 20 bytes."""
    if len(data) == 1:  # nearly always, and for each profile of a list
        return sha1_of(data[0], len(data[0])).digest()
    first, *others = data or (b"",)
    found = sha1_of(first, sum(map(len, data)))
    for one in others:
        found.update(one)
    return found.digest()


def sha1_of(data: bytes, size: int) -> hashlib._Hash:
    """What computes the SHA-1 of `data` and of more to come, about `size` bytes in all.

    hashlib brings OpenSSL along, which hashes six times as fast but takes longer to load than `status` takes
    to read its index: until then, small data is left to the function that Python falls back to itself.
    """
    if size < OPENSSL_FROM and _small_sha1 is not None and "_hashlib" not in sys.modules:
        found: hashlib._Hash = _small_sha1(data)
        return found
    import hashlib

    return hashlib.sha1(data, usedforsecurity=False)


def sha1_of_file(path: Path, limit: int, files: Files = ON_DISK) -> str:
    """The SHA-1 of the file in hexadecimal digits; only a piece of it is in memory at a time.

    :raises OSError: as :func:`perun.core.regular.open_regular`.
    """
    with files.opened(path, limit) as file:
        found = sha1_of(b"", files.state(path).st_size)
        for piece in pieces(file, limit):
            found.update(piece)
    return found.hexdigest()


def pieces(file: BinaryIO, limit: int) -> Iterator[bytes]:
    """The content of the file, up to `limit` bytes: it may grow meanwhile."""
    left = limit
    while left and (piece := file.read(min(_PIECE, left))):
        left -= len(piece)
        yield piece


# How large files of the store may be: small ones may be made to fill the memory (`profiles.max_size`).

KEY: Final = "profiles.max_size"
DEFAULT: Final = 512 << 20
"""Bytes of a profile as JSON, and of statistics before compression, if no configuration says otherwise."""
HINT: Final = f"raise the limit, in MiB: perun config --shared set {KEY} NUMBER"
"""What to do about a file that is larger."""
READ_WHOLE: Final = 32 << 20
"""Size in bytes up to which `perun fsck` decodes a profile as a whole."""
INDEX: Final = 64 << 20
"""Bytes of an index of profiles."""


def exceeded(limit: int) -> str:
    """What is wrong with something larger, for messages."""
    return f"more than the limit of {limit} ({KEY})"


def refused(path: Path | str, problem: OSError) -> DamagedStore:
    """The error for a file of the store that is there but does not open, or is too large."""

    if isinstance(problem, TooLarge):
        return DamagedStore(f"{path} cannot be read: {problem.strerror} ({KEY})", HINT)
    return unreadable(path, problem)
