"""A change of models, and what speaks against it: a poor fit, the measured points, and the noise of runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from perun.check._common.relative import Limits, verdict
from perun.check._common.runs import Measured
from perun.check._common.standard_errors import CONFIDENCE, WEAKER
from perun.profile.amounts import percent
from perun.profile.changes import PerformanceChange

if TYPE_CHECKING:
    from perun.check._common.parts import Part

_MAYBE: Final = {
    PerformanceChange.Degradation: PerformanceChange.MaybeDegradation,
    PerformanceChange.Optimization: PerformanceChange.MaybeOptimization,
}


def judged(
    change: PerformanceChange,
    common: Sequence[Part],
    r_square: float,
    measured: Measured | None,
    limits: Limits,
) -> tuple[PerformanceChange, str]:
    """A change of models after all that may speak against it; why, where something does.

    It is definite only if the 99 % interval of the ratio excludes 1, and maybe one only if the 95 % interval
    does; otherwise it is Unknown.

    :param r_square: what the worse model has to fit, if the change is not to be Unknown.
    :param measured: what the points say; None where they are not known.
    :param limits: those that the change was judged by.
    """
    worst = min(part.r_square for part in common)
    if change is not PerformanceChange.NoChange and worst < r_square:
        return PerformanceChange.Unknown, (
            f"the models explain {worst:.2g} of the measured points, less than r_square = {r_square:g}"
        )
    if measured is None:
        return change, ""
    change, rule = confirmed(change, measured.balance, limits)
    if change in (PerformanceChange.NoChange, PerformanceChange.Unknown):
        return change, rule
    return _beyond_noise(change, rule, measured)


def confirmed(change: PerformanceChange, measured: float, limits: Limits) -> tuple[PerformanceChange, str]:
    """The milder one of the changes of the models and of the points; why, where it is that of the points.

    :param measured: the balance of the points. :param limits: those that the change was judged by.
    """
    if change in (PerformanceChange.NoChange, PerformanceChange.Unknown):
        return change, ""
    own = verdict(measured, limits)
    if own is PerformanceChange.Unknown:
        return change, ""
    if own is not PerformanceChange.NoChange and (own.value < 0) is not (change.value < 0):
        return PerformanceChange.Unknown, (
            f"the medians of the measured points changed the other way, by {percent(measured)}"
        )
    if abs(own.value) >= abs(change.value):
        return change, ""
    only = f"the medians of the measured points by {percent(measured)} only"
    return own, f"the models differ by more, but {only}"


def _beyond_noise(change: PerformanceChange, rule: str, measured: Measured) -> tuple[PerformanceChange, str]:
    """No more than the intervals of the ratio allow."""
    for confidence, (low, high) in ((WEAKER, measured.weaker), (CONFIDENCE, measured.interval)):
        if low <= 1 <= high:
            interval = f"the {100 * confidence:g} % interval of the ratio of two such runs"
            rule = f"{interval}, {low:.3g} to {high:.3g}, includes 1: {_ADVICE}"
            return (PerformanceChange.Unknown if confidence == WEAKER else _MAYBE.get(change, change)), rule
    return change, rule


_ADVICE: Final = "measure in rounds, or side by side by perun compare"
