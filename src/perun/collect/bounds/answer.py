"""What the analysis answers: bounds of the loops of a function, and of the function as a whole (manual,
4.1.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

UNBOUNDED = "inf"
"""The bound of what could not be bounded; its class is `UNBOUNDED_CLASS`."""
UNBOUNDED_CLASS = "O(∞)"


@dataclass(frozen=True)
class LoopBound:
    """How often a loop runs at most, in the whole run of its function.

    Lines and columns are 1-based positions in the original source. `bound` is the text of an expression
    (`expression.parse` reads it) or `inf`; `cls` is its class, as `O(n^2)`; `reason` says why there is no
    bound. `nested` loops count their back edges, the others those and one more (`AnalysisOptions.count`).
    """

    first_line: int
    last_line: int
    column: int
    bound: str
    cls: str
    reason: str | None = None
    nested: bool = False


@dataclass(frozen=True)
class FunctionBounds:
    """The bounds of a function: those of its loops in the order of the source, and their sum."""

    name: str
    line: int
    column: int
    loops: tuple[LoopBound, ...] = field(default_factory=tuple)
    bound: str = "0"
    cls: str = "O(1)"
    reason: str | None = None
    steps: int = 0
    """What the analysis has taken, without that of what it calls."""

    @property
    def bounded(self) -> bool:
        """Whether the total is finite."""
        return self.bound != UNBOUNDED


class _Lines(Protocol):
    @property
    def first_line(self) -> int: ...
    @property
    def last_line(self) -> int: ...
    @property
    def column(self) -> int: ...


class _Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...
    @property
    def loops(self) -> Sequence[_Lines]: ...


def unbounded(function: _Named, reason: str, steps: int = 0) -> FunctionBounds:
    """The bounds of a function, read or analysed, of which none of a loop is to be told, for that reason."""
    loops = tuple(
        LoopBound(one.first_line, one.last_line, one.column, UNBOUNDED, UNBOUNDED_CLASS, reason)
        for one in function.loops
    )
    return FunctionBounds(
        function.name, function.line, function.column, loops, UNBOUNDED, UNBOUNDED_CLASS, reason, steps
    )
