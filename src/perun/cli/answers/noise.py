"""What `perun doctor noise` answers: text and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perun.cli.answers.data import finite
from perun.cli.table import clean
from perun.measurement.difference import DEFAULTS
from perun.models.two_samples.ratio import POWER
from perun.porcelain.compare.options import MAX_PAIRS, SECONDS
from perun.porcelain.noise import Clock, Effect, Noise
from perun.profile.amounts import readable


def noise_data(found: Noise) -> dict[str, Any]:
    """The noise as JSON data (docs/json.md)."""
    return {
        "schema": "perun.noise/1",
        "machine": found.machine or None,
        "conditions": [one._asdict() for one in found.conditions],
        "command": found.command,
        "pairs": found.pairs,
        "disturbed": found.disturbed,
        "pinned": found.pinned,
        "seconds": found.seconds,
        "confidence": DEFAULTS.confidence,
        "power": POWER,
        "clocks": [_clock_data(clock) for clock in found.clocks],
    }


def _clock_data(clock: Clock) -> dict[str, Any]:
    return {
        "name": clock.name,
        "median": clock.median,
        "scatter": clock.scatter,
        "paired": clock.paired,
        "ratio": clock.ratio.estimate,
        "interval": [finite(clock.ratio.low), finite(clock.ratio.high)],
        "p_value": clock.ratio.p_value,
        "halves": clock.halves,
        "smallest": finite(clock.smallest),
        "effects": [one._asdict() for one in clock.effects],
    }


def noise_lines(found: Noise) -> Iterator[str]:
    """The noise as text."""
    if found.machine:
        yield f"this machine: {clean(found.machine)}"
    yield (
        f"{found.pairs} pairs of runs of the same program in {readable(found.seconds, 's')}"
        + (", each pair on one core" if found.pinned else "")
        + (f"; in {found.disturbed} of them something else was in the way" if found.disturbed else "")
    )
    yield ""
    yield f"{'':6}{'one run':>10}{'scatter':>10}{'in pairs':>10}   the program by itself"
    for clock in found.clocks:
        ratio = clock.ratio
        yield (
            f"{clock.name:6}{readable(clock.median, 's'):>10}{clock.scatter:>10.1%}{clock.paired:>10.1%}"
            f"   {ratio.estimate:.4f} ({ratio.low:.4f} to {ratio.high:.4f})"
        )
    yield ""
    yield (
        f"pairs of which 'perun compare' sees a change, {POWER:.0%} of the times, with a confidence of "
        f"{DEFAULTS.confidence:.0%}:"
    )
    for effects in zip(*(clock.effects for clock in found.clocks), strict=True):
        needed = [
            f"{clock.name}: {_needed(effect):22}" for clock, effect in zip(found.clocks, effects, strict=True)
        ]
        yield f"{effects[0].share:>6.0%}   {'   '.join(needed)}".rstrip()
    yield ""
    best = ", ".join(f"{clock.smallest:.1%} by {clock.name}" for clock in found.clocks)
    yield f"the smallest change seen in the {SECONDS:.0f} s that it takes by default: {best}"
    drift = max(found.clocks, key=lambda clock: abs(clock.halves - 1))
    yield (
        f"measured one after the other, the same program would have seemed {drift.halves:.3f} times as slow "
        f"({drift.name}, the second half of all runs by the first)"
    )
    for condition in found.conditions:
        yield f"look: {clean(condition.message)}"
        if condition.advice:
            yield f"      {clean(condition.advice)}"


def _needed(effect: Effect) -> str:
    if effect.pairs is None or effect.seconds is None:
        return f"not in {MAX_PAIRS} pairs"
    return f"{effect.pairs} pairs, {readable(effect.seconds, 's')}"
