"""The plan of a trace after the optimisations: which probes stay, and how they are sampled and switched."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from perun import atomic
from perun.collect._calls.optimizations.composing import choose
from perun.collect._calls.optimizations.plan import Choice, Decision
from perun.collect._calls.optimizations.report import Report, Row
from perun.collect._calls.optimizations.resources import Resources
from perun.collect.trace.plan import shown_name
from perun.errors import UsageError
from perun.plugin.api import Answer, NoProfile
from perun.wording import counted

if TYPE_CHECKING:
    from perun.callgraph.graph import CallGraph
    from perun.collect.trace.engines import Engine, Recorded
    from perun.collect.trace.params import TraceParams
    from perun.collect.trace.plan import Plan, Probe
    from perun.plugin.api import CollectContext, Run
    from perun.profile.factory import Profile


class Optimized(NamedTuple):
    """A plan with what was chosen for it, and where that is kept. :ivar notes: for the user."""

    plan: Plan
    report: Report
    resources: Resources
    notes: tuple[str, ...]

    def update(self, profile: Profile) -> None:
        """Keep what was recorded for later runs, where the user wants optimisations."""
        if self.report.settings.methods:
            self.resources.update(profile)

    def head(self) -> dict[str, Any]:
        """What the header of the profile says."""
        region = self.report.region()
        return {key: region[key] for key in ("pipeline", "methods", "functions", "traced")}

    def region(self, plan: Plan, recorded: Recorded) -> dict[str, Any]:
        """The entry `optimization` of the region `trace` of the profile."""
        off = sorted(shown_name(plan.probes[one].function) for one in recorded.switched_off)
        return {**self.report.region(), "switched-off": off}


def is_wanted(params: TraceParams) -> bool:
    """Whether the parameters ask for optimisations, or for anything that needs the call graph."""
    asked = params.callgraph or params.only_extract_cg or params.explain or params.dry_run
    return bool(params.settings().methods or asked or params.optimization_reset_cache)


def optimize(run: Run, plan: Plan, params: TraceParams, ctx: CollectContext) -> Optimized:
    """Drop and sample probes of a plan as the parameters say, and answer what they ask.

    :raises NoProfile: where they ask for answers alone.
    :raises UsageError: where a parameter means a version without a call graph.
    """
    notes: list[str] = []
    resources = Resources(run, plan.program, "trace", params, ctx.statistics, notes.append)
    if params.optimization_reset_cache:
        resources.reset()
    settings = params.settings()
    graph = resources.graph()
    previous = resources.previous(settings) if settings.methods else None
    earlier = resources.earlier(graph)
    kind = "mixed" if params.extract_mixed_cg else params.use_cg_type
    typed = resources.typed(graph, earlier.seen, kind)
    if params.callgraph:
        _write(typed, params.callgraph)
    if params.only_extract_cg:
        functions, calls = counted(len(graph.functions), "function"), counted(len(typed.calls), "call")
        text = f"the call graph of {plan.program} has {functions} and {calls}"
        ctx.answer(Answer(text, {"functions": len(graph.functions), "calls": len(typed.calls)}))
        raise NoProfile
    names = _names(plan, graph)
    named = frozenset(name for number, name in names.items() if plan.probes[number].named)
    choice = choose(typed, previous.graph if previous else None, earlier, settings, named)
    found = _applied(plan, names, choice)
    rows = tuple(
        _row(probe, choice.decisions.get(names.get(number, ""))) for number, probe in enumerate(plan.probes)
    )
    report = Report(rows, settings, choice, typed.source, previous.version if previous else "")
    if params.explain or params.dry_run:
        ctx.answer(report.answer(as_json=params.json))
    if params.dry_run:
        raise NoProfile
    if not found.probes and not found.pairs:
        raise UsageError(
            f"the optimizations {', '.join(settings.methods)} leave no function to trace",
            "see why with --dry-run, or name functions with --func (-f)",
        )
    return Optimized(found, report, resources, (*notes, *_notes(report)))


def unsupported(plan: Plan, engine: Engine) -> list[str]:
    """What the engine does not do of the switching that a plan asks for."""
    wanted = {
        "dynamic-probing": plan.switching.threshold > 0,
        "timed-sampling": plan.switching.period > 0,
    }
    return [
        f"{method} has no effect: {engine.switches[method]}"
        for method, is_asked in wanted.items()
        if is_asked and method in engine.switches
    ]


def _names(plan: Plan, graph: CallGraph) -> dict[int, str]:
    """The number of each probe to the name of its function in the graph; only those of the program."""
    by_address = {one.address: one.name for one in graph.functions.values() if one.address}
    by_symbol = {one.symbol: one.name for one in graph.functions.values() if one.symbol}
    found = {}
    for number, probe in enumerate(plan.probes):
        if probe.path != plan.program:
            continue
        name = by_address.get(probe.function.address) or by_symbol.get(probe.function.symbol)
        if name is not None:
            found[number] = name
    return found


def _applied(plan: Plan, names: Mapping[int, str], choice: Choice) -> Plan:
    """The plan with the probes that stay. What the user said of sampling has precedence."""
    probes: list[Probe] = []
    entry = -1
    for number, probe in enumerate(plan.probes):
        decision = choice.decisions.get(names.get(number, ""), Decision(True))
        if not decision.kept:
            continue
        if probe.function.symbol == "main" and probe.path == plan.program:
            entry = len(probes)
        probes.append(probe._replace(sampling=probe.sampling if probe.sampling > 1 else decision.sampling))
    return plan._replace(probes=tuple(probes), switching=choice.switching, entry=entry)


def _row(probe: Probe, decision: Decision | None) -> Row:
    uid = shown_name(probe.function)
    if decision is None:
        return Row(uid, True, "", "it is not in the call graph of the program", probe.sampling)
    return Row(uid, *decision[:3], decision.sampling if decision.kept else 1)


def _notes(report: Report) -> list[str]:
    """What a run without --explain says."""
    traced = sum(row.traced for row in report.rows)
    methods = ", ".join(report.settings.methods)
    if not methods:
        return []
    text = (
        f"{traced} of {counted(len(report.rows), 'function')} are traced ({methods}); --explain says which, "
        "and why"
    )
    return [text, *report.choice.notes]


def _write(graph: CallGraph, file: str) -> None:
    """Write the graph to a file of the user's.

    :raises UsageError: where it cannot be written.
    """
    import json

    from perun.callgraph.files import to_data, to_dot

    text = json.dumps(to_data(graph), indent=2) if file.endswith(".json") else to_dot(graph)
    try:
        atomic.write(Path(file), text.encode())
    except OSError as problem:
        raise UsageError(
            f"cannot write --callgraph {file}: {problem.strerror}", "name a file in a folder that exists"
        ) from None
