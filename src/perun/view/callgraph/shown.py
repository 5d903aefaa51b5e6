"""The graph that the view shows: found, compared with a baseline, and joined with what was recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from perun.callgraph.difference import difference
from perun.callgraph.dynamic import mixed_graph, recorded_calls, recorded_graph
from perun.callgraph.files import from_values
from perun.callgraph.graph import CallGraph
from perun.callgraph.stored import graph_name
from perun.errors import ProfileError, UsageError
from perun.plugin.params import nearest

if TYPE_CHECKING:
    from collections.abc import Callable

    from perun.plugin.api import Statistics
    from perun.profile.factory import Profile
    from perun.view.callgraph.params import CallGraphParams

NEW, CHANGED, RENAMED, SAME = "new", "changed", "renamed", ""
"""What happened to a function since the baseline."""


class Change(NamedTuple):
    """What happened to a function: one of the words above, and a sentence that says more."""

    what: str
    why: str


class Shown(NamedTuple):
    """A graph with all that is shown of it.

    :ivar calls: of each function, how often it was called in the profile; none where that is not known.
    :ivar pairs: the same by caller and callee. :ivar changes: of what is not the same as in the baseline.
    :ivar removed: functions that only the baseline has. :ivar baseline: its version; empty without one.
    """

    graph: CallGraph
    calls: Mapping[str, int]
    pairs: Mapping[tuple[str, str], int]
    changes: Mapping[str, Change]
    removed: tuple[str, ...]
    baseline: str


def shown_graph(
    profile: Profile, params: CallGraphParams, statistics: Statistics | None, note: Callable[[str], None]
) -> Shown:
    """The graph that the options ask for.

    :raises ProfileError: where the profile has no calls, and no graph is kept.
    :raises UsageError: where there is no graph of the kind, or none of the baseline.
    """
    name = graph_name(profile.configuration.collector, _program(profile))
    static = _static(name, params, statistics)
    recorded = _recorded(profile, needed=static is None or params.use_cg_type == "dynamic")
    if static is None or params.use_cg_type == "dynamic":
        graph = recorded_graph(profile)
    elif params.use_cg_type == "static" or not recorded:
        graph = static
    else:
        graph = mixed_graph(static, recorded_graph(profile))
    calls, pairs = _counts(graph, recorded)
    changes, removed, version = _changes(graph, static, name, params, statistics, note)
    return Shown(graph, calls, pairs, changes, removed, version)


def focused(graph: CallGraph, wanted: str) -> str:
    """The function that a user names: by its name in the graph, its uid, or its name without parameters.

    :raises UsageError: where there is none; names the most similar ones.
    """
    if wanted in graph.functions:
        return wanted
    for one in graph.functions.values():
        if wanted in (one.uid, one.symbol, one.uid.partition("(")[0]):
            return one.name
    raise UsageError(f"--focus: the graph has no function {wanted!r}", nearest(wanted, graph.functions))


def _static(name: str, params: CallGraphParams, statistics: Statistics | None) -> CallGraph | None:
    values = statistics.load(name) if statistics is not None and params.use_cg_type != "dynamic" else None
    if values is not None:
        return from_values(values)
    if params.use_cg_type in ("static", "mixed"):
        raise UsageError(
            f"--use-cg-type {params.use_cg_type}: no call graph of the program is kept with the version of "
            "the profile",
            "make it with: perun collect trace --only-extract-cg; or show the recorded calls with "
            "--use-cg-type dynamic",
        )
    return None


def _recorded(profile: Profile, *, needed: bool) -> Counter[tuple[str, str]]:
    try:
        return recorded_calls(profile)
    except ProfileError:
        if needed:
            raise
        return Counter()


def _program(profile: Profile) -> str:
    """The path of the file with most of the functions of the profile."""
    places: Counter[str] = Counter()
    for _, constants, _, _ in profile.groups():
        if location := constants.get("location"):
            places[str(location)] += 1
    return places.most_common(1)[0][0] if places else profile.configuration.cmd.split(" ")[0]


def _counts(
    graph: CallGraph, recorded: Mapping[tuple[str, str], int]
) -> tuple[dict[str, int], dict[tuple[str, str], int]]:
    """Of each function and each pair how often it was called; where several share a uid that is not known."""
    names: dict[str, list[str]] = {}
    for one in graph.functions.values():
        names.setdefault(one.uid, []).append(one.name)
    calls: Counter[str] = Counter()
    pairs: dict[tuple[str, str], int] = {}
    for (caller, callee), count in recorded.items():
        callees, callers = names.get(callee, []), names.get(caller, [])
        if len(callees) == 1:
            calls[callees[0]] += count
            if len(callers) == 1:
                pairs[callers[0], callees[0]] = count
    return dict(calls), pairs


def _changes(
    graph: CallGraph,
    static: CallGraph | None,
    name: str,
    params: CallGraphParams,
    statistics: Statistics | None,
    note: Callable[[str], None],
) -> tuple[dict[str, Change], tuple[str, ...], str]:
    if params.baseline == "none" or static is None or statistics is None:
        if params.baseline not in ("", "none"):
            raise UsageError(
                "--baseline needs the call graphs of machine code, which are not kept with this profile",
                "make them with: perun collect trace --only-extract-cg, in both versions",
            )
        return {}, (), ""
    found = statistics.earlier(name, params.baseline)
    if found is None:
        if params.baseline:
            raise UsageError(
                f"--baseline: no call graph of the program is kept of {params.baseline}",
                f"make it with: perun collect -m {params.baseline} trace --only-extract-cg",
            )
        return {}, (), ""
    version, values = found
    try:
        before = from_values(values)
    except ProfileError as problem:
        note(f"changes since {version[:10]} are not marked: {problem.message}")
        return {}, (), ""
    delta = difference(static, before, params.mode)
    changes = {
        one: Change(NEW if why == "it is new" else CHANGED, why) for one, why in delta.changed.items()
    }
    for one, old in delta.renamed.items():
        changes.setdefault(one, Change(RENAMED, f"it was called {old}"))
    renamed = set(delta.renamed.values())
    removed = tuple(one for one in before.functions if one not in static.functions and one not in renamed)
    return changes, removed, version
