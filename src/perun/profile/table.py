"""Resources as a table: a row for each resource, a column for each field, nested values taken apart.

The columns are those of the manual's section 2.3: the fields in alphabetical order, nested mappings both as
one text (`uid`) and field by field (`uid:function`), and the number of the snapshot as `snapshots`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.profile.format.columns import Column, is_packed
from perun.profile.query import all_items_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perun.profile.format.core import Profile

_NUMBERS: Final = frozenset({int, float})
_EXACT: Final = 2**53
"""Up to here, and down to its negative, floats hold every whole number."""
_Known = dict[tuple[str, int], list[tuple[str, Any]]]


class ColumnRun(NamedTuple):
    """Rows of a column that follow each other, either all of the same value or each with its own.

    :param start: the first of the rows; :param size: number of rows.
    :param value: what they all have, None if they have nothing; not used if there are `values`.
    """

    start: int
    size: int
    value: Any = None
    values: Column | None = None


class Table(NamedTuple):
    """Resources as a table.

    :param size: number of rows.
    :param columns: name to the pieces that are the whole column, from the first row to the last.
    """

    size: int
    columns: dict[str, list[ColumnRun]]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows; None if a resource has not the field."""
        return zip(
            *(chain.from_iterable(map(_each, pieces)) for pieces in self.columns.values()), strict=True
        )


class NumberColumn(NamedTuple):
    """A column of numbers (whole ones, floats) or truth values, of shape (rows,).

    :param missing: which rows have none, whatever `values` has there; None if all have one.
    """

    values: NDArray[Any]
    missing: NDArray[np.bool_] | None


class DictionaryColumn(NamedTuple):
    """A column of few different values: for each row the position of its value, -1 if it has none."""

    codes: NDArray[np.int32]
    values: list[Any]


class MixedColumn(NamedTuple):
    """A column of anything else, None if a row has no value."""

    values: list[Any]


def table_of(
    profile: Profile,
    uids: Container[str] | None = None,
    leave_out: Callable[[Mapping[str, Any]], bool] | None = None,
) -> Table:
    """The resources of the profile as a table, in their order.

    :param uids: leave out groups of other uids, as :meth:`Profile.groups` does.
    :param leave_out: leave out groups for whose constants it is true.
    :raises ProfileError: if a resource is nested too deeply.
    """
    columns: dict[str, list[ColumnRun]] = {}
    known: _Known = {}  # nested constants, which many groups share
    start = 0
    for _, constants, own, size in profile.groups(uids):
        if not size or (leave_out and leave_out(constants)):
            continue
        for name, value in {"snapshot": 0, **constants}.items():
            if name not in own:
                for field, item in _constant_items(name, value, known):
                    _put(columns, field, ColumnRun(start, size, value=item))
        for name, column in own.items():
            for field, values in _column_items(name, column):
                _put(columns, field, ColumnRun(start, size, values=values))
        start += size
    named = {("snapshots" if name == "snapshot" else name): pieces for name, pieces in columns.items()}
    return Table(start, {name: list(_without_gaps(named[name], start)) for name in sorted(named)})


def assembled(pieces: Sequence[ColumnRun], size: int) -> NumberColumn | DictionaryColumn | MixedColumn:
    """A column of :class:`Table` in one piece.

    Whole numbers beside floats become floats, unless one is beyond 2^53 in size, where floats lose digits.
    """
    kinds = set(chain.from_iterable(map(_kinds, pieces)))
    missing = type(None) in kinds
    kinds.discard(type(None))
    alike = len(kinds) == 1 and kinds <= {bool, *_NUMBERS}
    if alike or (kinds == _NUMBERS and all(exact_as_floats(_own(piece)) for piece in pieces)):
        try:
            return _numbers(pieces, size, float if float in kinds else kinds.pop(), missing)
        except OverflowError:  # one is too large for its type
            pass
    if all(piece.values is None for piece in pieces):
        return _dictionary_encoded(pieces)
    return MixedColumn(list(chain.from_iterable(map(_each, pieces))))


def exact_as_floats(values: Column | NDArray[Any]) -> bool:
    """Whether the whole numbers among the values are at most 2^53 in size: floats hold them exactly."""
    if isinstance(values, list):
        whole = [value for value in values if type(value) is int]
        return not whole or (min(whole) >= -_EXACT and max(whole) <= _EXACT)
    import numpy as np

    numbers = np.asarray(values)
    if numbers.dtype.kind == "f" or not numbers.size:
        return True
    return int(numbers.min()) >= -_EXACT and int(numbers.max()) <= _EXACT


def _put(columns: dict[str, list[ColumnRun]], name: str, piece: ColumnRun) -> None:
    pieces = columns.setdefault(name, [])
    if pieces and pieces[-1].start == piece.start:
        pieces.pop()  # a field that is called like another one's nested field, e.g. `uid:function`
    pieces.append(piece)


def _constant_items(name: str, value: Any, known: _Known) -> Iterable[tuple[str, Any]]:
    if not isinstance(value, (Mapping, list, tuple)):
        return ((name, value),)
    key = name, id(value)  # different fields may share a value, too
    if key not in known:
        known[key] = list(all_items_of({name: value}))
    return known[key]


def _column_items(name: str, column: Column) -> Iterator[tuple[str, Column]]:
    if is_packed(column) or not any(isinstance(value, (Mapping, list, tuple)) for value in column):
        yield name, column
        return
    rows = [dict(all_items_of({name: value})) for value in column]
    for field in dict.fromkeys(chain.from_iterable(rows)):
        yield field, [row.get(field) for row in rows]


def _without_gaps(pieces: Iterable[ColumnRun], size: int) -> Iterator[ColumnRun]:
    end = 0
    for piece in pieces:
        if piece.start > end:
            yield ColumnRun(end, piece.start - end)
        yield piece
        end = piece.start + piece.size
    if end < size:
        yield ColumnRun(end, size - end)


def _each(piece: ColumnRun) -> Iterable[Any]:
    return repeat(piece.value, piece.size) if piece.values is None else piece.values


def _own(piece: ColumnRun) -> Column:
    return [piece.value] if piece.values is None else piece.values


def _kinds(piece: ColumnRun) -> Iterable[type]:
    if piece.values is None:
        return (type(piece.value),)
    return (type(piece.values[0]),) if is_packed(piece.values) else set(map(type, piece.values))


def _numbers(pieces: Sequence[ColumnRun], size: int, kind: type, missing: bool) -> NumberColumn:
    import numpy as np

    values: NDArray[Any] = np.zeros(size, np.int64 if kind is int else kind)
    nothing = np.zeros(size, bool) if missing else None
    for piece in pieces:
        rows = slice(piece.start, piece.start + piece.size)
        column: Any = _own(piece)
        if is_packed(column):
            values[rows] = np.frombuffer(column, column.typecode)
            continue
        if nothing is not None:
            nothing[rows] = [value is None for value in column]
        # Converted here, as an assignment would let a number that is too large overflow.
        values[rows] = np.array([0 if value is None else value for value in column], values.dtype)
    return NumberColumn(values, nothing)


def _dictionary_encoded(pieces: Sequence[ColumnRun]) -> DictionaryColumn:
    import numpy as np

    codes: dict[Any, int] = {}
    values: list[Any] = []
    own = []
    for piece in pieces:
        key = type(piece.value), piece.value
        if piece.value is not None and key not in codes:
            codes[key] = len(codes)
            values.append(piece.value)
        own.append(codes.get(key, -1))
    return DictionaryColumn(np.repeat(np.array(own, np.int32), [piece.size for piece in pieces]), values)
