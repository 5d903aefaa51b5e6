"""Functions of ELF files by their symbol tables, and the debug information that packages keep apart."""

from __future__ import annotations

import contextlib
import io
import os
import re
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from shutil import which
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from perun.core import atomic
from perun.core.process import programs
from perun.native.elf import (
    DYNAMIC_SYMBOLS,
    EXECUTABLE,
    SYMBOL,
    SYMBOLS,
    Damaged,
    Elf,
    ElfFile,
    checked,
    read_elf,
    text_at,
)

# The functions of an ELF file, as its symbol tables have them, each with the addresses of its code.
#
# A stripped file has only the symbols that others use (`.dynsym`); the nearest of these says nothing of an
# address between them. So a symbol counts for the bytes that it says it has. The other functions come from
# the file with the debug information, or from `.gnu_debugdata`, a small symbol table that Fedora and others
# leave in stripped files (compressed by xz).

MAX_DEBUGDATA: Final = 64 * 2**20
"""The most bytes that `.gnu_debugdata` may have when it is unpacked."""
_MAX_MEMORY: Final = 128 * 2**20
"""Bytes of memory for unpacking it; what xz makes with its highest level needs 65 MiB."""
_ENTRY: Final = np.dtype([(name, f"<u{size}") for name, size in SYMBOL])
_NO_TYPE, _FUNCTION, _INDIRECT_FUNCTION = 0, 2, 10
_LOCAL: Final = 0
_SMALL_TABLE: Final = ".gnu_debugdata"
_LOOK_BACK: Final = 64


class SymbolTable:
    """The functions of a file.

    :param paths: the file, and that with its debug information if it is another one. What cannot be read, or
        is not for a 64-bit little-endian machine, has no functions.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        parts = [part for path in paths for part in _tables(path)]
        self._texts = [text for _, text, _, _ in parts]
        symbols = [symbols for symbols, _, _, _ in parts] or [np.empty(0, _ENTRY)]
        every = np.concatenate(symbols)
        table = np.repeat(np.arange(len(symbols)), [len(one) for one in symbols])
        limits = np.concatenate([ends for _, _, _, ends in parts] or [np.empty(0, np.uint64)])
        whole = np.repeat([complete for _, _, complete, _ in parts] or [False], [len(one) for one in symbols])
        order = np.argsort(every["value"], kind="stable")
        self._symbols, self._table = every[order], table[order]
        self._starts = self._symbols["value"]
        self._ends = _ends(self._symbols, limits[order], whole[order])
        # Before the largest end so far an address may lie in a symbol that began before some that have ended.
        self._furthest = np.maximum.accumulate(self._ends) if len(self._ends) else self._ends

    def __len__(self) -> int:
        return len(self._symbols)

    def at(self, address: int) -> tuple[str, ...]:
        """The symbols of the function that has the address, the best known first; none for no function."""
        place = int(np.searchsorted(self._starts, address, "right")) - 1
        for number in range(place, max(-1, place - _LOOK_BACK), -1):
            if self._furthest[number] <= address:
                break
            if self._ends[number] > address:
                return self._aliases(int(self._starts[number]), address)
        return ()

    def _aliases(self, start: int, address: int) -> tuple[str, ...]:
        """The symbols that begin at `start` and cover the address: global ones first, then the plainest."""
        first = int(np.searchsorted(self._starts, start, "left"))
        last = int(np.searchsorted(self._starts, start, "right"))
        found = []
        for number in range(first, last):
            if self._ends[number] > address and (name := self._name(number)):
                symbol = self._symbols[number]
                rank = int(symbol["info"]) & 0xF == _NO_TYPE, int(symbol["info"]) >> 4 == _LOCAL
                found.append((rank, len(name) - len(name.lstrip("_")), len(name), name))
        return tuple(dict.fromkeys(name for *_, name in sorted(found)))

    def _name(self, number: int) -> str:
        text = self._texts[int(self._table[number])]
        name = text_at(text, int(self._symbols[number]["name"]))
        return name.decode("utf-8", "replace").partition("@")[0]


_Part = tuple[NDArray[Any], bytes, bool, NDArray[np.uint64]]
"""Symbols, their names, whether the table has all symbols of the file, and the end of the section of each."""


def _tables(path: str) -> Iterator[_Part]:
    with contextlib.suppress(OSError, Damaged), open(path, "rb") as file:
        yield from _tables_of(file)


def _tables_of(file: BinaryIO, *, inner: bool = False) -> Iterator[_Part]:
    elf = ElfFile(file)
    # A file has one of each (gABI 4.1). A damaged one that has thousands must not take the memory of all.
    for kind in (SYMBOLS, DYNAMIC_SYMBOLS):
        if (table := elf.symbols(kind)) is not None:
            with checked():
                part = _functions(elf, kind, *table)
            yield part
    small = elf.section(_SMALL_TABLE) if not inner else None
    if small is not None:
        yield from _tables_of(io.BytesIO(unpacked(elf.content(small))), inner=True)


def unpacked(data: bytes) -> bytes:
    """The ELF file in a section `.gnu_debugdata`; empty if it is damaged or exceeds :data:`MAX_DEBUGDATA`."""
    from lzma import LZMADecompressor, LZMAError

    unpacker = LZMADecompressor(memlimit=_MAX_MEMORY)  # the data themselves say how much they need
    try:
        found = unpacker.decompress(data, MAX_DEBUGDATA)
    except LZMAError:
        return b""
    return found if unpacker.eof else b""


def _functions(elf: ElfFile, kind_of_table: int, symbols: NDArray[Any], names: bytes) -> _Part:
    complete = kind_of_table == SYMBOLS
    ends = np.zeros(1 << 16, np.uint64)  # by number of a section; 0 for what holds no code
    for number, one in enumerate(elf.sections):
        if one.flags & EXECUTABLE:
            ends[number] = one.address + one.size
    kind = symbols["info"] & 0xF
    kept = symbols[np.isin(kind, (_FUNCTION, _INDIRECT_FUNCTION)) | ((kind == _NO_TYPE) & complete)]
    limits = ends[kept["section"]]
    inside = limits > kept["value"]
    return kept[inside], names, complete, limits[inside]


def _ends(
    symbols: NDArray[Any], limits: NDArray[np.uint64], complete: NDArray[np.bool_]
) -> NDArray[np.uint64]:
    """Where each symbol ends, in the order of their starts.

    Functions in assembly may say no size: where all symbols are known such a one ends where the next begins.
    """
    starts, sizes = symbols["value"], symbols["size"]
    following = np.searchsorted(starts, starts, "right")
    after = np.append(starts, np.uint64(2**64 - 1))[following] if len(starts) else starts
    open_end = np.where(complete, np.minimum(after, limits), starts)
    return np.where(sizes > 0, np.minimum(starts + sizes, limits), open_end)


# Which package would bring the names that a stripped file lacks.

_PATIENCE: Final = 10.0
_SUFFIX: Final = "-dbgsym"


def debug_packages(paths: Iterable[str], environ: Mapping[str, str]) -> list[str]:
    """The packages of Debian and Ubuntu with the debug information of files of their packages, sorted.

    Empty where the system has no dpkg, or no package has one of the files.
    """
    tool = which("dpkg", path=environ.get("PATH", os.defpath))
    # With /lib a link to /usr/lib, a package may list its files below either.
    names = {name for path in paths for name in (path, os.path.realpath(path))}
    names |= {name.removeprefix("/usr") for name in names if name.startswith("/usr/lib")}
    if not tool or not names:
        return []
    try:
        done = programs.run(
            [tool, "-S", "--", *sorted(names)], environ={**environ, "LC_ALL": "C"}, timeout=_PATIENCE
        )
    except (OSError, programs.TimeoutExpired):
        return []
    owners = [line.split(": ", 1)[0] for line in done.stdout.decode("utf-8", "replace").splitlines()]
    # `libc6:amd64, libc6:i386: /path`; a diversion is told in a sentence.
    found = {owner.partition(":")[0] for line in owners for owner in line.split(", ") if " " not in owner}
    return sorted(f"{name}{_SUFFIX}" for name in found)


# Finds the debug information that packages keep in files of their own.
#
# It is named by the build-id, or by the section `.gnu_debuglink`, as debuggers know it (gdb's manual,
# "Debugging Information in Separate Files"). A file of another build does not count.

DEBUG_FOLDER: Final = "/usr/lib/debug"
"""The folder of the debug information of packages."""


def with_debug_file(elf: Elf | None, path: str) -> Elf | None:
    """An ELF file with the place of its debug information, where that is in another file."""
    if elf is None or elf.has_lines:
        return elf
    return elf._replace(debug_file=debug_file(path, elf.build_id))


def debug_file(path: str, build_id: str) -> str:
    """Path of the separate debug information of the file at `path`; empty where there is none."""
    by_id = os.path.join(DEBUG_FOLDER, ".build-id", build_id[:2], build_id[2:] + ".debug")
    if build_id and _is_of(by_id, build_id, None):
        return by_id
    name, checksum = _debug_link(path)
    folder = os.path.dirname(os.path.realpath(path))
    for place in (folder, os.path.join(folder, ".debug"), DEBUG_FOLDER + folder):
        found = os.path.join(place, name)
        if name and not _is_same(found, path) and _is_of(found, build_id, checksum):
            return found
    return ""


def _debug_link(path: str) -> tuple[str, int]:
    """Name and checksum of the file that `.gnu_debuglink` names; an empty name where there is none."""
    with contextlib.suppress(OSError, Damaged), open(path, "rb") as file:
        elf = ElfFile(file)
        section = elf.section(".gnu_debuglink")
        if section is not None and 5 < section.size < 4096:
            data = elf.content(section)
            name, _, _ = data.partition(b"\0")
            return os.path.basename(os.fsdecode(name)), int.from_bytes(data[-4:], "little")
    return "", 0


def _is_of(path: str, build_id: str, checksum: int | None) -> bool:
    """Whether a file is an ELF file of the same build: by its build-id, else by the checksum of its bytes."""
    found = read_elf(path) if os.path.isfile(path) else None
    if found is None:
        return False
    if build_id and found.build_id:
        return found.build_id == build_id
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return checksum is not None and _checksum(file) == checksum
    return False


def _checksum(file: BinaryIO) -> int:
    found = 0
    while piece := file.read(1 << 20):
        found = zlib.crc32(piece, found)
    return found


def _is_same(one: str, other: str) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samefile(one, other)
    return False


# Fetches debug information from the servers that the user names in DEBUGINFOD_URLS, by build-id.
#
# Nothing is asked for unless that variable is set. What was fetched stays in the cache of the user. See
# https://sourceware.org/elfutils/Debuginfod.html.

URLS: Final = "DEBUGINFOD_URLS"
MAX_SIZE: Final = 512 * 2**20
"""Bytes of one file; a larger one is not fetched."""
CACHED_FILES: Final = 50
"""How many files the cache holds; the one that was not used for the longest time goes first."""
_WHOLE: Final = 90.0
"""Seconds for all files of a run."""
_PIECE: Final = 1 << 20
_BUILD_ID: Final = re.compile(r"[0-9a-f]{8,64}")


class Debuginfod:
    """The servers of a run.

    :param environ: whose DEBUGINFOD_URLS has their addresses, with blanks between them.
    :param folder: of the cache; None for no cache, and then nothing is fetched.
    :ivar notes: for the user, what could not be fetched.
    """

    def __init__(self, environ: Mapping[str, str], folder: Path | None) -> None:
        found = environ.get(URLS, "").split() if folder else []
        self._servers = [url.rstrip("/") for url in found if url.startswith(("http://", "https://"))]
        self._folder = folder
        self._end = 0.0
        self._given: set[Path] = set()
        self.notes: list[str] = []

    def debug_file(self, build_id: str) -> str:
        """Path of the debug information of a build-id; empty where no server has it, or none can be asked."""
        if not self._servers or self._folder is None or not _BUILD_ID.fullmatch(build_id):
            return ""
        path = self._folder / f"{build_id}.debug"
        self._given.add(path)
        if _has_build_id(path, build_id):
            with contextlib.suppress(OSError):
                os.utime(path)
            return str(path)
        self._end = self._end or time.monotonic() + _WHOLE
        for server in list(self._servers):
            if self._fetch(server, build_id, path):
                self._prune()
                return str(path)
        return ""

    def _fetch(self, server: str, build_id: str, path: Path) -> bool:
        """Whether the server has the file, which is in the cache then."""
        from http.client import HTTPException
        from urllib.request import HTTPError, urlopen

        if time.monotonic() >= self._end:
            self._give_up(server, f"all files together took more than {_WHOLE:g} s")
            return False
        try:
            with urlopen(f"{server}/buildid/{build_id}/debuginfo", timeout=_PATIENCE) as answer:
                path.parent.mkdir(parents=True, exist_ok=True)
                with atomic.writing(path) as file:
                    size = 0
                    # `read` would wait for all of a piece, however slowly its bytes come.
                    while piece := answer.read1(_PIECE):
                        size += len(piece)
                        if size > MAX_SIZE or time.monotonic() >= self._end:
                            raise ValueError("the file is too large, or takes too long")
                        file.write(piece)
        except HTTPError as refusal:
            refusal.close()
            return False  # it has no such file, or will not give it
        except (OSError, HTTPException, ValueError) as problem:
            self._give_up(server, str(getattr(problem, "reason", problem)))
            return False
        if _has_build_id(path, build_id):
            return True
        with contextlib.suppress(OSError):
            path.unlink()
        self._give_up(server, f"what it sent is not the debug information of {build_id}")
        return False

    def _give_up(self, server: str, why: str) -> None:
        self._servers.remove(server)
        self.notes.append(
            f"no debug information came from {server} ({why}), so that names may be missing; unset {URLS} to "
            "ask nobody"
        )

    def _prune(self) -> None:
        """Remove the oldest files of the cache, but for those of this run, which are read when it has all."""
        assert self._folder is not None
        ages = []
        for path in self._folder.glob("*.debug"):
            with contextlib.suppress(OSError):  # another process removes files, too
                ages.append((path.stat().st_mtime, path))
        for _, path in sorted(ages)[: max(0, len(ages) - CACHED_FILES)]:
            if path not in self._given:
                with contextlib.suppress(OSError):
                    path.unlink()


def _has_build_id(path: Path, build_id: str) -> bool:
    found = read_elf(str(path)) if path.is_file() else None
    return found is not None and found.build_id == build_id
