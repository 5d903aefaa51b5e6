"""The terminal that charts are drawn for: its width, colours and characters, and the width of text on it."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

from perun.view._common.chart import short_names, shortened

if TYPE_CHECKING:
    from perun.plugin.api import ViewContext

_USUAL_WIDTH: Final = 80
_NAME: Final = 30
_LEAST_WIDTH: Final = 40
_MAX_WIDTH: Final = 160
_COLOURS: Final = (33, 166, 36, 175, 74, 178, 245, 227)
"""The palette of the pages in the 256 colours of a terminal."""
COLOURS: Final = len(_COLOURS)
"""How many series differ by their colour."""
_FILLS: Final = "█▓▒░▚▞▄▀abcdefgh"
_ASCII_FILLS: Final = "#=+o*x%@abcdefgh"


class Screen(NamedTuple):
    """A terminal.

    :param columns: its width in characters. :param coloured: whether it shows ANSI colours.
    :param unicode: whether it shows more than ASCII.
    """

    columns: int = _USUAL_WIDTH
    coloured: bool = False
    unicode: bool = True

    @classmethod
    def of(cls, out: TextIO, ctx: ViewContext) -> Screen:
        """The screen behind `out`: its encoding decides on Unicode, the context on width and colours."""
        columns = max(_LEAST_WIDTH, min(_MAX_WIDTH, ctx.columns or _USUAL_WIDTH))
        try:
            "█⣿µ…".encode(getattr(out, "encoding", None) or "utf-8")
        except (UnicodeEncodeError, LookupError):
            return cls(columns, ctx.coloured, False)
        return cls(columns, ctx.coloured, True)

    def paint(self, text: str, number: int) -> str:
        """`text` in the colour of series `number`; a negative number (of a sum) keeps the default colour."""
        if not self.coloured or not text.strip() or number < 0:
            return text
        return f"\x1b[38;5;{_COLOURS[number % len(_COLOURS)]}m{text}\x1b[0m"

    def fill(self, number: int) -> str:
        """The character that fills the bars of series `number`."""
        fills = _FILLS if self.unicode else _ASCII_FILLS
        return fills[(max(0, number) // COLOURS if self.coloured else number) % len(fills)]

    def printable(self, text: str) -> str:
        """Text of a profile in one line, with control characters and what the screen cannot show escaped."""
        return printable(text) if self.unicode else printable(text.translate(_ASCII_SPELLINGS), ascii=True)


_ASCII_SPELLINGS: Final = str.maketrans({"…": "..", "µ": "u", "×": "x", "²": "2", "·": "*", "±": "+-"})


def printable(text: str, *, ascii: bool = False) -> str:
    """The text with each character that is not printable as its escape, e.g. `\\x1b`.

    A line break would break a row apart, and a terminal obeys control characters.

    :param ascii: escape all that is not ASCII, too.
    """
    return "".join(
        char
        if char.isprintable() and (not ascii or char.isascii())
        else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def width_of(text: str) -> int:
    """The number of terminal columns that the text takes; wide characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def right_aligned(text: str, width: int) -> str:
    """The text with blanks before it, so that it takes `width` columns."""
    return " " * (width - width_of(text)) + text


def axis_names(names: Sequence[str], screen: Screen) -> list[str]:
    """The names of categories, short enough to stand before a row."""
    shown = [screen.printable(name) for name in short_names(names, _NAME)]
    return [name if width_of(name) <= _NAME else shortened(name, _NAME // 2) for name in shown]


def legend(names: Iterable[tuple[str, int, str]], title: str, screen: Screen) -> list[str]:
    """The lines of a legend.

    :param names: of each series its sign, the number of its colour, and its name; one without a name is
        left out.
    :param title: a line above them; none where it is empty.
    """
    lines = [f"{screen.paint(sign, number)} {screen.printable(name)}" for sign, number, name in names if name]
    return ["", *([screen.printable(title)] if title and lines else []), *lines] if lines else []
