"""Machine code to instructions, and what kind of instruction each is.

A program has millions of instructions but only some ten thousand forms of them, so that what is known of an
instruction is found once for its form. Instructions of the same bytes are not even looked at again.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from perun.native.callgraph.image import Image

# Instructions as the C library of capstone lays them out, without an object of Python for each.
#
# The binding of capstone makes an object of ctypes for every instruction and one for each of its fields,
# which takes longer than decoding. Here an array of instructions is copied at once, and read by its layout.
# Where a release of capstone has no such layout under the names that are private to it, its public interface
# is used.

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


ORDINARY, JUMP, BRANCH, CALL, END, PADDING = range(6)
"""Kinds of instructions: none of the others, a jump, a jump under a condition, a call, one that nothing comes
after (return, trap), and one that does nothing, of which there are some or not depending on addresses."""
_KINDS: Final = {
    "jmp": JUMP, "call": CALL, "ret": END, "retf": END, "iretq": END, "hlt": END, "ud0": END, "ud1": END,
    "ud2": END, "int3": END, "loop": BRANCH, "loope": BRANCH, "loopne": BRANCH, "nop": PADDING,
    "fnop": PADDING,
}  # fmt: skip
_LEADING: Final = (JUMP, BRANCH, CALL)
_RELATIVE: Final = re.compile(r"\[rip(?: ([+-]) (0x[0-9a-f]+|\d+))?\]")
_ADDRESS: Final = re.compile(r"0x[0-9a-f]{5,}")
_INT32: Final = struct.Struct("<i")
_TAILS: Final = (4, 5, 8, 6)
"""How many bytes of an instruction there may be from a distance of 4 bytes on: after it comes nothing, or a
number of 1, 4 or 2 bytes."""


class InstructionForm:
    """What instructions have in common that differ in the addresses they name only.

    :ivar operands: in Intel's syntax, with `[@]` for a place relative to the instruction (`[rip + 0x10]`),
        and nothing for the target of a jump or call.
    :ivar bare: these, with `@` for an address that is a number.
    :ivar kind: one of those above. :ivar is_relative: whether its address is that of such a place.
    :ivar constant: the address that is a number, in programs at a fixed place; -1 for none.
    :ivar line: the mnemonic with the bare operands.
    :ivar number: counts the forms of a decoder. :ivar code: the bytes of some instruction of this form.
    """

    __slots__ = ("bare", "code", "constant", "is_relative", "kind", "line", "mnemonic", "number", "operands")

    def __init__(
        self, mnemonic: str, operands: str, bare: str, constant: int, number: int, code: bytes
    ) -> None:
        self.mnemonic = mnemonic
        self.operands = operands
        self.bare = bare
        self.line = f"{mnemonic} {bare}"
        self.kind = _kind(mnemonic)
        self.is_relative = "[@]" in operands
        self.constant = constant
        self.number = number
        self.code = code


class MachineCode:
    """Decoded instructions, one after the other, without those that do nothing.

    :ivar start: the address of the first one. :ivar end: the address after the last one.
    :ivar addresses: of the instructions. :ivar forms: their forms.
    :ivar special: the positions of those that are not ORDINARY.
    :ivar leads: by position, the address that an instruction names relative to itself: the target of a jump
        or call, or a place.
    :ivar padding: by address of what does nothing, the position of the instruction after it, if any.
    """

    __slots__ = ("addresses", "end", "forms", "leads", "padding", "special", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end
        self.addresses: list[int] = []
        self.forms: list[InstructionForm] = []
        self.special: list[int] = []
        self.leads: dict[int, int] = {}
        self.padding: dict[int, int] = {}

    @property
    def size(self) -> int:
        """Bytes."""
        return self.end - self.start

    def targets(self) -> Iterator[tuple[int, int]]:
        """The position and the target of each jump and call that names it."""
        forms, leads = self.forms, self.leads
        return ((at, leads[at]) for at in self.special if at in leads and not forms[at].is_relative)

    def drop_filling(self) -> None:
        """Take away traps and padding at the end, which fill the space up to the next function."""
        while self.forms and self.forms[-1].mnemonic == "int3":
            self.forms.pop()
            self.special.pop()
            self.end = self.addresses.pop()
        filling = [address for address, at in self.padding.items() if at >= len(self.forms)]
        self.end = min([self.end, *filling])


class InstructionDecoder:
    """Decodes ranges of an image; bytes that are no instruction become one of the mnemonic `.byte`.

    :ivar forms: of all instructions that were decoded, by their numbers.
    """

    def __init__(self, image: Image) -> None:
        self._image = image
        self._disassembler = Disassembler()
        self._known: dict[bytes, tuple[InstructionForm, int | None]] = {}
        self._forms: dict[tuple[str, str], InstructionForm] = {}
        # By the tail and by the other bytes: what comes before a distance says where it is.
        self._distant: dict[int, dict[bytes, InstructionForm]] = {tail: {} for tail in _TAILS}
        self.forms: list[InstructionForm] = []

    def code(self, start: int, end: int) -> MachineCode:
        """The instructions from one address to another."""
        code = MachineCode(start, end)
        addresses, forms, leads, special = code.addresses, code.forms, code.leads, code.special
        known, near, four = self._known, self._distant[_TAILS[0]], _INT32.unpack_from
        form: InstructionForm | None
        for batch in self._disassembler.batches(self._image.bytes_at(start, end - start), start):
            for number, (address, size, data) in enumerate(batch):
                found = known.get(data[:size])
                if found is not None:
                    form, distance = found
                elif size > 4 and (form := near.get(data[: size - 4])) is not None:
                    # Most of those that are new differ in their last four bytes: calls and jumps.
                    (distance,) = four(data, size - 4)
                else:
                    form, distance = self._distant_form(data[:size]) or self._found(
                        address, data[:size], *batch.text(number)
                    )
                if form.kind:
                    if form.kind == PADDING:
                        code.padding[address] = len(forms)
                        continue
                    special.append(len(forms))
                if distance is not None:
                    leads[len(forms)] = address + size + distance
                addresses.append(address)
                forms.append(form)
        return code

    def _found(
        self, address: int, data: bytes, mnemonic: str, operands: str
    ) -> tuple[InstructionForm, int | None]:
        """The form of an instruction, and the distance from its end to the address that it names."""
        distance: int | None = None
        if "rip" in operands and (place := _RELATIVE.search(operands)) is not None:
            sign, text = place.groups()
            distance = int(text, 0) * (-1 if sign == "-" else 1) if text else 0
            operands = f"{operands[: place.start()]}[@]{operands[place.end() :]}"
        elif operands[:1].isdecimal() and _kind(mnemonic) in _LEADING:
            distance = int(operands, 0) - address - len(data)
            operands = ""
        form = self._forms.get((mnemonic, operands))
        if form is None:
            bare, constant = self._without_constant(operands)
            form = InstructionForm(mnemonic, operands, bare, constant, len(self.forms), data)
            self._forms[mnemonic, operands] = form
            self.forms.append(form)
        tails = [tail for tail in _TAILS if len(data) > tail and _distance(data, tail) == distance]
        if len(tails) == 1:
            self._distant[tails[0]][_without(data, tails[0])] = form
        else:
            self._known[data] = form, distance
        return form, distance

    def _distant_form(self, data: bytes) -> tuple[InstructionForm, int] | None:
        """The form of an instruction that differs from a known one in the distance only, and the distance."""
        for tail, forms in self._distant.items():
            form = forms.get(_without(data, tail))
            if form is not None:
                return form, _distance(data, tail)
        return None

    def _without_constant(self, operands: str) -> tuple[str, int]:
        """Operands with `@` for an address that is a number, and that address."""
        found = None if self._image.movable or "0x" not in operands else _ADDRESS.search(operands)
        address = int(found[0], 16) if found is not None else -1
        if found is None or self._image.area(address) is None:
            return operands, -1
        return operands.replace(found[0], "@"), address


def _without(data: bytes, tail: int) -> bytes:
    """An instruction without the 4 bytes that begin `tail` bytes before its end."""
    return data[:-tail] + data[len(data) - tail + 4 :] if tail > 4 else data[:-4]


def _distance(data: bytes, tail: int) -> int:
    distance: int = _INT32.unpack_from(data, len(data) - tail)[0]
    return distance


def _kind(mnemonic: str) -> int:
    plain = mnemonic.rpartition(" ")[2]
    return _KINDS.get(plain, BRANCH if plain.startswith("j") else ORDINARY)
