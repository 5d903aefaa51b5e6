"""What a remote holds, as far as this repository has seen it; only what is new is fetched.

Registers and snapshots never change, so those that were fetched are kept in `.perun/cache/remotes`, one file
for each remote: of each its key and length in bytes on a line, then its content. It is a cache: what cannot
be read, or is damaged, is fetched again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from perun import atomic
from perun.regular import read_regular
from perun.remote.contract import Remote
from perun.remote.reading import Reader

_LARGEST: Final = 1 << 30
"""Bytes of the cache that are read at most."""


class Known(Reader):
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
