"""What `perun check` answers with: versions, pairs of profiles, and what each method found of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from perun.core.errors import PerunError
from perun.history.acknowledged import Acknowledgement, Acknowledgements
from perun.plugin.api import MinorVersion, Report
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.helpers import ProfileInfo
from perun.repository.repository import Repository

Collector = Callable[
    [Repository, Sequence[MinorVersion], Report, Callable[[str], None]], dict[str, PerunError]
]


@dataclass(frozen=True)
class ComparisonOptions:
    """How to check: `force` compares profiles of other configurations and incomplete ones too,
    `compute_missing` runs the matrix where a version lacks profiles, `models_type` is handed to the checks
    that know it. A change is left out where one of the patterns of `ignore` is found in its location.
    `collector` is what runs the matrix: called with the repository, the versions, what tells the progress,
    and what is told before the first job runs; it returns by checksum what a version lacks profiles for."""

    force: bool = False
    compute_missing: bool = False
    models_type: str = ""
    ignore: tuple[re.Pattern[str], ...] = ()
    collector: Collector | None = None


DEFAULTS: Final = ComparisonOptions()


@dataclass(frozen=True)
class MethodResult:
    """What one check reported of one pair, No Change included.

    `reason` says what a profile lacks where the check could not be applied; `ignored` counts the changes
    that `--ignore` left out.
    """

    method: str
    changes: tuple[DegradationInfo, ...] = ()
    reason: str = ""
    ignored: int = 0


@dataclass(frozen=True)
class Comparison:
    """A target profile and its baseline; where nothing was compared, `reason` says why.

    `error` is there where one of the two profiles, or the index that would list it, is damaged or missing;
    `reason` tells its message then, which names the object. `incomplete` says which of the profiles lacks a
    part of its run, and why: what each method finds is Unknown then, unless the comparison was forced.
    `environment` names what differs of the machines, or of the builds, that the two were measured on or of;
    it has the same consequence.
    `same` says that there was nothing to measure, as both sides run the same program on the same input: it
    was not compared, but nothing can have changed.
    `acknowledged` has the locations whose degradations are acknowledged: they are no failure.
    `notes` are what else there is to say of the comparison. Where both were measured for it side by side,
    `session` says how, as JSON data.
    """

    target: ProfileInfo
    baseline: ProfileInfo | None = None
    baseline_version: MinorVersion | None = None
    results: tuple[MethodResult, ...] = ()
    reason: str = ""
    error: PerunError | None = None
    incomplete: str = ""
    environment: str = ""
    notes: tuple[str, ...] = ()
    session: Mapping[str, Any] | None = None
    same: bool = False
    acknowledged: Mapping[str, Acknowledgement] = field(default_factory=dict)

    @property
    def not_compared(self) -> str:
        """Why nothing was compared, or why none of the methods could be applied; empty where one was."""
        if self.reason or not self.results or not all(result.reason for result in self.results):
            return self.reason
        return self.results[0].reason

    @cached_property
    def changes(self) -> list[DegradationInfo]:
        """All reported changes of the pair, without No Change."""
        return [
            change
            for result in self.results
            for change in result.changes
            if change.result is not PerformanceChange.NoChange
        ]

    @cached_property
    def places(self) -> list[DegradationInfo]:
        """The changes of the pair, each place once: where several methods report the same type of change at
        the same location, the worse."""
        found: dict[tuple[str, str], DegradationInfo] = {}
        for change in self.changes:
            key = change.location, change.type
            if key not in found or _urgency(change) < _urgency(found[key]):
                found[key] = change
        return list(found.values())


def _urgency(change: DegradationInfo) -> tuple[bool, int]:
    """A key to sort by: degradations from the worst, then optimizations, then what could not be compared."""
    kind = change.result
    incomparable = (
        PerformanceChange.Unknown,
        PerformanceChange.NotInBaseline,
        PerformanceChange.NotInTarget,
    )
    return kind in incomparable, kind.value


@dataclass(frozen=True)
class VersionReport:
    """One version with the comparisons of its profiles; `reason` where it has none to compare.

    `failure` says why a profile that should have been collected before the check is missing. `errors` are
    all troubles of the version itself: what `failure` tells, a damaged index (told in `reason`, too), or a
    damaged file of changes, in which what was found could not be stored. `unpaired` are profiles of the
    baseline of :func:`~perun.history.check.check.check_diff` whose configuration the target does not have.
    """

    version: MinorVersion
    comparisons: tuple[Comparison, ...] = ()
    reason: str = ""
    failure: str = ""
    errors: tuple[PerunError, ...] = ()
    unpaired: tuple[ProfileInfo, ...] = ()

    @property
    def unconfirmed(self) -> bool:
        """Whether there are degradations that nobody has acknowledged, and each was seen once only."""
        found = [
            change.confirmed
            for one in self.comparisons
            for change in one.changes
            if is_degradation(change.result) and change.location not in one.acknowledged
        ]
        return bool(found) and not any(found)


class CheckExitCode:
    """The exit code of a check, gathered report by report, none of which is kept.

    :param fail_on: a level of :func:`is_degradation`; None where no change is a failure.
    """

    def __init__(self, fail_on: str | None = None) -> None:
        self._fail_on = fail_on
        self._failed = False
        self._undecided = False
        self._compared = False
        self._trouble = 0

    def add(self, report: VersionReport | Comparison) -> None:
        """Count a version, or a pair of profiles."""
        if isinstance(report, Comparison):
            self._add_pair(report)
            return
        for error in report.errors:
            self._trouble = self._trouble or error.exit_code
        for comparison in report.comparisons:
            self._add_pair(comparison)

    def _add_pair(self, comparison: Comparison) -> None:
        if comparison.error is not None:
            self._trouble = self._trouble or comparison.error.exit_code
        self._compared |= comparison.same or not comparison.not_compared
        level = self._fail_on
        kinds = [one.result for one in comparison.changes if one.location not in comparison.acknowledged]
        if level is not None and not self._failed:
            self._failed = any(is_degradation(kind, level) for kind in kinds)
        if level == "inconclusive":
            self._undecided |= PerformanceChange.Unknown in kinds

    @property
    def code(self) -> int:
        """1 where a change is a failure; else the code of the first trouble (see `perun.core.errors`);
        else, where some change would be a failure, :data:`NOTHING_COMPARED` where nothing was, or
        :data:`INCONCLUSIVE`; else 0."""
        if self._failed:
            return 1
        if self._fail_on is not None and not self._compared:
            return self._trouble or NOTHING_COMPARED
        return self._trouble or (INCONCLUSIVE if self._undecided else 0)


def exit_code(reports: Iterable[VersionReport | Comparison], fail_on: str | None = None) -> int:
    """The exit code of all the reports; see :class:`CheckExitCode`."""
    verdict = CheckExitCode(fail_on)
    for report in reports:
        verdict.add(report)
    return verdict.code


_SEVERE: Final = (PerformanceChange.SevereDegradation, PerformanceChange.TotalDegradation)
_CERTAIN: Final = (*_SEVERE, PerformanceChange.Degradation)
LEVELS: Final = {
    "degradation": _CERTAIN,
    "maybe": (*_CERTAIN, PerformanceChange.MaybeDegradation),
    "severe": _SEVERE,
    "inconclusive": _CERTAIN,
}
"""The changes that `--fail-on` fails on, by its value; `inconclusive` fails on Unknown besides."""
INCONCLUSIVE: Final = 12
"""Exit code of `--fail-on inconclusive` where something is Unknown; see
:data:`perun.core.errors.EXIT_CODES`."""
NOTHING_COMPARED: Final = 13
"""Exit code of `--fail-on` where nothing was compared: no profile, no baseline, or no method that applies."""


def is_degradation(change: PerformanceChange, level: str = "degradation") -> bool:
    """Whether `--fail-on level` fails on the change; `level` is a key of :data:`LEVELS`."""
    return change in LEVELS[level]


def may_fail(change: PerformanceChange) -> bool:
    """Whether some level of `--fail-on` fails on the change, so that it may be acknowledged."""
    return change is PerformanceChange.Unknown or any(change in level for level in LEVELS.values())


def without_ignored(comparison: Comparison, ignore: tuple[re.Pattern[str], ...]) -> Comparison:
    """The comparison without the changes whose location one of the patterns is found in."""
    if not ignore:
        return comparison
    return replace(comparison, results=tuple(_without(result, ignore) for result in comparison.results))


def _without(result: MethodResult, ignore: tuple[re.Pattern[str], ...]) -> MethodResult:
    kept, ignored = [], 0
    for change in result.changes:
        if not any(pattern.search(change.location) for pattern in ignore):
            kept.append(change)
        elif change.result is not PerformanceChange.NoChange:
            ignored += 1
    return replace(result, changes=tuple(kept), ignored=ignored)


def differing(baseline: ProfileInfo, target: ProfileInfo) -> str:
    """The first part of the configurations that differs, with both values; empty where they are the same."""
    pairs = zip(baseline.configuration, target.configuration, strict=True)
    for part, (old, new) in zip(baseline.configuration._fields, pairs, strict=True):
        if old != new:
            return f"{part} ({_shown(old)} and {_shown(new)})"
    return ""


def _shown(value: object) -> str:
    text = " ".join(value) if isinstance(value, tuple) else str(value)
    return repr(text) if text else "none"


def command_of(info: ProfileInfo) -> str:
    """The configuration as changes are stored under: collector, then the command with its arguments."""
    units = "+".join((info.head.collector, *info.head.postprocessors))
    command = " ".join(part for part in (info.head.cmd, info.head.args, info.head.workload) if part)
    return f"{units} {command}"


# Which of the degradations that were found are acknowledged (`perun ack`).


class AcknowledgementFilter:
    """Marks what is acknowledged in the reports of one repository.

    The change between a baseline and a target is that of all versions in between: an entry of any of them
    covers it.

    :raises ConfigError: if the file of the entries is damaged.
    """

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._known = Acknowledgements.load(repo)
        self._ancestors: dict[str, frozenset[str]] = {}

    def report(self, report: VersionReport) -> VersionReport:
        """The report with what is acknowledged."""
        if not self._known.entries:
            return report
        target = report.version.checksum
        marked = tuple(self._comparison(one, target) for one in report.comparisons)
        return replace(report, comparisons=marked)

    def _comparison(self, comparison: Comparison, target: str) -> Comparison:
        found: dict[str, Acknowledgement] = {}
        for change in comparison.changes:
            if may_fail(change.result) and change.location not in found:
                entry = self._known.covers(target, change.location)
                if entry is None and self._is_elsewhere(change.location, target):
                    versions = self._between(comparison, target)
                    entry = self._known.covers_any(versions, change.location)
                if entry is not None:
                    found[change.location] = entry
        return replace(comparison, acknowledged=found) if found else comparison

    def _is_elsewhere(self, location: str, target: str) -> bool:
        """Whether an entry of another version is of that location, so that the versions have to be read."""
        return any(one.version != target and one.matches(location) for one in self._known.entries)

    def _between(self, comparison: Comparison, target: str) -> Collection[str]:
        """The target and its ancestors that the baseline does not have."""
        baseline = comparison.baseline_version
        if baseline is None:
            return (target,)
        return self._all(target) - self._all(baseline.checksum)

    def _all(self, version: str) -> frozenset[str]:
        """The version and its ancestors; those of the last two that were asked for are kept."""
        if version not in self._ancestors:
            while len(self._ancestors) > 1:
                del self._ancestors[next(iter(self._ancestors))]
            walk = self._repo.vcs.walk_subjects(version)
            self._ancestors[version] = frozenset(one.checksum for one in walk)
        return self._ancestors[version]
