"""Finds allocators that the recorder cannot see: those inside of programs, and those with names of their own.

The recorder stands before functions of shared libraries. What is linked into the program is called directly,
so that its symbols are all that tells of it; a stripped program says nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.elf import DYNAMIC_SYMBOLS, SYMBOLS, Damaged, ElfFile

_OWN: Final = (
    *("malloc", "je_malloc", "_rjem_malloc", "rjem_malloc", "tc_malloc", "mi_malloc", "rpmalloc"),
    *("dlmalloc", "nedmalloc", "sn_malloc", "scalable_malloc", "runtime.mallocgc"),
)
"""The function that allocates, as allocators call it once they are linked into a program."""
_DIRECT: Final = (
    *("mallocx", "rallocx", "je_malloc", "je_mallocx", "tc_malloc", "tc_new", "scalable_malloc"),
    *("mi_malloc", "mi_calloc", "mi_realloc", "mi_new", "mi_heap_malloc", "mi_malloc_aligned"),
)
"""Functions of shared allocators besides those of C and C++."""
_LOCAL, _DEFAULT = 0, 0  # STB_LOCAL, STV_DEFAULT
_FUNCTION, _NO_TYPE = 2, 0  # STT_FUNC, STT_NOTYPE


class Symbol(NamedTuple):
    """A function in the symbol table of a file.

    :param defined: whether the file has it; otherwise it only calls it.
    :param hidden: whether no other file can replace it.
    """

    name: str
    defined: bool
    hidden: bool


def notes(program: str, libraries: Iterable[str]) -> Iterator[str]:
    """A note for each file with allocations that the recorder cannot see.

    :param program: path of the executable.
    :param libraries: paths of what it has loaded, without runtime libraries.
    """
    for path in (program, *libraries):
        name = os.path.basename(path)
        found = list(functions(path, {*_OWN, *_DIRECT}))
        defined = [one for one in found if one.defined and (one.hidden or path == program)]
        own = {one.name for one in defined if one.name in _OWN}
        direct = {one.name for one in found if not one.defined and one.name in _DIRECT}
        if own:
            yield (
                f"{name} has an allocator of its own ({', '.join(sorted(own))}): what it does not take from "
                "the C library is not in the profile; link it to the shared library of the allocator to "
                "record it"
            )
        if direct:
            yield (
                f"{name} calls {', '.join(sorted(direct))}, which the recorder does not see: what these "
                "allocate is not in the profile; call malloc or new instead to record it"
            )


def functions(path: str, names: Iterable[str]) -> Iterator[Symbol]:
    """The functions of these names in the symbol tables of a 64-bit ELF file; none for any other file."""
    with suppress(OSError, Damaged), open(path, "rb") as file:
        elf = ElfFile(file)
        for kind in (SYMBOLS, DYNAMIC_SYMBOLS):
            if (table := elf.symbols(kind)) is not None:
                yield from _functions(*table, {name.encode() for name in names})


def _functions(symbols: NDArray[Any], text: bytes, names: set[bytes]) -> Iterator[Symbol]:
    positions = {at: name for name in names for at in _ends(text, name)}
    for symbol in symbols[np.isin(symbols["name"], list(positions))] if positions else ():
        if int(symbol["info"]) & 0xF in (_FUNCTION, _NO_TYPE):
            hidden = int(symbol["info"]) >> 4 == _LOCAL or int(symbol["other"]) & 3 != _DEFAULT
            yield Symbol(positions[int(symbol["name"])].decode(), bool(symbol["section"]), hidden)


def _ends(text: bytes, name: bytes) -> Iterator[int]:
    """Where `name` is followed by the end of a string: names share their ends."""
    at = text.find(name + b"\0")
    while at >= 0:
        yield at
        at = text.find(name + b"\0", at + 1)
