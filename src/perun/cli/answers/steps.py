"""The steps that `perun changes` found, and what is acknowledged, for `perun log` and `perun status`.

They are read from a cache: where there is none, there are no lines. Both commands load this, so nothing heavy
is imported here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from perun.cli.answers.data import finite
from perun.cli.table import one_line
from perun.core.errors import ConfigError
from perun.history.acknowledged import Acknowledgement, Acknowledgements
from perun.measurement.verdict import bounded
from perun.profile.amounts import percent, readable_pair
from perun.store.changes import CachedChangePoint, ChangePointCache

if TYPE_CHECKING:
    from perun.cli.session import Session
    from perun.profile.changes import DegradationInfo

SHORT = 7
"""Digits of a checksum."""


class VersionSteps:
    """What is known of the versions of one repository; each file is read once, when it is asked for."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @cached_property
    def _known(self) -> ChangePointCache:
        return ChangePointCache.load(self._session.repository.store.cache)

    @cached_property
    def acknowledged(self) -> Acknowledgements:
        """What is acknowledged; where that cannot be read, a warning says so, and nothing is."""
        try:
            return Acknowledgements.load(self._session.repository)
        except ConfigError as problem:
            self._session.warn(problem.message)
            return Acknowledgements()

    def lines(self, version: str) -> list[str]:
        """A line for each step of the version, the worst first, after how many there are; none if there is no
        step."""
        steps = self._known.at(version)
        if not steps:
            return []
        from perun.cli.answers.changes import (  # most versions have none
            MAX_LINES,
            MAX_WIDTH,
            aligned,
            style_of,
        )
        from perun.profile.changes import PerformanceChange

        steps = sorted(steps, key=_importance)
        told = steps if self._session.verbosity else [step for step in steps if step.leads]
        shown = told if self._session.verbosity else told[:MAX_LINES]
        if not shown:
            return []
        rows = aligned([self._cells(step) for step in shown], MAX_WIDTH)
        lines = [f"Steps: {_counts(told)}"]
        for step, (word, location, *rest) in zip(shown, rows, strict=True):
            painted = self._session.paint(word, style_of(PerformanceChange[step.verdict]))
            place = self._session.paint(location, "bold")
            lines.append("  " + "  ".join((painted, place, *rest)).rstrip())
        if len(shown) < len(steps):
            lines.append(f"  and {len(steps) - len(shown)} more: perun changes lists them")
        return lines

    def text(self, version: str) -> str:
        """The worst step in a few words, and how many more there are: `sort +20.0 % (+3)`; empty if there is
        none."""
        steps = sorted((step for step in self._known.at(version) if step.leads), key=_importance)
        if not steps:
            return ""
        more = f" (+{len(steps) - 1})" if len(steps) > 1 else ""
        text = f"{one_line(steps[0].location)} {percent(steps[0].ratio - 1)}{more}"
        known = self._entry(steps[0]) is not None
        style = "dim" if known else "red" if steps[0].degradation else "green"
        return self._session.paint(text + " acknowledged" * known, style)

    def data(self, version: str) -> list[dict[str, Any]]:
        """The steps of the version as JSON data."""
        return [
            {
                "location": step.location,
                "command": step.command,
                "ratio": finite(step.ratio),
                "ratio_low": finite((bounded(step.low, step.high) or (None, None))[0]),
                "ratio_high": finite((bounded(step.low, step.high) or (None, None))[1]),
                "verdict": step.verdict,
                "headline": step.leads,
                "before": step.before,
                "after": step.after,
                "unit": step.unit,
                "degradation": step.degradation,
                "possible": list(step.possible),
                "taken_back": step.reverted_by,
                "takes_back": step.reverts,
                "acknowledged": entry_data(self._entry(step)),
            }
            for step in sorted(self._known.at(version), key=_importance)
        ]

    def covering(self, version: str, change: DegradationInfo) -> Acknowledgement | None:
        """What acknowledges a change that is stored for the version; None if it is no degradation."""
        from perun.cli.answers.changes import is_worse

        return self.acknowledged.covers(version, change.location) if is_worse(change.result) else None

    def _entry(self, step: CachedChangePoint) -> Acknowledgement | None:
        return self.acknowledged.covers_any(step.possible, step.location) if step.degradation else None

    def _cells(self, step: CachedChangePoint) -> tuple[str, ...]:
        interval = None if step.low == step.high else (step.low - 1, step.high - 1)
        entry = self._entry(step)
        others = len(step.possible) - 1
        remarks = (
            f"or one of {others} before it" if others else "",
            f"taken back by {step.reverted_by[:SHORT]}" if step.reverted_by else "",
            f"takes back {step.reverts[:SHORT]}" if step.reverts else "",
            one_line(entry.text) if entry else "",
        )
        return (
            re.sub("(?<=[a-z])(?=[A-Z])", " ", step.verdict),
            one_line(step.location),
            " -> ".join(readable_pair(step.before, step.after, step.unit)),
            percent(step.ratio - 1, interval),
            one_line(step.command),
            ", ".join(filter(None, remarks)),
        )


def entry_data(entry: Acknowledgement | None) -> dict[str, Any] | None:
    """What acknowledges a change, as JSON data; None if nothing does."""
    if entry is None:
        return None
    return {**entry._asdict(), "until": entry.until or None, "because": entry.because or None}


def _importance(step: CachedChangePoint) -> tuple[bool, bool, float]:
    """What stands for a measurement first, degradations first, the largest first."""
    size = abs(math.log(step.ratio)) if step.ratio > 0 else math.inf
    return not step.leads, not step.degradation, -size


def _counts(steps: Sequence[CachedChangePoint]) -> str:
    worse = sum(step.degradation for step in steps)
    better = len(steps) - worse
    parts = (
        f"{better} optimization{'s' * (better != 1)}(+)" if better else "",
        f"{worse} degradation{'s' * (worse != 1)}(-)" if worse else "",
    )
    return ", ".join(filter(None, parts))
