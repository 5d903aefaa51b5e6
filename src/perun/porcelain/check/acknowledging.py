"""Which of the degradations that were found are acknowledged (`perun ack`)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from perun.porcelain.acknowledged import Acknowledged, Entry
from perun.porcelain.check.report import Comparison, VersionReport, may_fail
from perun.porcelain.repository import Repository


class Acknowledging:
    """Marks what is acknowledged in the reports of one repository.

    The change between a baseline and a target is that of all versions in between: an entry of any of them
    covers it.

    :raises ConfigError: if the file of the entries is damaged.
    """

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._known = Acknowledged.load(repo)
        self._ancestors: dict[str, frozenset[str]] = {}

    def report(self, report: VersionReport) -> VersionReport:
        """The report with what is acknowledged."""
        if not self._known.entries:
            return report
        target = report.version.checksum
        marked = tuple(self._comparison(one, target) for one in report.comparisons)
        return replace(report, comparisons=marked)

    def _comparison(self, comparison: Comparison, target: str) -> Comparison:
        found: dict[str, Entry] = {}
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
