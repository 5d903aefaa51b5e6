"""The tree of versions with what changed, as text (manual 8.2)."""

from __future__ import annotations

from perun.cli.answers.check.page import Page
from perun.cli.answers.check.tally import Tally, troubles_of
from perun.cli.answers.check.wording import (
    NAMES,
    command_of,
    conditions_of,
    confidence_of,
    importance,
    incomplete_of,
    is_better,
    is_worse,
    marks,
    parts_of,
    plural,
    size_of,
    style_of,
    units_of,
)
from perun.cli.graph import ChangeKind, Graph
from perun.cli.table import one_line
from perun.errors import PerunError, ProfileError
from perun.porcelain.check.report import Comparison, MethodResult, VersionReport
from perun.profile.changes import DegradationInfo, PerformanceChange

NAME_WIDTH = max(map(len, NAMES.values()))
_NOT_COMPARED = ("not compared:", "yellow")
_DAMAGED = ("damaged:", "bold red")
_FAILED = ("failed:", "bold red")


class Text:
    """Prints versions as they are checked. Of a single one also each profile that was not compared, and each
    method that could not be applied, is named; of a history they are counted, as they repeat."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._every = page.single or page.verbose
        self._graph = Graph(paint=page.paint)
        self._tally = Tally()
        self._plain = 0
        self._plain_prefix = ""
        self._told = False

    def version(self, report: VersionReport) -> None:
        """One version of the tree with its comparisons; a run of versions without profiles is one line."""
        say, paint = self._page.say, self._page.paint
        version = report.version
        found = [change.result for comparison in report.comparisons for change in comparison.changes]
        rows = self._graph.commit(version.checksum, version.parents, _change_kind(found))
        self._tally.add(report)
        troubles = list(dict.fromkeys(troubles_of(report)))
        if report.reason and not troubles and self._graph.straight and not (rows.links or self._every):
            self._plain_prefix = self._plain_prefix if self._plain else rows.text
            self._plain += 1
            return
        self._skipped()
        self._told = True
        summary = "".join(f" {paint(mark, style)}" for mark, style in marks(found))
        checksum = paint(version.checksum[:6], "yellow")
        say(
            f"{rows.commit}{checksum}: {one_line(version.subject)}" + (f" [{summary[1:]}]" if summary else "")
        )
        for trouble in troubles:
            label, colon, message = trouble.partition(":")
            style = "yellow" if report.failure and label != "damaged" else "bold red"
            say(f"{rows.text}> {paint(label + colon, style)}{message}")
        baseline = ""
        for comparison in report.comparisons:
            among_others = len(report.comparisons) > 1 or not self._page.single
            baseline = self._comparison(comparison, rows.text, baseline, among_others=among_others)
        for profile in report.unpaired:
            say(f"{rows.text}> {_heading(units_of(profile), command_of(profile))}")
            say(f"{rows.text}> {paint('not compared:', 'yellow')} the target has no profile of it")
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
        self._page.say(tally.summary(self._page.paint))
        if self._every or not tally.compared:
            return
        for method, (count, reason) in tally.not_applied.items():
            pairs = f"{plural(count, 'pair')}{', first' if count > 1 else ''}"
            self._page.say(f"'{method}' not applied to {pairs}: {one_line(reason)}")

    def _skipped(self) -> None:
        if self._plain:
            text = f"({plural(self._plain, 'version')} without a profile)"
            self._page.say(self._plain_prefix + self._page.paint(text, "dim"))
        self._plain = 0

    def _comparison(self, comparison: Comparison, prefix: str, baseline: str, *, among_others: bool) -> str:
        """The two profiles, the methods, and what each found; the baseline version that is named now.

        :param baseline: checksum of the baseline version that is named already.
        :param among_others: whether the summary alone would not tell why this pair was not compared.
        """
        say, paint = self._page.say, self._page.paint
        heading = f"{prefix}> {_heading(units_of(comparison.target), command_of(comparison.target))}"
        if comparison.reason:
            error = comparison.error
            if error is not None or (among_others and (self._every or comparison.baseline)):
                kind = _NOT_COMPARED if error is None else _failure(error)
                say(heading)
                say(f"{prefix}> {paint(*kind)} {one_line(comparison.reason)}")
            return baseline
        shown = [result for result in comparison.results if self._visible(result) or self._refused(result)]
        if not (shown or comparison.incomplete or comparison.environment):
            return baseline
        version = comparison.baseline_version
        if version is not None and version.checksum != baseline:
            baseline = version.checksum
            say(prefix + paint(f"| * {version.checksum[:6]}: {one_line(version.subject)}", "dim"))
        say(heading)
        if comparison.incomplete:
            say(f"{prefix}> {paint('incomplete:', 'yellow')} {one_line(incomplete_of(comparison))}")
        if comparison.environment:
            label = paint("other conditions:", "yellow")
            say(f"{prefix}> {label} {one_line(conditions_of(comparison))}")
        for result in shown:
            self._result(result, prefix)
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
        for change in sorted(self._visible(result), key=importance):
            self._change(change, prefix)

    def _visible(self, result: MethodResult) -> list[DegradationInfo]:
        if self._page.verbose:
            return list(result.changes)
        return [change for change in result.changes if change.result is not PerformanceChange.NoChange]

    def _refused(self, result: MethodResult) -> bool:
        return bool(result.reason) and self._every

    def _change(self, change: DegradationInfo, prefix: str) -> None:
        say, paint = self._page.say, self._page.paint
        name = paint(NAMES[change.result].ljust(NAME_WIDTH), style_of(change.result))
        say(f"{prefix}- {name} at {paint(one_line(change.location), 'bold')}")
        before, after = (
            paint(one_line(value), "yellow") for value in (change.from_baseline, change.to_target)
        )
        size, confidence = size_of(change), confidence_of(change)
        size = f" ({size})" if size else ""
        confidence = f" (with {confidence})" if confidence else ""
        say(f"{prefix}  from: {before} -> to: {after}{size}{confidence}")
        if change.rule:
            say(f"{prefix}  {paint('why: ' + one_line(change.rule), 'dim')}")
        for part in parts_of(change):
            say(f"{prefix}  {paint(part, 'dim')}")


def _failure(error: PerunError) -> tuple[str, str]:
    return _DAMAGED if isinstance(error, ProfileError) else _FAILED


def _heading(units: str, command: str) -> str:
    return f"collected by {units} for cmd: '$ {command}'"


def _change_kind(found: list[PerformanceChange]) -> ChangeKind | None:
    if any(map(is_worse, found)):
        return "degradation"
    if any(map(is_better, found)):
        return "optimization"
    return None
