"""The profiles of both sides: those that are registered, and new ones of what is missing."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from perun.core.errors import DamagedStore, PerunError, ProfileError
from perun.core.process.command import find_executable, is_python
from perun.core.wording import listed
from perun.measurement.comparable import differences
from perun.native.callgraph.files import from_values
from perun.native.callgraph.graph import graph_name
from perun.plugin.api import NoProfile, Report, Run
from perun.profile.head import Configuration
from perun.profile.incomplete import text_of as why_incomplete
from perun.profile.uid import flatten
from perun.repository import registering
from perun.repository.jobs import Job, PluginConfig, make_unit
from perun.repository.repository import PERUN_FOLDER, Repository
from perun.running.compare.instruments import quiet
from perun.running.compare.plan import CompareCase, CompareSide, Folders
from perun.running.explain import costs
from perun.running.explain.benchmark import ExplainedBenchmark, difference, run_of
from perun.running.explain.costs import OUTSIDE, FunctionKey
from perun.running.explain.data import CostChange
from perun.running.explain.plan import (
    COLLECTED,
    CaseEvidence,
    ExplainOptions,
    ExplainPlan,
    ProfilePair,
    SizedPair,
    with_workload,
)
from perun.running.run import collecting
from perun.running.run.collecting import VersionStatistics
from perun.running.run.pre_run import environment
from perun.running.run.together import CollectTask, Together

if TYPE_CHECKING:
    from perun.native.callgraph.graph import CallGraph
    from perun.profile.factory import Profile
    from perun.profile.helpers import ProfileInfo
    from perun.running.explain.sources import Sources


# The calls of functions that are suspected: which functions these are, and what a recording says of them.

MOST: Final = 8
"""Functions whose calls are recorded."""
MOST_CALLS: Final = 100_000
"""Calls of a function, by its instructions, above which it takes longer to record them than all the rest."""


def suspects(found: CaseEvidence, sources: Sources, options: ExplainOptions) -> list[FunctionKey]:
    """The functions of the project whose instructions changed, the largest change first; where instructions
    are not known, those that lines of the diff are in. Only those of the location, where there is one."""
    pair = found.pairs.get("instructions")
    if pair is None:
        return [one for one in sources.changed_functions if options.means(one)][:MOST]
    codes = [sources.costs(profile, side) for side, profile in enumerate(pair[:2])]
    before, after = (code.functions for code in codes)
    whole = sum(spent.amount for spent in before.values())
    nothing = costs.FunctionCost(0.0, {}, {})
    changes = {
        place: abs(after.get(place, nothing).amount - before.get(place, nothing).amount)
        for place in dict.fromkeys([*before, *after])
        if place.name != OUTSIDE and options.means(place) and not sources.is_inlined(place)
    }
    least = 0.0 if options.location else options.threshold * whole
    ranked = sorted(changes, key=lambda place: -changes[place])
    if not options.location:
        often = [place for place in ranked if max(one.called.get(place, 0) for one in codes) > MOST_CALLS]
        if names := [place.name for place in often if changes[place] >= least]:
            found.unseen.append(
                f"calls: those of {listed(names, 4)} are not recorded, as they are too many; to record them, "
                f"name the function: perun explain {options.versions} {names[0]}"
            )
        ranked = [place for place in ranked if place not in often]
    return [place for place in ranked if changes[place] and changes[place] >= least][:MOST]


def _is_written(folder: Path, since: float) -> bool:
    """Whether a program left files in the folder since that time: two runs there may disturb each other."""
    return any(
        os.lstat(os.path.join(where, name)).st_mtime >= since
        for where, _, names in os.walk(folder)
        for name in names
    )


def named(found: CaseEvidence, places: Sequence[FunctionKey], side: int) -> list[str]:
    """Those of the functions that the program of a side has, by its call graph where it is known, else by its
    instructions. :param side: 0 for the base, 1 for the head."""
    if found.graphs is not None:
        functions = found.graphs[side].functions.values()
        known = {name for one in functions for name in (one.uid, one.symbol, one.name)}
    elif "instructions" in found.pairs:
        pair = found.pairs["instructions"]
        groups = (pair.base, pair.head)[side].groups()
        known = {costs.place_of(group.constants.get("uid", "")).name for group in groups}
    else:
        return [place.name for place in places]
    return [place.name for place in places if place.name in known]


def covers(pair: ProfilePair, places: Sequence[FunctionKey]) -> bool:
    """Whether recordings have calls of all these functions, those that one side does not have left out."""
    sides = [set(counts(profile)) for profile in pair[:2]]
    return all(place.name in sides[0] or place.name in sides[1] for place in places)


def counts(profile: Profile) -> Counter[str]:
    """How often each function was called."""
    found: Counter[str] = Counter()
    for group in profile.groups():
        found[str(flatten(group.constants.get("uid", "")))] += group.size
    return found


def changed_counts(pair: ProfilePair) -> Iterator[tuple[str, CostChange]]:
    """The functions that both sides have and that are called more or less often; by name."""
    before, after = (counts(profile) for profile in pair[:2])
    for name in before.keys() & after.keys():
        if before[name] != after[name]:
            yield name, CostChange("calls", "", before[name], after[name], before[name])


COUNTING: Final = ("instructions", "memory")
"""The collectors whose counts repeat, the one that tells most first."""
CALLS: Final = ("complexity", "trace")
"""The collectors that record calls; the last one needs no build of its own."""
LONGEST: Final = 60.0
"""Seconds after which the recording of calls ends a run, where the job matrix names no other limit."""


def stored(repo: Repository, plan: ExplainPlan, case: CompareCase, collects: bool) -> CaseEvidence:
    """What is registered of both sides.

    :param collects: whether what is missing can be measured: then incomplete profiles, and pairs of different
        conditions, are left out; else they are taken, and said so.
    """
    found = CaseEvidence(case, {}, None, None, [])
    sides = [_registered(repo, side, case) for side in plan.sides]
    for collector in sorted(sides[0].keys() & sides[1].keys()):
        try:
            base, head = (repo.store.objects.get(side[collector].checksum) for side in sides)
        except (ProfileError, DamagedStore) as problem:
            found.unseen.append(problem.message)
            continue
        doubts = [f"the profile of the {side.name} is incomplete: {why}"
                  for side, one in zip(plan.sides, (base, head), strict=True)
                  if (why := why_incomplete(one))]  # fmt: skip
        doubts += [f"{one.name} was {one.baseline} before and {one.target} after"
                   for one in differences(base, head)]  # fmt: skip
        if doubts and collects and collector in COUNTING:
            continue
        found.unseen.extend(f"{collector}: {doubt}" for doubt in doubts)
        found.pairs[collector] = ProfilePair(base, head)
    if not collects:
        for collector in COUNTING:
            if collector not in found.pairs:
                found.unseen.append(f"{collector}: no profile of both versions is registered")
    return found


def _registered(repo: Repository, side: CompareSide, case: CompareCase) -> dict[str, ProfileInfo]:
    """The newest profile of each collector; of those of the same time the one without postprocessors."""
    newest: dict[str, ProfileInfo] = {}
    infos = [entry.info() for entry in repo.store.indexes.read(side.version.checksum)]
    for info in sorted(infos, key=lambda one: (one.time, -len(one.configuration.postprocessors))):
        own = info.configuration
        wanted = Configuration.of(own.collector, case.job.cmd, case.job.args, case.job.workload, ())
        if own._replace(postprocessors=()) == wanted:
            newest[own.collector] = info
    return newest


class ExplainMeasurement:
    """Measures what is missing in the working copies of both sides, and stores it at the end.

    :ivar stored: how many profiles were stored.
    """

    def __init__(
        self,
        repo: Repository,
        plan: ExplainPlan,
        folders: Folders,
        options: ExplainOptions,
        together: Together,
        report: Report,
        benchmark: ExplainedBenchmark | None = None,
    ) -> None:
        self._together = together
        self.stored = 0
        self._benchmark = benchmark
        self._options = options
        self._begun = time.monotonic()
        self._repo = repo
        self._plan = plan
        self._folders = folders
        self._report = report
        self._made: list[tuple[CompareSide, Profile]] = []

    def complete(self, found: CaseEvidence, sizes: Sequence[str]) -> CaseEvidence:
        """The same with what was missing; what cannot be measured is said in `unseen`.

        :param sizes: workloads over which instructions are counted, too.
        """
        python = self._is_python(found.case)
        for collector in COUNTING:
            known = python and self._benchmark is not None and COUNTING[0] in found.pairs
            if collector not in found.pairs and self._is_wanted(
                collector, collector, found.unseen, known=known
            ):
                pair = self._both(found, found.case, collector, python)
                if pair is not None:
                    found.pairs[collector] = pair
        found = found._replace(sized=self._sized(found, sizes, python))
        if not python:
            found = found._replace(graphs=self._graphs(found))
        return found

    def calls(self, found: CaseEvidence, places: Sequence[FunctionKey]) -> CaseEvidence:
        """The same with the calls of these functions: how often, how long, and over which sizes.

        They are recorded by `complexity` where the job matrix has it, as that needs a build of its own, else
        by `trace`.
        """
        if not places or not self._is_wanted("calls", listed([one.name for one in places], 4), found.unseen):
            return found
        units = {unit.name: unit for unit in found.case.collectors}
        collector = next((name for name in CALLS if name in units), CALLS[-1])
        known = found.pairs.get(collector)
        if known is not None and covers(known, places):
            return found
        if self._is_python(found.case):
            found.unseen.append("calls: those of Python functions are not recorded")
            return found
        pair = []
        for number, side in enumerate(self._plan.sides):
            names = named(found, places, number)
            if not names:
                found.unseen.append(f"calls: {side} has none of {listed([one.name for one in places], 4)}")
                return found
            try:
                unit = self._of_calls(units.get(collector), collector, names)
                pair.append(self._collect(found.case, unit, side, []))
            except PerunError as problem:
                hint = f" ({problem.hint})" if problem.hint else ""
                found.unseen.append(f"calls: those of the {side.name} are not known: {problem.message}{hint}")
                return found
            if why := why_incomplete(pair[-1]):
                found.unseen.append(f"calls: the recording of the {side.name} is incomplete: {why}")
        self._keep(pair)
        return found._replace(pairs={**found.pairs, collector: ProfilePair(pair[0], pair[1], new=True)})

    def _of_calls(
        self, configured: PluginConfig | None, collector: str, names: Sequence[str]
    ) -> PluginConfig:
        """The collector for calls of these functions."""
        own: dict[str, Any] = {"rules": tuple(names)}
        if collector == CALLS[-1]:
            own = {"strategy": "custom", "func": tuple(names)}
            if configured is None or not configured.params.timeout:
                own["timeout"] = LONGEST
        if configured is None:
            params = {key: list(value) if isinstance(value, tuple) else value for key, value in own.items()}
            return make_unit(self._repo, "collect", collector, params, "perun explain")
        return replace(configured, params=replace(configured.params, **own))

    def _is_wanted(self, name: str, what: str, unseen: list[str], *, known: bool = False) -> bool:
        """Whether the user wants it to be measured, and there is time left; else it is said.

        :param known: whether the instructions of a benchmark in Python are known already.
        """
        if name not in self._options.what:
            unseen.append(f"{name}: not measured, as --collect does not name it")
            return False
        if name == COUNTING[1] and known and self._options.what == COLLECTED:
            unseen.append(
                f"{name}: not measured, as that of a harness in Python takes minutes: --collect {name}"
            )
            return False
        budget = self._options.budget
        if budget is not None and time.monotonic() - self._begun >= budget:
            unseen.append(f"{name}: the budget of {budget:g} s was spent before {what} could be measured")
            return False
        return True

    def _keep(self, pair: Sequence[Profile]) -> None:
        """Have both stored, but not those of a benchmark: in them a harness does what depends on times, such
        as sorting them, which would be told as changes that are exact."""
        if self._benchmark is None:
            self._made += zip(self._plan.sides, pair, strict=True)

    def store(self) -> None:
        """Register the new profiles, those of both sides together."""
        if not self._made:
            return
        now = int(time.time())
        wanted = [
            registering.SaveRequest(
                profile, side.version.checksum, True, now + number // 2 - len(self._made) // 2
            )
            for number, (side, profile) in enumerate(self._made)
        ]
        registering.save_together(self._repo, wanted)
        self.stored, self._made = len(wanted), []

    def program(self, case: CompareCase, side: CompareSide) -> Path | None:
        """The file that the command runs, where it is in the working copy of the side; that of a benchmark
        may have been built elsewhere."""
        folder = self._folders[side.name][0]
        if self._benchmark is not None:
            path = self._benchmark.sides[side.name].program
            built = folder.resolve(), self._repo.root.resolve() / PERUN_FOLDER
            return path if any(map(path.is_relative_to, built)) else None
        run = Run(case.job.cmd, case.job.args, case.workload, folder, environment(self._repo))
        try:
            path = Path(find_executable(run.command().argv[0], folder, run.environ)).resolve()
        except PerunError:
            return None
        return path if path.is_relative_to(folder.resolve()) else None

    def _is_python(self, case: CompareCase) -> bool:
        folder = self._folders["head"][0]
        run = Run(case.job.cmd, case.job.args, case.workload, folder, environment(self._repo))
        words = self._benchmark.sides["head"].more.argv if self._benchmark else run.command().argv
        return is_python(words[0], self.program(case, self._plan.head))

    def _unit(self, case: CompareCase, collector: str, python: bool) -> PluginConfig:
        """The collector as the job matrix has it, else with its defaults."""
        for unit in case.collectors:
            if unit.name == collector:
                return unit
        params: dict[str, Any] = {"python": True} if python else {}
        if self._benchmark is not None and collector == COUNTING[0]:
            params["engine"] = "callgrind"  # samples of two short runs have no difference
            params["marked"] = self._benchmark.sides["head"].more.marked
            if python and not params["marked"]:  # chains of callers of all that is imported take gigabytes
                params["callers"] = 0
        return make_unit(self._repo, "collect", collector, params, "perun explain")

    def _both(
        self, found: CaseEvidence, case: CompareCase, collector: str, python: bool
    ) -> ProfilePair | None:
        pair = []
        sides = self._plan.sides
        unit = self._unit(case, collector, python)
        self._report(f"{collector} of the {' and the '.join(side.name for side in sides)}", 0, 0)
        both = self._together.collect([self._tasks(case, unit, side) for side in sides])
        for side, runs in zip(sides, both, strict=True):
            try:
                pair.append(self._of_benchmark(side, [one.taken() for one in runs]))
            except PerunError as problem:
                hint = f" ({problem.hint})" if problem.hint else ""
                found.unseen.append(f"{collector}: {side} cannot be measured: {problem.message}{hint}")
                return None
        notes = [note for runs in both for one in runs for note in one.notes]
        found.unseen.extend(dict.fromkeys(f"{collector}: {note}" for note in notes))
        self._keep(pair)
        return ProfilePair(pair[0], pair[1], new=True)

    def _collect(self, case: CompareCase, unit: PluginConfig, side: CompareSide, notes: list[str]) -> Profile:
        def report(activity: str, done: int, total: int) -> None:
            self._report(f"{unit.name} of the {side.name}: {activity}", done, total)

        def note(text: str) -> None:
            if f"{unit.name}: {text}" not in notes:
                notes.append(f"{unit.name}: {text}")

        report("starting", 0, 0)
        task = self._tasks(case, unit, side)[0]
        return collecting.collect(self._repo, *task[:3], report, note, environ=task.environ)

    def _tasks(self, case: CompareCase, unit: PluginConfig, side: CompareSide) -> list[CollectTask]:
        """What is run of a side: of a benchmark with more operations, and with fewer of them."""
        if self._benchmark is None:
            job = replace(case.job, collector=quiet(unit))
            return [CollectTask(job, side.version, self._folders[side.name][0])]
        commands = self._benchmark.sides[side.name]
        return [
            CollectTask(Job(run_of(one), "", "", quiet(unit)), side.version, commands.folder, one.environ)
            for one in (commands.more, commands.fewer)
            if one is not None
        ]

    def _of_benchmark(self, side: CompareSide, made: Sequence[Profile]) -> Profile:
        """The profile of a side, of a benchmark that of one operation."""
        if self._benchmark is None:
            return made[0]
        operations = self._benchmark.sides[side.name].operations
        return difference(made[0], made[1] if made[1:] else None, operations)

    def _sized(self, found: CaseEvidence, sizes: Sequence[str], python: bool) -> SizedPair | None:
        """Instructions over the sizes; they are of this answer alone."""
        if not sizes or not self._is_wanted(COUNTING[0], "the sizes", found.unseen):
            return None
        unit = self._unit(found.case, COUNTING[0], python)
        self._report(f"instructions of {len(sizes)} sizes", 0, 0)
        ordered = sorted(sizes, key=float, reverse=True)
        asked = [
            [task for text in ordered for task in self._tasks(with_workload(found.case, text), unit, side)]
            for side in self._plan.sides
        ]
        begun = time.time()
        made = self._together.collect([tasks[:1] for tasks in asked])
        if any(_is_written(tasks[0].folder, begun) for tasks in asked):
            rest = self._together.collect([tasks[1:] for tasks in asked])
        else:
            each = iter(self._together.collect([[task] for tasks in asked for task in tasks[1:]]))
            rest = [[next(each)[0] for _ in tasks[1:]] for tasks in asked]
        sides = []
        for side, first, others in zip(self._plan.sides, made, rest, strict=True):
            try:
                profiles = [one.taken() for one in (*first, *others)]
            except PerunError as problem:
                found.unseen.append(f"growth: {side} cannot be measured: {problem.message}")
                return None
            sides.append(sorted(zip(map(float, ordered), profiles, strict=True), key=lambda one: one[0]))
        return SizedPair(*sides)

    def _graphs(self, found: CaseEvidence) -> tuple[CallGraph, CallGraph] | None:
        """The static call graphs of both builds, which the collector `trace` extracts."""
        graphs: list[Any] = []
        for side in self._plan.sides:
            program = self.program(found.case, side)
            if program is None or not program.is_relative_to(self._folders[side.name][0].resolve()):
                found.unseen.append(
                    "callers: the program is none that was built here, so its calls are those that were seen"
                )
                return None
            try:
                unit = make_unit(self._repo, "collect", "trace", {"only_extract_cg": True}, "perun explain")
                with suppress(NoProfile):
                    self._collect(found.case, unit, side, [])
                values = VersionStatistics(self._repo, side.version).load(graph_name("trace", str(program)))
                graphs.append(from_values(values or {}))
            except PerunError as problem:
                found.unseen.append(f"callers: no call graph of the {side}: {problem.message}")
                return None
        return graphs[0], graphs[1]
