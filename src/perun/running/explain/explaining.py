"""`perun explain`: plan, collect, compare costs, find lines.

`plan` has the versions and configurations, `collecting` the profiles of both sides; `costs` and `growing`
compare them; `sources` and `functions` find the lines; `data` is the answer."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from perun.core.errors import JobFailed, PerunError, UsageError
from perun.core.wording import listed
from perun.measurement.series import measurements
from perun.plugin.api import Report, ViewContext, quiet, silent
from perun.plugin.loading import errors_of
from perun.plugin.params import nearest
from perun.profile.changes import DegradationInfo
from perun.profile.head import Configuration
from perun.repository.repository import Repository
from perun.running.compare.plan import prepared
from perun.running.explain import benchmark, costs, growing, kept
from perun.running.explain.causes import causes, locations
from perun.running.explain.collecting import CALLS, ExplainMeasurement, changed_counts, stored, suspects
from perun.running.explain.costs import (
    OUTSIDE,
    FunctionAllocation,
    FunctionCost,
    FunctionKey,
    disagreements,
)
from perun.running.explain.data import (
    AllocatorSite,
    CaseReport,
    Cause,
    CostChange,
    CostPart,
    Explanation,
    FunctionChange,
    GrowthChange,
)
from perun.running.explain.kept import as_json
from perun.running.explain.lines import renamed
from perun.running.explain.plan import CaseEvidence, ExplainOptions, ExplainPlan, ProfilePair, SizedPair
from perun.running.explain.sources import Sources
from perun.running.run.together import Together
from perun.running.suite.programs import SuiteOptions

if TYPE_CHECKING:
    from perun.native.callgraph.graph import CallGraph


# Differential flame graphs, drawn by the view `flamegraph`: whole pages, as the view writes them.

VIEW: Final = "flamegraph"
TITLES: Final[Mapping[str, str]] = {
    "instructions": "Instructions",
    "trace": "Time",
    "complexity": "Time",
    "memory": "Memory",
}
"""The collectors whose profiles have call stacks, by the title of their graph, in the order of the page."""


def graphs(
    repo: Repository, pairs: Mapping[str, ProfilePair], unseen: list[str]
) -> Iterator[tuple[str, str]]:
    """The title and the page of each pair that has call stacks. :param unseen: gets why one has none."""
    for collector, title in TITLES.items():
        if collector in pairs:
            try:
                yield title, _page(repo, pairs[collector], title)
            except PerunError as problem:
                unseen.append(f"flame graph of {collector}: {problem.message}")


def _page(repo: Repository, pair: ProfilePair, title: str) -> str:
    view = repo.registry.get("view", VIEW)
    with tempfile.TemporaryDirectory(prefix="perun-explain-") as folder:
        path = Path(folder) / "graph.html"
        params = replace(
            view.Params(), filename=str(path), diff="the version before", graph_title=title, icicle=True
        )
        context = ViewContext(load=lambda name: pair.base)
        with errors_of(view, f"the view {VIEW!r}", PerunError):
            view.render(pair.head, params, io.StringIO(), context)
        return path.read_text("utf-8")


# `perun explain`: which functions cost more in a version than in the one before, and which lines did it.

MOVED: Final = 0.1
"""Two changes cancel where their sum is at most this part of either."""
_OF_FUNCTIONS: Final = ("leaked", "peak", "allocated", "allocations", "temporary")
"""What is told of memory, the most important first."""
_UNITS: Final[Mapping[str, str]] = {"leaked": "B", "peak": "B", "allocated": "B"}
_LEAST_PART: Final = 0.02
"""Part of the change of a function below which what libraries do for it is not told."""
_MOST_PARTS: Final = 4


def explain(
    repo: Repository,
    planned: ExplainPlan,
    options: ExplainOptions,
    report: Report = silent,
    *,
    pages: bool = False,
    note: Callable[[str], None] = quiet,
) -> Explanation:
    """Measure what is missing of both versions, and say what changed, worst first.

    :param report: gets what is done. :param pages: also make the differential flame graphs.
    :param note: gets what harnesses tell.
    :raises PerunError: where a side cannot be prepared, nothing can be measured, or no function has the
        location; what was measured is stored then.
    """
    sides = prepared(repo, planned.sides, 1, report) if options.collects else nullcontext(None)
    count = 0
    with sides as folders, Together(repo) as together, ExitStack() as scratch:
        one = None
        if folders is not None and options.benchmark:
            wanted = SuiteOptions(options.harness, (options.benchmark,))
            one = benchmark.prepared(repo, planned.sides, folders, wanted, scratch, report, note)
            planned = planned._replace(cases=(one.case,), notes=(*planned.notes, one.note))
        found = [stored(repo, planned, case, options.collects) for case in planned.cases]
        measuring = (
            ExplainMeasurement(repo, planned, folders, options, together, report, one)
            if folders is not None
            else None
        )
        if measuring is not None:
            found = [measuring.complete(case, options.sizes) for case in found]
        known = []
        for case in found:
            programs = _programs(measuring, planned, case)
            ends = planned.base.version, planned.head.version
            sources = Sources(repo, *ends, programs, with_harness=bool(options.benchmark))
            if measuring is not None:
                case = measuring.calls(case, suspects(case, sources, options))
            known.append((case, sources))
        if measuring is not None:
            measuring.store()
            count = measuring.stored
        found = [case for case, _ in known]
        _require_some(found)
        reports, told = [], set[str]()
        checked = growing.VersionsCheck(repo, planned.base.version, planned.head.version)
        for case, sources in known:
            case = case._replace(sized=case.sized or _generated(found, case))
            reports.append(_Case(repo, case, sources, options, checked, pages).report())
        for made in reports:
            told |= {function.path for function in made.functions if function.lines}
            told |= {path for function in made.functions for path, _ in function.near}
            told |= {cause.path for cause in made.causes}
        others = known[-1][1].others(told) if known else []
    if options.location and not any(report.functions for report in reports):
        raise UsageError(*_unknown_location(options.location, found))
    answer = Explanation(
        planned.base.version, planned.head.version, tuple(reports), tuple(others), count, planned.notes
    )
    if options.collects and not options.location:
        kept.keep(repo, answer.head.checksum, as_json(answer))
    return answer


def _programs(
    measuring: ExplainMeasurement | None, planned: ExplainPlan, found: CaseEvidence
) -> list[Path | None]:
    if measuring is None:
        return [None, None]
    return [measuring.program(found.case, side) for side in planned.sides]


def _require_some(found: Sequence[CaseEvidence]) -> None:
    """:raises JobFailed: where nothing is known of any configuration."""
    if not any(one.pairs for one in found):
        reasons = [reason for one in found for reason in one.unseen]
        raise JobFailed(
            ": ".join(filter(None, ("nothing is known of both versions", "; ".join(reasons)))),
            "correct that, or name another command with -c; perun doctor shows what can be measured here",
        )


def _generated(found: Sequence[CaseEvidence], one: CaseEvidence) -> SizedPair | None:
    """The instructions of all workloads of the same generator, where it knows their sizes."""
    job = one.case.job
    if job.generated is None:
        return None
    sized: dict[float, ProfilePair] = {}
    for other in found:
        generated = other.case.job.generated
        same = (other.case.job.cmd, other.case.job.args) == (job.cmd, job.args)
        if generated and same and generated.generator == job.generated.generator:
            amount = generated.inputs[0].amount
            if isinstance(amount, (int, float)) and "instructions" in other.pairs:
                sized[float(amount)] = other.pairs["instructions"]
    if len(sized) < 3:
        return None
    ordered = sorted(sized.items())
    return SizedPair(
        [(size, pair.base) for size, pair in ordered], [(size, pair.head) for size, pair in ordered]
    )


def _unknown_location(wanted: str, found: Sequence[CaseEvidence]) -> tuple[str, str]:
    """What to say of a location that no report has, and the hint."""
    names: set[str] = set()
    for one in found:
        for pair in one.pairs.values():
            for profile in pair[:2]:
                for group in profile.groups():
                    names.add(costs.place_of(group.constants.get("uid", "")).name)
    if any(wanted.rpartition(":")[2] in name for name in names):
        return f"what {wanted} costs did not change", "leave out the location to see what did"
    names.discard("")
    return f"no profile of the two versions has a function {wanted!r}", nearest(wanted, names)


class _Case:
    """The report of one configuration."""

    def __init__(
        self,
        repo: Repository,
        found: CaseEvidence,
        sources: Sources,
        options: ExplainOptions,
        checked: growing.VersionsCheck,
        pages: bool,
    ) -> None:
        self._repo = repo
        self._found = found
        self._sources = sources
        self._options = options
        self._checked = checked
        self._pages = pages
        self._unseen = list(found.unseen)
        self._costs: dict[FunctionKey, list[CostChange]] = {}
        self._names: dict[str, set[FunctionKey]] = {}
        self._libraries: dict[FunctionKey, tuple[CostPart, ...]] = {}
        self._callers: dict[FunctionKey, tuple[set[str], set[str]]] = {}
        self._sites: dict[FunctionKey, list[AllocatorSite]] = {}
        self._seen_lines: dict[FunctionKey, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self._growth: dict[FunctionKey, GrowthChange] = {}
        self._totals: list[CostChange] = []
        self._causes: list[Cause] = []
        self._has_lines = False

    def report(self) -> CaseReport:
        """What is found of it."""
        pairs = self._found.pairs
        for collector, pair in pairs.items():
            if collector == "instructions":
                self._instructions(pair)
                self._tell_headline(collector, pair)
            elif collector == "memory":
                self._memory(pair)
                self._tell_headline(collector, pair)
            else:
                self._timed(collector, pair)
        if self._found.sized is not None:
            self._growth |= growing.growth(self._repo, self._found.sized, self._sources)
        elif self._options.collects and "calls" in self._options.what and not self._options.benchmark:
            self._note_growth()
        self._look_at_sources()
        changed = [self._function(place) for place in self._places()]
        kept = [one for one in changed if self._is_told(one)]
        kept = with_moved(kept, self._totals)
        ranks = locations(self._causes)
        kept.sort(key=lambda one: (ranks.get(one.location, len(ranks)), -one.score, one.location))
        pages = graphs(self._repo, pairs, self._unseen) if self._pages else ()
        return CaseReport(
            str(self._found.case.job),
            tuple(self._totals),
            tuple(kept),
            len(changed) - len(kept),
            tuple(pages),
            tuple(dict.fromkeys(self._unseen)),
            tuple(self._causes),
            tuple(disagreements(self._totals)),
        )

    def _places(self) -> list[FunctionKey]:
        places = dict.fromkeys([*self._costs, *self._growth])
        return [place for place in places if self._options.means(place)]

    def _is_told(self, one: FunctionChange) -> bool:
        if self._options.benchmark and one.name == OUTSIDE:
            return False  # that is the harness
        if self._options.location or (one.growth is not None and one.growth.changed):
            return True
        return any(abs(cost.share) >= self._options.threshold for cost in one.costs)

    def _instructions(self, pair: ProfilePair) -> None:
        before, after = (self._sources.costs(profile, side) for side, profile in enumerate(pair[:2]))
        before = renamed(before, after)
        self._has_lines = before.has_lines and after.has_lines
        if self._has_lines and self._sources.knows:
            self._causes = causes(
                before, after, self._sources, self._options.threshold, self._options.location
            )
        for place in dict.fromkeys([*before.seen, *after.seen]):
            self._seen_lines[place] = tuple(before.seen.get(place, ())), tuple(after.seen.get(place, ()))
        self._compare_code(before.functions, after.functions)

    def _compare_code(
        self, before: Mapping[FunctionKey, FunctionCost], after: Mapping[FunctionKey, FunctionCost]
    ) -> None:
        whole = [sum(spent.amount for spent in side.values()) for side in (before, after)]
        self._totals.append(CostChange("instructions", "instr", whole[0], whole[1], whole[0]))
        nothing = FunctionCost(0.0, {}, {})
        for place in dict.fromkeys([*before, *after]):
            old, new = before.get(place, nothing), after.get(place, nothing)
            if old.amount != new.amount:
                cost = CostChange("instructions", "instr", old.amount, new.amount, whole[0])
                self._costs.setdefault(place, []).append(cost)
                self._libraries[place] = _parts(old.parts, new.parts, abs(new.amount - old.amount))
            self._names.setdefault(place.name, set()).add(place)
            callers = [{one.name for one in spent.callers} for spent in (old, new)]
            self._callers[place] = callers[0], callers[1]

    def _memory(self, pair: ProfilePair) -> None:
        before, after = (costs.totals(profile) for profile in pair[:2])
        for metric in _OF_FUNCTIONS:
            if metric in before or metric in after:
                whole = before.get(metric, 0.0)
                self._totals.append(
                    CostChange(metric, _UNITS.get(metric, ""), whole, after.get(metric, 0.0), whole)
                )
        old, new = (
            {(self._known(place), kind): one for (place, kind), one in side.items()}
            for side in (costs.memory(profile, self._is_own) for profile in pair[:2])
        )
        for place in dict.fromkeys(place for place, _ in [*old, *new]):
            for metric in _OF_FUNCTIONS:
                amounts = _sum(old, place, metric), _sum(new, place, metric)
                if amounts[0] != amounts[1]:
                    whole = before.get(metric, 0.0) or before.get("allocated", 0.0)
                    cost = CostChange(metric, _UNITS.get(metric, ""), *amounts, whole)
                    self._costs.setdefault(place, []).append(cost)
        for place, allocator in dict.fromkeys([*old, *new]):
            self._compare_site(place, allocator, old.get((place, allocator)), new.get((place, allocator)))

    def _known(self, place: FunctionKey) -> FunctionKey:
        """The place by which instructions or the sources name the function, where the profile of memory or of
        calls does not know its source."""
        if place.source:
            return place
        same = self._names.get(place.name) or self._sources.named(place.name)
        return next(iter(same)) if len(same) == 1 else place

    def _is_own(self, place: FunctionKey) -> bool:
        return self._sources.is_own(self._known(place))

    def _compare_site(
        self,
        place: FunctionKey,
        allocator: str,
        before: FunctionAllocation | None,
        after: FunctionAllocation | None,
    ) -> None:
        a, b = before or FunctionAllocation(), after or FunctionAllocation()
        known = self._seen_lines.get(place, ((), ()))
        self._seen_lines[place] = (*known[0], *a.lines), (*known[1], *b.lines)
        if a[1:] != b[1:]:
            lines = ", ".join(map(str, b.lines or a.lines))
            site = AllocatorSite(
                f"{place.source}:{lines}" if lines else place.source or place.name,
                allocator,
                (a.allocations, b.allocations),
                (a.allocated, b.allocated),
                (a.leaked, b.leaked),
            )
            self._sites.setdefault(place, []).append(site)

    def _changes(self, collector: str) -> list[DegradationInfo]:
        job = self._found.case.job
        return self._checked.changes(Configuration.of(collector, job.cmd, job.args, job.workload, ()))

    def _tell_headline(self, collector: str, pair: ProfilePair) -> None:
        """Put what is said of the series that stands for the profiles in the place of its total."""
        series, named = measurements(pair.base), growing.headlines(pair)
        for change in self._changes(collector):
            if change.location in named and change.location in series:
                cost = growing.cost_of(change, series[change.location].metric)
                self._totals = [cost, *(one for one in self._totals if one.metric != cost.metric)]

    def _timed(self, collector: str, pair: ProfilePair) -> None:
        is_own = collector.partition(".")[0] == self._found.case.job.collector.name  # its resources are runs
        for place, cost in growing.timed(pair, self._changes(collector)):
            if place is None or is_own:
                self._totals.append(cost)
            else:
                self._costs.setdefault(self._known(place), []).append(cost)
        for name, cost in () if is_own else changed_counts(pair):
            self._costs.setdefault(self._known(FunctionKey(name)), []).append(cost)
        for name, growth in growing.growth_of_calls(self._repo, pair).items():
            self._growth[self._known(FunctionKey(name))] = growth

    def _note_growth(self) -> None:
        """Say of which functions the growth is not known."""
        pairs = [self._found.pairs[name] for name in CALLS if name in self._found.pairs]
        recorded = {name for pair in pairs for name in growing.sized_calls(pair.head)}
        suspected = [place.name for place in suspects(self._found, self._sources, self._options)]
        unknown = [name for name in suspected if name not in recorded]
        if unknown:
            self._unseen.append(
                f"growth: whether the order of growth of {listed(unknown, 4)} changed, as that takes calls "
                "of five known sizes; give workloads of growing sizes, as --sizes 50,100,200,400,800"
            )

    def _look_at_sources(self) -> None:
        sources = self._sources
        if not sources.knows:
            self._unseen.append("lines: the version control of this project tells no differences")
        if self._found.graphs is not None and not sources.has_debug_lines:
            self._unseen.append(
                "lines: the program has no debug information, so functions are found by the text of sources; "
                "compile with -g"
            )
        for name in () if self._has_lines else sources.inlined_between()[:5]:
            self._unseen.append(
                f"inlining: {name} is inlined in one version only: there its cost is that of its callers"
            )

    def _function(self, place: FunctionKey) -> FunctionChange:
        found = self._sources.find(place, self._seen_lines.get(place, ((), ())))
        new, gone = self._caller_changes(place)
        lines = found.range if self._sources.knows else None
        return FunctionChange(
            place.name,
            place.source,
            found.path,
            lines.first if lines else 0,
            lines.last if lines else 0,
            tuple(sorted(self._costs.get(place, []), key=_rank)),
            self._libraries.get(place, ()),
            tuple(self._sites.get(place, ())),
            self._growth.get(place),
            new,
            gone,
            found.lines,
            found.near,
            inlined=self._sources.is_inlined(place) and not self._has_lines,
        )

    def _caller_changes(self, place: FunctionKey) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """New and gone callers: by the machine code of both builds, else as they were seen."""
        before, after = self._callers.get(place, (set(), set()))
        if self._found.graphs is not None:
            sides = [_static_callers(graph, place) for graph in self._found.graphs]
            if None not in sides:
                before, after = (side or set() for side in sides)
        if not before or not after:  # the function itself is new, or gone
            return (), ()
        return tuple(sorted(after - before)), tuple(sorted(before - after))


def _sum(
    side: Mapping[tuple[FunctionKey, str], FunctionAllocation], place: FunctionKey, metric: str
) -> float:
    """What a function allocates by all allocators."""
    return sum(float(getattr(one, metric)) for (where, _), one in side.items() if where == place)


def _rank(cost: CostChange) -> int:
    """What runs comes first, then memory, bytes before numbers."""
    return _OF_FUNCTIONS.index(cost.metric) + 1 if cost.metric in _OF_FUNCTIONS else 0


def _static_callers(graph: CallGraph, place: FunctionKey) -> set[str] | None:
    """The callers of a function; None where the graph does not have it."""
    names = [one.name for one in graph.functions.values() if place.name in (one.uid, one.symbol, one.name)]
    if not names:
        return None
    return {graph.functions[caller].uid or caller for name in names for caller in graph.callers(name)
            if caller in graph.functions}  # fmt: skip


def _parts(
    old: Mapping[FunctionKey, float], new: Mapping[FunctionKey, float], change: float
) -> tuple[CostPart, ...]:
    """The library functions that make up a change, the largest one first."""
    found = [
        CostPart(f"{place.source}:{place.name}" if place.source else place.name,
             old.get(place, 0.0), new.get(place, 0.0))
        for place in dict.fromkeys([*old, *new])
        if abs(new.get(place, 0.0) - old.get(place, 0.0)) > _LEAST_PART * change
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda part: -abs(part.after - part.before))[:_MOST_PARTS])


def with_moved(changed: Sequence[FunctionChange], totals: Sequence[CostChange]) -> list[FunctionChange]:
    """The same, those marked whose changes cancel each other while the program as a whole costs the same: the
    cost moved from one to the other."""
    deltas = {
        one.location: cost.after - cost.before
        for one in changed
        for cost in one.costs
        if cost.metric == "instructions" and one.name != OUTSIDE
    }
    whole = sum(abs(cost.after - cost.before) for cost in totals if cost.metric == "instructions")
    moved: dict[str, list[str]] = {}
    for name, delta in deltas.items():
        for other, opposite in deltas.items():
            smaller = min(delta, -opposite)
            if smaller > 0 and max(abs(delta + opposite), whole) <= MOVED * smaller:
                moved.setdefault(name, []).append(other)
                moved.setdefault(other, []).append(name)
    return [one._replace(moved_with=tuple(moved.get(one.location, ()))) for one in changed]
