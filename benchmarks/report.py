"""What the benchmarks found, as a table."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Place:
    """Where a scenario runs, with which commands, and how often it repeats what it measures."""

    perun: str
    peer: str
    folder: Path
    rounds: int


class Measured(float):
    """The median of the rounds, which also knows how far these lay apart: it is shown beside it."""

    least: float
    most: float

    def __new__(cls, samples: Sequence[float]) -> Measured:
        made = super().__new__(cls, statistics.median(samples))
        made.least, made.most = min(samples), max(samples)
        return made


_UNITS = {"s": (1000, 1, "ms"), "%": (1, 2, "%")}
"""By what amounts are multiplied, with how many digits they are told, and in which unit."""


@dataclass(frozen=True)
class Row:
    """One comparison: ours and the peer's amount in `unit`, and how large their ratio may be.

    An amount that is a :class:`Measured` has its spread in the table; any other one was measured once, or
    calculated from several.

    :param limit: a ratio, e.g. 1 where we must not be behind the peer; None where none is promised. Where we
        fall behind all the same, the table says that 1 is missed, and the benchmarks go on.
    :param is_rival: whether the other is a way to do the same, or a bound; False of e.g. the program alone.
    """

    what: str
    ours: float
    peer: float
    peer_name: str
    limit: float | None
    unit: str = "s"
    is_rival: bool = True

    @property
    def ratio(self) -> float:
        return self.ours / self.peer if self.peer else float("nan")

    @property
    def met(self) -> bool:
        return self.limit is None or self.ratio <= self.limit

    @property
    def is_behind(self) -> bool:
        """Whether the other takes less."""
        return self.is_rival and self.ratio > 1

    @property
    def line(self) -> str:
        """The row as a line of a table of Markdown."""
        limit = "" if self.limit is None else f"{self.limit:.2f}"
        if not self.met:
            limit += " (missed)"
        elif self.is_behind:
            limit = f"{limit} (behind)" if limit else "1.00 (missed, not required)"
        ours, peer = self._amount(self.ours), self._amount(self.peer)
        return f"| {self.what} | {ours} | {self.peer_name} | {peer} | {self.ratio:.3f} | {limit} |"

    def _amount(self, value: float) -> str:
        factor, digits, unit = _UNITS.get(self.unit, (1, 0, self.unit))
        told = f"{value * factor:.{digits}f} {unit}"
        if not isinstance(value, Measured):
            return told
        return f"{told} ({value.least * factor:.{digits}f} to {value.most * factor:.{digits}f})"


@dataclass(frozen=True)
class Count:
    """How many of so many cases were answered in one way.

    :param least: and :param most: the goal, None where there is none. :param others: how others do.
    """

    what: str
    counted: int
    of: int
    least: int | None = None
    most: int | None = None
    others: str = ""

    @property
    def met(self) -> bool:
        return (self.least is None or self.counted >= self.least) and (
            self.most is None or self.counted <= self.most
        )

    @property
    def line(self) -> str:
        """The row as a line of the same table."""
        goals = [f"at least {self.least}"] if self.least is not None else []
        goals += [f"at most {self.most}"] if self.most is not None else []
        limit = ", ".join(goals) + ("" if self.met else " (missed)")
        return f"| {self.what} | {self.counted} of {self.of} | {self.others} | | | {limit} |"


def table(rows: Sequence[Row | Count]) -> str:
    """The rows as a table of Markdown."""
    heading = ["| what | Perun | compared with | there | ratio | limit |", "|---|---|---|---|---|---|"]
    return "\n".join([*heading, *(row.line for row in rows)])


_SECTION = "\n## "


def written(introduction: str, sections: Mapping[str, str]) -> str:
    """A file of the sections by their names."""
    return introduction + "".join(f"{_SECTION}{name}\n\n{text}" for name, text in sections.items())


def renewed(text: str, sections: Mapping[str, str]) -> str:
    """The file with these sections in place of those of their names; new ones come last."""
    introduction, *rest = text.split(_SECTION)
    known = dict(one.split("\n\n", 1) for one in rest)
    return written(introduction, known | sections)
