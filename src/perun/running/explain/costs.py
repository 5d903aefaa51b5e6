"""What each function costs by itself before and after, by two profiles of one collector.

Functions of the project count with the functions of libraries that they call, as nobody changed those: the
cost of a library function is that of the nearest function of the project on its call stack, and told as a
part of it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.core.wording import listed, plural
from perun.measurement import present
from perun.profile.amounts import factor, readable_pair
from perun.profile.format.grouping import ResourceGroup
from perun.profile.memory import is_release, is_summary
from perun.profile.uid import flatten
from perun.running.explain.data import CostChange, FunctionChange

if TYPE_CHECKING:
    from perun.profile.factory import Profile


OUTSIDE: Final = "(outside of the project)"
"""What no function of the project called, such as the start-up of a program."""


_UNKNOWN: Final = ("unreachable", "unknown", "??")


class FunctionKey(NamedTuple):
    """A function as profiles name it. :param source: the base name of its file; may be empty."""

    name: str
    source: str = ""


IsOwn = Callable[[FunctionKey], bool]
"""Whether a function is one of the project."""


class FunctionCost(NamedTuple):
    """What a function spends. :param parts: by function of a library. :param callers: by its caller."""

    amount: float
    parts: Mapping[FunctionKey, float]
    callers: Mapping[FunctionKey, float]


def instructions(profile: Profile, is_own: IsOwn) -> dict[FunctionKey, FunctionCost]:
    """The instructions of each function of the project, and of :data:`OUTSIDE`."""
    amounts: dict[FunctionKey, float] = defaultdict(float)
    parts: dict[FunctionKey, dict[FunctionKey, float]] = defaultdict(lambda: defaultdict(float))
    callers: dict[FunctionKey, dict[FunctionKey, float]] = defaultdict(lambda: defaultdict(float))
    for group in profile.groups():
        if group.constants.get("subtype") != "exclusive":
            continue
        for stack, amount in _stacks(group):
            own = next((number for number, place in enumerate(stack) if is_own(place)), None)
            if own is None:
                charged, above = FunctionKey(OUTSIDE), []
            else:
                charged, above = stack[own], stack[own + 1 :]
            amounts[charged] += amount
            if own != 0 and stack:
                parts[charged][stack[0]] += amount
            caller = next((place for place in above if place != charged and is_own(place)), None)
            if caller is not None:
                callers[charged][caller] += amount
    return {place: FunctionCost(amount, parts[place], callers[place]) for place, amount in amounts.items()}


def totals(profile: Profile) -> dict[str, float]:
    """What the program as a whole allocates, by metric (`allocated`, `peak` ...)."""
    found = {}
    for group in profile.groups():
        if is_summary(group.constants) and "function" not in group.constants["uid"]:
            found[str(group.constants["subtype"])] = sum(_numbers(group, "amount"))
    return found


class FunctionAllocation(NamedTuple):
    """What a function allocates with one allocator; `lines` are those of its calls."""

    lines: tuple[int, ...] = ()
    allocations: float = 0.0
    allocated: float = 0.0
    leaked: float = 0.0
    peak: float = 0.0
    temporary: float = 0.0


FIELDS: Final[Mapping[str, str]] = {
    "allocations": "count",
    "allocated": "amount",
    "leaked": "leaked",
    "peak": "peak",
    "temporary": "temporary",
}
"""The fields of resources by metric."""


def memory(profile: Profile, is_own: IsOwn) -> dict[tuple[FunctionKey, str], FunctionAllocation]:
    """What each function of the project allocates, by the allocator; with what libraries do for it.

    What no function of the project calls for counts for the innermost function that is known.
    """
    found: dict[tuple[FunctionKey, str], FunctionAllocation] = {}
    for group in profile.groups():
        kind = str(flatten(group.constants.get("subtype", "")))
        if is_summary(group.constants) or is_release(group.constants):
            continue
        sums = [sum(_numbers(group, name)) for name in FIELDS.values()]
        trace = group.constants.get("trace") or [group.constants.get("uid", "")]
        own = next((record for record in trace if is_own(place_of(record))), trace[0])
        key = place_of(own), kind
        old = found.get(key, FunctionAllocation())
        line = own.get("line") if isinstance(own, Mapping) else None
        lines = {*old.lines, line} if isinstance(line, int) and line > 0 else set(old.lines)
        found[key] = FunctionAllocation(
            tuple(sorted(lines)), *(before + more for before, more in zip(old[1:], sums, strict=True))
        )
    return found


def place_of(record: Any) -> FunctionKey:
    """The function of a record of a trace, or of a uid."""
    if not isinstance(record, Mapping):
        return FunctionKey(str(flatten(record)))
    name = str(flatten(record.get("function", ""))) or str(flatten(record))
    source = str(flatten(record.get("source", "")))
    return FunctionKey(name, "" if source in _UNKNOWN else PurePosixPath(source).name)


def _stacks(group: ResourceGroup) -> Iterator[tuple[list[FunctionKey], float]]:
    """The call stacks of a group, each innermost first, with their amounts."""
    amounts = _numbers(group, "amount")
    traces = group.columns.get("trace")
    if traces is None:
        trace = group.constants.get("trace") or [group.constants.get("uid", "")]
        yield [place_of(one) for one in trace], sum(amounts)
        return
    for trace, amount in zip(traces, amounts, strict=True):
        yield [place_of(one) for one in trace or [group.constants.get("uid", "")]], amount


def _numbers(group: ResourceGroup, name: str) -> list[float]:
    """The values of a field; 0 for what is no number."""
    column: Any = group.columns.get(name)
    values = [group.constants.get(name, 0)] * group.size if column is None else list(column)
    return [float(value) if isinstance(value, (int, float)) else 0.0 for value in values]


def disagreements(totals: Sequence[CostChange]) -> Iterator[str]:
    """What is to be known where counts and times of a program say different things."""
    counted = next((cost for cost in totals if cost.metric == "instructions"), None)
    if counted is None or abs(counted.share) < _FELT:
        return
    for cost in totals:
        if cost.metric.partition(" ")[0] != "time" or cost.verdict is None or cost.bounds is None:
            continue
        low, high = cost.bounds
        if not (low > 1 if counted.share > 0 else high < 1):
            share = f"{abs(100 * counted.share):.3g} % {'more' if counted.share > 0 else 'fewer'}"
            yield (
                f"{share} instructions are executed, and {cost.metric} says {difference(cost)}: what is "
                "executed takes time only where nothing else does, such as waiting for memory"
            )


# What changed of a function in one sentence, as a person would say it.

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
    """`n^2` of `3us + 1us * n + 2us * n^2`, and `constant` of what does not grow."""
    return formula.rpartition(" * ")[2] if " * " in formula else "constant"


def certainty(cost: CostChange) -> str:
    """`exact`, or the interval of the ratio."""
    if cost.exact:
        return "exact"
    return "{:.3g}, {:.3g}".format(*cost.bounds) if cost.bounds else "noise unknown"


def difference(cost: CostChange) -> str:
    """How much more or less it is, with the interval: `+5.0 % [+3.1, +6.9]`."""
    ratio = math.nan if cost.ratio is None else cost.ratio
    return present.step((cost.before, cost.after), ratio, *(cost.bounds or (ratio, ratio)), cost.unit)


def ratio(cost: CostChange) -> str:
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
            yield f"{verb} {ratio(cost)} {what} {sure}" + (
                f", {before} -> {after}" if cost.amounts_fit else ""
            )


def _telling(memory: Sequence[CostChange]) -> CostChange:
    """The largest growth of memory, but a leak that is not small beside it: it tells more."""
    largest = max(memory, key=lambda cost: cost.share)
    return next((one for one in memory if one.metric == "leaked" and one.share > largest.share / 10), largest)


def _lines(one: FunctionChange) -> Iterator[str]:
    if one.name == OUTSIDE:
        return
    where = place(one)
    if one.changed_lines:
        yield f"{plural(one.changed_lines, 'line')} of it changed in {where}"
    elif one.first:
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
