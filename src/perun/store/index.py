"""The indexes of minor versions: which profiles are registered in each (manual 13.2.1)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple

from perun.core.atomic import NewFile
from perun.core.errors import DamagedStore, ProfileError, ProfileNotFound
from perun.profile.head import ProfileHeader
from perun.profile.helpers import ProfileInfo
from perun.store import tree
from perun.store.files import ON_DISK, Files

if TYPE_CHECKING:
    from pathlib import Path


# The bytes of an index (manual 13.2.1): every layout that a release wrote is read, one is written.
#
# After a header (`pidx`, version, number of entries) comes for each profile its time, the checksum of its
# object and its name; from version 2 on also the head of the profile as strings, in one of three layouts.
# The SHA-1 of all that may follow. Numbers are little endian.

NEWEST_TIME = 2**32 - 1
"""The largest time that an entry can hold, in seconds."""

_HEADER = struct.Struct("<4sii")
_NUMBER = struct.Struct("<I")
_SHA1_SIZE = 20
_SMALLEST_ENTRY = _NUMBER.size + _SHA1_SIZE + 1
_MAX_HASHED = 1 << 25
"""Bytes that are hashed at most to find out which older index a checksum belongs to."""
_HINT = "restore the file from a copy of the repository; the profiles themselves are separate objects"


class IndexEntry(NamedTuple):
    """One registered profile.

    `time` is the modification time of the profile's file in seconds, `path` the file's base name. The
    head repeats what the profile says; it is empty if an index of version 1 has not been completed.
    """

    time: int
    checksum: str
    path: str
    head: ProfileHeader = ProfileHeader()

    @property
    def key(self) -> tuple[str, int]:
        """What must be unique in an index, and what it is sorted by."""
        return self.path, self.time

    def info(self, file: str = "") -> ProfileInfo:
        """The profile as lists show it.

        :param file: its path if it is pending; of a registered one only the name that it had is known.
        """
        return ProfileInfo(
            source=self.path,
            realpath=file or self.path,
            head=self.head,
            time=self.time,
            checksum="" if file else self.checksum,
            is_registered=not file,
        )


class IndexContent(NamedTuple):
    """What the bytes of an index say by themselves.

    `certain` is False if 0.28 may have written some entries: it puts workload and label where older
    and newer releases put args and workload, and nothing in the file tells.
    """

    entries: list[IndexEntry]
    certain: bool


def parse(data: bytes, source: str) -> IndexContent:
    """The entries of an index of any release, in the order of the file.

    :param source: the file, for the messages.
    :raises DamagedStore: says what is wrong.
    """
    try:
        return _parse(data)
    except _Damage as problem:
        raise DamagedStore(f"{source} is not a valid index: {problem}", _HINT) from None


def serialize(entries: Iterable[IndexEntry]) -> bytes:
    """An index of version 2 in the layout of 0.21 with its checksum, sorted by path and time.

    :raises ProfileError: if a path cannot be the name of a profile, or a time is out of range.
    """
    ordered = sorted(entries, key=lambda entry: entry.key)
    pieces = [_HEADER.pack(tree.INDEX_SIGNATURE, 2, len(ordered))]
    for entry in ordered:
        if not 0 <= entry.time <= NEWEST_TIME:
            what = f"the time of {entry.path} is out of range: {entry.time}"
            raise ProfileError(what, "set its time: touch FILE")
        pieces += (_NUMBER.pack(entry.time), bytes.fromhex(entry.checksum), _path_bytes(entry.path), b"\0")
        for text in _texts(entry.head):
            encoded = text.encode(errors="backslashreplace")
            pieces += (_NUMBER.pack(len(encoded)), encoded)
    data = b"".join(pieces)
    return data + tree.sha1(data)


class _Damage(Exception):
    pass


class _Rows(NamedTuple):
    # Time, checksum, path and strings of each entry; where each begins and the last one ends.
    rows: list[tuple[int, str, str, list[str]]]
    bounds: list[int]


def _parse(data: bytes) -> IndexContent:
    version, count = _read_header(data)
    if version == 1:
        found = _read_rows(data, count, strings=0)
        _verify(data, found.bounds)
        entries = [IndexEntry(time, checksum, path) for time, checksum, path, _ in found.rows]
        return IndexContent(entries, certain=True)
    problems = []
    for parse_rows in (_parse_six, _parse_five, _parse_appended):
        try:
            return parse_rows(data, count)
        except _Damage as problem:
            problems.append(problem)
    raise problems[0]


def _parse_six(data: bytes, count: int) -> IndexContent:
    found = _read_rows(data, count, strings=6)
    certain = _verify(data, found.bounds)
    entries = []
    texts: list[str] = []
    for time, checksum, path, own in found.rows:
        if own is not texts:
            texts = own
            kind, cmd, args, workload, collector, units = own
            head = ProfileHeader(kind, cmd, args, workload, collector, tuple(units.split()))
        entries.append(IndexEntry(time, checksum, path, head))
    return IndexContent(entries, certain)


def _parse_appended(data: bytes, count: int) -> IndexContent:
    # Old releases write an entry that is the last by its name at the end of the file: behind our checksum.
    # They cannot read that themselves, so that there is never more than one.
    bounds = _read_rows(data, count - 1, strings=6).bounds
    start, end = bounds[-1], bounds[-1] + _SHA1_SIZE
    before = _header_of(data, len(bounds) - 1) + data[_HEADER.size : start]
    if tree.sha1(before) != data[start:end] and not _is_of_fewer_entries(data, bounds, data[start:end]):
        raise _Damage("the checksum before its last entry is missing")
    return _parse_six(data[:start] + data[end:], count)


def _parse_five(data: bytes, count: int) -> IndexContent:
    found = _read_rows(data, count, strings=5)
    _verify(data, found.bounds)
    entries = [
        IndexEntry(
            time, checksum, path, ProfileHeader(kind, cmd, "", workload, collector, tuple(units.split()))
        )
        for time, checksum, path, (kind, cmd, workload, collector, units) in found.rows
    ]
    return IndexContent(entries, certain=True)


def _read_header(data: bytes) -> tuple[int, int]:
    if len(data) < _HEADER.size:
        raise _Damage(f"it has {len(data)} bytes, fewer than its header needs")
    signature, version, count = _HEADER.unpack_from(data)
    if signature != tree.INDEX_SIGNATURE:
        raise _Damage(f"it begins with {signature!r} instead of {tree.INDEX_SIGNATURE!r}")
    if version not in (1, 2):
        raise _Damage(f"its version is {version}, supported are 1 and 2")
    if not 0 <= count <= (len(data) - _HEADER.size) // _SMALLEST_ENTRY:
        raise _Damage(f"{count} entries do not fit into its {len(data)} bytes")
    return version, count


def _read_rows(data: bytes, count: int, strings: int) -> _Rows:
    # A slice beyond the end is no error in Python, so that the end is checked once for each entry.
    number = _NUMBER.unpack_from
    rows: list[tuple[int, str, str, list[str]]] = []
    position = _HEADER.size
    bounds = [position]
    texts: list[str] = []
    same = b""  # bytes of `texts`: entries are sorted by name, so that many repeat the head of the one before
    try:
        for _ in range(count):
            (time,) = number(data, position)
            zero = data.index(0, position + 24)
            checksum = data[position + 4 : position + 24].hex()
            path = data[position + 24 : zero].decode()
            position = zero + 1
            if same and data.startswith(same, position):
                position += len(same)
            else:
                texts = []
                for _ in range(strings):
                    start = position + 4
                    position = start + number(data, position)[0]
                    texts.append(data[start:position].decode())
                same = data[zero + 1 : position]
            if position > len(data):
                raise _Damage(f"entry {len(rows) + 1} of {count} is cut short")
            rows.append((time, checksum, path, texts))
            bounds.append(position)
    except UnicodeDecodeError as problem:
        raise _Damage(f"entry {len(rows) + 1} of {count} is not UTF-8: {problem.reason}") from None
    except (struct.error, ValueError):
        raise _Damage(f"entry {len(rows) + 1} of {count} is cut short") from None
    return _Rows(rows, bounds)


def _verify(data: bytes, bounds: list[int]) -> bool:
    # Whether a checksum follows the entries and is right, so that no old release had a hand in them.
    checksum = data[bounds[-1] :]
    if not checksum:
        return False
    if len(checksum) != _SHA1_SIZE:
        raise _Damage(f"{len(checksum)} bytes follow its last entry")
    if tree.sha1(data[: bounds[-1]]) == checksum:
        return True
    if _is_of_fewer_entries(data, bounds, checksum):
        return False
    raise _Damage("its checksum does not match its content")


def _is_of_fewer_entries(data: bytes, bounds: list[int], checksum: bytes) -> bool:
    # Old releases insert an entry and leave the checksum behind it as it was. So it may be that of the
    # index before; entries that were added together mostly stand together, as they are sorted by name.
    count = len(bounds) - 1
    hashed = 0
    for added in range(1, count + 1):
        header = _header_of(data, count - added)
        for start, end in zip(bounds, bounds[added:], strict=False):
            before = header + data[_HEADER.size : start] + data[end : bounds[-1]]
            if tree.sha1(before) == checksum:
                return True
            hashed += len(before)
            if hashed > _MAX_HASHED:
                return False
    return False


def _header_of(data: bytes, count: int) -> bytes:
    return _HEADER.pack(tree.INDEX_SIGNATURE, _HEADER.unpack_from(data)[1], count)


def _texts(head: ProfileHeader) -> tuple[str, ...]:
    """The strings of an entry, in the order of the file; a new field of the head is no part of it."""
    return head.type, head.cmd, head.args, head.workload, head.collector, " ".join(head.postprocessors)


def _path_bytes(path: str) -> bytes:
    try:
        encoded = path.encode()
    except UnicodeEncodeError:
        raise ProfileError(f"the file name {path!r} is not UTF-8", "rename the profile") from None
    if not encoded or b"\0" in encoded:
        raise ProfileError(f"{path!r} cannot be the name of a profile", "rename the profile")
    return encoded


class Indexes:
    """The indexes below `.perun/objects`.

    :param lock: the lock of the repository, taken by what writes.
    :param head_of: gives the head of a registered profile by its checksum, for the indexes of old releases.
    :param files: those of the store.
    """

    def __init__(
        self,
        root: Path,
        lock: Callable[[], AbstractContextManager[None]],
        head_of: Callable[[str], ProfileHeader],
        files: Files = ON_DISK,
    ) -> None:
        self._files = files
        self.root = root
        self._folder = str(root)
        self._lock = lock
        self._head_of = head_of

    def path(self, minor: str) -> Path:
        """The file of the index, there or not."""
        return tree.minor_path(self.root, minor)

    def state(self, minor: str) -> tuple[int, int] | None:
        """The time and the size of the index of a minor version, which are others once it is changed; None
        without one. Quick, as histories are long."""
        try:
            status = self._files.state(f"{self._folder}/{minor[:2]}/{minor[2:]}")
        except OSError:
            return None
        return (status.st_mtime_ns, status.st_size) if tree.is_minor_version(minor) else None

    def states(self, minors: Sequence[str]) -> dict[str, tuple[int, int]]:
        """The states of those of the minor versions that have an index, as :meth:`state`; all of a history at
        once."""
        names = (f"{minor[:2]}/{minor[2:]}" for minor in minors)
        found = zip(minors, self._files.states(self._folder, names), strict=True)
        return {
            minor: (status.st_mtime_ns, status.st_size)
            for minor, status in found if status is not None and tree.is_minor_version(minor)
        }  # fmt: skip

    def read(self, minor: str) -> list[IndexEntry]:
        """The profiles registered in the minor version, by path and time; none if it has no index.

        :raises DamagedStore: if the index is damaged.
        """
        entries, certain = self._parse(minor)
        if not certain:
            entries = resolve(entries, self._head_of)
        return sorted(complete(entries, self._head_of), key=lambda entry: entry.key)

    def types(self, minor: str) -> list[str]:
        """The types of the profiles registered in the minor version; quicker than :meth:`read`."""
        return [entry.head.type for entry in complete(self._parse(minor).entries, self._head_of)]

    def add(self, minor: str, entries: Iterable[IndexEntry]) -> list[IndexEntry]:
        """Register the entries whose path and time are not there yet; those that were not.

        :raises DamagedStore: if the index is damaged; it is left alone.
        """
        return self.add_many({minor: entries})[minor]

    def add_many(self, entries: Mapping[str, Iterable[IndexEntry]]) -> dict[str, list[IndexEntry]]:
        """As :meth:`add` for the entries of each minor version; none is registered if an index is damaged."""
        with self._lock():
            files: list[NewFile] = []
            added = {}
            for minor, new in entries.items():
                known = {entry.key: entry for entry in self.read(minor)}
                before = set(known)
                for entry in new:
                    known.setdefault(entry.key, entry)
                added[minor] = [entry for key, entry in known.items() if key not in before]
                if added[minor]:
                    files.append(NewFile(self.path(minor), [serialize(known.values())]))
            self._files.write_many(files, self.root)
            return added

    def remove(self, minor: str, entries: Iterable[IndexEntry]) -> None:
        """Take the entries (by path and time) out of the index; the objects stay.

        :raises ProfileNotFound: if one of them is not registered; then none is removed.
        """
        with self._lock():
            known = {entry.key: entry for entry in self.read(minor)}
            for entry in entries:
                if known.pop(entry.key, None) is None:
                    what = f"{entry.path} is not registered in {minor}"
                    raise ProfileNotFound(what, "perun status lists the registered profiles")
            self._files.write(self.path(minor), serialize(known.values()))

    def has(self, minor: str) -> bool:
        """Whether there is a file for the index of the minor version; quicker than anything that reads it."""
        return self._files.exists(f"{self._folder}/{minor[:2]}/{minor[2:]}")

    def minors(self, objects: Collection[str] = ()) -> Iterator[str]:
        """The minor versions that have an index, or something damaged that may have been one, sorted.

        It opens every file of the tree but those of these objects.
        """

        def may_be(name: str) -> bool:
            return name not in objects and tree.is_minor_version(name)

        for name, start in tree.beginnings(self.root, self._files, may_be):
            if tree.may_be_index(start):
                yield name

    def _parse(self, minor: str) -> IndexContent:
        path = self.path(minor)
        data = tree.read(path, files=self._files)
        return parse(data, str(path)) if data is not None else IndexContent([], certain=True)


def complete(entries: Iterable[IndexEntry], head_of: Callable[[str], ProfileHeader]) -> list[IndexEntry]:
    """The entries, with what version 1 does not hold read from the profiles themselves.

    An entry whose profile is missing or damaged stays as it is.

    :param head_of: gives the head of a profile by its checksum.
    """
    return [entry if entry.head.type else _completed(entry, head_of) for entry in entries]


def resolve(entries: Iterable[IndexEntry], head_of: Callable[[str], ProfileHeader]) -> list[IndexEntry]:
    """The entries of an uncertain index (see :class:`IndexContent`), with args and workload of the profiles.

    Releases before 0.22 wrote args and workload where 0.28 writes workload and label, and nothing in the
    file says which; if 0.28 added to an older index, it holds both kinds. If a profile is missing or
    damaged, the last field decides: a label is mostly empty, a workload hardly ever.

    :param head_of: gives the head of a profile by its checksum.
    """
    return [_resolved(entry, head_of) for entry in entries]


def _resolved(entry: IndexEntry, head_of: Callable[[str], ProfileHeader]) -> IndexEntry:
    stored = entry.head
    if not (stored.args or stored.workload):
        return entry
    try:
        profile = head_of(entry.checksum)
    except ProfileError:
        profile = stored if stored.workload else stored._replace(args="", workload=stored.args)
    return entry._replace(head=stored._replace(args=profile.args, workload=profile.workload))


def _completed(entry: IndexEntry, head_of: Callable[[str], ProfileHeader]) -> IndexEntry:
    try:
        return entry._replace(head=head_of(entry.checksum))
    except ProfileError:
        return entry
