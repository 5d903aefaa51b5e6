"""Call stacks in the formats of other tools: folded stacks, and the JSON of speedscope."""

from __future__ import annotations

from typing import Any, Final

from perun.view.flamegraph.frames import Frame
from perun.view.flamegraph.stacks import Stack

_SPEEDSCOPE_UNITS: Final = {
    **{"B": "bytes", "b": "bytes", "byte": "bytes", "bytes": "bytes"},
    **{"ns": "nanoseconds", "us": "microseconds", "µs": "microseconds", "ms": "milliseconds", "s": "seconds"},
}
_SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"


def folded(stacks: dict[Stack, float], by_line: bool = False) -> str:
    """One line for each stack: its frames, the outermost first, joined by `;`, then a blank and the amount.

    flamegraph.pl, speedscope, inferno and others read this format. In names `;` becomes `:`, and white space
    becomes one blank.

    :param by_line: write frames as `name (source:line)`, so that calls from different lines differ.
    """
    sums: dict[str, float] = {}
    for stack, amount in stacks.items():
        text = ";".join(_folded_frame(frame, by_line) for frame in stack)
        sums[text] = sums.get(text, 0) + amount
    return "".join(f"{text} {_decimal(amount)}\n" for text, amount in sorted(sums.items()))


def speedscope(stacks: dict[Stack, float], *, name: str, unit: str, exporter: str) -> dict[str, Any]:
    """The document of https://www.speedscope.app: each stack is a sample, and its amount the weight."""
    numbers: dict[Frame, int] = {}
    samples = [[numbers.setdefault(frame, len(numbers)) for frame in stack] for stack in stacks]
    return {
        "$schema": _SCHEMA,
        "exporter": exporter,
        "name": name,
        "activeProfileIndex": 0,
        "shared": {"frames": [_speedscope_frame(frame) for frame in numbers]},
        "profiles": [
            {
                "type": "sampled",
                "name": name,
                "unit": _SPEEDSCOPE_UNITS.get(unit, "none"),
                "startValue": 0,
                "endValue": sum(stacks.values()),
                "samples": samples,
                "weights": list(stacks.values()),
            }
        ],
    }


def _folded_frame(frame: Frame, by_line: bool) -> str:
    text = _with_line(frame) if by_line else frame.name
    return " ".join(text.replace(";", ":").split()) or "?"


def _with_line(frame: Frame) -> str:
    if not frame.source and not frame.line:
        return frame.name
    return f"{frame.name} ({frame.source or '?'}:{frame.line})"


def _decimal(amount: float) -> str:
    """The number without an exponent, which some readers do not accept."""
    if isinstance(amount, int):
        return str(amount)
    from decimal import Decimal

    text = format(Decimal(repr(amount)), "f")
    return text.removesuffix(".0")


def _speedscope_frame(frame: Frame) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": frame.name}
    if frame.source:
        entry["file"] = frame.source
    if frame.line:
        entry["line"] = frame.line
    return entry
