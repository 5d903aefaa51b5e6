"""Nested values as text, such as the uid, which names what was measured (manual 2.1 and 2.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from perun.core.errors import ProfileError

_UID_ORDER: Final = (
    ("bin",),
    ("file", "source", "package"),
    ("module",),
    ("class", "struct"),
    ("function", "func", "method", "procedure"),
    ("line",),
    ("instruction",),
)
PLAIN_SUBTYPES: Final = frozenset({"", "time delta"})
"""Subtypes that say nothing beside their type."""
_UID_RANK: Final = {key: rank for rank, keys in enumerate(_UID_ORDER) for key in keys}
_FUNCTION: Final = _UID_RANK["function"]


def flatten(value: Any) -> Any:
    """A nested value as one text; a value that is not nested, itself (manual 2.4, `all_items_of`).

    A mapping becomes its values joined by `:`, from the coarsest to the finest place in a program whatever
    their order; a list becomes its items joined by `,`. Of the items of a trace the function comes first, as
    in `malloc:unreachable:0` (manual 2.3).

    :raises ProfileError: if it is nested too deeply.
    """
    if not isinstance(value, (Mapping, list, tuple)):
        return value
    try:
        return _joined(value)
    except RecursionError:
        raise too_deep("a value") from None


def shown_subtype(uid: str, kind: str, subtype: str) -> str:
    """The subtype of a resource beside its uid; empty where the uid says it all.

    :param kind: the type of the resource.
    """
    if subtype in PLAIN_SUBTYPES or kind == "instructions" or (kind, subtype) == ("sample", "cpu"):
        return ""  # the uid of a function with all that it calls ends with `inclusive`
    return "" if kind == "memory" and uid.endswith(subtype) else subtype


def location(uid: str, subtype: str = "") -> str:
    """What was measured, as text: the flattened uid, and in brackets what of it where there may be several
    things: `./prog [real]`."""
    return f"{uid} [{subtype}]" if subtype else uid


def uid_in(place: str) -> str:
    """The uid of a place that :func:`location` has made."""
    return place[:-1].rpartition(" [")[0] or place if place.endswith("]") else place


def _joined(value: Any) -> str:
    if isinstance(value, Mapping):
        return ":".join([_joined(value[key]) for key in _uid_order(tuple(value))])
    if isinstance(value, (list, tuple)):
        return ",".join([_joined_item(item) for item in value])
    return str(value)


def _joined_item(item: Any) -> str:
    if isinstance(item, Mapping):
        return ":".join([_joined(item[key]) for key in _trace_order(tuple(item))])
    return _joined(item)


@lru_cache(maxsize=256)
def _trace_order(keys: tuple[str, ...]) -> list[str]:
    return sorted(_uid_order(keys), key=lambda key: _UID_RANK.get(key) != _FUNCTION)


@lru_cache(maxsize=256)
def _uid_order(keys: tuple[str, ...]) -> list[str]:
    return sorted(keys, key=lambda key: _UID_RANK.get(key, len(_UID_ORDER)))


def moved_to(
    old: Iterable[tuple[str, str]], new: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], tuple[str, str]]:
    """Of functions that a version does not have any more, which others they are: a file that was renamed has
    one, if only one function of that name is left on each side.

    :param old: source and name of the functions of a version, :param new: of a later one.
    """
    before, after = dict.fromkeys(old), dict.fromkeys(new)
    gone, came = (
        Counter(name for _, name in one if (_, name) not in other)
        for one, other in ((before, after), (after, before))
    )
    places = {name: (source, name) for source, name in after if (source, name) not in before}
    return {one: places[one[1]] for one in before if one not in after and gone[one[1]] == came[one[1]] == 1}


def too_deep(what: str) -> ProfileError:
    """The error for what Python's own recursion cannot follow."""
    return ProfileError(f"{what} of the profile is nested too deeply", "nest lists and mappings less")


def may_have_uid(constants: Mapping[str, Any], uids: Container[str]) -> bool:
    """Whether resources with these constants have one of the uids, given as text (:func:`flatten`).

    So may those that differ in their uids, or have none.
    """
    return "uid" not in constants or str(flatten(constants["uid"])) in uids
