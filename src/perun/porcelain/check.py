"""`perun check`: find changes of performance between versions (manual 3.2.13-3.2.16, chapter 8)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from perun.config.schema import is_true
from perun.plugin.api import CheckContext, MinorVersion, Report, silent
from perun.porcelain import jobs, lookup, postprocessby, precollect
from perun.porcelain.comparison import (
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
)
from perun.porcelain.history import History
from perun.porcelain.repository import Repository
from perun.porcelain.strategies import Rule, applicable, rules
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.helpers import ProfileInfo
from perun.store.changes import ChangeRecord

if TYPE_CHECKING:
    from perun.profile.factory import Profile

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

LOADED_PROFILES = 32
"""Profiles kept in memory: in a history each is the target once and the baseline about once."""


def check_head(
    repo: Repository,
    minor: str | None,
    options: Options = DEFAULTS,
    report: Report = silent,
    baseline: str | None = None,
) -> VersionReport:
    """Compare the profiles of `minor` (HEAD where None) with those of its nearest ancestors that have any.

    :param baseline: compare with the profiles of this revision instead, or of the nearest of its ancestors
        that has any of the same configuration; nothing is stored then.
    """
    head = repo.version(minor)
    checker = _Checker(repo, History(repo, head), options, report)
    version = checker.history.get(head)
    assert version is not None
    parents = map(checker.history.get, version.parents)
    checker.collect_missing([version, *filter(None, parents)])
    return checker.version(version, *version.parents)


def check_diff(
    repo: Repository, base: str, target: str, options: Options = DEFAULTS, report: Report = silent
) -> VersionReport:
    """Compare the profiles of any two versions, paired by their configurations. Nothing is stored."""
    raise NotImplementedError


def check_all(
    repo: Repository, minor: str | None, options: Options = DEFAULTS, report: Report = silent
) -> Iterator[VersionReport]:
    """Every version from `minor` (HEAD where None) down to the root, newest first, as a stream."""
    checker = _Checker(repo, History(repo, repo.version(minor), ordered=True), options, report)
    if checker.collects:
        checker.collect_missing(list(checker.history))
    for done, version in enumerate(checker.history):
        report(version.checksum[:10], done, 0)
        yield checker.version(version)


def check_profiles(
    repo: Repository,
    baseline: str,
    target: str,
    minor: str | None,
    options: Options = DEFAULTS,
    confirm: lookup.Confirm | None = None,
) -> Comparison:
    """Compare two profiles, wherever they are (manual 3.2.16). Nothing is stored: no version has them."""
    found = [lookup.find(repo, spec, minor, confirm) for spec in (baseline, target)]
    infos = [one.info for one in found]
    difference = "" if options.force else differing(*infos)
    if difference:
        reason = f"the configurations differ in {difference}; compare nevertheless with --force"
        return Comparison(infos[1], infos[0], reason=reason)
    loaded = [lookup.load(repo, one) for one in found]
    return _Comparer(repo, options).pair(infos[0], loaded[0], infos[1], loaded[1])


class _Comparer:
    """Applies the configured checks to pairs of profiles."""

    def __init__(self, repo: Repository, options: Options) -> None:
        self.repo = repo
        self.rules = rules(repo)
        self._context = CheckContext(
            repo.config.section("degradation"), options.models_type, self._postprocess
        )

    def pair(self, baseline: ProfileInfo, base: Profile, target: ProfileInfo, new: Profile) -> Comparison:
        chosen = applicable(self.repo, self.rules, target)
        if not chosen:
            return Comparison(target, baseline, reason="no rule of degradation.strategies applies to it")
        results = tuple(self._apply(rule, base, new) for rule in chosen)
        return Comparison(target, baseline, None, results)

    def _apply(self, rule: Rule, base: Profile, new: Profile) -> MethodResult:
        return MethodResult(rule.check.name, tuple(rule.check.compare(base, new, rule.params, self._context)))

    def _postprocess(self, profile: Profile, name: str, params: Mapping[str, Any]) -> Profile:
        unit = jobs.make_unit(self.repo, "postprocess", name, params, "a check")
        return postprocessby.process(self.repo, profile, unit.name, unit.params)


class _Checker:
    """Checks versions of one history, each pair once, each profile loaded about once."""

    def __init__(self, repo: Repository, history: History, options: Options, report: Report) -> None:
        self.repo = repo
        self.history = history
        self.collects = options.compute_missing or is_true(
            repo.config.get("degradation.collect_before_check")
        )
        self._force = options.force
        self._report = report
        self._comparer = _Comparer(repo, options)
        self._with_profiles = set(repo.store.indexes.minors())
        self._loaded: OrderedDict[str, Profile] = OrderedDict()
        self._listed: dict[str, list[ProfileInfo]] = {}
        self._failures: dict[str, str] = {}

    def collect_missing(self, versions: Sequence[MinorVersion]) -> None:
        """Run the jobs of the matrix that the versions have no profile of, where the user wants that."""
        if not self.collects:
            return
        self._failures = precollect.collect_missing(self.repo, versions, self._report)
        self._listed.clear()
        self._with_profiles = set(self.repo.store.indexes.minors())

    def version(self, version: MinorVersion, *others: str) -> VersionReport:
        """Compare all profiles of the version, and store what changed.

        :param others: versions whose failures are told too, as their profiles were to be the baselines.
        """
        failure = self._failures.get(version.checksum, "")
        for other in others:
            if other in self._failures:
                failure = failure or f"{other[:6]}: {self._failures[other]}"
        targets = self._profiles(version.checksum)
        if not targets:
            return VersionReport(version, reason="no profile is registered", failure=failure)
        comparisons = tuple(self._compare(version, target) for target in targets)
        self._store(version, comparisons)
        return VersionReport(version, comparisons, failure=failure)

    def _compare(self, version: MinorVersion, target: ProfileInfo) -> Comparison:
        found = self._baseline(version.checksum, target)
        if found is None:
            return Comparison(target, reason=self._without_baseline)
        baseline_version, baseline = found
        compared = self._comparer.pair(baseline, self._load(baseline), target, self._load(target))
        return Comparison(target, baseline, baseline_version, compared.results, compared.reason)

    @cached_property
    def _without_baseline(self) -> str:
        missing = self.repo.vcs.missing_history()
        reason = "no ancestor has a profile of the same configuration"
        return f"{reason} ({missing})" if missing else reason

    def _baseline(self, checksum: str, target: ProfileInfo) -> tuple[MinorVersion, ProfileInfo] | None:
        for ancestor in self.history.ancestors(checksum):
            if ancestor.checksum not in self._with_profiles:
                continue
            profiles = self._profiles(ancestor.checksum)
            same = [info for info in profiles if info.configuration == target.configuration]
            if not same and self._force:
                same = [info for info in profiles if info.collector == target.collector]
            if same:
                return ancestor, max(same, key=lambda info: (info.time, info.source))
        return None

    def _profiles(self, checksum: str) -> list[ProfileInfo]:
        if checksum not in self._with_profiles:
            return []
        if checksum not in self._listed:
            self._listed[checksum] = lookup.registered(self.repo, checksum)
        return self._listed[checksum]

    def _load(self, info: ProfileInfo) -> Profile:
        profile = self._loaded.pop(info.checksum, None) or self.repo.store.objects.get(info.checksum)
        self._loaded[info.checksum] = profile
        if len(self._loaded) > LOADED_PROFILES:
            self._loaded.popitem(last=False)
        return profile

    def _store(self, version: MinorVersion, comparisons: tuple[Comparison, ...]) -> None:
        """Keep what was found; it replaces all that earlier checks found of these configurations."""
        found: dict[tuple[str, str, str], ChangeRecord] = {}
        commands = set()
        for comparison in comparisons:
            if comparison.baseline_version is not None and comparison.results:
                command = command_of(comparison.target)
                commands.add(command)
                records = (
                    ChangeRecord(change, comparison.baseline_version.checksum, command)
                    for change in comparison.changes
                )
                found.update((record.key, record) for record in records)
        stored = {
            record.key: record
            for record in self.repo.store.changes.read(version.checksum)
            if record.command in commands
        }
        if found == stored:
            return
        gone = (record._replace(info=_without_change(record.info)) for record in stored.values())
        self.repo.store.changes.merge(version.checksum, [*gone, *found.values()])


def _without_change(info: DegradationInfo) -> DegradationInfo:
    return DegradationInfo(PerformanceChange.NoChange, info.location, "", "", info.type)
