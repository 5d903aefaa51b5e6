"""A call graph as text: a tree of calls, in which each function is unfolded once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from perun.callgraph.graph import UNKNOWN
from perun.wording import counted

if TYPE_CHECKING:
    from perun.callgraph.graph import CallGraph
    from perun.view.callgraph.shown import Shown

MAX_LINES: Final = 1000
"""Lines of the tree before it is cut off."""


def summary(shown: Shown) -> str:
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


def tree(shown: Shown, focus: str, levels: int) -> Iterator[str]:
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


def _notes(shown: Shown, name: str) -> list[str]:
    """What the line of a function says behind its name."""
    notes = []
    change = shown.changes.get(name)
    if change is not None:
        notes.append(change.what if change.what == "new" else f"{change.what}: {change.why}")
    if name in shown.calls:
        notes.append(f"called {counted(shown.calls[name], 'time')}")
    return notes
