"""The words that the formats share: how large a change is, how sure the check is, what was compared."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, TextIO

from perun.cli.answers.changes import (
    NAMES,
    factor_of,
    is_better,
    is_unconfirmed,
    is_worse,
    percent_interval,
    percent_of,
    sides_of,
)
from perun.cli.table import one_line
from perun.core.wording import plural
from perun.history.check.report import Comparison, VersionReport, is_degradation
from perun.profile.amounts import factor, percent
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.helpers import ProfileInfo

MAX_PARTS: Final = 5
"""Parts of a change that an answer lists at most."""


def is_severe(change: PerformanceChange) -> bool:
    """Whether it is a degradation that is certain and large, or one of the program as a whole."""
    return is_degradation(change, "severe")


def size_of(change: DegradationInfo) -> str:
    """How large the change is: `+376 % [+300, +460] (4.76x)`, or of what has no ratio `order +2`; empty if
    unknown."""
    times, share = factor_of(change), percent_of(change)
    return f"{share} ({times})" if share else times


def confidence_of(change: DegradationInfo) -> str:
    """How sure the check is beyond what :func:`size_of` says, e.g. `p = 0.004, 10 and 10 measurements, could
    show 1.05x`; may be empty."""
    parts = []
    if change.confidence_type not in ("", "no") and change.confidence_type != "p_value":
        parts.append(f"confidence {one_line(change.confidence_type)} = {change.confidence_rate:.4g}")
    low, high = change.interval or (0, math.inf)
    if percent_interval(change) is None and (low > 0 or high < math.inf):
        parts.append(f"interval {low:.3g} to {high:.3g}")
    if change.p_value is not None:
        parts.append(f"p = {change.p_value:.2g}" if change.p_value >= 0.0001 else "p < 0.0001")
    if change.sizes is not None and any(change.sizes):
        old, new = change.sizes
        parts.append(f"{old} and {plural(new, 'measurement')}")
    if change.detectable is not None and change.p_value is not None and math.isfinite(change.detectable):
        parts.append(f"could show {factor(change.detectable)}")
    return ", ".join(parts)


def parts_of(change: DegradationInfo) -> list[str]:
    """The parts of the independent variable that changed: `where it is 26 to 100: Degradation +58.0 %`."""
    parts = change.partial_intervals
    lines = [
        f"where it is {start:.4g} to {end:.4g}: {NAMES[kind]} {percent(rate)}".rstrip()
        for kind, rate, start, end in parts[:MAX_PARTS]
    ]
    left = len(parts) - len(lines)
    return [*lines, f"and {plural(left, 'part')} more"] if left else lines


def details_of(change: DegradationInfo) -> list[str]:
    """How sure the check is beyond what the table says, and the rule that decided."""
    parts = []
    if change.interval is not None and percent_interval(change) is None:
        parts.append("interval {:.3g} to {:.3g}".format(*change.interval))
    if change.p_value is not None:
        parts.append(f"p = {change.p_value:.2g}" if change.p_value >= 0.0001 else "p < 0.0001")
    if change.detectable is not None and change.p_value is not None and math.isfinite(change.detectable):
        parts.append(f"could show {percent(change.detectable - 1)}")
    return [*filter(None, (", ".join(parts), one_line(change.rule)))]


def series_of(change: DegradationInfo, target: ProfileInfo) -> str:
    """The location of a change below the command that was measured: `cpu` for `./prog [cpu]`."""
    location = one_line(change.location)
    start = f"{one_line(target.head.cmd)} ["
    return location[len(start) : -1] if location.startswith(start) and location.endswith("]") else location


def values_of(change: DegradationInfo, once: str = "") -> str:
    """`from 1.50 s to 3.10 s, +107 % (2.07x), confidence r_square = 0.98`, and the rule that decided if it is
    known.

    :param once: as of :func:`once_of`.
    """
    before, after = sides_of(change)
    size, confidence = size_of(change), confidence_of(change)
    text = ", ".join(filter(None, (f"from {before} to {after}", size, confidence)))
    return "; ".join(filter(None, (text, one_line(change.rule), once)))


def once_of(change: DegradationInfo, comparison: Comparison, minor: str) -> str:
    """Of what was seen once only, that it was, and the command that decides; empty of anything else.

    :param minor: the version of the target; empty where it has none.
    """
    if not is_unconfirmed(change):
        return ""
    base = comparison.baseline_version
    versions = (base.checksum[:10], minor[:10]) if base is not None and minor else ()
    return f"seen once; {deciding(comparison, versions)}"


def deciding(comparison: Comparison, versions: Sequence[str]) -> str:
    """`to decide: perun compare HEAD~1 HEAD -c ./prog`.

    :param versions: of baseline and target; none where they are not known.
    """
    words = ["perun", "compare", *versions, *(comparison.target.configuration.options if versions else ())]
    return f"to decide: {quoted(words)}"


def quoted(words: Sequence[str]) -> str:
    """The words for a shell. `HEAD~1` needs no quotes: a tilde stands for a folder at a beginning only."""
    bare = re.compile(r"[\w@%+=:,./-][\w@%+=:,./~-]*", re.ASCII)
    return one_line(" ".join(word if bare.fullmatch(word) else shlex.quote(word) for word in words))


def units_of(target: ProfileInfo) -> str:
    """The collector and the postprocessors: `complexity+regression_analysis`."""
    return one_line("+".join((target.head.collector, *target.head.postprocessors)))


def command_of(target: ProfileInfo) -> str:
    """The measured command with its arguments and workload."""
    head = target.head
    return one_line(" ".join(part for part in (head.cmd, head.args, head.workload) if part))


def incomplete_of(comparison: Comparison) -> str:
    """Which profile is incomplete, and what that means for what was found."""
    if any(change.type == "incomplete" for change in comparison.changes):
        return f"{comparison.incomplete}; measure it again, or compare nevertheless with --force"
    return f"{comparison.incomplete}; compared nevertheless, as --force asks for"


def conditions_of(comparison: Comparison) -> str:
    """What differs of the conditions under which both profiles were measured, and what that means."""
    if any(change.type == "environment" for change in comparison.changes):
        return f"{comparison.environment}; measure both here, or compare nevertheless with --force"
    return f"{comparison.environment}; compared nevertheless, as --force asks for"


def marks(kinds: Iterable[PerformanceChange]) -> list[tuple[str, str]]:
    """The summary of a commit with the style of each part: `+1`, `-2`, and `!!1` for the severe ones."""
    all_kinds = list(kinds)
    counts = (
        ("+", sum(map(is_better, all_kinds)), "green"),
        ("-", sum(map(is_worse, all_kinds)), "red"),
        ("!!", sum(map(is_severe, all_kinds)), "bold red"),
    )
    return [(f"{mark}{count}", style) for mark, count, style in counts if count]


# The page that an answer of `perun check` is written on, and the interface of its formats.


def plain(text: str, style: str) -> str:
    """The text without a colour."""
    return text


def unknown(method: str) -> str:
    """No description of the method."""
    return ""


def nowhere(minor: str, comparison: Comparison, change: DegradationInfo) -> None:
    """Of no change it is known where it is."""


class Page(NamedTuple):
    """Where an answer is written to, and how.

    :param command: the command behind `perun` that asks again, e.g. `check head`.
    :param paint: gives a text a colour.
    :param verbose: whether the answer includes No Change.
    :param single: whether the answer has only one version or pair.
    :param level: the degradations that are failures, a value of `--fail-on`.
    :param describe: one line on a method, by its name.
    :param head: the checksum of the current version; empty where there is none.
    :param profiles: baseline and target as the user named them, where these are compared.
    :param place: by version the file and line of what a change of a comparison is about; None where it is not
        known.
    """

    out: TextIO
    command: str = "check"
    paint: Callable[[str, str], str] = plain
    verbose: bool = False
    single: bool = False
    level: str = "degradation"
    describe: Callable[[str], str] = unknown
    head: str = ""
    profiles: tuple[str, str] | None = None
    place: Callable[[str, Comparison, DegradationInfo], tuple[str, int] | None] = nowhere

    def say(self, text: str = "") -> None:
        """One line."""
        self.out.write(text + "\n")


class CheckAnswer(Protocol):
    """Gets versions, or pairs of profiles that belong to none, as they are checked; then the end.

    An answer does not keep them: its memory does not grow with the history.
    """

    def version(self, report: VersionReport) -> None:
        """The next version, newest first."""

    def pair(self, comparison: Comparison) -> None:
        """Two profiles that belong to no version."""

    def end(self) -> None:
        """The check is complete."""


# What was compared and found in all: the last line of a check, and the summary of every format.


class Counts(NamedTuple):
    """How many changes there are of which kind; `severe` ones are among the degradations, too, and
    `inconclusive` ones, which are Unknown, among the `other` ones."""

    optimizations: int
    degradations: int
    severe: int
    other: int
    inconclusive: int


class CheckTally:
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
