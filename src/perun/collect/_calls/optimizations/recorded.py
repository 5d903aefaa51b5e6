"""Methods by what earlier profiles say: `baseline-dynamic` and `dynamic-sampling`; and the two of the
engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from perun.collect._calls.optimizations.plan import Earlier, Effect, Seen, Switching
from perun.collect._calls.optimizations.shaping import levels_of
from perun.profile.amounts import readable

if TYPE_CHECKING:
    from perun.callgraph.graph import CallGraph
    from perun.collect._calls.optimizations.settings import Settings

REGULAR: Final = 0.05
"""Times whose interquartile range is a smaller part of their median say the same again and again."""
SHORT: Final = 10.0
"""Microseconds of a short call."""
WRAPPED: Final = 0.8
"""Part of the median time of its only caller from which on a function says what that says."""
MAX_SAMPLING: Final = 65_536
"""A function is sampled no more than that."""
_STEPS: Final = {"constant": 2.0, "logarithmic": 2.0, "linear": 1.5}


def baseline_dynamic(
    graph: CallGraph, previous: CallGraph | None, earlier: Earlier, settings: Settings
) -> Effect:
    """Drop what is called very often, often and with short or regular times, or what only its caller's time
    holds."""
    dropped: dict[str, str] = {}
    for name in graph.functions:
        seen = earlier.seen.get(name)
        if seen is not None and name != graph.entry and (why := _too_often(seen, settings)):
            dropped[name] = why
    # From the top, as the caller that is compared with is one that stays.
    level = levels_of(graph).of
    for name in sorted(graph.functions, key=lambda one: level.get(one, 0)):
        seen = earlier.seen.get(name)
        if seen is None or name in dropped or name == graph.entry or len(seen.callers) != 1:
            continue
        (caller,) = seen.callers
        above = earlier.seen.get(caller)
        if above is not None and caller not in dropped and seen.median >= WRAPPED * above.median > 0:
            share = min(seen.median / above.median, 1.0)
            dropped[name] = f"it takes {share:.0%} of the time of {caller}, its only caller"
    return Effect(dropped)


def _too_often(seen: Seen, settings: Settings) -> str:
    calls = f"it was called {seen.calls:,} times"
    if seen.calls > settings.hard:
        return f"{calls}, more than {settings.hard:,}"
    if seen.calls <= settings.soft:
        return ""
    if seen.median <= SHORT:
        return f"{calls}, more than {settings.soft:,}, for {readable(seen.median, 'us')}"
    if seen.iqr < REGULAR * seen.median:
        return f"{calls}, more than {settings.soft:,}, with regular times"
    return ""


def dynamic_sampling(
    graph: CallGraph, previous: CallGraph | None, earlier: Earlier, settings: Settings
) -> Effect:
    """Sample each function so that about `dyn-sample-threshold` of its calls are recorded.

    Where nothing was recorded yet the deeper ones are sampled more, as they are called more often.
    """
    threshold = settings.number("dyn-sample-threshold", 1)
    step = float(settings.value("dyn-sample-step"))
    levels = levels_of(graph).of
    sampling = {}
    for name in graph.functions:
        seen = earlier.seen.get(name)
        if seen is not None:
            wanted = round(seen.calls / threshold)
        else:
            base = step * _STEPS.get(earlier.bounds.get(name, ""), 1.0)
            wanted = _power(base, levels.get(name, 0))
        if wanted > 1:
            sampling[name] = min(wanted, MAX_SAMPLING)
    return Effect(sampling=sampling)


def _power(base: float, exponent: int) -> int:
    value = 1.0
    for _ in range(exponent):
        value *= base
        if value >= MAX_SAMPLING or base <= 1:
            break
    return round(min(value, MAX_SAMPLING))


def dynamic_probing(
    graph: CallGraph, previous: CallGraph | None, earlier: Earlier, settings: Settings
) -> Effect:
    """Have the engine probe a function no longer once it has recorded so many calls of it."""
    return Effect(
        switching=Switching(settings.number("probing-threshold", 0), settings.flag("probing-reattach"))
    )


def timed_sampling(
    graph: CallGraph, previous: CallGraph | None, earlier: Earlier, settings: Settings
) -> Effect:
    """Have the engine switch all probes but that of the entry off and on by a timer."""
    return Effect(switching=Switching(period=float(settings.value("timed-sample-freq"))))
