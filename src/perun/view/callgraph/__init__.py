"""Call graph: the functions of a program and which calls which, by levels and around a function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, TextIO

from perun.core.errors import ProfileError, UsageError
from perun.core.wording import counted
from perun.native.callgraph.difference import difference, mixed_graph, recorded_calls, recorded_graph
from perun.native.callgraph.files import from_values
from perun.native.callgraph.graph import KINDS, MODES, UNKNOWN, CallGraph, graph_name
from perun.plugin.api import NO_VIEW_CONTEXT, Statistics, ViewContext
from perun.plugin.params import nearest, param
from perun.profile.factory import Profile
from perun.view._common import chart_view, command_line
from perun.view._common.files import write_interactive_page
from perun.view._common.screen import printable


@dataclass(frozen=True)
class CallGraphParams:
    """Which graph is shown, what it is compared with, and where it goes."""

    use_cg_type: str = param(
        "auto",
        short="-cg",
        choices=("auto", "static", "dynamic", "mixed"),
        help="The graph to show: of the machine code of the program, as it is kept with the version "
        "(static), of the calls in the profile (dynamic), or both (mixed); auto: mixed where a static one is "
        "kept, else dynamic.",
    )
    baseline: str = param(
        "",
        short="-b",
        metavar="<revision>",
        help="Mark what changed since this version. By default that is the nearest earlier one whose call "
        "graph is kept; none marks nothing.",
    )
    mode: str = param(
        "color",
        choices=MODES,
        help="How functions of two versions are compared: by their numbers of instructions (soft), opcodes "
        "(semistrict), also operands (strict), or up to registers and the order of instructions (color).",
    )
    focus: str = param(
        "", metavar="<function>", help="Start around this function instead of with all levels."
    )
    levels: int = param(
        2,
        short="-n",
        metavar="<count>",
        minimum=1,
        help="How many levels of callers and callees are shown around a function.",
    )
    filename: str = chart_view.filename()
    graph_title: str = chart_view.title("page")
    view_in_browser: bool = chart_view.view_in_browser()
    terminal: bool = param(
        False, help="Write the graph as text to the terminal, as a tree of calls, instead of a page."
    )


# The graph that the view shows: found, compared with a baseline, and joined with what was recorded.

NEW, CHANGED, RENAMED, SAME = "new", "changed", "renamed", ""
"""What happened to a function since the baseline."""


class FunctionRemark(NamedTuple):
    """What happened to a function: one of the words above, and a sentence that says more."""

    what: str
    why: str


class GraphView(NamedTuple):
    """A graph with all that is shown of it.

    :ivar calls: of each function, how often it was called in the profile; none where that is not known.
    :ivar pairs: the same by caller and callee. :ivar changes: of what is not the same as in the baseline.
    :ivar removed: functions that only the baseline has. :ivar baseline: its version; empty without one.
    """

    graph: CallGraph
    calls: Mapping[str, int]
    pairs: Mapping[tuple[str, str], int]
    changes: Mapping[str, FunctionRemark]
    removed: tuple[str, ...]
    baseline: str


def shown_graph(
    profile: Profile, params: CallGraphParams, statistics: Statistics | None, note: Callable[[str], None]
) -> GraphView:
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
    return GraphView(graph, calls, pairs, changes, removed, version)


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
) -> tuple[dict[str, FunctionRemark], tuple[str, ...], str]:
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
        one: FunctionRemark(NEW if why == "it is new" else CHANGED, why) for one, why in delta.changed.items()
    }
    for one, old in delta.renamed.items():
        changes.setdefault(one, FunctionRemark(RENAMED, f"it was called {old}"))
    renamed = set(delta.renamed.values())
    removed = tuple(one for one in before.functions if one not in static.functions and one not in renamed)
    return changes, removed, version


# A call graph as text: a tree of calls, in which each function is unfolded once.

MAX_LINES: Final = 1000
"""Lines of the tree before it is cut off."""


def summary(shown: GraphView) -> str:
    """One line that says what the graph is."""
    graph = shown.graph
    levels = graph.levels()
    pointers = sum(call.callee == UNKNOWN for call in graph.calls)
    known = sum(call.callee != UNKNOWN for call in graph.calls)
    parts = [f"{counted(len(graph.functions), 'function')} and {counted(known, 'call')} ({graph.source})"]
    if levels:
        parts.append(f"{counted(max(levels.values()) + 1, 'level')} from {graph.entry}")
    if pointers:
        parts.append(f"{counted(pointers, 'function')} with calls through pointers")
    if shown.baseline:
        kinds = [change.what for change in shown.changes.values()]
        since = [f"{kinds.count(kind)} {kind}" for kind in ("new", "changed", "renamed")]
        parts.append(f"since {shown.baseline[:10]}: {', '.join(since)}, {len(shown.removed)} removed")
    return "; ".join(parts)


def tree(shown: GraphView, focus: str, levels: int) -> Iterator[str]:
    """The lines of the tree of what `focus` calls, `levels` deep.

    Without a focus it begins with the entry and with what nothing calls, and is as deep as it needs.
    """
    graph = shown.graph
    deepest = levels if focus else len(graph.functions)
    seen: set[str] = set()
    stack = [(name, 0) for name in reversed([focus] if focus else _roots(graph))]
    lines = 0
    while stack:
        name, depth = stack.pop()
        callees = graph.callees(name)
        lines += 1
        if lines > MAX_LINES:
            rest = len(graph.functions) - len(seen)
            yield f"... and {counted(rest, 'function')} more: show a part with --focus"
            return
        notes = _notes(shown, name)
        if callees and name in seen:
            notes.append("see above")
        elif callees and depth >= deepest:
            notes.append("...")
        elif name not in seen:
            stack += [(callee, depth + 1) for callee in reversed(callees)]
        seen.add(name)
        yield "  " * depth + name + (f"  [{'; '.join(notes)}]" if notes else "")


def _roots(graph: CallGraph) -> list[str]:
    reached = graph.reachable()
    loose = [name for name in graph.functions if name not in reached and not graph.callers(name)]
    roots = [graph.entry, *loose] if graph.entry in graph.functions else loose
    return roots or list(graph.functions)[:1]


def _notes(shown: GraphView, name: str) -> list[str]:
    """What the line of a function says behind its name."""
    notes = []
    change = shown.changes.get(name)
    if change is not None:
        notes.append(change.what if change.what == "new" else f"{change.what}: {change.why}")
    if name in shown.calls:
        notes.append(f"called {counted(shown.calls[name], 'time')}")
    return notes


class CallGraphView:
    """Shows which function calls which: all functions by their levels, or those around one of them.

    The level of a function is the longest way to it from `main`. What changed since an earlier version is
    marked.
    """

    name: ClassVar[str] = "callgraph"
    help: ClassVar[str] = "Call graph: which function calls which, by levels, and what of them changed."
    Params: ClassVar[type] = CallGraphParams

    def render(
        self, profile: Profile, params: CallGraphParams, out: TextIO, ctx: ViewContext = NO_VIEW_CONTEXT
    ) -> None:
        """Write the page to a file, and its name to `out`; or the tree to `out`.

        :raises ProfileError: if the profile has no calls, and no graph is kept with its version.
        :raises UsageError: if there is no graph as the options ask for, or the file cannot be written.
        """
        shown = shown_graph(profile, params, ctx.statistics(), ctx.note)
        focus = focused(shown.graph, params.focus) if params.focus else ""
        if params.terminal:
            lines = [summary(shown), "", *tree(shown, focus, params.levels)]
            out.write("".join(f"{printable(line)}\n" for line in lines))
            return
        write_interactive_page(
            *(profile, params, out, ctx, __file__),
            data={**document(shown), "focus": focus, "depth": params.levels},
            title=params.graph_title or f"Call graph of {command_line(profile) or 'a program'}",
            subtitle=summary(shown),
        )


def document(shown: GraphView) -> dict[str, Any]:
    """The data of the page: functions by number, as columns, and calls as columns of numbers."""
    graph = shown.graph
    functions = list(graph.functions.values())
    levels = graph.levels()
    numbers = {one.name: number for number, one in enumerate(functions)}
    others = dict.fromkeys(
        call.callee for call in graph.calls if call.callee not in numbers and call.callee != UNKNOWN
    )
    for name in others:
        numbers[name] = len(numbers)
    calls = [call for call in graph.calls if call.callee != UNKNOWN and call.caller in numbers]
    return {
        "source": graph.source,
        "names": list(numbers),
        "known": len(functions),
        "levels": [levels.get(one.name, -1) for one in functions],
        "sizes": [one.size for one in functions],
        "instructions": [one.instructions for one in functions],
        "blocks": [one.flow.count(";") + bool(one.flow) for one in functions],
        "pointers": sorted({numbers[call.caller] for call in graph.calls if call.callee == UNKNOWN}),
        "taken": [numbers[one.name] for one in functions if one.address_taken],
        "counts": [shown.calls.get(one.name, 0) for one in functions],
        "counted": bool(shown.calls),
        "entry": numbers.get(graph.entry, -1),
        "callers": [numbers[call.caller] for call in calls],
        "callees": [numbers[call.callee] for call in calls],
        "kinds": [KINDS.index(call.kind) for call in calls],
        "times": [shown.pairs.get((call.caller, call.callee), 0) for call in calls],
        "kindNames": list(KINDS),
        "changes": {numbers[name]: list(change) for name, change in shown.changes.items() if name in numbers},
        "removed": list(shown.removed),
        "baseline": shown.baseline[:10],
    }


PLUGIN = CallGraphView
