"""The optimisations applied to the functions that a collector would trace."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.collect._calls.optimizations.methods import (
    baseline_dynamic,
    baseline_static,
    cg_shaping,
    diff_tracing,
    difference_of,
    dynamic_probing,
    dynamic_sampling,
    timed_sampling,
)
from perun.collect._calls.optimizations.plan import (
    CallStatistics,
    EarlierProfiles,
    MethodEffect,
    Optimization,
    ProbeSwitching,
    Report,
    ReportRow,
    TraceChoice,
    TraceDecision,
)
from perun.collect._calls.optimizations.settings import COMPLEXITIES, METHODS, Method, OptimizationSettings
from perun.core import atomic
from perun.core.errors import PerunError, ProfileError, UsageError, VersionControlError
from perun.core.wording import counted
from perun.native.callgraph.difference import GraphDifference
from perun.native.callgraph.files import from_values, to_data, to_dot, to_values
from perun.native.callgraph.graph import CallEdge, CallGraph, file_name, graph_name
from perun.native.elf import read_elf
from perun.native.image import static_graph
from perun.plugin.api import Answer, NoProfile
from perun.profile.bounds import Growth, classes
from perun.profile.untraced import sampling_of

if TYPE_CHECKING:
    from perun.collect._calls.optimizations.settings import OptimizationParams
    from perun.plugin.api import CollectContext, Run, Statistics
    from perun.profile.factory import Profile


# What the optimisations need: call graphs, what was recorded earlier, and static bounds.
#
# Call graphs and what was recorded are kept as statistics of versions (`perun stats`): the graph by the name
# of the program, what was recorded by the command.

_CLASSES: Final = {
    "constant": "O(1)",
    "logarithmic": "O(log n)",
    "linear": "O(n)",
    "linearithmic": "O(n log n)",
    "quadratic": "O(n^2)",
    "cubic": "O(n^3)",
    "polynomial": "O(n^100)",
    "exponential": "O(2^n)",
}
"""What each of `COMPLEXITIES` is as a class of bounds."""


class PreviousGraph(NamedTuple):
    """The call graph of an earlier version."""

    version: str
    graph: CallGraph


class OptimizationResources:
    """Finds and keeps what the optimisations of one run of a program need.

    :param program: path of the program. :param note: told what cannot be used and why.
    """

    def __init__(
        self,
        run: Run,
        program: str,
        collector: str,
        params: OptimizationParams,
        statistics: Statistics | None,
        note: Callable[[str], None],
    ) -> None:
        self._run = run
        self._program = program
        self._collector = collector
        self._params = params
        self._statistics = statistics
        self._note = note
        self._graph_name = graph_name(collector, program)
        self._seen_name = "ds--" + file_name(f"{collector}-{run}")

    def reset(self) -> None:
        """Forget all that is kept of the program and the command, of all versions."""
        if self._statistics is not None:
            self._statistics.remove(self._graph_name)
            self._statistics.remove(self._seen_name)

    def graph(self) -> CallGraph:
        """The static call graph of the program; kept by its version while the program is the same.

        :raises JobFailed: where it cannot be read, or is no ELF file for x86-64.
        """

        statistics = None if self._params.optimization_cache_off else self._statistics
        if statistics is None:
            return static_graph(self._program)
        kept = _readable(statistics.load(self._graph_name))
        elf = read_elf(self._program)
        if kept is not None and elf is not None and kept.build_id and kept.build_id == elf.build_id:
            return kept
        if kept is None and (found := statistics.earlier(self._graph_name)) is not None:
            kept = _readable(found[1])
        graph = static_graph(self._program, kept)
        statistics.save(self._graph_name, to_values(graph))
        return graph

    def typed(self, graph: CallGraph, seen: Mapping[str, CallStatistics], kind: str) -> CallGraph:
        """The graph of another type: with the calls that were recorded, in place of those of the machine code
        (`dynamic`) or besides these (`mixed`)."""
        from dataclasses import replace

        if kind == "static":
            return graph
        recorded = [
            CallEdge(caller, name, "dynamic")
            for name, one in seen.items()
            for caller in one.callers
            if caller in graph.functions
        ]
        if not recorded:
            self._note(f"--use-cg-type {kind}: no calls were recorded earlier; the static call graph is used")
            return graph
        known = {(call.caller, call.callee) for call in graph.calls} if kind == "mixed" else set()
        more = tuple(call for call in recorded if (call.caller, call.callee) not in known)
        return replace(graph, calls=(*graph.calls, *more) if kind == "mixed" else more, source=kind)

    def previous(self, settings: OptimizationSettings) -> PreviousGraph | None:
        """The call graph of the nearest ancestor that has one, or of `diff-version`.

        :raises UsageError: where that version has none, or there is no such version.
        """

        revision = str(settings.value("diff-version"))
        if self._statistics is None:
            return None
        try:
            found = self._statistics.earlier(self._graph_name, revision)
        except VersionControlError as problem:
            raise UsageError(f"diff-version: {problem.message}", problem.hint) from None
        if found is None and revision:
            raise UsageError(
                f"diff-version: no call graph of {os.path.basename(self._program)} is kept of {revision}",
                f"make it with: perun collect -m {revision} -c {str(self._run)!r} {self._collector} "
                "--only-extract-cg",
            )
        if found is None:
            return None
        try:
            return PreviousGraph(found[0], from_values(found[1]))
        except ProfileError as problem:
            self._note(f"the call graph of {found[0][:10]} is not used: {problem.message}")
            return None

    def earlier(self, graph: CallGraph) -> EarlierProfiles:
        """What is known of the functions of the graph from earlier profiles."""
        by_uid: dict[str, list[str]] = {}
        for function in graph.functions.values():
            by_uid.setdefault(function.uid or function.name, []).append(function.name)

        def named(uid: str) -> list[str]:
            return by_uid.get(uid, [])

        seen = {}
        for uid, one in self.seen().items():
            callers = {name: calls for caller, calls in one.callers.items() for name in named(caller)}
            seen.update(dict.fromkeys(named(uid), one._replace(callers=callers)))
        bounds = {name: kind for uid, kind in self._bounds().items() for name in named(uid)}
        return EarlierProfiles(seen, bounds)

    def seen(self) -> dict[str, CallStatistics]:
        """What was recorded of functions earlier, by their uids."""
        if self._statistics is None or self._params.optimization_cache_off:
            return {}
        kept = self._statistics.load(self._seen_name)
        if kept is None:
            found = self._statistics.earlier(self._seen_name)
            kept = found[1] if found else None
        if kept is not None:
            return _from_values(kept)
        profile = self._statistics.profile(self._collector, self._run.cmd)
        return seen_of(profile) if profile is not None else {}

    def update(self, profile: Profile) -> None:
        """Keep what the profile says of each function, besides what is known of those that it does not
        have."""
        if self._statistics is None or self._params.optimization_cache_off:
            return
        seen = {**self.seen(), **seen_of(profile)}
        self._statistics.save(
            self._seen_name, {uid: [*one[:3], dict(one.callers)] for uid, one in sorted(seen.items())}
        )

    def _bounds(self) -> dict[str, str]:
        """The classes of the static bounds by uid; none where no bounds were made."""
        if self._statistics is None:
            return {}
        profile = self._statistics.profile("bounds", None)
        if profile is None:
            return {}
        try:
            growths = classes(profile)
        except PerunError as problem:
            self._note(f"the bounds are not used: {problem.message}")
            return {}
        return {name: complexity_of(growth) for name, growth in growths.items() if growth.is_bounded}


def _readable(values: object) -> CallGraph | None:
    """The graph that was kept; None where there is none, or one of another release of Perun."""
    try:
        return from_values(values) if values is not None else None
    except ProfileError:
        return None


def complexity_of(growth: Growth) -> str:
    """The lowest of the classes that parameters name which grows as fast; `growth` is bounded."""
    reached = (name for name in COMPLEXITIES if growth <= Growth.of(_CLASSES[name]))
    return next(reached, COMPLEXITIES[-1])


def seen_of(profile: Profile) -> dict[str, CallStatistics]:
    """What a profile of calls says of each function, by its uid; of sampled ones calls are counted up."""
    import numpy as np

    sampling = sampling_of(profile)
    times: dict[str, list[Any]] = {}
    callers: dict[str, dict[str, int]] = {}
    for group in profile.groups():
        uid = str(group.constants.get("uid", ""))
        amounts = np.asarray(group.columns.get("amount", []), np.float64)
        times.setdefault(uid, []).append(amounts)
        caller = str(group.constants.get("caller", ""))
        if caller:
            own = callers.setdefault(uid, {})
            own[caller] = own.get(caller, 0) + len(amounts) * sampling.get(uid, 1)
    seen = {}
    for uid, pieces in times.items():
        amounts = np.concatenate(pieces)
        if not len(amounts):
            continue
        low, median, high = np.percentile(amounts, (25, 50, 75)).tolist()
        calls = len(amounts) * sampling.get(uid, 1)
        seen[uid] = CallStatistics(calls, round(median, 3), round(high - low, 3), callers.get(uid, {}))
    return seen


def _from_values(values: Mapping[str, Any]) -> dict[str, CallStatistics]:
    """What :meth:`OptimizationResources.update` kept; what is no such thing is left out."""
    found = {}
    for uid, row in values.items():
        try:
            calls, median, iqr, callers = row
            counts = {str(caller): int(count) for caller, count in callers.items()}
            found[uid] = CallStatistics(int(calls), float(median), float(iqr), counts)
        except (TypeError, ValueError, AttributeError):
            continue
    return found


# The chosen methods together: which functions are traced, by which method each was dropped, and why.

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
    earlier: EarlierProfiles,
    settings: OptimizationSettings,
    named: Set[str] = frozenset(),
) -> TraceChoice:
    """Apply the methods of the settings in the order of :data:`METHODS`.

    A function that changed since the earlier version is dropped by none, whatever the methods are, and
    neither is the entry, whose one call has the time of all, nor one that the user named himself.

    :param previous: the call graph of the earlier version; None where none is known.
    :param named: the functions that the user named.
    """
    if not settings.methods:
        return TraceChoice({name: TraceDecision(True) for name in graph.functions})
    found = difference_of(graph, previous, settings) if previous is not None else GraphDifference({}, {})
    effects = {
        method: OPTIMIZATIONS[method](graph, previous, earlier, settings)
        for method in METHODS
        if method in settings.methods
    }
    decisions = {}
    for name in graph.functions:
        if name in found.changed:
            decision = TraceDecision(True, "diff-tracing", found.changed[name])
        elif name in named:
            decision = TraceDecision(True, "", "it is named by --func")
        elif name == graph.entry:
            decision = TraceDecision(True, "", "the program begins with it")
        else:
            decision = _first_drop(name, effects)
        sampling = max(effect.sampling.get(name, 1) for effect in effects.values())
        # Of a changed function only what it did before tells how often it is called.
        if decision.kept and name != graph.entry and (name not in found.changed or name in earlier.seen):
            decision = decision._replace(sampling=sampling)
        decisions[name] = decision
    return TraceChoice(
        decisions,
        _switching(effects),
        found.changed,
        found.renamed,
        tuple(_lacks(settings, graph, previous, earlier)),
    )


def _first_drop(name: str, effects: dict[Method, MethodEffect]) -> TraceDecision:
    for method, effect in effects.items():
        if name in effect.dropped:
            return TraceDecision(False, method, effect.dropped[name])
    return TraceDecision(True)


def _switching(effects: dict[Method, MethodEffect]) -> ProbeSwitching:
    threshold = max((one.switching.threshold for one in effects.values()), default=0)
    reattach = any(one.switching.reattach for one in effects.values())
    period = max((one.switching.period for one in effects.values()), default=0.0)
    return ProbeSwitching(threshold, reattach, period)


def _lacks(
    settings: OptimizationSettings, graph: CallGraph, previous: CallGraph | None, earlier: EarlierProfiles
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


class TraceCandidate(NamedTuple):
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


class OptimizationResult(NamedTuple):
    """What was decided. :ivar decisions: of each candidate. :ivar notes: for the user."""

    decisions: tuple[TraceDecision, ...]
    report: Report
    resources: OptimizationResources
    notes: tuple[str, ...]

    @property
    def switching(self) -> ProbeSwitching:
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
    candidates: Sequence[TraceCandidate],
    params: OptimizationParams,
    ctx: CollectContext,
    request: GraphRequest = NOTHING_ASKED,
) -> OptimizationResult:
    """Decide on each candidate, and answer what the parameters ask.

    :raises NoProfile: where they ask for answers alone.
    :raises UsageError: where no function is left, a parameter means a version without a call graph, or the
        file of the graph cannot be written.
    """
    if request.file:
        _check_name(request.file)
    notes: list[str] = []
    resources = OptimizationResources(run, program, collector, params, ctx.statistics, notes.append)
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
    unknown = TraceDecision(True, "", "it is not in the call graph of the program")
    found = tuple(_sampled(choice.decisions.get(name_of(one), unknown), one) for one in candidates)
    rows = tuple(
        ReportRow(one.uid, *decision[:3], decision.sampling if decision.kept else 1)
        for one, decision in zip(candidates, found, strict=True)
    )
    report = Report(rows, settings, choice, typed.source, previous.version if previous else "")
    if params.explain or params.dry_run:
        ctx.answer(report.answer(as_json=params.json))
    if params.dry_run:
        raise NoProfile
    told = () if params.explain else _notes(report)
    return OptimizationResult(found, report, resources, (*notes, *told))


def _sampled(decision: TraceDecision, candidate: TraceCandidate) -> TraceDecision:
    """What the user said of sampling has precedence."""
    return decision._replace(sampling=candidate.sampling) if candidate.sampling > 1 else decision


def _naming(graph: CallGraph) -> Callable[[TraceCandidate], str]:
    """What tells the name of a candidate in the graph; empty for a function that it does not have."""
    by_address = {one.address: one.name for one in graph.functions.values() if one.address}
    by_symbol = {one.symbol: one.name for one in graph.functions.values() if one.symbol}

    def name(candidate: TraceCandidate) -> str:
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
