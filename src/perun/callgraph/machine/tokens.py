"""What the instructions of a function say of addresses, in words that do not depend on where the linker put
things."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from perun.callgraph.machine.data import DataNames
from perun.callgraph.machine.decode import Form
from perun.callgraph.machine.flow import Flow

_WIDTHS: Final = {
    "byte": 1, "word": 2, "dword": 4, "qword": 8, "xword": 10, "xmmword": 16, "ymmword": 32, "zmmword": 64
}  # fmt: skip
_WIDTH: Final = re.compile(r"(\w+) ptr \[")
FunctionAt = Callable[[int], str]


class Texts(NamedTuple):
    """What is at the addresses that a function names; jumps and calls apart.

    :ivar names: by position of the instruction, what is there. :ivar taken: likewise, the function there.
    """

    names: dict[int, str]
    taken: dict[int, str]

    def lines(self, flow: Flow) -> list[str]:
        """The instructions of the function, each with the name of what is at its address."""
        lines = [form.line for form in flow.code]
        for position, name in self.names.items():
            lines[position] += f" {name}"
        return lines


class Tokens:
    """Names what is at the addresses that instructions name.

    :param function_at: the name of the function that begins at an address; empty for none.
    :param movable: as of :class:`perun.callgraph.image.Image`.
    """

    def __init__(self, data: DataNames, function_at: FunctionAt, *, movable: bool) -> None:
        self._data = data
        self._function_at = function_at
        self._movable = movable
        self._widths: dict[int, int] = {}

    def texts(self, flow: Flow) -> Texts:
        """The names for the instructions of a function."""
        texts = Texts({}, {})
        code = flow.code
        for position, address in flow.places.items():
            if position not in flow.exits:
                self._name(texts, position, address, self._width(code[position]))
        if not self._movable:
            for position, form in enumerate(code):
                if form.constant >= 0:
                    self._name(texts, position, form.constant, 0)
        return texts

    def _name(self, texts: Texts, position: int, address: int, width: int) -> None:
        function = self._function_at(address)
        if function:
            texts.taken[position] = function
        name = "function" if function else self._data.name(address, width)
        before = texts.names.get(position)  # an instruction may name a place and a number
        texts.names[position] = f"{before} {name}" if before else name

    def _width(self, form: Form) -> int:
        width = self._widths.get(form.number)
        if width is None:
            found = _WIDTH.search(form.operands)
            width = 0 if form.mnemonic == "lea" or found is None else _WIDTHS.get(found[1], 0)
            self._widths[form.number] = width
        return width
