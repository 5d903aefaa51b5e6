"""The resources of a profile by key, as arrays to make charts of.

A key is a field of the resources; a part of a nested field is `uid:function`. NaN, or the code -1, stands
for a missing value: the resource lacks the field, or has no finite number in it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from perun.core.errors import ProfileError, UsageError
from perun.plugin.params import nearest
from perun.profile.factory import Profile
from perun.profile.memory import SIZES, is_summary
from perun.profile.query import all_numerical_resource_fields_of
from perun.profile.sampled import SAMPLED
from perun.profile.table import DictionaryColumn, MixedColumn, NumberColumn, assembled, table_of
from perun.view._common import Codes, Floats, np

_ALIASES: Final = {"snapshot": "snapshots"}
_MEASURED: Final = ("amount", "exclusive")
_NO_VALUE: Final = "(none)"
NON_NUMERIC: Final = ("count", "nunique")
"""Functions that also take values that are no numbers."""


class Categories(NamedTuple):
    """The different values of a key.

    :param codes: for each resource the position of its value, shape (resources,); -1 for a missing value.
    :param values: numbers in ascending order, or texts in the order of their first resource.
    :param numeric: whether the values are numbers.
    """

    codes: Codes
    values: list[Any]
    numeric: bool

    @property
    def names(self) -> list[str]:
        """The values as text."""
        return [_name(value) for value in self.values]


class Resources:
    """The resources of a profile.

    :ivar size: number of resources. :ivar profile: what they are of.
    :raises ProfileError: if there are none.
    """

    def __init__(self, profile: Profile) -> None:
        table = table_of(profile, leave_out=_counts_again)
        if not table.size:
            raise ProfileError(
                "the profile has no resources to show", "collect a new profile; this one measured nothing"
            )
        self.size = table.size
        self._columns = table.columns
        self.profile = profile
        self._categories: dict[str, Categories] = {}

    @property
    def keys(self) -> list[str]:
        """All keys, in alphabetical order."""
        return list(self._columns)

    def numbers(self, key: str, option: str) -> Floats:
        """The key as numbers, shape (resources,); NaN for a missing one. A number written as text counts.

        :param option: the option that names the key, for the message.
        :raises UsageError: if no resource has the key, or a number in it.
        """
        column = self._column(key, option)
        if isinstance(column, NumberColumn):
            values = column.values.astype(np.float64)
            if column.missing is not None:
                values[column.missing] = np.nan
        elif isinstance(column, DictionaryColumn):
            known = np.array([*map(_number, column.values), math.nan])
            values = known[column.codes]
        else:
            values = np.fromiter(map(_number, column.values), np.float64, self.size)
        values[~np.isfinite(values)] = np.nan
        if np.isnan(values).all():
            raise UsageError(f"{option}: no resource has a number in {key!r}", self._numeric_hint(key))
        return values

    def operands(self, key: str, option: str, function: str) -> Floats:
        """The key as the operands of an aggregation function, shape (resources,); NaN for a missing value.

        For a function that takes texts, each different value becomes a number of its own.

        :param option: the option that names the key, for the message.
        :param function: one of :data:`perun.view._common.pivot.FUNCTIONS`.
        :raises UsageError: if no resource has the key, or a number in it where the function needs one.
        """
        if function not in NON_NUMERIC:
            return self.numbers(key, option)
        codes = self.categories(key, option).codes
        return np.where(codes < 0, np.nan, codes)

    def categories(self, key: str, option: str) -> Categories:
        """The different values of the key.

        :param option: the option that names the key, for the message.
        :raises UsageError: if no resource has the key.
        """
        if key not in self._categories:
            self._categories[key] = self._categories_of(key, option)
        return self._categories[key]

    def _categories_of(self, key: str, option: str) -> Categories:
        column = self._column(key, option)
        if isinstance(column, NumberColumn) and column.values.dtype != bool:
            values, codes = np.unique(column.values, return_inverse=True)
            if column.missing is not None:
                codes[column.missing] = -1
            return _ordered(codes, values.tolist())
        if isinstance(column, DictionaryColumn):
            return _ordered(column.codes.astype(np.intp), list(column.values))
        cells = column.values if isinstance(column, MixedColumn) else column.values.tolist()
        if isinstance(column, NumberColumn) and column.missing is not None:
            cells = [None if absent else one for one, absent in zip(cells, column.missing, strict=True)]
        return _ordered(*_coded(cells))

    def has(self, key: str) -> bool:
        """Whether some resource has the key."""
        return _ALIASES.get(key, key) in self._columns

    def is_varied(self, key: str) -> bool:
        """Whether the resources have different values of the key."""
        return self.has(key) and len(self.categories(key, "").values) > 1

    def unit(self, key: str) -> str:
        """The unit of the key, e.g. `us`; empty if it has none, or the resources have different ones."""
        normalized = any(one.get("name") == "normalizer" for one in self.profile.get("postprocessors", ()))
        measured = key in _MEASURED or (key in SIZES and self.profile.type == "memory")
        if not measured or normalized:
            return ""
        units = self.profile.get("header", {}).get("units", {})
        if not isinstance(units, Mapping):
            return ""
        known = {_without_blanks(name): str(unit) for name, unit in units.items()}
        found = {
            _unit(known, group.constants, self.profile.type)
            for group in self.profile.groups()
            if group.size and not _counts_again(group.constants)
        }
        return found.pop() if len(found) == 1 else ""

    def numeric_keys(self) -> list[str]:
        """The keys whose values are numbers."""
        return list(all_numerical_resource_fields_of(self.profile))

    def _column(self, key: str, option: str) -> NumberColumn | DictionaryColumn | MixedColumn:
        pieces = self._columns.get(_ALIASES.get(key, key))
        if pieces is None:
            hint = nearest(key, self.keys)
            listing = "" if hint.startswith("known") else "; known are: " + ", ".join(self.keys)
            raise UsageError(f"{option}: no resource has a key {key!r}", hint + listing)
        return assembled(pieces, self.size)

    def _numeric_hint(self, key: str) -> str:
        numeric = [name for name in self.numeric_keys() if name != key]
        return "keys with numbers: " + ", ".join(numeric) if numeric else "no key of this profile has numbers"


def _counts_again(constants: Mapping[str, Any]) -> bool:
    """Whether resources sum up others of the profile, so that a chart of all would count these twice.

    Of memory they say what is theirs, see :func:`perun.profile.memory.is_summary`; of instructions and
    samples they are those of a function with all that it calls, and of the whole program.
    """
    uid = constants.get("uid")
    if not isinstance(uid, Mapping):
        return is_summary(constants)
    inclusive = "instructions" in uid and constants.get("subtype") == "inclusive"
    return inclusive or SAMPLED in uid or is_summary(constants)


def _unit(known: Mapping[str, str], constants: Mapping[str, Any], type_: str) -> str:
    kind = str(constants.get("type", type_))
    exact = known.get(_without_blanks(f"{kind}({constants.get('subtype', '')})"))
    return known.get(_without_blanks(kind), "") if exact is None else exact


def _without_blanks(name: object) -> str:
    # Some releases of Perun write a blank between the type and the subtype.
    return str(name).replace(" ", "")


def _coded(cells: Iterable[Any]) -> tuple[Codes, list[Any]]:
    found: dict[tuple[type, Hashable], int] = {}
    codes = [-1 if cell is None else found.setdefault((type(cell), cell), len(found)) for cell in cells]
    return np.array(codes, np.intp), [value for _, value in found]


def _ordered(codes: Codes, values: Sequence[Any]) -> Categories:
    """The values that some resource has, each once; 1, 1.0 and the text `1` are the same value.

    :param codes: for each resource the position of its value, -1 for a missing one.
    """
    occurs = np.bincount(codes[codes >= 0], minlength=len(values)) > 0
    present = [position for position in range(len(values)) if occurs[position]]
    numbers = {position: _number(values[position]) for position in present}
    numeric = bool(present) and all(_is_number(values[position], one) for position, one in numbers.items())
    keys: dict[int, Any] = numbers if numeric else {one: _name(values[one]) for one in present}
    if numeric:
        present.sort(key=numbers.__getitem__)
    places: dict[Any, int] = {}
    moved = np.full(len(values) + 1, -1, np.intp)  # code -1 picks the last element, which stays -1
    for position in present:
        moved[position] = places.setdefault(keys[position], len(places))
    kept: list[Any] = list(places)
    return Categories(moved[codes], kept, numeric)


def nothing_in_common(of: str, *by: str) -> UsageError:
    """The error where no resource has a number in the key `of` and a value of each other key."""
    others = " and ".join(repr(key) for key in by if key)
    return UsageError(f"no resource has both a number in {of!r} and a value of {others}", "name other keys")


def _is_number(value: object, number: float) -> bool:
    """Whether the value is the number; a text is one if it is spelled like one (`7`, not `007`)."""
    if math.isnan(number):
        return False
    return not isinstance(value, str) or value in (_name(number), repr(number))


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return math.nan
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def _name(value: object) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return str(value) if str(value) else _NO_VALUE
