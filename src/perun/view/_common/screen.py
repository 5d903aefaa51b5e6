"""What charts as text are drawn for, and how text takes its place there."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

if TYPE_CHECKING:
    from perun.plugin.api import ViewContext

_USUAL_WIDTH: Final = 80
_LEAST_WIDTH: Final = 40
_MOST_WIDTH: Final = 160
_COLOURS: Final = (33, 166, 36, 175, 74, 178, 245, 227)
"""The palette of the pages in the 256 colours of a terminal."""
_FILLS: Final = "█▓▒░▚▞▄▀abcdefgh"
_ASCII_FILLS: Final = "#=+o*x%@abcdefgh"


class Screen(NamedTuple):
    """What text is drawn for: its width in characters, whether it has colours, and more than ASCII."""

    columns: int = _USUAL_WIDTH
    coloured: bool = False
    unicode: bool = True

    @classmethod
    def of(cls, out: TextIO, ctx: ViewContext) -> Screen:
        """What `out` is."""
        columns = max(_LEAST_WIDTH, min(_MOST_WIDTH, ctx.columns or _USUAL_WIDTH))
        try:
            "█⣿µ…".encode(getattr(out, "encoding", None) or "utf-8")
        except (UnicodeEncodeError, LookupError):
            return cls(columns, ctx.coloured, False)
        return cls(columns, ctx.coloured, True)

    def paint(self, text: str, number: int) -> str:
        """`text` in the colour of series `number`; the sum, below 0, is in that of the text."""
        if not self.coloured or not text.strip() or number < 0:
            return text
        return f"\x1b[38;5;{_COLOURS[number % len(_COLOURS)]}m{text}\x1b[0m"

    def fill(self, number: int) -> str:
        """The character that bars of series `number` are made of."""
        if self.coloured:
            return "█" if self.unicode else "#"
        fills = _FILLS if self.unicode else _ASCII_FILLS
        return fills[number % len(fills)]

    def plain(self, text: str) -> str:
        """Text of a profile in one line, without orders to the terminal."""
        return "".join(
            char
            if char.isprintable() and (self.unicode or char.isascii())
            else char.encode("unicode_escape").decode("ascii")
            for char in text.translate(_SPELLED if not self.unicode else {})
        )


_SPELLED: Final = str.maketrans({"…": "..", "µ": "u", "×": "x", "²": "2", "·": "*"})  # noqa: RUF001


def width_of(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def padded(text: str, width: int) -> str:
    """The text with blanks before it, so that it takes `width` columns."""
    return " " * (width - width_of(text)) + text


def legend(names: Iterable[tuple[str, int, str]], title: str, screen: Screen) -> list[str]:
    """Lines that tell what each sign, given with the number of its colour and a name, stands for."""
    lines = [f"{screen.paint(sign, number)} {screen.plain(name)}" for sign, number, name in names if name]
    return ["", *([screen.plain(title)] if title and lines else []), *lines] if lines else []
