"""The words that the formats share: how large a change is, how sure the check is, what was compared."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from perun.cli.answers.changes import (
    NAMES,
    factor_of,
    is_better,
    is_worse,
    percent_interval,
    percent_of,
    sides_of,
)
from perun.cli.table import one_line
from perun.porcelain.check.report import Comparison, is_degradation
from perun.profile.amounts import factor, percent
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.helpers import ProfileInfo
from perun.wording import plural

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


def values_of(change: DegradationInfo) -> str:
    """`from 1.50 s to 3.10 s, +107 % (2.07x), confidence r_square = 0.98`, and the rule that decided if it is
    known."""
    before, after = sides_of(change)
    size, confidence = size_of(change), confidence_of(change)
    text = ", ".join(filter(None, (f"from {before} to {after}", size, confidence)))
    return text + (f"; {one_line(change.rule)}" if change.rule else "")


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
