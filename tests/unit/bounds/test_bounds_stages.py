"""The stages of the analysis of bounds, each on programs that are written down as graphs."""

from pathlib import Path

import pytest

from perun.bounds.analysis import AnalysisOptions, analyse, bounds_of, nests
from perun.bounds.bounding import BoundSolver
from perun.bounds.constraints import Add, Constraints, Norm, SetToInput, SetToNorm
from perun.bounds.expression import INFINITY, ONE, ZERO, at_least, best, maximum, name, number, parse
from perun.bounds.front.read import read
from perun.bounds.front.unit import ReadOptions
from perun.bounds.invariants import Invariants
from perun.bounds.paths import MAX_TRANSITIONS, System, TooManyPaths, paths
from perun.bounds.program import (
    ControlFlowGraph,
    Edge,
    Linear,
    LoopInfo,
    components,
    constant,
    reachable,
    topological_order,
    variable,
)
from perun.bounds.slicing import relevant_variables, sliced, split
from perun.bounds.solver import Inequalities, Solver

X, J, N, S, D = (variable(name) for name in "ijnsd")


def program(*edges: Edge, loops: int = 1, **inputs: str) -> ControlFlowGraph:
    """A program that starts at 0 and ends at 1."""
    made = ControlFlowGraph(edges=list(edges), inputs=inputs or {"n": "n"})
    made.loops = [LoopInfo(1, 1, 0, 2, nested=False)] * loops
    return made


def counting(*extra: tuple[str, Linear | None]) -> ControlFlowGraph:
    """`for (i = 0; i < n; i++)`, with more updates in its body."""
    return program(
        Edge(0, 2, (), (("i", constant(0)), ("s", constant(0)))),
        Edge(2, 3, (N - X - 1,)),
        Edge(3, 2, (), (("i", X + 1), *extra), loop=0),
        Edge(2, 1, (X - N,)),
    )


def test_components_and_what_can_be_reached() -> None:
    pairs = [(0, 1), (1, 2), (2, 1), (2, 3)]
    found = components([0], pairs)
    assert found[1] == found[2] and len({found[0], found[1], found[3]}) == 3
    assert reachable([2], pairs) == {1, 2, 3}


def test_slicing_keeps_what_decides_on_loops() -> None:
    assert relevant_variables(counting(("s", S + X))) == {"i", "n"}
    assert not any(name == "s" for edge in sliced(counting(("s", S + X))).edges for name, _ in edge.updates)


def test_paths_become_transitions() -> None:
    around = [each for each in paths(sliced(counting())).transitions if each.loop == 0]
    assert [(each.source, each.target, each.guards, each.updates) for each in around] == [
        (2, 2, (N - X - 1,), {"i": X + 1})
    ]


def test_paths_that_contradict_themselves_are_dropped() -> None:
    edges = [
        Edge(0, 2, (), (("i", N),)), Edge(2, 3, (X - 5,)), Edge(3, 4, (-X + 4,)), Edge(4, 2, loop=0),
        Edge(2, 1, (-X + 4,)),
    ]  # fmt: skip
    assert not any(each.loop == 0 for each in paths(program(*edges)).transitions)


def test_joins_of_many_paths_are_kept_as_locations() -> None:
    edges = [Edge(0, 2, (), tuple((f"x{index}", constant(0)) for index in range(8)))]
    for index in range(8):
        edges += [Edge(2 + index, 3 + index, (), ((f"x{index}", constant(1)),)), Edge(2 + index, 3 + index)]
    guards = tuple(variable(f"x{index}") - X for index in range(8))
    edges += [Edge(10, 2, guards, loop=0), Edge(10, 1)]
    system = paths(program(*edges))
    assert len(system.transitions) < 100
    assert len({each.source for each in system.transitions}) > 2


def test_too_many_paths_are_given_up_before_all_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scanner of a generator has thousands of ways out of one loop."""
    followed = []
    along = Edge.__getattribute__

    def counting_edges(edge: Edge, name: str) -> object:
        if name == "guards":
            followed.append(edge)
        return along(edge, name)

    edges = [Edge(0, 2, (), (("i", constant(0)),)), Edge(2, 3, (-X + 9,), (("i", N),), loop=0)]
    for index in range(3, 3000):
        edges += [Edge(index, index + 1), Edge(index, 2, (N - index,), (("i", constant(index)),), loop=0)]
    made = program(*edges, Edge(3000, 1))
    with monkeypatch.context() as patched:
        patched.setattr(Edge, "__getattribute__", counting_edges)
        with pytest.raises(TooManyPaths):
            paths(made)
    assert len(followed) - 2 * len(edges) < 4 * MAX_TRANSITIONS


def test_the_topological_order_ignores_edges_that_go_back() -> None:
    order, retreating = topological_order(two_loops())
    forward = [each for each in two_loops().edges if each.target not in retreating]
    assert forward and all(order[each.source] < order[each.target] for each in forward)


def stages(made: ControlFlowGraph) -> tuple[System, Invariants, Constraints]:
    system = paths(sliced(made))
    invariants = Invariants(system, solver := Solver())
    return system, invariants, Constraints(system, invariants, solver)


def test_affine_equalities_relate_counters() -> None:
    made = counting(("s", S + 2))
    made.edges.append(Edge(1, 4, (S - 5,)))
    system = paths(made)
    assert Invariants(system, Solver()).equalities.normal(2, S - X.times(2)) == constant(0)


def test_guards_are_invariants_where_they_are_inductive() -> None:
    _, invariants, _ = stages(counting())
    assert Solver().entails(Inequalities(invariants.at(2)), X)
    assert not Solver().entails(Inequalities(invariants.at(2)), N - X - 1)


def test_constraints_of_a_counter() -> None:
    system, _, constraints = stages(counting())
    enter, around = system.transitions[0], next(each for each in system.transitions if each.loop == 0)
    left = Norm(N - X)
    assert Add(-1) in constraints.changes(around, left)
    assert constraints.changes(enter, left) == (SetToInput(N),)
    assert constraints.changes(around, Norm(X))[0] == Add(1)
    assert constraints.positive(around, left)


def test_constraints_of_copies() -> None:
    made = program(
        Edge(0, 2, (), (("i", N), ("j", constant(0)))),
        Edge(2, 2, (X - 1, J), (("i", J), ("j", X - 1)), loop=0),
        Edge(2, 1),
    )
    system, _, constraints = stages(made)
    around = next(each for each in system.transitions if each.loop == 0)
    assert SetToNorm(Norm(J), 0) in constraints.changes(around, Norm(X))
    assert not constraints.decreases(around, Norm(X)) and constraints.decreases(around, Norm(X + J))


def test_a_counter_that_is_reset_pays_as_often() -> None:
    bounds, _ = bounds_of(counting())
    assert str(bounds[0].backedges) == "max(n, 0)"


def test_what_any_value_is_added_to_has_no_bound() -> None:
    bounds, _ = bounds_of(counting(("i", None)))
    assert bounds[0].backedges.infinite and bounds[0].reason


def test_a_decrease_below_zero_pays_for_nothing() -> None:
    made = program(Edge(0, 2, (), (("i", N),)), Edge(2, 2, (X + 100,), (("i", X - 1),), loop=0), Edge(2, 1))
    assert str(bounds_of(made)[0][0].backedges) == "max(0, (n + 101))"


def test_exclusive_resets_cost_the_largest() -> None:
    made = program(
        Edge(0, 3, (), (("i", N),)), Edge(0, 3, (), (("i", variable("m")),)), Edge(3, 2),
        Edge(2, 2, (X - 1,), (("i", X - 1),), loop=0), Edge(2, 1, (-X,)), n="n", m="m",
    )  # fmt: skip
    assert str(bounds_of(made)[0][0].backedges) == "max(0, m, n)"


def test_locations_are_split_by_flags() -> None:
    made = program(
        Edge(0, 2, (), (("i", constant(0)), ("d", constant(0)))),
        Edge(2, 3, (D, -D)),
        Edge(3, 2, (N - X - 1,), (("i", X + 1),), loop=0),
        Edge(3, 2, (X - N,), (("d", constant(1)),), loop=0),
        Edge(2, 1, (D - 1,)),
    )
    system = paths(sliced(made))
    assert len(split(system).transitions) == 4
    assert str(bounds_of(made)[0][0].backedges) == "1 + max(n, 0)"


def test_bounds_of_values() -> None:
    system, _, constraints = stages(counting())
    bounding = BoundSolver(system, constraints)
    assert str(bounding.value(Norm(N - X), 2)) == "max(n, 0)"
    assert str(bounding.value(Norm(X), 2)) == "max(n, 0)"


def two_loops() -> ControlFlowGraph:
    """`for (i = 0; i < n; i++) s = i; for (; s > 0; s--);`"""
    return program(
        Edge(0, 2, (), (("i", constant(0)), ("s", constant(0)))),
        Edge(2, 2, (N - X - 1,), (("i", X + 1), ("s", X)), loop=0), Edge(2, 3, (X - N,)),
        Edge(3, 3, (S - 1,), (("s", S - 1),), loop=1), Edge(3, 1, (-S,)), loops=2
    )  # fmt: skip


def test_nests_are_analysed_alone_where_all_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [str(each.backedges) for each in bounds_of(two_loops())[0]] == ["max(n, 0)", "max(0, (n + -1))"]
    monkeypatch.setattr("perun.bounds.paths.MAX_TRANSITIONS", 4)
    alone, _ = bounds_of(two_loops())
    assert str(alone[0].backedges) == "max(n, 0)" and alone[1].backedges.infinite


def test_a_nest_alone_sees_any_value_of_what_others_assign() -> None:
    found = dict(nests(two_loops()))
    assert set(found) == {frozenset({0}), frozenset({1})}
    second = found[frozenset({1})]
    assert not any(edge.loop == 0 for edge in second.edges)
    assert any(dict(edge.updates) == {"i": None, "s": None} for edge in second.edges)


# -- Expressions of bounds: their text, their values and their order ---------------------------------


K = maximum([ZERO, name("k") + number(-1)])
LENGTH = maximum([name("n"), ZERO])
M = maximum([name("m"), ZERO])


def test_text_is_that_of_the_manual() -> None:
    assert str(ONE + K) == "1 + max(0, (k + -1))"
    assert str(number(6) + number(4) * K) == "6 + 4 × max(0, (k + -1))"
    assert str(ONE + LENGTH * M) == "1 + max(m, 0) × max(n, 0)"
    assert str(INFINITY) == "inf" and str(ZERO) == "0"


@pytest.mark.parametrize("text", [
    "0", "7", "inf", "1 + max(n, 0)", "6 + 4 × max(0, (k + -1))", "max(0, (e + -1 × s))", "max(0, -1 × n, n)",
    "1 + max(m, 0) × max(n, 0) + max(n, 0)", "max(s->len, 0)", "max(0, (-3 + max(n, 0)))"
])  # fmt: skip
def test_text_reads_back_as_the_same(text: str) -> None:
    assert str(parse(text)) == text


@pytest.mark.parametrize("text", ["", "max(", "1 +", "n n", "(1", "max()", "+ 1", "1 ~ 2"])
def test_other_text_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="no expression"):
        parse(text)


def test_classes_are_those_of_the_highest_degree() -> None:
    assert parse("7").cls == "O(1)" and (ONE + LENGTH).cls == "O(n^1)"
    assert (LENGTH * M + LENGTH).cls == "O(n^2)"
    assert (LENGTH * LENGTH * M).cls == "O(n^3)" and INFINITY.cls == "O(∞)"


def test_values_at_inputs() -> None:
    assert (number(6) + number(4) * K).evaluate({"k": 5}) == 22
    assert (LENGTH * M).evaluate({"n": -3, "m": 4}) == 0
    assert INFINITY.evaluate({}) == float("inf")
    with pytest.raises(KeyError):
        LENGTH.evaluate({"m": 1})


def test_sums_products_and_maxima_are_simplified() -> None:
    assert maximum([ZERO, number(3)]) == number(3)
    assert maximum([ZERO, number(-3)]) == ZERO
    assert maximum([number(1), name("k")]) == ONE + K
    assert maximum([LENGTH, ZERO, ONE + LENGTH]) == ONE + LENGTH
    assert maximum([LENGTH, INFINITY]) == INFINITY
    assert ZERO * INFINITY == ZERO and LENGTH * INFINITY == INFINITY
    assert LENGTH + INFINITY == INFINITY


def test_the_better_of_two_bounds() -> None:
    assert best([LENGTH * M, number(100) * LENGTH, INFINITY]) == number(100) * LENGTH
    assert best([]) == INFINITY and at_least(ONE + LENGTH, LENGTH)
    assert not at_least(LENGTH, M)


# -- The cost of calls, from summaries of the functions that are called ------------------------------


SOURCE = """\
static int len(int n) { int c = 0; for (int i = 0; i < n; i++) c++; return c; }
int twice(int n) { return len(n) + len(n - 1); }
int product(int n, int m) { int s = 0; for (int i = 0; i < n; i++) s += len(m); return s; }
int triangle(int n) { int s = 0; for (int i = 0; i < n; i++) s += len(i); return s; }
int factorial(int n) { return n <= 1 ? 1 : n * factorial(n - 1); }
int caller(int n) { return factorial(n); }
int never(int n) { if (n > 0 && n < 0) return len(n); return 0; }
"""
EXPECTED = {
    "len": "1 + max(n, 0)", "twice": "2 + max(0, (n + -1)) + max(n, 0)",
    "product": "1 + max(m, 0) × max(n, 0) + 2 × max(n, 0)",
    "triangle": "1 + max(0, (n + -1)) × max(n, 0) + 2 × max(n, 0)", "factorial": "inf", "caller": "inf",
    "never": "0"
}  # fmt: skip


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("calls") / "calls.c"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def test_calls_cost_what_the_function_called_does(source: Path) -> None:
    unit = read(str(source), ReadOptions())
    found = {each.name: analyse(each, unit, AnalysisOptions(calls=True)) for each in unit.functions}
    assert {name: bounds.bound for name, bounds in found.items()} == EXPECTED
    assert found["factorial"].reason == "it calls itself"


def test_calls_cost_nothing_by_default(source: Path) -> None:
    unit = read(str(source), ReadOptions())
    found = {each.name: analyse(each, unit).bound for each in unit.functions}
    assert found["product"] == "1 + max(n, 0)" and found["caller"] == "0"


def test_back_edges_alone_are_one_less(source: Path) -> None:
    unit = read(str(source), ReadOptions())
    assert analyse(unit.functions[0], unit, AnalysisOptions(count="backedges")).bound == "max(n, 0)"
