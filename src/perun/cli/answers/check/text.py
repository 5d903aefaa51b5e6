"""What changed, as people read it: a line for each series, the worst first, and what to call next.

The line form of the manual is :mod:`perun.cli.answers.check.manual`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from perun.cli.answers.changes import (
    MAX_WIDTH,
    NAMES,
    aligned,
    certainty_of,
    counts_of,
    factor_of,
    importance,
    percent_of,
    sides_of,
    style_of,
)
from perun.cli.answers.check.following import Following
from perun.cli.answers.check.page import Page
from perun.cli.answers.check.tree import Tree
from perun.cli.answers.check.wording import (
    command_of,
    conditions_of,
    details_of,
    incomplete_of,
    parts_of,
    series_of,
    units_of,
)
from perun.cli.table import one_line
from perun.measurement.verdict import UNDECIDED
from perun.porcelain.acknowledged import Entry
from perun.porcelain.check.report import Comparison, VersionReport, is_degradation
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.helpers import ProfileInfo

_NOTHING: Final = (3, 0, 0.0)
"""A key to sort by that comes after that of any change."""


class _Line(NamedTuple):
    """A change, and the method that found it where several were applied."""

    change: DegradationInfo
    method: str = ""
    remark: str = ""


class Text(Tree):
    """A table for each pair of profiles; with `verbose` also what did not change, and why it was decided.
    What is not certain is counted at the end, but that of two profiles or of a comparison made for this."""

    def __init__(self, page: Page) -> None:
        super().__init__(page)
        self._following = Following(page)

    def version(self, report: VersionReport) -> None:
        """One version of the tree, as :class:`Tree` prints it."""
        super().version(report)
        for comparison in report.comparisons:
            self._following.add(comparison, report.version)
            if not self._page.verbose and comparison.session is None:
                self._following.hide(comparison, report.version)

    def pair(self, comparison: Comparison) -> None:
        """Two profiles that belong to no version."""
        super().pair(comparison)
        self._following.add(comparison, None)

    def end(self) -> None:
        """The tally, what is not listed, and the command that tells more."""
        super().end()
        if hidden := self._following.hidden:
            self._page.say(self._page.paint(f"{hidden}; list them with: -v", "dim"))
        if command := self._following.command:
            self._page.say(command)

    def _comparisons(self, report: VersionReport, prefix: str) -> None:
        among_others = len(report.comparisons) > 1 or not self._page.single
        for comparison in sorted(report.comparisons, key=_worst):
            self._comparison(comparison, prefix, "", among_others=among_others)

    def _configuration(self, target: ProfileInfo) -> str:
        command, units = self._page.paint(command_of(target), "bold"), units_of(target)
        return f"{command} ({units})" if units else command

    def _comparison(self, comparison: Comparison, prefix: str, baseline: str, *, among_others: bool) -> str:
        say, paint = self._page.say, self._page.paint
        if comparison.reason:
            self._refusal(comparison, prefix, among_others=among_others)
            return baseline
        lines = self._lines(comparison)
        refused = [result for result in comparison.results if result.reason and self._every]
        if not (lines or refused or comparison.incomplete or comparison.environment):
            return baseline
        say(f"{prefix}{self._configuration(comparison.target)}{self._against(comparison)}")
        prefix += "  "
        if comparison.incomplete:
            say(f"{prefix}{paint('incomplete:', 'yellow')} {one_line(incomplete_of(comparison))}")
        if comparison.environment:
            say(f"{prefix}{paint('other conditions:', 'yellow')} {one_line(conditions_of(comparison))}")
        self._table(lines, comparison.target, prefix)
        ignored = sum(result.ignored for result in comparison.results)
        if ignored:
            say(f"{prefix}{ignored} ignored")
        for result in refused:
            label = paint("not applied:", "yellow")
            say(f"{prefix}{one_line(result.method)} {label} {one_line(result.reason)}")
        for note in comparison.notes:
            say(f"{prefix}{paint('note:', 'dim')} {one_line(note)}")
        return baseline

    def _against(self, comparison: Comparison) -> str:
        """The version of the baseline; of two profiles that belong to none, both names."""
        version, baseline = comparison.baseline_version, comparison.baseline
        if version is not None:
            text = f", against {version.checksum[:6]}: {version.subject}"
        elif baseline is not None:
            text = f", {comparison.target.source} against {baseline.source}"
        else:
            return ""
        return self._page.paint(one_line(text), "dim")

    def _lines(self, comparison: Comparison) -> list[_Line]:
        """What was found, each place once by the worst that a method says of it; the worst first."""
        if self._page.verbose:
            found = [
                _Line(change, result.method) for result in comparison.results for change in result.changes
            ]
        else:
            methods = {id(change): one.method for one in comparison.results for change in one.changes}
            found = [
                _Line(change, methods[id(change)])
                for change in comparison.places
                if self._tells(comparison, change.result)
            ]
        if len({line.method for line in found}) == 1:
            found = [line._replace(method="") for line in found]
        known = comparison.acknowledged
        found = [_with_remark(line, known) if line.change.location in known else line for line in found]
        return sorted(found, key=lambda line: importance(line.change))

    def _tells(self, comparison: Comparison, change: PerformanceChange) -> bool:
        """Whether it is listed: what is certain or a failure, and all of what the user named or measured."""
        asked = comparison.session is not None or comparison.baseline_version is None
        return asked or change not in UNDECIDED or is_degradation(change, self._page.level)

    def _table(self, lines: list[_Line], target: ProfileInfo, prefix: str) -> None:
        rows = [_cells(line, target) for line in lines]
        for line, cells in zip(lines, aligned(rows, MAX_WIDTH), strict=True):
            cells[0] = self._page.paint(cells[0], style_of(line.change.result))
            cells[1] = self._page.paint(cells[1], "bold")
            self._page.say(f"{prefix}{'  '.join(cells)}".rstrip())
            if self._page.verbose:
                for detail in (*details_of(line.change), *parts_of(line.change)):
                    self._page.say(f"{prefix}  {self._page.paint(detail, 'dim')}")

    def _summary(self) -> None:
        self._page.say(self._tally.summary(self._page.paint))


def _with_remark(line: _Line, acknowledged: Mapping[str, Entry]) -> _Line:
    return line._replace(remark=acknowledged[line.change.location].text)


def _worst(comparison: Comparison) -> tuple[int, int, float]:
    """A key to sort by: that of the most important change."""
    return min(map(importance, comparison.places), default=_NOTHING)


def _cells(line: _Line, target: ProfileInfo) -> tuple[str, ...]:
    change = line.change
    return (
        NAMES[change.result],
        series_of(change, target),
        " -> ".join(sides_of(change)),
        percent_of(change),
        factor_of(change),
        counts_of(change),
        certainty_of(change),
        one_line(line.method),
        one_line(line.remark),
    )
