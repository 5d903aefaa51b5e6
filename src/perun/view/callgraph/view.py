"""The view of call graphs: a page that needs no network, or a tree as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TextIO

from perun.callgraph.graph import KINDS, UNKNOWN
from perun.plugin.api import NO_VIEW_CONTEXT, ViewContext
from perun.view._common.chart import command_line
from perun.view._common.files import destination, report
from perun.view._common.interactive import write_interactive_page
from perun.view._common.screen import printable
from perun.view.callgraph.params import CallGraphParams
from perun.view.callgraph.shown import Shown, focused, shown_graph
from perun.view.callgraph.text import summary, tree

if TYPE_CHECKING:
    from perun.profile.factory import Profile


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
        path = destination(params.filename, self.name, profile)
        write_interactive_page(
            path,
            __file__,
            data={**document(shown), "focus": focus, "depth": params.levels},
            title=params.graph_title or f"Call graph of {command_line(profile) or 'a program'}",
            subtitle=summary(shown),
        )
        report(path, out, ctx, browse=params.view_in_browser)


def document(shown: Shown) -> dict[str, Any]:
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

