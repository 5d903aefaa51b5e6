"""Units of amounts as the profile gives them (manual 2.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from perun.profile.uid import flatten

if TYPE_CHECKING:
    from perun.profile.factory import Profile

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
