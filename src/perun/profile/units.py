"""Units of amounts as the profile gives them (manual 2.1), and the amounts in the texts of checks (8.1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from perun.profile.amounts import places_of_pair
from perun.profile.uid import flatten

if TYPE_CHECKING:
    from perun.profile.factory import Profile

LARGER_IS_BETTER: Final = "larger_is_better"
"""Key of the header of a profile."""
_NONE: Final[frozenset[str]] = frozenset()
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


def readable(amount: float, unit: str) -> str:
    """The amount with two decimals and its unit; a time too small for that is given in a smaller unit."""
    while 0 < abs(amount) < 0.1 and unit in _SMALLER_TIMES:
        amount, unit = amount * 1000, _SMALLER_TIMES[unit]
    text = f"{amount:.3g}" if 0 < abs(amount) < 0.1 else str(round(amount, 2))
    return text + unit


def readable_pair(before: float, after: float, unit: str, unit_after: str | None = None) -> tuple[str, str]:
    """Two amounts as the texts of a change have them: in one unit, with the decimals of
    :func:`perun.profile.amounts.places_of_pair`. Where one is a thousand times the other, or 0, each is
    written by itself.

    :param unit_after: where the second has another unit, so that each is written by itself.
    """
    small, large = sorted((abs(before), abs(after)))
    if unit_after not in (None, unit) or not (math.isfinite(large) and small * 1000 > large):
        return readable(before, unit), readable(after, unit if unit_after is None else unit_after)
    while large < 0.1 and unit in _SMALLER_TIMES:
        before, after, small, large = (1000 * one for one in (before, after, small, large))
        unit = _SMALLER_TIMES[unit]
    decimals = places_of_pair(before, after)
    return f"{before:.{decimals}f}{unit}", f"{after:.{decimals}f}{unit}"


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
