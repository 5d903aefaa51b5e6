"""Amounts as people read them, with the unit that the profile gives them (manual 2.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from perun.profile.factory import Profile

_SMALLER_TIMES: Final = {"s": "ms", "ms": "us", "us": "ns"}


def units(profile: Profile) -> Callable[[object, object], str]:
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


def readable(amount: float, unit: str) -> str:
    """The amount with two decimals and its unit; a time too small for that is given in a smaller unit."""
    while 0 < abs(amount) < 0.1 and unit in _SMALLER_TIMES:
        amount, unit = amount * 1000, _SMALLER_TIMES[unit]
    text = f"{amount:.3g}" if 0 < abs(amount) < 0.1 else str(round(amount, 2))
    return text + unit


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
