"""Instructions as the C library of capstone lays them out, without an object of Python for each.

The binding of capstone makes an object of ctypes for every instruction and one for each of its fields, which
takes longer than decoding. Here an array of instructions is copied at once, and read by its layout.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from typing import Any, Final

_AT_ONCE: Final = 4096
"""Instructions that are decoded by one call; each takes a quarter of a kilobyte meanwhile."""


class Batch:
    """Some instructions, one after the other."""

    def __init__(self, layout: _Layout, data: bytes) -> None:
        self._layout = layout
        self._data = data

    def __iter__(self) -> Iterator[tuple[int, int, bytes]]:
        """Of each instruction the address, the size, and its bytes with others after them."""
        return self._layout.head.iter_unpack(self._data)

    def text(self, number: int) -> tuple[str, str]:
        """The mnemonic and the operands (Intel's syntax) of an instruction."""
        start = number * self._layout.size
        return self._text(start + self._layout.mnemonic), self._text(start + self._layout.operands)

    def _text(self, start: int) -> str:
        return self._data[start : self._data.index(0, start)].decode("ascii")


class Disassembler:
    """Decodes machine code; bytes that are no instruction become one of the mnemonic `.byte`."""

    def __init__(self) -> None:
        from capstone import CS_ARCH_X86, CS_MODE_64, Cs, _cs, _cs_insn

        self._capstone = Cs(CS_ARCH_X86, CS_MODE_64)
        self._capstone.skipdata = True
        self._library = _cs
        self._kind = _cs_insn
        self._layout = _Layout(_cs_insn)

    def batches(self, code: bytes, address: int) -> Iterator[Batch]:
        """The instructions of some code that is at an address."""
        done = 0
        while done < len(code):
            found = ctypes.POINTER(self._kind)()
            count = self._library.cs_disasm(
                self._capstone.csh, code[done:], len(code) - done, address + done, _AT_ONCE,
                ctypes.byref(found),
            )  # fmt: skip
            if not count:
                return
            last = found[count - 1]
            done = last.address + last.size - address
            data = ctypes.string_at(found, count * self._layout.size)
            self._library.cs_free(found, count)
            yield Batch(self._layout, data)


class _Layout:
    """Where the fields of an instruction are, as the binding of this release of capstone says."""

    def __init__(self, kind: Any) -> None:
        address, size, data = kind.address, kind.size, kind.bytes
        self.size = ctypes.sizeof(kind)
        self.mnemonic: int = kind.mnemonic.offset
        self.operands: int = kind.op_str.offset
        gaps = size.offset - address.offset - address.size, data.offset - size.offset - size.size
        rest = self.size - data.offset - data.size
        self.head = struct.Struct(f"={address.offset}xQ{gaps[0]}xH{gaps[1]}x{data.size}s{rest}x")
