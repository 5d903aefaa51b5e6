"""Machine code to instructions, and what kind of instruction each is."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from perun.callgraph.image import Image

ORDINARY, JUMP, BRANCH, CALL, END, PADDING = range(6)
"""Kinds of instructions: none of the others, a jump, a jump under a condition, a call, one that nothing comes
after (return, trap), and one that does nothing, of which there are some or not depending on addresses."""
_KINDS: Final = {
    "jmp": JUMP, "call": CALL, "ret": END, "retf": END, "iretq": END, "hlt": END, "ud0": END, "ud1": END,
    "ud2": END, "int3": END, "loop": BRANCH, "loope": BRANCH, "loopne": BRANCH, "nop": PADDING,
    "fnop": PADDING,
}  # fmt: skip
_RELATIVE: Final = re.compile(r"\[rip(?: ([+-]) (0x[0-9a-f]+|\d+))?\]")

Instruction = tuple[int, int, str, str]
"""Address, size in bytes, mnemonic and operands (Intel's syntax)."""


class Decoder:
    """Decodes ranges of an image; bytes that are no instruction become one of the mnemonic `.byte`."""

    def __init__(self, image: Image) -> None:
        from capstone import CS_ARCH_X86, CS_MODE_64, Cs

        self._image = image
        self._capstone = Cs(CS_ARCH_X86, CS_MODE_64)
        self._capstone.skipdata = True

    def instructions(self, start: int, end: int) -> list[Instruction]:
        """The instructions from one address to another."""
        return list(self._capstone.disasm_lite(self._image.bytes_at(start, end - start), start))


class _Kinds(dict[str, int]):
    """The kind of each mnemonic with its prefixes, found once."""

    def __missing__(self, mnemonic: str) -> int:
        plain = mnemonic.rpartition(" ")[2]
        found = _KINDS.get(plain, BRANCH if plain.startswith("j") else ORDINARY)
        self[mnemonic] = found
        return found


KIND_OF: Final = _Kinds()


def target_of(operands: str) -> int:
    """The address that a jump or call names; -1 where it is in a register or in memory."""
    return int(operands, 0) if operands[:1].isdecimal() else -1


class Place(NamedTuple):
    """The address that an operand has relative to its instruction, and where in the text it is written."""

    address: int
    start: int
    end: int


def relative_place(instruction: Instruction) -> Place | None:
    """The operand of an instruction that is relative to it (`[rip + 0x10]`)."""
    address, size, _, operands = instruction
    found = _RELATIVE.search(operands)
    if found is None:
        return None
    sign, distance = found.groups()
    offset = int(distance, 0) if distance else 0
    return Place(address + size + (-offset if sign == "-" else offset), *found.span())
