"""The control-flow graph of one function, and where it leads out of the function.

Blocks are in the order in which a breadth-first walk from the entry meets them, so that the order does not
depend on addresses; those that only exceptions or unknown jumps reach come last, by their addresses.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Final, NamedTuple

from perun.native.callgraph.decode import BRANCH, CALL, END, JUMP, InstructionForm, MachineCode
from perun.native.callgraph.image import Image

# Jump tables: where the jump of a `switch` may go.
#
# Compilers write them in two forms: distances from the table (`lea rdx, [rip + table]`, then
# `movsxd rax, [rdx + rax*4]`, `add rax, rdx`, `jmp rax`), or addresses (`jmp [rax*8 + table]`, also `lea` and
# `jmp [rdx + rax*8]`).

_MAX_ENTRIES: Final = 4096
_REACH: Final = 400
"""How many instructions before a jump the address of its table may be loaded."""
_SCALED: Final = re.compile(r"\[(?:(r\w+) \+ )?(r\w+)\*([48])(?: ([+-]) (0x[0-9a-f]+|\d+))?\]")
_LOAD: Final = re.compile(r"(r\w+), (?:dword|qword) ptr ")
_DISTANCE: Final = struct.Struct("<i")
Inside = Callable[[int], bool]


class Tables:
    """Finds the tables of one function.

    :param loads: by position, the addresses that instructions of the function compute (`lea`).
    :param inside: whether an instruction of the function begins at an address.
    """

    def __init__(
        self, image: Image, code: Sequence[InstructionForm], loads: dict[int, int], inside: Inside
    ) -> None:
        self._image = image
        self._code = code
        self._loads = {at: to for at, to in loads.items() if self._is_data(to)}
        self._inside = inside
        self._begins = set(self._loads.values())

    def targets(self, position: int) -> list[int]:
        """Where the jump at a position of the code may go, in the order of the table; none if not known."""
        operands = self._code[position].operands
        scaled = _SCALED.search(operands)
        if scaled is not None:  # an address from the table
            table = self._displacement(scaled) if scaled[1] is None else self._loaded(position, scaled[1])
            return self._addresses(table) if table else self._any(position)
        for at in range(position - 1, max(-1, position - 24), -1):
            form = self._code[at]
            scaled = _SCALED.search(form.operands)
            if scaled is None or not _LOAD.match(form.operands):
                continue
            if form.mnemonic == "movsxd" and scaled[1] is not None:
                table = self._loaded(at, scaled[1])
                found = self._distances(table) if table else []
                return found or self._any(position)
            if form.mnemonic == "mov" and scaled[3] == "8":
                table = self._displacement(scaled) if scaled[1] is None else self._loaded(at, scaled[1])
                return self._addresses(table) if table else []
        return self._any(position) if self._adds(position) else []

    def _adds(self, position: int) -> bool:
        """Whether the register of the jump was added to just before, as with a table of distances."""
        register = self._code[position].operands
        before = self._code[max(0, position - 4) : position]
        return any(one.mnemonic == "add" and one.operands.startswith(f"{register}, r") for one in before)

    def _any(self, position: int) -> list[int]:
        """The targets of all tables of the function: it is one of them, but not known which."""
        targets: dict[int, None] = {}
        for table in sorted(self._begins):
            targets.update(dict.fromkeys(self._distances(table) or self._addresses(table)))
        return list(targets)

    def _displacement(self, scaled: re.Match[str]) -> int:
        return 0 if scaled[5] is None or scaled[4] == "-" else int(scaled[5], 0)

    def _loaded(self, position: int, register: str) -> int:
        """The address of data that was last loaded into a register before a position; 0 if not known."""
        for at in range(position - 1, max(-1, position - _REACH), -1):
            mnemonic, operands = self._code[at].mnemonic, self._code[at].operands
            if not operands.startswith(f"{register}, "):
                continue
            if at in self._loads and mnemonic == "lea":
                return self._loads[at]
            if mnemonic == "mov" and operands.endswith(tuple("0123456789abcdef")):
                value = operands.partition(", ")[2]
                if value[:1].isdecimal():
                    return int(value, 0)
                return self._loaded(at, value) if value.startswith("r") else 0
        return 0

    def _is_data(self, address: int) -> bool:
        area = self._image.area(address)
        return area is not None and not area.executable and bool(area.data)

    def _distances(self, table: int) -> list[int]:
        data = self._image.bytes_at(table, _MAX_ENTRIES * _DISTANCE.size)
        found: list[int] = []
        for place in range(0, len(data) - _DISTANCE.size + 1, _DISTANCE.size):
            target = table + _DISTANCE.unpack_from(data, place)[0]
            if (place and table + place in self._begins) or not self._inside(target):
                break
            found.append(target)
        return found

    def _addresses(self, table: int) -> list[int]:
        found: list[int] = []
        for place in range(_MAX_ENTRIES):
            target = self._image.pointer_at(table + 8 * place)
            if (place and table + 8 * place in self._begins) or not self._inside(target):
                break
            found.append(target)
        return found


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

    code: Sequence[InstructionForm]
    blocks: Sequence[range]
    successors: Sequence[Sequence[int]]
    exits: dict[int, Exit]
    places: dict[int, int]


def flow_of(image: Image, pieces: Iterable[MachineCode]) -> Flow:
    """The control flow of the function that has these pieces, the one that it is entered by first."""
    return _Walk(image, pieces).flow()


class _Walk:
    def __init__(self, image: Image, pieces: Iterable[MachineCode]) -> None:
        self._code: list[InstructionForm] = []
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

    def _add(self, piece: MachineCode) -> None:
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


# Digests of control-flow graphs.


def flow_text(flow: Flow) -> str:
    """The control-flow graph as text: `3>++;5>2;1` is 3 instructions, then one of the next two blocks that
    were not named yet, 1 and 2; ..."""
    seen, texts = 0, []
    for block, after in zip(flow.blocks, flow.successors, strict=True):
        ways = ""
        for one in after:
            if one == seen + 1:
                seen, ways = one, ways + "+"
            else:
                ways += f",{one}" if ways[-1:].isdigit() else str(one)
        texts.append(f"{len(block)}>{ways}" if ways else str(len(block)))
    return ";".join(texts)


def digest(flow: str, instructions: Iterable[str] = ()) -> str:
    """16 hexadecimal digits for a control-flow graph and its instructions."""
    text = "\n".join([flow, *instructions])
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()
