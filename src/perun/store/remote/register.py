"""Registers: pieces that say which profiles were registered at a remote, or removed; they never change.

A register is text. Its first line is a JSON object: the version of the format, when it was written (seconds
since 1970), and random digits, so that no two are alike. Each other line is a JSON array::

    ["+", minor version, checksum, time, file's time, name, pack, start, size]
    ["-", minor version, checksum, time, name, [registers]]
    ["@", checksum, pack, start, size]

The first registers a profile: its object is in the pack. The second removes what these registers have
registered, and nothing else: who registers the same anew, before or after, registers it. The third says that
an object is in this pack, too. So registers have no order, and the profiles of a remote are the same for
everybody who has the same set of them (observed-remove set: Shapiro et al., *Conflict-free replicated data
types*, 2011). Its name is the SHA-256 of its content.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeVar

from perun.core.errors import RemoteError
from perun.store.remote.pack import PackSlice

T = TypeVar("T")

FOLDER: Final = "registers/"
MAX: Final = 256 << 20
"""Bytes of the largest register that is read."""
_NAME: Final = re.compile(r"[0-9a-f]{64}")
_CHECKSUM: Final = re.compile(r"[0-9a-f]{40}")
_MINOR: Final = re.compile(r"HEAD|[0-9a-f]{40}|[0-9a-f]{64}")
_HEX: Final = re.compile(r"[0-9a-f]*")
_NEWEST: Final = (1 << 32) - 1
_SURELY_SHORT: Final = 63  # characters of UTF-8 with up to four bytes each
_REMOVE: Final = (
    f"restore {FOLDER}{{}} from a copy of the remote; "
    "without one: perun fsck --remote --repair, and let all who have profiles push again"
)


class RegisterEntry(NamedTuple):
    """A profile registered in a minor version: what an index of the store says of it, but for its head.

    `time` in seconds, as the index has it.
    """

    minor: str
    checksum: str
    time: int
    name: str


class RegisterAddition(NamedTuple):
    """A profile that is registered: where its object is, and the whole time of its file (ns)."""

    entry: RegisterEntry
    file_time: int
    place: PackSlice


class RegisterRemoval(NamedTuple):
    """A profile that is removed, as far as these registers have registered it."""

    entry: RegisterEntry
    registers: tuple[str, ...]


class PackMove(NamedTuple):
    """That an object is in a pack, beside where it was put."""

    checksum: str
    place: PackSlice


class Register(NamedTuple):
    """The content of a register."""

    added: Sequence[RegisterAddition]
    removed: Sequence[RegisterRemoval] = ()
    moved: Sequence[PackMove] = ()


class RegisterFile(NamedTuple):
    """A register that can be put: its name and its bytes."""

    name: str
    data: bytes


def written(
    added: Iterable[RegisterAddition],
    removed: Iterable[RegisterRemoval] = (),
    moved: Iterable[PackMove] = (),
    *,
    now: float,
) -> RegisterFile:
    """The register that says so; `now`: seconds since 1970, for people."""
    lines: list[object] = [{"perun-register": 1, "time": int(now), "nonce": secrets.token_hex(8)}]
    lines += (["+", *one.entry[:3], one.file_time, one.entry.name, *one.place] for one in added)
    lines += (["-", *one.entry, list(one.registers)] for one in removed)
    lines += (["@", one.checksum, *one.place] for one in moved)
    return _named(lines)


def _named(lines: Iterable[object]) -> RegisterFile:
    data = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()
    return RegisterFile(hashlib.sha256(data).hexdigest(), data)


def parse(name: str, data: bytes) -> Register:
    """What the register says. Nothing of it is trusted: names lead out of no folder, numbers are in range.

    :raises RemoteError: if it is not the register of this name, or it is no register.
    """
    if hashlib.sha256(data).hexdigest() != name:
        raise RemoteError(
            f"the register {name[:12]} is damaged: its content is not what its name says",
            _REMOVE.format(name),
        )
    first, *lines = data.split(b"\n")
    version = version_of(first, "perun-register")
    if version is None:
        raise _malformed(name, "it is no register")
    if version != 1:
        raise newer(f"the register {name[:12]}", version)
    lines = [line for line in lines if line]
    try:
        return _read(lines)
    except ValueError:
        for number, line in enumerate(lines, 2):
            try:
                _read([line])
            except ValueError as problem:
                raise _malformed(name, f"line {number}: {problem}") from None
        raise


def version_of(line: bytes, key: str) -> object:
    """The version that the first line of a piece gives under this key; None if it is no such line."""
    try:
        return json.loads(line)[key]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def newer(what: str, version: object) -> RemoteError:
    """The error for a piece in a format that this Perun does not read."""
    return RemoteError(
        f"{what} has format {version!r}, this Perun reads 1",
        "install the Perun that the others of the team have",
    )


def _malformed(name: str, why: str) -> RemoteError:
    return RemoteError(f"the register {name[:12]} cannot be read: {why}", _REMOVE.format(name))


def _read(lines: Sequence[bytes]) -> Register:
    """What the lines say. They are decoded and checked column by column: a remote may have 100,000."""
    by_sign = grouped(lines)
    added: list[RegisterAddition] = []
    if rows := columns(by_sign[b"+"], tuple[str, str, str, int, int, str, str, int, int]):
        _signs, minors, checksums, times, file_times, names, packs, starts, sizes = rows
        entries = entries_of(minors, checksums, times, names)
        places = made_of(PackSlice, names_of(packs), starts, sizes)
        check_numbers(1 << 62, starts, sizes)
        check_numbers(1 << 63, file_times)
        added = list(made_of(RegisterAddition, entries, file_times, places))
    removed: list[RegisterRemoval] = []
    if rows := columns(by_sign[b"-"], tuple[str, str, str, int, str, tuple[str, ...]]):
        _signs, minors, checksums, times, names, registers = rows
        entries = entries_of(minors, checksums, times, names)
        names_of([one for some in registers for one in some])
        removed = list(map(RegisterRemoval, entries, registers))
    moved: list[PackMove] = []
    if rows := columns(by_sign[b"@"], tuple[str, str, str, int, int]):
        _signs, checksums, packs, starts, sizes = rows
        check_numbers(1 << 62, starts, sizes)
        moved = list(map(PackMove, checksums_of(checksums), map(PackSlice, names_of(packs), starts, sizes)))
    return Register(added, removed, moved)


def grouped(lines: Iterable[bytes]) -> dict[bytes, list[bytes]]:
    """The lines by what they begin with, `+`, `-` or `@`.

    :raises ValueError: if one begins otherwise.
    """
    found: dict[bytes, list[bytes]] = {b"+": [], b"-": [], b"@": []}
    for line in lines:
        if line[:2] != b'["' or line[3:4] != b'"' or (group := found.get(line[2:3])) is None:
            raise ValueError('it begins with none of ["+", ["-" and ["@"')
        group.append(line)
    return found


def columns(lines: Sequence[bytes], kind: Any) -> list[Any]:
    """The values of lines, each an array of this type, by columns; none if there is no line.

    :raises ValueError: if one is no such array.
    """
    import msgspec

    try:
        rows = msgspec.json.decode(b"[" + b",".join(lines) + b"]", type=list[kind])
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return list(zip(*rows, strict=True))


def entries_of(
    minors: Sequence[str], checksums: Sequence[str], times: Sequence[int], names: Sequence[str]
) -> Iterable[RegisterEntry]:
    """The entries of these columns.

    :raises ValueError: if a value can be none of an entry. A name becomes one in an index, perhaps of a file.
    """
    for minor in set(minors):
        if not _MINOR.fullmatch(minor):
            raise ValueError(f"{minor!r} is no version")
    check_numbers(_NEWEST, times)
    for name in names:
        if not name or (len(name) > _SURELY_SHORT and len(name.encode()) > 255) or name in (".", ".."):
            raise ValueError(f"{name!r} is no name of a profile")
    if any(sign in name for sign in "/\0" for name in names):
        raise ValueError("the name of a profile has a slash or a zero byte in it")
    return made_of(RegisterEntry, minors, checksums_of(checksums), times, names)


def made_of(kind: type[T], *columns: Iterable[object]) -> Iterator[T]:
    """The named tuples of this type whose fields are in columns; in half the time that its calls take."""
    make: Callable[[Any], T] = partial(tuple.__new__, kind)  # type: ignore[type-var]
    return map(make, zip(*columns, strict=True))


def checksums_of(values: Sequence[str]) -> Sequence[str]:
    """The values, if all can be checksums of objects.

    :raises ValueError: if one cannot.
    """
    if set(map(len, values)) - {40} or not _HEX.fullmatch("".join(values)):
        raise ValueError(f"no checksum: {next(one for one in values if not _CHECKSUM.fullmatch(one))!r}")
    return values


def names_of(values: Sequence[str]) -> Sequence[str]:
    """The values, if all can be names of packs and registers.

    :raises ValueError: if one cannot.
    """
    for value in set(values):
        if not _NAME.fullmatch(value):
            raise ValueError(f"{value!r} is no name of a pack or register")
    return values


def check_numbers(limit: int, *columns: Sequence[int]) -> None:
    """See that all numbers are from 0 to the limit.

    :raises ValueError: if one is not.
    """
    for values in columns:
        if values and not 0 <= min(values) <= max(values) <= limit:
            raise ValueError(f"{min(values)} to {max(values)} is no range of numbers that can be here")


# The profiles of a remote: the union of all its registers, whatever their order.

Tag = tuple[str, int]
"""That a register registers a profile: its name, and the time of the file (ns) that it says."""

_file_time = itemgetter(1)


class RegisterUnion:
    """What a set of registers says together. Applying one twice, or in another order, changes nothing.

    A profile is registered where a register says so that no removal names, and its object is in a pack that
    is not dead. Of dead packs (:mod:`perun.store.remote.snapshot`) nothing counts, whatever still names them.
    """

    def __init__(self) -> None:
        self.registers: set[str] = set()
        self.dead: set[str] = set()
        self._added: dict[RegisterEntry, tuple[Tag, ...]] = {}
        self._removed: dict[RegisterEntry, set[str]] = {}
        self._places: dict[str, tuple[PackSlice, ...]] = {}

    def apply(self, name: str, register: Register) -> None:
        """Take in the register of this name."""
        if name in self.registers:
            return
        self.registers.add(name)
        for entry, file_time, place in register.added:
            self.add(entry, (name, file_time))
            self.place(entry.checksum, place)
        for gone in register.removed:
            self.remove(gone.entry, gone.registers)
        for moved in register.moved:
            self.place(moved.checksum, moved.place)

    def add(self, entry: RegisterEntry, tag: Tag) -> None:
        """Take in that a register registers the profile."""
        known = self._added.setdefault(entry, (tag,))
        if tag not in known:
            self._added[entry] = (*known, tag)

    def place(self, checksum: str, place: PackSlice) -> None:
        """Take in where an object is; it may be in several packs."""
        known = self._places.setdefault(checksum, (place,))
        if place not in known:
            self._places[checksum] = (*known, place)

    def remove(self, entry: RegisterEntry, registers: Iterable[str]) -> None:
        """Take in that the profile is removed, as far as these have registered it."""
        self._removed.setdefault(entry, set()).update(registers)

    def __iter__(self) -> Iterator[RegisterAddition]:
        """The profiles that are registered, each with the earliest time of its file and its first place."""
        for entry in self._added:
            if (tags := self._tags(entry)) and (place := self.where(entry.checksum)):
                yield RegisterAddition(entry, min(map(_file_time, tags)), place)

    def __contains__(self, entry: RegisterEntry) -> bool:
        return bool(self._tags(entry)) and self.where(entry.checksum) is not None

    def lacking(self, entries: Iterable[RegisterEntry]) -> list[RegisterEntry]:
        """Those of the profiles that are not registered."""
        added, removed = self._added, self._removed
        if self.dead:
            return [entry for entry in entries if entry not in self]
        return [one for one in entries if one not in added or (one in removed and one not in self)]

    def _tags(self, entry: RegisterEntry) -> tuple[Tag, ...]:
        tags = self._added.get(entry, ())
        if gone := self._removed.get(entry):
            return tuple(tag for tag in tags if tag[0] not in gone)
        return tags

    def saying(self, entry: RegisterEntry) -> tuple[str, ...]:
        """The registers by which the profile is registered, ordered by name: a removal names these."""
        return tuple(sorted(tag[0] for tag in self._tags(entry)))

    def was_removed(self, entry: RegisterEntry) -> bool:
        """Whether the profile was removed, and not registered again since."""
        return entry in self._removed and not self._tags(entry)

    def where(self, checksum: str) -> PackSlice | None:
        """Where the object is; None where no pack has it that is not dead."""
        places = self._places.get(checksum, ())
        if len(places) == 1 and places[0].pack not in self.dead:
            return places[0]
        return min((place for place in places if place.pack not in self.dead), default=None)

    def needed(self, avoid: Collection[str] = ()) -> dict[str, dict[str, PackSlice]]:
        """What the registered profiles need: of each pack its objects by checksum.

        Each object is asked of one pack only: of one that is to be avoided only where no other has it.
        """
        found: dict[str, dict[str, PackSlice]] = {}
        for checksum, places in self._living().items():
            best = min(places, key=lambda one: (one.pack in avoid, one))
            found.setdefault(best.pack, {})[checksum] = best
        return found

    def sizes(self) -> dict[str, int]:
        """Of each pack, the bytes of the objects in it that registered profiles have, there or elsewhere."""
        sizes: dict[str, int] = {}
        for places in self._living().values():
            for pack, _start, size in places:
                sizes[pack] = sizes.get(pack, 0) + size
        return sizes

    def _living(self) -> dict[str, list[PackSlice]]:
        """The objects of registered profiles, each with its places."""
        found: dict[str, list[PackSlice]] = {}
        for entry in self._added:
            if entry.checksum not in found and self._tags(entry):
                places = [one for one in self._places.get(entry.checksum, ()) if one.pack not in self.dead]
                if places:
                    found[entry.checksum] = places
        return found

    def rows(self) -> Iterator[tuple[RegisterEntry, tuple[Tag, ...]]]:
        """The profiles that are registered somewhere and not removed, also where no pack has their object."""
        for entry in self._added:
            if tags := self._tags(entry):
                yield entry, tags

    def removals(self) -> Iterator[tuple[RegisterEntry, tuple[str, ...]]]:
        """What was ever removed, and the registers that each removal named, ordered by name."""
        for entry, registers in self._removed.items():
            yield entry, tuple(sorted(registers))

    def places(self) -> Iterator[tuple[str, PackSlice]]:
        """The objects of registered profiles, each with every place that is not dead."""
        for checksum, places in self._living().items():
            yield from ((checksum, place) for place in places)
