"""The content of a table: columns of a profile, and which of its rows are shown in which order.

Columns stay in the pieces in which the profile holds them, so that a million resources need no object each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice, repeat
from math import isnan
from typing import Any, NamedTuple

from perun.core.errors import UsageError
from perun.plugin.params import nearest
from perun.profile.factory import Profile
from perun.profile.format.columns import is_packed
from perun.profile.memory import SUMMARIES, is_summary
from perun.profile.query import all_items_of
from perun.profile.table import ColumnRun, table_of

_SNAPSHOT = "snapshot"
_SNAPSHOTS = "snapshots"
"""The name of the column in a profile's table, where resources without a snapshot are of snapshot 0."""


def asks_for_summaries(rules: Iterable[tuple[str, str]]) -> bool:
    """Whether rules to filter by, pairs of a key and a value, name resources that sum others up."""
    return any(key == "uid:memory" or (key == "subtype" and value in SUMMARIES) for key, value in rules)


class ColumnTable(NamedTuple):
    """Columns of equal length.

    :param size: number of rows. :param columns: name to the pieces that are the whole column, one after the
        other; None for a missing value.
    """

    size: int
    columns: Mapping[str, Sequence[ColumnRun]]

    @property
    def names(self) -> list[str]:
        """The names of the columns: those of the uid first, then the others by name."""
        return sorted(self.columns, key=lambda key: (key != "uid", not key.startswith("uid:"), key))

    def values(self, name: str) -> Iterator[Any]:
        """The column, value by value."""
        return chain.from_iterable(
            repeat(piece.value, piece.size) if piece.values is None else piece.values
            for piece in self.columns[name]
        )

    def taken(self, rows: Sequence[int], names: Iterable[str]) -> ColumnTable:
        """The table of some rows in their order, with the columns of these names."""
        columns = {}
        for name in names:
            pieces = self.columns[name]
            first = pieces[0].value
            kind = type(first)
            if all(one.values is None and type(one.value) is kind and one.value == first for one in pieces):
                columns[name] = [ColumnRun(0, len(rows), value=first)]
                continue
            values = list(self.values(name))
            columns[name] = [ColumnRun(0, len(rows), values=[values[row] for row in rows])]
        return ColumnTable(len(rows), columns)

    def head(self, size: int) -> ColumnTable:
        """The first rows."""
        columns = {name: list(_head(pieces, size)) for name, pieces in self.columns.items()}
        return ColumnTable(min(size, self.size), columns)


def resources_of(profile: Profile, *, summaries: bool = False) -> ColumnTable:
    """The resources of the profile, with flat keys such as `uid:function`.

    :param summaries: whether resources of a memory profile that sum others up have rows, too.
    """
    leave_out = None if summaries else is_summary
    table = table_of(profile, leave_out=leave_out)
    columns: dict[str, Sequence[ColumnRun]] = {
        name: pieces for name, pieces in table.columns.items() if name != _SNAPSHOTS
    }
    groups = (one for one in profile.groups() if one.size and not (leave_out and leave_out(one.constants)))
    snapshots = [
        piece if _SNAPSHOT in (*constants, *own) else ColumnRun(piece.start, piece.size)
        for piece, (_, constants, own, _) in zip(table.columns.get(_SNAPSHOTS, ()), groups, strict=True)
    ]
    if any(piece.values is not None or piece.value is not None for piece in snapshots):
        columns[_SNAPSHOT] = snapshots
    return ColumnTable(table.size, columns)


def models_of(profile: Profile) -> ColumnTable:
    """The models of the profile, with a column for each coefficient such as `coeffs:b0`."""
    return from_rows([_model_row(model) for _, model in profile.all_models()])


def from_rows(rows: Sequence[Mapping[str, Any]]) -> ColumnTable:
    """A table with a column for each key of the rows."""
    keys = dict.fromkeys(chain.from_iterable(rows))
    size = len(rows)
    return ColumnTable(
        size, {key: [ColumnRun(0, size, values=[row.get(key) for row in rows])] for key in keys}
    )


def matching(table: ColumnTable, rules: Sequence[tuple[str, str]]) -> Sequence[int]:
    """The numbers of the rows that have, for each key of the rules, one of its values, in ascending order.

    :param rules: pairs of a key and a value; a number equals any spelling of it.
    :raises UsageError: if a rule has a key that no row has.
    """
    wanted: dict[str, list[str]] = {}
    for key, text in rules:
        wanted.setdefault(known(table, key, "filter by"), []).append(text)
    rows: Sequence[int] = range(table.size)
    for key, texts in wanted.items():
        fits = _cached(partial(_equals_any, texts))
        found = list(map(fits, table.values(key)))
        rows = [row for row in rows if found[row]]
    return rows


def ordered(table: ColumnTable, rows: Sequence[int], keys: Sequence[str]) -> Sequence[int]:
    """The rows sorted by the keys, the first one first: numbers by value, then texts, then missing values.

    :raises UsageError: if no row has one of the keys.
    """
    for key in keys:
        known(table, key, "sort by")
    for key in reversed(keys):  # sorting keeps the order of what is equal
        rows = sorted(rows, key=_sort_values(table, key).__getitem__)
    return rows


def known(table: ColumnTable, key: str, action: str) -> str:
    """The key.

    :raises UsageError: if no row has it, with `action` in the message.
    """
    if key not in table.columns:
        raise UsageError(f"cannot {action} {key!r}: no row has such a key", nearest(key, table.names))
    return key


def _head(pieces: Iterable[ColumnRun], size: int) -> Iterator[ColumnRun]:
    for piece in pieces:
        if piece.start >= size:
            return
        kept = min(piece.size, size - piece.start)
        values = None if piece.values is None else list(islice(piece.values, kept))
        yield piece._replace(size=kept, values=values)


def _model_row(model: Mapping[str, Any]) -> dict[str, Any]:
    coefficients = model.get("coeffs") or []
    row = dict(all_items_of({key: value for key, value in model.items() if key != "coeffs"}))
    for coefficient in coefficients:
        row[f"coeffs:{coefficient['name']}"] = coefficient["value"]
    return row


def _cached(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function, which is asked once for equal texts, of which columns have few different ones."""
    found: dict[str, Any] = {}

    def call(value: Any) -> Any:
        if type(value) is not str:
            return function(value)
        if value not in found:
            found[value] = function(value)
        return found[value]

    return call


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return None if isnan(number) else number


def _equals_any(texts: Sequence[str], value: object) -> bool:
    return any(_equals(value, text) for text in texts)


def _equals(value: object, text: str) -> bool:
    if value is None:
        return False
    if isinstance(value, bool):
        return str(value).lower() == text.lower()
    if isinstance(value, (int, float)) and str(value) != text:
        number = _number(text)
        return number is not None and value == number
    return str(value) == text


def _sort_values(table: ColumnTable, key: str) -> Sequence[Any]:
    """What the rows are compared by, one for each."""
    pieces = table.columns[key]
    if all(piece.values is not None and is_packed(piece.values) for piece in pieces):
        numbers = list(table.values(key))
        if not any(map(isnan, numbers)):
            return numbers
    return list(map(_cached(_sort_key), table.values(key)))


def _sort_key(value: object) -> tuple[int, float | int | str]:
    if value is None:
        return (3, 0)
    if isinstance(value, (int, float)):
        return (2, 0) if isnan(value) else (0, value)
    # Old profiles have some numbers, such as the time of a snapshot, as text.
    number = _number(str(value))
    return (1, str(value)) if number is None else (0, number)
