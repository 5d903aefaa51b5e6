"""What changed between two versions of a program, by their call graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.core.errors import ProfileError
from perun.native.callgraph.graph import CallEdge, CallGraph, GraphFunction

if TYPE_CHECKING:
    from perun.profile.factory import Profile


class GraphDifference(NamedTuple):
    """The functions that changed, each with what did, and new names to old ones of those that did not."""

    changed: Mapping[str, str]
    renamed: Mapping[str, str]


def difference(new: CallGraph, old: CallGraph, mode: str, inspect_all: bool = True) -> GraphDifference:
    """The functions that are new, or whose callees or control flow are others than before.

    A renamed function has the callers and callees, and the control flow, of one that is gone. Its name in its
    callers is no change of these.

    :param mode: how control flow is compared: a field of :class:`perun.native.callgraph.graph.Fingerprints`.
    :param inspect_all: whether it is compared at all.
    """
    renamed = _renamed(new, old, mode)
    changed = {}
    for name, function in new.functions.items():
        before = old.functions.get(renamed.get(name, name))
        what = "it is new" if before is None else _changed(function, before, renamed, mode, inspect_all)
        if what:
            changed[name] = what
    return GraphDifference(changed, renamed)


def _changed(
    function: GraphFunction, before: GraphFunction, renamed: Mapping[str, str], mode: str, inspect_all: bool
) -> str:
    """What changed of a function; empty if nothing did."""
    if _sites(function, renamed) != before.sites:
        return "its callees changed"
    if inspect_all and _print(function, mode) != _print(before, mode):
        return f"its control flow changed ({mode})"
    return ""


def _renamed(new: CallGraph, old: CallGraph, mode: str) -> dict[str, str]:
    """New names to old ones. Where functions that call each other are renamed, those of one become known when
    those of the other are, so the search goes on until it finds no more."""
    added = [name for name in new.functions if name not in old.functions]
    gone = {name for name in old.functions if name not in new.functions}
    found: dict[str, str] = {}
    while True:
        by_key: dict[object, list[str]] = {}
        for name in gone - set(found.values()):
            by_key.setdefault(_key(old, name, {}, gone, mode), []).append(name)
        open_ = [name for name in added if name not in found]
        wanted: dict[object, list[str]] = {}
        for name in open_:
            wanted.setdefault(_key(new, name, found, set(open_), mode), []).append(name)
        more = {
            names[0]: by_key[key][0]
            for key, names in wanted.items()
            if len(names) == 1 and len(by_key.get(key, ())) == 1
        }
        if not more:
            return found
        found |= more
        gone -= set(more.values())


def _key(
    graph: CallGraph, name: str, renamed: Mapping[str, str], unknown: set[str], mode: str
) -> tuple[object, ...]:
    """What two functions have in common if one is the other renamed; callers and callees whose own names are
    open count only as such."""

    def plain(names: Iterable[str]) -> tuple[str, ...]:
        return tuple("?" if one in unknown else renamed.get(one, one) for one in names)

    function = graph.functions[name]
    return (
        _print(function, mode),
        plain(function.sites),
        tuple(sorted(plain(graph.callers(name)))),
    )


def _sites(function: GraphFunction, renamed: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(renamed.get(one, one) for one in function.sites)


def _print(function: GraphFunction, mode: str) -> str:
    return str(getattr(function.fingerprints, mode))


# Call graphs from recorded calls: what the collectors `trace` and `complexity` saw.

_MAIN: Final = "main"
_OF_PROGRAM: Final = ""
"""The caller of a function that no recorded function called."""


def recorded_calls(profile: Profile) -> Counter[tuple[str, str]]:
    """How often which function called which, in the order of the profile; the caller is empty for a function
    that no recorded one called.

    Where only some functions were recorded the caller is the nearest of these, not always the direct one.

    :raises ProfileError: where the profile has no callers.
    """
    found: Counter[tuple[str, str]] = Counter()
    known = False
    for _, constants, columns, size in profile.groups():
        uid = str(constants.get("uid", ""))
        if not uid or not size:
            continue
        callers = columns.get("caller")
        known = known or callers is not None or "caller" in constants
        if callers is None:
            found[str(constants.get("caller", _OF_PROGRAM)), uid] += size
        else:
            found.update((str(caller), uid) for caller in callers)
    if not found or not (known or len({callee for _, callee in found}) == 1):
        raise ProfileError(
            "the profile does not say which function called which",
            "record the calls with: perun collect trace",
        )
    return found


def recorded_graph(profile: Profile) -> CallGraph:
    """The graph of the calls that a profile recorded; what :func:`recorded_calls` raises.

    Its entry is `main`, or else the one function that no other called.
    """
    calls = recorded_calls(profile)
    names = dict.fromkeys(name for pair in calls for name in pair if name != _OF_PROGRAM)
    outermost = {callee for caller, callee in calls if caller == _OF_PROGRAM}
    entry = _MAIN if _MAIN in names else outermost.pop() if len(outermost) == 1 else ""
    return CallGraph(
        "",
        entry,
        {name: GraphFunction(name, name) for name in names},
        tuple(CallEdge(caller, callee, "dynamic") for caller, callee in calls if caller != _OF_PROGRAM),
        "dynamic",
    )


def mixed_graph(static: CallGraph, recorded: CallGraph) -> CallGraph:
    """The functions and calls of a static graph, and those calls that only were recorded.

    Recorded functions have the names of profiles: a name that several functions of the program share stands
    for each of them.
    """
    by_uid: dict[str, list[str]] = {}
    for one in static.functions.values():
        by_uid.setdefault(one.uid, []).append(one.name)
    known = {(call.caller, call.callee) for call in static.calls}
    more = {
        CallEdge(caller, callee, "dynamic"): None
        for call in recorded.calls
        for caller in by_uid.get(call.caller, [call.caller])
        for callee in by_uid.get(call.callee, [call.callee])
        if (caller, callee) not in known
    }
    others = {name: one for name, one in recorded.functions.items() if name not in by_uid}
    return replace(
        static,
        functions={**static.functions, **others},
        calls=(*static.calls, *more),
        source="mixed",
        entry=static.entry or recorded.entry,
    )
