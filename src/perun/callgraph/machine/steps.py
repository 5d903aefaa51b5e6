"""What following the registers needs to know of each form of instructions, as arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.callgraph.machine.decode import CALL, END, Form
from perun.callgraph.machine.operands import FLAGS, REGISTERS, Operands, without_numbers

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


class Table(NamedTuple):
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


class Steps:
    """The steps of the forms of a decoder."""

    def __init__(self, forms: Sequence[Form]) -> None:
        self._forms = forms
        self._operands = Operands()
        self._shapes: dict[str, tuple[str, int]] = {}
        self._rows: dict[_Step, int] = {}
        self._row_of = np.zeros(0, np.int64)
        self._numbers = np.zeros(0, np.uint64)
        self._known = 0

    def of(self, forms: Ints) -> tuple[Ints, Numbers, Table]:
        """Of instructions by the numbers of their forms the rows in the table, and numbers for their shapes;
        and the table."""
        fresh = self._forms[self._known :]
        found = [self._learnt(form) for form in fresh]
        self._known += len(fresh)
        self._row_of = np.append(self._row_of, np.array([row for row, _ in found], np.int64))
        self._numbers = np.append(self._numbers, np.array([number for _, number in found], np.uint64))
        return self._row_of[forms], self._numbers[forms], self._table()

    def _learnt(self, form: Form) -> tuple[int, int]:
        """The row of a form, and the number of its shape."""
        text, numbers = without_numbers(form.line)
        known = self._shapes.get(text)
        if known is None:
            known = self._shapes[text] = self._shape(form, text)
        shape, row = known
        return row, number_of(" ".join((shape, *numbers)))

    def _shape(self, form: Form, text: str) -> tuple[str, int]:
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

    def _table(self) -> Table:
        steps = list(self._rows)
        width = 1 + max((column for step in steps for column in (*step.reads, *step.writes)), default=0)
        width = max(width, PASSING, 1 + max(FIXED))
        return Table(
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
