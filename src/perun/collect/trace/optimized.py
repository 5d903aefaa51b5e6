"""The plan of a trace after the optimisations: which probes stay, and how they are sampled and switched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from perun.collect._calls.optimizations.applying import Applied, Candidate, GraphRequest, apply, is_wanted
from perun.collect.trace.plan import shown_name
from perun.core.errors import UsageError

if TYPE_CHECKING:
    from perun.collect.trace.engines import Engine, Recorded
    from perun.collect.trace.params import TraceParams
    from perun.collect.trace.plan import Plan
    from perun.plugin.api import CollectContext, Run


class Optimized(NamedTuple):
    """A plan, and what was decided for it."""

    plan: Plan
    applied: Applied

    def region(self, plan: Plan, recorded: Recorded) -> dict[str, Any]:
        """The entry `optimization` of the region `trace` of the profile."""
        off = sorted(shown_name(plan.probes[one].function) for one in recorded.switched_off)
        return {**self.applied.report.region(), "switched-off": off}


def optimize(run: Run, plan: Plan, params: TraceParams, ctx: CollectContext) -> Optimized | None:
    """Drop and sample probes of a plan as the parameters say; None where they ask for nothing.

    :raises NoProfile: where they ask for a call graph or for explanations alone.
    :raises UsageError: where nothing is left to trace, or a parameter means a version without a call graph.
    """
    request = GraphRequest(params.callgraph, params.only_extract_cg, params.extract_mixed_cg)
    if not is_wanted(params, request):
        return None
    candidates = [
        Candidate(
            shown_name(probe.function),
            probe.function.symbol,
            probe.function.address if probe.path == plan.program else -1,
            probe.named,
            probe.sampling,
        )
        for probe in plan.probes
    ]
    ctx.report("making the call graph", 0, 0)
    applied = apply(run, plan.program, "trace", candidates, params, ctx, request)
    kept = [
        probe._replace(sampling=decision.sampling)
        for probe, decision in zip(plan.probes, applied.decisions, strict=True)
        if decision.kept
    ]
    if not kept and not plan.pairs:
        raise UsageError(
            f"the optimizations {', '.join(applied.report.settings.methods)} leave no function to trace",
            "see why with --dry-run, or name functions with --func (-f)",
        )
    mains = [number for number, probe in enumerate(kept) if probe.function.symbol == "main"]
    entry = mains[0] if mains else -1
    if params.follow_children:
        applied = applied._replace(
            notes=(*applied.notes, "the functions of programs that the command executes are all traced")
        )
    return Optimized(plan._replace(probes=tuple(kept), switching=applied.switching, entry=entry), applied)


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
