"""Functions up to the names of registers and the order of independent instructions.

Each instruction gets a number that is made of its shape and of the numbers of the instructions whose results
it uses (value numbering; Cocke, Schwartz 1970). So neither the registers in between nor the order matter.
That holds within a block; of what comes from other blocks only the register is known. Registers are told
apart by all of their uses, as by one step of colour refinement (Weisfeiler, Leman 1968): a renaming leaves
the numbers as they are.

What the calling convention (System V ABI, x86-64) says of registers is kept: arguments and results have
their own registers, and swapping two arguments is a change.

All blocks of many functions are numbered together, by array operations: first the first instruction of each
block, then the second one of each block that has two ... What the numbers are does not depend on that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.native.callgraph.decode import InstructionDecoder
from perun.native.callgraph.flow import Flow
from perun.native.callgraph.registers import (
    ARGUMENTS,
    FIXED,
    FLAGS_COLUMN,
    PASSING,
    Ints,
    Numbers,
    RegisterSteps,
    StepTable,
    number_of,
)

# The instructions of many functions as arrays, and what the registers of each function are used for.

Flags = NDArray[np.bool_]
_FIRST_ARGUMENT: Final = 16
"""The number of the register of the first argument; those of the others come after it."""
_READ, _WRITTEN = (np.uint64(number_of(name)) for name in ("read", "written"))


class BasicBlocks(NamedTuple):
    """The instructions of some functions. Each row is a block; those of a function come one after the other.

    :ivar step: for each instruction its row in the table. :ivar number: of its shape, and of what is at the
        address that it names. :ivar block: the row of its block.
    :ivar start: for each block its first instruction. :ivar length: how many it has.
    :ivar function: the number of its function. :ivar place: its number among the blocks of that, from 0.
    """

    step: Ints
    number: Numbers
    block: Ints
    start: Ints
    length: Ints
    function: Ints
    place: Ints
    table: StepTable


class Uses(NamedTuple):
    """What registers are used for; shape (functions, registers).

    :ivar numbers: of all that is done with a register when blocks begin and end.
    :ivar incoming: whether some block reads it as another one left it.
    :ivar fixed: its number where that does not depend on its uses, else 0: an argument, or the same register
        in all functions.
    """

    numbers: Numbers
    incoming: Flags
    fixed: Numbers


class _Events(NamedTuple):
    """Reads or writes of registers that are none of FIXED: the instruction, the how many-th register it is
    there, and the register, as its column in the row of its block."""

    instruction: Ints
    which: Ints
    key: Ints


def mixed(numbers: Numbers) -> Numbers:
    """Other numbers of 64 bits, each bit of which depends on all bits (the end of SplitMix64; Steele, Lea,
    Flood 2014)."""
    found: Numbers = numbers >> np.uint64(30)
    found ^= numbers  # in place: most of the time is that of memory
    found *= np.uint64(0xBF58476D1CE4E5B9)
    found ^= found >> np.uint64(27)
    found *= np.uint64(0x94D049BB133111EB)
    found ^= found >> np.uint64(31)
    return found


def counted(lengths: Ints) -> Ints:
    """0, 1 ... for each length, one after the other."""
    counts: Ints = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return counts


def uses_of(code: BasicBlocks) -> Uses:
    """The uses of the registers of all functions."""
    width = code.table.width
    reads = _events(code, code.table.read_counts, code.table.reads)
    writes = _events(code, code.table.write_counts, code.table.writes)
    # Of several values for one index the last one stays: the first and the last write of each row.
    first = np.full(len(code.start) * width, len(code.step))
    first[writes.key[::-1]] = writes.instruction[::-1]
    last = np.full(len(first), -1)
    last[writes.key] = writes.instruction
    fresh = reads.instruction <= first[reads.key]
    reads = _Events(*(column[fresh] for column in reads))
    written = np.flatnonzero(last >= 0)

    shape = (int(code.function[-1]) + 1, width)
    numbers, fixed = np.zeros((2, *shape), np.uint64)
    incoming = np.zeros(shape, np.bool_)
    place = mixed(code.place.astype(np.uint64))
    for keys, instructions, salt in (
        (reads.key, reads.instruction, _READ + reads.which.astype(np.uint64)),
        (written, last[written], _WRITTEN),
    ):
        rows = keys // width
        found = mixed(mixed(code.number[instructions] + salt) ^ place[rows])
        np.add.at(numbers, (code.function[rows], keys % width), found)
    rows = reads.key // width
    incoming[code.function[rows], reads.key % width] = True
    _fix_arguments(code, reads, fixed)
    for column, number in FIXED.items():
        fixed[:, column] = number
    return Uses(numbers, incoming, fixed)


def _events(code: BasicBlocks, counts: Ints, columns: Ints) -> _Events:
    own = counts[code.step]
    instruction, which = np.repeat(np.arange(len(own)), own), counted(own)
    column = columns[code.step[instruction], which]
    free = ~np.isin(column, list(FIXED))
    key = code.block[instruction] * code.table.width + column
    return _Events(instruction[free], which[free], key[free])


def _fix_arguments(code: BasicBlocks, reads: _Events, fixed: Numbers) -> None:
    """Number the registers of arguments that the first block of a function reads before it writes them, and
    no later than its first call."""
    calls = np.flatnonzero(code.table.is_call[code.step])
    first_call = np.full(len(code.start), len(code.step))
    first_call[code.block[calls][::-1]] = calls[::-1]
    rows, columns = np.divmod(reads.key, code.table.width)
    is_argument = (code.place[rows] == 0) & (columns < len(ARGUMENTS))
    is_argument &= reads.instruction <= first_call[rows]
    rows, columns = rows[is_argument], columns[is_argument]
    fixed[code.function[rows], columns] = (_FIRST_ARGUMENT + columns).astype(np.uint64)


_PASSED: Final = np.array([number_of(f"passed {column}") for column in range(PASSING)], np.uint64)
_BITS: Final = 1 << np.arange(PASSING)


class Colors:
    """Numbers the blocks of functions whose code a decoder has decoded."""

    def __init__(self, decoder: InstructionDecoder) -> None:
        self._steps = RegisterSteps(decoder.forms)
        self._names: dict[str, int] = {}

    def of(self, functions: Sequence[tuple[Flow, Mapping[int, str]]]) -> list[bytes]:
        """For each function 8 bytes for each block, which renamed registers and other orders of instructions
        do not change.

        :param functions: their control flow, and by position what is at the address that an instruction
            names.
        """
        if not any(flow.blocks for flow, _ in functions):
            return [b"" for _ in functions]
        code = self._blocks(functions)
        uses = uses_of(code)
        colors = np.where(uses.fixed, uses.fixed, uses.numbers)
        alike = _with_equal(colors, uses.incoming)
        if alike.any():
            colors = _refined(code, uses, colors, np.flatnonzero(alike[code.function]))
        numbers, _ = _numbered(code, colors, np.arange(len(code.start)))
        ends = np.cumsum([len(flow.blocks) for flow, _ in functions])
        return [one.tobytes() for one in np.split(numbers.astype("<u8"), ends[:-1])]

    def _blocks(self, functions: Sequence[tuple[Flow, Mapping[int, str]]]) -> BasicBlocks:
        forms: list[int] = []
        named: dict[int, int] = {}
        blocks: list[tuple[int, int, int, int]] = []
        for number, (flow, names) in enumerate(functions):
            before = len(forms)
            forms += [form.number for form in flow.code]
            named.update((before + position, self._number_of(name)) for position, name in names.items())
            blocks += [
                (before + block.start, len(block), number, place) for place, block in enumerate(flow.blocks)
            ]
        step, shapes, table = self._steps.of(np.array(forms, np.int64))
        shapes[list(named)] ^= mixed(np.array(list(named.values()), np.uint64))
        start, length, function, place = np.array(blocks, np.int64).T.copy()
        block = np.empty(len(forms), np.int64)
        block[np.repeat(start, length) + counted(length)] = np.repeat(np.arange(len(start)), length)
        return BasicBlocks(step, mixed(shapes), block, start, length, function, place, table)

    def _number_of(self, name: str) -> int:
        found = self._names.get(name)
        if found is None:
            found = self._names[name] = number_of(name)
        return found


def _with_equal(colors: Numbers, incoming: Flags) -> Flags:
    """The functions in which two registers have the same number that blocks read as others left them."""
    function, column = np.nonzero(incoming)
    number = colors[function, column]
    order = np.lexsort((number, function))
    function, number = function[order], number[order]
    equal = (function[1:] == function[:-1]) & (number[1:] == number[:-1])
    found = np.zeros(len(colors), np.bool_)
    found[function[1:][equal]] = True
    return found


def _refined(code: BasicBlocks, uses: Uses, colors: Numbers, rows: Ints) -> Numbers:
    """Numbers of registers that also tell apart those that are used alike, but hold other results at the ends
    of some blocks."""
    _, ends = _numbered(code, colors, rows)
    own = colors[code.function[rows]]
    place = mixed(code.place[rows].astype(np.uint64))
    more = np.where(ends != own, mixed(ends ^ place[:, None]), np.uint64(0))
    found = colors.copy()
    np.add.at(found, code.function[rows], more)
    return np.where(uses.fixed, uses.fixed, found)


def _numbered(code: BasicBlocks, colors: Numbers, rows: Ints) -> tuple[Numbers, Numbers]:
    """For some blocks a number of the instructions, whatever their order, and of the registers as they are at
    the end; and the numbers of these, shape (blocks, registers).

    :param colors: the numbers of the registers of each function when a block begins.
    """
    table, width = code.table, code.table.width
    order = np.argsort(-code.length[rows], kind="stable")
    start, length = code.start[rows][order], code.length[rows][order]
    before = colors[code.function[rows]][order]
    # Two more columns: what is read where a step reads less than others, and where more is written to.
    values = np.zeros((len(rows), width + 2), np.uint64)
    values[:, :width] = before
    flat = values.reshape(-1)
    base = np.arange(len(rows)) * (width + 2)
    fresh = np.zeros(len(rows), np.int64)  # bits of registers that were written, and not yet read
    totals = np.zeros(len(rows), np.uint64)
    active = len(rows)
    for position in range(int(length[0]) if len(rows) else 0):
        active = int(np.searchsorted(-length[:active], -position, "left"))
        at = start[:active] + position
        step, number = code.step[at], code.number[at]
        own = base[:active]
        for which in range(table.reads.shape[1]):
            some = np.flatnonzero(table.read_counts[step] > which)
            if not len(some):
                break
            number[some] = mixed(number[some] ^ flat[own[some] + table.reads[step[some], which]])
        passing = np.flatnonzero(table.passed[step])
        if len(passing):
            bits = fresh[passing] & table.passed[step[passing]]
            passed = mixed(values[passing, :PASSING] ^ _PASSED)
            passed[(bits[:, None] & _BITS) == 0] = 0
            number[passing] = mixed(number[passing] + passed.sum(axis=1))
            fresh[passing] = 0
        fresh[:active] = fresh[:active] & ~table.touched[step] | table.changed[step]
        totals[:active] += mixed(number)
        for which in range(2):
            flat[own + table.writes[step, which]] = number + table.added[step, which]
        many = np.flatnonzero(table.write_counts[step] > 2)
        places = own[many, None] + table.writes[step[many], 2:]
        flat[places] = number[many, None] + table.added[step[many], 2:]
    values[:, FLAGS_COLUMN] = before[:, FLAGS_COLUMN]  # whatever comes last sets them, read or not
    ends = values[:, :width]
    totals += np.where(ends != before, mixed(mixed(before) + ends), np.uint64(0)).sum(axis=1)
    numbers, found = np.empty_like(totals), np.empty_like(ends)
    numbers[order], found[order] = mixed(totals), ends
    return numbers, found
