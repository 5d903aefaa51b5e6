"""Registered profiles, named by the SHA-1 of their content (manual 13.2.2).

An object is `profile <type> <length>`, a zero byte and the profile as JSON, compressed by zlib; `length`
counts characters. Its name is the SHA-1 of all that before the compression.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from perun import atomic
from perun.errors import DamagedStore, ProfileError, ProfileNotFound
from perun.store import tree

if TYPE_CHECKING:
    from pathlib import Path

    from perun.profile.factory import Profile
    from perun.profile.helpers import Header

KNOWN_TYPES = frozenset({"memory", "mixed", "time"})
"""The types of the manual; a plugin may make others, which need be no more than a word."""
SIZE_LIMIT = 1 << 30
"""Bytes that an object may have before compression, against files made to fill the memory."""

_TYPE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_HEADER = re.compile(rb"profile ([A-Za-z0-9_.-]{1,64}) (0|[1-9][0-9]{0,17})\0")
_HEADER_ROOM = 128
_CHUNK = 1 << 20
_HINT = "restore the file from a copy of the repository, or remove it and register the profile again"
_WRITERS = 8


class FileObjects:
    """Objects as files below `.perun/objects`; implements :class:`perun.plugin.api.ObjectStore`.

    Storing needs no lock. What :meth:`delete` removes may be in use: hold the lock of the repository.

    :param limit: largest accepted size of an object before compression, in bytes.
    """

    def __init__(self, root: Path, limit: int = SIZE_LIMIT) -> None:
        self.root = root
        self.limit = limit

    def put(self, profile: Profile) -> str:
        """Store the profile (without its origin) and return the checksum; what is whole is not rewritten.

        :raises ProfileError: where its type is not a single word, or it is larger than could be read again.
        """
        from perun.profile.format.json import dumps_object

        return self.put_body(profile.type, dumps_object(profile))

    def put_many(self, profiles: Iterable[Profile]) -> list[str]:
        """As :meth:`put` for each, in order; faster, as the disk flushes many files at once."""
        from concurrent.futures import ThreadPoolExecutor

        profiles = list(profiles)
        if len(profiles) < 2:
            return [self.put(profile) for profile in profiles]
        with ThreadPoolExecutor(min(_WRITERS, len(profiles))) as pool:
            return list(pool.map(self.put, profiles))

    def put_body(self, type_: str, body: bytes) -> str:
        """Store a profile that is JSON already; the checksum."""
        checksum, content = encode(type_, body)
        if len(body) > self.limit:
            raise ProfileError(
                f"the profile has {len(body)} bytes of JSON, more than the limit of {self.limit}",
                "collect fewer resources, e.g. with a coarser sampling",
            )
        path = tree.object_path(self.root, checksum)
        if not self._is_whole(path, checksum):
            atomic.write(path, zlib.compress(content))
        return checksum

    def _is_whole(self, path: Path, checksum: str) -> bool:
        # Where the object is damaged, this profile may be the last copy: its file is deleted afterwards.
        data = tree.read(path)
        try:
            return data is not None and bool(decode(data, checksum, str(path), self.limit))
        except DamagedStore:
            return False

    def get(self, checksum: str) -> Profile:
        """The profile.

        :raises ProfileNotFound: where there is no such object.
        :raises DamagedStore: where the object is not what its name promises.
        """
        from perun.profile.format.json import loads

        return loads(self.get_body(checksum), str(tree.object_path(self.root, checksum)), limit=self.limit)

    def get_body(self, checksum: str) -> bytes:
        """The profile as JSON; errors as :meth:`get`."""
        return self.read(checksum)[1]

    def header(self, checksum: str) -> Header:
        """The head of the profile; errors as :meth:`get`."""
        from perun.profile.helpers import header_of

        return header_of(self.get_body(checksum), str(tree.object_path(self.root, checksum)))

    def read(self, checksum: str) -> tuple[str, bytes]:
        """Type and JSON of the profile; errors as :meth:`get`."""
        path = tree.object_path(self.root, checksum)
        data = tree.read(path)
        if data is None:
            raise ProfileNotFound(
                f"there is no profile {checksum} in {self.root}", "run perun fsck to see what else is missing"
            )
        return decode(data, checksum, str(path), self.limit)

    def delete(self, checksum: str) -> None:
        """Remove the object.

        :raises ProfileNotFound: where there is none.
        """
        try:
            tree.object_path(self.root, checksum).unlink()
        except FileNotFoundError:
            raise ProfileNotFound(f"there is no profile {checksum} in {self.root}") from None

    def __contains__(self, checksum: object) -> bool:
        if not isinstance(checksum, str) or not tree.is_checksum(checksum):
            return False
        return tree.object_path(self.root, checksum).is_file()

    def ids(self) -> Iterator[str]:
        """The checksums of all objects, sorted; whether they are whole is not looked at."""
        for name in tree.names(self.root):
            if tree.is_checksum(name) and not tree.is_index(self.root / name[:2] / name[2:]):
                yield name


def encode(type_: str, body: bytes) -> tuple[str, bytes]:
    """Checksum and content, not yet compressed, of the object that holds the JSON `body`."""
    if not _TYPE.fullmatch(type_):
        raise ProfileError(
            f"header.type of the profile is {type_!r}",
            "it must be one word of letters, digits, dots and dashes, e.g. " + ", ".join(sorted(KNOWN_TYPES)),
        )
    content = b"profile %s %d\0" % (type_.encode(), _characters(body)) + body
    return tree.sha1(content).hex(), content


def decode(data: bytes, checksum: str, source: str, limit: int = SIZE_LIMIT) -> tuple[str, bytes]:
    """Type and JSON of the object in the compressed `data`, which is verified against its name.

    :param source: its file, for the messages.
    :raises DamagedStore: says what is wrong.
    """
    try:
        content, type_, length, start = _decompress(data, limit)
        body = content[start:]
        if _characters(body) != length:
            raise _Damage(f"has {_characters(body)} characters where its header says {length}")
    except zlib.error as problem:
        raise DamagedStore(f"{source} is not compressed by zlib, or damaged: {problem}", _HINT) from None
    except UnicodeDecodeError as problem:
        raise DamagedStore(f"{source} is not UTF-8: {problem.reason}", _HINT) from None
    except _Damage as problem:
        raise DamagedStore(f"{source} {problem}", _HINT) from None
    if (actual := tree.sha1(content).hex()) != checksum:
        raise DamagedStore(f"{source} does not match its name: its SHA-1 is {actual}", _HINT)
    return type_, body


class _Damage(Exception):
    pass


def _decompress(data: bytes, limit: int) -> tuple[bytes, str, int, int]:
    # Content, type, length of the body in characters, and where the body begins.
    stream = zlib.decompressobj()
    head = stream.decompress(data, _HEADER_ROOM)
    header = _HEADER.match(head)
    if header is None:
        raise _Damage(f"does not begin with 'profile <type> <length>': {head[:40]!r}")
    length = int(header[2])
    # A character has at most four bytes, so an honest header bounds what is worth decompressing.
    room = header.end() + min(4 * length, limit)
    if length > limit:
        raise _Damage(f"holds {length} characters, more than the limit of {limit}")
    pieces, size = [head], len(head)
    while not stream.eof and size <= room:
        piece = stream.decompress(stream.unconsumed_tail, min(_CHUNK, room - size + 1))
        if not piece and not stream.unconsumed_tail and not stream.eof:
            raise _Damage("is cut short")
        pieces.append(piece)
        size += len(piece)
    if size > room:
        raise _Damage(f"is longer than the {length} characters that its header says")
    if stream.unused_data:
        raise _Damage(f"is followed by {len(stream.unused_data)} bytes that do not belong to it")
    return b"".join(pieces), header[1].decode(), length, header.end()


def _characters(body: bytes) -> int:
    return len(body) if body.isascii() else len(body.decode())
