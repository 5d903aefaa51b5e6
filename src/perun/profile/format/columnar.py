"""Profiles by columns: the head as JSON, then the numbers in chunks, then a directory of them.

JSON spells ten million calls in 440 MB; by columns they are 20 to 50 MB, and who asks for one function reads
its chunks only. `docs/storage.md` describes the file; in short::

    {"perun-columns":2,...}     all regions but the resources, as one line of JSON, the head first
    chunks                      see :mod:`perun.profile.format.columns`, in the order of the directory
    directory                   by zlib, JSON: `resource_type_map`, `resources` without long columns, and the
                                call stacks that groups share, see :mod:`perun.profile.format.encoding`
    trailer                     where all that is, and checksums, as text

All of it is ASCII, so that releases which do not know it see that it is no JSON, and do not stop.

Whatever a file holds, the result is a profile or a :class:`~perun.core.errors.ProfileError`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Container, Iterator, Mapping
from typing import Any, BinaryIO, Final, NamedTuple
from zlib import crc32

from perun.core.errors import ProfileError
from perun.profile.format import bulk, encoding
from perun.profile.format import columns as seven_bits
from perun.profile.format.columns import KINDS, MAX_NUMBERS, ColumnChunk, CompressedColumn, is_packed, pack
from perun.profile.format.core import Profile
from perun.profile.format.encoding import COMPACT, encoded
from perun.profile.format.validation import validate
from perun.profile.uid import may_have_uid

KEY: Final = "perun-columns"
"""The first key of the file; its value is the version of the layout."""
VERSION: Final = 2
"""The latest version. Files without call stacks are of version 1, which more releases read."""
CHUNKS_FROM: Final = 256
"""Numbers in a column from which it has chunks: shorter ones take less room and time in the directory."""
DEFAULT_LIMIT: Final = 512 << 20
"""Bytes of a file that are read at most."""

_START: Final = b'{"%s":' % KEY.encode()
_DIGITS: Final = tuple(b"[0-9a-f]{%d}" % count for count in (8, 8, 16, 16, 16, 16, 8))
_VERSION: Final = re.compile(re.escape(_START) + rb"([0-9]{1,9})[,}]")
_TRAILER: Final = re.compile(rb"\n(%b %b %b %b %b %b )(%b) columns\n" % _DIGITS)
_TRAILER_SIZE: Final = 104
_OF_DIRECTORY: Final = ("resource_type_map", "resources")
_SHORTEST_NUMBER: Final = 2
"""Bytes of a number and its comma in JSON: a file may hold as many numbers as JSON of the largest size."""
_SHORTEST_FRAME: Final = 16
"""Bytes of a frame in JSON that are assumed at least, for the same reason."""


def is_columnar(start: bytes) -> bool:
    """Whether data that begins so is a profile by columns."""
    return start.startswith(_START)


def pieces(regions: Mapping[str, Any]) -> Iterator[bytes]:
    """The file of a profile, piece by piece; columns that are packed are compressed one after the other.

    :param regions: as :meth:`Profile.regions` gives them; what was read from a file is verified.
    :raises ProfileError: if a value has no JSON, or a column of a file is damaged.
    """
    head = {key: value for key, value in regions.items() if key not in (*_OF_DIRECTORY, KEY)}
    constants = regions.get("resource_type_map", {})
    shared = encoding.share(constants)
    length = checksum = 0
    opening = b"%s%d" % (_START, VERSION if shared else 1)
    for piece in encoded(head, COMPACT):
        if not length:
            piece = opening + (b"," if head else b"") + piece[1:]
        length, checksum = length + len(piece), crc32(piece, checksum)
        yield piece
    length, checksum = length + 1, crc32(b"\n", checksum)
    yield b"\n"
    at = length
    resources: dict[str, dict[str, Any]] = {}
    for key, columns in regions.get("resources", {}).items():
        own = resources[key] = dict(columns)
        for name, column in own.items():
            compressed = _compressed(column)
            if compressed is not None:
                own[name] = _entry(compressed)
                for chunk in compressed.chunks:
                    at += len(chunk.data)
                    yield bytes(chunk.data)
    directory = {"resource_type_map": constants, "resources": resources}
    if shared:
        directory |= {"resource_type_map": shared.constants, encoding.REGION: shared.stacks}
    stream = zlib.compressobj()
    size = directory_checksum = 0
    packed = []
    for piece in encoded(directory, COMPACT):
        size, directory_checksum = size + len(piece), crc32(piece, directory_checksum)
        packed.append(stream.compress(piece))
    tail = seven_bits.packed(b"".join([*packed, stream.flush()]))
    yield tail
    yield trailer(checksum, directory_checksum, length, at, size, at + len(tail) + _TRAILER_SIZE)


def trailer(*fields: int) -> bytes:
    """The end of a file: the fields of :class:`_Layout` in hexadecimal digits, and their CRC-32."""
    start = b"\n%08x %08x %016x %016x %016x %016x " % fields
    return b"%s%08x columns\n" % (start, crc32(start))


def head_of(data: bytes, source: str) -> bytes:
    """The JSON of the head, which the file begins with.

    :raises ProfileError: if there is no whole line of it, or a newer release wrote the file.
    """
    _check_version(data, source)
    head, newline, _ = data.partition(b"\n")
    if not newline:
        raise _damaged(source, "the file is cut short")
    return head


def load(
    file: BinaryIO, source: str, *, limit: int = DEFAULT_LIMIT, uids: Container[str] | None = None
) -> Profile:
    """The profile in a file, which is sought in; columns of numbers stay compressed until somebody asks.

    :param limit: number of bytes that are read at most, and half as many numbers.
    :param uids: read the columns only of resources that have one of these uids, flattened; others are left
        out. A group whose resources differ in their uids is read.
    :raises ProfileError: if it is not whole, not a profile, or larger than `limit`.
    """
    layout = _Layout.read(file, source, limit)
    regions = layout.regions(file)
    found = _Directory(layout, file, limit, uids)
    regions["resource_type_map"], regions["resources"] = found.constants, found.resources
    validate(regions, source)
    return Profile(regions)


def verify(file: BinaryIO, source: str, *, limit: int = DEFAULT_LIMIT) -> Profile:
    """As :func:`load`, and decode all that is stored; its columns are still compressed."""
    profile = load(file, source, limit=limit)
    for columns in profile.regions()["resources"].values():
        for column in columns.values():
            if isinstance(column, CompressedColumn):
                column.verify()
    return profile


class _Layout(NamedTuple):
    """Where the parts of a file are, from its trailer."""

    source: str
    head_checksum: int
    directory_checksum: int
    head_size: int
    directory_at: int
    directory_size: int
    total: int

    @classmethod
    def read(cls, file: BinaryIO, source: str, limit: int) -> _Layout:
        """:raises ProfileError: if the file is not whole, of a newer version, or too large."""
        _check_version(file.read(64), source)
        size = file.seek(0, 2)
        if size > limit:
            raise _too_large(source, f"{size} bytes", limit)
        file.seek(max(size - _TRAILER_SIZE, 0))
        found = _TRAILER.fullmatch(file.read(_TRAILER_SIZE))
        if found is None:
            raise _damaged(source, "the file is cut short, or something follows it")
        layout = cls(source, *(int(field, 16) for field in found[1].split()))
        if crc32(b"\n" + found[1]) != int(found[2], 16):
            raise _damaged(source, "its trailer does not match its checksum")
        if layout.total != size:
            raise _damaged(source, f"it has {size} bytes, but its trailer says {layout.total}")
        if not layout.head_size <= layout.directory_at <= size - _TRAILER_SIZE:
            raise _damaged(source, "its trailer names places outside the file")
        if layout.directory_size > limit:
            raise _too_large(source, f"a directory of {layout.directory_size} bytes", limit)
        return layout

    def regions(self, file: BinaryIO) -> dict[str, Any]:
        """All regions but those of the directory."""
        file.seek(0)
        data = file.read(self.head_size)
        if crc32(data) != self.head_checksum:
            raise _damaged(self.source, "its head does not match its checksum")
        regions = _decoded(data, self.source)
        regions.pop(KEY, None)
        return regions

    def directory(self, file: BinaryIO) -> dict[str, Any]:
        """The directory: `resource_type_map` and `resources`."""
        file.seek(self.directory_at)
        packed = seven_bits.unpacked_bits(file.read(self.total - _TRAILER_SIZE - self.directory_at))
        if packed is None:
            raise _damaged(self.source, "its directory is not written in seven bits")
        stream = zlib.decompressobj()
        try:
            data = stream.decompress(packed, self.directory_size + 1)
        except zlib.error as problem:
            raise _damaged(self.source, f"its directory does not decompress: {problem}") from None
        if len(data) != self.directory_size or not stream.eof or stream.unused_data:
            raise _damaged(self.source, "its directory does not have the size that the trailer says")
        if crc32(data) != self.directory_checksum:
            raise _damaged(self.source, "its directory does not match its checksum")
        return _decoded(data, self.source)


class _Directory:
    """The groups of a file, with the columns of those that are chosen."""

    def __init__(self, layout: _Layout, file: BinaryIO, limit: int, uids: Container[str] | None) -> None:
        self._layout = layout
        self._file = file
        self._numbers_left = limit // _SHORTEST_NUMBER
        self._limit = limit
        self._at = layout.head_size
        directory = layout.directory(file)
        self.constants: Any = directory.get("resource_type_map", {})
        self.resources: Any = directory.get("resources", {})
        if not isinstance(self.constants, dict) or not isinstance(self.resources, dict):
            return  # validation says what is wrong
        self._choose(uids)
        if encoding.REGION in directory:
            try:
                encoding.restore(self.constants, directory[encoding.REGION], self._limit // _SHORTEST_FRAME)
            except encoding.InvalidStacks as problem:
                raise _damaged(layout.source, str(problem)) from None
        if self._at != layout.directory_at:
            raise _damaged(layout.source, "its directory does not name all of its chunks")

    def _choose(self, uids: Container[str] | None) -> None:
        for key, columns in list(self.resources.items()):
            if not isinstance(columns, dict):
                continue
            places = {name: self._place(one) for name, one in columns.items() if isinstance(one, dict)}
            if uids is None or _may_have_uid(self.constants.get(key), uids):
                columns.update((name, self._column(place)) for name, place in places.items())
            else:
                del self.resources[key], self.constants[key]

    def _place(self, entry: dict[str, Any]) -> _Place:
        """Where the chunks of the next column are; its entry is `{kind: [count, bytes, CRC-32, ...]}`."""
        (kind, numbers), *others = entry.items() or [("", None)]
        if (
            others
            or kind not in KINDS
            or not isinstance(numbers, list)
            or len(numbers) % 3
            or any(type(number) is not int for number in numbers)
        ):
            raise _damaged(self._layout.source, "its directory has an entry of no known form")
        at = self._at
        counts, sizes = numbers[::3], numbers[1::3]
        if any(not 0 < count <= MAX_NUMBERS for count in counts) or any(size <= 0 for size in sizes):
            raise _damaged(self._layout.source, "its directory has an entry of no possible size")
        self._at += sum(sizes)
        self._numbers_left -= sum(counts)
        if self._at > self._layout.directory_at:
            raise _damaged(self._layout.source, "its directory names chunks outside the file")
        if self._numbers_left < 0:
            raise _too_large(self._layout.source, "more numbers than JSON of that size holds", self._limit)
        return _Place(kind, at, numbers)

    def _column(self, place: _Place) -> CompressedColumn:
        numbers = place.numbers
        self._file.seek(place.at)
        view = memoryview(self._file.read(sum(numbers[1::3])))
        stored = []
        start = 0
        for count, size, checksum in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True):
            stored.append(ColumnChunk(count, view[start : start + size], checksum))
            start += size
        return CompressedColumn("d" if place.kind == "d" else "q", stored, self._layout.source)


class _Place(NamedTuple):
    """Where the chunks of a column begin, and count, bytes and CRC-32 of each."""

    kind: str
    at: int
    numbers: list[int]


def _may_have_uid(constants: Any, uids: Container[str]) -> bool:
    # Of what is not as it should be validation says what is wrong.
    return not isinstance(constants, dict) or may_have_uid(constants, uids)


def _compressed(column: Any) -> CompressedColumn | None:
    """The column in chunks; None if it is stored as JSON."""
    if isinstance(column, CompressedColumn):
        column.verify()
        return column if len(column) else None
    packed = pack(column) if isinstance(column, list) and len(column) >= CHUNKS_FROM else column
    if isinstance(packed, list) or not is_packed(packed) or len(packed) < CHUNKS_FROM:
        return None
    return CompressedColumn.of(packed)


def _entry(column: CompressedColumn) -> dict[str, list[int]]:
    return {
        column.kind: [
            number for chunk in column.chunks for number in (chunk.size, len(chunk.data), chunk.checksum)
        ]
    }


def _decoded(data: bytes, source: str) -> dict[str, Any]:
    try:
        return bulk.regions(data)
    except bulk.Unsuitable:
        pass  # msgspec is stricter
    import json

    try:
        regions = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as problem:
        reason = "nested too deeply" if isinstance(problem, RecursionError) else problem
        raise _damaged(source, f"not JSON in UTF-8: {reason}") from None
    if not isinstance(regions, dict):
        raise _damaged(source, "expected a mapping of regions")
    return regions


def _check_version(start: bytes, source: str) -> None:
    found = _VERSION.match(start)
    if found is None:
        raise _damaged(source, f"it does not begin with {_START.decode()}VERSION")
    if not 1 <= int(found[1]) <= VERSION:
        raise ProfileError(
            f"{source}: a profile by columns of version {int(found[1])}, but this release of Perun reads "
            f"versions 1 to {VERSION}",
            "export it with the release that wrote it: perun show PROFILE raw > exported.perf",
        )


def _damaged(source: str, why: str) -> ProfileError:
    return ProfileError(
        f"{source}: the profile by columns is damaged: {why}",
        "restore the file from a copy, or collect the profile again",
    )


def _too_large(source: str, what: str, limit: int) -> ProfileError:
    return ProfileError(
        f"{source}: {what} of profile, more than the limit of {limit} (profiles.max_size)",
        "collect fewer resources, e.g. with a coarser sampling, or raise the limit",
    )
