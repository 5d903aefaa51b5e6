"""Values, differences and words as text and as JSON: the only place that writes them, so that the same number
is the same text in every answer.

`perun status` and `perun log` load this, so nothing heavy is imported here.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from perun.measurement.estimate import Estimate
from perun.measurement.verdict import Verdict, severity
from perun.profile import amounts
from perun.profile.amounts import readable, readable_spread
from perun.profile.changes import PerformanceChange

NAMES: Final = {
    change: re.sub("(?<=[a-z])(?=[A-Z])", " ", change.name).replace(" In ", " in ")
    for change in PerformanceChange
}
"""`Severe Degradation` for SevereDegradation: the names of the manual's 8.1."""
MARKS: Final = {
    "!!": "severe",
    "!": "definite",
    "!?": "unconfirmed, seen once: perun compare decides",
    "?": "maybe",
    "=": "the same program and input, measured once",
}
"""What stands behind a difference that is none of chance alone, the strongest first, and where there is
none."""
_COLOURS: Final = {"!!": "bold {}", "!": "{}", "!?": "yellow", "?": "dim", "=": "dim"}


def value(one: Estimate, unit: str, *, counted: bool = True) -> str:
    """A value with half the width of its interval and, if wanted, how often it was measured:
    `208 ms ± 3 (n = 10)`, or `± >100 %` where it may be anything. What does not vary, or was measured once,
    stands alone."""
    text = readable(one.value, unit)
    half = one.half_width
    if half and one.low is not None and one.low >= 0 and half >= one.value > 0:
        text = f"{text} ± >100 %"
    elif half:
        text = readable_spread(one.value, half, unit)
    return f"{text} (n = {one.size})" if counted and one.size > 1 else text


def difference(one: Verdict | None, unit: str, *, interval: bool = True) -> str:
    """How much more or less it is, with the interval that decided: `+1.2 % [-0.4, +2.9]`; `+3 ms [+1 ms, +5
    ms]` to or from 0, which has no ratio. Empty without a verdict."""
    if one is None:
        return ""
    found = one.difference
    if found.delta is None or 0 < found.ratio < math.inf:
        return share(found.ratio, one.low, one.high, interval=interval)
    shift, *bounds = (_signed(number, unit) for number in found.delta)
    bounded = interval and bounds[0] != bounds[1] and all(map(math.isfinite, found.delta))
    return f"{shift} [{', '.join(bounds)}]" if bounded else shift


def share(ratio: float, low: float, high: float, *, interval: bool = True) -> str:
    """How much more or less a ratio is, with its interval where that has a width; empty of NaN."""
    bounded = interval and low < high and (low > 0 or high < math.inf)
    return amounts.percent(ratio - 1, (low - 1, high - 1) if bounded else None)


def step(values: tuple[float, float], ratio: float, low: float, high: float, unit: str) -> str:
    """The difference of two values by their ratio; to or from 0, where there is none, by how much it is.

    :param low: and :param high: of the ratio.
    """
    return share(ratio, low, high) if 0 < ratio < math.inf else shift(values, unit)


def shift(values: tuple[float, float], unit: str) -> str:
    """By how much the second value is more than the first: `+3 ms`."""
    return _signed(values[1] - values[0], unit)


def mark(one: Verdict | None, *, confirmed: bool = True) -> str:
    """How certain a change is, by a key of :data:`MARKS`; empty where none was found.

    :param confirmed: whether both sides were seen more than once.
    """
    if one is not None and one.difference.shares:
        return "="
    size = 0 if one is None else abs(severity(one.change))
    if size < 2:
        return "?" * size
    return "!?" if not confirmed else "!!" if size > 2 else "!"


def style(one: Verdict | None, *, confirmed: bool = True) -> str:
    """The colour of a difference: red of what is worse, green of what is better; none without a mark."""
    found = mark(one, confirmed=confirmed)
    if one is None or not found:
        return ""
    return _COLOURS[found].format("red" if severity(one.change) < 0 else "green")


def word(one: Verdict, *, confirmed: bool = True) -> str:
    """The word of the verdict, as :func:`name`; of a maybe that only a weaker interval than usual has found
    that it is this one: `Maybe Degradation by the 95 % interval`."""
    if one.difference.shares:
        return f"{name(one.change)}: {one.reason}"
    weaker = f" by the {100 * one.maybe_confidence:.4g} % interval" if one.maybe_confidence else ""
    return name(one.change, confirmed=confirmed, limit=one.limit) + weaker


def name(change: PerformanceChange, *, confirmed: bool = True, limit: float | None = None) -> str:
    """`Maybe Degradation`, `Degradation, unconfirmed`, `No Change above 3.1 %`.

    :param limit: as of :class:`~perun.measurement.verdict.Verdict`.
    """
    if limit is not None:
        return f"{NAMES[PerformanceChange.NoChange]} above {amounts.percent(limit).lstrip('+')}"
    return NAMES[change] + ("" if confirmed or abs(severity(change)) < 2 else ", unconfirmed")


def value_data(one: Estimate, unit: str) -> dict[str, Any]:
    """The value in JSON; bounds are null where there are none."""
    low, high = map(_finite, (one.low, one.high))
    return {"value": one.value, "low": low, "high": high, "n": one.size, "unit": unit}


def verdict_data(one: Verdict) -> dict[str, Any]:
    """The verdict in JSON; bounds are null where there are none."""
    ratio, low, high = map(_finite, (one.difference.ratio, *(one.bounds or (None, None))))
    return {
        "ratio": ratio,
        "ratio_low": low,
        "ratio_high": high,
        "verdict": one.change.name,
        "reason": one.reason,
        "decides": one.decides,
        "limit": one.limit,
    }


def _finite(number: float | None) -> float | None:
    return None if number is None or not math.isfinite(number) else number


def _signed(number: float, unit: str) -> str:
    return ("+" if number > 0 else "") + readable(number, unit)
