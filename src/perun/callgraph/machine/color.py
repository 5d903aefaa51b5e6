"""Functions up to the names of registers and the order of independent instructions.

Each instruction gets a number that is made of its shape and of the numbers of the instructions whose results
it uses (value numbering; Cocke, Schwartz 1970). So neither the registers in between nor the order matter.
That holds within a block; of what comes from other blocks only the register is known. Registers are told
apart by all of their uses, as by one step of colour refinement (Weisfeiler, Leman 1968): a renaming leaves
the numbers as they are.

What the calling convention (System V ABI, x86-64) says of registers is kept: arguments and results have
their own registers, and swapping two arguments is a change.

Numbers are hashes of tuples of integers, which Python does not make random.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import Final, NamedTuple

from perun.callgraph.image import Image
from perun.callgraph.machine.decode import CALL, END, KIND_OF, Instruction
from perun.callgraph.machine.flow import Flow
from perun.callgraph.machine.operands import FLAGS, Operands, numbers_in, without_numbers
from perun.callgraph.machine.tokens import Texts

_MASK: Final = (1 << 64) - 1
_ARGUMENTS: Final = ("rdi", "rsi", "rdx", "rcx", "r8", "r9", *(f"xmm{number}" for number in range(8)))
_RESULTS: Final = ("rax", "rdx", "xmm0", "xmm1")
_LOST: Final = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", FLAGS)
"""Registers that a call may change."""
_MEMORY: Final = "memory"
_FIXED: Final = {"rsp": 1, FLAGS: 2, _MEMORY: 3}
"""What is the same in all functions, and its number."""
_LEFT_BY_CALL: Final = {_MEMORY: 0, "rax": 1}
_BITS: Final = {name: 1 << place for place, name in enumerate(dict.fromkeys((*_ARGUMENTS, *_RESULTS)))}
_PASSED: Final = {CALL: sum(_BITS[one] for one in _ARGUMENTS), END: sum(_BITS[one] for one in _RESULTS)}
"""Instructions that pass something on in registers, and the bits of these."""


class _Step(NamedTuple):
    """An instruction as this module needs it.

    :ivar shape: the number of its shape. :ivar written: for each register that it writes what is added to its
        number, so that several differ. :ivar values: what takes the numbers of the registers that it reads
        out of a mapping. :ivar free_reads: those of them that are not :data:`_FIXED`, each with its place
        among them; :ivar free_writes: likewise those that it writes.
    :ivar touched: bits of the registers of arguments and results that it reads or writes.
    :ivar set_: bits of those that it writes.
    """

    shape: int
    kind: int
    written: tuple[tuple[str, int], ...]
    values: Callable[[Mapping[str, int]], object]
    free_reads: tuple[tuple[str, int], ...]
    free_writes: tuple[str, ...]
    touched: int
    set_: int


class Colors:
    """Numbers the instructions of functions of an image."""

    def __init__(self, image: Image) -> None:
        self._operands = Operands(image)
        self._forms: dict[str, tuple[str, _Step]] = {}
        self._steps: dict[str, _Step] = {}

    def of(self, flow: Flow, texts: Texts, lines: Sequence[str]) -> list[str]:
        """For each block of a function a text that renamed registers and other orders do not change."""
        known = self._steps
        for position, line in enumerate(lines):
            if line not in known:
                known[line] = self._step(flow, texts, position)
        steps = [known[line] for line in lines]
        blocks = [steps[block.start : block.stop] for block in flow.blocks]
        fixed = _FIXED | _arguments(blocks[0] if blocks else [])
        uses, incoming = _uses(blocks)
        colors = uses | fixed
        if len({colors[name] for name in incoming}) < len(incoming):
            colors = _refined(blocks, colors) | fixed
        return [f"{_number_of_block(block, colors)[0]:x}" for block in blocks]

    def _step(self, flow: Flow, texts: Texts, position: int) -> _Step:
        text = f"{flow.code[position][2]} {texts.bare[position]}"
        form = without_numbers(text)
        known = self._forms.get(form)
        if known is None:
            known = self._forms[form] = self._form(flow.code[position], form)
        shape, step = known
        return _Step(
            _number_of(" ".join((shape, *numbers_in(text), texts.names.get(position, "")))), *step[1:]
        )

    def _form(self, instruction: Instruction, form: str) -> tuple[str, _Step]:
        """The shape of all instructions that differ in numbers only, and what else is known of them."""
        effects = self._operands.effects(instruction, form)
        kind = KIND_OF[instruction[2]]
        reads = effects.reads + ((_MEMORY,) if effects.loads or effects.stores or kind == CALL else ())
        writes = effects.writes + ((_MEMORY,) if effects.stores or kind == CALL else ())
        if kind == CALL:
            writes += _LOST
        set_ = sum(_BITS.get(one, 0) for one in dict.fromkeys(writes))
        step = _Step(
            0,
            kind,
            _numbered(writes, kind),
            itemgetter(*reads) if reads else _nothing,
            tuple((one, reads.index(one)) for one in reads if one not in _FIXED),
            tuple(one for one in writes if one not in _FIXED),
            set_ | sum(_BITS.get(one, 0) for one in dict.fromkeys(reads) if one not in writes),
            set_,
        )
        return effects.shape, step


def _numbered(writes: tuple[str, ...], kind: int) -> tuple[tuple[str, int], ...]:
    if kind != CALL:
        return tuple(zip(writes, range(len(writes)), strict=True))
    # But for the memory and the result a call leaves nothing in what it may change.
    return tuple((one, _LEFT_BY_CALL.get(one, len(_LEFT_BY_CALL))) for one in dict.fromkeys(writes))


def _nothing(_: Mapping[str, int]) -> int:
    return 0


def _arguments(block: list[_Step]) -> dict[str, int]:
    """Numbers for the registers of arguments that the first block reads before it writes them."""
    found: dict[str, int] = {}
    written: set[str] = set()
    for step in block:
        for name, _ in step.free_reads:
            if name in _ARGUMENTS and name not in written:
                found[name] = 16 + _ARGUMENTS.index(name)
        written.update(step.free_writes)
        if step.kind == CALL:
            break
    return found


def _uses(blocks: Sequence[Sequence[_Step]]) -> tuple[dict[str, int], set[str]]:
    """A number for each register, of all that is done with it when a block begins and ends; and the registers
    that some block reads as another one left them."""
    uses: dict[str, int] = {}
    incoming: set[str] = set()
    for place, block in enumerate(blocks):
        written: dict[str, int] = {}
        for shape, _, _, _, reads, writes, _, _ in block:
            for name, which in reads:
                if name not in written:
                    incoming.add(name)
                    uses[name] = uses.get(name, 0) + hash((shape, place, which))
            for name in writes:
                written[name] = shape
        for name, shape in written.items():
            uses[name] = uses.get(name, 0) + hash((shape, place))
    return uses, incoming


def _refined(blocks: Sequence[Sequence[_Step]], colors: Mapping[str, int]) -> dict[str, int]:
    """Numbers of registers that also tell apart those that are used alike, but hold other results."""
    found = dict(colors)
    for place, block in enumerate(blocks):
        for name, value in _number_of_block(block, colors)[1].items():
            found[name] += hash((value, place))
    return found


def _number_of_block(block: Sequence[_Step], colors: Mapping[str, int]) -> tuple[int, dict[str, int]]:
    """A number of the instructions, whatever their order, and of the registers as they are at the end; and
    the numbers of these.

    :param colors: the numbers of all registers that the function uses.
    """
    values = dict(colors)
    numbers: list[int] = []
    fresh = 0  # registers that were written, and not yet read
    for shape, kind, written, values_of, _, _, touched, set_ in block:
        number = hash((shape, values_of(values)))
        if kind in _PASSED:
            number = hash((number, *[values[name] for name in _names(fresh & _PASSED[kind])]))
            fresh = 0
        if touched:
            fresh = fresh & ~touched | set_
        numbers.append(number)
        for name, more in written:
            values[name] = number + more
    values[FLAGS] = colors[FLAGS]  # the last instruction sets them, whether anybody reads them or not
    ends = {name: value for name, value in values.items() if value != colors.get(name)}
    numbers.sort()
    return hash((*numbers, *sorted([hash((colors[name], ends[name])) for name in ends]))) & _MASK, ends


@cache
def _names(bits: int) -> tuple[str, ...]:
    """The registers of arguments or results that some bits stand for."""
    return tuple(name for name, bit in _BITS.items() if bits & bit)


def _number_of(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "little")
