"""`perun check`: find changes of performance between versions (manual 3.2.13-3.2.16, chapter 8).

Each verb plans pairs of profiles (`pairing`), compares them (`parallel`), stores the changes and yields
reports (`report`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import partial
from itertools import chain

from perun.core.errors import DamagedStore, ProfileError
from perun.history.check.compare import CheckPair, Comparer, PairOutcome
from perun.history.check.pairing import Pairing, VersionPlan
from perun.history.check.parallel import compare
from perun.history.check.report import (
    DEFAULTS,
    AcknowledgementFilter,
    Comparison,
    command_of,
    differing,
    without_ignored,
)
from perun.history.check.report import CheckExitCode as CheckExitCode
from perun.history.check.report import ComparisonOptions as ComparisonOptions
from perun.history.check.report import MethodResult as MethodResult
from perun.history.check.report import VersionReport as VersionReport
from perun.history.check.report import exit_code as exit_code
from perun.history.check.report import is_degradation as is_degradation
from perun.plugin.api import MinorVersion, Report, quiet, silent
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.repository import lookup
from perun.repository.repository import Repository
from perun.repository.walking import since
from perun.store.changes import ChangeRecord, serialize

# The ancestry of a version, read from the version control only as far as it is needed.


class Ancestry:
    """The versions that `head` (a full checksum) comes from, itself included.

    :param ordered: whether iteration must give children before parents; a drawn tree needs that.
    :param among: the only versions that :meth:`ancestors` yields; all where it is None.
    """

    def __init__(
        self, repo: Repository, head: str, *, ordered: bool = False, among: Set[str] | None = None
    ) -> None:
        self._walk = repo.vcs.walk_subjects(head, ordered=ordered)
        self._known: dict[str, MinorVersion] = {}
        self._waiting: deque[MinorVersion] = deque()
        self._among = among
        self._jumps: dict[str, str] = {}

    def __iter__(self) -> Iterator[MinorVersion]:
        """All of them, children before parents, once.

        A version is forgotten when the next one is asked for: nothing that follows comes from it.
        """
        while self._waiting or self._advance():
            version = self._waiting.popleft()
            yield version
            del self._known[version.checksum]
            self._jumps.pop(version.checksum, None)

    def get(self, checksum: str) -> MinorVersion | None:
        """The version, or None if it is not part of the history (beyond the edge of a shallow clone)."""
        while checksum not in self._known:
            if not self._advance():
                return None
        return self._known[checksum]

    def ancestors(self, checksum: str) -> Iterator[MinorVersion]:
        """Those that `checksum` comes from, without itself, in the order of
        :func:`perun.repository.walking.ancestors`: along first parents, and after the last of them the
        others."""
        start = self.get(checksum)
        if start is None:
            return
        others: list[str] = []
        seen = {checksum}
        version: MinorVersion | None = start
        while version is not None and version.parents:
            others += version.parents[1:]
            version = self._landing(version.parents[0])
            if version is not None:
                seen.add(version.checksum)
                if self._is_among(version):
                    yield version
        if others:
            yield from self._off_the_line(others, seen)

    def _off_the_line(self, starts: list[str], seen: set[str]) -> Iterator[MinorVersion]:
        """The ancestors that are not on the line of first parents, in the order of the walk."""
        wanted: set[str] = set()
        while starts:
            version = self._landing(starts.pop())
            if version is None or version.checksum in seen or version.checksum in wanted:
                continue
            wanted.add(version.checksum)
            starts += version.parents
        for version in list(self._known.values()) if wanted else ():
            if version.checksum in wanted and self._is_among(version):
                yield version

    def _is_among(self, version: MinorVersion) -> bool:
        return self._among is None or version.checksum in self._among

    def _landing(self, checksum: str) -> MinorVersion | None:
        """The first version in a straight line from this one that is yielded, or where the line ends or
        branches. The versions between are passed over one by one only once."""
        passed: list[str] = []
        while True:
            checksum = self._jumps.get(checksum, checksum)
            version = self.get(checksum)
            if version is None or self._is_among(version) or len(version.parents) != 1:
                break
            passed.append(checksum)
            checksum = version.parents[0]
        for one in passed:
            self._jumps[one] = checksum
        return version

    def _advance(self) -> bool:
        version = next(self._walk, None)
        if version is None:
            return False
        self._known[version.checksum] = version
        self._waiting.append(version)
        return True


# The changes that a check finds are stored with the version, for `perun log` and `perun status`.


def store_changes(repo: Repository, version: MinorVersion, comparisons: Sequence[Comparison]) -> None:
    """Store the changes of the version; they replace those of earlier checks of these configurations.

    :raises ProfileError: if the file of changes is damaged.
    """
    found: dict[tuple[str, str, str], ChangeRecord] = {}
    commands = set()
    for comparison in comparisons:
        if comparison.baseline_version is None or all(one.reason for one in comparison.results):
            continue
        if comparison.incomplete or comparison.environment:  # what an earlier check found still holds
            continue
        command = command_of(comparison.target)
        commands.add(command)
        # The file has room for one change of a type at a place.
        for change in comparison.places:
            record = ChangeRecord(change, comparison.baseline_version.checksum, command)
            found[record.key] = record
    if not commands:
        return
    stored = {
        record.key: record
        for record in repo.store.changes.read(version.checksum)
        if record.command in commands
    }
    if serialize(found.values()) == serialize(stored.values()):
        return
    gone = (record._replace(info=_without_change(record.info)) for record in stored.values())
    repo.store.changes.merge(version.checksum, [*gone, *found.values()])


def _without_change(info: DegradationInfo) -> DegradationInfo:
    return DegradationInfo(PerformanceChange.NoChange, info.location, "", "", info.type)


def check_head(
    repo: Repository,
    minor: str | None,
    options: ComparisonOptions = DEFAULTS,
    report: Report = silent,
    baseline: str | None = None,
    note: Callable[[str], None] = quiet,
) -> VersionReport:
    """Compare the profiles of `minor` (HEAD if None) with those of its nearest ancestors that have any.

    :param baseline: compare with the profiles of this revision instead, or of the nearest of its ancestors
        that has one of the same configuration; nothing is stored then.
    :param note: told before what is missing is collected.
    """
    head = repo.version(minor)
    pairing = Pairing(repo, options, report, note)
    if baseline is not None:
        return _check_against(pairing, head, repo.version(baseline), options)
    history = Ancestry(repo, head)
    version = history.get(head)
    assert version is not None
    parents = map(history.get, version.parents)
    pairing.collect_missing([version, *filter(None, parents)])
    plan = pairing.plan(version, partial(history.ancestors, head), others=version.parents, leave=True)
    return next(_reports(repo, options, [plan], stores=True))


def _check_against(pairing: Pairing, head: str, start: str, options: ComparisonOptions) -> VersionReport:
    repo = pairing.repo
    version, first = repo.vcs.get_minor_version_info(head), repo.vcs.get_minor_version_info(start)
    pairing.collect_missing([version, *([first] if start != head else [])])
    history = Ancestry(repo, start)

    def candidates() -> Iterator[MinorVersion]:
        return (one for one in chain((first,), history.ancestors(start)) if one.checksum != head)

    reason = f"neither {start[:10]} nor an ancestor of it has a profile of the same configuration"
    plan = pairing.plan(version, candidates, others=(start,), without_baseline=reason)
    return next(_reports(repo, options, [plan], stores=False))


def check_diff(
    repo: Repository,
    base: str,
    target: str,
    options: ComparisonOptions = DEFAULTS,
    report: Report = silent,
    note: Callable[[str], None] = quiet,
) -> VersionReport:
    """Compare the profiles of any two versions, paired by their configurations; nothing is stored.

    Several profiles of a version with one configuration are pooled.
    """
    pairing = Pairing(repo, options, report, note)
    old, new = (repo.vcs.get_minor_version_info(repo.version(one)) for one in (base, target))
    pairing.collect_missing([new, *([old] if old.checksum != new.checksum else [])])
    plan = pairing.between(old, new)
    used = {step.baseline.configuration for step in plan.steps if isinstance(step, CheckPair)}
    try:
        unpaired = [one for one in pairing.baselines.profiles(old.checksum) if one.configuration not in used]
    except DamagedStore as problem:
        unpaired = []
        plan.errors.append(problem)
    plan.unpaired = tuple(unpaired)
    return next(_reports(repo, options, [plan], stores=False))


def check_all(
    repo: Repository,
    minor: str | None,
    options: ComparisonOptions = DEFAULTS,
    report: Report = silent,
    note: Callable[[str], None] = quiet,
    start: str | None = None,
) -> Iterator[VersionReport]:
    """Every version from `minor` (HEAD if None) down to the root, newest first, as a stream.

    :param start: only versions that are newer; see :func:`perun.repository.walking.since`.
    """
    head = repo.version(minor)
    pairing = Pairing(repo, options, report, note)
    if pairing.collects:
        pairing.collect_missing(list(since(repo, iter(Ancestry(repo, head, ordered=True)), start)))
    history = Ancestry(repo, head, ordered=True, among=pairing.baselines.with_profiles)

    def plans() -> Iterator[VersionPlan]:
        for version in since(repo, iter(history), start):
            yield pairing.plan(version, partial(history.ancestors, version.checksum), leave=True)

    return _reports(repo, options, plans(), stores=True)


def check_profiles(
    repo: Repository,
    baseline: str,
    target: str,
    minor: str | None,
    options: ComparisonOptions = DEFAULTS,
    confirm: lookup.Confirm | None = None,
) -> Comparison:
    """Compare two profiles, wherever they are (manual 3.2.16). Nothing is stored: no version has them.

    :raises ProfileError: if one of them is damaged.
    """
    found = [lookup.find(repo, spec, minor, confirm) for spec in (baseline, target)]
    old, new = (one.info for one in found)
    difference = "" if options.force else differing(old, new)
    if difference:
        reason = f"the configurations differ in {difference}; compare nevertheless with --force"
        return Comparison(new, old, reason=reason)
    loaded = [lookup.load(repo, one) for one in found]
    outcome = Comparer(repo, options).loaded(new, *loaded)
    return without_ignored(outcome.of(CheckPair(new, old)), options.ignore)


def _reports(
    repo: Repository, options: ComparisonOptions, plans: Iterable[VersionPlan], *, stores: bool
) -> Iterator[VersionReport]:
    """Compare the pairs of the plans.

    :param stores: store the changes of each version before its report is yielded.
    """
    acknowledging = AcknowledgementFilter(repo)
    outcomes: list[PairOutcome] = []
    for item in compare(repo, options, _items(plans)):
        if isinstance(item, PairOutcome):
            outcomes.append(item)
            continue
        yield acknowledging.report(_finish(repo, options, item, iter(outcomes), stores=stores))
        outcomes = []


def _items(plans: Iterable[VersionPlan]) -> Iterator[CheckPair | VersionPlan]:
    """The pairs of each plan, then the plan."""
    for plan in plans:
        yield from (step for step in plan.steps if isinstance(step, CheckPair))
        yield plan


def _finish(
    repo: Repository,
    options: ComparisonOptions,
    plan: VersionPlan,
    outcomes: Iterator[PairOutcome],
    *,
    stores: bool,
) -> VersionReport:
    comparisons = [next(outcomes).of(step) if isinstance(step, CheckPair) else step for step in plan.steps]
    if stores:
        try:
            store_changes(repo, plan.version, comparisons)
        except ProfileError as problem:
            plan.errors.append(problem)
    shown = tuple(without_ignored(comparison, options.ignore) for comparison in comparisons)
    return VersionReport(plan.version, shown, plan.reason, plan.failure, tuple(plan.errors), plan.unpaired)
