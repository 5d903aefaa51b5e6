"""Numbers as people read them: 1 M rather than 1e+06, 2.5 ms, 1 GiB.

Every part of Perun that prints an amount does it with these: a time in the nearest unit, a size with a prefix
of powers of 1024, any other number with a prefix of powers of 1000.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from perun.profile.uid import flatten

if TYPE_CHECKING:
    from perun.profile.factory import Profile


TIMES: Final = {
    **{"h": 3600.0, "min": 60.0, "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0},
    **{"ms": 1e-3, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "ns": 1e-9},
}
SIZES: Final = {
    **{"B": 1.0, "b": 1.0, "byte": 1.0, "bytes": 1.0, "kB": 1024.0, "KB": 1024.0, "KiB": 1024.0},
    **{"MB": 2.0**20, "MiB": 2.0**20, "GB": 2.0**30, "GiB": 2.0**30},
}
SIZES_OF_RATES: Final = {
    **SIZES,
    **{"kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9},
}
"""Sizes in front of a slash: programs that print `MB/s` mean powers of 1000, as disks and networks do."""
BITS: Final = {"bit": 1.0, "kbit": 1e3, "Kbit": 1e3, "Mbit": 1e6, "Gbit": 1e9}
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
_LITTLE_MORE: Final = 0.02
"""Share up to which a growth is seen by a third decimal of its factor only."""
_MAX_PLACES: Final = 9
_SMALLER_TIMES: Final = {"s": "ms", "ms": "us", "us": "ns"}
_LEAST_PERCENTS: Final = 1e-3
"""Smaller ones are no difference: those of a computation with rounded numbers."""

FAR: Final = 10.0
"""How many times a ratio a bound of it is at most that says anything."""

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

    :param spread: as the value in `unit`, not negative; one too small to be seen is left out.
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
    shown = f"{spread:,.{places}f}"
    return f"{_joined(f'{value:,.{places}f}', name, rest)} ± {shown}" if shown.strip("0.") else text


def readable_pair(before: float, after: float, unit: str = "") -> tuple[str, str]:
    """Two amounts to be compared by the eye, in one unit: `69.5 ms` and `330 ms`. Each has three digits
    unless both are whole, or so many more that they differ where the amounts do by a thousandth.

    Where one is a thousand times the other, 0, or beyond all prefixes, each is written by itself.
    """
    factor, steps, rest = _scale_of(unit)
    small, large = sorted((abs(before * factor), abs(after * factor)))
    if not (small * 1000 > large and steps[-1][0] * SMALLEST <= large < end_of(steps)):
        return readable(before, unit), readable(after, unit)
    scale, prefix = _step_of(large, steps, 3)
    # More digits than these are errors of the conversion.
    old, new = (float(f"{amount * factor / scale:.12g}") for amount in (before, after))
    apart = abs(new - old)
    places = -math.floor(math.log10(apart)) if apart >= _VISIBLE * large / scale else 0
    least = min(places, _MAX_PLACES) if places > _places(large / scale, 3) else 0
    are_whole = not least and old == int(old) and new == int(new)
    first, second = (
        _joined(f"{one:,.{0 if are_whole else max(least, _places(float(f'{one:.3g}'), 3))}f}", prefix, rest)
        for one in (old, new)
    )
    return first, second


def written(value: float, unit: str) -> str:
    """A value as the texts of a change have it, which scripts read (manual 8.2): `60677.98ms`, `1.5s`.

    It has two decimals or three digits; a time that is too small for that is given in a smaller unit.
    """
    while 0 < abs(value) < 0.1 and unit in _SMALLER_TIMES:
        value, unit = value * 1000, _SMALLER_TIMES[unit]
    if math.isfinite(value) and value:
        value = round(value, max(2 - math.floor(math.log10(abs(value))), 2))
    if math.isfinite(value) and value == int(value) and unit not in (*_SMALLER_TIMES, "ns"):
        value = int(value)  # a count, or a number of bytes
    return f"{value}{unit}"


def factor(ratio: float, interval: tuple[float, float] | None = None) -> str:
    """How many times another value one is: `4.76x`, `1.98x [1.94, 2.02]`, `12,345x`.

    :param interval: as of :func:`percent`, of the ratio.
    """
    text = f"{_factor(ratio)}x"
    return text if interval is None else f"{text} {_interval(ratio, interval, _factor)}"


def percent(share: float, interval: tuple[float, float] | None = None) -> str:
    """How much more something is: `+1.2 %`, `+1.2 % [-0.4, +2.9]`, `+12,957 %`; empty if that is no number.

    :param share: 0.012 is 1.2 % more.
    :param interval: bounds of the share; one that is :data:`FAR` from it is `...`, and both are `[unknown]`.
    """
    if not math.isfinite(share):
        return ""
    text = f"{_signed_percents(share)} %"
    if interval is None:
        return text
    low, high = interval
    return f"{text} {_interval(1 + share, (1 + low, 1 + high), lambda ratio: _signed_percents(ratio - 1))}"


def _interval(ratio: float, interval: tuple[float, float], text: Callable[[float], str]) -> str:
    near = [math.isfinite(one) and ratio / FAR <= one <= ratio * FAR for one in interval]
    if not any(near):
        return "[unknown]"
    bounds = (text(one) if is_near else "..." for one, is_near in zip(interval, near, strict=True))
    return f"[{', '.join(bounds)}]"


def _factor(ratio: float) -> str:
    if math.isinf(ratio):
        return "\u221e"
    return _short(ratio, 4 if 1 <= ratio < 1 + _LITTLE_MORE else 3)


def _signed_percents(share: float) -> str:
    percents = 100 * share
    size = abs(percents)
    if size < _LEAST_PERCENTS:
        return "0.0"
    if size < 0.05:
        return f"{percents:+.1g}"
    return f"{percents:+.1f}" if size < 99.95 else f"{percents:+,.0f}"


def common_unit(unit: str) -> tuple[float, str]:
    """The unit in which amounts of one kind compare, and how many of it one `unit` is: `s` for times, `B`
    for sizes, the same for both sides of a slash, as `B/s` for `KiB/s` and `MB/s`; any other for itself."""
    for names, base in ((TIMES, "s"), (SIZES, "B")):
        if unit in names:
            return names[unit], base
    head, slash, per = unit.partition("/")
    if not slash:
        return 1.0, unit
    below, per = (TIMES[per], "s") if per in TIMES else (1.0, per)
    for names, base in ((TIMES, "s"), (SIZES_OF_RATES, "B"), (BITS, "bit")):
        if head in names:
            return names[head] / below, f"{base}/{per}"
    return 1 / below, f"{head}/{per}"


def unit_label(unit: str) -> str:
    """The unit beside the label of an axis, without a prefix, as its ticks have prefixes: `s`, `B`, `ops`."""
    _, steps, rest = _scale_of(unit)
    return rest if steps is PLAIN else _base(steps) + rest


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
    factor, base = common_unit(unit)
    head, slash, per = base.partition("/")
    if slash and head in ("s", "B"):
        return factor, SECONDS if head == "s" else BYTES, slash + per
    return factor, PLAIN, base


def _step_of(size: float, steps: Steps, digits: int) -> tuple[float, str]:
    """The largest prefix of which the number has one at least."""
    # 999.9 k is 1 M.
    return next((step for step in steps if float(f"{size / step[0]:.{digits}g}") >= 1), steps[-1])


def _base(steps: Steps) -> str:
    return next(name for scale, name in steps if scale == 1.0)


def _joined(number: str, prefix: str, rest: str) -> str:
    name = prefix + rest if rest.startswith("/") else f"{prefix} {rest}".strip()
    return f"{number} {name}".rstrip()


def _short(value: float, digits: int) -> str:
    text = f"{value:,.{_places(value, digits)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _places(value: float, digits: int) -> int:
    """The decimals with which the value has so many digits."""
    if not value:
        return 0
    return min(max(0, digits - 1 - math.floor(math.log10(abs(value)))), 12)


def _scientific(value: float, digits: int) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}\u00d710{str(int(exponent)).translate(_SUPERSCRIPTS)}"


# Units of amounts as the profile gives them (manual 2.1).

LARGER_IS_BETTER: Final = "larger_is_better"
"""Key of the header of a profile."""
_NONE: Final[frozenset[str]] = frozenset()


UnitOf = Callable[[object, object], str]


def units(profile: Profile) -> UnitOf:
    """A function of the type and the subtype of a resource that gives the unit of its amount, else ""."""
    header = _mapping(_mapping(profile.get("header")).get("units"))
    known: dict[tuple[str, str], str] = {}

    def unit_of(kind: object, subtype: object) -> str:
        pair = str(kind), str(subtype)
        if pair not in known:
            # The collectors of older releases wrote the subtype in brackets, with a blank or without.
            keys = (f"{kind} ({subtype})", f"{kind}({subtype})", *pair)
            known[pair] = next((header[key] for key in keys if isinstance(header.get(key), str)), "")
        return known[pair]

    return unit_of


def larger_is_better(profile: Mapping[str, Any]) -> frozenset[str]:
    """What the header lists as such: uids, types, subtypes or units of resources of which more is better."""
    found = _mapping(profile.get("header")).get(LARGER_IS_BETTER)
    listed = found if isinstance(found, list) else ()
    return frozenset(one for one in listed if isinstance(one, str) and one) if listed else _NONE


def locations_of_larger(profile: Profile) -> set[str]:
    """Where a growth is an improvement: the uids with and without the subtype of such resources, but for uids
    that have other resources as well."""
    names, unit_of = larger_is_better(profile), units(profile)
    found: dict[bool, set[str]] = {True: set(), False: set()}
    for group in profile.groups():
        uid = str(flatten(group.constants.get("uid", "")))
        kind, subtype = (str(group.constants.get(name, "")) for name in ("type", "subtype"))
        better = bool(names & {uid, kind, subtype, unit_of(kind, subtype)})
        found[better] |= {uid, f"{uid} [{subtype}]"}
    return found[True] - found[False]


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
