"""The one piece of a remote that changes: which packs are given up, and which snapshot stands for registers.

The head `heads/gc` is a JSON object::

    {"perun-gc": 1, "generation": 7, "snapshot": SHA-256 or null,
     "condemned": {key: time}, "dead": [packs]}

It is replaced by compare-and-swap alone, and each time its generation grows, so that no two states are alike.
What the parts mean, and why nobody's profile is lost, :mod:`perun.remote.cleaning` says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from perun.errors import RemoteError
from perun.remote import register
from perun.remote.contract import MAX_HEAD, MissingPiece, Remote, is_key

KEY: Final = "heads/gc"


class State(NamedTuple):
    """What the head says.

    :param condemned: keys of packs and snapshots that nothing needed at a time, in seconds since 1970.
    :param dead: packs of which nothing counts any more, beside those that the snapshot names.
    :param snapshot: the name of the snapshot, None if there is none.
    """

    generation: int = 0
    snapshot: str | None = None
    condemned: Mapping[str, int] = {}
    dead: tuple[str, ...] = ()


class Head(NamedTuple):
    """The head as it was read: its bytes, None where there is none, and what they say."""

    data: bytes | None
    state: State


def read(remote: Remote) -> Head:
    """The head as it is now.

    :raises RemoteError: if it cannot be read, or is none.
    """
    try:
        data = remote.get(KEY, MAX_HEAD)
    except MissingPiece:
        return Head(None, State())
    return Head(data, _parsed(data))


def replace(remote: Remote, before: Head, state: State) -> Head | None:
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
    return Head(data, now) if remote.replace(KEY, data, before.data) else None


def _parsed(data: bytes) -> State:
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
        return State(int(found["generation"]), snapshot, condemned, dead)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        hint = f"restore {KEY} from a copy of the remote"
        raise RemoteError(f"{KEY} of the remote cannot be read", hint) from None
