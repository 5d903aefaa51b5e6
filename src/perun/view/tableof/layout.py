"""Tables as text, written row by row: what the formats of tabulate look like is learned from tabulate.

tabulate holds all cells of a table as texts and takes a minute for a million rows. Its output for two rows of
cells that fill their columns tells what stands around the cells: the head of the table, what is between rows,
and its end. The cells themselves are aligned and escaped here, as tabulate does it.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from itertools import chain, islice, repeat
from operator import sub
from typing import Any, Final, NamedTuple

from perun.profile.format.columns import is_packed
from perun.profile.table import ColumnRun
from perun.view._common.screen import printable
from perun.view.tableof.table import ColumnTable, known

_PIPE_IS_SPECIAL: Final = frozenset({"asciidoc", "github", "jira", "pipe"})
"""Formats in which `|` is the border of a cell unless a backslash precedes it."""
_EXACT: Final = "tsv"
"""The format for programs, which need every digit."""
_WITHOUT_ALIGNMENT: Final = "colon_grid"
"""The format that only says how columns are aligned."""
_RST: Final = "rst"
_EMPTY_IN_FRONT: Final = ".."
"""In that format, an empty first cell would make the row a part of the one above."""
_WITHOUT_PADDING: Final = "pretty"
_PADDING: Final = 2
"""By how much columns are wider than their header, in all other formats."""
_ROWS_AT_ONCE: Final = 4096
_FLOAT: Final = "%g"
_MARK: Final = 0xE000
"""The first character for private use, of which the cells are made that stand for others."""
_MARKS: Final = 0x1900


class _Frame(NamedTuple):
    """What stands around the cells of a table.

    :param head: the lines above the first row. :param row: a row with `%s` for each cell.
    :param between: what stands between rows. :param tail: the lines below the last row.
    :param escapes: for `str.translate`, after cells are aligned. :param strips: whether blanks at the end of
        a row are left out.
    """

    head: str
    row: str
    between: str
    tail: str
    escapes: dict[int, str]
    strips: bool


class _Column(NamedTuple):
    """How the cells of a column are written.

    :param text: the text of a value. :param alignment: `left`, `right` or `decimal`.
    :param exact: whether numbers have all of their digits.
    :param declared: the alignment that the format says the column has.
    :param width: of the column. :param behind: the most characters from the decimal point on.
    """

    pieces: Sequence[ColumnRun]
    text: Callable[[Any], str]
    exact: bool
    alignment: str
    declared: str
    width: int
    behind: int


def lines_of(table: ColumnTable, names: Sequence[str], format: str) -> Iterator[str]:
    """The table as pieces of text, each of many rows; the last one ends with a line break.

    Memory is needed for some thousand rows, however many there are.

    :param names: the columns to show.
    :raises UsageError: if the table does not have one of them.
    """
    for name in names:
        known(table, name, "show")
    titles = [_title(name, format) for name in names]
    padding = 0 if format == _WITHOUT_PADDING else _PADDING
    columns = [
        _column(table.columns[name], format, _width(title) + padding, first=not place)
        for place, (name, title) in enumerate(zip(names, titles, strict=True))
    ]
    if not table.size:
        yield _tabulated([], titles, format, None) + "\n"
        return
    frame = _frame(columns, titles, format)
    yield frame.head
    cells = [_cells(column, frame) for column in columns]
    start = ""
    while rows := list(islice(zip(*cells, strict=True), _ROWS_AT_ONCE)):
        made: Iterable[str] = map(frame.row.__mod__, rows)
        if frame.strips:
            made = map(str.rstrip, made)
        yield start + frame.between.join(made)
        start = frame.between
    yield frame.tail


def _tabulated(rows: Sequence[Sequence[str]], titles: Sequence[str], format: str, aligned: Any) -> str:
    from tabulate import tabulate

    name = format.replace("-", "")
    # Otherwise tabulate prints a uid of digits, or a hash like 12e5, as a number.
    return str(tabulate(rows, titles, tablefmt=name, disable_numparse=True, colalign=aligned))


def _frame(columns: Sequence[_Column], titles: Sequence[str], format: str) -> _Frame:
    alignments = [column.declared for column in columns]
    marks = [[chr(_MARK + (2 * place + row) % _MARKS) for place in range(len(columns))] for row in (0, 1)]
    filled = [[mark * column.width for mark, column in zip(own, columns, strict=True)] for own in marks]
    lines = _tabulated(filled, titles, format, alignments).split("\n")
    first, second = (next(number for number, line in enumerate(lines) if own[0] in line) for own in marks)
    row = lines[first].replace("%", "%%")
    for cell in filled[0]:
        row = row.replace(cell, "%s", 1)
    between = "".join(f"\n{line}" for line in lines[first + 1 : second]) + "\n"
    return _Frame(
        head="".join(f"{line}\n" for line in lines[:first]),
        row=row,
        between=between,
        tail="".join(f"\n{line}" for line in lines[second + 1 :]) + "\n",
        escapes=_escapes(format),
        strips=row.endswith("%s"),
    )


def _escapes(format: str) -> dict[int, str]:
    """What the format writes in place of characters that are special in it."""
    mark = chr(_MARK)
    signs = string.punctuation
    line = next(
        line
        for line in _tabulated([[f"{mark}{sign}{mark}" for sign in signs]], [], format, None).split("\n")
        if mark in line
    )
    found = line.split(mark)[1::2]
    return {ord(sign): text for sign, text in zip(signs, found, strict=True) if sign != text}


def _title(name: str, format: str) -> str:
    return _texts(format)(name).strip()


def _texts(format: str, empty: str = "") -> Callable[[Any], str]:
    """What makes the text of a value that is no number; `empty` stands for none."""
    special = format in _PIPE_IS_SPECIAL

    def text(value: object) -> str:
        made = "" if value is None else printable(str(value)).strip()
        if not made:
            return empty
        return made.replace("|", r"\|") if special else made

    return text


def _column(pieces: Sequence[ColumnRun], format: str, least: int, *, first: bool) -> _Column:
    declared = _alignment(pieces)
    alignment = "left" if format == _WITHOUT_ALIGNMENT else declared
    empty = _EMPTY_IN_FRONT if first and format == _RST else ""
    text = _text_of_value(format, empty)
    column = _Column(pieces, text, format == _EXACT, alignment, declared, least, -1)
    # Blanks behind a number, so that the points of all are below each other, take room, too.
    before, behind = 0, -1
    for texts in _samples(column):
        if alignment == "decimal":
            places = _places(texts)
            behind = max(behind, *places)
            before = max(before, *map(sub, map(len, texts), places))
        else:
            before = max(before, *map(_width, texts))
    width = before + (behind if alignment == "decimal" else 0)
    return column._replace(width=max(least, width), behind=behind)


def _text_of_value(format: str, empty: str) -> Callable[[Any], str]:
    other = _texts(format, empty)
    found: dict[str, str] = {}
    exact = format == _EXACT

    def text(value: Any) -> str:
        kind = type(value)
        if kind is float:
            return repr(value) if exact else _FLOAT % value
        if kind is int:
            return str(value)
        if kind is not str:
            return other(value)
        if value not in found:
            found[value] = other(value)
        return found[value]

    return text


def _samples(column: _Column) -> Iterator[list[str]]:
    """The texts that tell how wide the column is, some thousand at once: not all where few do."""
    for piece in column.pieces:
        if piece.values is None:
            yield [column.text(piece.value)]
        elif is_packed(piece.values) and type(piece.values[0]) is int:
            yield [str(min(piece.values)), str(max(piece.values))]
        else:
            yield from _texts_of(column, piece.values)


def _texts_of(column: _Column, values: Iterable[Any]) -> Iterator[list[str]]:
    """The texts of values, in their order, some thousand at once."""
    make: Callable[[Iterable[Any]], list[str]] = lambda some: list(map(column.text, some))  # noqa: E731
    if is_packed(values):
        make = _texts_of_numbers if column.exact else _short_texts_of_numbers
    following = iter(values)
    while texts := make(islice(following, _ROWS_AT_ONCE)):
        yield texts


def _texts_of_numbers(values: Iterable[float]) -> list[str]:
    return list(map(repr, values))


def _short_texts_of_numbers(values: Iterable[float]) -> list[str]:
    return [_FLOAT % one if type(one) is float else str(one) for one in values]


def _cells(column: _Column, frame: _Frame) -> Iterator[str]:
    return chain.from_iterable(_aligned(column, frame))


def _aligned(column: _Column, frame: _Frame) -> Iterator[Iterable[str]]:
    """The cells, aligned and escaped, some at once."""
    escapes = frame.escapes
    for piece in column.pieces:
        if piece.values is None:
            cell = _align(column, [column.text(piece.value)])[0]
            yield repeat(cell.translate(escapes) if escapes else cell, piece.size)
            continue
        escaped = escapes and not is_packed(piece.values)
        for texts in _texts_of(column, piece.values):
            cells = _align(column, texts)
            yield [cell.translate(escapes) for cell in cells] if escaped else cells


def _align(column: _Column, texts: list[str]) -> list[str]:
    width = column.width
    if column.alignment == "decimal":
        blanks = [" " * (column.behind - place) for place in range(-1, column.behind + 1)]
        return [
            (text + blanks[place + 1]).rjust(width) for text, place in zip(texts, _places(texts), strict=True)
        ]
    if column.alignment == "right":
        return [text.rjust(width) for text in texts]
    return [text.ljust(width) if text.isascii() else text + " " * (width - _width(text)) for text in texts]


def _places(texts: Iterable[str]) -> list[int]:
    """How many characters of each are behind the decimal point, see :func:`_behind`."""
    return [len(text) - place - 1 if (place := text.rfind(".")) >= 0 else _behind(text) for text in texts]


def _behind(text: str) -> int:
    """How many characters are behind the `e` of a number without a decimal point; -1 if it has none."""
    place = text.rfind("e")
    return len(text) - place - 1 if place >= 0 else -1


def _width(text: str) -> int:
    """The columns of a terminal that the text takes, as tabulate counts them: by wcwidth, if it is there."""
    if text.isascii():
        return len(text)
    count = _wide()
    return count(text) if count else len(text)


@cache
def _wide() -> Callable[[str], int] | None:
    try:
        count: Callable[[str], int] = import_module("wcwidth").wcswidth
    except ImportError:
        return None
    return count


def _alignment(pieces: Iterable[ColumnRun]) -> str:
    kinds = {kind for piece in pieces for kind in _kinds(piece)} - {type(None)}
    if not kinds or not kinds <= {int, float}:
        return "left"
    return "decimal" if float in kinds else "right"


def _kinds(piece: ColumnRun) -> Iterable[type]:
    if piece.values is None:
        return (type(piece.value),)
    if is_packed(piece.values):
        return (type(piece.values[0]),) if len(piece.values) else ()
    return set(map(type, piece.values))
