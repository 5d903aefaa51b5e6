"""Jump tables: where the jump of a `switch` may go.

Compilers write them in two forms: distances from the table (`lea rdx, [rip + table]`, then
`movsxd rax, [rdx + rax*4]`, `add rax, rdx`, `jmp rax`), or addresses (`jmp [rax*8 + table]`, also `lea` and
`jmp [rdx + rax*8]`).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from typing import Final

from perun.callgraph.image import Image
from perun.callgraph.machine.decode import Form

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
        self, image: Image, code: Sequence[Form], loads: dict[int, int], inside: Inside
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
