"""What the analysis answers: bounds of the loops of a function, and of the function as a whole (manual,
4.1.4)."""

from __future__ import annotations

from dataclasses import dataclass, field

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

    @property
    def bounded(self) -> bool:
        """Whether the total is finite."""
        return self.bound != UNBOUNDED
