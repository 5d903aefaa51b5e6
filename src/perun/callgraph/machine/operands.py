"""Which registers an instruction reads and writes, and whether it reads or writes memory."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from perun.callgraph.machine.decode import Form

FLAGS: Final = "flags"
_WORD: Final = re.compile(r"[a-z][a-z0-9]*")
_NUMBER: Final = re.compile(r"\b(0x[0-9a-f]+|\d+)\b")
_READ, _WRITE = 1, 2
_SMALL: Final = frozenset("bwh")
_CLEARING: Final = frozenset({"xor", "sub", "pxor", "xorps", "xorpd", "vpxor", "vxorps", "vxorpd"})
"""Instructions that make zero of two equal operands, whatever these are."""


def _registers() -> dict[str, tuple[str, str]]:
    """For each name of a register the whole register that it is a part of, and which part."""
    found: dict[str, tuple[str, str]] = {}
    for letter in "abcd":
        whole = f"r{letter}x"
        parts = {whole: "q", f"e{letter}x": "d", f"{letter}x": "w", f"{letter}l": "b", f"{letter}h": "h"}
        found |= {name: (whole, part) for name, part in parts.items()}
    for stem in ("si", "di", "bp", "sp"):
        parts = {f"r{stem}": "q", f"e{stem}": "d", stem: "w", f"{stem}l": "b"}
        found |= {name: (f"r{stem}", part) for name, part in parts.items()}
    for number in range(8, 16):
        found |= {f"r{number}{part}": (f"r{number}", part or "q") for part in ("", "d", "w", "b")}
    for number in range(32):
        found |= {f"{kind}mm{number}": (f"xmm{number}", kind) for kind in "xyz"}
    return found | {"rflags": (FLAGS, ""), "eflags": (FLAGS, "")}


REGISTERS: Final = _registers()


class Effects(NamedTuple):
    """What an instruction does, but for which registers it does it with.

    :ivar shape: the instruction with a placeholder for each register. :ivar reads: registers, those that the
        instruction names by their order, then the implied ones. :ivar writes: likewise.
    """

    shape: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    loads: bool
    stores: bool


class _Access(NamedTuple):
    """The same for all instructions of a shape; registers that are named are numbers."""

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    implied_reads: tuple[str, ...]
    implied_writes: tuple[str, ...]
    loads: bool
    stores: bool


def without_numbers(text: str) -> tuple[str, list[str]]:
    """An instruction with `#` for each number, and these."""
    parts = _NUMBER.split(text)
    return "#".join(parts[::2]), parts[1::2]


class Operands:
    """Finds the effects of instructions; those with other registers and numbers only are looked at once."""

    def __init__(self) -> None:
        from capstone import CS_ARCH_X86, CS_MODE_64, Cs

        self._capstone = Cs(CS_ARCH_X86, CS_MODE_64)
        self._capstone.detail = True
        self._accesses: dict[str, _Access] = {}

    def effects(self, form: Form, text: str) -> Effects:
        """The effects of the instructions of a form.

        :param text: the line of the form :func:`without_numbers`.
        """
        mnemonic, operands = form.mnemonic, text[len(form.mnemonic) + 1 :]
        named: list[str] = []
        parts: list[str] = []

        def placeholder(word: re.Match[str]) -> str:
            register = REGISTERS.get(word[0])
            if register is None:
                return word[0]
            named.append(register[0])
            parts.append(register[1])
            return word[0] if register[0] == "rsp" else f"%{register[1]}"

        shape = f"{mnemonic} {_WORD.sub(placeholder, operands)}"
        access = self._accesses.get(shape)
        if access is None:
            access = self._accesses[shape] = self._access(form.code, len(named))
        written = [named[slot] for slot in access.writes]
        read = [named[slot] for slot in access.reads]
        # A part of a register that is written leaves the rest as it was, but for the lower half.
        read += [named[slot] for slot in access.writes if parts[slot] in _SMALL and slot not in access.reads]
        if len(named) > 1 and named[-1] == named[-2] and mnemonic in _CLEARING:
            read = []
        reads, writes = (*read, *access.implied_reads), (*written, *access.implied_writes)
        return Effects(shape, reads, writes, access.loads, access.stores)

    def _access(self, code: bytes, registers: int) -> _Access:
        """What capstone knows of an instruction. Where that is not about `registers` registers, as its text
        is, all of them are read and written."""
        decoded = next(self._capstone.disasm(code, 0), None)
        everything = tuple(range(registers))
        if decoded is None:
            return _Access(everything, everything, (), (), True, True)
        slots, loads, stores = _slots(decoded)
        if len(slots) != registers:
            slots = [_READ | _WRITE] * registers
        return _Access(
            tuple(slot for slot in everything if slots[slot] & _READ),
            tuple(slot for slot in everything if slots[slot] & _WRITE),
            _whole(decoded.reg_name(one) for one in decoded.regs_read),
            _whole(decoded.reg_name(one) for one in decoded.regs_write),
            loads,
            stores,
        )


def _slots(decoded: Any) -> tuple[list[int], bool, bool]:
    """How each register that is named is used, and whether memory is read and written."""
    from capstone.x86 import X86_OP_MEM, X86_OP_REG

    slots: list[int] = []
    used = 0
    for operand in decoded.operands:
        if operand.type == X86_OP_REG:
            slots.append(operand.access)
        elif operand.type == X86_OP_MEM:
            registers = [decoded.reg_name(one) for one in (operand.mem.base, operand.mem.index) if one]
            slots += [_READ for name in registers if name in REGISTERS]
            used |= operand.access
    is_address = decoded.mnemonic == "lea"
    pushes, pops = decoded.mnemonic == "push", decoded.mnemonic == "pop"
    return slots, pops or bool(used & _READ and not is_address), pushes or bool(used & _WRITE)


def _whole(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(REGISTERS[name][0] for name in names if name in REGISTERS))
