"""The control-flow graph of one function, and where it leads out of the function.

Blocks are in the order in which a breadth-first walk from the entry meets them, so that the order does not
depend on addresses; those that only exceptions or unknown jumps reach come last, by their addresses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from perun.callgraph.image import Image
from perun.callgraph.machine.decode import (
    BRANCH,
    CALL,
    END,
    JUMP,
    KIND_OF,
    ORDINARY,
    PADDING,
    Instruction,
    Place,
    relative_place,
    target_of,
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

    :ivar code: its instructions, without those that do nothing. :ivar blocks: for each block the range of
        positions in `code`. :ivar successors: for each block the numbers of those that may come next.
    :ivar exits: where it leads out, by position. :ivar places: by position, what an operand is relative to.
    """

    code: Sequence[Instruction]
    blocks: Sequence[range]
    successors: Sequence[Sequence[int]]
    exits: dict[int, Exit]
    places: dict[int, Place]


def flow_of(image: Image, pieces: Iterable[Sequence[Instruction]]) -> Flow:
    """The control flow of the function that has these pieces, the one that it is entered by first."""
    code: list[Instruction] = []
    position_of: dict[int, int] = {}
    special: list[tuple[int, int]] = []
    places: dict[int, Place] = {}
    ends: set[int] = set()
    kinds = KIND_OF
    for piece in pieces:
        for instruction in piece:
            position_of[instruction[0]] = len(code)
            kind = kinds[instruction[2]]
            if kind == PADDING:
                continue
            if kind != ORDINARY:
                special.append((len(code), kind))
            if "rip" in instruction[3] and (place := relative_place(instruction)) is not None:
                places[len(code)] = place
            code.append(instruction)
        ends.add(len(code))
    for address, position in list(position_of.items()):
        if position == len(code):
            del position_of[address]  # only padding comes there
    return _Walk(image, code, position_of, special, places, ends).flow()


class _Walk:
    def __init__(
        self,
        image: Image,
        code: list[Instruction],
        position_of: dict[int, int],
        special: list[tuple[int, int]],
        places: dict[int, Place],
        ends: set[int],
    ) -> None:
        self._code = code
        self._position_of = position_of
        self._special = special
        self._places = places
        self._ends = ends
        loads = {at: place.address for at, place in places.items() if code[at][2] == "lea"}
        self._tables = Tables(image, code, loads, position_of.__contains__)

    def flow(self) -> Flow:
        exits: dict[int, Exit] = {}
        jumps: dict[int, list[int]] = {}  # by position, where it may go on but for the next instruction
        falls: dict[int, bool] = {}
        for position, kind in self._special:
            if kind == CALL:
                target = target_of(self._code[position][3])
                if target < 0 or target not in self._position_of or not self._position_of[target]:
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

    def _targets(self, position: int, exits: dict[int, Exit]) -> list[int]:
        """The positions that a jump may lead to; where it leaves the function, that is an exit."""
        target = target_of(self._code[position][3])
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
