"""Which resources belong together: their columns and constants (manual 2.1)."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any, Final, NamedTuple

from perun.profile.format.columns import Column

COLUMNS: Final = frozenset(
    {"amount", "structure-unit-size", "call-order", "order", "address", "timestamp", "exclusive"}
)
"""Fields of a resource that change from one measurement to the next."""

_PLAIN: Final = frozenset({str, int})  # among these, what is equal is the same
Shape = tuple[tuple[str, ...], tuple[str, ...]]
"""Names of the constants and names of the columns of a resource, both sorted."""


class ResourceGroup(NamedTuple):
    """Resources that agree in all their constants; for reading only.

    :param key: of the group in the regions `resources` and `resource_type_map`.
    :param constants: what the resources share.
    :param columns: by field, one value for each resource; a column has precedence over a constant.
    :param size: number of resources; a group without columns stands for one.
    """

    key: str
    constants: Mapping[str, Any]
    columns: Mapping[str, Column]
    size: int


def shape_of(fields: Iterable[str], columns: frozenset[str]) -> Shape:
    """Which of `fields` are constants and which are `columns`."""
    ordered = sorted(fields)
    return (
        tuple(name for name in ordered if name not in columns),
        tuple(name for name in ordered if name in columns),
    )


def identity_of(shape: Shape, values: Mapping[str, Any]) -> tuple[Any, ...]:
    """What resources of one group have in common, as a key; `values` holds the constants at least.

    :raises RecursionError: if a constant is nested too deeply.
    """
    return (shape, *_frozen_all([values[name] for name in shape[0]]))


class Grouping:
    """Resources put together by what they have in common.

    :ivar columns: names of the fields that are columns.
    :ivar groups: for each group its shape, its identity, its constants and its columns, in the order of
        their first resources. A resource without columns is a group of its own.
    """

    def __init__(self, columns: frozenset[str]) -> None:
        self.columns = columns
        self.groups: list[tuple[Shape, tuple[Any, ...], dict[str, Any], dict[str, list[Any]]]] = []
        self._layouts: dict[tuple[str, ...], _Layout] = {}
        self._nested: dict[Any, Any] = {}

    def add(self, resources: Iterable[Mapping[str, Any]]) -> None:
        """Put resources into their groups.

        :raises RecursionError: if a constant is nested too deeply.
        """
        layouts = self._layouts
        for resource in resources:
            fields = tuple(resource)
            layout = layouts.get(fields)
            if layout is None:
                layout = layouts[fields] = self._layout(fields)
            identity = tuple(
                [value if type(value) in _PLAIN else _frozen(value) for value in layout.constants(resource)]
            )
            columns = layout.groups.get(identity)
            if columns is None:
                columns = self._start(layout, identity, resource)
            for name, column in columns:
                column.append(resource[name])

    def columns_of(self, resource: Mapping[str, Any]) -> list[list[Any]]:
        """The columns, sorted by name, of the group of a resource, which must have some; to be extended.

        :raises RecursionError: if a constant is nested too deeply.
        """
        fields = tuple(resource)
        layout = self._layouts.setdefault(fields, self._layout(fields))
        identity = tuple(_frozen_all(layout.constants(resource)))
        columns = layout.groups.get(identity) or self._start(layout, identity, resource)
        return [column for _, column in columns]

    def _layout(self, fields: tuple[str, ...]) -> _Layout:
        shape = shape_of(fields, self.columns)
        # Resources that have the same fields in another order belong together.
        known = next((one.groups for one in self._layouts.values() if one.shape == shape), {})
        return _Layout(shape, _getter(shape[0]), known)

    def _start(self, layout: _Layout, identity: tuple[Any, ...], resource: Mapping[str, Any]) -> _Columns:
        columns: dict[str, list[Any]] = {name: [] for name in layout.shape[1]}
        if columns:
            layout.groups[identity] = list(columns.items())
        constants = {
            # Equal nested values, e.g. the traces of many groups, are kept once.
            name: resource[name] if key is resource[name] else self._nested.setdefault(key, resource[name])
            for name, key in zip(layout.shape[0], identity, strict=True)
        }
        self.groups.append((layout.shape, (layout.shape, *identity), constants, columns))
        return list(columns.items())


_Columns = list[tuple[str, list[Any]]]


class _Layout(NamedTuple):
    """How resources with certain fields are taken apart, and their groups, by the frozen constants."""

    shape: Shape
    constants: Callable[[Mapping[str, Any]], Iterable[Any]]
    groups: dict[tuple[Any, ...], _Columns]


def _getter(names: tuple[str, ...]) -> Callable[[Mapping[str, Any]], Iterable[Any]]:
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: [values[name] for name in names]


def _frozen_all(values: Iterable[Any]) -> list[Any]:
    return [value if type(value) in _PLAIN else _frozen(value) for value in values]


def _frozen(value: Any) -> tuple[Any]:
    """Something hashable that tells 1, 1.0 and True apart, and, being a tuple, 1 from the text `1`."""
    if isinstance(value, (list, dict)):
        try:
            # Three times as quick as repr, which counts for traces; version 0 writes equal values equally.
            return (marshal.dumps(value, 0),)
        except ValueError:
            pass  # nested too deeply for marshal, or of a type of the collector's own
    return (repr(value),)
