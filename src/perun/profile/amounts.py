"""Numbers as people read them: 1 M rather than 1e+06, 2.5 ms, 1 GiB.

Every part of Perun that prints an amount does it with these: a time in the nearest unit, a size with a prefix
of powers of 1024, any other number with a prefix of powers of 1000.
"""

from __future__ import annotations

import math
from typing import Final

TIMES: Final = {
    **{"h": 3600.0, "min": 60.0, "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0},
    **{"ms": 1e-3, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "ns": 1e-9},
}
SIZES: Final = {
    **{"B": 1.0, "b": 1.0, "byte": 1.0, "bytes": 1.0, "kB": 1024.0, "KB": 1024.0, "KiB": 1024.0},
    **{"MB": 2.0**20, "MiB": 2.0**20, "GB": 2.0**30, "GiB": 2.0**30},
}
SECONDS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
BYTES: Final = ((2.0**50, "PiB"), (2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (1024.0, "KiB"),
                 (1.0, "B"))  # fmt: skip
PLAIN: Final = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SUPERSCRIPTS: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_LARGEST: Final = 1e3
SMALLEST: Final = 1e-3
"""Beyond these multiples of the largest and the smallest prefix, a number gets a power of ten."""
_LARGEST_TIME: Final = 1e6
"""The same for times, as the second has no larger prefix."""
_VISIBLE: Final = 1e-3
"""Share by which two amounts differ at least to be written differently."""
_MAX_PLACES: Final = 9
_LEAST_PERCENTS: Final = 1e-3
"""Smaller ones are no difference: those of a computation with rounded numbers."""

Steps = tuple[tuple[float, str], ...]
"""Prefixes of a unit, each with its factor to the base unit, the largest first."""


def readable(value: float, unit: str = "", digits: int = 3) -> str:
    """A number with its unit, e.g. `2.5 ms` for 2500 `us`, `1.5 MiB`, `12.3 k`, `-1.5 k`.

    Times get the nearest unit of time, sizes a prefix of powers of 1024; any other unit follows the number.
    NaN is `no number`.

    :param unit: the unit of `value`, e.g. `us`, `B`.
    :param digits: significant digits to keep.
    """
    if math.isnan(value):
        return "no number"
    factor, steps, rest = _scale_of(unit)
    value *= factor  # may become infinite
    largest = end_of(steps)
    if math.isinf(value) or (value and not (steps[-1][0] * SMALLEST <= abs(value) < largest)):
        return _joined(_scientific(value, digits), _base(steps), rest)
    if not value:
        return _joined("0", _base(steps), rest)
    scale, prefix = _step_of(abs(value), steps, digits)
    return _joined(_short(value / scale, digits), prefix, rest)


def readable_spread(value: float, spread: float, unit: str = "") -> str:
    """A value and its spread in one unit, the spread with one or two digits: `208 ms ± 3`, `1.50 MiB ± 0.02`.

    :param spread: as the value in `unit`, not negative.
    """
    text = readable(value, unit)
    factor, steps, rest = _scale_of(unit)
    value, own = value * factor, spread * factor
    name = text.partition(" ")[2].removesuffix(rest).strip()
    scale = next((size for size, prefix in steps if prefix == name), None)
    if scale is None or "\u00d7" in text or max(abs(value), own) >= end_of(steps):
        return f"{text} ± {readable(spread, unit)}"
    value, spread = value / scale, own / scale
    places = _places(value, 3)
    if spread:  # one digit of it is to be seen, two where it is as small as 1.x
        places = max(places, min(_places(spread, 2 if f"{spread:e}"[0] == "1" else 1), places + 2))
    return f"{_joined(f'{value:,.{places}f}', name, rest)} ± {spread:,.{places}f}"


def readable_pair(before: float, after: float, unit: str = "") -> tuple[str, str]:
    """Two amounts to be compared by the eye, in one unit: `70 ms` and `330 ms`, `3.82 ms` and `4.45 ms`.

    Where one is a thousand times the other, 0, or beyond all prefixes, each is written by itself.
    """
    factor, steps, rest = _scale_of(unit)
    small, large = sorted((abs(before * factor), abs(after * factor)))
    if not (small * 1000 > large and steps[-1][0] * SMALLEST <= large < end_of(steps)):
        return readable(before, unit), readable(after, unit)
    scale, prefix = _step_of(large, steps, 3)
    # More digits than these are errors of the conversion, with which 70 ms would be no whole number.
    old, new = (float(f"{amount * factor / scale:.12g}") for amount in (before, after))
    places = places_of_pair(old, new)
    return _joined(f"{old:,.{places}f}", prefix, rest), _joined(f"{new:,.{places}f}", prefix, rest)


def places_of_pair(before: float, after: float) -> int:
    """The decimals of two amounts that are compared by the eye: so many that the larger one has three digits
    and the smaller one two, and that they differ where the amounts do by a thousandth.

    :param before: and :param after: are not 0; whole numbers need none.
    """
    small, large = sorted((abs(before), abs(after)))
    places = max(_places_unless_whole(small, 2), _places_unless_whole(large, 3))
    apart = abs(after - before)
    if _VISIBLE * large <= apart < math.inf:
        places = max(places, min(-math.floor(math.log10(apart)), _MAX_PLACES))
    return places


def percent(share: float, interval: tuple[float, float] | None = None) -> str:
    """How much more something is: `+1.2 %`, `+1.2 % [-0.4, +2.9]`, `+12,957 %`; empty if that is no number.

    :param share: 0.012 is 1.2 % more.
    :param interval: bounds of the share; one that is infinite is `...`.
    """
    if not math.isfinite(share):
        return ""
    text = f"{_signed_percents(share)} %"
    if interval is None:
        return text
    return f"{text} [{', '.join(_signed_percents(one) if math.isfinite(one) else '...' for one in interval)}]"


def _signed_percents(share: float) -> str:
    percents = 100 * share
    size = abs(percents)
    if size < _LEAST_PERCENTS:
        return "0.0"
    if size < 0.05:
        return f"{percents:+.1g}"
    return f"{percents:+.1f}" if size < 99.95 else f"{percents:+,.0f}"


def conversion(unit: str, other: str) -> float | None:
    """How many of the other unit one `unit` is; None where they are not of one kind."""
    if unit == other:
        return 1.0
    for units in (TIMES, SIZES):
        if unit in units and other in units:
            return units[unit] / units[other]
    return None


def unit_label(unit: str) -> str:
    """The unit beside the label of an axis, without a prefix, as its ticks have prefixes: `s`, `B`, `ops`."""
    _, steps, rest = _scale_of(unit)
    return rest if steps is PLAIN else _base(steps)


def is_size(unit: str) -> bool:
    """Whether the unit is one of memory, whose prefixes are powers of 1024."""
    return unit in SIZES


def is_time(unit: str) -> bool:
    """Whether the unit is one of time."""
    return unit in TIMES


def end_of(steps: Steps) -> float:
    """The first number, in the base unit, that is too large for the largest prefix."""
    return steps[0][0] * (_LARGEST_TIME if steps is SECONDS else _LARGEST)


def _scale_of(unit: str) -> tuple[float, Steps, str]:
    """Factor to the base unit, the prefixes to choose from, and the unit that follows a prefix."""
    if unit in TIMES:
        return TIMES[unit], SECONDS, ""
    if unit in SIZES:
        return SIZES[unit], BYTES, ""
    return 1.0, PLAIN, unit


def _step_of(size: float, steps: Steps, digits: int) -> tuple[float, str]:
    """The largest prefix of which the number has one at least."""
    # 999.9 k is 1 M.
    return next((step for step in steps if float(f"{size / step[0]:.{digits}g}") >= 1), steps[-1])


def _base(steps: Steps) -> str:
    return next(name for scale, name in steps if scale == 1.0)


def _joined(number: str, *names: str) -> str:
    return " ".join(part for part in (number, *names) if part)


def _short(value: float, digits: int) -> str:
    text = f"{value:,.{_places(value, digits)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _places(value: float, digits: int) -> int:
    """The decimals with which the value has so many digits."""
    if not value:
        return 0
    return min(max(0, digits - 1 - math.floor(math.log10(abs(value)))), 12)


def _places_unless_whole(value: float, digits: int) -> int:
    return 0 if value == int(value) else min(_places(value, digits), _MAX_PLACES)


def _scientific(value: float, digits: int) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}\u00d710{str(int(exponent)).translate(_SUPERSCRIPTS)}"
