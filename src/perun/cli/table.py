"""Plain tables for a terminal, and text of others made safe to print there.

A table is columns side by side, each with the raw text that the user's format puts before it, and a rule
after every five rows (manual 12.1 and 14.42).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

_JOINERS = "\u200c\u200d"
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def clean(text: str, keep: str = "\n\t") -> str:
    r"""`text` without anything that a terminal would obey: control characters become visible, as `\x1b`.

    Characters that reorder or hide text (bidirectional overrides and the like) and bytes of file names
    that are not UTF-8 are shown the same way. Joiners, which scripts and emoji need, stay.

    :param keep: control characters that stay.
    """
    if text.isprintable():
        return text
    if "\n" in keep:
        text = text.replace("\r\n", "\n")
    return "".join(c if c.isprintable() or c in keep else _visible(c) for c in text)


def one_line(text: str) -> str:
    """:func:`clean` for text that must stay on one line: line ends and tabs become visible too."""
    return clean(text, keep="")


def _visible(character: str) -> str:
    from unicodedata import category

    if category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp") or character in _JOINERS:
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00  # a byte that could not be decoded (surrogateescape)
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def width(text: str) -> int:
    """Columns of a terminal that `text` takes: two for wide characters, none for combining ones."""
    return len(text) if text.isascii() else sum(map(_character_width, text))


@cache
def _character_width(character: str) -> int:
    from unicodedata import category, east_asian_width

    if category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def cut(text: str, most: int, ellipsis: str = "..") -> str:
    """`text` shortened at its end, with an ellipsis, to at most `most` columns of a terminal."""
    if width(text) <= most:
        return text
    ellipsis = ellipsis[:most]
    room = most - len(ellipsis)
    for end, character in enumerate(text):
        room -= width(character)
        if room < 0:
            return text[:end] + ellipsis
    return text + ellipsis


class Column(NamedTuple):
    """One column of a table.

    :param title: stands above it.
    :param cells: its text, one for every row.
    :param before: raw text between the column before and this one, in every row and the heading.
    :param paint: gives a shown text a colour; the blanks that fill the column stay as they are.
    :param right: whether the text stands at the right.
    :param styled: what gives each of the cells a colour, instead of `paint`.
    :param shrink: whether it may be shortened if the table is wider than the terminal.
    :param shorter: the cells where the table is wider than that, before any column is shortened.
    """

    title: str
    cells: Sequence[str]
    before: str = ""
    paint: Callable[[str], str] | None = None
    right: bool = False
    shrink: bool = False
    styled: Sequence[Callable[[str], str]] = ()
    shorter: Sequence[str] = ()


def table(
    columns: Sequence[Column], *, after: str = "", most: int = 0, unicode: bool = False, bundle: int = 5
) -> Iterator[str]:
    """The lines of a table: a rule, the titles, a rule, the rows, and a rule after every `bundle` of them.

    :param after: raw text after the last column.
    :param most: width of the terminal, to which columns that allow it are shortened; 0 for no limit.
    :param unicode: whether rules and ellipses may be other than ASCII.
    """
    ellipsis = "…" if unicode else ".."
    shown = [[clean(text, keep="") for text in (column.title, *column.cells)] for column in columns]
    widths = [max(map(width, texts)) for texts in shown]
    marks = [clean(column.before, keep="") for column in columns]
    end = clean(after, keep="")
    fixed = sum(map(width, marks)) + width(end)
    if most and sum(widths) + fixed > most:
        if any(column.shorter for column in columns):
            short = [one._replace(cells=one.shorter or one.cells, shorter=()) for one in columns]
            yield from table(short, after=after, most=most, unicode=unicode, bundle=bundle)
            return
        _shrink(widths, [column.shrink for column in columns], most - fixed)
    rule = ("═" if unicode else "-") * (sum(widths) + fixed)
    filled = [
        [_fill(cut(text, room, ellipsis), room, column, number - 1) for number, text in enumerate(texts)]
        for column, texts, room in zip(columns, shown, widths, strict=True)
    ]
    number = 0
    yield rule
    for number, row in enumerate(zip(*filled, strict=True)):
        line = "".join(f"{mark}{cell}" for mark, cell in zip(marks, row, strict=True))
        yield f"{line}{end}".rstrip(" ")
        if number % bundle == 0:
            yield rule
    if number % bundle:
        yield rule


def _fill(text: str, room: int, column: Column, number: int) -> str:
    blanks = " " * (room - width(text))
    paint = column.styled[number] if column.styled and number >= 0 else column.paint
    painted = paint(text) if paint else text
    return blanks + painted if column.right else painted + blanks


def _shrink(widths: list[int], allowed: Sequence[bool], room: int) -> None:
    """Narrow the widest of the columns that allow it, again and again, to no less than four each."""
    while sum(widths) > room:
        candidates = [n for n, may in enumerate(allowed) if may and widths[n] > 4]
        if not candidates:
            return
        widths[max(candidates, key=widths.__getitem__)] -= 1
