"""The rows of a table: read from a profile, filtered, sorted and formatted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

from perun.errors import UsageError
from perun.plugin.params import nearest
from perun.profile.memory import SUMMARIES, is_summary
from perun.profile.query import all_items_of
from perun.view._common.screen import printable

if TYPE_CHECKING:
    from perun.profile.factory import Profile

Row = dict[str, Any]

_PIPE_IS_SPECIAL = frozenset({"asciidoc", "github", "jira", "pipe"})
"""Formats in which `|` is the border of a cell unless a backslash precedes it."""


def rows_of(profile: Profile, kind: str, summaries: bool = False) -> list[Row]:
    """One row for each resource or model, with flat keys such as `uid:function` or `coeffs:b0`.

    :param kind: `resources` or `models`.
    :param summaries: whether resources of a memory profile that sum others up have rows, too.
    """
    if kind == "models":
        return [_model_row(model) for _, model in profile.all_models()]
    return [
        dict(all_items_of(resource))
        for _, resource in profile.all_resources()
        if summaries or not is_summary(resource)
    ]


def asks_for_summaries(rules: Iterable[tuple[str, str]]) -> bool:
    """Whether rules to filter by, pairs of a key and a value, name resources that sum others up."""
    return any(key == "uid:memory" or (key == "subtype" and value in SUMMARIES) for key, value in rules)


def _model_row(model: Mapping[str, Any]) -> Row:
    coefficients = model.get("coeffs") or []
    row = dict(all_items_of({key: value for key, value in model.items() if key != "coeffs"}))
    for coefficient in coefficients:
        row[f"coeffs:{coefficient['name']}"] = coefficient["value"]
    return row


def columns_of(rows: Iterable[Row]) -> list[str]:
    """All keys of the rows: those of the uid first, then the others by name."""
    keys = {key for row in rows for key in row}
    return sorted(keys, key=lambda key: (key != "uid", not key.startswith("uid:"), key))


def filtered(rows: list[Row], rules: Sequence[tuple[str, str]], known: Sequence[str]) -> list[Row]:
    """The rows that have, for each key of the rules, one of its values; a number equals any spelling of it.

    :param rules: pairs of a key and a value.
    :raises UsageError: if a rule has a key that is not `known`.
    """
    wanted: dict[str, list[str]] = {}
    for key, value in rules:
        wanted.setdefault(_checked(key, known, "filter by"), []).append(value)
    return [
        row
        for row in rows
        if all(any(_equals(row.get(key), value) for value in values) for key, values in wanted.items())
    ]


def sorted_rows(rows: list[Row], keys: Sequence[str], known: Sequence[str]) -> list[Row]:
    """The rows sorted by the keys, the first one first: numbers by value, then texts, then missing values.

    :raises UsageError: if a key is not `known`.
    """
    for key in keys:
        _checked(key, known, "sort by")
    return sorted(rows, key=lambda row: tuple(_sort_key(row.get(key)) for key in keys)) if keys else rows


def formatted(rows: list[Row], columns: Sequence[str], known: Sequence[str], format: str) -> str:
    """The table as text without a line break at the end; numbers are right-aligned.

    :raises UsageError: if a column is not `known`.
    """
    from tabulate import tabulate

    for column in columns:
        _checked(column, known, "show")
    exact = format == "tsv"  # for programs, which need every digit
    cells = [[_text(row.get(column), exact) for column in columns] for row in rows]
    names = [_text(column, exact) for column in columns]
    if format in _PIPE_IS_SPECIAL:
        cells = [[cell.replace("|", r"\|") for cell in line] for line in cells]
        names = [name.replace("|", r"\|") for name in names]
    return str(
        tabulate(
            cells,
            headers=names,
            tablefmt=format.replace("-", ""),
            # Otherwise tabulate prints a uid of digits, or a hash like 12e5, as a number.
            disable_numparse=True,
            colalign=[_alignment(row.get(column) for row in rows) for column in columns] if rows else None,
        )
    )


def _checked(key: str, known: Sequence[str], action: str) -> str:
    if key not in known:
        raise UsageError(f"cannot {action} {key!r}: no row has such a key", nearest(key, known))
    return key


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return None if isnan(number) else number


def _equals(value: object, text: str) -> bool:
    if value is None:
        return False
    if isinstance(value, bool):
        return str(value).lower() == text.lower()
    if _is_number(value) and str(value) != text:
        number = _number(text)
        return number is not None and value == number
    return str(value) == text


def _sort_key(value: object) -> tuple[int, float | int | str]:
    if value is None:
        return (3, 0)
    if isinstance(value, (int, float)):
        return (2, 0) if isnan(value) else (0, value)
    # Old profiles have some numbers, such as the time of a snapshot, as text.
    number = _number(str(value))
    return (1, str(value)) if number is None else (0, number)


def _text(value: object, exact: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value) if exact else format(value, "g")
    return printable(str(value))


def _alignment(values: Iterable[object]) -> str:
    present = [value for value in values if value is not None]
    if not present or not all(_is_number(value) for value in present):
        return "left"
    return "decimal" if any(isinstance(value, float) for value in present) else "right"
