"""The tree of versions with what changed, in the lines of the manual's 8.2, which scripts may parse."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from perun.cli.answers.changes import (
    NAMES,
    factor_of,
    importance,
    is_better,
    is_unconfirmed,
    is_worse,
    percent_interval,
    percent_of,
    style_of,
)
from perun.cli.answers.check.wording import (
    CheckTally,
    Page,
    command_of,
    conditions_of,
    confidence_of,
    incomplete_of,
    marks,
    parts_of,
    troubles_of,
    units_of,
)
from perun.cli.graph import ChangeKind, CommitGraph, GraphRows
from perun.cli.table import one_line
from perun.core.errors import PerunError, ProfileError
from perun.core.wording import plural
from perun.history.check.report import Comparison, MethodResult, VersionReport
from perun.measurement.present import MARKS
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.helpers import ProfileInfo

# The history of versions as a tree with what changed below each: what the formats for a terminal share.

_NOT_COMPARED: Final = ("not compared:", "yellow")
_DAMAGED: Final = ("damaged:", "bold red")
_FAILED: Final = ("failed:", "bold red")


class VersionTree(ABC):
    """Prints versions as they are checked. Of a single one also each profile that was not compared, and each
    method that could not be applied, is named; of a history they are counted, as they repeat.

    :cvar MARK: stands before the lines below a version that are about a pair of profiles.
    """

    MARK = ""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._every = page.single or page.verbose
        self._graph = CommitGraph(paint=page.paint)
        self._tally = CheckTally()
        self._plain = 0
        self._plain_prefix = ""
        self._told = False

    def version(self, report: VersionReport) -> None:
        """One version of the tree with its comparisons; a run of versions without profiles is one line."""
        say, version = self._page.say, report.version
        found = [change.result for comparison in report.comparisons for change in comparison.places]
        rows = self._graph.commit(version.checksum, version.parents, change_kind(found))
        self._tally.add(report)
        troubles = list(dict.fromkeys(troubles_of(report)))
        if report.reason and not troubles and self._graph.straight and not (rows.links or self._every):
            self._plain_prefix = self._plain_prefix if self._plain else rows.text
            self._plain += 1
            return
        self._skipped()
        self._told = True
        self._heading(report, rows, found)
        prefix = rows.text + self.MARK
        for trouble in troubles:
            label, colon, message = trouble.partition(":")
            style = "yellow" if report.failure and label != "damaged" else "bold red"
            say(f"{prefix}{self._page.paint(label + colon, style)}{message}")
        self._comparisons(report, rows.text)
        for profile in report.unpaired:
            say(f"{prefix}{self._configuration(profile)}")
            say(f"{prefix}{self._page.paint(*_NOT_COMPARED)} the target has no profile of it")
        for line in rows.links:
            say(line)
        self._page.out.flush()

    def pair(self, comparison: Comparison) -> None:
        """Two profiles that belong to no version."""
        self._tally.add_pair(comparison)
        self._comparison(comparison, "", "", among_others=False)

    def end(self) -> None:
        """How many changes of which kind; if nothing could be compared, that and why."""
        tally = self._tally
        if tally.compared or self._told:
            self._skipped()
        self._summary()
        if self._every or not tally.compared:
            return
        for method, (count, reason) in tally.not_applied.items():
            pairs = f"{plural(count, 'pair')}{', first' if count > 1 else ''}"
            self._page.say(f"'{method}' not applied to {pairs}: {one_line(reason)}")

    def _heading(self, report: VersionReport, rows: GraphRows, found: list[PerformanceChange]) -> None:
        """The line of the version: checksum, subject, how many changes."""
        paint, version = self._page.paint, report.version
        summary = "".join(f" {paint(mark, style)}" for mark, style in marks(found))
        told = f" [{summary[1:]}]" if summary else ""
        checksum = paint(version.checksum[:6], "yellow")
        self._page.say(f"{rows.commit}{checksum}: {one_line(version.subject)}{told}")

    def _skipped(self) -> None:
        if self._plain:
            text = f"({plural(self._plain, 'version')} without a profile)"
            self._page.say(self._plain_prefix + self._page.paint(text, "dim"))
        self._plain = 0

    def _comparisons(self, report: VersionReport, prefix: str) -> None:
        """The pairs of profiles of a version."""
        baseline = ""
        among_others = len(report.comparisons) > 1 or not self._page.single
        for comparison in report.comparisons:
            baseline = self._comparison(comparison, prefix, baseline, among_others=among_others)

    def _refusal(self, comparison: Comparison, prefix: str, *, among_others: bool) -> None:
        """That the pair was not compared, and why, where the summary does not tell that."""
        error = comparison.error
        if error is not None or (among_others and (self._every or comparison.baseline)):
            kind = _NOT_COMPARED if error is None else _failure(error)
            self._page.say(f"{prefix}{self.MARK}{self._configuration(comparison.target)}")
            self._page.say(f"{prefix}{self.MARK}{self._page.paint(*kind)} {one_line(comparison.reason)}")

    def _visible(self, changes: list[DegradationInfo]) -> list[DegradationInfo]:
        """The changes without No Change, unless that was asked for."""
        if self._page.verbose:
            return changes
        return [change for change in changes if change.result is not PerformanceChange.NoChange]

    def _configuration(self, target: ProfileInfo) -> str:
        """What was measured."""
        return f"collected by {units_of(target)} for cmd: '$ {command_of(target)}'"

    @abstractmethod
    def _comparison(self, comparison: Comparison, prefix: str, baseline: str, *, among_others: bool) -> str:
        """Print the two profiles and what was found.

        :param prefix: stands before each line. :param baseline: checksum of the baseline version that is
            named already.
        :param among_others: whether the summary alone would not tell why this pair was not compared.
        :return: the checksum of the baseline version that is named now.
        """

    @abstractmethod
    def _summary(self) -> None:
        """Print what was compared and found in all."""


def change_kind(found: list[PerformanceChange]) -> ChangeKind | None:
    """What a version with these changes is in the graph."""
    if any(map(is_worse, found)):
        return "degradation"
    if any(map(is_better, found)):
        return "optimization"
    return None


def _failure(error: PerunError) -> tuple[str, str]:
    return _DAMAGED if isinstance(error, ProfileError) else _FAILED


NAME_WIDTH: Final = max(map(len, NAMES.values()))


class Manual(VersionTree):
    """Two lines for each change that each method found, with the texts of the method."""

    MARK = "> "

    def _comparison(self, comparison: Comparison, prefix: str, baseline: str, *, among_others: bool) -> str:
        say, paint = self._page.say, self._page.paint
        if comparison.reason:
            self._refusal(comparison, prefix, among_others=among_others)
            return baseline
        shown = [
            result
            for result in comparison.results
            if self._visible(list(result.changes)) or (result.reason and self._every)
        ]
        if not (shown or comparison.incomplete or comparison.environment):
            return baseline
        version = comparison.baseline_version
        if version is not None and version.checksum != baseline:
            baseline = version.checksum
            say(prefix + paint(f"| * {version.checksum[:6]}: {one_line(version.subject)}", "dim"))
        say(f"{prefix}> {self._configuration(comparison.target)}")
        if comparison.incomplete:
            say(f"{prefix}> {paint('incomplete:', 'yellow')} {one_line(incomplete_of(comparison))}")
        if comparison.environment:
            label = paint("other conditions:", "yellow")
            say(f"{prefix}> {label} {one_line(conditions_of(comparison))}")
        for result in shown:
            self._result(result, prefix)
        for location, entry in comparison.acknowledged.items():
            note = f"{location} is {entry.text}"
            say(f"{prefix}> {paint('note:', 'dim')} {one_line(note)}")
        for note in comparison.notes:
            say(f"{prefix}> {paint('note:', 'dim')} {one_line(note)}")
        say(prefix.rstrip())
        return baseline

    def _result(self, result: MethodResult, prefix: str) -> None:
        if result.reason:
            label = self._page.paint("not applied:", "yellow")
            self._page.say(f"{prefix}> '{result.method}' method {label} {one_line(result.reason)}")
            return
        ignored = f" ({result.ignored} ignored)" if result.ignored else ""
        self._page.say(f"{prefix}> applying '{result.method}' method{ignored}")
        for change in sorted(self._visible(list(result.changes)), key=importance):
            self._change(change, prefix)

    def _change(self, change: DegradationInfo, prefix: str) -> None:
        say, paint = self._page.say, self._page.paint
        name = paint(NAMES[change.result].ljust(NAME_WIDTH), style_of(change.result))
        say(f"{prefix}- {name} at {paint(one_line(change.location), 'bold')}")
        before, after = (
            paint(one_line(value), "yellow") for value in (change.from_baseline, change.to_target)
        )
        size, confidence = factor_of(change), confidence_of(change)
        if percent_interval(change) is not None:
            size = f"{size}, {percent_of(change)}"
        size = f" ({size})" if size else ""
        confidence = f" (with {confidence})" if confidence else ""
        say(f"{prefix}  from: {before} -> to: {after}{size}{confidence}")
        if is_unconfirmed(change):
            say(f"{prefix}  {paint(MARKS['!?'], 'dim')}")
        if change.rule:
            say(f"{prefix}  {paint('why: ' + one_line(change.rule), 'dim')}")
        for part in parts_of(change):
            say(f"{prefix}  {paint(part, 'dim')}")

    def _summary(self) -> None:
        self._page.say(self._tally.marked_summary(self._page.paint))
