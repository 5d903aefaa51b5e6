"""The indexes of minor versions: which profiles are registered in each (manual 13.2.1)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple

from perun import atomic
from perun.errors import DamagedStore, ProfileError, ProfileNotFound
from perun.store import tree

if TYPE_CHECKING:
    from pathlib import Path

    from perun.profile.helpers import Header

NEWEST_TIME = 2**32 - 1

_HEADER = struct.Struct("<4sii")
_NUMBER = struct.Struct("<I")
_CHECKSUM_SIZE = 20
_SMALLEST_ENTRY = 4 + 20 + 1
_SIX, _FIVE = 6, 5
_HINT = "restore the file from a copy of the repository; the profiles themselves are separate objects"


class IndexEntry(NamedTuple):
    """One registered profile.

    `time` is the modification time of the profile's file in seconds, `path` the file's base name. The
    rest repeats the head of the profile; it is empty in an index of version 1, see :func:`complete`.
    """

    time: int
    checksum: str
    path: str
    type: str = ""
    cmd: str = ""
    args: str = ""
    workload: str = ""
    collector: str = ""
    postprocessors: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, int]:
        """What must be unique in an index, and what it is sorted by."""
        return self.path, self.time


class Parsed(NamedTuple):
    """What the bytes of an index say by themselves.

    `certain` is False where old releases wrote two layouts that look the same: then args and workload of
    the entries may really be workload and label, see :func:`settle`.
    """

    entries: list[IndexEntry]
    certain: bool


def parse(data: bytes, source: str) -> Parsed:
    """The entries of an index of any release.

    :param source: its file, for the messages.
    :raises DamagedStore: says what is wrong.
    """
    try:
        return _parse(data)
    except _Damage as problem:
        raise DamagedStore(f"{source} is not a valid index: {problem}", _HINT) from None


def serialize(entries: Iterable[IndexEntry]) -> bytes:
    """An index of version 2 with its checksum, sorted by path and time.

    :raises ProfileError: where a path cannot be the name of a profile, or a time is out of range.
    """
    ordered = sorted(entries, key=lambda entry: entry.key)
    pieces = [_HEADER.pack(tree.INDEX_SIGNATURE, 2, len(ordered))]
    for entry in ordered:
        if not 0 <= entry.time <= NEWEST_TIME:
            raise ProfileError(f"the time of {entry.path} is out of range: {entry.time}", "touch the profile")
        pieces += (_NUMBER.pack(entry.time), bytes.fromhex(entry.checksum), _path_bytes(entry.path), b"\0")
        for text in (*entry[3:8], " ".join(entry.postprocessors)):
            encoded = text.encode(errors="backslashreplace")
            pieces += (_NUMBER.pack(len(encoded)), encoded)
    data = b"".join(pieces)
    return data + _sha1(data)


def complete(entries: Iterable[IndexEntry], header: Callable[[str], Header]) -> list[IndexEntry]:
    """The entries, with what version 1 does not hold read from the profiles themselves.

    An entry whose profile is missing or damaged stays as it is.

    :param header: the head of a profile by its checksum.
    """
    return [entry if entry.type else _completed(entry, header) for entry in entries]


def settle(entries: Iterable[IndexEntry], header: Callable[[str], Header]) -> list[IndexEntry]:
    """The entries of an uncertain index, with args and workload as the profiles themselves say.

    Releases before 0.22 wrote args and workload where 0.28 writes workload and label, and nothing in the
    file says which; where 0.28 added to an older index, it holds both kinds. Where a profile is missing or
    damaged, the last field decides: it is mostly empty if it is the label, hardly ever if the workload.
    """
    return [_settled(entry, header) if entry.args or entry.workload else entry for entry in entries]


class Indexes:
    """The indexes below `.perun/objects`.

    :param lock: the lock of the repository, taken by what writes.
    :param header: the head of a registered profile by its checksum, for the indexes of old releases.
    """

    def __init__(
        self,
        root: Path,
        lock: Callable[[], AbstractContextManager[None]],
        header: Callable[[str], Header],
    ) -> None:
        self.root = root
        self._lock = lock
        self._header = header

    def path(self, minor: str) -> Path:
        """The file of the index, there or not."""
        return tree.minor_path(self.root, minor)

    def read(self, minor: str) -> list[IndexEntry]:
        """The profiles registered in the minor version, by path and time; none where it has no index.

        :raises DamagedStore: where the index is damaged.
        """
        path = self.path(minor)
        data = tree.read(path)
        if data is None:
            return []
        entries, certain = parse(data, str(path))
        if not certain:
            entries = settle(entries, self._header)
        return sorted(complete(entries, self._header), key=lambda entry: entry.key)

    def types(self, minor: str) -> list[str]:
        """The types of the profiles registered in the minor version; quicker than :meth:`read`."""
        path = self.path(minor)
        data = tree.read(path)
        entries = parse(data, str(path)).entries if data is not None else []
        return [entry.type for entry in complete(entries, self._header)]

    def add(self, minor: str, entries: Iterable[IndexEntry]) -> list[IndexEntry]:
        """Register the entries whose path and time are not there yet; those that were not.

        :raises DamagedStore: where the index is damaged; it is left alone.
        """
        with self._lock():
            known = {entry.key: entry for entry in self.read(minor)}
            added = []
            for entry in entries:
                if entry.key not in known:
                    known[entry.key] = entry
                    added.append(entry)
            if added:
                atomic.write(self.path(minor), serialize(known.values()))
            return added

    def remove(self, minor: str, entries: Iterable[IndexEntry]) -> None:
        """Take the entries (by path and time) out of the index; the objects stay.

        :raises ProfileNotFound: where one of them is not registered; then none is removed.
        """
        with self._lock():
            known = {entry.key: entry for entry in self.read(minor)}
            for entry in entries:
                if known.pop(entry.key, None) is None:
                    raise ProfileNotFound(
                        f"{entry.path} is not registered in {minor}", "perun status lists what is"
                    )
            atomic.write(self.path(minor), serialize(known.values()))

    def minors(self) -> Iterator[str]:
        """The minor versions that have an index, sorted; opens every file of the tree."""
        for name in tree.names(self.root):
            if tree.is_minor_version(name) and tree.is_index(self.path(name)):
                yield name


class _Damage(Exception):
    pass


def _parse(data: bytes) -> Parsed:
    if len(data) < _HEADER.size:
        raise _Damage(f"it has {len(data)} bytes, fewer than its header needs")
    signature, version, count = _HEADER.unpack_from(data)
    if signature != tree.INDEX_SIGNATURE:
        raise _Damage(f"it begins with {signature!r} instead of {tree.INDEX_SIGNATURE!r}")
    if version not in (1, 2):
        raise _Damage(f"its version is {version}, known are 1 and 2")
    if not 0 <= count <= (len(data) - _HEADER.size) // _SMALLEST_ENTRY:
        raise _Damage(f"{count} entries do not fit into its {len(data)} bytes")
    if version == 1:
        rows, _ = _rows(data, count, 0)
        return Parsed([IndexEntry(*row[:3]) for row in rows], certain=True)
    try:
        rows, checked = _rows(data, count, _SIX)
        entries = [
            IndexEntry(time, checksum, path, type_, cmd, args, workload, collector, _names(postprocessors))
            for time, checksum, path, (type_, cmd, args, workload, collector, postprocessors) in rows
        ]
    except _Damage as problem:
        return _parse_five(data, count, problem)
    return Parsed(entries, certain=checked)


def _parse_five(data: bytes, count: int, first_problem: _Damage) -> Parsed:
    try:
        rows, _ = _rows(data, count, _FIVE)
    except _Damage:
        raise first_problem from None
    entries = [
        IndexEntry(time, checksum, path, type_, cmd, "", workload, collector, _names(postprocessors))
        for time, checksum, path, (type_, cmd, workload, collector, postprocessors) in rows
    ]
    return Parsed(entries, certain=True)


_Row = tuple[int, str, str, list[str]]


def _rows(data: bytes, count: int, strings: int) -> tuple[list[_Row], bool]:
    # Also tells whether a checksum followed. Slices never fail, so that the end needs one check a row.
    number = _NUMBER.unpack_from
    rows: list[_Row] = []
    position = _HEADER.size
    try:
        for _ in range(count):
            (time,) = number(data, position)
            zero = data.index(0, position + 24)
            checksum = data[position + 4 : position + 24].hex()
            path = data[position + 24 : zero].decode()
            position = zero + 1
            texts = []
            for _ in range(strings):
                start = position + 4
                position = start + number(data, position)[0]
                texts.append(data[start:position].decode())
            if position > len(data):
                raise _Damage(f"entry {len(rows) + 1} of {count} is cut short")
            rows.append((time, checksum, path, texts))
    except UnicodeDecodeError as problem:
        raise _Damage(f"entry {len(rows) + 1} of {count} is not UTF-8: {problem.reason}") from None
    except (struct.error, ValueError):
        raise _Damage(f"entry {len(rows) + 1} of {count} is cut short") from None
    return rows, _checksum_follows(data, position)


def _checksum_follows(data: bytes, end: int) -> bool:
    if end == len(data):
        return False
    if len(data) - end != _CHECKSUM_SIZE:
        raise _Damage(f"{len(data) - end} bytes follow its last entry")
    if _sha1(data[:end]) != data[end:]:
        raise _Damage("its checksum does not match its content")
    return True


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _settled(entry: IndexEntry, header: Callable[[str], Header]) -> IndexEntry:
    try:
        head = header(entry.checksum)
    except ProfileError:
        return entry if entry.workload else entry._replace(args="", workload=entry.args)
    return entry._replace(args=head.args, workload=head.workload)


def _completed(entry: IndexEntry, header: Callable[[str], Header]) -> IndexEntry:
    try:
        head = header(entry.checksum)
    except ProfileError:
        return entry
    return IndexEntry(entry.time, entry.checksum, entry.path, *head[:6])


def _path_bytes(path: str) -> bytes:
    try:
        encoded = path.encode()
    except UnicodeEncodeError:
        raise ProfileError(f"the file name {path!r} is not UTF-8", "rename the profile") from None
    if not encoded or b"\0" in encoded:
        raise ProfileError(f"{path!r} cannot be the name of a profile", "rename the profile")
    return encoded


def _sha1(data: bytes) -> bytes:
    import hashlib

    return hashlib.sha1(data, usedforsecurity=False).digest()
