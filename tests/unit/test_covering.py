"""The choice of cases that `make test` runs."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from covering import covering


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=30))
def test_every_value_stays(cases):
    stay = covering(cases)
    for values in zip(*cases, strict=True):
        assert {values[position] for position in stay} == set(values)
    assert len(stay) <= sum(len(set(values)) for values in zip(*cases, strict=True))


def test_of_a_table_a_diagonal_stays():
    table = list(itertools.product("abcd", "wxyz"))
    stay = covering(table)
    assert len(stay) == 4
