"""The words for a change of performance in every format: its name, size, confidence and severity."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Final

from perun.cli.table import one_line
from perun.porcelain.check.report import Comparison, is_degradation
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.helpers import ProfileInfo
from perun.wording import plural as plural

NAMES: Final = {
    change: re.sub("(?<=[a-z])(?=[A-Z])", " ", change.name).replace(" In ", " in ")
    for change in PerformanceChange
}
"""`Severe Degradation` for SevereDegradation: the names of the manual's 8.1."""
SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0}
RATIOS: Final = ("ratio", "factor", "level")
"""Types of changes whose rate is how many times the baseline the target is."""
MAX_PARTS: Final = 5
"""Parts of a change that an answer lists at most."""
_VALUE = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?) ?([^\W\d_]*)(?: \(.*\))?")
"""A value, its unit, and what it is a value of: `304.79us (quadratic)`."""


def is_worse(change: PerformanceChange) -> bool:
    """Whether it is a degradation of any kind."""
    return PerformanceChange.NotInBaseline.value < change.value < 0


def is_better(change: PerformanceChange) -> bool:
    """Whether it is an optimization of any kind."""
    return 0 < change.value < PerformanceChange.NotInTarget.value


def is_severe(change: PerformanceChange) -> bool:
    """Whether it is a degradation that is certain and large, or one of the program as a whole."""
    return is_degradation(change, "severe")


def style_of(change: PerformanceChange) -> str:
    """Red for what got worse, green for what got better; what is certain is bold."""
    if change in (PerformanceChange.Unknown, PerformanceChange.NoChange):
        return "dim"
    if change in (PerformanceChange.NotInBaseline, PerformanceChange.NotInTarget):
        return "cyan"
    colour = "red" if change.value < 0 else "green"
    return colour if abs(change.value) == 1 else f"bold {colour}"


def importance(change: DegradationInfo) -> tuple[int, int, float]:
    """A key to sort by: what got worse first, then what got better, then the rest; the severe and the large
    before the mild and the small. Differences in time are sorted by their size, all others by the ratio."""
    kind = change.result
    rank = 0 if is_worse(kind) else 1 if is_better(kind) else 2
    ratio = ratio_of(change)
    if ratio is None or change.type == "time":
        return rank, -abs(kind.value), -abs(_number(change.rate_degradation))
    return rank, -abs(kind.value), -abs(math.log(ratio)) if ratio > 0 else -math.inf


def _number(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def ratio_of(change: DegradationInfo) -> float | None:
    """How many times the baseline the target is: told by the check, or by two values of comparable units."""
    if change.type in RATIOS:
        rate = change.rate_degradation
        return rate if rate and math.isfinite(rate) else None
    before, after = (_VALUE.fullmatch(text.strip()) for text in (change.from_baseline, change.to_target))
    if before is None or after is None:
        return None
    old, new = (float(match[1]) * SECONDS.get(match[2], 1.0) for match in (before, after))
    comparable = before[2] == after[2] or (before[2] in SECONDS and after[2] in SECONDS)
    ratio = new / old if comparable and old > 0 and new >= 0 else math.nan
    return ratio if math.isfinite(ratio) else None


def size_of(change: DegradationInfo) -> str:
    """How large the change is, and of which type: `2.5x` for the type ratio, `2.5x, linear`, else the rate:
    `order +2`; empty if unknown."""
    ratio, rate = ratio_of(change), change.rate_degradation
    kind = "" if change.type in ("", "-", "ratio") else one_line(change.type)
    if ratio is not None:
        return f"{ratio:.3g}x, {kind}" if kind else f"{ratio:.3g}x"
    if change.type in RATIOS or not rate or not math.isfinite(rate):
        return ""
    return f"{kind} {rate:+.3g}".strip()


def confidence_of(change: DegradationInfo) -> str:
    """How sure the check is, e.g. `interval 1.8 to 3.2, p = 0.004, 10 and 10 measurements, could show 1.05x`;
    may be empty."""
    parts = []
    if change.confidence_type not in ("", "no") and change.confidence_type != "p_value":
        parts.append(f"confidence {one_line(change.confidence_type)} = {change.confidence_rate:.4g}")
    low, high = change.interval or (0, math.inf)
    if low > 0 or high < math.inf:
        parts.append(f"interval {low:.3g} to {high:.3g}")
    if change.p_value is not None:
        parts.append(f"p = {change.p_value:.2g}" if change.p_value >= 0.0001 else "p < 0.0001")
    if change.sizes is not None and any(change.sizes):
        old, new = change.sizes
        parts.append(f"{old} and {plural(new, 'measurement')}")
    if change.detectable is not None and change.p_value is not None and math.isfinite(change.detectable):
        parts.append(f"could show {change.detectable:.3g}x")
    return ", ".join(parts)


def parts_of(change: DegradationInfo) -> list[str]:
    """The parts of the independent variable that changed: `where it is 26 to 100: Degradation +58 %`."""
    parts = change.partial_intervals
    lines = [
        f"where it is {start:.4g} to {end:.4g}: {NAMES[kind]}{_percent(rate)}"
        for kind, rate, start, end in parts[:MAX_PARTS]
    ]
    left = len(parts) - len(lines)
    return [*lines, f"and {plural(left, 'part')} more"] if left else lines


def _percent(share: float) -> str:
    """` +58 %`, also of large changes without an exponent; empty where it is not known."""
    if not math.isfinite(share):
        return ""
    percent = 100 * share
    return f" {percent:+.3g} %" if abs(percent) < 1000 else f" {percent:+,.0f} %"


def values_of(change: DegradationInfo) -> str:
    """`from 1.5s to 3.1s (2.07x), confidence r_square = 0.98`, and the rule that decided if it is known."""
    size, confidence = size_of(change), confidence_of(change)
    text = f"from {one_line(change.from_baseline)} to {one_line(change.to_target)}"
    text += (f" ({size})" if size else "") + (f", {confidence}" if confidence else "")
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
