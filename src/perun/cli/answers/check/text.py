"""What changed, as people read it: a line for each series, the worst first, and what to call next.

The line form of the manual is :mod:`perun.cli.answers.check.manual`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from perun.cli.answers.changes import (
    MAX_WIDTH,
    aligned,
    certainty_of,
    counts_of,
    factor_of,
    importance,
    is_better,
    is_maybe,
    is_unconfirmed,
    is_worse,
    name_of,
    percent_of,
    sides_of,
    style_for,
)
from perun.cli.answers.check.manual import VersionTree
from perun.cli.answers.check.wording import (
    Page,
    command_of,
    conditions_of,
    deciding,
    details_of,
    incomplete_of,
    parts_of,
    quoted,
    series_of,
    units_of,
)
from perun.cli.table import one_line
from perun.core.wording import plural
from perun.history.acknowledged import Acknowledgement
from perun.history.check.report import Comparison, VersionReport, is_degradation
from perun.measurement.verdict import UNDECIDED
from perun.plugin.api import MinorVersion
from perun.profile.bounds import TYPE as BOUND
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.helpers import ProfileInfo
from perun.repository.lookup import identity

# The command that tells more of what a check found: its last line.

WITH_CALLS: Final = frozenset({"complexity", "instructions", "memory", "sample", "trace"})
"""Collectors whose profiles have call stacks, which a flame graph shows."""
_PYTHON: Final = re.compile(r"(?:\S*/)?(?:python[\d.]*|[^\s/]+\.py)(?:\s|$)")


class ExplainHint:
    """Keeps the most important change of all that is added, and says which command explains it."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._found: tuple[DegradationInfo, Comparison, MinorVersion | None] | None = None
        self._undecided: list[tuple[int, int, Comparison, MinorVersion]] = []

    def add(self, comparison: Comparison, version: MinorVersion | None) -> None:
        """Count in a pair of profiles, and the version of the target."""
        for change in comparison.places:
            if self._found is None or importance(change) < importance(self._found[0]):
                self._found = change, comparison, version

    def hide(self, comparison: Comparison, version: MinorVersion) -> None:
        """Count in what is not certain of a pair of profiles, and is not listed."""
        kinds = [change.result for change in comparison.places if change.result in UNDECIDED]
        if kinds:
            maybe = sum(map(is_maybe, kinds))
            self._undecided.append((maybe, len(kinds) - maybe, comparison, version))

    @property
    def hidden(self) -> str:
        """In how many pairs something is not listed that the tally has counted, and the command that decides
        on the most of it; empty if all is listed."""
        if not self._undecided:
            return ""
        *_, comparison, version = max(self._undecided, key=lambda one: one[:2])
        command = self._deciding(comparison, version)
        return f"undecided in {plural(len(self._undecided), 'pair')}" + (f"; {command}" if command else "")

    def _deciding(self, comparison: Comparison, version: MinorVersion) -> str:
        base = comparison.baseline_version
        if base is None or comparison.session is not None:
            return ""
        return deciding(comparison, (self._name(base, version), self._name(version, None)))

    @property
    def once(self) -> str:
        """That the most important change was seen once only, with the command that decides; empty if it was
        not."""
        if self._found is None or not is_unconfirmed(self._found[0]):
            return ""
        _, comparison, version = self._found
        command = self._deciding(comparison, version) if version else deciding(comparison, ())
        return f"unconfirmed: seen once; {command}"

    @property
    def command(self) -> str:
        """The line with the command; empty where nothing changed, or no command tells more.

        Of bounds, which nothing has measured, that is the list of the target. Of profiles with call stacks
        it is their flame graph, compared with the baseline. Of others a measurement side by side decides what
        is not certain; of what is, the functions of both versions are to be measured: their instructions, or
        where only the clock on the wall changed, their times. No collector measures the times of functions
        of Python.
        """
        if self._found is None:
            return ""
        change, comparison, version = self._found
        if comparison.session is not None or change.type == "incomplete":
            return ""
        if comparison.target.head.type == BOUND:
            return self._table(comparison, version)
        if comparison.target.head.collector in WITH_CALLS:
            return self._flamegraph(comparison, version)
        base = comparison.baseline_version
        if version is None or base is None:
            return ""
        names = self._name(base, version), self._name(version, None)
        if change.result in UNDECIDED:
            return "" if self._undecided else self._deciding(comparison, version)
        if not (is_worse(change.result) or is_better(change.result)):
            return ""
        if comparison.target.configuration.benchmark:
            return ""  # no collector runs it alone
        versions = [word for name in names for word in ("-m", name)]
        collector = ["trace" if _only_waits(change, comparison) else "instructions"]
        if _is_python(comparison.target.head.cmd):
            if collector == ["trace"]:
                return ""  # which sees the functions of the interpreter only
            collector.append("--python")
        options = comparison.target.configuration.options
        return f"why: {quoted(['perun', 'collect', *versions, *options, *collector])}"

    def _flamegraph(self, comparison: Comparison, version: MinorVersion | None) -> str:
        base = comparison.baseline_version
        if version is not None and base is not None and comparison.baseline is not None:
            target = f"{self._name(version, None)}:{_tag(comparison.target)}"
            baseline = f"{self._name(base, version)}:{_tag(comparison.baseline)}"
        elif self._page.profiles:
            baseline, target = self._page.profiles
        else:
            return ""
        return f"why: {quoted(['perun', 'show', target, 'flamegraph', '--diff', baseline])}"

    def _table(self, comparison: Comparison, version: MinorVersion | None) -> str:
        if version is not None:
            target = f"{self._name(version, None)}:{_tag(comparison.target)}"
        elif self._page.profiles:
            target = self._page.profiles[1]
        else:
            return ""
        return f"why: {quoted(['perun', 'show', target])}"

    def _name(self, version: MinorVersion, child: MinorVersion | None) -> str:
        """`HEAD`, or `HEAD~1` of the first parent of that, or the beginning of the checksum."""
        head = self._page.head
        if version.checksum == head:
            return "HEAD"
        if child is not None and child.checksum == head and child.parents[:1] == (version.checksum,):
            return "HEAD~1"
        return version.checksum[:10]


def _only_waits(change: DegradationInfo, comparison: Comparison) -> bool:
    """Whether the time that passed changed, but not that of the processor."""
    uid, real, _ = change.location.partition(" [real]")
    return bool(real) and f"{uid} [cpu]" not in {
        one.location for one in comparison.places if is_worse(one.result) == is_worse(change.result)
    }


def _is_python(command: str) -> bool:
    """Whether the name of the program is that of an interpreter or a script of Python."""
    return bool(_PYTHON.match(command))


def _tag(info: ProfileInfo) -> str:
    return f"{identity(info)}@i"


_NOTHING: Final = (3, 0, 0.0)
"""A key to sort by that comes after that of any change."""


class _Line(NamedTuple):
    """A change, and the method that found it where several were applied."""

    change: DegradationInfo
    method: str = ""
    remark: str = ""


class CheckText(VersionTree):
    """A table for each pair of profiles; with `verbose` also what did not change, and why it was decided.
    What is not certain is counted at the end, but that of two profiles or of a comparison made for this."""

    def __init__(self, page: Page) -> None:
        super().__init__(page)
        self._following = ExplainHint(page)

    def version(self, report: VersionReport) -> None:
        """One version of the tree, as :class:`VersionTree` prints it."""
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
        if once := self._following.once:
            self._page.say(once)
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
        told = "functions" in (comparison.session or {})
        if not (lines or refused or told or comparison.incomplete or comparison.environment):
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
        functions = (comparison.session or {}).get("functions") or {"judged": 1}
        asked = comparison.session is not None and functions["judged"] == 1
        asked |= comparison.session is None and comparison.baseline_version is None
        return asked or change not in UNDECIDED or is_degradation(change, self._page.level)

    def _table(self, lines: list[_Line], target: ProfileInfo, prefix: str) -> None:
        rows = [_cells(line, target) for line in lines]
        for line, cells in zip(lines, aligned(rows, MAX_WIDTH), strict=True):
            cells[0] = self._page.paint(cells[0], style_for(line.change))
            cells[1] = self._page.paint(cells[1], "bold")
            self._page.say(f"{prefix}{'  '.join(cells)}".rstrip())
            if self._page.verbose:
                for detail in (*details_of(line.change), *parts_of(line.change)):
                    self._page.say(f"{prefix}  {self._page.paint(detail, 'dim')}")

    def _summary(self) -> None:
        self._page.say(self._tally.summary(self._page.paint))


def _with_remark(line: _Line, acknowledged: Mapping[str, Acknowledgement]) -> _Line:
    return line._replace(remark=acknowledged[line.change.location].text)


def _worst(comparison: Comparison) -> tuple[int, int, float]:
    """A key to sort by: that of the most important change."""
    return min(map(importance, comparison.places), default=_NOTHING)


def _cells(line: _Line, target: ProfileInfo) -> tuple[str, ...]:
    change = line.change
    return (
        name_of(change),
        series_of(change, target),
        " -> ".join(sides_of(change)),
        percent_of(change),
        factor_of(change),
        counts_of(change),
        certainty_of(change),
        one_line(line.method),
        one_line(line.remark),
    )
