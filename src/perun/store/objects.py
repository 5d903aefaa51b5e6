"""Registered profiles, named by the SHA-1 of their content (manual 13.2.2).

An object is `profile <type> <length>`, a zero byte and the profile as JSON, compressed by zlib; `length`
counts characters. Its name is the SHA-1 of all that before the compression. The object of a profile by
columns (:mod:`perun.profile.format.columnar`) begins with `columns` in place of `profile`, which older
releases refuse, and `length` counts bytes.

A small file may unpack to a thousand times its size. So objects are unpacked piece by piece, never beyond the
limit of the store, and who needs only the checksum or the head keeps no more than one piece in memory.
"""

from __future__ import annotations

import io
import json
import re
import zlib
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from zlib import crc32

from perun.core.atomic import NewFile
from perun.core.errors import ProfileError, ProfileNotFound
from perun.core.regular import TooLarge
from perun.profile.format import columnar
from perun.profile.format.head import COLUMNAR_FROM, object_body, with_uids
from perun.profile.format.json import decode_head, loads
from perun.profile.format.quick_head import quick_head
from perun.profile.head import ProfileHeader
from perun.store import tree, unpacking
from perun.store import tree as limits
from perun.store.files import ON_DISK, Files
from perun.store.unpacking import ObjectStream, naming_file, small_body

if TYPE_CHECKING:
    from perun.profile.factory import Profile


KNOWN_TYPES = frozenset({"bound", "memory", "mixed", "time"})
"""The types of the manual; a plugin may make others, which need be no more than a word."""

_TYPE = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_CHUNK = 1 << 18
_LEVEL = zlib.Z_DEFAULT_COMPRESSION
_LEVEL_OF_LARGE = 1  # of columns of numbers about as good as the default, in a third of the time
_LARGE = 1 << 22
_LISTED_FROM = 8
"""Objects of one folder that are each looked for, at most; of more the folder is listed."""


class ObjectFile(NamedTuple):
    """The file of an object from elsewhere: its name, its bytes, when its profile was made (ns)."""

    checksum: str
    data: bytes
    time: int


class FileObjects:
    """Objects as files below `.perun/objects` (manual 13.2.2).

    Storing needs no lock. What :meth:`delete` removes may be in use: hold the lock of the repository.

    :param limit: largest accepted size of an object before compression, in bytes.
    :param columnar_from: numbers from which a profile is stored by columns; 0 for never.
    :param files: those of the store.
    """

    def __init__(
        self,
        root: Path,
        limit: int = limits.DEFAULT,
        columnar_from: int = COLUMNAR_FROM,
        files: Files = ON_DISK,
    ) -> None:
        self.root = root
        self._files = files
        self.limit = limit
        self.columnar_from = columnar_from

    def set_time(self, checksum: str, seconds: float) -> None:
        """Give the file the time when the profile was made: an index knows whole seconds only.

        It orders what was made within a second, so that nothing is lost where it cannot be set.
        """
        moment = int(seconds * 10**9)
        with suppress(OSError, OverflowError):
            self._files.set_time(tree.object_path(self.root, checksum), moment)

    def time(self, checksum: str) -> int:
        """When the profile was made, in nanoseconds since 1970, as :meth:`set_time` noted it.

        :raises OSError: if there is no such object.
        """
        return self._files.state(tree.object_path(self.root, checksum)).st_mtime_ns

    def size(self, checksum: str) -> int:
        """Bytes that the object takes, compressed as it is.

        :raises OSError: if there is no such object.
        """
        return self._files.state(tree.object_path(self.root, checksum)).st_size

    def put(self, profile: Profile) -> str:
        """Store the profile (without its origin) and return the checksum; what is whole is not rewritten.

        :raises ProfileError: if its type is not a single word, or it is larger than could be read again.
        """
        return self.put_many([profile])[0]

    def put_many(self, profiles: Iterable[Profile]) -> list[str]:
        """As :meth:`put` for each, in order; faster, as the disk is flushed for many files at once."""
        return self._put((one.type, object_body(one, self.columnar_from)) for one in profiles)

    def put_body(self, type_: str, body: bytes) -> str:
        """Store a profile that is JSON, or by columns, already; the checksum."""
        return self._put([(type_, body)])[0]

    def _put(self, bodies: Iterable[tuple[str, bytes]]) -> list[str]:
        checksums: list[str] = []
        self._files.write_many(self._new(bodies, checksums), self.root)
        return checksums

    def _new(self, bodies: Iterable[tuple[str, bytes]], checksums: list[str]) -> Iterator[NewFile]:
        """The files to be written of these types and bodies; `checksums` takes those of all."""
        written: set[str] = set()
        for type_, body in bodies:
            if len(body) > self.limit:
                raise ProfileError(
                    f"the profile has {len(body)} bytes, {limits.exceeded(self.limit)}",
                    f"collect fewer resources, e.g. with a coarser sampling, or {limits.HINT}",
                )
            header = _header(type_, body)
            checksum = tree.sha1(header, body).hex()
            if checksum not in written and not self._is_whole(checksum):
                written.add(checksum)
                yield NewFile(tree.object_path(self.root, checksum), _packed(header, body))
            checksums.append(checksum)

    def _is_whole(self, checksum: str) -> bool:
        # Where the object is damaged, this profile may be the last copy: its file is deleted afterwards.
        try:
            self.verify(checksum)
        except ProfileError:
            return False
        return True

    def exported(self, checksum: str) -> bytes:
        """The file of the object, compressed as it is, after it was verified; errors as :meth:`get`."""
        self.verify(checksum)
        return self._files.read(tree.object_path(self.root, checksum), self.limit)

    def take_in(self, files: Iterable[ObjectFile]) -> dict[str, ProfileHeader | ProfileError]:
        """Store the files of objects from elsewhere, each after it was verified and found to be a profile.

        That the rest of a profile is what its head promises, shows whoever reads it.

        Quickest where they come sorted, as those of one folder are then together on the disk.

        :returns: by checksum the head of each, or what is wrong with it: then it is not stored.
        """
        found: dict[str, ProfileHeader | ProfileError] = {}
        self._files.write_many(self._verified(files, found), self.root)
        return found

    def _verified(
        self, files: Iterable[ObjectFile], found: dict[str, ProfileHeader | ProfileError]
    ) -> Iterator[NewFile]:
        root = str(self.root)
        for checksum, data, time in files:
            source = f"the object {checksum[:10]}"
            try:
                if (body := small_body(data, checksum, self.limit)) is not None:
                    found[checksum] = quick_head(body) or ProfileHeader.of(decode_head(body, source))
                else:
                    with naming_file(source):
                        unpacked = ObjectStream(io.BytesIO(data), checksum, self.limit)
                        found[checksum] = ProfileHeader.of(unpacked.regions(source))
            except ProfileError as problem:
                found[checksum] = problem
            else:
                yield NewFile(tree.object_name(root, checksum), [data], time)

    def get(self, checksum: str, uids: Container[str] | None = None) -> Profile:
        """The profile.

        :param uids: only its resources that have one of these uids, flattened. Of a profile by columns no
            more than these is read then, and only their own checksums are verified.
        :raises ProfileNotFound: if there is no such object.
        :raises DamagedStore: if the object is not what its name promises.
        """
        source = str(tree.object_path(self.root, checksum))
        if uids is not None:
            with self._opened(checksum) as unpacked:
                content = unpacked.content()
                if content is not None:
                    return columnar.load(content, source, limit=self.limit, uids=uids)
        profile = loads(self.get_body(checksum), source, limit=self.limit)
        return profile if uids is None else with_uids(profile, uids)

    def get_body(self, checksum: str) -> bytes:
        """The profile as JSON, or by columns; errors as :meth:`get`."""
        return self.read(checksum)[1]

    def head(self, checksum: str) -> ProfileHeader:
        """The head of the profile; errors as :meth:`get`. The rest is verified, and not kept in memory."""
        return ProfileHeader.of(self.regions(checksum))

    def regions(self, checksum: str) -> dict[str, Any]:
        """The regions of the profile that are its head (:func:`perun.profile.format.head.decode`)."""
        with self._opened(checksum) as unpacked:
            return unpacked.regions(str(tree.object_path(self.root, checksum)))

    def check(self, checksum: str) -> str:
        """Whether the object is whole, and a profile; its type. Errors as :meth:`get`.

        Of one that is larger than :data:`limits.READ_WHOLE` only the head is looked at: that the rest is
        what was registered, the checksum proves. Columns are decoded, chunk by chunk.
        """
        with self._opened(checksum) as unpacked:
            type_, length, by_columns = unpacked.type, unpacked.length, unpacked.by_columns
        if by_columns:
            source = str(tree.object_path(self.root, checksum))
            columnar.verify(io.BytesIO(self.get_body(checksum)), source, limit=self.limit)
        elif length <= limits.READ_WHOLE:
            self.get(checksum)
        else:
            self.regions(checksum)
        return type_

    def verify(self, checksum: str) -> None:
        """Read the whole object, of which nothing is kept. Errors as :meth:`get`."""
        with self._opened(checksum) as unpacked:
            deque(unpacked.pieces(), maxlen=0)

    def read(self, checksum: str) -> tuple[str, bytes]:
        """Type of the profile, and its JSON or columns; errors as :meth:`get`."""
        with self._opened(checksum) as unpacked:
            return unpacked.type, unpacked.body()

    @contextmanager
    def _opened(self, checksum: str) -> Iterator[ObjectStream]:
        path = tree.object_path(self.root, checksum)
        try:
            with self._files.opened(path, self.limit) as file, naming_file(path):
                yield ObjectStream(file, checksum, self.limit)
        except FileNotFoundError:
            raise ProfileNotFound(
                f"there is no profile {checksum} in {self.root}", "run perun fsck to see what else is missing"
            ) from None
        except TooLarge as problem:
            raise limits.refused(path, problem) from None
        except OSError as problem:
            raise tree.unreadable(path, problem) from problem

    def delete(self, checksum: str) -> None:
        """Remove the object.

        :raises ProfileNotFound: if there is none.
        """
        try:
            self._files.remove(tree.object_path(self.root, checksum))
        except FileNotFoundError:
            raise ProfileNotFound(f"there is no profile {checksum} in {self.root}") from None

    def __contains__(self, checksum: object) -> bool:
        if not isinstance(checksum, str) or not tree.is_checksum(checksum):
            return False
        return self._files.is_file(tree.object_name(str(self.root), checksum))

    def lacking(self, checksums: Iterable[str]) -> list[str]:
        """Those of the checksums, sorted, of which there is no object; quick where there are many."""
        by_folder: dict[str, list[str]] = {}
        for checksum in sorted(checksums):
            by_folder.setdefault(checksum[:2], []).append(checksum)
        found: list[str] = []
        for folder, some in by_folder.items():
            if len(some) > _LISTED_FROM:
                there = set(tree.listing(f"{self.root}/{folder}", self._files))
                found += (one for one in some if one[2:] not in there)
            else:
                found += (one for one in some if one not in self)
        return found

    def ids(self) -> Iterator[str]:
        """The checksums of all objects, sorted; whether they are whole is not looked at."""
        for name, start in tree.beginnings(self.root, self._files, tree.is_checksum):
            if not tree.is_index(start):
                yield name


def encode(type_: str, body: bytes) -> tuple[str, bytes]:
    """Checksum and content, not yet compressed, of the object that holds `body`, JSON or columns."""
    content = _header(type_, body) + body
    return tree.sha1(content).hex(), content


def _header(type_: str, body: bytes) -> bytes:
    if not _TYPE.fullmatch(type_):
        raise ProfileError(
            f"header.type of the profile is {type_!r}",
            "it must be one word of letters, digits, dots and dashes, e.g. " + ", ".join(sorted(KNOWN_TYPES)),
        )
    if columnar.is_columnar(body):
        return b"columns %s %d\0" % (type_.encode(), len(body))
    return b"profile %s %d\0" % (type_.encode(), len(body) if body.isascii() else len(body.decode()))


def _packed(header: bytes, body: bytes) -> Iterator[bytes | memoryview]:
    """The content of the file of an object, piece by piece."""
    if columnar.is_columnar(body):
        yield from unpacking.pieces(header, body)
        return
    stream = zlib.compressobj(_LEVEL if len(body) < _LARGE else _LEVEL_OF_LARGE)
    yield stream.compress(header)
    for start in range(0, len(body), _CHUNK):
        yield stream.compress(body[start : start + _CHUNK])
    yield stream.flush()


# Checksums of files whose own format has no room for one: pending profiles and lists of changes.
#
# They are stored in `.perun/sums`, which other releases do not read. Lines are only appended to its files.
# The line of a file is written before the file takes its place, so that after an interruption either the old
# line holds or the new one. It is not flushed to the disk: a file whose line is lost is not verified, no
# more.
#
# A line holds the CRC-32 of what follows, the SHA-1 of the file, its modification time (ns), its name as
# JSON.

FOLDER = "sums"
"""Of `.perun`."""
LIMIT = 1 << 30
"""Bytes of a file of checksums that are read at most."""
_COMPACT_FROM = 1 << 16
"""Size in bytes below which a file of checksums is not compacted."""
_LINES_KEPT = 2
"""Lines kept of each name: that of the file that is there, and of one that is about to take its place."""

Verdict = Literal["intact", "unknown", "damaged", "changed"]


class NotedChecksum(NamedTuple):
    """What was noted of a file: SHA-1 in hexadecimal digits, modification time in nanoseconds."""

    sha1: str
    time: int


class NotedChecksums(NamedTuple):
    """All checksums by the names of files, the newest last, and the number of lines that are damaged."""

    checksums: dict[str, list[NotedChecksum]]
    damaged: int

    def verdict(self, name: str, sha1: str, time: int) -> Verdict:
        """Whether a file with this SHA-1 and modification time (ns) is what was written.

        `damaged`: its content differs though it was not written to since; `changed`: it was written to by
        another program; `unknown`: Perun did not write it.
        """
        noted = self.checksums.get(name)
        if not noted:
            return "unknown"
        if any(one.sha1 == sha1 for one in noted):
            return "intact"
        return "damaged" if any(one.time == time for one in noted) else "changed"


class Checksums:
    """The checksums of the files of one kind; whoever writes holds the lock of the repository.

    :param path: their file. :param exists: whether there is a file of that name, of which they must be kept.
    :param files: those of the store.
    """

    def __init__(self, path: Path, exists: Callable[[str], bool], files: Files = ON_DISK) -> None:
        self.path = path
        self._files = files
        self._exists = exists

    def note(self, name: str, sha1: str, time: int) -> None:
        """Note the SHA-1 of a file that is about to get its name; if that fails, it is not verified."""
        # The file itself is what counts, so a missing checksum is no failure.
        with suppress(OSError):
            # The line break ends a line that a killed writer left unfinished.
            size = self._files.append(self.path, b"\n" + _line(name, NotedChecksum(sha1, time)))
            if size > _COMPACT_FROM:
                self._compact_where_doubled(size)

    def read(self) -> NotedChecksums:
        """All checksums; none if there is no file, or it cannot be read."""
        found: dict[str, list[NotedChecksum]] = {}
        damaged = 0
        data = b""
        with suppress(OSError):
            data = self._files.read(self.path, LIMIT)
        for line in data.split(b"\n"):
            if not line or line.startswith(b"#"):
                continue
            parsed = _parse(line)
            if parsed is None:
                damaged += 1
            else:
                found.setdefault(parsed[0], []).append(parsed[1])
        return NotedChecksums(found, damaged)

    def compact(self) -> None:
        """Forget files that are gone, older checksums and damaged lines."""
        noted = self.read().checksums
        kept = {name: known[-_LINES_KEPT:] for name, known in noted.items() if self._exists(name)}
        lines = b"".join(_lines(kept.items()))
        self._files.write(self.path, b"# %d\n" % len(lines) + lines)

    def _compact_where_doubled(self, size: int) -> None:
        # Only when the size has doubled, so that the work for each line is constant on average.
        with self._files.opened(self.path, LIMIT) as file:
            first = file.readline(32)
        before = int(first[2:]) if first[:2] == b"# " and first[2:].strip().isdigit() else 0
        if size > 2 * max(before, _COMPACT_FROM):
            self.compact()


def _lines(noted: Iterable[tuple[str, list[NotedChecksum]]]) -> Iterable[bytes]:
    return (_line(name, one) for name, known in noted for one in known)


def _line(name: str, one: NotedChecksum) -> bytes:
    content = f"{one.sha1} {one.time} {json.dumps(name)}".encode()
    return b"%08x %s\n" % (crc32(content), content)


def _parse(line: bytes) -> tuple[str, NotedChecksum] | None:
    check, _, content = line.partition(b" ")
    if check != b"%08x" % crc32(content):
        return None
    try:
        sha1, time, name = content.decode().split(" ", 2)
        return json.loads(name), NotedChecksum(sha1, int(time))
    except (ValueError, RecursionError):
        return None
