"""The text that `perun check` answers with: the tree of versions with what changed (manual 8.2)."""

from __future__ import annotations

from collections import Counter

from perun.cli.graph import Graph, Taint
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.porcelain.check import Comparison, MethodResult, VersionReport
from perun.profile.changes import DegradationInfo, PerformanceChange

NAMES = {change: "".join(" " + c if c.isupper() else c for c in change.name).strip() for change in PerformanceChange}
"""`Severe Degradation` for SevereDegradation: the names of the manual's 8.1."""


def style_of(change: PerformanceChange) -> str:
    """Red for what got worse, green for what got better; what is certain is bold."""
    if change in (PerformanceChange.Unknown, PerformanceChange.NoChange):
        return "dim"
    if change in (PerformanceChange.NotInBaseline, PerformanceChange.NotInTarget):
        return "cyan"
    colour = "red" if change.value < 0 else "green"
    return colour if abs(change.value) == 1 else f"bold {colour}"


class Reporter:
    """Prints versions as they are checked, and counts what was found."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._graph = Graph(paint=session.paint)
        self._changes: Counter[PerformanceChange] = Counter()
        self._reasons: Counter[str] = Counter()
        self._compared = 0
        self._plain = 0

    def version(self, report: VersionReport) -> None:
        """One version of the tree with its comparisons; runs of versions without profiles are counted only."""
        version = report.version
        found = [change.result for comparison in report.comparisons for change in comparison.changes]
        rows = self._graph.commit(version.checksum, version.parents, _taint(found))
        if not report.comparisons and self._graph.straight and not rows.links and not self._session.verbosity:
            self._plain += 1
            self._reasons[report.reason] += 1
            return
        self._skipped(rows.text)
        checksum = self._session.paint(version.checksum[:6], "yellow")
        self._session.say(f"{rows.commit}{checksum}: {one_line(version.subject)}")
        for comparison in report.comparisons:
            self.comparison(comparison, rows.text)
        if not report.comparisons:
            self._reasons[report.reason] += 1
        for line in rows.links:
            self._session.say(line)

    def _skipped(self, prefix: str) -> None:
        if self._plain:
            word = "version" if self._plain == 1 else "versions"
            self._session.say(prefix + self._session.paint(f"({self._plain} {word} without a profile)", "dim"))
        self._plain = 0

    def comparison(self, comparison: Comparison, prefix: str) -> None:
        """The two profiles, the methods, and what each of them found."""
        say, paint = self._session.say, self._session.paint
        target = comparison.target
        units = "+".join((target.collector, *target.postprocessors))
        command = " ".join(part for part in (target.cmd, target.args, target.workload) if part)
        against = ""
        if comparison.baseline_version:
            against = f" against {comparison.baseline_version.checksum[:6]}"
        if comparison.reason:
            self._reasons[comparison.reason] += 1
            if self._session.verbosity or comparison.baseline:
                say(f"{prefix}> {one_line(units)} of '$ {one_line(command)}': nothing compared: {comparison.reason}")
            return
        self._compared += 1
        shown = [result for result in comparison.results if self._visible(result)]
        for result in comparison.results:
            self._changes.update(change.result for change in result.changes)
        if not shown:
            return
        say(f"{prefix}> collected by {one_line(units)} for cmd: '$ {one_line(command)}'{against}")
        for result in shown:
            say(f"{prefix}> applying '{result.method}' method")
            for change in sorted(self._visible(result), key=lambda one: one.result.value):
                self._change(change, prefix)
        say(prefix.rstrip())

    def _visible(self, result: MethodResult) -> list[DegradationInfo]:
        if self._session.verbosity:
            return list(result.changes)
        return [change for change in result.changes if change.result is not PerformanceChange.NoChange]

    def _change(self, change: DegradationInfo, prefix: str) -> None:
        say, paint = self._session.say, self._session.paint
        name = paint(NAMES[change.result].ljust(19), style_of(change.result))
        say(f"{prefix}- {name} at {paint(one_line(change.location), 'bold')}")
        confidence = ""
        if change.confidence_type != "no":
            confidence = f" (with confidence {change.confidence_type} = {change.confidence_rate:g})"
        ratio = f" ({change.rate_degradation:.3g}x)" if change.type == "ratio" and change.rate_degradation else ""
        say(
            f"{prefix}    from: {paint(one_line(change.from_baseline), 'yellow')}"
            f" -> to: {paint(one_line(change.to_target), 'yellow')}{ratio}{confidence}"
        )

    def summary(self) -> None:
        """How many changes of which kind; where nothing could be compared, that and why."""
        self._skipped("")
        say, paint = self._session.say, self._session.paint
        if not self._compared:
            reasons = "; ".join(f"{reason} ({count}x)" if count > 1 else reason for reason, count in self._reasons.items())
            say(paint("nothing compared", "yellow") + (f": {reasons}" if reasons else ""))
            return
        pairs = f"{self._compared} pair{'s' * (self._compared != 1)} of profiles compared"
        changed = {kind: count for kind, count in self._changes.items() if kind is not PerformanceChange.NoChange}
        if not changed:
            say(f"{pairs}: no change")
            return
        worse = sum(count for kind, count in changed.items() if -5 < kind.value < 0)
        better = sum(count for kind, count in changed.items() if 0 < kind.value < 5)
        parts = [
            paint(f"{better} optimization{'s' * (better != 1)}(+)", "green"),
            paint(f"{worse} degradation{'s' * (worse != 1)}(-)", "red"),
        ]
        other = sum(changed.values()) - worse - better
        if other:
            parts.append(f"{other} new, gone or unknown")
        say(f"{pairs}: " + ", ".join(parts))


def _taint(found: list[PerformanceChange]) -> Taint | None:
    if any(-5 < change.value < 0 for change in found):
        return "degradation"
    if any(0 < change.value < 5 for change in found):
        return "optimization"
    return None
