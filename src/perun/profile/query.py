"""Questions to the resources and models of a profile (manual 2.4, and the chapter that it grew out of).

A key may lead into nested values: `:` goes to a key of a mapping, `::` to all items of a list, so that
`uid:function` is the function of a uid and `trace::function` those of all records of a trace.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from perun.profile.format.columns import Column, is_packed
from perun.profile.format.core import Profile
from perun.profile.uid import flatten, too_deep

_PLACE = ("snapshot", "time")
"""Fields that say where a resource stands in the profile; they are no measurement."""


def all_resources_of(profile: Profile) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each resource with the number of its snapshot, as :meth:`Profile.all_resources` gives them."""
    return profile.all_resources()


def all_models_of(profile: Profile) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each model with its position, as :meth:`Profile.all_models` gives them."""
    return profile.all_models()


def all_items_of(resource: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each field of a resource with its flattened value, each followed by the fields of a nested mapping.

    :raises ProfileError: if the resource is nested too deeply.
    """
    for key, value in resource.items():
        yield key, flatten(value)
        if isinstance(value, Mapping):
            for inner, item in all_items_of(value):
                yield f"{key}:{inner}", item


def all_resource_fields_of(profile: Profile) -> Iterator[str]:
    """Names of all fields, flattened and original, in the order of their first occurrence.

    The snapshot and its time are not among them, as they are no part of what was measured.
    """
    found: dict[str, None] = {}
    for _, constants, columns, size in profile.groups():
        if not size:
            continue
        found.update((key, None) for key, _ in all_items_of(constants))
        for name, column in columns.items():
            found.update((key, None) for value in _shapes(column) for key, _ in all_items_of({name: value}))
    yield from (name for name in found if name not in _PLACE)


def all_numerical_resource_fields_of(profile: Profile) -> Iterator[str]:
    """Names of the fields that are a number in some resource, in alphabetical order.

    The number of the snapshot is among them, where resources have one.
    """
    found: set[str] = set()
    for _, constants, columns, size in profile.groups():
        if not size:
            continue
        found.update(_numerical_fields_of(constants))
        for name, column in columns.items():
            for value in _shapes(column):
                found.update(_numerical_fields_of({name: value}))
    yield from sorted(found)


def unique_resource_values_of(
    profile: Profile, resource_key: str, *, uids: Container[str] | None = None
) -> Iterator[Any]:
    """Values of a key over all resources as they are, each once, in the order of their first occurrence.

    :param resource_key: may hold `:` and `::`.
    :param uids: leave out groups of other uids, as :meth:`Profile.groups` does.
    """
    return _unique(value for part in _parts(profile, resource_key, uids) for value in part)


def all_key_values_of(resource: Mapping[str, Any], resource_key: str) -> Iterator[Any]:
    """Values of a key in one resource or model, as they are; none if the key leads nowhere.

    :param resource_key: may hold `:` and `::`.
    """
    here: Iterable[Any] = (resource,)
    for number, level in enumerate(resource_key.split("::")):
        if number:
            here = (item for value in here if isinstance(value, (list, tuple)) for item in value)
        for key in level.split(":"):
            here = [value[key] for value in here if isinstance(value, Mapping) and key in value]
    yield from here


def unique_model_values_of(profile: Profile, model_key: str) -> Iterator[Any]:
    """Values of a key over all models as they are, each once, in the order of their first occurrence.

    :param model_key: may hold `:` and `::`.
    """
    models = (model for _, model in profile.all_models())
    return _unique(value for model in models for value in all_key_values_of(model, model_key))


def _parts(profile: Profile, key: str, uids: Container[str] | None) -> Iterator[Iterable[Any]]:
    # A group at a time: constants answer for the whole group, so nobody walks its resources.
    field = key.partition(":")[0]
    for _, constants, columns, size in profile.groups(uids):
        if key in columns:
            yield columns[key]
        elif field in columns:
            for value in columns[field]:
                yield all_key_values_of({field: value}, key)
        elif size:
            yield all_key_values_of(constants, key)


def _shapes(column: Column) -> Iterable[Any]:
    """Values of a column that have all the fields, and all the numbers, that there are in any of them."""
    if is_packed(column):
        return column[:1]
    nested = [value for value in column if isinstance(value, Mapping)]
    return [*{type(value): value for value in column}.values(), *nested]


def _unique(values: Iterable[Any]) -> Iterator[Any]:
    seen: set[Any] = set()
    for value in values:
        known = _hashable(value)
        if known not in seen:
            seen.add(known)
            yield value


def _hashable(value: Any) -> Any:
    """Equal for equal values, and hashable."""
    if not isinstance(value, (Mapping, list, tuple)):
        return value
    try:
        return _frozen(value)
    except RecursionError:
        raise too_deep("a value") from None


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return frozenset((key, _frozen(item)) for key, item in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value


def _numerical_fields_of(values: Mapping[str, Any]) -> Iterator[str]:
    for key, value in values.items():
        if _is_number(value):
            yield key
        elif isinstance(value, Mapping):
            for inner in _numerical_fields_of(value):
                yield f"{key}:{inner}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
