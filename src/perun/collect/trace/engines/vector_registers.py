"""Whether a function reads vector registers after a call, which the call may have changed.

By the calling convention a call may change all of them (System V ABI, AMD64 supplement 1.0, section 3.2.1),
so that code that reads one relies on more: that the called function leaves it alone, as GCC finds out with
`-fipa-ra`. This follows which registers a call may have changed along all paths through the machine code.
What is not known counts as changed, and as read: the parts of a function that no jump in it leads to, those
behind jumps to computed addresses, and operands of instructions that are not known to be written only.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from typing import Final, NamedTuple

_REGISTER: Final = re.compile(rb"%(?:[xyz]mm(\d+)|k([0-7]))")
_DESTINATION: Final = re.compile(rb"%[xyz]mm(\d+)\s*$")
_VECTORS: Final = 32
ALL: Final = (1 << (_VECTORS + 8)) - 1
"""A bit for each vector register, and for each mask register behind them."""
_RESULTS: Final = 0b11
"""The registers in which results are: xmm0 and xmm1."""
_CLEARING: Final = re.compile(rb"v?(pxor[dq]?|xorp[sd]|pcmpeq[bwdq]|psub[bwdq])")
"""With one register as all operands these have the same result whatever was in it."""
_MOVING: Final = re.compile(rb"v?mov(aps|apd|ups|upd|dqa|dqu|d|q|ss|sd|ddup|s[lh]dup|nt\w*)(8|16|32|64)?")
_WRITING: Final = re.compile(
    rb"v(mov|add|sub|mul|div|max|min|sqrt|xor|and|or|cvt|unpck|shuf|cmp|round|broadcast|insert"
    rb"|extract|permil|perm2|p(xor|andn?|or|add|sub|mul[lhu]|min|max|broadcast|shuf|unpck|cmp|s[lr][la]|insr)).*"
)
"""Those of three operands that write the last one only."""


class Instruction(NamedTuple):
    """A machine instruction as objdump prints it."""

    address: int
    name: bytes
    operands: bytes


def keeps_over_calls(code: Sequence[Instruction], without_result: Container[int]) -> bool:
    """Whether a function may read a vector register as it was before a call.

    :param code: its instructions in the order of their addresses.
    :param without_result: addresses of functions that return nothing in vector registers.
    """
    places = {one.address: place for place, one in enumerate(code)}
    computed = any(one.name == b"jmp" and one.operands.startswith(b"*") for one in code)
    known: dict[int, int] = {}
    waiting = [(0, ALL if computed else 0)] if code else []
    if computed:
        waiting += [(places[at], ALL) for one in code if (at := target_of(one)) in places]
    rest = (place for place, one in enumerate(code) if not _is_padding(one))
    while True:
        if waiting:
            place, changed = waiting.pop()
        elif (next_place := next((place for place in rest if place not in known), -1)) >= 0:
            place, changed = next_place, ALL
        else:
            return False
        while place < len(code) and (place not in known or changed & ~known[place]):
            changed |= known.get(place, 0)
            known[place] = changed
            one = code[place]
            read, written = _used(one)
            if read & changed:
                return True
            changed &= ~written
            target = target_of(one)
            if one.name.startswith(b"call"):
                changed = ALL if target in without_result else ALL & ~_RESULTS
            elif one.name.startswith((b"j", b"loop")):
                if target in places:
                    waiting.append((places[target], changed))
                if one.name == b"jmp":
                    break
            elif one.name.startswith((b"ret", b"ud2", b"hlt")):
                break
            place += 1


def target_of(one: Instruction) -> int:
    """The address to which an instruction jumps or that it calls; -1 where it has none that is fixed."""
    if not one.name.startswith((b"j", b"call", b"loop")):
        return -1
    text = one.operands.strip()
    return int(text, 16) if re.fullmatch(rb"[0-9a-f]+", text) else -1


def _is_padding(one: Instruction) -> bool:
    """Whether an instruction does nothing, as those between blocks that are aligned."""
    return one.name.startswith(b"nop") or (one.name in (b"cs", b"data16") and b"nop" in one.operands)


def _used(one: Instruction) -> tuple[int, int]:
    """The registers that an instruction reads, and those that it writes."""
    registers = [_bit(found) for found in _REGISTER.finditer(one.operands)]
    if not registers:
        return 0, 0
    read = 0
    for register in registers:
        read |= register
    found = _DESTINATION.search(one.operands)
    if not found:
        return read, 0
    written = 1 << int(found[1])
    if b"{" in one.operands:  # with a mask the rest of the last operand stays as it is
        return read, written
    if len(registers) > 1 and len(set(registers)) == 1 and _CLEARING.fullmatch(one.name):
        return 0, written
    merges = one.name in (b"movss", b"movsd") and len(registers) > 1
    if (_MOVING.fullmatch(one.name) and not merges) or _WRITING.fullmatch(one.name):
        others = 0
        for register in registers[:-1]:
            others |= register
        return others, written
    return read, written


def _bit(found: re.Match[bytes]) -> int:
    return 1 << (int(found[1]) if found[1] else _VECTORS + int(found[2]))
