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
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from perun.errors import RemoteError
from perun.remote.pack import Place

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


class Entry(NamedTuple):
    """A profile registered in a minor version: what an index of the store says of it, but for its head.

    `time` in seconds, as the index has it.
    """

    minor: str
    checksum: str
    time: int
    name: str


class Added(NamedTuple):
    """A profile that is registered: where its object is, and the whole time of its file (ns)."""

    entry: Entry
    file_time: int
    place: Place


class Removed(NamedTuple):
    """A profile that is removed, as far as these registers have registered it."""

    entry: Entry
    registers: tuple[str, ...]


class Moved(NamedTuple):
    """That an object is in a pack, beside where it was put."""

    checksum: str
    place: Place


class Register(NamedTuple):
    """The content of a register."""

    added: Sequence[Added]
    removed: Sequence[Removed] = ()
    moved: Sequence[Moved] = ()


class Written(NamedTuple):
    """A register that can be put: its name and its bytes."""

    name: str
    data: bytes


def written(
    added: Iterable[Added], removed: Iterable[Removed] = (), moved: Iterable[Moved] = (), *, now: float
) -> Written:
    """The register that says so; `now`: seconds since 1970, for people."""
    lines: list[object] = [{"perun-register": 1, "time": int(now), "nonce": secrets.token_hex(8)}]
    lines += (["+", *one.entry[:3], one.file_time, one.entry.name, *one.place] for one in added)
    lines += (["-", *one.entry, list(one.registers)] for one in removed)
    lines += (["@", one.checksum, *one.place] for one in moved)
    return _named(lines)


def _named(lines: Iterable[object]) -> Written:
    data = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()
    return Written(hashlib.sha256(data).hexdigest(), data)


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
    added: list[Added] = []
    if rows := columns(by_sign[b"+"], tuple[str, str, str, int, int, str, str, int, int]):
        _signs, minors, checksums, times, file_times, names, packs, starts, sizes = rows
        entries = entries_of(minors, checksums, times, names)
        places = made_of(Place, names_of(packs), starts, sizes)
        check_numbers(1 << 62, starts, sizes)
        check_numbers(1 << 63, file_times)
        added = list(made_of(Added, entries, file_times, places))
    removed: list[Removed] = []
    if rows := columns(by_sign[b"-"], tuple[str, str, str, int, str, tuple[str, ...]]):
        _signs, minors, checksums, times, names, registers = rows
        entries = entries_of(minors, checksums, times, names)
        names_of([one for some in registers for one in some])
        removed = list(map(Removed, entries, registers))
    moved: list[Moved] = []
    if rows := columns(by_sign[b"@"], tuple[str, str, str, int, int]):
        _signs, checksums, packs, starts, sizes = rows
        check_numbers(1 << 62, starts, sizes)
        moved = list(map(Moved, checksums_of(checksums), map(Place, names_of(packs), starts, sizes)))
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
) -> Iterable[Entry]:
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
    return made_of(Entry, minors, checksums_of(checksums), times, names)


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
