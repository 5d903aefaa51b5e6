"""What functions cost by the lines of their sources, so that one that is inlined has a cost of its own.

A profile of instructions has stacks of functions that have code, and the region `lines`: what each line of
the project cost in which of these, and which functions it called. The line says whose it is, by the debug
information of the program, else by the text of the source.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from perun.profile.lines import COLUMNS, entries, rows
from perun.running.explain.costs import FunctionCost, FunctionKey, IsOwn, instructions, place_of

if TYPE_CHECKING:
    from perun.profile.factory import Profile

LineOwner = Callable[[str, int], FunctionKey | None]
"""From the path and the number of a line to the function that it is in; None where that is not known."""


class _LineCost(NamedTuple):
    function: FunctionKey
    path: str
    line: int
    amount: float


class _LineCalls(NamedTuple):
    function: FunctionKey
    path: str
    line: int
    callee: FunctionKey
    times: float
    amount: float


class CodeCosts(NamedTuple):
    """What the code of one version costs.

    :param functions: each function of the project, those that are inlined apart from where they are.
    :param lines: by path and line. :param calls: how often a function called another one of the project.
    :param called: how often each was called in all. :param has_lines: whether lines are known.
    :param seen: the lines of each function that were executed.
    """

    functions: dict[FunctionKey, FunctionCost]
    lines: Mapping[tuple[str, int], float]
    calls: Mapping[tuple[FunctionKey, FunctionKey], float]
    called: Mapping[FunctionKey, float]
    has_lines: bool
    seen: Mapping[FunctionKey, Sequence[int]]


def code_costs(profile: Profile, is_own: IsOwn, owner: LineOwner) -> CodeCosts:
    """What the functions of the project cost, those that are inlined too.

    :param owner: of lines. Without lines in the profile, it is the same as
        :func:`~perun.running.explain.costs.instructions`.
    """
    plain = instructions(profile, is_own)
    costs, calls = _region(profile)
    return _Split(plain, is_own, owner).divided(costs, calls, _called(profile))


def renamed(before: CodeCosts, after: CodeCosts) -> CodeCosts:
    """The first one with the names of the second, where only parameters of a function changed."""
    gone = {(bare(one.name), one.source): one for one in before.functions.keys() - after.functions.keys()}
    new = {(bare(one.name), one.source): one for one in after.functions.keys() - before.functions.keys()}
    names = {gone[key]: new[key] for key in gone.keys() & new.keys()}
    if not names:
        return before

    def name(place: FunctionKey) -> FunctionKey:
        return names.get(place, place)

    return before._replace(
        functions={name(place): one for place, one in before.functions.items()},
        calls={(name(caller), name(callee)): times for (caller, callee), times in before.calls.items()},
        called={name(place): times for place, times in before.called.items()},
        seen={name(place): lines for place, lines in before.seen.items()},
    )


def bare(name: str) -> str:
    """The name of a function without its class, parameters and those of templates: `find` of
    `shop::Map<int>::find(int const&)`."""
    text = name.replace("(anonymous namespace)", "")
    head, depth = "", 0
    if "operator" not in text:
        for char in text:
            if char == "(" and not depth:
                break
            depth += (char == "<") - (char == ">")
            head += char if not depth and char != ">" else ""
        text = head
    else:
        text = text[text.index("operator") :].partition("(")[0] or text
    return text.strip().rpartition(" ")[2].rpartition("::")[2].rpartition(".")[2]


class _Split:
    def __init__(self, plain: Mapping[FunctionKey, FunctionCost], is_own: IsOwn, owner: LineOwner) -> None:
        self._is_own = is_own
        self._owner = owner
        self._amounts = defaultdict(float, {place: one.amount for place, one in plain.items()})
        self._parts: dict[FunctionKey, dict[FunctionKey, float]] = defaultdict(lambda: defaultdict(float))
        self._callers: dict[FunctionKey, dict[FunctionKey, float]] = defaultdict(lambda: defaultdict(float))
        for place, one in plain.items():
            self._parts[place].update(one.parts)
            self._callers[place].update(one.callers)
        self._known: dict[tuple[str, str], FunctionKey] = {}
        for place in plain:
            self._known.setdefault((bare(place.name), place.source), place)
        self._own_lines: dict[tuple[str, int, str], FunctionKey] = {}
        self._charged: dict[FunctionKey, dict[FunctionKey, float]] = defaultdict(dict)
        for place, parts in self._parts.items():
            for part, amount in parts.items():
                self._charged[part][place] = amount

    def divided(
        self, costs: Sequence[_LineCost], calls: Sequence[_LineCalls], called: Mapping[FunctionKey, float]
    ) -> CodeCosts:
        """What the lines say. :param called: how often each function was called."""
        lines: dict[tuple[str, int], float] = defaultdict(float)
        seen: dict[FunctionKey, list[int]] = defaultdict(list)
        for cost in costs:
            self._own_lines[cost.path, cost.line, bare(cost.function.name)] = cost.function
        for cost in costs:
            lines[cost.path, cost.line] += cost.amount
            owner = self._of(cost.path, cost.line, cost.function)
            seen[owner or cost.function].append(cost.line)
            if owner is None or owner == cost.function:
                continue
            if self._is_own(cost.function):
                self._move(cost.function, owner, cost.amount)
            else:
                self._take(cost.function, owner, cost.amount)
        made: dict[tuple[FunctionKey, FunctionKey], float] = defaultdict(float)
        of_libraries: dict[FunctionKey, dict[FunctionKey, float]] = defaultdict(lambda: defaultdict(float))
        for call in calls:
            caller = self._of(call.path, call.line, call.function) or call.function
            if self._is_own(call.callee):
                made[caller, call.callee] += call.times
            elif self._is_own(call.function):
                of_libraries[call.function][caller] += call.amount
                lines[call.path, call.line] += call.amount
        for place, shares in of_libraries.items():
            self._share(place, shares)
        functions = {
            place: FunctionCost(amount, self._parts[place], self._callers[place])
            for place, amount in self._amounts.items()
            if amount > 0
        }
        return CodeCosts(functions, lines, made, called, bool(costs), seen)

    def _of(self, path: str, line: int, function: FunctionKey) -> FunctionKey | None:
        """The function that a line is in, by the name that the profile has for it."""
        found = self._owner(path, line)
        if found is None:
            return None
        if found.source == function.source and found.name == bare(function.name):
            return function
        same = self._own_lines.get((path, line, found.name))  # of several with that name
        return same or self._known.setdefault((found.name, found.source), found)

    def _move(self, source: FunctionKey, target: FunctionKey, amount: float) -> None:
        amount = min(amount, self._amounts[source])
        self._amounts[source] -= amount
        self._amounts[target] += amount
        self._callers[target][source] += amount

    def _take(self, library: FunctionKey, target: FunctionKey, amount: float) -> None:
        """Take lines that are inlined into a function of a library from those that it is a part of."""
        charged = self._charged[library]
        whole = sum(charged.values())
        for place, part in charged.items():
            moved = min(amount * part / whole, self._parts[place][library]) if whole else 0.0
            self._parts[place][library] -= moved
            if place != target:
                self._move(place, target, moved)

    def _share(self, place: FunctionKey, shares: Mapping[FunctionKey, float]) -> None:
        """Divide what libraries do for a function among those inlined into it, as their lines call them."""
        whole = sum(shares.values())
        parts = dict(self._parts[place])
        for caller, share in shares.items():
            if caller == place or not whole:
                continue
            for part, amount in parts.items():
                moved = amount * share / whole
                self._parts[place][part] -= moved
                self._parts[caller][part] += moved
                self._move(place, caller, moved)


def _region(profile: Profile) -> tuple[list[_LineCost], list[_LineCalls]]:
    """What the region `lines` holds; nothing of what has another form, as files may hold anything."""
    region = profile.get("lines")
    if not isinstance(region, Mapping):
        return [], []
    functions = [place_of(one) for one in entries(region, "functions")]
    files = [str(one) for one in entries(region, "files")]
    costs = [
        _LineCost(functions[function], files[file], line, amount)
        for function, file, line, amount in rows(region, "costs")
    ]
    calls = [
        _LineCalls(functions[function], files[file], line, functions[callee], times, amount)
        for function, file, line, callee, times, amount in rows(region, "calls")
    ]
    return costs, calls


def lines_of_one(more: Profile, fewer: Profile | None, operations: int) -> dict[str, Any]:
    """The region `lines` of one operation, by two profiles of which one has so many more; empty without
    lines."""
    names: dict[str, dict[str, int]] = {"functions": {}, "files": {}}
    sums: dict[str, dict[tuple[int, ...], list[float]]] = {"costs": {}, "calls": {}}
    for profile, share in ((more, 1 / operations), (fewer, -1 / operations)):
        region = profile.get("lines") if profile is not None else None
        if not isinstance(region, Mapping):
            continue
        own = {
            of: [known.setdefault(json.dumps(one, sort_keys=True), len(known)) for one in entries(region, of)]
            for of, known in names.items()
        }
        for kind, (keys, amounts) in COLUMNS.items():
            for row in rows(region, kind):
                key = tuple(own[of][at] if of else at for of, at in zip(keys, row, strict=False))
                before = sums[kind].get(key, [0.0] * amounts)
                sums[kind][key] = [one + share * new for one, new in zip(before, row[-amounts:], strict=True)]
    found = {kind: [json.loads(one) for one in known] for kind, known in names.items()}
    kept = {
        kind: [[*key, *values] for key, values in known.items() if min(values) > 0]
        for kind, known in sums.items()
    }
    return {**found, **kept} if kept["costs"] else {}


def _called(profile: Profile) -> dict[FunctionKey, float]:
    """How often each function was called."""
    found: dict[FunctionKey, float] = defaultdict(float)
    for group in profile.groups():
        if group.constants.get("subtype") != "inclusive":
            continue
        times = group.columns.get("calls") or [group.constants.get("calls", 0)]
        found[place_of(group.constants.get("uid", ""))] += sum(
            one for one in times if isinstance(one, (int, float))
        )
    return found
