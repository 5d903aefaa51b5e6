"""The instructions of a function as texts that do not depend on where the linker put things."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from perun.callgraph.machine.data import DataNames
from perun.callgraph.machine.decode import KIND_OF, ORDINARY
from perun.callgraph.machine.flow import Flow

_WIDTHS: Final = {
    "byte": 1, "word": 2, "dword": 4, "qword": 8, "xword": 10, "xmmword": 16, "ymmword": 32, "zmmword": 64
}  # fmt: skip
_WIDTH: Final = re.compile(r"(\w+) ptr \[")
_ADDRESS: Final = re.compile(r"0x[0-9a-f]{5,}")
FunctionAt = Callable[[int], str]


class Texts(NamedTuple):
    """The operands of a function as texts.

    :ivar bare: for each instruction, with `@` for an address; of jumps and calls to an address, nothing.
    :ivar names: by position, what is at the address. :ivar taken: by position, the function at it.
    """

    bare: list[str]
    names: dict[int, str]
    taken: dict[int, str]

    def lines(self, flow: Flow) -> list[str]:
        """The instructions of the function, each with the name of what is at its address."""
        lines = [f"{one[2]} {bare}" for one, bare in zip(flow.code, self.bare, strict=True)]
        for position, name in self.names.items():
            lines[position] += f" {name}"
        return lines


class Tokens:
    """Makes the texts of the operands of instructions.

    :param function_at: the name of the function that begins at an address; empty for none.
    :param movable: as of :class:`perun.callgraph.image.Image`.
    """

    def __init__(self, data: DataNames, function_at: FunctionAt, *, movable: bool) -> None:
        self._data = data
        self._function_at = function_at
        self._movable = movable

    def texts(self, flow: Flow) -> Texts:
        """The operands of the instructions of a function."""
        texts = Texts([operands for _, _, _, operands in flow.code], {}, {})
        for position, place in flow.places.items():
            _, _, mnemonic, text = flow.code[position]
            texts.bare[position] = f"{text[: place.start]}[@]{text[place.end :]}"
            self._name(texts, position, place.address, self._width(mnemonic, text))
        for position in flow.exits:
            texts.names.pop(position, None)
            texts.taken.pop(position, None)
        for position, (_, _, mnemonic, operands) in enumerate(flow.code):
            if operands[:1].isdecimal():
                if KIND_OF[mnemonic] != ORDINARY:
                    texts.bare[position] = ""
            elif not self._movable and "0x" in operands and (found := _ADDRESS.search(operands)):
                address = int(found[0], 16)
                if self._data.is_data(address):
                    texts.bare[position] = operands.replace(found[0], "@")
                    self._name(texts, position, address, 0)
        return texts

    def _name(self, texts: Texts, position: int, address: int, width: int) -> None:
        function = self._function_at(address)
        if function:
            texts.taken[position] = function
        texts.names[position] = "function" if function else self._data.name(address, width)

    @staticmethod
    def _width(mnemonic: str, operands: str) -> int:
        found = _WIDTH.search(operands)
        return 0 if mnemonic == "lea" or found is None else _WIDTHS.get(found[1], 0)
