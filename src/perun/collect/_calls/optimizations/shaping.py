"""Methods by the shape of the graph: `cg-shaping`, and `baseline-static`, which keeps the top of the
graph."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from perun.callgraph.levels import levels_from
from perun.collect._calls.optimizations.plan import Earlier, Effect
from perun.collect._calls.optimizations.settings import COMPLEXITIES, is_small

if TYPE_CHECKING:
    from perun.callgraph.graph import CallGraph
    from perun.collect._calls.optimizations.settings import Settings


class Levels(NamedTuple):
    """The level of each function that calls lead to, the number of levels, and what only pointers may lead
    to.

    The library of the language may call what the program gives it a pointer to, as `qsort` does, or `main` of
    a program in Rust: such a function is one level below the one whose code has the pointer. What only data
    points to is on the lowest level.
    """

    of: Mapping[str, int]
    number: int
    by_pointer: frozenset[str]


def levels_of(graph: CallGraph) -> Levels:
    """The levels of a graph; a call through a pointer leads to what has its address taken, where nothing
    else does."""
    plain = graph.levels()
    count = max(plain.values(), default=-1) + 1
    lowest = max(count - 1, 0)
    beyond = graph.with_pointers()
    roots = [one.name for one in graph.functions.values() if one.address_taken and one.name not in plain]
    given = _with_given(graph) if roots and plain else {}
    found: dict[str, int] = {}
    while roots:
        name = roots.pop()
        if name not in found and name not in plain:
            found[name] = min(given.get(name, lowest), lowest)
            roots += beyond.callees(name)
    return Levels({**plain, **found}, max(count, 1), frozenset(found))


def _with_given(graph: CallGraph) -> dict[str, int]:
    """The levels where a function also leads to those whose addresses its code has."""
    functions = graph.functions

    def leads_to(name: str) -> Iterator[str]:
        yield from graph.callees(name)
        yield from (site for site in functions[name].sites if site in functions)

    return levels_from(graph.entry, leads_to)


def cg_shaping(graph: CallGraph, previous: CallGraph | None, earlier: Earlier, settings: Settings) -> Effect:
    """Keep a projection of the graph: its upper levels, its lower ones, or all that calls lead to.

    What no call leads to is dropped by no mode but `match`: it costs nothing if that is true, and the calls
    of it are not missing if it is not.
    """
    mode = settings.value("cg-mode")
    levels = levels_of(graph)
    if not graph.levels():  # without an entry nothing is known of levels
        return Effect()
    if mode == "match":
        return Effect(
            {
                name: f"no call leads to it from {graph.entry}"
                for name in graph.functions
                if name not in levels.of
            }
        )
    kept = settings.number("cg-proj-levels", max(round(levels.number / 2), 2))
    keeps_leaves = settings.flag("cg-proj-keep-leaf", is_small(graph))
    dropped = {}
    for name, level in levels.of.items():
        inside = level < kept if mode == "top-down" else level >= levels.number - kept
        if inside or name == graph.entry or (keeps_leaves and not graph.callees(name)):
            continue
        where = "only pointers lead to it, which counts as" if name in levels.by_pointer else "it is on"
        side = "first" if mode == "top-down" else "last"
        dropped[name] = f"{where} level {level} of {levels.number}, the {side} {kept} are kept"
    return Effect(dropped)


def baseline_static(
    graph: CallGraph, previous: CallGraph | None, earlier: Earlier, settings: Settings
) -> Effect:
    """Drop functions whose static bound is low, but for those on the first levels."""
    levels = levels_of(graph)
    top = settings.number("static-keep-top", max(math.ceil(levels.number / 10), _branching(levels.of) + 1))
    limit = settings.value("static-complexity")
    allowed = COMPLEXITIES[: COMPLEXITIES.index(limit) + 1]
    return Effect(
        {
            name: f"its bound is {earlier.bounds[name]}"
            for name, level in levels.of.items()
            if level >= top and name != graph.entry and earlier.bounds.get(name) in allowed
        }
    )


def _branching(levels: Mapping[str, int]) -> int:
    """The first level with several functions; the last one if none has."""
    counts = Counter(levels.values())
    return next((level for level in sorted(counts) if counts[level] > 1), max(counts, default=0))
