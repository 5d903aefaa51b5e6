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
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from perun.callgraph.image import Image
from perun.callgraph.machine.decode import CALL, END, KIND_OF
from perun.callgraph.machine.flow import Flow
from perun.callgraph.machine.operands import FLAGS, Operands
from perun.callgraph.machine.tokens import Texts

_MASK: Final = (1 << 64) - 1
_ARGUMENTS: Final = ("rdi", "rsi", "rdx", "rcx", "r8", "r9", *(f"xmm{number}" for number in range(8)))
_RESULTS: Final = ("rax", "rdx", "xmm0", "xmm1")
_LOST: Final = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", FLAGS)
"""Registers that a call may change."""
_MEMORY: Final = "memory"


class _Step(NamedTuple):
    """An instruction: the number of its shape, and what it reads and writes."""

    shape: int
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    kind: int


class Colors:
    """Numbers the instructions of functions of an image."""

    def __init__(self, image: Image) -> None:
        self._operands = Operands(image)
        self._shapes: dict[str, int] = {}
        self._steps: dict[str, _Step] = {}

    def of(self, flow: Flow, texts: Texts, lines: Sequence[str]) -> list[str]:
        """For each block of a function a text that renamed registers and other orders do not change."""
        known = self._steps
        for position, line in enumerate(lines):
            if line not in known:
                known[line] = self._step(flow, texts, position)
        steps = [known[line] for line in lines]
        blocks = [steps[block.start : block.stop] for block in flow.blocks]
        fixed = {"rsp": 1, FLAGS: 2, _MEMORY: 3} | _arguments(blocks[0] if blocks else [])
        uses, incoming = _uses(blocks)
        colors = uses | fixed
        if len({colors[name] for name in incoming}) < len(incoming):
            colors = _refined(blocks, colors) | fixed
        return [f"{_number_of_block(block, colors)[0] & _MASK:x}" for block in blocks]

    def _step(self, flow: Flow, texts: Texts, position: int) -> _Step:
        instruction = flow.code[position]
        name = texts.names.get(position)
        effects = self._operands.effects(instruction, texts.bare[position])
        kind = KIND_OF[instruction[2]]
        reads = effects.reads + ((_MEMORY,) if effects.loads or effects.stores or kind == CALL else ())
        writes = effects.writes + ((_MEMORY,) if effects.stores or kind == CALL else ())
        if kind == CALL:
            writes += _LOST
        shape = effects.shape if name is None else f"{effects.shape} {name}"
        return _Step(_number_of(shape), reads, writes, kind)


def _arguments(block: list[_Step]) -> dict[str, int]:
    """Numbers for the registers of arguments that the first block reads before it writes them."""
    found: dict[str, int] = {}
    written: set[str] = set()
    for step in block:
        for place, name in enumerate(_ARGUMENTS):
            if name in step.reads and name not in written:
                found[name] = 16 + place
        written.update(step.writes)
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
        for shape, reads, writes, _ in block:
            for name in reads:
                if name not in written:
                    incoming.add(name)
                    uses[name] = uses.get(name, 0) + hash((shape, place, reads.index(name)))
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
    """The sum of the numbers of the instructions, and of the registers as they are at the end; and these.

    :param colors: the numbers of all registers that the function uses.
    """
    values = dict(colors)
    value_of = values.__getitem__
    written: dict[str, int] = {}
    total = 0
    for place, (shape, reads, writes, kind) in enumerate(block):
        number = hash((shape, *map(value_of, reads)))
        if kind in (CALL, END):
            number = hash((number, *map(value_of, _passed(block, place))))
        total += number * (number | 1)
        for name in writes:
            values[name] = written[name] = number
            if kind != CALL or name == _MEMORY or name == "rax":
                number += 1  # the others that a call changes hold nothing after it
    written.pop(FLAGS, None)  # the last instruction that sets them, whether anybody reads them or not
    return total + sum([hash((colors[name], value)) for name, value in written.items()]), written


def _passed(block: Sequence[_Step], place: int) -> list[str]:
    """The arguments of a call, or the results of a function: their registers are written, and not yet
    read."""
    candidates = _ARGUMENTS if block[place].kind == CALL else _RESULTS
    found: set[str] = set()
    other: set[str] = set()
    for step in block[place - 1 :: -1] if place else ():
        if step.kind == CALL:
            break
        found.update(name for name in step.writes if name not in other)
        other.update(step.writes, step.reads)
    return [name for name in candidates if name in found]


def _number_of(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "little")
