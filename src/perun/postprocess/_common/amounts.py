"""The amounts of a profile, group by group, for postprocessors that read or replace all of them.

Only functions that compute may import this module, because it imports numpy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from perun.profile.format.columns import is_packed, pack
from perun.profile.format.grouping import Group
from perun.profile.uid import flatten

if TYPE_CHECKING:
    from perun.profile.factory import Profile

T = TypeVar("T")
_NUMBERS: Final = {int, float}
_DEFAULTS: Final = {"snapshot": 0}
"""The values of fields that a resource lacks."""


def groups_by(profile: Profile, names: tuple[str, ...]) -> list[list[Group]]:
    """The groups of the profile in its order, those with equal values of the named fields in one list.

    If one of these fields is a column, the profile is grouped anew.
    """
    groups = list(profile.groups())
    fields = {name for group in groups for name in group.columns}
    if not fields.isdisjoint(names):
        groups = _regrouped(profile, fields.difference(names))
    found: dict[tuple[Any, ...], list[Group]] = {}
    for group in groups:
        values = [group.constants.get(name, _DEFAULTS.get(name)) for name in names]
        key = tuple([value if type(value) is str else flatten(value) for value in values])
        found.setdefault(key, []).append(group)
    return list(found.values())


def amounts_of(groups: Iterable[Group]) -> list[Any]:
    """The amounts of the groups, one group after the other; None for a resource without one."""
    amounts: list[Any] = []
    for group in groups:
        amounts += amounts_of_group(group)
    return amounts


def amounts_of_group(group: Group) -> Sequence[Any]:
    """The amounts of one group, packed if its column is."""
    column = group.columns.get("amount")
    return [group.constants.get("amount")] * group.size if column is None else column


def split_by_group(groups: Iterable[Group], values: Sequence[T]) -> Iterator[tuple[Group, Sequence[T]]]:
    """Each group with its part of `values`, which has one value for each resource of the groups."""
    begin = 0
    for group in groups:
        end = begin + group.size
        yield group, values[begin:end]
        begin = end


def set_field(profile: Profile, name: str, columns: Mapping[str, Sequence[Any]]) -> None:
    """Set a field of all resources of some groups.

    :param columns: key of a group to its new column, with one value for each of its resources.
    """
    resources, constants = {}, {}
    for group in profile.groups():
        resources[group.key] = group.columns
        constants[group.key] = group.constants
        if group.key in columns:
            column: Any = columns[group.key]
            new = column if is_packed(column) else pack(list(column))
            resources[group.key] = {**group.columns, name: new}
            if name in group.constants:
                constants[group.key] = {
                    field: value for field, value in group.constants.items() if field != name
                }
    profile["resources"], profile["resource_type_map"] = resources, constants


def floats(values: Sequence[Any]) -> NDArray[np.float64]:
    """The values as numbers, shape (n,); NaN for a value that is not a finite number."""
    try:
        if is_packed(values) or set(map(type, values)) <= _NUMBERS:
            numbers = np.array(values, dtype=np.float64)
            numbers[~np.isfinite(numbers)] = np.nan
            return numbers
    except OverflowError:  # an integer beyond the range of a float
        pass
    return np.array([_float(value) for value in values], dtype=np.float64)


def _regrouped(profile: Profile, columns: Iterable[str]) -> list[Group]:
    grouped = type(profile)()
    grouped.update_resources((resource for _, resource in profile.all_resources()), columns=columns)
    for region in ("resources", "resource_type_map"):
        profile[region] = grouped[region]
    return list(profile.groups())


def _float(value: Any) -> float:
    # Old profiles have some numbers as text.
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return np.nan
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return np.nan
    return number if np.isfinite(number) else np.nan
