"""Snapshots: what many registers say, in one piece, so that who comes new fetches one and not thousands.

A snapshot is text like a register. Its first line is a JSON object, `{"perun-snapshot": 1, "time": ...,
"nonce": ..., "registers": [...], "packs": [...], "dead": [...]}`: the registers that it stands for, the
packs that it names, and those that are dead (:mod:`perun.store.remote.snapshot`). The other lines are those
of registers, with numbers, from 0, in place of the names of packs and registers::

    ["+", minor version, checksum, time, file's time, name, pack, start, size, register]
    ["-", minor version, checksum, time, name, [registers]]
    ["@", checksum, pack, start, size]

That the names of registers are kept makes the union of a snapshot and any registers, those that it stands for
among them, the same as that of the registers alone: removals go on naming what they named.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from perun.core.errors import RemoteError
from perun.store.remote import register
from perun.store.remote.contract import MAX_HEAD, MissingPiece, Remote, is_key
from perun.store.remote.pack import PackSlice
from perun.store.remote.register import RegisterFile, RegisterUnion

FOLDER: Final = "snapshots/"
MAX: Final = 1 << 30
"""Bytes of the largest snapshot that is read."""


def written(union: RegisterUnion, dead: Collection[str], *, now: float) -> RegisterFile:
    """The snapshot of all that the union says; `now`: seconds since 1970, for people.

    :param dead: all packs that are dead when it is that of the remote.
    """
    registers = {name: number for number, name in enumerate(sorted(union.registers))}
    packs: dict[str, int] = {}
    body = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in _lines(union, registers, packs))
    first = {
        "perun-snapshot": 1,
        "time": int(now),
        "nonce": secrets.token_hex(8),
        "registers": list(registers),
        "packs": list(packs),
        "dead": sorted(dead),
    }
    data = (json.dumps(first, separators=(",", ":")) + "\n" + body).encode()
    return RegisterFile(hashlib.sha256(data).hexdigest(), data)


def _lines(union: RegisterUnion, registers: dict[str, int], packs: dict[str, int]) -> Iterator[list[object]]:
    def number(pack: str) -> int:
        return packs.setdefault(pack, len(packs))

    told = set()
    for entry, tags in union.rows():
        place = union.where(entry.checksum)
        if place is None:
            continue  # all its packs are dead: who has it sends it again
        told.add((entry.checksum, place))
        at = [number(place.pack), place.start, place.size]
        for name, file_time in tags:
            yield ["+", *entry[:3], file_time, entry.name, *at, registers[name]]
    for entry, names in union.removals():
        yield ["-", *entry, [registers[name] for name in names if name in registers]]
    for checksum, place in union.places():
        if (checksum, place) not in told:
            yield ["@", checksum, number(place.pack), place.start, place.size]


def apply(name: str, data: bytes, union: RegisterUnion) -> None:
    """Take what the snapshot of this name says into the union. Nothing of it is trusted.

    :raises RemoteError: if it is not the snapshot of this name, or none.
    """
    hint = f"restore {FOLDER}{name} from a copy of the remote"
    if hashlib.sha256(data).hexdigest() != name:
        why = "is damaged: its content is not what its name says"
        raise RemoteError(f"the snapshot {name[:12]} {why}", hint)
    first, *lines = data.split(b"\n")
    version = register.version_of(first, "perun-snapshot")
    if version not in (None, 1):
        raise register.newer(f"the snapshot {name[:12]}", version)
    try:
        _apply(json.loads(first), [line for line in lines if line], union)
    except (ValueError, TypeError, KeyError, IndexError, RecursionError) as problem:
        raise RemoteError(f"the snapshot {name[:12]} cannot be read: {problem}", hint) from None


def _apply(first: dict[str, Any], lines: Sequence[bytes], union: RegisterUnion) -> None:
    registers = register.names_of([str(one) for one in first["registers"]])
    packs = register.names_of([str(one) for one in first["packs"]])
    dead = register.names_of([str(one) for one in first["dead"]])
    by_sign = register.grouped(lines)
    kind: Any = tuple[str, str, str, int, int, str, int, int, int, int]
    if rows := register.columns(by_sign[b"+"], kind):
        _signs, minors, checksums, times, file_times, names, packed, starts, sizes, by = rows
        register.check_numbers(1 << 62, starts, sizes, packed, by)
        register.check_numbers(1 << 63, file_times)
        entries = register.entries_of(minors, checksums, times, names)
        for entry, file_time, pack, start, size, number in zip(
            entries, file_times, packed, starts, sizes, by, strict=True
        ):
            union.add(entry, (registers[number], file_time))
            union.place(entry.checksum, PackSlice(packs[pack], start, size))
    if rows := register.columns(by_sign[b"-"], tuple[str, str, str, int, str, list[int]]):
        _signs, minors, checksums, times, names, numbers = rows
        register.check_numbers(1 << 62, [one for some in numbers for one in some])
        entries = register.entries_of(minors, checksums, times, names)
        for entry, some in zip(entries, numbers, strict=True):
            union.remove(entry, [registers[number] for number in some])
    if rows := register.columns(by_sign[b"@"], tuple[str, str, int, int, int]):
        _signs, checksums, packed, starts, sizes = rows
        register.check_numbers(1 << 62, packed, starts, sizes)
        for checksum, pack, start, size in zip(
            register.checksums_of(checksums), packed, starts, sizes, strict=True
        ):
            union.place(checksum, PackSlice(packs[pack], start, size))
    union.registers.update(registers)
    union.dead.update(dead)


# The one piece of a remote that changes: which packs are given up, and which snapshot stands for registers.
#
# The head `heads/gc` is a JSON object::
#
#     {"perun-gc": 1, "generation": 7, "snapshot": SHA-256 or null,
#      "condemned": {key: time}, "dead": [packs]}
#
# It is replaced by compare-and-swap alone, and each time its generation grows, so that no two states are
# alike. What the parts mean, and why nobody's profile is lost, :mod:`perun.store.remote.cleaning` says.

KEY: Final = "heads/gc"


class SnapshotState(NamedTuple):
    """What the head says.

    :param condemned: keys of packs and snapshots that nothing needed at a time, in seconds since 1970.
    :param dead: packs of which nothing counts any more, beside those that the snapshot names.
    :param snapshot: the name of the snapshot, None if there is none.
    """

    generation: int = 0
    snapshot: str | None = None
    condemned: Mapping[str, int] = {}
    dead: tuple[str, ...] = ()


class SnapshotHead(NamedTuple):
    """The head as it was read: its bytes, None where there is none, and what they say."""

    data: bytes | None
    state: SnapshotState


def read(remote: Remote) -> SnapshotHead:
    """The head as it is now.

    :raises RemoteError: if it cannot be read, or is none.
    """
    try:
        data = remote.get(KEY, MAX_HEAD)
    except MissingPiece:
        return SnapshotHead(None, SnapshotState())
    return SnapshotHead(data, _parsed(data))


def replace(remote: Remote, before: SnapshotHead, state: SnapshotState) -> SnapshotHead | None:
    """Make `state` that of the remote, of the next generation, if it is `before` now; None if it is not."""
    now = state._replace(generation=before.state.generation + 1)
    lines = {
        "perun-gc": 1,
        "generation": now.generation,
        "snapshot": now.snapshot,
        "condemned": dict(sorted(now.condemned.items())),
        "dead": sorted(now.dead),
    }
    data = json.dumps(lines, separators=(",", ":")).encode() + b"\n"
    return SnapshotHead(data, now) if remote.replace(KEY, data, before.data) else None


def _parsed(data: bytes) -> SnapshotState:
    version = register.version_of(data, "perun-gc")
    if version not in (None, 1):
        raise register.newer(KEY, version)
    try:
        found = json.loads(data)
        condemned = {str(key): int(time) for key, time in found["condemned"].items()}
        dead = tuple(register.names_of(list(map(str, found["dead"]))))
        snapshot = found["snapshot"]
        if not all(map(is_key, condemned)):
            raise ValueError("no key")
        if snapshot is not None:
            register.names_of([str(snapshot)])
        return SnapshotState(int(found["generation"]), snapshot, condemned, dead)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        hint = f"restore {KEY} from a copy of the remote"
        raise RemoteError(f"{KEY} of the remote cannot be read", hint) from None
