"""The answer as SARIF 2.1.0 (OASIS), for code scanning services: a method is a rule, a change a result.

What got worse is a result: an error if it is severe, a note if it is only possible, else a warning.
With `--verbose` all other changes are results, too, of a kind that is no failure, as a service would raise
an alarm for each. Damaged profiles and methods that could not be applied are notifications of the run.

A result names a logical location, the function, and as physical location its first line, or the line that
explains the change, where that is known, else the measured program, since services refuse a result without a
file. A bound has a place in a source, which is the physical location.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from typing import Any, Final
from urllib.parse import quote

from perun import __version__
from perun.cli.answers.changes import importance, is_worse, name_of
from perun.cli.answers.check.wording import (
    CheckTally,
    Page,
    command_of,
    is_severe,
    once_of,
    units_of,
    values_of,
)
from perun.cli.answers.data import change_data
from perun.cli.table import one_line
from perun.history.check.report import Comparison, VersionReport
from perun.profile.bounds import TYPE as BOUND
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.helpers import ProfileInfo

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_SOURCE_LINE: Final = re.compile(r"(?P<file>.+?):(?P<line>\d{1,9}): ")
KINDS: Final = {
    PerformanceChange.NoChange: "pass",
    PerformanceChange.Unknown: "open",
}
"""The kind of what is no degradation; `informational` where it is not here."""


class Sarif:
    """Writes the results as versions are checked; the rules and what went wrong follow them."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._tally = CheckTally()
        self._rules: dict[str, int] = {}
        self._separator = "\n"
        head = f'{{"$schema": {json.dumps(SCHEMA)}, "version": "2.1.0", "runs": [{{"results": ['
        page.out.write(head)

    def version(self, report: VersionReport) -> None:
        """The results of one version."""
        self._tally.add(report)
        for comparison in report.comparisons:
            self._comparison(comparison, report.version.checksum)
        self._page.out.flush()

    def pair(self, comparison: Comparison) -> None:
        """The results of two profiles that belong to no version."""
        self._tally.add_pair(comparison)
        self._comparison(comparison, "")

    def end(self) -> None:
        """The tool with its rules, and whether all could be checked."""
        driver = {
            "name": "Perun",
            "semanticVersion": __version__,
            "rules": [self._rule(method) for method in self._rules],
        }
        invocation = {
            "executionSuccessful": not self._tally.troubles,
            "toolExecutionNotifications": self._notifications(),
        }
        properties = {**self._tally.counts._asdict(), "compared": self._tally.compared}
        rest = {
            "columnKind": "unicodeCodePoints",
            "tool": {"driver": driver},
            "invocations": [invocation],
            "properties": properties,
        }
        self._page.out.write("\n],\n" + json.dumps(rest, indent=1, allow_nan=False)[2:-2] + "\n}]}\n")

    def _comparison(self, comparison: Comparison, minor: str) -> None:
        seen: Counter[tuple[str, str]] = Counter()
        for result in comparison.results:
            index = self._rules.setdefault(result.method, len(self._rules))
            for change in sorted(result.changes, key=importance):
                seen[result.method, change.location] += 1
                if is_worse(change.result) or self._page.verbose:
                    number = seen[result.method, change.location]
                    place = self._page.place(minor, comparison, change) if is_worse(change.result) else None
                    data = _result(comparison, minor, result.method, change, number, place)
                    data |= _suppressed(comparison, change)
                    self._write({"ruleId": result.method, "ruleIndex": index, **data})

    def _write(self, data: dict[str, Any]) -> None:
        self._page.out.write(self._separator + json.dumps(data, allow_nan=False))
        self._separator = ",\n"

    def _rule(self, method: str) -> dict[str, Any]:
        text = self._page.describe(method) or f"The check {method}."
        return {
            "id": method,
            "name": "".join(word.capitalize() for word in method.split("_")),
            "shortDescription": {"text": text},
            "fullDescription": {"text": text},
            "defaultConfiguration": {"level": "warning"},
            "properties": {"tags": ["performance"]},
        }

    def _notifications(self) -> list[dict[str, Any]]:
        tally = self._tally
        told = [("error", text, count) for text, count in tally.troubles.items()]
        for method, (count, reason) in tally.not_applied.items():
            told.append(("warning", f"{method} could not be applied: {reason}", count))
        if tally.nothing_compared:
            told.append(("warning", tally.nothing_compared, 1))
        return [
            {"level": level, "message": {"text": one_line(text)}, "properties": {"count": count}}
            for level, text, count in told
        ]


def _result(
    comparison: Comparison,
    minor: str,
    method: str,
    change: DegradationInfo,
    number: int,
    explained: tuple[str, int] | None,
) -> dict[str, Any]:
    target, kind = comparison.target, change.result
    units, command = units_of(target), command_of(target)
    baseline = comparison.baseline_version.checksum if comparison.baseline_version else ""
    where = _hash(method, units, command, change.location, str(number))
    program = {"uri": _uri(target)}
    against = f"{minor[:10] or target.source} against {baseline[:10]}".removesuffix(" against ")
    text = (
        f"{name_of(change)} at {one_line(change.location)}: "
        f"{values_of(change, once_of(change, comparison, minor))} "
        f"({command}, collected by {units}; {one_line(against)})"
    )
    data: dict[str, Any] = {"kind": "fail", "level": _level(kind)}
    if not is_worse(kind):
        data = {"kind": KINDS.get(kind, "informational"), "level": "none"}
    return {
        **data,
        "message": {"text": text},
        "analysisTarget": program,
        "locations": [
            {
                "physicalLocation": _place(change, target, program, explained),
                "logicalLocations": [
                    {
                        "name": one_line(change.location),
                        "fullyQualifiedName": f"{command}::{one_line(change.location)}",
                        "kind": "function",
                    }
                ],
            }
        ],
        "fingerprints": {"perunChange/v1": _hash(where, minor, baseline, target.source)},
        "partialFingerprints": {"perunLocation/v1": where, "primaryLocationLineHash": f"{where[:16]}:1"},
        "properties": {
            "minor_version": minor or None,
            "baseline": baseline or None,
            "target_profile": target.source or None,
            "baseline_profile": comparison.baseline.source if comparison.baseline else None,
            **change_data(change),
        },
    }


def _suppressed(comparison: Comparison, change: DegradationInfo) -> dict[str, Any]:
    """That the change is acknowledged, so that no service raises an alarm for it."""
    entry = comparison.acknowledged.get(change.location)
    if entry is None:
        return {}
    text = one_line(entry.because or entry.text)
    return {"suppressions": [{"kind": "external", "status": "accepted", "justification": text}]}


def _place(
    change: DegradationInfo, target: ProfileInfo, program: dict[str, str], explained: tuple[str, int] | None
) -> dict[str, Any]:
    """The line of the source that the location of a bound names, or of what got worse; else the measured
    program."""
    match = _SOURCE_LINE.match(one_line(change.location)) if target.head.type == BOUND else None
    if match is not None:
        explained = match["file"], int(match["line"])
    elif explained is None:
        return {"artifactLocation": program, "region": {"startLine": 1}}
    return {
        "artifactLocation": {"uri": _uri_of(explained[0])},
        "region": {"startLine": max(explained[1], 1)},
    }


def _level(kind: PerformanceChange) -> str:
    if is_severe(kind):
        return "error"
    return "note" if kind is PerformanceChange.MaybeDegradation else "warning"


def _hash(*parts: str) -> str:
    text = "\0".join(parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _uri(target: ProfileInfo) -> str:
    """The measured program, relative to the project unless the command names it from the root."""
    return _uri_of((target.head.cmd.split() or ["unknown"])[0])


def _uri_of(path: str) -> str:
    path = quote(one_line(path).removeprefix("./"))
    return f"file://{path}" if path.startswith("/") else path
