"""The resources of a profile of bounds, as the manual's 4.1.4 has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from perun.collect.bounds.answer import FunctionBounds
from perun.collect.bounds.found import SourceBounds
from perun.profile.bounds import LOCAL, TOTAL, TYPE


def resources(sources: Iterable[SourceBounds]) -> Iterator[dict[str, Any]]:
    """A resource for each loop, and one for each function, all of which have persistent properties only.

    The `line` and `column` of a loop are the lines where it begins and ends, 1-based; those of a function are
    line and column of its name, 0-based.
    """
    for source in sources:
        for function in source.functions:
            yield from _of_function(source.path, function)


def unread(sources: Iterable[SourceBounds]) -> list[dict[str, Any]]:
    """What could not be read, as the region of the profile says it."""
    return [
        {"source": source.path, "line": gap.line, "function": gap.function, "reason": gap.reason}
        | ({"header": gap.header} if gap.header else {})
        for source in sources
        for gap in source.gaps
    ]


def _of_function(source: str, function: FunctionBounds) -> Iterator[dict[str, Any]]:
    for loop in function.loops:
        yield _resource(
            source, function.name, (loop.first_line, loop.last_line), LOCAL, loop.bound, loop.cls, loop.reason
        )
    place = function.line, function.column
    yield _resource(source, function.name, place, TOTAL, function.bound, function.cls, function.reason)


def _resource(
    source: str,
    function: str,
    place: tuple[int, int],
    subtype: str,
    bound: str,
    growth: str,
    reason: str | None,
) -> dict[str, Any]:
    line, column = place
    uid = {"source": source, "function": function, "line": line, "column": column}
    made = {"uid": uid, "type": TYPE, "subtype": subtype, "bound": bound, "class": growth}
    return {**made, "reason": reason} if reason else made
