"""The history of versions drawn as a graph beside the text, as `git log --graph` does, one version at a time.

Every branch that is still waiting for a version has a column of two characters. Drawing a version can
only fork columns, let one touch its neighbour, join two that wait for the same version, and close the
column of a version without parents; each of these is one row (a join over other columns: two).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

Paint = Callable[[str, str], str]
"""Gives a text a colour, which is named as `click.style` names it."""
ChangeKind = Literal["degradation", "optimization"]

CHANGE_COLOURS: Final[dict[str, str]] = {"degradation": "red", "optimization": "green"}
COLUMN_COLOURS: Final = ("yellow", "blue", "magenta", "cyan", "bright_yellow", "bright_blue")
"""Colours of the columns, in turn; red and green are left to the changes of performance."""


class GraphRows(NamedTuple):
    """What stands left of one version.

    :param commit: prefix of its first line.
    :param text: prefix of all further lines of it.
    :param links: whole lines that follow them, leading to the next version; often none.
    """

    commit: str
    text: str
    links: tuple[str, ...]


class _Column:
    """A branch on its way down: the version it waits for, its colour, and that of its current edge."""

    __slots__ = ("awaits", "colour", "edge")

    def __init__(self, awaits: str | None, colour: str, edge: str) -> None:
        self.awaits = awaits
        self.colour = colour
        self.edge = edge


class _Canvas:
    """One row of characters, each with a colour; blanks have none."""

    def __init__(self, width: int) -> None:
        self.characters = [" "] * width
        self.colours = [""] * width

    def put(self, position: int, character: str, colour: str) -> None:
        self.characters[position] = character
        self.colours[position] = colour

    def text(self, paint: Paint | None) -> str:
        if paint is None:
            return "".join(self.characters)
        # Neighbours of one colour are painted at once, so that a wide graph is not mostly escapes.
        runs: list[tuple[str, str]] = []
        for character, colour in zip(self.characters, self.colours, strict=True):
            if runs and runs[-1][1] == colour:
                runs[-1] = (runs[-1][0] + character, colour)
            else:
                runs.append((character, colour))
        return "".join(paint(text, colour) if colour else text for text, colour in runs)


class CommitGraph:
    """Draws versions in the order they are given, which must be children before parents.

    Parents that never come (beyond the end of a shallow or limited walk) keep their column to the end.

    :param paint: gives a text a colour; without it nothing is coloured.
    """

    def __init__(self, paint: Paint | None = None) -> None:
        self._paint = paint
        self._columns: list[_Column] = []
        self._started = 0
        self._closed = -1
        self._straight: dict[str, GraphRows] = {}
        self._cells = {"": "  "}

    @property
    def straight(self) -> bool:
        """Whether no branch is drawn beside the version drawn last."""
        return len(self._columns) <= 1

    def commit(self, checksum: str, parents: Sequence[str], change: ChangeKind | None = None) -> GraphRows:
        """Draw the next version.

        :param change: the kind of change of performance that the version brought; its mark and the lines
            from it down to its parents have the colour of that change (manual 14.41).
        """
        columns = self._columns
        if len(columns) == 1 == len(parents) and change is None and columns[0].awaits == checksum:
            # The straight piece of history, by far the most usual: nothing forks and nothing joins.
            column = columns[0]
            column.awaits = parents[0]
            column.edge = column.colour
            return self._straight.get(column.colour) or self._draw_straight(column.colour)
        at = self._find(checksum)
        column = columns[at]
        column.edge = CHANGE_COLOURS[change] if change else column.colour
        rows = self._draw_version(at, CHANGE_COLOURS[change] if change else "", bool(parents))
        links = self._link(at, [parent for parent in dict.fromkeys(parents) if parent != checksum])
        return rows._replace(links=tuple(link.rstrip() for link in links)) if links else rows

    def _draw_straight(self, colour: str) -> GraphRows:
        rows = GraphRows("* ", self._cell(colour), ())
        self._straight[colour] = rows
        return rows

    def _cell(self, colour: str) -> str:
        """A line straight down, two characters wide; of no colour if nothing comes down."""
        if colour not in self._cells:
            self._cells[colour] = f"{self._paint('|', colour) if self._paint else '|'} "
        return self._cells[colour]

    def _find(self, checksum: str) -> int:
        """The column of a version; the newest version of a branch starts one at the right."""
        for position, column in enumerate(self._columns):
            if column.awaits == checksum:
                return position
        if len(self._columns) == self._closed:
            # Straight below a version without parents it would look like the parent of that.
            self._columns.append(_Column(None, "", ""))
        self._columns.append(self._start(checksum, ""))
        return len(self._columns) - 1

    def _start(self, checksum: str, edge: str) -> _Column:
        colour = COLUMN_COLOURS[self._started % len(COLUMN_COLOURS)]
        self._started += 1
        return _Column(checksum, colour, edge or colour)

    def _draw_version(self, at: int, mark_colour: str, has_parents: bool) -> GraphRows:
        cells = [self._cell(column.edge) for column in self._columns]
        text = "".join(cells) if has_parents else "".join([*cells[:at], "  ", *cells[at + 1 :]])
        cells[at] = f"{self._paint('*', mark_colour) if self._paint and mark_colour else '*'} "
        return GraphRows("".join(cells), text, ())

    def _link(self, at: int, parents: list[str]) -> list[str]:
        """Lead the lines of the version in column `at` to its parents; the rows that show it."""
        rows: list[str] = []
        self._closed = -1
        awaited = {column.awaits for column in self._columns}
        column = self._columns[at]
        edge = column.edge if column.edge != column.colour else ""
        known = [parent for parent in parents if parent in awaited]
        for neighbour in (at - 1, at + 1):
            parent = self._columns[neighbour].awaits if 0 <= neighbour < len(self._columns) else None
            if len(parents) > 1 and parent in known:
                rows.append(self._touch(at, neighbour))
                parents.remove(parent)
                known.remove(parent)
        # A parent that no column waits for yet goes straight on, so that fewer lines have to cross.
        parents.sort(key=known.__contains__)
        column.awaits = parents[0] if parents else None
        rows.extend(self._fork(at, self._start(parent, edge)) for parent in reversed(parents[1:]))
        for parent in known:
            left, right = (n for n, column in enumerate(self._columns) if column.awaits == parent)
            rows.extend(self._join(left, right))
        rows.extend(self._close(at))
        return rows

    def _verticals(self, width: int, until: int | None = None) -> _Canvas:
        """A row in which all columns (those left of `until`) go straight down."""
        row = _Canvas(width)
        for position, column in enumerate(self._columns[:until]):
            if column.awaits is not None:
                row.put(2 * position, "|", column.edge)
        return row

    def _touch(self, at: int, neighbour: int) -> str:
        """A line from column `at` to the one beside it, both going on: `|/|` or `|\\|`."""
        row = self._verticals(2 * len(self._columns) - 1)
        row.put(at + neighbour, "/" if neighbour < at else "\\", self._columns[at].edge)
        return row.text(self._paint)

    def _fork(self, at: int, column: _Column) -> str:
        r"""A new column right of `at`, all columns there making place: `|\ \`."""
        row = self._verticals(2 * len(self._columns), at + 1)
        for position in range(at + 1, len(self._columns)):
            row.put(2 * position + 1, "\\", self._columns[position].edge)
        row.put(2 * at + 1, "\\", column.edge)
        self._columns.insert(at + 1, column)
        return row.text(self._paint)

    def _join(self, left: int, right: int) -> list[str]:
        """Column `right` ends in column `left`, those right of it moving up: `|/ /`, or `|_|/` and `|/|`."""
        columns = self._columns
        edge = columns[right].edge
        row = self._verticals(2 * len(columns) - 1, right)
        for position in range(right + 1, len(columns)):
            row.put(2 * position - 1, "/", columns[position].edge)
        for position in range(2 * left + 1, 2 * right - 1, 2):
            row.put(position, "_", edge)
        row.put(2 * right - 1, "/", edge)
        del columns[right]
        rows = [row.text(self._paint)]
        if right - left > 1:
            row = self._verticals(2 * len(columns) - 1)
            row.put(2 * left + 1, "/", edge)
            rows.append(row.text(self._paint))
        return rows

    def _close(self, at: int) -> list[str]:
        """Remove the columns that wait for nothing, those right of them moving up: `| / /`."""
        columns = self._columns
        rows = []
        if at == len(columns) - 1 and columns[at].awaits is None:
            self._closed = at
        while columns and columns[-1].awaits is None:
            columns.pop()
        for gap in reversed([n for n, column in enumerate(columns) if column.awaits is None]):
            row = self._verticals(2 * len(columns) - 2, gap)
            for position in range(gap + 1, len(columns)):
                row.put(2 * position - 1, "/", columns[position].edge)
            del columns[gap]
            rows.append(row.text(self._paint))
        return rows
