"""Names of the code that programs make while they run, which they tell in files of their own.

Node, Java and Python write maps of addresses to names, `/tmp/perf-PID.map`. A jitdump, `jit-PID.dump`, has
besides the places in the sources, and when code was made: the form is that of Linux's
`tools/perf/Documentation/jitdump-specification.txt`.
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from perun.core.regular import open_regular

MAPS: Final = Path("/tmp")
"""Where maps are, and jitdumps of Python: the place is fixed. Those of Node are where it ran."""
_MAX_BYTES: Final = 1 << 28
_MAX_DUMP: Final = 1 << 31
_JITDUMP: Final = 0x4A695444
_HEADER: Final = struct.Struct("=IIIIIIQQ")
_RECORD: Final = struct.Struct("=IIQ")
_LOAD: Final = struct.Struct("=IIQQQQ")
_MOVE: Final = struct.Struct("=IIQQQQQ")
_DEBUG: Final = struct.Struct("=QQ")
_LINE: Final = struct.Struct("=Qii")
_LOADED, _MOVED, _DESCRIBED = 0, 1, 2
_MOST_NAME: Final = 1 << 16
_V8: Final = re.compile(r"(?:JS|Eval|Script|Function|LazyCompile):[~^*+]?(.*?) ?([^ ]+):(\d+):\d+", re.DOTALL)
"""How V8 names a function: as which tier it is compiled, its name, source, line and column."""
_BEFORE: Final = 0x40
"""V8 tells lines of addresses that are so much higher: its dump is made for files with an ELF header."""


class MadeFunction(NamedTuple):
    """A piece of code: its size, its name and source, and from which address on which line it is of."""

    size: int
    name: str
    source: str = ""
    lines: tuple[tuple[int, int], ...] = ()


class MadeCode:
    """What lies at which address; of what lay there one after the other the last.

    :param entries: by address.
    """

    def __init__(self, entries: Mapping[int, MadeFunction]) -> None:
        self._entries = entries
        self._starts = sorted(entries)

    def at(self, address: int) -> tuple[str, str, int]:
        """The function, its source and line there; empty and 0 where these are not known."""
        place = bisect_right(self._starts, address) - 1
        if place < 0:
            return "", "", 0
        start = self._starts[place]
        size, name, source, lines = self._entries[start]
        if address >= start + size:
            return "", "", 0
        line = lines[max(bisect_right(lines, address, key=itemgetter(0)) - 1, 0)][1] if lines else 0
        return name, source, line


def made_code(pid: int, folder: Path) -> MadeCode:
    """What a process tells of the code that it made, by its jitdump or else its map; nothing if it has none.

    Such files count only where they belong to the user: anybody may write to `/tmp`.

    :param folder: where the program ran.
    """
    for place in (folder, MAPS):
        with contextlib.suppress(OSError), _own(place / f"jit-{pid}.dump", _MAX_DUMP) as file:
            if found := dict(_dumped(file)):
                return MadeCode(found)
    with contextlib.suppress(OSError), _own(MAPS / f"perf-{pid}.map", _MAX_BYTES) as file:
        return MadeCode(dict(_mapped(file)))
    return MadeCode({})


@contextlib.contextmanager
def _own(path: Path, most: int) -> Iterator[BinaryIO]:
    """A file of the user.

    :raises OSError: where there is none.
    """
    with open_regular(path, most) as file:
        if os.fstat(file.fileno()).st_uid != os.geteuid():
            raise PermissionError(path)
        yield file


def _mapped(file: BinaryIO) -> Iterator[tuple[int, MadeFunction]]:
    for line in file:
        words = line.rstrip(b"\n").split(b" ", 2)
        with contextlib.suppress(ValueError, IndexError):
            start, size = int(words[0], 16), int(words[1], 16)
            yield start, _function(start, size, words[2].decode("utf-8", "replace"), b"")


def _dumped(file: BinaryIO) -> Iterator[tuple[int, MadeFunction]]:
    """The functions of a jitdump of this machine; what is cut off or damaged ends it."""
    head = file.read(_HEADER.size)
    if len(head) < _HEADER.size or (fields := _HEADER.unpack(head))[0] != _JITDUMP:
        return
    file.seek(fields[2])
    described: dict[int, bytes] = {}
    by_address: dict[int, MadeFunction] = {}
    while len(head := file.read(_RECORD.size)) == _RECORD.size:
        kind, size, _ = _RECORD.unpack(head)
        if size < _RECORD.size:
            return
        rest = size - _RECORD.size
        data = file.read(min(rest, _LOAD.size + _MOST_NAME) if kind == _LOADED else rest)
        file.seek(rest - len(data), os.SEEK_CUR)
        if kind == _LOADED and len(data) > _LOAD.size:
            _, _, _, address, length, _ = _LOAD.unpack_from(data)
            name = data[_LOAD.size :].partition(b"\0")[0].decode("utf-8", "replace")
            by_address[address] = _function(address, length, name, described.pop(address, b""))
            yield address, by_address[address]
        elif kind == _MOVED and len(data) >= _MOVE.size:
            _, _, _, before, now, _, _ = _MOVE.unpack_from(data)
            if moved := by_address.get(before):
                shifted = tuple((at - before + now, line) for at, line in moved.lines)
                by_address[now] = moved._replace(lines=shifted)
                yield now, by_address[now]
        elif kind == _DESCRIBED and len(data) >= _DEBUG.size:
            described[_DEBUG.unpack_from(data)[0]] = data


def _function(start: int, size: int, name: str, described: bytes) -> MadeFunction:
    """A function as the maker of its code names and describes it.

    The sources in V8's descriptions are often those of memory that it has freed: they are as long as those in
    its names, which are right.
    """
    if not (v8 := _V8.fullmatch(name)):
        found = sorted(_lines(described, None))
        source = found[0][2] if found else ""
        return MadeFunction(size, name, source, tuple((at, line) for at, line, of in found if of == source))
    function, source, line = v8[1] or "(anonymous)", v8[2], int(v8[3])
    lines = sorted((at - _BEFORE, line) for at, line, _ in _lines(described, len(os.fsencode(source))))
    return MadeFunction(size, function, source, tuple(lines) or ((start, line),))


def _lines(data: bytes, length: int | None) -> Iterator[tuple[int, int, str]]:
    """Addresses with the line and source from there on.

    :param length: of each name in bytes, where that is known.
    """
    at, source = _DEBUG.size, ""
    for _ in range(_DEBUG.unpack_from(data)[1] if data else 0):
        if at + _LINE.size > len(data):
            return
        address, line, _ = _LINE.unpack_from(data, at)
        name = data[at + _LINE.size :][:length] if length else data[at + _LINE.size :].partition(b"\0")[0]
        at += _LINE.size + len(name) + 1
        if name != b"\xff":  # which stands for the one before
            source = name.decode("utf-8", "replace")
        yield address, line, source
