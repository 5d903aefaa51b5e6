"""What was found of one source: the bounds of its functions, and what could not be read."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from perun.collect.bounds.answer import UNBOUNDED, UNBOUNDED_CLASS, FunctionBounds, LoopBound, unbounded

if TYPE_CHECKING:
    from perun.collect.bounds.front.unit import Unreadable


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


def of_unreadable(parts: Iterable[Unreadable], path: str) -> tuple[list[FunctionBounds], list[Gap]]:
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
