"""Profiles in the formats of other tools, and of views (manual 2.3, and the chapter that it grew out of).

pandas and pyarrow are imported by the functions that need them; a Perun without them does everything else.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from importlib import import_module
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

from perun.core.errors import PluginError, ProfileError
from perun.profile.format.grouping import ResourceGroup
from perun.profile.memory import to_heap_map_format, to_heat_map_format
from perun.profile.query import all_items_of
from perun.profile.records import record_of
from perun.profile.table import (
    DictionaryColumn,
    MixedColumn,
    NumberColumn,
    assembled,
    exact_as_floats,
    table_of,
)
from perun.profile.uid import flatten

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from perun.profile.format.core import Profile

__all__ = [
    "models_to_pandas_dataframe",
    "plot_data_from_coefficients_of",
    "resources_to_pandas_dataframe",
    "to_arrow_table",
    "to_flame_graph_format",
    "to_heap_map_format",
    "to_heat_map_format",
]

_POINTS: Final = 1000
"""Points of the curve of a model."""
_STACK_FIELDS: Final = ("trace", "subtype", "amount")


def resources_to_pandas_dataframe(profile: Profile) -> pd.DataFrame:
    """The resources as a data frame: see :mod:`perun.profile.table` for its columns.

    Numbers that some resources do not have are floats, with NaN in their places. Where floats would
    change a whole number, which they do beyond 2^53, the column holds Python's objects.

    :raises PluginError: if pandas is not installed.
    """
    pandas = _imported("pandas")
    table = table_of(profile)
    columns = {name: _series(pandas, assembled(pieces, table.size)) for name, pieces in table.columns.items()}
    frame: pd.DataFrame = pandas.DataFrame(columns, index=pandas.RangeIndex(table.size), copy=False)
    return frame


def models_to_pandas_dataframe(profile: Profile) -> pd.DataFrame:
    """The models as a data frame: a row for each, coefficients as `coeffs:b0`, lists of values as they are.

    :raises PluginError: if pandas is not installed.
    """
    pandas = _imported("pandas")
    rows = [_model_row(model) for _, model in profile.all_models()]
    names = sorted({name for row in rows for name in row})
    frame: pd.DataFrame = pandas.DataFrame(rows, columns=names)
    return frame


def to_arrow_table(profile: Profile) -> pa.Table:
    """The resources as an Arrow table, with the columns of the data frame.

    Text that is the same for many resources is dictionary encoded; a column of different kinds of values
    is text. The metadata `perun` of the schema holds the other regions but for the models, as JSON.

    :raises PluginError: if pyarrow is not installed.
    """
    arrow = _imported("pyarrow")
    table = table_of(profile)
    columns = {name: _array(arrow, assembled(pieces, table.size)) for name, pieces in table.columns.items()}
    regions = {
        key: value
        for key, value in profile.regions().items()
        if key not in ("resources", "resource_type_map", "models")
    }
    made: pa.Table = arrow.table(columns, metadata={"perun": json.dumps(regions)})
    return made


def to_flame_graph_format(profile: Profile) -> list[str]:
    """The lines that Brendan Gregg's flame graph script reads: one for each resource that has a trace.

    A line is the trace, its records in the order of the profile and joined by `;`, a blank, and the amount.
    A record is `function()~source~line`. What is released is left out.
    """
    lines: list[str] = []
    stacks: dict[int, str] = {}
    for group in profile.groups():
        for trace, subtype, amount in zip(*(_values(group, name) for name in _STACK_FIELDS), strict=False):
            if not trace or subtype == "free" or amount is None:
                continue
            if id(trace) not in stacks:
                stacks[id(trace)] = _stack(trace)
            lines.append(f"{stacks[id(trace)]} {amount}\n")
    return lines


def plot_data_from_coefficients_of(model: Mapping[str, Any]) -> dict[str, Any]:
    """The model with `plot_x` and `plot_y`: points of its function from `x_start` to `x_end`.

    Points where the function is not defined, or beyond all floats, are left out.

    :param model: a model with coefficients, as the region `models` has it; it is not changed.
    :raises ProfileError: if it has no coefficients or no interval, or is of an unknown kind.
    """
    import numpy as np

    from perun.models.curves import COEFFICIENTS, evaluate

    record = record_of(model)
    what = f"a model {record.type!r} of {record.uid!r}"
    if record.type not in COEFFICIENTS or not record.is_parametric:
        raise ProfileError(f"{what} has no curve", f"those have: {', '.join(COEFFICIENTS)}")
    given = {one.get("name") for one in model["coeffs"]}
    missing = [name for name in COEFFICIENTS[record.type] if name not in given]
    missing += [name for name in ("x_start", "x_end") if not math.isfinite(getattr(record, name))]
    if missing:
        raise ProfileError(f"{what} is not complete: it has no {', '.join(missing)}")
    with np.errstate(all="ignore"):
        x = np.linspace(record.x_start, record.x_end, _POINTS)
    y = evaluate(record, x)
    defined = np.isfinite(x) & np.isfinite(y)
    return {**model, "plot_x": x[defined].tolist(), "plot_y": y[defined].tolist()}


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        from perun.core.extras import install_command

        raise PluginError(
            f"{name} is not installed, which this format needs",
            f"install it with: {install_command('dataframe')}",
        ) from None


def _series(pandas: Any, column: NumberColumn | DictionaryColumn | MixedColumn) -> Any:
    if isinstance(column, NumberColumn):
        if column.missing is None:
            return column.values
        # Truth values are not turned into numbers.
        as_floats = column.values.dtype != bool and exact_as_floats(column.values)
        values = column.values.astype(float if as_floats else object)
        values[column.missing] = float("nan") if as_floats else None
        return values
    # pandas would make floats of whole numbers that are beside floats or gaps.
    kind = object if int in set(map(type, column.values)) else None
    if isinstance(column, DictionaryColumn):
        return pandas.Series(column.values, dtype=kind).array.take(column.codes, allow_fill=True)
    return pandas.Series(column.values, dtype=kind)


def _array(arrow: Any, column: NumberColumn | DictionaryColumn | MixedColumn) -> Any:
    if isinstance(column, NumberColumn):
        return arrow.array(column.values, mask=column.missing)
    if isinstance(column, DictionaryColumn):
        codes = arrow.array(column.codes, mask=column.codes < 0)
        return arrow.DictionaryArray.from_arrays(
            codes, arrow.array(list(map(str, column.values)), arrow.string())
        )
    return arrow.array([None if value is None else str(value) for value in column.values], arrow.string())


def _model_row(model: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, value in model.items():
        if name == "coeffs":
            row |= {f"coeffs:{one['name']}": one["value"] for one in value}
        elif isinstance(value, Mapping):
            row |= dict(all_items_of({name: value}))
        else:
            row[name] = value
    return row


def _values(group: ResourceGroup, name: str) -> Iterable[Any]:
    return group.columns[name] if name in group.columns else repeat(group.constants.get(name), group.size)


def _stack(trace: Any) -> str:
    return ";".join(map(_frame, trace if isinstance(trace, (list, tuple)) else [trace]))


def _frame(record: Any) -> str:
    if isinstance(record, Mapping):
        function = str(record.get("function", record.get("func", "?")))
        called = function if function.endswith(")") else function + "()"
        record = f"{called}~{record.get('source', 'unreachable')}~{record.get('line', 0)}"
    # A semicolon would start another record, a line break another line.
    return str(flatten(record)).replace(";", ":").replace("\n", " ")
