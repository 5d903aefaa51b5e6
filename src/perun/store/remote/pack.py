"""Packs: the objects of many profiles in one piece, so that a request carries more than one.

A pack is `perun-pack 1`, a line feed, the count of its objects (little-endian, 32 bits), then for each object
its SHA-1 (20 bytes) and its size (64 bits), and at last the objects as they are in the store (compressed), in
this order. Its name is the SHA-256 of all that. An object of no bytes under a random name is none: it gives a
pack another name.
"""

from __future__ import annotations

import hashlib
import secrets
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from perun.core.errors import RemoteError

FOLDER: Final = "packs/"
TARGET: Final = 8 << 20
"""Bytes of objects from which on a pack is sent and the next one begun: small enough to be sent again."""
_MAGIC: Final = b"perun-pack 1\n"
_COUNT: Final = struct.Struct("<I")
_ENTRY: Final = struct.Struct("<20sQ")


class PackSlice(NamedTuple):
    """Where an object is: the name of its pack, where it begins there, and its size, in bytes."""

    pack: str
    start: int
    size: int


class Pack(NamedTuple):
    """A pack that can be sent: its name, its bytes, and the places of its objects by checksum."""

    name: str
    data: bytes
    places: dict[str, PackSlice]


def packed(objects: Sequence[tuple[str, bytes]], *, renamed: bool = False) -> Pack:
    """The pack of the objects, each a checksum (40 hexadecimal digits) and the bytes of its file.

    :param renamed: make one of a name that no pack ever had: what died under its name stays dead.
    """
    if renamed:
        objects = [*objects, (secrets.token_hex(20), b"")]
    head = [_MAGIC, _COUNT.pack(len(objects))]
    head += (_ENTRY.pack(bytes.fromhex(checksum), len(data)) for checksum, data in objects)
    data = b"".join(head) + b"".join(data for _checksum, data in objects)
    name = hashlib.sha256(data).hexdigest()
    places = {}
    start = sum(map(len, head))
    for checksum, content in objects:
        places[checksum] = PackSlice(name, start, len(content))
        start += len(content)
    return Pack(name, data, places)


def unpacked(name: str, data: bytes) -> Iterator[tuple[str, PackSlice]]:
    """The checksum and place of each object of a pack that was fetched as a whole.

    :raises RemoteError: if it is not the pack of this name, or no pack.
    """
    if hashlib.sha256(data).hexdigest() != name:
        raise RemoteError(
            f"the pack {name[:12]} is damaged: its content is not what its name says",
            f"restore {FOLDER}{name} from a copy of the remote",
        )
    malformed = RemoteError(
        f"{name[:12]} is no pack, or one of a newer Perun",
        "install the Perun that the others of the team have",
    )
    if not data.startswith(_MAGIC) or len(data) < len(_MAGIC) + _COUNT.size:
        raise malformed
    (count,) = _COUNT.unpack_from(data, len(_MAGIC))
    first = len(_MAGIC) + _COUNT.size
    start = first + count * _ENTRY.size
    if start > len(data):
        raise malformed
    for digest, size in _ENTRY.iter_unpack(data[first:start]):
        if size > len(data) - start:
            raise malformed
        yield digest.hex(), PackSlice(name, start, size)
        start += size
    if start != len(data):
        raise malformed


# Doing the same with many things at once, without having more of them in memory than are at work.

T = TypeVar("T")
U = TypeVar("U")


def in_parallel(
    pool: ThreadPoolExecutor, work: Callable[[T], U], items: Iterable[T], ahead: int
) -> Iterator[tuple[T, U]]:
    """Each item with what `work` makes of it, as it is done; at most `ahead` are begun beforehand."""
    left = iter(items)
    running: dict[Future[U], T] = {pool.submit(work, one): one for one in islice(left, ahead)}
    try:
        while running:
            done, _rest = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                item = running.pop(future)
                running.update((pool.submit(work, one), one) for one in islice(left, 1))
                yield item, future.result()
    finally:
        for future in running:
            future.cancel()
