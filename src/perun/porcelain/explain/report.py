"""What changed of a function in one sentence, as a person would say it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from perun.measurement import present
from perun.porcelain.explain.costs import OUTSIDE
from perun.porcelain.explain.data import Cost, FunctionChange
from perun.profile.amounts import factor, readable_pair
from perun.wording import listed, plural

_VERBS: Final = {
    "instructions": ("executes", "the instructions"),
    "allocated": ("allocates", "the memory"),
    "allocations": ("makes", "the allocations"),
    "temporary": ("makes", "the allocations that it frees at once"),
    "peak": ("holds", "the memory at the peak"),
    "leaked": ("leaks", "the memory"),
}
_CALLS: Final = "calls"
_FELT: Final = 0.005
"""Growth of memory, as a part of that of the program, that is told beside what a function executes."""


def sentence(one: FunctionChange) -> str:
    """`sort() executes 1.9x the instructions [exact], 22 M -> 43 M; 12 lines of it changed in sort.c:40`."""
    name = f"{one.name}()" if one.name.isidentifier() else one.name
    parts = [" and ".join(_costs(one)) or "costs the same"]
    parts += [f"it is called {ratio(cost)} as often [exact], {cost.before:,.0f} -> {cost.after:,.0f}"
              for cost in one.costs if cost.metric == _CALLS]  # fmt: skip
    parts += _lines(one)
    if one.growth is not None and one.growth.changed:
        before, after = order(one.growth.before), order(one.growth.after)
        parts.append(f"its order of growth went from {before} to {after}")
    if one.new_callers:
        parts.append(f"{listed(one.new_callers)} now calls it" if len(one.new_callers) == 1
                     else f"{listed(one.new_callers)} now call it")  # fmt: skip
    if one.moved_with:
        parts.append(f"the cost moved: {listed(one.moved_with)} changed by as much the other way")
    return f"{name} {'; '.join(parts)}"


def order(formula: str) -> str:
    """`n^2` of `3us + 2us * n^2`, and `constant` of what does not grow."""
    return formula.partition(" * ")[2] or "constant"


def certainty(cost: Cost) -> str:
    """`exact`, or the interval of the ratio."""
    if cost.exact:
        return "exact"
    return "{:.3g}, {:.3g}".format(*cost.bounds) if cost.bounds else "noise unknown"


def difference(cost: Cost) -> str:
    """How much more or less it is, with the interval: `+5.0 % [+3.1, +6.9]`."""
    ratio = math.nan if cost.ratio is None else cost.ratio
    return present.step((cost.before, cost.after), ratio, *(cost.bounds or (ratio, ratio)), cost.unit)


def ratio(cost: Cost) -> str:
    """`1.9x`; `new` and `gone` of what is only on one side."""
    if not cost.before:
        return "new"
    if not cost.after:
        return "gone"
    return factor(cost.ratio or 0.0)


def _costs(one: FunctionChange) -> Iterator[str]:
    """The most important cost of what it executes, and of memory where that matters."""
    costs = [cost for cost in one.costs if cost.metric != _CALLS]
    running = [cost for cost in costs if cost.metric not in _VERBS or cost.metric == "instructions"]
    memory = [cost for cost in costs if cost not in running]
    felt = [cost for cost in memory if cost.share >= _FELT and cost.metric != "temporary"]
    if not any(abs(cost.share) >= _FELT for cost in running) and felt:
        running = []
    told = [*running[:1], *([_telling(felt)] if felt else [] if running else memory[:1])]
    for cost in sorted(told, key=lambda cost: -abs(cost.share)):
        before, after = readable_pair(cost.before, cost.after, cost.unit)
        verb, what = _VERBS.get(cost.metric, ("takes", f"the {cost.metric}"))
        sure = f"[{certainty(cost)}]"
        if not cost.before:
            yield f"{verb} {what.removeprefix('the ')} that it did not before {sure}: {after}"
        elif not cost.after:
            yield f"no longer {verb} {what.removeprefix('the ')} {sure}: {before} before"
        else:
            yield f"{verb} {ratio(cost)} {what} {sure}, {before} -> {after}"


def _telling(memory: Sequence[Cost]) -> Cost:
    """The largest growth of memory, but a leak that is not small beside it: it tells more."""
    largest = max(memory, key=lambda cost: cost.share)
    return next((one for one in memory if one.metric == "leaked" and one.share > largest.share / 10), largest)


def _lines(one: FunctionChange) -> Iterator[str]:
    if one.name == OUTSIDE:
        return
    where = place(one)
    if one.changed_lines:
        yield f"{plural(one.changed_lines, 'line')} of it changed in {where}"
    elif where:
        yield f"no line of it changed in {where}"
    elif one.source:
        yield "its lines are not known"
    if one.near:
        places = [f"{path}:{line.new or line.old}" for path, line in one.near if line.mark == "+"]
        places = places or [f"{path}:{line.old} (removed)" for path, line in one.near]
        yield f"it uses what changed in {listed(list(dict.fromkeys(places)))}"


def place(one: FunctionChange) -> str:
    """`src/sort.c:40-61`, the path alone where the lines are not known, or empty."""
    if not one.path or not one.first:
        return one.path
    return f"{one.path}:{one.first}" + (f"-{one.last}" if one.last > one.first else "")
