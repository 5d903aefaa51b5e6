"""`perun check`: find changes of performance between versions (manual 3.2.13-3.2.16, chapter 8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain

from perun.config.schema import is_true
from perun.errors import DamagedStore, PerunError, ProfileError
from perun.plugin.api import MinorVersion, Report, silent
from perun.porcelain import lookup
from perun.porcelain.check.baselines import Baselines, Candidates
from perun.porcelain.check.compare import Comparer, Outcome, Pair
from perun.porcelain.check.history import History
from perun.porcelain.check.parallel import compare
from perun.porcelain.check.report import (
    DEFAULTS,
    Comparison,
    MethodResult,
    Options,
    Verdict,
    VersionReport,
    command_of,
    differing,
    exit_code,
    is_degradation,
    without_ignored,
)
from perun.porcelain.repository import Repository
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.helpers import ProfileInfo
from perun.store.changes import ChangeRecord

__all__ = [
    "Comparison",
    "MethodResult",
    "Options",
    "Verdict",
    "VersionReport",
    "check_all",
    "check_diff",
    "check_head",
    "check_profiles",
    "exit_code",
    "is_degradation",
]

NO_PROFILE = "no profile is registered"
NO_BASELINE = "no ancestor has a profile of the same configuration"


def check_head(
    repo: Repository,
    minor: str | None,
    options: Options = DEFAULTS,
    report: Report = silent,
    baseline: str | None = None,
) -> VersionReport:
    """Compare the profiles of `minor` (HEAD where None) with those of its nearest ancestors that have any.

    :param baseline: compare with the profiles of this revision instead, or of the nearest of its ancestors
        that has one of the same configuration; nothing is stored then.
    """
    head = repo.version(minor)
    if baseline is not None:
        return _check_against(repo, head, repo.version(baseline), options, report)
    checker = _Checker(repo, options, report)
    history = History(repo, head)
    version = history.get(head)
    assert version is not None
    parents = map(history.get, version.parents)
    checker.collect_missing([version, *filter(None, parents)])
    plan = checker.plan(version, partial(history.ancestors, head), others=version.parents, leave=True)
    return next(checker.reports([plan]))


def _check_against(
    repo: Repository, head: str, start: str, options: Options, report: Report
) -> VersionReport:
    checker = _Checker(repo, options, report, stores=False)
    version, first = repo.vcs.get_minor_version_info(head), repo.vcs.get_minor_version_info(start)
    checker.collect_missing([version, *([first] if start != head else [])])
    history = History(repo, start)

    def candidates() -> Iterator[MinorVersion]:
        return (one for one in chain((first,), history.ancestors(start)) if one.checksum != head)

    reason = f"neither {start[:10]} nor an ancestor of it has a profile of the same configuration"
    plan = checker.plan(version, candidates, others=(start,), without_baseline=reason)
    return next(checker.reports([plan]))


def check_diff(
    repo: Repository, base: str, target: str, options: Options = DEFAULTS, report: Report = silent
) -> VersionReport:
    """Compare the profiles of any two versions, paired by their configurations; nothing is stored.

    Of several profiles of `base` with one configuration the newest is taken.
    """
    checker = _Checker(repo, options, report, stores=False)
    old, new = (repo.vcs.get_minor_version_info(repo.version(one)) for one in (base, target))
    checker.collect_missing([new, *([old] if old.checksum != new.checksum else [])])
    reason = f"{old.checksum[:10]} has no profile of the same configuration"
    plan = checker.plan(new, lambda: (old,), others=(old.checksum,), without_baseline=reason)
    used = {step.baseline.configuration for step in plan.steps if isinstance(step, Pair)}
    try:
        unpaired = [one for one in checker.baselines.profiles(old.checksum) if one.configuration not in used]
    except DamagedStore as problem:
        unpaired = []
        plan.errors.append(problem)
    plan.unpaired = tuple(unpaired)
    return next(checker.reports([plan]))


def check_all(
    repo: Repository, minor: str | None, options: Options = DEFAULTS, report: Report = silent
) -> Iterator[VersionReport]:
    """Every version from `minor` (HEAD where None) down to the root, newest first, as a stream."""
    head = repo.version(minor)
    checker = _Checker(repo, options, report)
    if checker.collects:
        checker.collect_missing(list(History(repo, head, ordered=True)))
    history = History(repo, head, ordered=True)

    def plans() -> Iterator[_Plan]:
        for version in history:
            yield checker.plan(version, partial(history.ancestors, version.checksum), leave=True)

    return checker.reports(plans())


def check_profiles(
    repo: Repository,
    baseline: str,
    target: str,
    minor: str | None,
    options: Options = DEFAULTS,
    confirm: lookup.Confirm | None = None,
) -> Comparison:
    """Compare two profiles, wherever they are (manual 3.2.16). Nothing is stored: no version has them.

    :raises ProfileError: where one of them is damaged.
    """
    found = [lookup.find(repo, spec, minor, confirm) for spec in (baseline, target)]
    old, new = (one.info for one in found)
    difference = "" if options.force else differing(old, new)
    if difference:
        reason = f"the configurations differ in {difference}; compare nevertheless with --force"
        return Comparison(new, old, reason=reason)
    loaded = [lookup.load(repo, one) for one in found]
    outcome = Comparer(repo, options).loaded(new, *loaded)
    return without_ignored(outcome.of(Pair(new, old)), options.ignore)


@dataclass
class _Plan:
    """A version and the pairs to compare of it, between comparisons that cannot be made."""

    version: MinorVersion
    steps: list[Pair | Comparison] = field(default_factory=list)
    reason: str = ""
    failure: str = ""
    errors: list[PerunError] = field(default_factory=list)
    unpaired: tuple[ProfileInfo, ...] = ()


class _Checker:
    """Plans which pairs are compared, and keeps what was found of them.

    :param stores: whether what is found is kept with the version.
    """

    def __init__(self, repo: Repository, options: Options, report: Report, *, stores: bool = True) -> None:
        self.repo = repo
        self.collects = options.compute_missing or is_true(
            repo.config.get("degradation.collect_before_check")
        )
        self.baselines = Baselines(repo, force=options.force)
        self._options = options
        self._report = report
        self._stores = stores
        self._failures: dict[str, PerunError] = {}
        self._reported = 0

    def collect_missing(self, versions: Sequence[MinorVersion]) -> None:
        """Run the jobs of the matrix that the versions have no profile of, where the user wants that."""
        if not self.collects:
            return
        from perun.porcelain.check import precollect  # most checks run nothing

        self._failures = precollect.collect_missing(self.repo, versions, self._report)
        self.baselines.refresh()

    def plan(
        self,
        version: MinorVersion,
        candidates: Candidates,
        *,
        others: Iterable[str] = (),
        without_baseline: str = "",
        leave: bool = False,
    ) -> _Plan:
        """The pairs of all profiles of the version.

        :param others: versions whose failures are told too, as their profiles were to be the baselines.
        :param without_baseline: why there is no pair where no candidate has the configuration.
        :param leave: the version is not among these candidates, nor among those of later plans.
        """
        self._report(version.checksum[:10], self._reported, 0)
        plan = _Plan(version)
        self._tell_failures(plan, others)
        try:
            targets = self.baselines.profiles(version.checksum)
        except DamagedStore as problem:
            plan.reason = problem.message
            if version.checksum not in self._failures:
                plan.errors.append(problem)
            return plan
        plan.reason = "" if targets else NO_PROFILE
        if leave:
            self.baselines.leave(version.checksum)
        for target, found in zip(targets, self.baselines.find(targets, candidates), strict=True):
            if isinstance(found, Pair):
                plan.steps.append(found)
            elif found is None:
                plan.steps.append(Comparison(target, reason=without_baseline or self._without_baseline))
            else:
                plan.steps.append(Comparison(target, reason=found.message, error=found))
        return plan

    def _tell_failures(self, plan: _Plan, others: Iterable[str]) -> None:
        own = plan.version.checksum
        for checksum in (own, *others):
            problem = self._failures.get(checksum)
            if problem is not None:
                where = "" if checksum == own else f"{checksum[:6]}: "
                plan.failure = plan.failure or where + problem.message
                plan.errors.append(problem)

    @cached_property
    def _without_baseline(self) -> str:
        missing = self.repo.vcs.missing_history()
        return f"{NO_BASELINE} ({missing})" if missing else NO_BASELINE

    def reports(self, plans: Iterable[_Plan]) -> Iterator[VersionReport]:
        """Compare what was planned; what was found is stored before it is told."""
        outcomes: list[Outcome] = []
        for item in compare(self.repo, self._options, _items(plans)):
            if isinstance(item, Outcome):
                outcomes.append(item)
                continue
            self._reported += 1
            yield self._finish(item, iter(outcomes))
            outcomes = []

    def _finish(self, plan: _Plan, outcomes: Iterator[Outcome]) -> VersionReport:
        comparisons = [next(outcomes).of(step) if isinstance(step, Pair) else step for step in plan.steps]
        if self._stores:
            try:
                self._store(plan.version, comparisons)
            except ProfileError as problem:
                plan.errors.append(problem)
        shown = tuple(without_ignored(comparison, self._options.ignore) for comparison in comparisons)
        return VersionReport(
            plan.version, shown, plan.reason, plan.failure, tuple(plan.errors), plan.unpaired
        )

    def _store(self, version: MinorVersion, comparisons: Sequence[Comparison]) -> None:
        """Keep what was found; it replaces all that earlier checks found of these configurations."""
        found: dict[tuple[str, str, str], ChangeRecord] = {}
        commands = set()
        for comparison in comparisons:
            if comparison.baseline_version is None or all(one.reason for one in comparison.results):
                continue
            if comparison.incomplete:  # what an earlier check found of whole profiles still holds
                continue
            command = command_of(comparison.target)
            commands.add(command)
            for change in comparison.changes:
                record = ChangeRecord(change, comparison.baseline_version.checksum, command)
                known = found.get(record.key)
                # Two methods may report the same type at the same place: the file has room for the worse.
                if known is None or _urgency(record) < _urgency(known):
                    found[record.key] = record
        if not commands:
            return
        stored = {
            record.key: record
            for record in self.repo.store.changes.read(version.checksum)
            if record.command in commands
        }
        if found == stored:
            return
        gone = (record._replace(info=_without_change(record.info)) for record in stored.values())
        self.repo.store.changes.merge(version.checksum, [*gone, *found.values()])


def _items(plans: Iterable[_Plan]) -> Iterator[Pair | _Plan]:
    """The pairs of each plan, then the plan."""
    for plan in plans:
        yield from (step for step in plan.steps if isinstance(step, Pair))
        yield plan


def _urgency(record: ChangeRecord) -> tuple[bool, int]:
    """A key to sort by: degradations from the worst, then optimizations, then what could not be compared."""
    kind = record.info.result
    incomparable = (
        PerformanceChange.Unknown,
        PerformanceChange.NotInBaseline,
        PerformanceChange.NotInTarget,
    )
    return kind in incomparable, kind.value


def _without_change(info: DegradationInfo) -> DegradationInfo:
    return DegradationInfo(PerformanceChange.NoChange, info.location, "", "", info.type)
