"""The optimisations applied to the functions that a collector would trace."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun import atomic
from perun.callgraph.files import to_data, to_dot
from perun.collect._calls.optimizations.composing import choose
from perun.collect._calls.optimizations.plan import Decision, Switching
from perun.collect._calls.optimizations.report import Report, Row
from perun.collect._calls.optimizations.resources import Resources
from perun.errors import UsageError
from perun.plugin.api import Answer, NoProfile
from perun.wording import counted

if TYPE_CHECKING:
    from perun.callgraph.graph import CallGraph
    from perun.collect._calls.optimizations.params import OptimizationParams
    from perun.plugin.api import CollectContext, Run
    from perun.profile.factory import Profile



class Candidate(NamedTuple):
    """A function that would be traced.

    :ivar uid: its name in the profile. :ivar address: in the program; -1 of a function of another file.
    :ivar named: the user named it, so that it stays. :ivar sampling: what the user said, else at most 1.
    """

    uid: str
    symbol: str
    address: int
    named: bool = False
    sampling: int = 1


class GraphRequest(NamedTuple):
    """What is asked of the call graph itself. :ivar file: where to write it. :ivar only: and nothing else.

    :ivar mixed: with the calls that were recorded earlier.
    """

    file: str = ""
    only: bool = False
    mixed: bool = False


NOTHING_ASKED: Final = GraphRequest()


class Applied(NamedTuple):
    """What was decided. :ivar decisions: of each candidate. :ivar notes: for the user."""

    decisions: tuple[Decision, ...]
    report: Report
    resources: Resources
    notes: tuple[str, ...]

    @property
    def switching(self) -> Switching:
        """What the engine does while the program runs."""
        return self.report.choice.switching

    def update(self, profile: Profile) -> None:
        """Keep what was recorded for later runs, where the user wants optimisations."""
        if self.report.settings.methods:
            self.resources.update(profile)

    def head(self) -> dict[str, Any]:
        """What the header of the profile says."""
        region = self.report.region()
        return {key: region[key] for key in ("pipeline", "methods", "functions", "traced")}


def is_wanted(params: OptimizationParams, request: GraphRequest = NOTHING_ASKED) -> bool:
    """Whether the parameters ask for optimisations, or for anything that needs the call graph."""
    asked = request.file or request.only or params.explain or params.dry_run
    return bool(params.settings().methods or asked or params.optimization_reset_cache)


def apply(
    run: Run,
    program: str,
    collector: str,
    candidates: Sequence[Candidate],
    params: OptimizationParams,
    ctx: CollectContext,
    request: GraphRequest = NOTHING_ASKED,
) -> Applied:
    """Decide on each candidate, and answer what the parameters ask.

    :raises NoProfile: where they ask for answers alone.
    :raises UsageError: where no function is left, a parameter means a version without a call graph, or the
        file of the graph cannot be written.
    """
    if request.file:
        _check_name(request.file)
    notes: list[str] = []
    resources = Resources(run, program, collector, params, ctx.statistics, notes.append)
    if params.optimization_reset_cache:
        resources.reset()
    settings = params.settings()
    graph = resources.graph()
    previous = resources.previous(settings) if settings.methods else None
    earlier = resources.earlier(graph)
    typed = resources.typed(graph, earlier.seen, "mixed" if request.mixed else params.use_cg_type)
    if request.file:
        _write(typed, request.file)
    if request.only:
        functions, calls = counted(len(graph.functions), "function"), counted(len(typed.calls), "call")
        text = f"the call graph of {program} has {functions} and {calls}"
        ctx.answer(Answer(text, {"functions": len(graph.functions), "calls": len(typed.calls)}))
        raise NoProfile
    name_of = _naming(graph)
    named = frozenset(name_of(one) for one in candidates if one.named)
    choice = choose(typed, previous.graph if previous else None, earlier, settings, named)
    unknown = Decision(True, "", "it is not in the call graph of the program")
    found = tuple(_sampled(choice.decisions.get(name_of(one), unknown), one) for one in candidates)
    rows = tuple(
        Row(one.uid, *decision[:3], decision.sampling if decision.kept else 1)
        for one, decision in zip(candidates, found, strict=True)
    )
    report = Report(rows, settings, choice, typed.source, previous.version if previous else "")
    if params.explain or params.dry_run:
        ctx.answer(report.answer(as_json=params.json))
    if params.dry_run:
        raise NoProfile
    told = () if params.explain else _notes(report)
    return Applied(found, report, resources, (*notes, *told))


def _sampled(decision: Decision, candidate: Candidate) -> Decision:
    """What the user said of sampling has precedence."""
    return decision._replace(sampling=candidate.sampling) if candidate.sampling > 1 else decision


def _naming(graph: CallGraph) -> Callable[[Candidate], str]:
    """What tells the name of a candidate in the graph; empty for a function that it does not have."""
    by_address = {one.address: one.name for one in graph.functions.values() if one.address}
    by_symbol = {one.symbol: one.name for one in graph.functions.values() if one.symbol}

    def name(candidate: Candidate) -> str:
        if candidate.address < 0:
            return ""
        return by_address.get(candidate.address) or by_symbol.get(candidate.symbol, "")

    return name


def _notes(report: Report) -> list[str]:
    """What a run says without --explain."""
    traced = sum(row.traced for row in report.rows)
    methods = ", ".join(report.settings.methods)
    if not methods:
        return []
    functions = counted(len(report.rows), "function")
    text = f"{traced} of {functions} are traced ({methods}); --explain says which, and why"
    return [text, *report.choice.notes]


def _check_name(file: str) -> None:
    if not file.endswith((".json", ".dot", ".gv")):
        raise UsageError(
            f"--callgraph {file}: the name ends in none of .json, .dot and .gv",
            "for a picture write dot, and let Graphviz draw it: dot -Tsvg calls.dot -o calls.svg",
        )


def _write(graph: CallGraph, file: str) -> None:
    """Write the graph to a file of the user's.

    :raises UsageError: where it cannot be written.
    """
    text = json.dumps(to_data(graph), indent=2) if file.endswith(".json") else to_dot(graph)
    try:
        with atomic.writing(Path(file), make_folder=False) as out:
            out.write(text.encode())
    except OSError as problem:
        raise UsageError(
            f"cannot write --callgraph {file}: {problem.strerror}", "name a file in a folder that exists"
        ) from None
