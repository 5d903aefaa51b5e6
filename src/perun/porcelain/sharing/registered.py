"""What is registered here, quickly also of 100,000 profiles: indexes that have not changed are not read
again.

The cache `.perun/cache/remotes/registered` has, of each version, the time and the size that its index had,
and the entries. It is a cache: what cannot be read is read anew from the indexes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from typing import Final, NamedTuple

from perun import atomic
from perun.porcelain.repository import Repository
from perun.regular import read_regular
from perun.remote.register import Entry, made_of

_LARGEST: Final = 1 << 30
"""Bytes of the cache that are read at most."""


class _Version(NamedTuple):
    """The state of an index (:meth:`perun.store.index.Indexes.state`), and the columns of its entries."""

    state: tuple[int, int]
    checksums: list[str]
    times: list[int]
    names: list[str]


def registered_here(repo: Repository, minors: Collection[str] | None) -> list[Entry]:
    """What is registered here, version by version.

    :param minors: only in these minor versions; in all if None.
    :raises DamagedStore: if an index is damaged.
    """
    path = caches(repo) / "registered"
    known = _read(path)
    indexes = repo.store.indexes
    objects = {checksum for one in known.values() for checksum in one.checksums}
    now: dict[str, _Version] = {}
    for minor in indexes.minors(objects):
        state = indexes.state(minor)
        kept = known.get(minor)
        if state is not None and kept is not None and kept.state == state:
            now[minor] = kept
        elif state is not None:
            entries = indexes.read(minor)
            now[minor] = _Version(
                state,
                [one.checksum for one in entries],
                [one.time for one in entries],
                [one.path for one in entries],
            )
    if now != known:
        _write(path, now)
    return list(_entries(now, minors))


def _entries(versions: dict[str, _Version], minors: Collection[str] | None) -> Iterator[Entry]:
    for minor, one in versions.items():
        if minors is None or minor in minors:
            minors_of = repeat(minor, len(one.names))
            yield from made_of(Entry, minors_of, one.checksums, one.times, one.names)


def caches(repo: Repository) -> Path:
    """The folder of the caches of remotes."""
    return repo.store.root / "cache" / "remotes"


def _read(path: Path) -> dict[str, _Version]:
    import msgspec

    with suppress(OSError, ValueError):  # msgspec raises kinds of ValueError
        found = msgspec.json.decode(read_regular(path, _LARGEST), type=dict[str, _Version])
        if all(len(one.checksums) == len(one.times) == len(one.names) for one in found.values()):
            return found
    return {}


def _write(path: Path, versions: dict[str, _Version]) -> None:
    import msgspec

    with suppress(OSError):
        atomic.write(path, msgspec.json.encode(versions))
