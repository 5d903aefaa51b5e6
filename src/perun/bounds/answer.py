"""What the analysis answers: bounds of the loops of a function, and of the function as a whole (manual,
4.1.4)."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from perun.bounds.front.unit import UnreadablePart


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


# What was found of one source: the bounds of its functions, and what could not be read.

NOT_REACHED = "what is before it in the source takes all that --source-timeout gives"
"""Why a function was not analysed."""


class Gap(NamedTuple):
    """A part of a source that could not be read: its 1-based line, and in which header where it is in one.

    `function` is empty where it is no single one.
    """

    line: int
    function: str
    reason: str
    header: str = ""


class SourceBounds(NamedTuple):
    """The functions of a source in the order of the text, and what could not be read of it.

    :param key: under which the cache has it; empty if it is not to be kept. :param name: under which the
        cache finds the newest version of the source. :param digests: of the functions, empty for those that
        could not be read. :param limit: the steps that the functions have together.
    """

    path: str
    functions: tuple[FunctionBounds, ...]
    gaps: tuple[Gap, ...] = ()
    key: str = ""
    name: str = ""
    digests: tuple[str, ...] = ()
    limit: float = math.inf

    def to_json(self) -> dict[str, Any]:
        """What the cache keeps."""
        return {
            "functions": [asdict(one) for one in self.functions],
            "gaps": [list(gap) for gap in self.gaps],
            "digests": list(self.digests),
        }

    @classmethod
    def from_json(cls, path: str, kept: Mapping[str, Any]) -> SourceBounds:
        """The reverse of :meth:`to_json`.

        :raises KeyError, TypeError, ValueError, AttributeError: where it is something else.
        """
        functions = tuple(
            FunctionBounds(**{**one, "loops": tuple(LoopBound(**loop) for loop in one["loops"])})
            for one in kept["functions"]
        )
        gaps = tuple(Gap(*one) for one in kept["gaps"])
        if len(kept["digests"]) != len(functions):
            raise ValueError("a digest is missing")
        return cls(path, functions, gaps, digests=tuple(map(str, kept["digests"])))


def of_unreadable(parts: Iterable[UnreadablePart], path: str) -> tuple[list[FunctionBounds], list[Gap]]:
    """Functions of a source that cannot be read, which are unbounded as all their loops are; and all that is
    lacking."""
    functions, gaps = [], []
    for one in parts:
        gaps.append(Gap(one.line, one.function, one.reason, _header(one.file, path)))
        if one.function:
            reason = f"not read: {one.reason}"
            loops = tuple(
                LoopBound(loop.first_line, loop.last_line, loop.column, UNBOUNDED, UNBOUNDED_CLASS, reason)
                for loop in one.loops
            )
            functions.append(
                FunctionBounds(
                    one.function, one.name_line, one.name_column, loops, UNBOUNDED, UNBOUNDED_CLASS, reason
                )
            )
    return functions, gaps


def _header(file: str, path: str) -> str:
    """The file, if it is another than the source: seen from the current folder, where it is inside."""
    whole = os.path.realpath(file)
    if whole == os.path.realpath(path):
        return ""
    inside = os.path.relpath(whole)
    return whole if inside.startswith(os.pardir) else inside


def merged(parts: Iterable[SourceBounds]) -> SourceBounds:
    """The parts of one source as one, its functions in their order; what lacks is the same in each part.

    Functions that are not reached with the steps that the source has are unbounded, whichever part they are
    of: so the answer is the same with any number of processes.
    """
    several = list(parts)
    every = [both for part in several for both in zip(part.functions, part.digests, strict=True)]
    every.sort(key=lambda both: (both[0].line, both[0].column))
    gaps = dict.fromkeys(gap for part in several for gap in part.gaps)
    taken = 0
    for index, (one, _) in enumerate(every):
        if taken > several[0].limit:
            every[index] = unbounded(one, NOT_REACHED), ""
            gaps[Gap(one.line + 1, one.name, NOT_REACHED)] = None
        taken += one.steps
    return several[0]._replace(
        functions=tuple(one for one, _ in every),
        gaps=tuple(gaps),
        digests=tuple(digest for _, digest in every),
    )
