"""What a remote holds, as far as this repository has seen it; only registers that are new are fetched.

Registers never change, so those that were fetched are kept in `.perun/cache/remotes`, one file for each
remote: of each its name and length in bytes on a line, then its content. It is a cache: what cannot be read
is fetched again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

from perun import atomic
from perun.errors import RemoteError
from perun.regular import read_regular
from perun.remote import register
from perun.remote.contract import Remote
from perun.remote.register import Register
from perun.remote.union import Union

_LARGEST: Final = 1 << 30
"""Bytes of the cache that are read at most."""


def union_of(remote: Remote, cache: Path) -> Union:
    """The union of the registers that the remote has now.

    :param cache: the folder of the caches of remotes.
    :raises RemoteError: if the remote cannot be read, or one of its registers is damaged.
    """
    path = cache / hashlib.sha256(remote.url.encode()).hexdigest()[:16]
    before = {name: (data, parsed) for name, data, parsed in _cached(path)}
    names = [key.removeprefix(register.FOLDER) for key, _size in remote.list(register.FOLDER)]
    now = {name: before[name] for name in names if name in before}
    new = [name for name in names if name not in before]
    with ThreadPoolExecutor(remote.parallel) as pool:
        fetched = pool.map(lambda name: remote.get(register.FOLDER + name, register.MAX), new)
        for name, data in zip(new, fetched, strict=True):
            now[name] = data, register.parse(name, data)
    union = Union()
    for name, (_data, parsed) in now.items():
        union.apply(name, parsed)
    if now.keys() != before.keys():
        # It is a cache: that it cannot be written is no reason to fail.
        with suppress(OSError):
            atomic.write(path, b"".join(_lines((name, data) for name, (data, _parsed) in now.items())))
    return union


def _lines(registers: Iterable[tuple[str, bytes]]) -> Iterator[bytes]:
    for name, data in registers:
        yield b"%s %d\n" % (name.encode(), len(data))
        yield data


def _cached(path: Path) -> Iterator[tuple[str, bytes, Register]]:
    """The registers that are kept: the name, the content and what it says of each that is whole."""
    try:
        data = read_regular(path, _LARGEST)
    except OSError:
        return
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        name, _, size = data[start:end].partition(b" ")
        if end < 0 or not size.isdigit() or int(size) > len(data) - end:
            return
        start = end + 1 + int(size)
        content = data[end + 1 : start]
        with suppress(UnicodeDecodeError, RemoteError):
            yield name.decode(), content, register.parse(name.decode(), content)
