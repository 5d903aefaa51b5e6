"""Call graphs from recorded calls: what the collectors `trace` and `complexity` saw."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from perun.callgraph.graph import Call, CallGraph, Function
from perun.errors import ProfileError

if TYPE_CHECKING:
    from perun.profile.factory import Profile

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
        {name: Function(name, name) for name in names},
        tuple(Call(caller, callee, "dynamic") for caller, callee in calls if caller != _OF_PROGRAM),
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
        Call(caller, callee, "dynamic"): None
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
