"""The methods: by what changed between two versions, by earlier profiles, and by the shape of the graph."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.collect._calls.optimizations.plan import (
    CallStatistics,
    EarlierProfiles,
    MethodEffect,
    ProbeSwitching,
)
from perun.collect._calls.optimizations.settings import COMPLEXITIES, is_small
from perun.native.callgraph.difference import GraphDifference, difference
from perun.native.callgraph.graph import levels_from
from perun.profile.amounts import readable

if TYPE_CHECKING:
    from perun.collect._calls.optimizations.settings import OptimizationSettings
    from perun.native.callgraph.graph import CallGraph


# The method `diff-tracing`: only what changed between two versions of a program is traced.


def diff_tracing(
    graph: CallGraph, previous: CallGraph | None, earlier: EarlierProfiles, settings: OptimizationSettings
) -> MethodEffect:
    """Drop what did not change since the earlier version (manual 3.3.1)."""
    if previous is None:
        return MethodEffect()
    found = difference_of(graph, previous, settings)
    keeps_leaves = settings.flag("diff-keep-leaf", is_small(graph))
    dropped = {}
    for name in graph.functions:
        if name in found.changed or (keeps_leaves and not graph.callees(name)):
            continue
        before = found.renamed.get(name)
        dropped[name] = f"it did not change, and was called {before}" if before else "it did not change"
    return MethodEffect(dropped)


def difference_of(graph: CallGraph, previous: CallGraph, settings: OptimizationSettings) -> GraphDifference:
    """The :func:`difference` that the settings mean."""
    return difference(graph, previous, settings.value("diff-cfg-mode"), settings.flag("diff-inspect-all"))


# Methods by the shape of the graph: `cg-shaping`, and `baseline-static`, which keeps the top of the
# graph.


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


def cg_shaping(
    graph: CallGraph, previous: CallGraph | None, earlier: EarlierProfiles, settings: OptimizationSettings
) -> MethodEffect:
    """Keep a projection of the graph: its upper levels, its lower ones, or all that calls lead to.

    What no call leads to is dropped by no mode but `match`: it costs nothing if that is true, and the calls
    of it are not missing if it is not.
    """
    mode = settings.value("cg-mode")
    levels = levels_of(graph)
    if not graph.levels():  # without an entry nothing is known of levels
        return MethodEffect()
    if mode == "match":
        return MethodEffect(
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
    return MethodEffect(dropped)


def baseline_static(
    graph: CallGraph, previous: CallGraph | None, earlier: EarlierProfiles, settings: OptimizationSettings
) -> MethodEffect:
    """Drop functions whose static bound is low, but for those on the first levels."""
    levels = levels_of(graph)
    top = settings.number("static-keep-top", max(math.ceil(levels.number / 10), _branching(levels.of) + 1))
    limit = settings.value("static-complexity")
    allowed = COMPLEXITIES[: COMPLEXITIES.index(limit) + 1]
    return MethodEffect(
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


# Methods by what earlier profiles say: `baseline-dynamic` and `dynamic-sampling`; and the two of the
# engines.

REGULAR: Final = 0.05
"""Times whose interquartile range is a smaller part of their median say the same again and again."""
SHORT: Final = 10.0
"""Microseconds of a short call."""
WRAPPED: Final = 0.8
"""Part of the median time of its only caller from which on a function says what that says."""
MAX_SAMPLING: Final = 65_536
"""A function is sampled no more than that."""
_STEPS: Final = {"constant": 2.0, "logarithmic": 2.0, "linear": 1.5}


def baseline_dynamic(
    graph: CallGraph, previous: CallGraph | None, earlier: EarlierProfiles, settings: OptimizationSettings
) -> MethodEffect:
    """Drop what is called very often, often and with short or regular times, or what only its caller's time
    holds."""
    dropped: dict[str, str] = {}
    for name in graph.functions:
        seen = earlier.seen.get(name)
        if seen is not None and name != graph.entry and (why := _too_often(seen, settings)):
            dropped[name] = why
    # From the top, as the caller that is compared with is one that stays.
    level = levels_of(graph).of
    for name in sorted(graph.functions, key=lambda one: level.get(one, 0)):
        seen = earlier.seen.get(name)
        if seen is None or name in dropped or name == graph.entry or len(seen.callers) != 1:
            continue
        (caller,) = seen.callers
        above = earlier.seen.get(caller)
        if above is not None and caller not in dropped and seen.median >= WRAPPED * above.median > 0:
            share = min(seen.median / above.median, 1.0)
            dropped[name] = f"it takes {share:.0%} of the time of {caller}, its only caller"
    return MethodEffect(dropped)


def _too_often(seen: CallStatistics, settings: OptimizationSettings) -> str:
    calls = f"it was called {seen.calls:,} times"
    if seen.calls > settings.hard:
        return f"{calls}, more than {settings.hard:,}"
    if seen.calls <= settings.soft:
        return ""
    if seen.median <= SHORT:
        return f"{calls}, more than {settings.soft:,}, for {readable(seen.median, 'us')}"
    if seen.iqr < REGULAR * seen.median:
        return f"{calls}, more than {settings.soft:,}, with regular times"
    return ""


def dynamic_sampling(
    graph: CallGraph, previous: CallGraph | None, earlier: EarlierProfiles, settings: OptimizationSettings
) -> MethodEffect:
    """Sample each function so that about `dyn-sample-threshold` of its calls are recorded.

    Where nothing was recorded yet the deeper ones are sampled more, as they are called more often.
    """
    threshold = settings.number("dyn-sample-threshold", 1)
    step = float(settings.value("dyn-sample-step"))
    levels = levels_of(graph).of
    sampling = {}
    for name in graph.functions:
        seen = earlier.seen.get(name)
        if seen is not None:
            wanted = round(seen.calls / threshold)
        else:
            base = step * _STEPS.get(earlier.bounds.get(name, ""), 1.0)
            wanted = _power(base, levels.get(name, 0))
        if wanted > 1:
            sampling[name] = min(wanted, MAX_SAMPLING)
    return MethodEffect(sampling=sampling)


def _power(base: float, exponent: int) -> int:
    value = 1.0
    for _ in range(exponent):
        value *= base
        if value >= MAX_SAMPLING or base <= 1:
            break
    return round(min(value, MAX_SAMPLING))


def dynamic_probing(
    graph: CallGraph, previous: CallGraph | None, earlier: EarlierProfiles, settings: OptimizationSettings
) -> MethodEffect:
    """Have the engine probe a function no longer once it has recorded so many calls of it."""
    return MethodEffect(
        switching=ProbeSwitching(settings.number("probing-threshold", 0), settings.flag("probing-reattach"))
    )


def timed_sampling(
    graph: CallGraph, previous: CallGraph | None, earlier: EarlierProfiles, settings: OptimizationSettings
) -> MethodEffect:
    """Have the engine switch all probes but that of the entry off and on by a timer."""
    return MethodEffect(switching=ProbeSwitching(period=float(settings.value("timed-sample-freq"))))
