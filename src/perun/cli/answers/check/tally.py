"""What was compared and found in all: the last line of a check, and the summary of every format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from perun.cli.answers.changes import is_better, is_worse
from perun.cli.answers.check.page import plain
from perun.cli.answers.check.wording import incomplete_of, is_severe
from perun.cli.table import one_line
from perun.porcelain.check.report import Comparison, VersionReport
from perun.profile.changes import PerformanceChange
from perun.wording import plural


class Counts(NamedTuple):
    """How many changes there are of which kind; `severe` ones are among the degradations, too, and
    `inconclusive` ones, which are Unknown, among the `other` ones."""

    optimizations: int
    degradations: int
    severe: int
    other: int
    inconclusive: int


class Tally:
    """Counts what was compared and found."""

    def __init__(self) -> None:
        self.compared = 0
        self.same = 0
        """Configurations that needed no measuring, as both sides are the same."""
        self.ignored = 0
        self.acknowledged = 0
        self.unpaired = 0
        self.changes: Counter[PerformanceChange] = Counter()
        self.not_applied: dict[str, tuple[int, str]] = {}
        """Of each method that could not be applied: to how many pairs, and why to the first of them."""
        self.troubles: Counter[str] = Counter()
        """What is damaged or could not be measured, by message."""
        self.incomplete: Counter[str] = Counter()
        """What is incomplete of the pairs that have such a profile, and what that means."""
        self._reasons: Counter[str] = Counter()

    def add(self, report: VersionReport) -> None:
        """Count in a version."""
        if report.reason:
            self._reasons[report.reason] += 1
        self.unpaired += len(report.unpaired)
        self.troubles.update(troubles_of(report))
        for comparison in report.comparisons:
            self.add_pair(comparison)

    def add_pair(self, comparison: Comparison) -> None:
        """Count in a pair of profiles."""
        for result in comparison.results:
            self.ignored += result.ignored
            if result.reason:
                count, first = self.not_applied.get(result.method, (0, result.reason))
                self.not_applied[result.method] = count + 1, first
        if comparison.error is not None:
            self.troubles[one_line(comparison.error.message)] += 1
        if comparison.incomplete:
            self.incomplete[one_line(incomplete_of(comparison))] += 1
        reason = comparison.not_compared
        self.same += comparison.same
        if reason:
            self._reasons[one_line(reason)] += 1
        else:
            self.compared += 1
            places = comparison.places
            self.changes.update(change.result for change in places)
            self.acknowledged += sum(change.location in comparison.acknowledged for change in places)

    @property
    def counts(self) -> Counts:
        """How many changes of which kind were found."""
        kinds = list(self.changes.elements())
        better, worse = sum(map(is_better, kinds)), sum(map(is_worse, kinds))
        unknown = self.changes[PerformanceChange.Unknown]
        rest = len(kinds) - better - worse
        return Counts(better, worse, sum(map(is_severe, kinds)), rest, unknown)

    @property
    def nothing_compared(self) -> str:
        """That no pair was compared, and why; empty if one was, or needed not to be."""
        return "" if self.compared or self.same else f"nothing compared: {self._why}"

    @property
    def _why(self) -> str:
        reasons = [f"{reason} ({n}x)" if n > 1 else reason for reason, n in self._reasons.items()]
        return "; ".join(reasons) or "there is nothing to compare"

    def summary(self, paint: Callable[[str, str], str] = plain) -> str:
        """One line: how many pairs were compared and what was found, or why nothing could be compared.

        Only what there is is counted: `2 pairs of profiles compared: 1 degradation (1 severe), 1 unknown`.
        """
        return self._line(paint, self._found(paint))

    def marked_summary(self, paint: Callable[[str, str], str] = plain) -> str:
        """The same with the marks of the summaries of versions, `+`, `-` and `!!`: what scripts may parse."""
        return self._line(paint, self._marked(paint))

    def _line(self, paint: Callable[[str, str], str], parts: Iterator[str]) -> str:
        if not self.compared:
            label = paint("nothing compared", "yellow") if self.nothing_compared else "no change"
            return f"{label}: {self._why}"
        return f"{plural(self.compared, 'pair')} of profiles compared: {', '.join(parts)}"

    def _found(self, paint: Callable[[str, str], str]) -> Iterator[str]:
        counts = self.counts
        yield from self.words(paint)
        if counts.other > counts.inconclusive:
            yield f"{counts.other - counts.inconclusive} new or gone"
        if not self.changes.total():
            yield "no change"
        yield from self._rest()

    def words(self, paint: Callable[[str, str], str] = plain) -> Iterator[str]:
        """How many of the changes are certain, which way, and how many are not: `1 degradation (1 severe)`,
        `2 maybe`. Only what there is is counted."""
        counts = self.counts
        maybe = PerformanceChange.MaybeDegradation, PerformanceChange.MaybeOptimization
        may_be_worse, may_be_better = (self.changes[one] for one in maybe)
        worse, better = counts.degradations - may_be_worse, counts.optimizations - may_be_better
        if worse:
            severe = f" ({counts.severe} severe)" if counts.severe else ""
            yield paint(plural(worse, "degradation") + severe, "red")
        if better:
            yield paint(plural(better, "optimization"), "green")
        if may_be_worse + may_be_better:
            yield f"{may_be_worse + may_be_better} maybe"
        if counts.inconclusive:
            yield f"{counts.inconclusive} unknown"

    def _marked(self, paint: Callable[[str, str], str]) -> Iterator[str]:
        counts = self.counts
        if self.changes.total():
            yield paint(plural(counts.optimizations, "optimization") + "(+)", "green")
            yield paint(plural(counts.degradations, "degradation") + "(-)", "red")
        else:
            yield "no change"
        if counts.severe:
            yield paint(f"{counts.severe} of them severe(!!)", "bold red")
        if counts.inconclusive:
            yield f"{counts.inconclusive} inconclusive"
        if counts.other > counts.inconclusive:
            yield f"{counts.other - counts.inconclusive} new or gone"
        yield from self._rest()

    def _rest(self) -> Iterator[str]:
        if self.same:
            yield f"{self.same} the same on both sides"
        if self.acknowledged:
            yield f"{self.acknowledged} of them acknowledged"
        if self.ignored:
            yield f"{self.ignored} ignored"


def troubles_of(report: VersionReport) -> Iterator[str]:
    """What is damaged or could not be measured of the version itself."""
    if report.failure:
        yield f"not all profiles could be collected: {one_line(report.failure)}"
    for error in report.errors:
        if error.message not in report.failure:
            yield f"damaged: {one_line(error.message)}"
