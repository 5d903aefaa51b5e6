"""Expressions of bounds: their text, their values and their order."""

from __future__ import annotations

import pytest

from perun.bounds.expression import INFINITY, ONE, ZERO, at_least, best, maximum, name, number, parse

K = maximum([ZERO, name("k") + number(-1)])
N = maximum([name("n"), ZERO])
M = maximum([name("m"), ZERO])


def test_text_is_that_of_the_manual() -> None:
    assert str(ONE + K) == "1 + max(0, (k + -1))"
    assert str(number(6) + number(4) * K) == "6 + 4 × max(0, (k + -1))"
    assert str(ONE + N * M) == "1 + max(m, 0) × max(n, 0)"
    assert str(INFINITY) == "inf"
    assert str(ZERO) == "0"


@pytest.mark.parametrize(
    "text",
    [
        "0", "7", "inf", "1 + max(n, 0)", "6 + 4 × max(0, (k + -1))", "max(0, (e + -1 × s))",
        "max(0, -1 × n, n)",
        "1 + max(m, 0) × max(n, 0) + max(n, 0)", "max(s->len, 0)", "max(0, (-3 + max(n, 0)))",
    ],
)  # fmt: skip
def test_text_reads_back_as_the_same(text: str) -> None:
    assert str(parse(text)) == text


@pytest.mark.parametrize("text", ["", "max(", "1 +", "n n", "(1", "max()", "+ 1", "1 ~ 2"])
def test_other_text_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="no expression"):
        parse(text)


def test_classes_follow_the_highest_degree() -> None:
    assert parse("7").cls == "O(1)"
    assert (ONE + N).cls == "O(n^1)"
    assert (N * M + N).cls == "O(n^2)"
    assert (N * N * M).cls == "O(n^3)"
    assert INFINITY.cls == "O(∞)"


def test_values_at_inputs() -> None:
    assert (number(6) + number(4) * K).evaluate({"k": 5}) == 22
    assert (N * M).evaluate({"n": -3, "m": 4}) == 0
    assert INFINITY.evaluate({}) == float("inf")
    with pytest.raises(KeyError):
        N.evaluate({"m": 1})


def test_leading_terms_are_those_of_the_highest_degree() -> None:
    assert (number(3) * N * M + N + ONE).leading_terms() == {"max(m, 0) × max(n, 0)": 3}
    assert (number(2) * N + M).leading_terms() == {"max(n, 0)": 2, "max(m, 0)": 1}
    assert INFINITY.leading_terms() == {}


def test_maxima_lose_what_others_cover_and_give_constants_away() -> None:
    assert maximum([ZERO, number(3)]) == number(3)
    assert maximum([ZERO, number(-3)]) == ZERO
    assert maximum([number(1), name("k")]) == ONE + K
    assert maximum([N, ZERO, ONE + N]) == ONE + N
    assert maximum([N, INFINITY]) == INFINITY


def test_infinity_and_zero_in_products() -> None:
    assert ZERO * INFINITY == ZERO
    assert N * INFINITY == INFINITY
    assert N + INFINITY == INFINITY


def test_the_better_of_two_bounds() -> None:
    assert best([N * M, number(100) * N, INFINITY]) == number(100) * N
    assert best([]) == INFINITY
    assert at_least(ONE + N, N)
    assert not at_least(N, M)
