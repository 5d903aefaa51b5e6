"""Sharing profiles with a team: `perun push` and `perun pull`, from and to a remote
(:mod:`perun.store.remote`)."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from typing import Final, NamedTuple

from perun.core import atomic
from perun.core.regular import read_regular
from perun.repository.repository import Repository
from perun.store.remote.contract import Remote
from perun.store.remote.reading import RemoteReader
from perun.store.remote.register import RegisterEntry, made_of

# What a remote holds, as far as this repository has seen it; only what is new is fetched.
#
# Registers and snapshots never change, so those that were fetched are kept in `.perun/cache/remotes`, one
# file for each remote: of each its key and length in bytes on a line, then its content. It is a cache: what
# cannot be read, or is damaged, is fetched again.

_LARGEST: Final = 1 << 30
"""Bytes of the cache that are read at most."""


class CachingReader(RemoteReader):
    """A reader that keeps what it has fetched.

    :param cache: the folder of the caches of remotes.
    """

    def __init__(self, remote: Remote, cache: Path) -> None:
        self._path = cache / hashlib.sha256(remote.url.encode()).hexdigest()[:16]
        super().__init__(remote, _cached(self._path))
        self._before = self.pieces.keys() | set()

    def keep(self) -> None:
        """Write what the last reading was made of, if it is not there already."""
        used = self.used()
        if set(used) != self._before:
            # It is a cache: that it cannot be written is no reason to fail.
            with suppress(OSError):
                atomic.write(self._path, b"".join(_lines((key, self.pieces[key]) for key in used)))
                self._before = set(used)


def _lines(pieces: Iterable[tuple[str, bytes]]) -> Iterator[bytes]:
    for key, data in pieces:
        yield b"%s %d\n" % (key.encode(), len(data))
        yield data


def _cached(path: Path) -> Iterator[tuple[str, bytes]]:
    """The pieces that are kept and are what their names say: the key and the content of each."""
    try:
        data = read_regular(path, _LARGEST)
    except OSError:
        return
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        key, _, size = data[start:end].partition(b" ")
        if end < 0 or not size.isdigit() or int(size) > len(data) - end:
            return
        start = end + 1 + int(size)
        content = data[end + 1 : start]
        with suppress(UnicodeDecodeError):
            name = key.decode()
            if hashlib.sha256(content).hexdigest() == name.rpartition("/")[2]:
                yield name, content


# What is registered here, quickly also of 100,000 profiles: indexes that have not changed are not read
# again.
#
# The cache `.perun/cache/remotes/registered` has, of each version, the time and the size that its index had,
# and the entries. It is a cache: what cannot be read is read anew from the indexes.


class _Version(NamedTuple):
    """The state of an index (:meth:`perun.store.index.Indexes.state`), and the columns of its entries."""

    state: tuple[int, int]
    checksums: list[str]
    times: list[int]
    names: list[str]


def registered_here(repo: Repository, minors: Collection[str] | None) -> list[RegisterEntry]:
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


def _entries(versions: dict[str, _Version], minors: Collection[str] | None) -> Iterator[RegisterEntry]:
    for minor, one in versions.items():
        if minors is None or minor in minors:
            minors_of = repeat(minor, len(one.names))
            yield from made_of(RegisterEntry, minors_of, one.checksums, one.times, one.names)


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
