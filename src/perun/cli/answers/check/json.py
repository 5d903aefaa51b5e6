"""The answer as JSON, schema `perun.check/1` (docs/json.md)."""

from __future__ import annotations

import json
from typing import Any

from perun.cli.answers.check.wording import CheckTally, Page, troubles_of
from perun.cli.answers.data import change_data, finite
from perun.cli.answers.steps import entry_data
from perun.cli.table import clean, one_line
from perun.history.check.report import Comparison, VersionReport
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.helpers import ProfileInfo


class Json:
    """One comparison a line, so that a long history can be read as it comes."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._tally = CheckTally()
        self._troubles: list[dict[str, str]] = []
        self._unpaired: list[dict[str, Any]] = []
        self._separator = "\n"
        page.out.write('{"schema": "perun.check/1", "comparisons": [')

    def version(self, report: VersionReport) -> None:
        """The comparisons of one version."""
        self._tally.add(report)
        minor = report.version.checksum
        self._troubles += [{"minor_version": minor, "message": text} for text in troubles_of(report)]
        self._unpaired += [_profile(info) for info in report.unpaired]
        for comparison in report.comparisons:
            self._write({"minor_version": minor, **comparison_data(comparison, verbose=self._page.verbose)})
        self._page.out.flush()

    def pair(self, comparison: Comparison) -> None:
        """Two profiles that belong to no version."""
        self._tally.add_pair(comparison)
        self._write(comparison_data(comparison, verbose=self._page.verbose))

    def end(self) -> None:
        """What went wrong, and the numbers of what was found."""
        tally = self._tally
        summary = {"compared": tally.compared, **tally.counts._asdict(), "ignored": tally.ignored}
        summary["acknowledged"] = tally.acknowledged
        self._page.out.write(f'\n],\n"unpaired": {json.dumps(self._unpaired)},\n')
        self._page.out.write(f'"troubles": {json.dumps(self._troubles)},\n')
        self._page.out.write(f'"nothing_compared": {json.dumps(tally.nothing_compared or None)},\n')
        self._page.out.write(f'"summary": {json.dumps(summary)}}}\n')

    def _write(self, data: dict[str, Any]) -> None:
        self._page.out.write(self._separator + json.dumps(data, allow_nan=False))
        self._separator = ",\n"


def comparison_data(comparison: Comparison, *, verbose: bool = False) -> dict[str, Any]:
    """A comparison as JSON data; `reason` is null where it was made.

    :param verbose: with No Change.
    """
    target = comparison.target
    return {
        "baseline": comparison.baseline_version.checksum if comparison.baseline_version else None,
        "target_profile": target.source or None,
        "baseline_profile": comparison.baseline.source if comparison.baseline else None,
        **_configuration(target),
        "reason": comparison.reason or None,
        "incomplete": comparison.incomplete or None,
        "environment": comparison.environment or None,
        "damage": clean(comparison.error.message) if comparison.error else None,
        "changes": [
            {
                "method": result.method,
                **change_data(change),
                "parts": _parts(change),
                "acknowledged": entry_data(comparison.acknowledged.get(change.location)),
            }
            for result in comparison.results
            for change in result.changes
            if verbose or change.result is not PerformanceChange.NoChange
        ],
        "not_applied": [
            {"method": result.method, "reason": result.reason}
            for result in comparison.results
            if result.reason
        ],
        "ignored": sum(result.ignored for result in comparison.results),
        "notes": [one_line(note) for note in comparison.notes],
        "session": comparison.session,
        "same": comparison.same,
    }


def _parts(change: DegradationInfo) -> list[dict[str, Any]]:
    return [
        {"result": kind.name, "rate": finite(rate), "from": finite(start), "to": finite(end)}
        for kind, rate, start, end in change.partial_intervals
    ]


def _profile(info: ProfileInfo) -> dict[str, Any]:
    return {"baseline_profile": info.source, **_configuration(info)}


def _configuration(info: ProfileInfo) -> dict[str, Any]:
    return {
        "collector": info.head.collector,
        "postprocessors": list(info.head.postprocessors),
        "cmd": info.head.cmd,
        "args": info.head.args,
        "workload": info.head.workload,
    }
