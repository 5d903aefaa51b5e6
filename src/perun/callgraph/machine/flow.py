"""The control-flow graph of one function, and where it leads out of the function.

Blocks are in the order in which a breadth-first walk from the entry meets them, so that the order does not
depend on addresses; those that only exceptions or unknown jumps reach come last, by their addresses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import NamedTuple

from perun.callgraph.image import Image
from perun.callgraph.machine.decode import (
    BRANCH,
    CALL,
    END,
    JUMP,
    Code,
    Form,
)
from perun.callgraph.machine.tables import Tables


class Exit(NamedTuple):
    """An instruction that leads out of the function: its position in the code, its kind (CALL or JUMP), and
    the address that it names: -1 for one that is computed."""

    position: int
    kind: int
    target: int


class Flow(NamedTuple):
    """The control flow of a function.

    :ivar code: the forms of its instructions, without those that do nothing.
    :ivar blocks: for each block the range of positions in `code`.
    :ivar successors: for each block the numbers of those that may come next.
    :ivar exits: where it leads out, by position. :ivar places: by position, the address that an operand has
        relative to its instruction.
    """

    code: Sequence[Form]
    blocks: Sequence[range]
    successors: Sequence[Sequence[int]]
    exits: dict[int, Exit]
    places: dict[int, int]


def flow_of(image: Image, pieces: Iterable[Code]) -> Flow:
    """The control flow of the function that has these pieces, the one that it is entered by first."""
    return _Walk(image, pieces).flow()


class _Walk:
    def __init__(self, image: Image, pieces: Iterable[Code]) -> None:
        self._code: list[Form] = []
        self._position_of: dict[int, int] = {}
        self._special: list[int] = []
        self._leads: dict[int, int] = {}
        self._ends: set[int] = set()
        for piece in pieces:
            self._add(piece)
        code = self._code
        self._places = {at: to for at, to in self._leads.items() if code[at].is_relative}
        loads = {at: to for at, to in self._places.items() if code[at].mnemonic == "lea"}
        self._tables = Tables(image, code, loads, self._position_of.__contains__)

    def _add(self, piece: Code) -> None:
        """Put a piece at the end of the code."""
        shift = len(self._code)
        self._position_of.update(zip(piece.addresses, count(shift), strict=False))
        padding = ((address, at) for address, at in piece.padding.items() if at < len(piece.forms))
        self._position_of.update((address, at + shift) for address, at in padding)
        self._special += [at + shift for at in piece.special]
        self._leads.update((at + shift, to) for at, to in piece.leads.items())
        self._code += piece.forms
        self._ends.add(len(self._code))

    def flow(self) -> Flow:
        exits: dict[int, Exit] = {}
        jumps: dict[int, list[int]] = {}  # by position, where it may go on but for the next instruction
        falls: dict[int, bool] = {}
        for position in self._special:
            kind = self._code[position].kind
            if kind == CALL:
                target = self._target(position)
                if not self._position_of.get(target):  # neither within, nor back to the first instruction
                    exits[position] = Exit(position, CALL, target)
                continue
            falls[position] = kind == BRANCH
            jumps[position] = [] if kind == END else self._targets(position, exits)
        leaders = {0, *self._ends, *(position + 1 for position in jumps)}
        for targets in jumps.values():
            leaders.update(targets)
        leaders.discard(len(self._code))
        starts = sorted(leaders) if self._code else []
        block_of = {start: number for number, start in enumerate(starts)}
        blocks = [
            range(start, end) for start, end in zip(starts, [*starts[1:], len(self._code)], strict=False)
        ]
        successors = []
        for block in blocks:
            last = block.stop - 1
            after = [block.stop] if falls.get(last, True) and block.stop not in self._ends else []
            after += jumps.get(last, ())
            successors.append(list(dict.fromkeys(block_of[start] for start in after)))
        order = _breadth_first(successors)
        number = {old: new for new, old in enumerate(order)}
        return Flow(
            self._code,
            [blocks[old] for old in order],
            [[number[one] for one in successors[old]] for old in order],
            exits,
            self._places,
        )

    def _target(self, position: int) -> int:
        """The address that a jump or call names; -1 where it is in a register or in memory."""
        return -1 if position in self._places else self._leads.get(position, -1)

    def _targets(self, position: int, exits: dict[int, Exit]) -> list[int]:
        """The positions that a jump may lead to; where it leaves the function, that is an exit."""
        target = self._target(position)
        if target >= 0:
            known = self._position_of.get(target)
            if known is not None:
                return [known]
            exits[position] = Exit(position, JUMP, target)
            return []
        found = [] if position in self._places else self._tables.targets(position)
        if not found:
            exits[position] = Exit(position, JUMP, -1)
        return [self._position_of[one] for one in found]


def _breadth_first(successors: Sequence[Sequence[int]]) -> list[int]:
    order: dict[int, None] = {}
    for first in range(len(successors)):
        if first in order:
            continue
        order[first] = None
        queue = [first]
        for block in queue:
            for one in successors[block]:
                if one not in order:
                    order[one] = None
                    queue.append(one)
    return list(order)
