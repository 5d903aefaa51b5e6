"""The chosen methods together: which functions are traced, by which method each was dropped, and why."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING, Final

from perun.callgraph.difference import Difference
from perun.collect._calls.optimizations.difference import diff_tracing, difference_of
from perun.collect._calls.optimizations.plan import (
    Choice,
    Decision,
    Earlier,
    Effect,
    Optimization,
    Switching,
)
from perun.collect._calls.optimizations.recorded import (
    baseline_dynamic,
    dynamic_probing,
    dynamic_sampling,
    timed_sampling,
)
from perun.collect._calls.optimizations.settings import METHODS, Method
from perun.collect._calls.optimizations.shaping import baseline_static, cg_shaping

if TYPE_CHECKING:
    from perun.callgraph.graph import CallGraph
    from perun.collect._calls.optimizations.settings import Settings

OPTIMIZATIONS: Final[dict[Method, Optimization]] = {
    "diff-tracing": diff_tracing,
    "cg-shaping": cg_shaping,
    "baseline-static": baseline_static,
    "baseline-dynamic": baseline_dynamic,
    "dynamic-sampling": dynamic_sampling,
    "dynamic-probing": dynamic_probing,
    "timed-sampling": timed_sampling,
}
"""The methods by their names."""


def choose(
    graph: CallGraph,
    previous: CallGraph | None,
    earlier: Earlier,
    settings: Settings,
    named: Set[str] = frozenset(),
) -> Choice:
    """Apply the methods of the settings in the order of :data:`METHODS`.

    A function that changed since the earlier version is dropped by none, whatever the methods are, and
    neither is the entry, whose one call has the time of all, nor one that the user named himself.

    :param previous: the call graph of the earlier version; None where none is known.
    :param named: the functions that the user named.
    """
    if not settings.methods:
        return Choice({name: Decision(True) for name in graph.functions})
    found = difference_of(graph, previous, settings) if previous is not None else Difference({}, {})
    effects = {
        method: OPTIMIZATIONS[method](graph, previous, earlier, settings)
        for method in METHODS
        if method in settings.methods
    }
    decisions = {}
    for name in graph.functions:
        if name in found.changed:
            decision = Decision(True, "diff-tracing", found.changed[name])
        elif name in named:
            decision = Decision(True, "", "it is named by --func")
        elif name == graph.entry:
            decision = Decision(True, "", "the program begins with it")
        else:
            decision = _first_drop(name, effects)
        sampling = max(effect.sampling.get(name, 1) for effect in effects.values())
        # Of a changed function only what it did before tells how often it is called.
        if decision.kept and name != graph.entry and (name not in found.changed or name in earlier.seen):
            decision = decision._replace(sampling=sampling)
        decisions[name] = decision
    return Choice(
        decisions,
        _switching(effects),
        found.changed,
        found.renamed,
        tuple(_lacks(settings, graph, previous, earlier)),
    )


def _first_drop(name: str, effects: dict[Method, Effect]) -> Decision:
    for method, effect in effects.items():
        if name in effect.dropped:
            return Decision(False, method, effect.dropped[name])
    return Decision(True)


def _switching(effects: dict[Method, Effect]) -> Switching:
    threshold = max((one.switching.threshold for one in effects.values()), default=0)
    reattach = any(one.switching.reattach for one in effects.values())
    period = max((one.switching.period for one in effects.values()), default=0.0)
    return Switching(threshold, reattach, period)


def _lacks(
    settings: Settings, graph: CallGraph, previous: CallGraph | None, earlier: Earlier
) -> list[str]:
    """What methods lacked, so that they dropped nothing."""
    lacks = [f"{name} has no effect, as {method} is not on" for name, method in settings.idle]
    drops = {"cg-shaping", "baseline-static", "baseline-dynamic"}
    if previous is None and drops & set(settings.methods):
        lacks.append(
            "no earlier version has a call graph of the program, so that changed functions may be dropped; "
            "make one with: perun collect -m REV ... trace --only-extract-cg"
        )
    if "diff-tracing" in settings.methods and previous is None:
        lacks.append("diff-tracing: no earlier version has a call graph of the program; it drops nothing")
    if "cg-shaping" in settings.methods and not graph.levels():
        lacks.append("cg-shaping: the call graph has no entry of the program; it drops nothing")
    if "baseline-static" in settings.methods and not earlier.bounds:
        lacks.append(
            "baseline-static: there are no bounds of the functions, so it drops nothing; make them with: "
            "perun collect bounds"
        )
    if "baseline-dynamic" in settings.methods and not earlier.seen:
        lacks.append("baseline-dynamic: nothing was recorded of the program earlier, so it drops nothing")
    return lacks
