"""The text that `perun check` answers with: the tree of versions with what changed (manual 8.2)."""

from __future__ import annotations

import re
from collections import Counter

from perun.cli.graph import Graph, Taint
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.porcelain.check import Comparison, MethodResult, VersionReport
from perun.profile.changes import DegradationInfo, PerformanceChange

NAMES = {
    change: re.sub("(?<=[a-z])(?=[A-Z])", " ", change.name).replace(" In ", " in ")
    for change in PerformanceChange
}
"""`Severe Degradation` for SevereDegradation: the names of the manual's 8.1."""
NAME_WIDTH = max(map(len, NAMES.values()))


def style_of(change: PerformanceChange) -> str:
    """Red for what got worse, green for what got better; what is certain is bold."""
    if change in (PerformanceChange.Unknown, PerformanceChange.NoChange):
        return "dim"
    if change in (PerformanceChange.NotInBaseline, PerformanceChange.NotInTarget):
        return "cyan"
    colour = "red" if change.value < 0 else "green"
    return colour if abs(change.value) == 1 else f"bold {colour}"


def is_worse(change: PerformanceChange) -> bool:
    """Whether it is a degradation of any kind."""
    return PerformanceChange.NotInBaseline.value < change.value < 0


def is_better(change: PerformanceChange) -> bool:
    """Whether it is an optimization of any kind."""
    return 0 < change.value < PerformanceChange.NotInTarget.value


class Tally:
    """Counts what was compared and found."""

    def __init__(self) -> None:
        self.compared = 0
        self.changes: Counter[PerformanceChange] = Counter()
        self._reasons: Counter[str] = Counter()

    def add(self, report: VersionReport) -> None:
        """Count in a version."""
        if report.reason:
            self._reasons[report.reason] += 1
        for comparison in report.comparisons:
            self.add_pair(comparison)

    def add_pair(self, comparison: Comparison) -> None:
        """Count in a pair of profiles."""
        if comparison.reason:
            self._reasons[comparison.reason] += 1
        else:
            self.compared += 1
            self.changes.update(change.result for change in comparison.changes)

    @property
    def nothing_compared(self) -> str:
        """That no pair was compared, and why; empty where one was."""
        if self.compared:
            return ""
        reasons = (f"{reason} ({n}x)" if n > 1 else reason for reason, n in self._reasons.items())
        return f"nothing compared: {'; '.join(reasons)}"


class Reporter:
    """Prints versions as they are checked, and counts what was found.

    :param single: only one version, or pair, is told of: also name each profile that was not compared.
    """

    def __init__(self, session: Session, *, single: bool = False) -> None:
        self._session = session
        self._single = single
        self._every = single or session.verbosity > 0
        self._graph = Graph(paint=session.paint)
        self._tally = Tally()
        self._plain = 0
        self._plain_prefix = ""
        self._told = False

    def version(self, report: VersionReport) -> None:
        """One version of the tree with its comparisons; a run of versions without profiles is one line."""
        version = report.version
        found = [change.result for comparison in report.comparisons for change in comparison.changes]
        rows = self._graph.commit(version.checksum, version.parents, _taint(found))
        self._tally.add(report)
        if report.reason and not report.failure and self._graph.straight and not (rows.links or self._every):
            self._plain_prefix = self._plain_prefix if self._plain else rows.text
            self._plain += 1
            return
        self._skipped()
        self._told = True
        checksum = self._session.paint(version.checksum[:6], "yellow")
        self._session.say(f"{rows.commit}{checksum}: {one_line(version.subject)}")
        if report.failure:
            label = self._session.paint("not all profiles could be collected:", "yellow")
            self._session.say(f"{rows.text}> {label} {one_line(report.failure)}")
        baseline = ""
        for comparison in report.comparisons:
            among_others = len(report.comparisons) > 1 or not self._single
            baseline = self._comparison(comparison, rows.text, baseline, among_others=among_others)
        for line in rows.links:
            self._session.say(line)

    def comparison(self, comparison: Comparison) -> None:
        """Two profiles that belong to no version."""
        self._tally.add_pair(comparison)
        self._comparison(comparison, "", "", among_others=False)

    def _skipped(self) -> None:
        if self._plain:
            text = f"({self._plain} version{'s' * (self._plain > 1)} without a profile)"
            self._session.say(self._plain_prefix + self._session.paint(text, "dim"))
        self._plain = 0

    def _comparison(self, comparison: Comparison, prefix: str, baseline: str, *, among_others: bool) -> str:
        """The two profiles, the methods, and what each found; the baseline version that is named now.

        :param baseline: checksum of the baseline version that is named already.
        :param among_others: whether the summary alone would not tell why this pair was not compared.
        """
        say = self._session.say
        target = comparison.target
        units = "+".join((target.collector, *target.postprocessors))
        command = " ".join(part for part in (target.cmd, target.args, target.workload) if part)
        heading = f"{prefix}> collected by {one_line(units)} for cmd: '$ {one_line(command)}'"
        if comparison.reason:
            if among_others and (self._every or comparison.baseline):
                say(heading)
                say(f"{prefix}> {self._session.paint('not compared:', 'yellow')} {comparison.reason}")
            return baseline
        shown = [result for result in comparison.results if self._visible(result)]
        if not shown:
            return baseline
        version = comparison.baseline_version
        if version is not None and version.checksum != baseline:
            baseline = version.checksum
            say(
                prefix
                + self._session.paint(f"| * {version.checksum[:6]}: {one_line(version.subject)}", "dim")
            )
        say(heading)
        for result in shown:
            say(f"{prefix}> applying '{result.method}' method")
            for change in sorted(self._visible(result), key=_importance):
                self._change(change, prefix)
        say(prefix.rstrip())
        return baseline

    def _visible(self, result: MethodResult) -> list[DegradationInfo]:
        if self._session.verbosity:
            return list(result.changes)
        return [change for change in result.changes if change.result is not PerformanceChange.NoChange]

    def _change(self, change: DegradationInfo, prefix: str) -> None:
        say, paint = self._session.say, self._session.paint
        name = paint(NAMES[change.result].ljust(NAME_WIDTH), style_of(change.result))
        say(f"{prefix}- {name} at {paint(one_line(change.location), 'bold')}")
        values = [paint(one_line(value), "yellow") for value in (change.from_baseline, change.to_target)]
        rate = ""
        if change.type == "ratio" and change.rate_degradation:
            rate = f" ({change.rate_degradation:.3g}x)"
        confidence = ""
        if change.confidence_type != "no":
            confidence = f" (with confidence {change.confidence_type} = {change.confidence_rate:g})"
        say(f"{prefix}  from: {values[0]} -> to: {values[1]}{rate}{confidence}")

    def summary(self) -> None:
        """How many changes of which kind; where nothing could be compared, that and why."""
        compared = self._tally.compared
        if compared or self._told:
            self._skipped()
        if not compared:
            label, colon, reasons = self._tally.nothing_compared.partition(":")
            self._session.say(self._session.paint(label, "yellow") + colon + reasons)
            return
        pairs = f"{compared} pair{'s' * (compared != 1)} of profiles compared"
        self._session.say(f"{pairs}: {self._counts() or 'no change'}")

    def _counts(self) -> str:
        kinds = list(self._tally.changes.elements())
        if not kinds:
            return ""
        better, worse = sum(map(is_better, kinds)), sum(map(is_worse, kinds))
        parts = [
            self._session.paint(f"{better} optimization{'s' * (better != 1)}(+)", "green"),
            self._session.paint(f"{worse} degradation{'s' * (worse != 1)}(-)", "red"),
        ]
        if other := len(kinds) - better - worse:
            parts.append(f"{other} new, gone or unknown")
        return ", ".join(parts)


def _importance(change: DegradationInfo) -> tuple[int, int]:
    """What got worse comes first, then what got better, then the rest; severe changes before mild ones."""
    kind = change.result
    return (0 if is_worse(kind) else 1 if is_better(kind) else 2, -abs(kind.value))


def _taint(found: list[PerformanceChange]) -> Taint | None:
    if any(map(is_worse, found)):
        return "degradation"
    if any(map(is_better, found)):
        return "optimization"
    return None
