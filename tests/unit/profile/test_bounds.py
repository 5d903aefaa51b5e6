"""Bounds in profiles: classes, their order, and the terms of a formula that grow fastest."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

from perun.core.errors import ProfileError
from perun.profile import bounds
from perun.profile.bounds import Growth, NoFormula, classes, functions_of
from perun.profile.factory import Profile


def profile(resources: Sequence[dict[str, Any]], type: str = "bound") -> Profile:
    made = Profile({"header": {"type": type, "units": {"bound": "iterations"}}})
    made.update_resources(resources)
    return made


def resource(function: str, place: tuple[int, int], total: bool, bound: str, growth: str) -> dict[str, Any]:
    uid = {"source": "a.c", "function": function, "line": place[0], "column": place[1]}
    kind = "total bound" if total else "local bound"
    return {"uid": uid, "type": "bound", "subtype": kind, "bound": bound, "class": growth}


def test_classes_are_ordered_by_growth() -> None:
    texts = ["O(1)", "O(log n)", "O(n)", "O(n log n)", "O(n^2)", "O(n^3)", "O(2^n)", "O(∞)"]
    assert all(Growth.of(one) < Growth.of(other) for one, other in pairwise(texts))
    assert Growth.of("O(n)") == Growth.of("O(n^1)")
    assert Growth.of("O(inf)") == Growth.of("O(∞)")
    assert [Growth.of(one).is_bounded for one in ("O(2^n)", "O(∞)")] == [True, False]


@pytest.mark.parametrize("text", ["", "O()", "n^2", "O(m)", "O(n^)", "O(n^-1)"])
def test_what_is_no_class(text: str) -> None:
    with pytest.raises(ValueError, match="no class"):
        Growth.of(text)


def test_orders_between_classes() -> None:
    assert Growth.of("O(n^3)").orders_above(Growth.of("O(n^1)")) == 2
    assert Growth.of("O(∞)").orders_above(Growth.of("O(n^1)")) == 0


def test_functions_have_their_total_and_their_loops_by_line() -> None:
    found = functions_of(
        profile([
            resource("f", (9, 12), False, "max(n, 0)", "O(n^1)"),
            resource("f", (2, 4), False, "3", "O(1)"),
            resource("f", (0, 5), True, "3 + max(n, 0)", "O(n^1)"),
        ])
    )  # fmt: skip
    (f,) = found
    assert f.line == 1  # in profiles the lines of functions are 0-based
    assert [loop.line for loop in f.loops] == [2, 9]
    assert f.total is not None
    assert f.total.text == "3 + max(n, 0)"


def test_layout_of_the_manual() -> None:
    """There the subtype is the type of the resource."""
    uid = {"line": 18, "column": 4, "source": "int_partitioning.c", "function": "partitioning"}
    total = {"uid": uid, "type": "total bound", "bound": "6 + 4 × max(0, (k + -1))", "time": "0.0",
             "class": "O(n^1)"}  # fmt: skip
    local = {**total, "uid": {**uid, "line": 34, "column": 42}, "type": "local bound"}
    (found,) = functions_of(profile([total, local]))
    assert (found.line, [loop.line for loop in found.loops]) == (19, [34])


def test_the_class_of_a_function_is_that_of_its_total() -> None:
    found = classes(
        profile([
            resource("f", (2, 4), False, "max(n, 0)", "O(n^1)"),
            resource("f", (0, 5), True, "inf", "O(∞)"),
            resource("g", (20, 5), True, "0", "O(1)"),
        ])
    )  # fmt: skip
    assert found == {"f": Growth.of("O(∞)"), "g": Growth.of("O(1)")}


def test_of_functions_of_one_name_the_fastest_growing_counts() -> None:
    other = resource("f", (0, 5), True, "n × n", "O(n^2)")
    other["uid"] = {**other["uid"], "source": "b.c"}
    assert classes(profile([resource("f", (0, 5), True, "n", "O(n^1)"), other])) == {"f": Growth.of("O(n^2)")}


def test_other_profiles_have_no_bounds() -> None:
    with pytest.raises(ProfileError, match="'time' and has no bounds"):
        classes(profile([], "time"))
    with pytest.raises(ProfileError, match=r"a\.c:f:0 has no class"):
        classes(profile([resource("f", (0, 5), True, "n", "fast")]))


@pytest.mark.parametrize(("formula", "expected"), [
    ("6 + 4 × max(0, (k + -1))", "4 × k"),
    ("1 + max(n, 0)", "n"),
    ("2 × n × n + 3 × m", "2 × n^2"),
    ("max(n, 0) × max(m, 0) + n", "m × n"),
    ("max(max(n, 7), 2 × n)", "2 × n"),
    ("min(n × n, 5 + m)", "m"),
    ("(n + 1) × (n + 1)", "n^2"),
    ("n^2/2 + n", "0.5 × n^2"),
    ("s->len × 3 + strlen(s)", "3 × s->len + strlen(s)"),
    ("17", "17"),
    ("0", "0"),
])  # fmt: skip
def test_terms_that_grow_fastest(formula: str, expected: str) -> None:
    assert bounds.text_of(bounds.leading(formula)) == expected


@pytest.mark.parametrize("formula", ["", "n +", "max(n", "n / m", "n ^ m", "n $ m", "(" * 5000 + "n"])
def test_what_is_no_formula(formula: str) -> None:
    with pytest.raises(NoFormula):
        bounds.leading(formula)


def test_terms_are_compared_one_by_one() -> None:
    n, m = ("n",), ("m",)
    one, two = Fraction(1), Fraction(2)
    assert bounds.difference({n: one}, {n: two}) == 1
    assert bounds.difference({n: one, m: one}, {n: one}) == -1
    assert bounds.difference({n: one, m: two}, {n: two, m: one}) is None
    assert bounds.ratio({n: two}, {n: Fraction(3)}) == 1.5
    assert bounds.ratio({n: one}, {n: one, m: one}) is None
