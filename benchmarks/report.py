"""What the benchmarks found, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Place:
    """Where a scenario runs, with which commands, and how often it repeats what it measures."""

    perun: str
    peer: str
    folder: Path
    rounds: int


@dataclass(frozen=True)
class Row:
    """One comparison: ours and the peer's median in `unit`, and how large their ratio may be."""

    what: str
    ours: float
    peer: float
    peer_name: str
    limit: float | None
    unit: str = "s"

    @property
    def ratio(self) -> float:
        return self.ours / self.peer if self.peer else float("nan")

    @property
    def met(self) -> bool:
        return self.limit is None or self.ratio <= self.limit

    @property
    def line(self) -> str:
        """The row as a line of a table of Markdown."""
        limit = "" if self.limit is None else f"{self.limit:.2f}" + ("" if self.met else " (missed)")
        ours, peer = self._amount(self.ours), self._amount(self.peer)
        return f"| {self.what} | {ours} | {self.peer_name} | {peer} | {self.ratio:.3f} | {limit} |"

    def _amount(self, value: float) -> str:
        return f"{value * 1000:.1f} ms" if self.unit == "s" else f"{value:.0f} {self.unit}"


def table(rows: Sequence[Row]) -> str:
    """The rows as a table of Markdown."""
    heading = ["| what | Perun | compared with | there | ratio | limit |", "|---|---|---|---|---|---|"]
    return "\n".join([*heading, *(row.line for row in rows)])
