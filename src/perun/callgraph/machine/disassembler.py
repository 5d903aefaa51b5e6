"""Instructions as the C library of capstone lays them out, without an object of Python for each.

The binding of capstone makes an object of ctypes for every instruction and one for each of its fields, which
takes longer than decoding. Here an array of instructions is copied at once, and read by its layout. Where a
release of capstone has no such layout under the names that are private to it, its public interface is used.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final

_AT_ONCE: Final = 4096
"""Instructions that are decoded by one call; each takes a quarter of a kilobyte meanwhile."""
_LONGEST: Final = 16
"""Bytes of an instruction, with some to spare."""


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


class PublicBatch:
    """The same of what the public interface of capstone decoded: address, size, mnemonic and operands."""

    def __init__(self, code: bytes, address: int, found: Sequence[tuple[int, int, str, str]]) -> None:
        self._code = code
        self._address = address
        self._found = found

    def __iter__(self) -> Iterator[tuple[int, int, bytes]]:
        for address, size, *_ in self._found:
            start = address - self._address
            yield address, size, self._code[start : start + size].ljust(_LONGEST, b"\0")

    def text(self, number: int) -> tuple[str, str]:
        """As :meth:`Batch.text`."""
        return self._found[number][2], self._found[number][3]


class Disassembler:
    """Decodes machine code; bytes that are no instruction become one of the mnemonic `.byte`."""

    def __init__(self) -> None:
        import capstone

        self._capstone = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
        self._capstone.skipdata = True
        self._layout: _Layout | None = None
        with suppress(AttributeError):
            self._library, self._kind = capstone._cs, capstone._cs_insn
            self._layout = _Layout(self._kind)

    def batches(self, code: bytes, address: int) -> Iterator[Batch | PublicBatch]:
        """The instructions of some code that is at an address."""
        if self._layout is None:
            found = self._capstone.disasm_lite(code, address)
            while part := list(islice(found, _AT_ONCE)):
                yield PublicBatch(code, address, part)
        else:
            yield from self._copied(code, address, self._layout)

    def _copied(self, code: bytes, address: int, layout: _Layout) -> Iterator[Batch]:
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
            data = ctypes.string_at(found, count * layout.size)
            self._library.cs_free(found, count)
            yield Batch(layout, data)


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
