"""Which resources belong together: columns, constants and the flattened uid (manual 2.1 and 2.4)."""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from perun.errors import ProfileError

COLUMNS: Final = frozenset(
    {"amount", "structure-unit-size", "call-order", "order", "address", "timestamp", "exclusive"}
)
"""Fields of a resource that change from one measurement to the next."""

_UID_ORDER: Final = (
    ("bin",),
    ("file", "source", "package"),
    ("module",),
    ("class", "struct"),
    ("function", "func", "method", "procedure"),
    ("line",),
    ("instruction",),
)
_UID_RANK: Final = {key: rank for rank, keys in enumerate(_UID_ORDER) for key in keys}
Shape = tuple[tuple[str, ...], tuple[str, ...]]
"""Names of the constants and names of the columns of a resource, both sorted."""


def flatten(value: Any) -> Any:
    """A nested value as one text; a value that is not nested, itself (manual 2.4, `all_items_of`).

    A mapping becomes its values joined by `:`, from the coarsest to the finest place in a program whatever
    their order; a list becomes its items joined by `,`.

    :raises ProfileError: where it is nested too deeply.
    """
    if not isinstance(value, (Mapping, list, tuple)):
        return value
    try:
        return _joined(value)
    except RecursionError:
        raise too_deep("a value") from None


def _joined(value: Any) -> str:
    if isinstance(value, Mapping):
        return ":".join([_joined(value[key]) for key in _uid_order(tuple(value))])
    if isinstance(value, (list, tuple)):
        return ",".join([_joined(item) for item in value])
    return str(value)


@lru_cache(maxsize=256)
def _uid_order(keys: tuple[str, ...]) -> list[str]:
    return sorted(keys, key=lambda key: _UID_RANK.get(key, len(_UID_ORDER)))


def shape_of(fields: Iterable[str], columns: frozenset[str]) -> Shape:
    """Which of `fields` are constants and which are `columns`."""
    ordered = sorted(fields)
    return (
        tuple(name for name in ordered if name not in columns),
        tuple(name for name in ordered if name in columns),
    )


def identity_of(shape: Shape, values: Mapping[str, Any]) -> tuple[Any, ...]:
    """What resources of one group have in common, as a key; `values` holds the constants at least.

    :raises RecursionError: where a constant is nested too deeply.
    """
    constants = [
        value if type(value) is str else _frozen(value) for value in [values[name] for name in shape[0]]
    ]
    return (shape, *constants)


def _frozen(value: Any) -> tuple[Any]:
    """Something hashable that tells 1, 1.0 and True apart, and, being a tuple, 1 from the text `1`."""
    if isinstance(value, (list, dict)):
        try:
            # Three times as quick as repr, which counts for traces; version 0 writes equal values equally.
            return (marshal.dumps(value, 0),)
        except ValueError:
            pass  # nested too deeply for marshal, or of a type of the collector's own
    return (repr(value),)


def too_deep(what: str) -> ProfileError:
    """The error for what Python's own recursion cannot follow."""
    return ProfileError(f"{what} of the profile is nested too deeply", "nest lists and mappings less")
