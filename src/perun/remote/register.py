"""Registers: pieces that say which profiles were registered at a remote, or removed; they never change.

A register is text. Its first line is a JSON object: the version of the format, when it was written (seconds
since 1970), and random digits, so that no two are alike. Each other line is a JSON array::

    ["+", minor version, checksum, time, file's time, name, pack, start, size]
    ["-", minor version, checksum, time, name, [registers]]

The first registers a profile: its object is in the pack. The second removes what these registers have
registered, and nothing else: who registers the same anew, before or after, registers it. So registers have no
order, and the profiles of a remote are the same for everybody who has the same set of them (observed-remove
set: Shapiro et al., *Conflict-free replicated data types*, 2011). Its name is the SHA-256 of its content.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from perun.errors import RemoteError
from perun.remote.pack import Place

FOLDER: Final = "registers/"
MAX: Final = 256 << 20
"""Bytes of the largest register that is read."""
_NAME: Final = re.compile(r"[0-9a-f]{64}")
_CHECKSUM: Final = re.compile(r"[0-9a-f]{40}")
_MINOR: Final = re.compile(r"HEAD|[0-9a-f]{40}|[0-9a-f]{64}")
_NEWEST: Final = (1 << 32) - 1
_REMOVE: Final = (
    f"restore {FOLDER}{{}} from a copy of the remote; "
    "or remove it there, and let all who have profiles push again"
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


class Register(NamedTuple):
    """The content of a register."""

    added: list[Added]
    removed: list[Removed]


class Written(NamedTuple):
    """A register that can be put: its name and its bytes."""

    name: str
    data: bytes


def written(added: Iterable[Added], removed: Iterable[Removed] = (), *, now: float) -> Written:
    """The register that says so; `now`: seconds since 1970, for people."""
    lines: list[object] = [{"perun-register": 1, "time": int(now), "nonce": secrets.token_hex(8)}]
    lines += (["+", *one.entry[:3], one.file_time, one.entry.name, *one.place] for one in added)
    lines += (["-", *one.entry, list(one.registers)] for one in removed)
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
    try:
        first, *lines = map(json.loads, data.decode().splitlines())
        version = first["perun-register"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise _malformed(name, "it is no register") from None
    if version != 1:
        raise RemoteError(
            f"the register {name[:12]} has format {version!r}, this Perun reads 1",
            "install the Perun that the others of the team have",
        )
    register = Register([], [])
    for number, line in enumerate(lines, 2):
        try:
            if line[0] == "+":
                _sign, minor, checksum, time, file_time, path, *place = line
                entry = _entry(minor, checksum, time, path)
                register.added.append(Added(entry, _number(file_time, 1 << 63), _place(place)))
            elif line[0] == "-":
                _sign, minor, checksum, time, path, registers = line
                entry = _entry(minor, checksum, time, path)
                register.removed.append(Removed(entry, tuple(_matching(_NAME, one) for one in registers)))
            else:
                raise ValueError("it says neither + nor -")
        except (ValueError, TypeError, KeyError, IndexError) as problem:
            raise _malformed(name, f"line {number}: {problem}") from None
    return register


def _malformed(name: str, why: str) -> RemoteError:
    return RemoteError(f"the register {name[:12]} cannot be read: {why}", _REMOVE.format(name))


def _entry(minor: Any, checksum: Any, time: Any, name: Any) -> Entry:
    return Entry(
        _matching(_MINOR, minor), _matching(_CHECKSUM, checksum), _number(time, _NEWEST), _file_name(name)
    )


def _place(values: Sequence[Any]) -> Place:
    pack, start, size = values
    return Place(_matching(_NAME, pack), _number(start, 1 << 62), _number(size, 1 << 62))


def _file_name(name: Any) -> str:
    # It becomes the name in an index, and may become that of a file.
    if not isinstance(name, str) or not 0 < len(name.encode(errors="replace")) <= 255:
        raise ValueError("the name of a profile is missing or too long")
    if "/" in name or "\0" in name or name in (".", ".."):
        raise ValueError(f"no name of a profile: {name!r}")
    return name


def _matching(pattern: re.Pattern[str], text: Any) -> str:
    if not isinstance(text, str) or not pattern.fullmatch(text):
        raise ValueError(f"{text!r} is no name that can be here")
    return text


def _number(value: Any, limit: int) -> int:
    if type(value) is not int or not 0 <= value <= limit:
        raise ValueError(f"{value!r} is no number that can be here")
    return value
