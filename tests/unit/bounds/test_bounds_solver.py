"""Linear facts: what follows from them, over integers."""

import itertools
import random

import pytest

from perun.bounds.program import Linear, constant, variable
from perun.bounds.solver import Inequalities, Solver, contradictory

X, Y, Z = variable("x"), variable("y"), variable("z")


def test_linear_expressions_have_one_form() -> None:
    assert X + Y - X == Y and (X.times(2) + 3).substitute({"x": Y - 1}) == Y.times(2) + 1
    assert str(X - Y.times(2) + 1) == "x + -2 * y + 1" and (X.times(2) - 3).tightened() == X - 2
    assert constant(3).is_constant


@pytest.mark.parametrize(("facts", "goal", "follows"), [
    ([X - 3], X - 2, True),
    ([X - 2], X - 3, False),
    ([X - Y, Y - Z], X - Z, True),
    ([X - Y, Y - Z, Z - 1], X, True),
    ([X.times(2) - Y, Y - 1], X - 1, True),
    ([X, Y], X - Y, False),
    ([Z - 1], X, False),
    ([X, -X - 1], Y, True),
])  # fmt: skip
def test_what_follows_from_facts(facts: list[Linear], goal: Linear, follows: bool) -> None:
    assert Solver().entails(Inequalities(facts), goal) is follows


def test_integers_differ_from_rational_numbers() -> None:
    # 2x = 2y + 1 has rational solutions only; the solver is asked where elimination finds some.
    odd = [X.times(2) + Y.times(-2) - Z, Y.times(2) + X.times(-2) + Z, Z - 1, -Z + 1]
    assert Solver().entails(Inequalities(odd), constant(-1) + Z - Z) is False
    assert Solver().entails(Inequalities(odd), Z.times(3) - 4) is True
    assert Solver().entails(Inequalities(odd), Z.times(3) - 4, exact=False) is False


def test_facts_that_clash_are_infeasible() -> None:
    solver = Solver()
    assert not solver.feasible(Inequalities([X - 1, -X])) and not solver.feasible(
        Inequalities([X - Y - 1, Y - Z, Z - X])
    )
    assert solver.feasible(Inequalities([X - Y, Y - Z, Z - X]))


def test_elimination_agrees_with_all_small_values() -> None:
    generator = random.Random(7)
    grid = list(itertools.product(range(-4, 5), repeat=3))
    for _ in range(300):
        rows = [
            Linear(generator.randint(-3, 3), [(name, generator.randint(-1, 1)) for name in "xyz"])
            for _ in range(4)
        ]
        satisfied = any(
            all(row.constant + sum(f * point["xyz".index(n)] for n, f in row.terms) >= 0 for row in rows)
            for point in grid
        )
        if satisfied:
            assert contradictory(rows) is False, rows
        elif contradictory(rows) is False:
            # What has solutions far out only: it must hold for larger values.
            assert any(
                all(row.constant + sum(f * 9 * p["xyz".index(n)] for n, f in row.terms) >= 0 for row in rows)
                for p in grid
            ), rows
