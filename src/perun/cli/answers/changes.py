"""How a change of performance is told in one line: what it is, where, between which values, and how large.

`perun status` and `perun log` load this, so nothing heavy is imported here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.cli.table import one_line, width
from perun.core.wording import plural
from perun.measurement import present
from perun.measurement.present import NAMES as NAMES
from perun.profile.amounts import common_unit, factor, percent, readable, readable_pair
from perun.profile.changes import DegradationInfo, PerformanceChange

if TYPE_CHECKING:
    from perun.cli.session import Session
    from perun.history.acknowledged import Acknowledgement
    from perun.store.changes import ChangeRecord

RATIOS: Final = ("ratio", "factor", "level")
"""Types of changes whose rate is how many times the baseline the target is."""
MAX_WIDTH: Final = 48
"""Columns that a cell takes at most to be aligned with those above and below."""
MAX_LINES: Final = 20
"""Changes of one version that `perun status` and `perun log` list, where they are not told to be verbose."""
_VALUE = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?) ?([^\W\d_]*)((?: \(.*\))?)")
"""A value, its unit, and what it is a value of: `304.79us (quadratic)`."""


class Amount(NamedTuple):
    """A number, its unit, and what the text says of it behind that, as ` (quadratic)`."""

    value: float
    unit: str
    rest: str = ""


def is_worse(change: PerformanceChange) -> bool:
    """Whether it is a degradation of any kind."""
    return PerformanceChange.NotInBaseline.value < change.value < 0


def is_better(change: PerformanceChange) -> bool:
    """Whether it is an optimization of any kind."""
    return 0 < change.value < PerformanceChange.NotInTarget.value


def is_maybe(change: PerformanceChange) -> bool:
    """Whether it is a change that is not certain."""
    return abs(change.value) == 1


def name_of(change: DegradationInfo) -> str:
    """The word for it: `Maybe Degradation`, `Degradation, unconfirmed`."""
    return present.name(change.result, confirmed=change.confirmed, limit=change.limit)


def is_unconfirmed(change: DegradationInfo) -> bool:
    """Whether it is a definite change that was seen once only."""
    return not change.confirmed and name_of(change) != NAMES[change.result]


def style_for(change: DegradationInfo) -> str:
    """That of its kind; yellow where it was seen once only, as in lists."""
    return "yellow" if is_unconfirmed(change) else style_of(change.result)


def style_of(change: PerformanceChange) -> str:
    """Red for what got worse, green for what got better; what is certain is bold."""
    if change in (PerformanceChange.Unknown, PerformanceChange.NoChange):
        return "dim"
    if change in (PerformanceChange.NotInBaseline, PerformanceChange.NotInTarget):
        return "cyan"
    colour = "red" if change.value < 0 else "green"
    return colour if abs(change.value) == 1 else f"bold {colour}"


def importance(change: DegradationInfo) -> tuple[int, int, float]:
    """A key to sort by: what definitely got worse first, then what got better, then what may have, then the
    rest; the severe and the large before the mild and the small. Differences in time are sorted by their
    size, all others by the ratio."""
    kind = change.result
    rank = 2 if is_maybe(kind) else 0 if is_worse(kind) else 1 if is_better(kind) else 3
    ratio = ratio_of(change)
    if ratio is None or change.type == "time":
        rate = change.rate_degradation
        return rank, -abs(kind.value), 0.0 if math.isnan(rate) else -abs(rate)
    return rank, -abs(kind.value), -abs(math.log(ratio)) if ratio > 0 else -math.inf


def amounts_of(change: DegradationInfo) -> tuple[Amount | None, Amount | None]:
    """The values of baseline and target as numbers, as far as the check or the texts tell them; they have one
    unit where their units can be converted."""
    texts = change.from_baseline, change.to_target
    if change.values is not None and all(map(math.isfinite, change.values)):
        old, new = change.values
        rests = [match[3] if (match := _VALUE.fullmatch(text.strip())) else "" for text in texts]
        return Amount(old, change.unit, rests[0]), Amount(new, change.unit, rests[1])
    before, after = map(_parsed, texts)
    if before and after:
        (times, common), (size, other) = common_unit(after.unit), common_unit(before.unit)
        if common == other and times != size:
            # A text has few digits; more would be an error of the multiplication.
            after = Amount(float(f"{after.value * times / size:.12g}"), before.unit, after.rest)
    return before, after


def _parsed(text: str) -> Amount | None:
    match = _VALUE.fullmatch(text.strip())
    value = float(match[1]) if match else math.nan
    return Amount(value, match[2], match[3]) if match and math.isfinite(value) else None


def ratio_of(change: DegradationInfo) -> float | None:
    """How many times the baseline the target is: told by the check, or by two values of comparable units."""
    if change.type in RATIOS:
        rate = change.rate_degradation
        return rate if rate and math.isfinite(rate) else None
    old, new = amounts_of(change)
    if old is None or new is None or old.unit != new.unit:
        return None
    ratio = new.value / old.value if old.value > 0 and new.value >= 0 else math.nan
    return ratio if math.isfinite(ratio) else None


def sides_of(change: DegradationInfo) -> tuple[str, str]:
    """Baseline and target as people compare them (:func:`perun.profile.amounts.readable_pair`)."""
    old, new = amounts_of(change)
    if old is None or new is None or old.unit != new.unit:
        return _alone(old, change.from_baseline), _alone(new, change.to_target)
    texts = readable_pair(old.value, new.value, old.unit)
    return one_line(texts[0] + old.rest), one_line(texts[1] + new.rest)


def _alone(amount: Amount | None, text: str) -> str:
    """The amount in the unit that fits it; the text where it is none."""
    return one_line(text if amount is None else readable(amount.value, amount.unit) + amount.rest)


def percent_of(change: DegradationInfo) -> str:
    """How much more or less than the baseline the target is, with the interval where the check knows one:
    `+3.2 % [+1.1, +5.4]`; to or from 0, which has no ratio, how much more or less it is; empty where neither
    is known. What is counted has no width, so no interval."""
    ratio = ratio_of(change)
    if ratio is None:
        zero = change.type in RATIOS and change.values is not None and 0 in change.values
        return present.shift(change.values, change.unit) if zero and change.values else ""
    bounds = percent_interval(change)
    if bounds is None or bounds[0] == bounds[1]:
        return percent(ratio - 1)
    return percent(ratio - 1, (bounds[0] / 100, bounds[1] / 100))


def percent_interval(change: DegradationInfo) -> tuple[float, float] | None:
    """The bounds of how many percent the target is more than the baseline, where the rate is a ratio and the
    check knows bounds of it; a bound may be infinite."""
    if change.interval is None or change.type not in RATIOS:
        return None
    low, high = change.interval
    return None if low <= 0 and math.isinf(high) else (100 * (low - 1), 100 * (high - 1))


def factor_of(change: DegradationInfo) -> str:
    """`4.76x`; of what has no ratio the type and the rate: `order +2`; empty if neither is known."""
    ratio, rate = ratio_of(change), change.rate_degradation
    kind = "" if change.type in ("", "-", "ratio") else one_line(change.type)
    if ratio is not None:
        return f"{factor(ratio)}, {kind}" if kind else factor(ratio)
    if change.type in RATIOS or not rate or not math.isfinite(rate):
        return ""
    return f"{kind} {rate:+.3g}".strip()


def counts_of(change: DegradationInfo) -> str:
    """How often baseline and target were measured: `n = 10`, or `n = 10, 12`; empty if it is not known."""
    if change.sizes is None or not any(change.sizes):
        return ""
    old, new = change.sizes
    return f"n = {old:,}" if old == new else f"n = {old:,}, {new:,}"


def certainty_of(change: DegradationInfo) -> str:
    """The confidence that the method names, as `r_square = 0.99`, where it knows no interval."""
    name = change.confidence_type
    known = name not in ("", "no", "p_value") and math.isfinite(change.confidence_rate)
    return f"{one_line(name)} = {change.confidence_rate:.3g}" if known else ""


def kinds_of(session: Session, infos: Iterable[DegradationInfo]) -> str:
    """How many changes there are of which kind, only those that there are: `1 degradation(-), 2 unknown`."""
    kinds = [info.result for info in infos]
    better, worse = sum(map(is_better, kinds)), sum(map(is_worse, kinds))
    unknown = kinds.count(PerformanceChange.Unknown)
    rest = len(kinds) - better - worse - unknown
    parts = (
        session.paint(plural(better, "optimization") + "(+)", "green") if better else "",
        session.paint(plural(worse, "degradation") + "(-)", "red") if worse else "",
        f"{unknown} unknown" if unknown else "",
        f"{rest} new or gone" if rest else "",
    )
    return ", ".join(filter(None, parts))


def change_lines(
    session: Session,
    records: Sequence[ChangeRecord],
    covering: Callable[[DegradationInfo], Acknowledgement | None] = lambda change: None,
) -> list[str]:
    """Stored changes of a version as lines, one for each place, the worst first, with the configuration where
    there are several. Beyond :data:`MAX_LINES`, unless the session is verbose, it is said how many more.

    :param covering: what acknowledges a change.
    """
    ordered = sorted(records, key=lambda record: importance(record.info))
    shown = ordered if session.verbosity else ordered[:MAX_LINES]
    several = len({record.command for record in records}) > 1
    commands = [f"({one_line(one.command)})" if several else "" for one in shown]
    entries = [covering(one.info) for one in shown]
    remarks = [one_line(entry.text) if entry else "" for entry in entries]
    lines = lines_of(session, [one.info for one in shown], commands, remarks)
    left = len(ordered) - len(shown)
    return [*lines, f"and {left} more: perun -v {session.command} lists them"] if left else lines


def lines_of(session: Session, infos: Sequence[DegradationInfo], *more: Sequence[str]) -> list[str]:
    """A line for each change, their columns aligned. :param more: further columns."""
    cells = [(*_cells(info), *rest) for info, *rest in zip(infos, *more, strict=True)]
    rows = aligned(cells, MAX_WIDTH)
    return [_painted(session, info, own) for info, own in zip(infos, rows, strict=True)]


def _cells(info: DegradationInfo) -> tuple[str, ...]:
    sides = " -> ".join(sides_of(info))
    return name_of(info), one_line(info.location), sides, percent_of(info), factor_of(info)


def _painted(session: Session, info: DegradationInfo, cells: list[str]) -> str:
    name, location, *rest = cells
    painted = session.paint(name, style_for(info)), session.paint(location, "bold")
    return "  ".join((*painted, *rest)).rstrip()


def aligned(rows: Iterable[tuple[str, ...]], most: int) -> list[list[str]]:
    """The cells of each row, filled up with blanks to the width of their column, without empty columns.

    :param most: width up to which a column is filled: what is longer stands out of it.
    """
    columns = [column for column in zip(*rows, strict=True) if any(column)]
    filled = [_filled(column, most) for column in columns]
    return [list(row) for row in zip(*filled, strict=True)]


def _filled(column: tuple[str, ...], most: int) -> list[str]:
    size = max((one for one in map(width, column) if one <= most), default=0)
    return [cell + " " * max(size - width(cell), 0) for cell in column]
