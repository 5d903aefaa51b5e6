"""The answer as Markdown, for the comment of a pull request or the summary of a job.

GitHub takes 65,536 characters at most, so that what does not fit is left out, the least severe first, and
the text says how to see the rest. Text of profiles and commits is shown as code, in which neither Markdown
nor HTML, nor the mention of a user or an issue, is obeyed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from perun.cli.answers.changes import importance, is_worse, name_of, sides_of
from perun.cli.answers.check.wording import (
    CheckTally,
    Page,
    command_of,
    confidence_of,
    is_severe,
    once_of,
    size_of,
    units_of,
)
from perun.cli.table import one_line
from perun.core.wording import plural
from perun.history.check.report import Comparison, VersionReport
from perun.profile.changes import DegradationInfo, PerformanceChange

LIMIT: Final = 65_536
"""Characters that a comment of GitHub has at most; the text stays below."""
POINTER: Final = 2_500
"""Characters that the last line has at most."""
CELL: Final = 300
"""Characters of a name, value or message that are shown."""
ROWS: Final = 2_000
"""Rows that are kept; more than fit into the room, as each takes more than thirty characters."""
NOTES: Final = 8
"""Troubles and reasons that are listed one by one."""
HEAD: Final = (
    "| change | location | before | after | size | confidence | method |\n"
    "| :-- | :-- | --: | --: | --: | :-- | :-- |\n"
)


class _Row(NamedTuple):
    """A line of a table; rows are kept in the order of `rank`, and shown in that of `number`."""

    rank: tuple[int, int, float]
    number: int
    text: str


@dataclass(slots=True)
class _Section:
    """The changes of one pair of profiles."""

    title: str
    rows: list[_Row] = field(default_factory=list)


class Markdown:
    """Keeps the most severe changes, as many as can be shown, and writes them at the end."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._tally = CheckTally()
        self._sections: list[_Section] = []
        self._kept = 0
        self._number = 0

    def version(self, report: VersionReport) -> None:
        """Note the changes of one version."""
        self._tally.add(report)
        version = report.version
        head = f"{code(version.checksum[:10])} {code(version.subject)}"
        for comparison in report.comparisons:
            self._note(comparison, head, version.checksum)

    def pair(self, comparison: Comparison) -> None:
        """Note the changes between two profiles."""
        self._tally.add_pair(comparison)
        self._note(comparison, code(comparison.target.source), "")

    def end(self) -> None:
        """Write it all."""
        tally = self._tally
        refused = [
            f"{method} ({plural(count, 'pair')}): {reason}"
            for method, (count, reason) in tally.not_applied.items()
        ]
        top = (
            f"## {_title(tally)}\n\n{_summary(tally)}\n\n"
            + _list("Damaged or not measured", [*tally.troubles])
            + _list("Incomplete profiles", [*tally.incomplete])
            + _list("Methods that could not be applied", refused)
        )
        self._page.out.write(top)
        chosen, left = self._chosen(LIMIT - POINTER - len(top))
        for section in self._sections:
            rows = sorted((row for row in section.rows if row.number in chosen), key=lambda row: row.rank)
            if rows:
                self._page.say(f"{section.title}\n\n{HEAD}{''.join(row.text for row in rows)}")
        if left:
            self._page.say(
                f"**{plural(left, 'more change')}** did not fit here, the least severe ones: "
                f"{code(f'perun {self._page.command}')} shows all of them."
            )

    def _note(self, comparison: Comparison, head: str, minor: str) -> None:
        target, version = comparison.target, comparison.baseline_version
        against = ""
        if version is not None:
            against = f" against {code(version.checksum[:10])} {code(version.subject)}"
        elif comparison.baseline is not None:
            against = f" against {code(comparison.baseline.source)}"
        command = f"{code(units_of(target))} of {code(command_of(target))}"
        notes = "".join(f"\n- {code(note)}" for note in comparison.notes)
        section = _Section(f"### {head}\n\n{command}{against}" + (f"\n{notes}" if notes else ""))
        for result in comparison.results:
            for change in result.changes:
                if self._page.verbose or change.result is not PerformanceChange.NoChange:
                    self._number += 1
                    text = _row(change, result.method, comparison, minor)
                    section.rows.append(_Row(importance(change), self._number, text))
        if section.rows:
            self._sections.append(section)
            self._kept += len(section.rows)
            if self._kept > 2 * ROWS:
                self._forget()

    def _forget(self) -> None:
        """Drop what cannot be shown any more, as there is enough that is more severe."""
        best = {row.number for row in sorted(self._rows())[:ROWS]}
        for section in self._sections:
            section.rows = [row for row in section.rows if row.number in best]
        self._sections = [section for section in self._sections if section.rows]
        self._kept = len(best)

    def _rows(self) -> Iterator[_Row]:
        for section in self._sections:
            yield from section.rows

    def _chosen(self, room: int) -> tuple[set[int], int]:
        """The numbers of the rows that fit into `room`, the most severe first; how many are left out."""
        titles = {row.number: section for section in self._sections for row in section.rows}
        begun: set[int] = set()
        chosen: set[int] = set()
        for row in sorted(self._rows()):
            section = titles[row.number]
            need = len(row.text) + (0 if id(section) in begun else len(section.title) + len(HEAD) + 3)
            if need > room:
                break
            room -= need
            begun.add(id(section))
            chosen.add(row.number)
        return chosen, self._number - len(chosen)


def _list(title: str, lines: list[str]) -> str:
    if not lines:
        return ""
    items = [code(line) for line in lines[:NOTES]]
    if len(lines) > NOTES:
        items.append(f"and {len(lines) - NOTES} more")
    return f"**{title}**\n\n" + "".join(f"- {item}\n" for item in items) + "\n"


def _summary(tally: CheckTally) -> str:
    if tally.compared:
        return f"{plain_text(tally.summary())}."
    label, _, reasons = tally.summary().partition(": ")
    return f"{label[0].upper()}{label[1:]}: {code(reasons)}"


def _title(tally: CheckTally) -> str:
    counts = tally.counts
    if tally.nothing_compared:
        return "Performance: nothing compared"
    if not (counts.degradations or counts.optimizations) and counts.inconclusive:
        return f"Performance: inconclusive ({counts.inconclusive} unknown)"
    return f"Performance: {', '.join(tally.words()) or 'no change'}"


def _row(change: DegradationInfo, method: str, comparison: Comparison, minor: str) -> str:
    name = name_of(change)
    entry = comparison.acknowledged.get(change.location)
    accepted = "" if entry is None else entry.text
    if is_worse(change.result) and entry is None:
        name = f"**{name}**" + (" :rotating_light:" if is_severe(change.result) else "")
    remarks = accepted, confidence_of(change), once_of(change, comparison, minor), change.rule
    cells: Iterable[str] = (
        name,
        code(change.location),
        *map(code, sides_of(change)),
        plain_text(size_of(change)),
        code("; ".join(filter(None, remarks))),
        code(method),
    )
    return f"| {' | '.join(cells)} |\n"


def code(text: str) -> str:
    """Text of others as code, on one line, its control characters visible, cut where it is long.

    Where it holds a character that even code, or a table, would obey, it becomes HTML in which all
    punctuation is written by number.
    """
    shown = one_line(text)
    if len(shown) > CELL:
        shown = f"{shown[:CELL]}…"
    if not shown.strip():
        return ""
    if re.search(r"[`|\\]", shown) or shown != shown.strip():
        return f"<code>{_numbered(shown)}</code>"
    return f"`{shown}`"


def plain_text(text: str) -> str:
    """Text outside of code in which nothing is obeyed: what could be markup is written by number."""
    shown = one_line(text)
    return _numbered(f"{shown[:CELL]}…" if len(shown) > CELL else shown, allowed=" ,.;:()=+-%")


def _numbered(text: str, allowed: str = " ") -> str:
    return "".join(
        char if char.isalnum() or char in allowed or not char.isascii() else f"&#{ord(char)};"
        for char in text
    )
