"""The functions of an ELF file, as its symbol tables have them, each with the addresses of its code.

A stripped file has only the symbols that others use (`.dynsym`); the nearest of these says nothing of an
address between them. So a symbol counts for the bytes that it says it has. The other functions come from the
file with the debug information, or from `.gnu_debugdata`, a small symbol table that Fedora and others leave
in stripped files (compressed by xz).
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from perun.elf import DYNAMIC_SYMBOLS, EXECUTABLE, SYMBOL, SYMBOLS, Damaged, ElfFile, checked, text_at

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
