"""Call stacks made of call graphs: what each function costs itself is kept, what calls cost is divided."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from perun.collect.instructions.callgrind_file import Inclusive
from perun.collect.instructions.tree import (
    OTHER_CALLERS,
    CallGraph,
    Frame,
    RecordedFunction,
    Tree,
    components,
    grow,
    rounded,
)

Calls = dict[tuple[str, str], int]


def graph_of(own: dict[str, int], calls: Calls) -> CallGraph:
    graph = CallGraph()
    numbers = {name: graph.node(RecordedFunction(name)) for name in own}
    for name, cost in own.items():
        graph.own[numbers[name]] = cost
    for (caller, callee), cost in calls.items():
        graph.add_call(numbers[caller], numbers[callee], 1, cost)
    return graph


def stacks(graph: CallGraph, *hidden: str) -> dict[str, int]:
    tree = Tree()
    names = [function.name for function in graph.functions]
    grow(tree, graph, lambda node: None if names[node] in hidden else Frame(names[node].rstrip("0123456789")))
    return {
        ";".join(frame.function for frame in reversed(tree.stack(node))): amount
        for node, amount in enumerate(tree.amounts)
        if amount
    }


def inclusive(graph: CallGraph) -> dict[str, int]:
    tree, found = Tree(), Inclusive()
    name = [Frame(function.name) for function in graph.functions].__getitem__
    grow(tree, graph, name)
    found.add(graph, name)
    sums = found.sums(tree.inclusive(), tree.exclusive())
    return {frame.function: amount for frame, amount in sums.items()}


DIAMOND = graph_of(
    {"main": 1000, "a": 2000, "b": 3000, "work": 40000},
    {("main", "a"): 12000, ("main", "b"): 33000, ("a", "work"): 10000, ("b", "work"): 30000},
)


def test_a_function_with_two_callers_is_divided_by_what_they_made_it_cost() -> None:
    assert stacks(DIAMOND) == {
        "main": 1000,
        "main;a": 2000,
        "main;b": 3000,
        "main;a;work": 10000,
        "main;b;work": 30000,
    }
    assert inclusive(DIAMOND) == {"main": 46000, "a": 12000, "b": 33000, "work": 40000}


def test_nodes_of_one_function_are_its_call_chains() -> None:
    graph = graph_of(
        {"main": 10, "a": 1, "b": 1, "work1": 100, "work2": 300, "leaf1": 50, "leaf2": 7},
        {
            ("main", "a"): 151,
            ("main", "b"): 308,
            ("a", "work1"): 150,
            ("b", "work2"): 307,
            ("work1", "leaf1"): 50,
            ("work2", "leaf2"): 7,
        },
    )
    assert stacks(graph)["main;a;work;leaf"] == 50
    assert stacks(graph)["main;b;work;leaf"] == 7


def test_functions_that_call_each_other() -> None:
    # The costs of calls within the circle count again what is nested in them.
    graph = graph_of(
        {"main": 100, "even": 600, "odd": 300, "leaf": 1000},
        {("main", "even"): 1900, ("even", "odd"): 9000, ("odd", "even"): 8000, ("odd", "leaf"): 1000},
    )
    assert stacks(graph) == {
        "main": 100,
        "main;even": 600,
        "main;even;odd": 300,
        "main;even;odd;leaf": 1000,
    }
    assert inclusive(graph) == {"main": 2000, "even": 1900, "odd": 1300, "leaf": 1000}


def test_a_function_that_calls_itself_is_one_frame() -> None:
    graph = graph_of({"main": 5, "f": 100}, {("main", "f"): 100, ("f", "f"): 4000})
    assert stacks(graph) == {"main": 5, "main;f": 100}
    assert inclusive(graph) == {"main": 105, "f": 100}


def test_what_has_no_frame_counts_for_its_caller() -> None:
    graph = graph_of(
        {"main": 10, "stub": 3, "f": 100}, {("main", "stub"): 103, ("stub", "f"): 100}
    )
    assert stacks(graph, "stub") == {"main": 13, "main;f": 100}


def test_small_stacks_are_not_lost() -> None:
    own = {"main": 10_000_000} | {f"f{number}": 2 for number in range(3)}
    graph = graph_of(own, {("main", name): 2 for name in own if name != "main"})
    found = stacks(graph)
    assert found == {"main": 10_000_000, f"{OTHER_CALLERS.function};f": 6}


def test_a_long_chain_needs_no_recursion() -> None:
    names = [f"{'f' if number % 2 else 'g'}{number}" for number in range(3000)]
    own = dict.fromkeys(names, 10)
    calls = {
        (one, other): 10 * (len(names) - number - 1)
        for number, (one, other) in enumerate(pairwise(names))
    }
    tree = Tree()
    grow(tree, graph_of(own, calls), lambda node: Frame(str(node)))
    assert tree.total == 30_000
    assert tree.inclusive()[Frame("0")] >= 10_000


@given(
    st.lists(st.integers(0, 1000), min_size=1, max_size=8).flatmap(
        lambda own: st.tuples(
            st.just(own),
            st.lists(
                st.tuples(
                    st.integers(0, len(own) - 1), st.integers(0, len(own) - 1), st.integers(0, 10_000)
                ),
                max_size=20,
            ),
        )
    )
)
def test_whatever_calls_cost_functions_keep_their_own(
    made: tuple[list[int], list[tuple[int, int, int]]],
) -> None:
    own, edges = made
    graph = CallGraph()
    for number, cost in enumerate(own):
        graph.own[graph.node(RecordedFunction(f"f{number}"))] = cost
    for caller, callee, cost in edges:
        graph.add_call(caller, callee, 1, cost)
    tree = Tree()
    frames = [Frame(function.name) for function in graph.functions]
    grow(tree, graph, frames.__getitem__)
    exclusive = tree.exclusive()
    assert [exclusive.get(frame, 0) for frame in frames] == own
    whole = tree.inclusive()
    assert all(exclusive[frame] <= whole[frame] <= tree.total for frame in exclusive)


@given(st.dictionaries(st.integers(0, 9), st.floats(0, 1e6)))
def test_rounded_parts_keep_their_sum(parts: dict[int, float]) -> None:
    whole = rounded(parts)
    assert sum(whole.values()) == round(sum(parts.values()))
    assert all(abs(whole[key] - parts[key]) <= 1 for key in parts)


def test_components() -> None:
    found = components([[1], [2, 3], [1], [4], []])
    assert [sorted(one) for one in found] == [[4], [3], [1, 2], [0]]
    assert components([]) == []
