"""What one operation of a benchmark costs: the difference of two profiles."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from perun.profile.factory import Profile
from perun.running.explain.benchmark import difference

FRAMES = ("main", "run", "work")


def profile(resources: list[dict[str, Any]]) -> Profile:
    made = Profile({"header": {"type": "mixed", "cmd": "x"}, "collector_info": {"name": "instructions"}})
    made.update_resources(resources, columns=("calls", "count"))
    return made


def row(function: str, amount: float, *callers: str, **more: Any) -> dict[str, Any]:
    trace = [{"function": one} for one in (function, *callers)]
    return {
        "type": "instructions",
        "subtype": "exclusive",
        "uid": trace[0],
        "trace": trace,
        "amount": amount,
        **more,
    }


def amounts(found: Profile) -> dict[tuple[str, ...], float]:
    return {
        tuple(one["function"] for one in resource["trace"]): resource["amount"]
        for _, resource in found.all_resources()
    }


def test_what_both_have_is_taken_away() -> None:
    more = profile(
        [row("work", 1700, "main", calls=17), row("start", 5000, calls=1), row("peak", 3, count=17)]
    )
    fewer = profile([row("work", 900, "main", calls=9), row("start", 5000, calls=1), row("end", 2)])
    found = difference(more, fewer, 8)
    assert amounts(found) == {("work", "main"): 100.0, ("peak",): 0.375}
    assert [one.get("calls") for _, one in found.all_resources()] == [1.0, None]
    assert dict(found)["header"]["cmd"] == "x"
    alone = difference(more, None, 1)
    assert amounts(alone)["start",] == 5000


def test_what_is_no_sum_is_left_out() -> None:
    memory = {"type": "memory", "uid": "a", "amount": 8}
    found = difference(
        profile(
            [
                {**memory, "subtype": "malloc", "address": 1, "peak": 8, "count": 2},
                {**memory, "subtype": "peak"},
            ]
        ),
        profile([{**memory, "subtype": "malloc", "address": 7, "peak": 8, "count": 1, "amount": 4}]),
        1,
    )
    assert [one for _, one in found.all_resources()] == [
        {"type": "memory", "subtype": "malloc", "uid": "a", "amount": 4.0, "count": 1.0}
    ]


def test_lines_are_those_of_one_operation_too() -> None:
    function = {"function": "work", "source": "a.c"}
    other = {"function": "other", "source": "a.c"}
    sides = profile([row("work", 1700)]), profile([row("work", 900)])
    sides[0]["lines"] = {"files": ["a.c"], "functions": [function, other],
                         "costs": [[0, 0, 4, 1700], [1, 0, 9, 3]],
                         "calls": [[0, 0, 5, 1, 17, 170]]}  # fmt: skip
    sides[1]["lines"] = {"files": ["b.c", "a.c"], "functions": [other, function],
                         "costs": [[1, 1, 4, 900], [0, 1, 9, 3], "damaged"],
                         "calls": [[1, 1, 5, 0, 9, 90]]}  # fmt: skip
    lines = difference(*sides, 8)["lines"]
    assert lines["costs"] == [[0, 0, 4, 100]] and lines["calls"] == [[0, 0, 5, 1, 1, 10]]
    assert lines["functions"] == [function, other] and lines["files"][0] == "a.c"
    assert "lines" not in difference(profile([row("work", 3)]), None, 1)


ROWS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(FRAMES), st.integers(0, 1000)), max_size=8)


@given(ROWS, ROWS)
def test_the_sums_of_functions_are_those_of_the_difference(more: Any, fewer: Any) -> None:
    """Whatever their stacks are in the two runs; and no stack is negative."""
    found = difference(
        *(profile([row(*one) for one in ((a, n, f) for a, f, n in rows)]) for rows in (more, fewer)), 1
    )
    for name in "ab":
        expected = sum(n for a, _, n in more if a == name) - sum(n for a, _, n in fewer if a == name)
        own = [value for trace, value in amounts(found).items() if trace[0] == name]
        assert abs(sum(own) - max(expected, 0)) < 1e-6 and all(value > 0 for value in own)
