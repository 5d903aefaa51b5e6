"""The resources of a profile by key, as arrays that charts are made of.

A key is a field of the resources; a field of a nested one is `uid:function`. What stands for nothing (a
resource without the field, no number, an infinite one) is NaN, or the code -1.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.errors import ProfileError, UsageError
from perun.plugin.params import nearest
from perun.profile.table import Coded, Mixed, Numbers, assembled, table_of
from perun.view._common.aggregate import OF_ANYTHING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perun.profile.factory import Profile

    Floats = NDArray[np.float64]
    Codes = NDArray[np.intp]

_OTHER_NAMES: Final = {"snapshot": "snapshots"}
_MEASURED: Final = ("amount", "exclusive")
_NO_VALUE: Final = "(none)"


class Categories(NamedTuple):
    """The different values of a key.

    :param codes: for each resource the position of its value, shape (resources,); no code is -1.
    :param values: the values: numbers in ascending order, else texts in the order in which they came.
    :param numeric: whether they are numbers.
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

    :raises ProfileError: where it has none.
    """

    def __init__(self, profile: Profile) -> None:
        table = table_of(profile)
        if not table.size:
            raise ProfileError(
                "the profile has no resources to show", "collect a new profile; this one measured nothing"
            )
        self.size = table.size
        self._columns = table.columns
        self._profile = profile

    @property
    def keys(self) -> list[str]:
        """All keys, in alphabetical order."""
        return list(self._columns)

    def numbers(self, key: str, option: str) -> Floats:
        """The key as numbers, shape (resources,), NaN where there is none; a number in text counts.

        :param option: where the key was given, for the message.
        :raises UsageError: where no resource has the key, or none a number in it.
        """
        import numpy as np

        column = self._column(key, option)
        if isinstance(column, Numbers):
            values = column.values.astype(np.float64)
            if column.missing is not None:
                values[column.missing] = np.nan
        elif isinstance(column, Coded):
            known = np.array([*map(_number, column.values), math.nan])
            values = known[column.codes]
        else:
            values = np.fromiter(map(_number, column.values), np.float64, self.size)
        values[~np.isfinite(values)] = np.nan
        if np.isnan(values).all():
            raise UsageError(f"{option}: no resource has a number in {key!r}", self._numeric_hint(key))
        return values

    def measured(self, key: str, option: str, function: str) -> Floats:
        """The key as what a function of :mod:`perun.view._common.aggregate` takes, shape (resources,).

        What is no number is counted as well as numbers are, each different value being another number.

        :raises UsageError: where no resource has the key, or none a number in it and the function needs one.
        """
        import numpy as np

        if function not in OF_ANYTHING:
            return self.numbers(key, option)
        codes = self.categories(key, option).codes
        return np.where(codes < 0, np.nan, codes)

    def categories(self, key: str, option: str) -> Categories:
        """The different values of the key.

        :param option: where the key was given, for the message.
        :raises UsageError: where no resource has the key.
        """
        import numpy as np

        column = self._column(key, option)
        if isinstance(column, Numbers) and column.values.dtype != bool:
            values, codes = np.unique(column.values, return_inverse=True)
            if column.missing is not None:
                codes[column.missing] = -1
            return _ordered(codes, values.tolist())
        if isinstance(column, Coded):
            return _ordered(column.codes.astype(np.intp), list(column.values))
        cells = column.values if isinstance(column, Mixed) else column.values.tolist()
        if isinstance(column, Numbers) and column.missing is not None:
            cells = [None if gone else one for one, gone in zip(cells, column.missing, strict=True)]
        return _ordered(*_coded(cells))

    def has(self, key: str) -> bool:
        """Whether some resource has the key."""
        return _OTHER_NAMES.get(key, key) in self._columns

    def unit(self, key: str) -> str:
        """The unit of the key, e.g. `us`; empty where it has none, or not all resources have the same."""
        normalized = any(one.get("name") == "normalizer" for one in self._profile.get("postprocessors", ()))
        if key not in _MEASURED or normalized:
            return ""
        units = self._profile.get("header", {}).get("units", {})
        if not isinstance(units, Mapping):
            return ""
        known = {_squeezed(name): str(unit) for name, unit in units.items()}
        found = {
            _unit(known, group.constants, self._profile.type)
            for group in self._profile.groups()
            if group.size
        }
        return found.pop() if len(found) == 1 else ""

    def _column(self, key: str, option: str) -> Numbers | Coded | Mixed:
        pieces = self._columns.get(_OTHER_NAMES.get(key, key))
        if pieces is None:
            hint = nearest(key, self.keys)
            listing = "" if hint.startswith("known") else "; known are: " + ", ".join(self.keys)
            raise UsageError(f"{option}: no resource has a key {key!r}", hint + listing)
        return assembled(pieces, self.size)

    def _numeric_hint(self, key: str) -> str:
        from perun.profile.query import all_numerical_resource_fields_of

        numeric = [name for name in all_numerical_resource_fields_of(self._profile) if name != key]
        return "keys with numbers: " + ", ".join(numeric) if numeric else "no key of this profile has numbers"


def _unit(known: Mapping[str, str], constants: Mapping[str, Any], type_: str) -> str:
    kind = str(constants.get("type", type_))
    exact = known.get(_squeezed(f"{kind}({constants.get('subtype', '')})"))
    return known.get(_squeezed(kind), "") if exact is None else exact


def _squeezed(name: object) -> str:
    # Releases differ in the blank between the type and the subtype.
    return str(name).replace(" ", "")


def _coded(cells: Iterable[Any]) -> tuple[Codes, list[Any]]:
    import numpy as np

    found: dict[tuple[type, Hashable], int] = {}
    codes = [-1 if cell is None else found.setdefault((type(cell), cell), len(found)) for cell in cells]
    return np.array(codes, np.intp), [value for _, value in found]


def _ordered(codes: Codes, values: Sequence[Any]) -> Categories:
    """Values that occur, each once; 1, 1.0 and the text `1` are the same value."""
    import numpy as np

    occurs = np.bincount(codes[codes >= 0], minlength=len(values)) > 0
    present = [position for position in range(len(values)) if occurs[position]]
    numbers = {position: _number(values[position]) for position in present}
    numeric = bool(present) and all(_is_number(values[position], one) for position, one in numbers.items())
    keys: dict[int, Any] = numbers if numeric else {one: _name(values[one]) for one in present}
    if numeric:
        present.sort(key=numbers.__getitem__)
    places: dict[Any, int] = {}
    moved = np.full(len(values) + 1, -1, np.intp)  # the last one for code -1
    for position in present:
        moved[position] = places.setdefault(keys[position], len(places))
    kept: list[Any] = list(places)
    return Categories(moved[codes], kept, numeric)


def _is_number(value: object, number: float) -> bool:
    """Whether the value is the number; a text is, where it is spelled as numbers are (`7`, not `007`)."""
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
