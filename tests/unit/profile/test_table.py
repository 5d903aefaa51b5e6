"""Resources as a table, as the data frame, the Arrow table and CSV show them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.profile.factory import Profile
from perun.profile.format import columns
from perun.profile.query import all_items_of
from perun.profile.table import DictionaryColumn, MixedColumn, NumberColumn, assembled, table_of

large = st.integers(2**53 - 2, 2**53 + 2)
whole = st.integers() | large | large.map(int.__neg__)
values = whole | st.floats(allow_nan=False) | st.text(max_size=2) | st.none() | st.booleans()
nested = st.lists(values, max_size=2) | st.dictionaries(st.sampled_from(["a", "b"]), values, max_size=2)
resources = st.lists(
    st.fixed_dictionaries({"uid": values | nested}, optional={
        "amount": values | nested, "order": st.integers(-5, 5), "exclusive": st.floats(0, 1),
        "snapshot": st.integers(0, 2), "trace": nested, "uid:a": values
    }),
    max_size=12,
)  # fmt: skip


def one_by_one(profile: Profile) -> tuple[list[str], list[tuple[Any, ...]]]:
    rows = []
    for number, resource in profile.all_resources():
        own = {key: value for key, value in resource.items() if key != "snapshot"}
        rows.append({"snapshots": number, **dict(all_items_of(dict(sorted(own.items()))))})
    names = sorted({name for row in rows for name in row})
    return names, [tuple(row.get(name) for name in names) for row in rows]


def plain(column: NumberColumn | DictionaryColumn | MixedColumn) -> list[Any]:
    if isinstance(column, MixedColumn):
        return column.values
    if isinstance(column, DictionaryColumn):
        return [None if code < 0 else column.values[code] for code in column.codes]
    found = column.values.tolist()
    if column.missing is None:
        return found
    return [None if gone else value for value, gone in zip(found, column.missing, strict=True)]


@given(resources)
def test_rows_and_columns_are_the_resources(resources: list[dict[str, Any]]) -> None:
    profile = Profile()
    profile.update_resources(resources)
    names, rows = one_by_one(profile)
    table = table_of(profile)
    assert table.size == len(rows)
    assert list(table.columns) == names
    assert list(map(repr, table.rows())) == list(map(repr, rows))
    for position, pieces in enumerate(table.columns.values()):
        assert plain(assembled(pieces, table.size)) == [row[position] for row in rows]


@pytest.mark.parametrize("whole", [2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**64 + 1, 10**400])
@pytest.mark.parametrize("packed", [False, True])
def test_whole_numbers_beside_floats_stay_exact(whole: int, packed: bool) -> None:
    count = columns.PACKED_FROM if packed else 1
    profile = Profile()
    profile.update_resources({"uid": "f", "amount": whole} for _ in range(count))
    profile.update_resources({"uid": "g", "amount": 0.5} for _ in range(count))
    table = table_of(profile)
    amounts = plain(assembled(table.columns["amount"], table.size))
    assert list(map(repr, amounts)) == [repr(whole)] * count + ["0.5"] * count


def test_kinds_of_columns() -> None:
    profile = Profile()
    profile.update_resources(
        {"uid": f"f{n % 2}", "amount": n / 2, "order": n, "address": f"{n}B", "ok": True, "n": n % 2}
        for n in range(columns.PACKED_FROM * 4)
    )
    profile.update_resources([{"uid": "g", "amount": 1, "large": 2**63, "exclusive": 2**64}])
    table = table_of(profile)
    found = {name: assembled(pieces, table.size) for name, pieces in table.columns.items()}
    kinds = {name: getattr(getattr(one, "values", None), "dtype", type(one)) for name, one in found.items()}
    assert kinds == {
        "address": MixedColumn, "amount": np.float64, "exclusive": MixedColumn, "large": DictionaryColumn,
        "n": np.int64, "ok": np.bool_, "order": np.int64, "snapshots": np.int64, "uid": DictionaryColumn
    }  # fmt: skip
    order, uid = found["order"], found["uid"]
    assert isinstance(order, NumberColumn) and order.missing is not None and order.missing.sum() == 1
    assert isinstance(uid, DictionaryColumn) and uid.values == ["f0", "f1", "g"]


@pytest.mark.parametrize(
    "profile", [Profile(), Profile(resources={"a": {"amount": []}}, resource_type_map={})]
)
def test_a_table_of_nothing(profile: Profile) -> None:
    assert table_of(profile) == (0, {})
    assert list(table_of(profile).rows()) == []
