"""The method `diff-tracing`: only what changed between two versions of a program is traced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perun.callgraph.difference import Difference, difference
from perun.collect._calls.optimizations.plan import Earlier, Effect
from perun.collect._calls.optimizations.settings import is_small

if TYPE_CHECKING:
    from perun.callgraph.graph import CallGraph
    from perun.collect._calls.optimizations.settings import Settings


def diff_tracing(
    graph: CallGraph, previous: CallGraph | None, earlier: Earlier, settings: Settings
) -> Effect:
    """Drop what did not change since the earlier version (manual 3.3.1)."""
    if previous is None:
        return Effect()
    found = difference_of(graph, previous, settings)
    keeps_leaves = settings.flag("diff-keep-leaf", is_small(graph))
    dropped = {}
    for name in graph.functions:
        if name in found.changed or (keeps_leaves and not graph.callees(name)):
            continue
        before = found.renamed.get(name)
        dropped[name] = f"it did not change, and was called {before}" if before else "it did not change"
    return Effect(dropped)


def difference_of(graph: CallGraph, previous: CallGraph, settings: Settings) -> Difference:
    """The :func:`difference` that the settings mean."""
    return difference(graph, previous, settings.value("diff-cfg-mode"), settings.flag("diff-inspect-all"))
