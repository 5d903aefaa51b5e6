"""The answer as JUnit XML, which every continuous integration shows: what was checked as test cases.

A version and method are a suite of tests, and a location is one test. It fails where the location got
worse, to the level of `--fail-on` (`degradation` by default); it is skipped where the method could say
nothing of it, and an error if a profile is damaged. The form is that of Jenkins (`junit-10.xsd`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from perun.cli.answers.changes import importance, name_of
from perun.cli.answers.check.wording import Page, command_of, once_of, troubles_of, units_of, values_of
from perun.cli.table import clean
from perun.history.check.report import Comparison, VersionReport, is_degradation
from perun.profile.changes import DegradationInfo, PerformanceChange

HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>'
"""The first line of a document."""
PAIRING: Final = "comparison"
"""The suite of what was not compared, as no method had a part in that."""


class JUnitCase(NamedTuple):
    """One test: `outcome` is failure, error, skipped, or empty if it is passed."""

    group: str
    name: str
    outcome: str = ""
    kind: str = ""
    message: str = ""


class JUnit:
    """Writes the suites of each version as it is checked."""

    def __init__(self, page: Page) -> None:
        self._page = page
        page.say(HEAD)
        verb = page.command.partition(" ")[0]
        page.say(f'<testsuites name="perun {xml(verb)}">')

    def version(self, report: VersionReport) -> None:
        """The suites of one version."""
        suites: dict[str, list[JUnitCase]] = {}
        for trouble in troubles_of(report):
            case = JUnitCase("perun", "profiles of the version", "error", "PerunError", trouble)
            suites.setdefault(PAIRING, []).append(case)
        for profile in report.unpaired:
            group = f"{units_of(profile)} {command_of(profile)}"
            case = JUnitCase(group, profile.source, "skipped", "", "the target has no profile of it")
            suites.setdefault(PAIRING, []).append(case)
        for comparison in report.comparisons:
            self._add(suites, comparison, report.version.checksum)
        version = report.version
        properties = {"minor_version": version.checksum, "subject": version.subject}
        baselines = {
            one.baseline_version.checksum for one in report.comparisons if one.baseline_version is not None
        }
        if len(baselines) == 1:
            properties["baseline"] = baselines.pop()
        stamp = version.date.replace(" ", "T")
        for method, cases in suites.items():
            name = f"{method} {version.checksum[:10]}"
            for line in suite_lines(name, cases, properties, stamp):
                self._page.say(line)
        self._page.out.flush()

    def pair(self, comparison: Comparison) -> None:
        """The suites of two profiles that belong to no version."""
        suites: dict[str, list[JUnitCase]] = {}
        self._add(suites, comparison, "")
        properties = {"target": comparison.target.source}
        if comparison.baseline is not None:
            properties["baseline"] = comparison.baseline.source
        for method, cases in suites.items():
            for line in suite_lines(method, cases, properties):
                self._page.say(line)

    def end(self) -> None:
        """The check is complete."""
        self._page.say("</testsuites>")

    def _add(self, suites: dict[str, list[JUnitCase]], comparison: Comparison, minor: str) -> None:
        group = f"{units_of(comparison.target)} {command_of(comparison.target)}"
        if comparison.reason:
            outcome, kind = (
                ("error", type(comparison.error).__name__) if comparison.error else ("skipped", "")
            )
            case = JUnitCase(group, comparison.target.source, outcome, kind, comparison.reason)
            suites.setdefault(PAIRING, []).append(case)
        for result in comparison.results:
            cases = suites.setdefault(result.method, [])
            if result.reason:
                cases.append(JUnitCase(group, comparison.target.source, "skipped", "", result.reason))
            changes = sorted(result.changes, key=importance)
            cases += [self._case(group, one, comparison, minor) for one in changes]

    def _case(self, group: str, change: DegradationInfo, comparison: Comparison, minor: str) -> JUnitCase:
        kind = change.result
        message = f"{name_of(change)}: {values_of(change, once_of(change, comparison, minor))}"
        outcome = ""
        if (entry := comparison.acknowledged.get(change.location)) is not None:
            message += f"; {entry.text}"
        elif kind is PerformanceChange.Unknown:
            outcome = "skipped"
        elif is_degradation(kind, self._page.level):
            outcome = "failure"
        return JUnitCase(group, change.location, outcome, kind.name, message)


def suite_lines(
    name: str, cases: Sequence[JUnitCase], properties: Mapping[str, str] | None = None, stamp: str = ""
) -> Iterator[str]:
    """The element of a suite of tests. :param stamp: when, in the form of ISO 8601."""
    outcomes = [case.outcome for case in cases]
    numbers = "".join(
        f' {key}="{outcomes.count(outcome)}"'
        for key, outcome in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
    )
    timestamp = f' timestamp="{xml(stamp)}"' if stamp else ""
    yield f'  <testsuite name="{xml(name)}" tests="{len(cases)}"{numbers} time="0"{timestamp}>'
    if properties:
        yield "    <properties>"
        for key, value in properties.items():
            yield f'      <property name="{key}" value="{xml(value)}"/>'
        yield "    </properties>"
    yield from _cases(cases)
    yield "  </testsuite>"


def _cases(cases: Iterable[JUnitCase]) -> Iterator[str]:
    for case in cases:
        start = f'    <testcase classname="{xml(case.group)}" name="{xml(case.name)}" time="0"'
        if not case.outcome and case.kind == PerformanceChange.NoChange.name:
            yield f"{start}/>"
            continue
        yield f"{start}>"
        if case.outcome:
            kind = f' type="{xml(case.kind)}"' if case.kind else ""
            message = xml(case.message)
            # Some services show the one, some the other.
            yield f'      <{case.outcome}{kind} message="{message}">{message}</{case.outcome}>'
        else:
            yield f"      <system-out>{xml(case.message)}</system-out>"
        yield "    </testcase>"


def xml(text: str) -> str:
    """Text of others on one line, for an attribute or an element; in ASCII, whatever the file is read as.

    Control characters, which XML does not have, become visible.
    """
    shown = clean(text, keep="")
    for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#39;")):
        shown = shown.replace(char, entity)
    shown = re.sub("[\ufffe\uffff]", lambda match: f"\\u{ord(match[0]):04x}", shown)
    return shown.encode("ascii", "xmlcharrefreplace").decode()
