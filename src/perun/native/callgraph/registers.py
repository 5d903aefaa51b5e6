"""Which registers an instruction reads and writes, and whether it reads or writes memory."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.native.callgraph.decode import CALL, END, InstructionForm

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


class RegisterEffects(NamedTuple):
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

    def effects(self, form: InstructionForm, text: str) -> RegisterEffects:
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
        return RegisterEffects(shape, reads, writes, access.loads, access.stores)

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


# What following the registers needs to know of each form of instructions, as arrays.

Ints = NDArray[np.int64]
Numbers = NDArray[np.uint64]

ARGUMENTS: Final = ("rdi", "rsi", "rdx", "rcx", "r8", "r9", *(f"xmm{number}" for number in range(8)))
_RESULTS: Final = ("rax", "rdx", "xmm0", "xmm1")
_LOST: Final = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", FLAGS)
"""Registers that a call may change."""
_MEMORY: Final = "memory"
_PASSING: Final = tuple(dict.fromkeys((*ARGUMENTS, *_RESULTS)))
PASSING: Final = len(_PASSING)
"""The first so many columns are those of arguments and results; in bits of a number they have this order."""
_OTHERS: Final = ("rsp", FLAGS, _MEMORY, *(whole for whole, _ in REGISTERS.values()))
COLUMNS: Final = {name: place for place, name in enumerate(dict.fromkeys((*_PASSING, *_OTHERS)))}
"""The column of each register, and of the memory."""
FIXED: Final = {COLUMNS[name]: number for number, name in enumerate(("rsp", FLAGS, _MEMORY), 1)}
"""The columns of what is the same in all functions, and its number."""
FLAGS_COLUMN: Final = COLUMNS[FLAGS]
_LEFT_BY_CALL: Final = {_MEMORY: 0, "rax": 1}


class _Step(NamedTuple):
    """What an instruction does with registers, as columns.

    :ivar added: for each that it writes what is added to its number, so that several differ.
    :ivar passed: bits of those in which it may pass something on. :ivar touched: bits of those for arguments
        and results that it reads or writes. :ivar changed: of those that it writes.
    """

    is_call: bool
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    added: tuple[int, ...]
    passed: int
    touched: int
    changed: int


class StepTable(NamedTuple):
    """The steps, a row for each; columns of registers that a step has none of are `width` and `width + 1`."""

    width: int
    is_call: NDArray[np.bool_]
    reads: Ints
    read_counts: Ints
    writes: Ints
    write_counts: Ints
    added: Numbers
    passed: Ints
    touched: Ints
    changed: Ints


class RegisterSteps:
    """The steps of the forms of a decoder."""

    def __init__(self, forms: Sequence[InstructionForm]) -> None:
        self._forms = forms
        self._operands = Operands()
        self._shapes: dict[str, tuple[str, int]] = {}
        self._rows: dict[_Step, int] = {}
        self._row_of = np.zeros(0, np.int64)
        self._numbers = np.zeros(0, np.uint64)
        self._known = 0

    def of(self, forms: Ints) -> tuple[Ints, Numbers, StepTable]:
        """Of instructions by the numbers of their forms the rows in the table, and numbers for their shapes;
        and the table."""
        fresh = self._forms[self._known :]
        found = [self._learnt(form) for form in fresh]
        self._known += len(fresh)
        self._row_of = np.append(self._row_of, np.array([row for row, _ in found], np.int64))
        self._numbers = np.append(self._numbers, np.array([number for _, number in found], np.uint64))
        return self._row_of[forms], self._numbers[forms], self._table()

    def _learnt(self, form: InstructionForm) -> tuple[int, int]:
        """The row of a form, and the number of its shape."""
        text, numbers = without_numbers(form.line)
        known = self._shapes.get(text)
        if known is None:
            known = self._shapes[text] = self._shape(form, text)
        shape, row = known
        return row, number_of(" ".join((shape, *numbers)))

    def _shape(self, form: InstructionForm, text: str) -> tuple[str, int]:
        effects = self._operands.effects(form, text)
        is_call = form.kind == CALL
        reads = effects.reads + ((_MEMORY,) if effects.loads or effects.stores or is_call else ())
        writes = effects.writes + ((_MEMORY,) if effects.stores or is_call else ())
        added = tuple(range(len(writes)))
        if is_call:  # but for the memory and the result it leaves nothing in what it may change
            writes = tuple(dict.fromkeys((*writes, *_LOST)))
            added = tuple(_LEFT_BY_CALL.get(one, len(_LEFT_BY_CALL)) for one in writes)
        changed = _bits(writes)
        passed = _bits(ARGUMENTS) if is_call else _bits(_RESULTS) if form.kind == END else 0
        read, written = (tuple(COLUMNS[name] for name in names) for names in (reads, writes))
        step = _Step(is_call, read, written, added, passed, changed | _bits(reads), changed)
        return effects.shape, self._rows.setdefault(step, len(self._rows))

    def _table(self) -> StepTable:
        steps = list(self._rows)
        width = 1 + max((column for step in steps for column in (*step.reads, *step.writes)), default=0)
        width = max(width, PASSING, 1 + max(FIXED))
        return StepTable(
            width,
            np.array([step.is_call for step in steps], np.bool_),
            _padded([step.reads for step in steps], width),
            np.array([len(step.reads) for step in steps], np.int64),
            _padded([step.writes for step in steps], width + 1),
            np.array([len(step.writes) for step in steps], np.int64),
            _padded([step.added for step in steps], 0).astype(np.uint64),
            np.array([step.passed for step in steps], np.int64),
            np.array([step.touched for step in steps], np.int64),
            np.array([step.changed for step in steps], np.int64),
        )


def number_of(text: str) -> int:
    """64 bits for a text, the same everywhere."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "little")


def _bits(names: Sequence[str]) -> int:
    """The bits of those of some registers that arguments and results may be in."""
    return sum(1 << COLUMNS[name] for name in dict.fromkeys(names) if COLUMNS[name] < PASSING)


def _padded(rows: Sequence[tuple[int, ...]], filling: int) -> Ints:
    """An array of rows of different lengths, of two columns at least."""
    length = max(2, *(len(row) for row in rows)) if rows else 2
    return np.array([row + (filling,) * (length - len(row)) for row in rows], np.int64).reshape(-1, length)
