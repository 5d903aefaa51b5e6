"""Where the counters of gcc lie in a program or library: read from its file, which need not run for it.

For each function gcc writes a description, `__gcov_.NAME`, which says what the function is known by in the
`.gcno` file and where its counters are. Names do not matter: functions of two files may have the same one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy

from perun.native.elf import DYNAMIC_SYMBOLS, PT_LOAD, SYMBOLS, Damaged, ElfFile, checked, text_at

_RELOCATION: Final = numpy.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])
_RELATIVE: Final = {62: 8, 183: 1027}
"""Of x86-64 and arm64: the type of a relocation that is an address in the file."""
_SHARED: Final = 3
"""Type of a file that may be loaded anywhere: ET_DYN."""


class Function(NamedTuple):
    """Counters of arcs of one function.

    :ivar notes: the `.gcno` file of its object, as it was called when it was compiled.
    :ivar stamp: of that file.
    :ivar key: what the function is known by in it: number, checksum of its place, checksum of its graph.
    :ivar address: of the first of its counters of eight bytes, in the module.
    :ivar counters: how many there are.
    """

    notes: str
    stamp: int
    key: tuple[int, int, int]
    address: int
    counters: int


class Module(NamedTuple):
    """A program or a library: what it has of coverage.

    :ivar kind: `"gcov"`, `"edges"` (our own counters), `"afl"`, or `""` if it was compiled without.
    :ivar dynamic: whether libraries can be loaded into it.
    :ivar forks: whether functions that are counted start processes, which write their counters into files.
    """

    path: Path
    kind: str
    dynamic: bool
    forks: bool
    clang: bool
    functions: list[Function]


class NotElf(Damaged):
    """The file is no program or library for 64-bit little-endian Linux."""


def read_module(path: Path) -> Module:
    """What the file at `path` has of coverage.

    :raises NotElf: if it is something else, e.g. a script.
    :raises OSError: if it cannot be read.
    """
    with path.open("rb") as file:
        try:
            with checked():
                elf = ElfFile(file)
                if not elf.is_usual:
                    raise NotElf("it is not for a 64-bit little-endian processor")
                return _Reader(elf).module(path)
        except Damaged as problem:
            raise NotElf(str(problem)) from None


class _Reader:
    def __init__(self, elf: ElfFile) -> None:
        self._elf = elf
        self._segments = [(one.address, elf.content(one)) for one in elf.segments if one.type == PT_LOAD]
        self._relocated = dict(self._relocations())

    def module(self, path: Path) -> Module:
        names, symbols = self._symbols(SYMBOLS)
        dynamic, _ = self._symbols(DYNAMIC_SYMBOLS)
        known = set(names) | set(dynamic)
        return Module(
            path,
            _kind(known),
            self._elf.section(".interp") is not None or self._elf.type == _SHARED,
            any(name in known for name in (b"__gcov_fork", b"__gcov_execv", b"__gcov_execvp", b"__gcov_execl",
                                           b"__gcov_execlp", b"__gcov_execle", b"__gcov_execve")),
            any(name.startswith(b"llvm_gcov") or name.startswith(b"__llvm_gcov") for name in known),
            [
                function
                for name, symbol in zip(names, symbols, strict=True)
                if name.startswith(b"__gcov_.") and (function := self._function(int(symbol["value"])))
            ],
        )  # fmt: skip

    def _symbols(self, kind: int) -> tuple[list[bytes], Iterable[Any]]:
        table = self._elf.symbols(kind)
        if table is None:
            return [], ()
        symbols, text = table
        return [text_at(text, int(one["name"])) for one in symbols], symbols

    def _relocations(self) -> list[tuple[int, int]]:
        section = self._elf.section(".rela.dyn")
        kind = _RELATIVE.get(self._elf.machine)
        if section is None or kind is None:
            return []
        every = numpy.frombuffer(self._elf.content(section), _RELOCATION)
        relative = every[every["info"] == kind]
        return list(zip(relative["offset"].tolist(), relative["addend"].tolist(), strict=True))

    def _function(self, address: int) -> Function | None:
        """The description at `address`: see `struct gcov_fn_info` and `struct gcov_info` in the debugger."""
        info = self._pointer(address)
        count = self._word(address + 24)
        values = self._pointer(address + 32)
        notes = self._text(self._pointer(info + 24))
        if not info or not values or not notes.endswith(".gcda"):
            return None
        key = (self._word(address + 8), self._word(address + 12), self._word(address + 16))
        return Function(notes[: -len("gcda")] + "gcno", self._word(info + 16), key, values, count)

    def _pointer(self, address: int) -> int:
        found = self._relocated.get(address)
        return int.from_bytes(self._bytes(address, 8), "little") if found is None else found

    def _word(self, address: int) -> int:
        return int.from_bytes(self._bytes(address, 4), "little")

    def _text(self, address: int) -> str:
        return os.fsdecode(self._bytes(address, 4096).partition(b"\0")[0])

    def _bytes(self, address: int, size: int) -> bytes:
        for start, data in self._segments:
            if start <= address < start + len(data):
                return bytes(data[address - start : address - start + size])
        return b""


def _kind(known: set[bytes]) -> str:
    if b"__afl_area_ptr" in known or b"__afl_manual_init" in known:
        return "afl"
    if b"__sanitizer_cov_trace_pc_guard" in known:
        return "edges"
    if b"__gcov_init" in known or b"__gcov_exit" in known or b"llvm_gcov_init" in known:
        return "gcov"
    return ""
