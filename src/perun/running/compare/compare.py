"""`perun compare`: plan, prepare the sides, measure and decide, store.

`plan` has the versions, what is measured, and a working copy of each side; `identical` says whether there
is anything to compare; `trial` runs pairs by `instruments` until they decide, of which `decide` is the
mathematics."""

from __future__ import annotations

import math
import random
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.core.errors import JobFailed, PerunError, Terminated
from perun.core.wording import counted, plural
from perun.history.check.report import AcknowledgementFilter, Comparison, MethodResult, VersionReport
from perun.measurement import present
from perun.measurement.comparable import drifted
from perun.measurement.comparison import info_of
from perun.measurement.many import LEAST_SHARE, MOVED, Plan, error_of, without_moved
from perun.measurement.verdict import MORE_IS_BETTER, mirrored
from perun.native.changed_code import Ranges
from perun.plugin.api import MinorVersion, Report, Run, quiet, silent
from perun.profile import session as sessions
from perun.profile.amounts import factor, readable, readable_pair
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.head import ProfileHeader
from perun.profile.helpers import ProfileInfo
from perun.repository.copies import scratch_folder
from perun.repository.repository import Repository
from perun.running.compare.answers import first_difference, output_in
from perun.running.compare.decide import (
    BASE,
    HEAD,
    LEAST,
    Duet,
    MetricDecision,
    PairRunner,
    disagreements,
    duet_cores,
    one_core,
    usable_cores,
)
from perun.running.compare.instruments import Clocks, CollectorInstrument, Instrument, MetricSpec, wanted
from perun.running.compare.plan import (
    NOISE,
    SECONDS,
    CompareCase,
    CompareOptions,
    ComparePlan,
    Folders,
    prepared,
)
from perun.running.compare.trial import NewestProfiles, Trial, profiles_of, run, store
from perun.running.run.collecting import describe_machine
from perun.running.run.identical import executes_any, opens_any, why_identical
from perun.running.run.pre_run import commands, environment

if TYPE_CHECKING:
    from perun.profile.factory import Profile


# The answer of a comparison, in the words of `perun check`, whose formats show it.

UNLIKE: Final = 2.0
"""How many times as long one side takes from which on most of its run had nothing beside it."""
METHOD: Final = "hodges_lehmann_ratio"
"""The check that judges stored profiles in the same way."""
NOT_MEASURED: Final = "not measured"
WITH_ALWAYS: Final = "; measure them nevertheless with --always"
"""Stands behind why both sides are the same."""


def change_of(decision: MetricDecision) -> DegradationInfo:
    """The verdict on one metric as a check reports it."""
    metric, verdict = decision.metric, decision.verdict
    if metric.larger_is_better:
        reason = f"{verdict.reason}; {MORE_IS_BETTER}"
        verdict = verdict._replace(change=mirrored(verdict.change), reason=reason)
    return info_of(verdict, metric.location, metric.unit)


def measured(
    plan: ComparePlan,
    case: CompareCase,
    trial: Trial,
    stored: NewestProfiles | None,
    about: Mapping[str, Any],
) -> Comparison:
    """What a trial found.

    :param stored: None where nothing was, as the trial was interrupted, or is not to be stored.
    """
    found = [change_of(decision) for decision in trial.decisions] or [_nothing(case, trial)]
    changes = tuple(without_moved(found, trial.whole.metric.location) if trial.whole else found)
    return Comparison(
        stored.head if stored else unstored(case, trial.name),
        stored.base if stored else None,
        plan.base.version,
        (MethodResult(METHOD, changes),),
        notes=(*(one.rule for one in changes if one.type == MOVED), *_notes(plan, trial, stored)),
        session=about,
    )


def _nothing(case: CompareCase, trial: Trial) -> DegradationInfo:
    """That not one pair was measured."""
    rest = f": {trial.advice}" if trial.advice else ", before one pair was measured"
    values = (NOT_MEASURED, NOT_MEASURED, "ratio")
    rule = trial.reason + rest
    return DegradationInfo(PerformanceChange.Unknown, case.job.cmd, *values, sizes=(0, 0), rule=rule)


def identical(plan: ComparePlan, case: CompareCase, reason: str) -> Comparison:
    """That a configuration needs no measuring, as both sides are the same."""
    return replace(unmeasured(plan, case, reason), same=True)


def unmeasured(
    plan: ComparePlan, case: CompareCase, reason: str, error: PerunError | None = None
) -> Comparison:
    """That a configuration was not measured, and why; `error` where something is wrong."""
    return Comparison(unstored(case, "time"), None, plan.base.version, reason=reason, error=error)


def unstored(case: CompareCase, collector: str) -> ProfileInfo:
    """Stands for a profile that there is not."""
    job = case.job
    return ProfileInfo("", "", ProfileHeader("", job.cmd, job.args, job.workload, collector), 0)


def report_of(repo: Repository, plan: ComparePlan, comparisons: list[Comparison]) -> VersionReport:
    """The answer: the head, compared with the base in each configuration, with what is acknowledged."""
    version = plan.head.version
    if plan.head.uncommitted:
        files = len(plan.head.uncommitted)
        changes = f"uncommitted changes to {files} file{'s' * (files != 1)} on top of: {version.subject}"
        version = version._replace(desc=changes)
    return AcknowledgementFilter(repo).report(VersionReport(version, tuple(comparisons)))


def about_trial(session_id: str, plan: ComparePlan, trial: Trial, options: CompareOptions) -> dict[str, Any]:
    """How a trial was measured, as JSON data: for the headers of its profiles, and for the answer."""
    return {
        "id": session_id,
        "base": plan.base.version.checksum,
        "head": plan.head.version.checksum,
        "uncommitted": bool(plan.head.uncommitted),
        "pairs": len(trial.pairs),
        "repeated": trial.repeated,
        "builds": options.builds,
        "order": options.order,
        "pinned": trial.pinned,
        sessions.DUET: list(trial.together) or None,
        "seconds": round(trial.seconds, 3),
        **({"levels": list(trial.decisions[0].levels)} if trial.decisions else {}),
        **({"functions": {"judged": len(trial.parts), "small": trial.small}} if trial.parts else {}),
        "noise": [
            {
                "location": one.metric.location,
                "ratio": one.noise.estimate,
                "interval": [one.noise.low, one.noise.high],
            }
            for one in trial.decisions
            if one.noise is not None and one.noise.low > 0 and math.isfinite(one.noise.high)
        ],
    }


def _notes(plan: ComparePlan, trial: Trial, stored: NewestProfiles | None) -> Iterator[str]:
    yield f"{plural(len(trial.pairs), 'pair')} in {readable(trial.seconds, 's')}{_how(trial)}"
    yield from _about_duet(trial)
    yield from _about_functions(trial)
    for one in trial.decisions:
        if one.noise is not None and one.noise.low > 0 and math.isfinite(one.noise.high):
            noise = one.noise
            yield (
                f"noise of {one.metric.location}: the base to itself "
                f"{factor(noise.estimate, (noise.low, noise.high))}"
            )
    if trial.repeated:
        yield f"{plural(trial.repeated, 'disturbed pair')} measured again, the first as {trial.disturbance}"
    yield from drifted(trial.speed.described())
    yield from disagreements(trial.decisions)
    if trial.reason and trial.interruption is None and any(one.is_open for one in trial.decisions):
        yield f"{trial.reason}; --budget gives more time, --max-pairs allows more pairs"
    if stored is not None and plan.head.uncommitted:
        yield f"the profile of the uncommitted changes is pending, not registered: {stored.head.source}"


def _about_functions(trial: Trial) -> Iterator[str]:
    """What samples could find, and of how many functions they say nothing."""
    whole = trial.whole
    if whole is None:
        return
    before, after = readable_pair(*whole.verdict.difference.values, whole.metric.unit)
    yield f"the whole: {before} -> {after}, {present.difference(whole.verdict, whole.metric.unit)}"
    if trial.small:
        of_those = f"{counted(trial.small, 'function')} {'has' if trial.small == 1 else 'have'} less than"
        yield f"{of_those} {100 * LEAST_SHARE:g} % of the time each: no verdict"
    level = trial.parts[0].levels[0]
    errors = {
        trial.shares[one.metric]: error_of(one.verdict, level)
        for one in trial.parts
        if one.metric in trial.shares and math.isfinite(one.verdict.difference.detectable)
    }
    if found := Plan(level, len(trial.parts), trial.threshold, len(trial.pairs)).told_after(errors):
        yield found


def _how(trial: Trial) -> str:
    if trial.together:
        return f", both sides at the same time on cores {' and '.join(map(str, trial.together))}"
    return ", each on one core" if trial.pinned else ""


def _about_duet(trial: Trial) -> Iterator[str]:
    """What makes a duet worth less."""
    if one_core(trial.together):
        yield "the two are threads of one core, which slow each other down; others are not allowed here"
    times = [one.verdict.difference.ratio for one in trial.decisions if one.metric.type == "time"]
    if trial.together and any(one > UNLIKE or 0 < one < 1 / UNLIKE for one in times):
        yield (
            f"the sides differ by more than {UNLIKE:g}x, so that the longer one ran alone for most of its "
            "time: such a difference is measured better in turns, without --duet"
        )


# `perun compare`: measure two versions side by side, and say what changed, with how much certainty.


def unlimited(seconds: float | None) -> None:
    """A forecast that nobody looks at."""


@dataclass(frozen=True)
class CompareOutcome:
    """The answer; `interruption` is the exception that ended the comparison before its end."""

    report: VersionReport
    interruption: BaseException | None = None


class _TrialResult(NamedTuple):
    """A trial of one configuration, and what else there is to say of it; it is judged when all are there."""

    case: CompareCase
    trial: Trial
    stored: NewestProfiles | None
    about: Mapping[str, Any]
    notes: tuple[str, ...]


class _ProgressSink(NamedTuple):
    """Who gets the progress: what is done, the seconds that are left, and what the user should know before it
    goes on."""

    report: Report
    expect: Callable[[float | None], None]
    note: Callable[[str], None]


def compare(
    repo: Repository,
    planned: ComparePlan,
    options: CompareOptions,
    report: Report = silent,
    expect: Callable[[float | None], None] = unlimited,
    rng: random.Random | None = None,
    note: Callable[[str], None] = quiet,
) -> CompareOutcome:
    """Measure each configuration of both sides in pairs, store what was measured, and judge it.

    A configuration whose command fails is a comparison with an error, and the others go on. An interruption
    (Ctrl-C) ends it: what was measured by then is judged as unknown, and not stored.

    :param report: gets what is done, steps done and in all. :param expect: gets the seconds that are left.
    :param rng: decides the order of runs; another one each time by default.
    :param note: gets what the budget is enough for, where that is little.
    :raises PerunError: where a side cannot be prepared, or a metric is unknown; nothing is stored then.
    """
    repo.require_trust("comparing versions")
    jobs = [(case, wanted(repo, options.metrics, case)) for case in planned.cases]
    found: list[Comparison | _TrialResult] = []
    watched = _ProgressSink(report, expect, note)
    session = _Session(repo, planned, options, watched, rng or random.Random())
    try:
        with prepared(repo, planned.sides, options.builds, report, noise=True) as folders:
            for number, (case, metrics) in enumerate(jobs):
                shares = len(jobs) - number
                for one in session.compare(case, metrics, folders, shares):
                    found.append(one)
                if session.interruption is not None:
                    break
    except (KeyboardInterrupt, Terminated) as interruption:
        session.interruption = session.interruption or interruption
    comparisons = list(_judged(planned, found, options))
    return CompareOutcome(report_of(repo, planned, comparisons), session.interruption)


def _judged(
    planned: ComparePlan, found: Sequence[Comparison | _TrialResult], options: CompareOptions
) -> Iterator[Comparison]:
    """The comparisons."""
    decided: dict[tuple[str, str, str], list[MetricDecision]] = {}
    for one in found:
        if isinstance(one, Comparison):
            yield one
            continue
        job = one.case.job
        of_case = decided.setdefault((job.cmd, job.args, job.workload), [])
        before = set(disagreements(of_case))
        of_case += one.trial.decisions
        comparison = measured(planned, one.case, one.trial, one.stored, one.about)
        # Those of two clocks of this instrument are among the notes already.
        meanings = set(disagreements(of_case)) - before - set(comparison.notes)
        yield replace(comparison, notes=(*comparison.notes, *sorted(meanings), *one.notes))


class _Session:
    """Everything that is measured in the same minutes.

    :ivar interruption: the exception that ended a trial before its end.
    """

    def __init__(
        self,
        repo: Repository,
        planned: ComparePlan,
        options: CompareOptions,
        watched: _ProgressSink,
        rng: random.Random,
    ) -> None:
        self.id = uuid.uuid4().hex
        self.interruption: BaseException | None = None
        self._repo = repo
        self._plan = planned
        self._options = options
        self._watched = watched
        self._rng = rng
        self._together = duet_cores(options.pin) if options.duet else ()
        self._left = SECONDS * len(planned.cases) if options.budget is None else options.budget

    def compare(
        self, case: CompareCase, metrics: MetricSpec, folders: Folders, shares: int
    ) -> Iterator[Comparison | _TrialResult]:
        """The trials of one configuration: of the clocks together, and of each other metric.

        :param shares: configurations that share the time that is left, this one included.
        """
        base, head = (folders[side.name] for side in self._plan.sides)
        why = "" if self._options.always else self._why_identical(case, base[0], head[0], shares)
        if why:
            yield identical(self._plan, case, f"{why}{WITH_ALWAYS}")
            return
        notes = [
            f"all builds of the {name} are the same program, so that --builds {len(builds)} measures no more"
            for name, builds in folders.items()
            if name != NOISE
            and len(builds) > 1
            and all(self._why_identical(case, builds[0], other, shares, builds=True) for other in builds[1:])
        ]
        if self._options.check_output:
            try:
                notes += self._answers(case, folders, shares)
            except PerunError as problem:
                yield unmeasured(self._plan, case, problem.message, problem)
                return
        with scratch_folder(self._repo) as scratch:
            instruments = list(self._instruments(case, metrics, folders, scratch))
            for number, instrument in enumerate(instruments):
                seconds = self._left / shares / (len(instruments) - number)
                yield self._tried(case, instrument, folders, seconds, tuple(notes))
                if self.interruption is not None:
                    return

    def _answers(self, case: CompareCase, folders: Folders, shares: int) -> list[str]:
        """What is to be told of the outputs of both sides, which are the same.

        :raises JobFailed: where they are not, though two runs of the base have the same.
        """
        begun = time.monotonic()
        self._watched.report(f"{case.job}: looking whether both answer the same", 0, 0)
        run_of = Run(case.job.cmd, case.job.args, case.workload, environ=environment(self._repo))
        seconds = max(self._left / shares, LEAST)
        with scratch_folder(self._repo) as scratch:
            base, head, again = (
                output_in(run_of, folders[name][0], scratch / name, seconds) for name in (BASE, HEAD, NOISE)
            )
            self._left -= time.monotonic() - begun
            if changing := first_difference(base, again):
                return [
                    f"whether both sides answer the same is not known: the base itself does not, {changing}"
                ]
            if found := first_difference(base, head):
                raise JobFailed(
                    f"{self._plan.head} answers differently than {self._plan.base}: {found}",
                    "correct it, or compare without --check-output",
                )
        return []

    def _why_identical(
        self, case: CompareCase, first: Path, second: Path, shares: int, *, builds: bool = False
    ) -> str:
        """Why two folders run the same; of builds of one side, only where their programs are the same."""
        run_of = Run(case.job.cmd, case.job.args, case.workload, environ=environment(self._repo))

        def looked(what: str, look: Callable[[Path, float], bool | None], share: int = 1) -> bool | None:
            begun = time.monotonic()
            self._watched.report(f"{case.job}: looking what it {what}", 0, 0)
            with scratch_folder(self._repo) as scratch:
                found = look(scratch, max(self._left / shares / share, LEAST))
            self._left -= time.monotonic() - begun
            return found

        def opens(run: Run, names: Collection[str]) -> bool | None:
            return looked("reads", lambda scratch, left: opens_any(run, names, scratch, left))

        def executes(run: Run, code: Ranges) -> bool | None:
            if builds:
                return None
            # Under callgrind a run is slow: what is left must be enough to measure.
            return looked("executes", lambda scratch, left: executes_any(run, code, scratch, left), 4)

        base, head = run_of._replace(cwd=first), run_of._replace(cwd=second)
        return why_identical(base, head, opens, executes, bool(commands(self._repo)))

    def _instruments(
        self, case: CompareCase, metrics: MetricSpec, folders: Folders, scratch: Path
    ) -> Iterator[Instrument]:
        versions = {folder: side.version for side in self._plan.sides for folder in folders[side.name]}
        versions |= dict.fromkeys(folders[NOISE], self._plan.base.version)

        def version_of(folder: Path) -> MinorVersion:
            return versions[folder]

        if metrics.free:
            yield Clocks(self._repo, case, metrics.free, scratch, self._rng)
        for recorded in metrics.recorded:
            yield CollectorInstrument(self._repo, case, recorded, version_of)

    def _tried(
        self,
        case: CompareCase,
        instrument: Instrument,
        folders: Folders,
        seconds: float,
        notes: tuple[str, ...],
    ) -> Comparison | _TrialResult:
        """What one instrument finds, stored; or that a command fails."""
        options, planned = self._options, self._plan
        machine_state = describe_machine(self._repo)  # the load it finds, not the one it makes
        cores, duet = usable_cores(options.pin), None
        if self._together and isinstance(instrument, Clocks):
            duet = Duet(self._together, instrument.measure_both)
        runner = PairRunner(instrument, planned, folders, options.order, cores, self._rng, duet)

        def progress(decisions: Sequence[MetricDecision], pairs: int, most: int, left: float) -> None:
            self._watched.report(f"{case.job}{_so_far(decisions)}", pairs, most)
            self._watched.expect(left)

        self._watched.report(f"{case.job}: warming up", 0, 0)
        try:
            trial = run(
                instrument.name, runner, options.rules, options.most_pairs, seconds, progress,
                note=lambda text: self._watched.note(f"{case.job}: {text}"),
            )  # fmt: skip
        except PerunError as problem:
            return unmeasured(planned, case, problem.message, problem)
        self._left -= trial.seconds
        self.interruption = trial.interruption
        about = about_trial(self.id, planned, trial, options)
        if self._together and not trial.together:
            why = "a program uses several cores" if trial.parallel else "collectors record one run at a time"
            notes = (*notes, f"measured in turns in spite of --duet: {why}")
        stored = None
        if options.stores and trial.pairs and trial.interruption is None:
            now = int(time.time())
            stored = self._store(case, trial, about, machine_state, now)
        return _TrialResult(case, trial, stored, about, notes)

    def _store(
        self,
        case: CompareCase,
        trial: Trial,
        about: Mapping[str, Any],
        machine_state: Mapping[str, Any],
        newest: int,
    ) -> NewestProfiles:
        made: dict[str, list[Profile]] = {
            side.name: profiles_of(self._repo, case, trial, side, machine_state) for side in self._plan.sides
        }
        return store(self._repo, self._plan.sides, made, about, newest)


def _so_far(decisions: Sequence[MetricDecision]) -> str:
    """The intervals of the metrics so far: `: real 1.02x [0.99, 1.05], cpu 1x [0.99, 1.01]`."""
    shown: list[str] = []
    parts = [one for one in decisions if one.metric.is_part]
    for one in decisions:
        found = one.verdict.difference
        if (len(parts) > 1 and one in parts) or not found.ratio > 0:
            continue
        name = one.metric.subtype or one.metric.type
        shown.append(f"{name} {factor(found.ratio, (found.low, found.high))}")
    return f": {', '.join(shown)}" if shown else ""
