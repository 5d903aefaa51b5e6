"""What each function costs by itself before and after, by two profiles of one collector.

Functions of the project count with the functions of libraries that they call, as nobody changed those: the
cost of a library function is that of the nearest function of the project on its call stack, and told as a
part of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.profile.format.grouping import Group
from perun.profile.memory import is_summary
from perun.profile.uid import flatten

if TYPE_CHECKING:
    from perun.profile.factory import Profile

OUTSIDE: Final = "(outside of the project)"
"""What no function of the project called, such as the start-up of a program."""


class Place(NamedTuple):
    """A function as profiles name it. :param source: a base name or a path; may be empty."""

    name: str
    source: str = ""


IsOwn = Callable[[Place], bool]
"""Whether a function is one of the project."""


class Spent(NamedTuple):
    """What a function spends. :param parts: by function of a library. :param callers: by its caller."""

    amount: float
    parts: Mapping[Place, float]
    callers: Mapping[Place, float]


def instructions(profile: Profile, is_own: IsOwn) -> dict[Place, Spent]:
    """The instructions of each function of the project, and of :data:`OUTSIDE`."""
    amounts: dict[Place, float] = defaultdict(float)
    parts: dict[Place, dict[Place, float]] = defaultdict(lambda: defaultdict(float))
    callers: dict[Place, dict[Place, float]] = defaultdict(lambda: defaultdict(float))
    for group in profile.groups():
        if group.constants.get("subtype") != "exclusive":
            continue
        for stack, amount in _stacks(group):
            own = next((number for number, place in enumerate(stack) if is_own(place)), None)
            if own is None:
                charged, above = Place(OUTSIDE), []
            else:
                charged, above = stack[own], stack[own + 1 :]
            amounts[charged] += amount
            if own != 0 and stack:
                parts[charged][stack[0]] += amount
            caller = next((place for place in above if place != charged and is_own(place)), None)
            if caller is not None:
                callers[charged][caller] += amount
    return {place: Spent(amount, parts[place], callers[place]) for place, amount in amounts.items()}


def memory(profile: Profile) -> dict[str, dict[Place, float]]:
    """By metric (`allocated`, `peak` ...) the sum of each function; that of the program has an empty name."""
    found: dict[str, dict[Place, float]] = defaultdict(dict)
    for group in profile.groups():
        if is_summary(group.constants):
            uid = group.constants["uid"]
            place = Place(str(flatten(uid.get("function", ""))), str(flatten(uid.get("source", ""))))
            if not place.name:
                place = Place("")
            found[str(group.constants["subtype"])][place] = sum(_numbers(group, "amount"))
    return found


def place_of(record: Any) -> Place:
    """The function of a record of a trace, or of a uid."""
    if not isinstance(record, Mapping):
        return Place(str(flatten(record)))
    name = str(flatten(record.get("function", ""))) or str(flatten(record))
    return Place(name, str(flatten(record.get("source", ""))))


def _stacks(group: Group) -> Iterator[tuple[list[Place], float]]:
    """The call stacks of a group, each innermost first, with their amounts."""
    amounts = _numbers(group, "amount")
    traces = group.columns.get("trace")
    if traces is None:
        trace = group.constants.get("trace") or [group.constants.get("uid", "")]
        yield [place_of(one) for one in trace], sum(amounts)
        return
    for trace, amount in zip(traces, amounts, strict=True):
        yield [place_of(one) for one in trace or [group.constants.get("uid", "")]], amount


def _numbers(group: Group, name: str) -> list[float]:
    """The values of a field; 0 for what is no number."""
    column: Any = group.columns.get(name)
    values = [group.constants.get(name, 0)] * group.size if column is None else list(column)
    return [float(value) if isinstance(value, (int, float)) else 0.0 for value in values]


class SiteTotals(NamedTuple):
    """What was allocated at one place, whatever its line; `lines` are those it had."""

    lines: tuple[int, ...]
    blocks: float
    allocated: float
    leaked: float


def sites(profile: Profile) -> dict[tuple[Place, str], SiteTotals]:
    """The places that allocate, by their function and the allocator."""
    found: dict[tuple[Place, str], SiteTotals] = {}
    for group in profile.groups():
        kind = str(flatten(group.constants.get("subtype", "")))
        uid = group.constants.get("uid")
        if is_summary(group.constants) or not isinstance(uid, Mapping) or kind in _RELEASES:
            continue
        key = place_of(uid), kind
        line = uid.get("line")
        old = found.get(key, SiteTotals((), 0, 0, 0))
        lines = {*old.lines, line} if isinstance(line, int) and line > 0 else set(old.lines)
        sums = [sum(_numbers(group, name)) for name in ("count", "amount", "leaked")]
        found[key] = SiteTotals(
            tuple(sorted(lines)), *(a + b for a, b in zip(old[1:], sums, strict=True))
        )
    return found


_RELEASES: Final = frozenset({"free", "delete", "delete[]"})
