"""The tree of versions with what changed, in the lines of the manual's 8.2, which scripts may parse."""

from __future__ import annotations

from typing import Final

from perun.cli.answers.changes import (
    NAMES,
    factor_of,
    importance,
    percent_interval,
    percent_of,
    style_of,
)
from perun.cli.answers.check.tree import Tree
from perun.cli.answers.check.wording import conditions_of, confidence_of, incomplete_of, parts_of
from perun.cli.table import one_line
from perun.porcelain.check.report import Comparison, MethodResult
from perun.profile.changes import DegradationInfo

NAME_WIDTH: Final = max(map(len, NAMES.values()))


class Manual(Tree):
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
        if change.rule:
            say(f"{prefix}  {paint('why: ' + one_line(change.rule), 'dim')}")
        for part in parts_of(change):
            say(f"{prefix}  {paint(part, 'dim')}")

    def _summary(self) -> None:
        self._page.say(self._tally.marked_summary(self._page.paint))
