"""The repeated measurements of a profile, and the sessions that make pairs of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.measurement.series import Metric, measurements, readings
from perun.profile import session
from perun.profile.factory import Profile
from perun.profile.session import pool


def profile(
    resources: list[dict[str, Any]], kind: str = "time", units: dict[str, str] | None = None
) -> Profile:
    made = Profile({"header": {"type": kind, "units": units or {}}})
    made.update_resources(resources)
    return made


def clocks(user: list[float], system: list[float]) -> list[dict[str, Any]]:
    return [
        {"uid": "./prog", "type": "time", "subtype": subtype, "order": order, "amount": amount}
        for subtype, amounts in (("real", [9.0] * len(user)), ("user", user), ("sys", system))
        for order, amount in enumerate(amounts, 1)
    ]


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)), min_size=1, max_size=12), st.randoms())
def test_clocks_stay_apart_and_cpu_is_their_sum_run_by_run(times: Any, random: Any) -> None:
    user, system = [one for one, _ in times], [one for _, one in times]
    resources = clocks(user, system)
    random.shuffle(resources)  # a profile may hold them in any order
    found = measurements(profile(resources, units={"time": "s"}))
    assert set(found) == {"./prog [real]", "./prog [user]", "./prog [sys]", "./prog [cpu]"}
    assert found["./prog [user]"].values.tolist() == user
    assert found["./prog [cpu]"].values.tolist() == (np.array(user) + np.array(system)).tolist()
    assert found["./prog [cpu]"].metric == Metric("./prog", "time", "cpu", "s", False)


def test_without_the_same_runs_there_is_no_sum() -> None:
    assert "./prog [cpu]" not in measurements(profile(clocks([1.0, 2.0], [1.0])))


def test_calls_of_a_function_are_of_one_run_and_are_counted_and_summed_up() -> None:
    one = {"type": "mixed", "subtype": "time delta", "uid": "f", "location": "a.c"}
    calls = [{**one, "caller": caller, "order": order, "amount": 1.0 * order}
             for order, caller in ((3, "main"), (1, "g"), (2, "main"))]  # fmt: skip
    found = measurements(profile(calls, "mixed", {"mixed(time delta)": "us"}))
    assert found["f"].values.tolist() == [1e-6, 2e-6, 3e-6]
    assert found["f"].of_one_run and found["f"].metric.unit == "s"
    assert found["f [total]"].values.tolist() == pytest.approx([6e-6])
    assert found["f [calls]"].values.tolist() == [3.0]
    assert found["f [calls]"].metric.exact and not found["f [total]"].metric.exact


def test_pooled_profiles_have_a_sum_and_a_count_each() -> None:
    call = {"type": "mixed", "subtype": "time delta", "uid": "f"}
    runs = [
        profile([{**call, "order": order, "amount": 2.0} for order in range(calls)], "mixed")
        for calls in (2, 3)
    ]
    found = measurements(pool(runs))
    assert found["f [calls]"].values.tolist() == [2.0, 3.0]
    assert found["f [total]"].values.tolist() == [4.0, 6.0]
    assert found["f"].values.size == 5
    before = profile([{**call, "uid": "g", "amount": 1.0}], "mixed")  # which never calls it
    found = measurements(pool([before, *runs]))
    assert found["f [calls]"].values.tolist() == [2.0, 3.0] and found["g [calls]"].values.tolist() == [1.0]


def test_of_memory_the_sums_are_taken() -> None:
    sums = [
        {"type": "memory", "subtype": metric, "uid": {"source": "prog", "memory": metric}, "amount": amount,
         **({"absent": 0} if metric == "leaked" else {})}
        for metric, amount in (("peak", 90), ("leaked", 0))
    ]  # fmt: skip
    site = {"type": "memory", "subtype": "malloc", "uid": {"function": "f"}, "amount": 5}
    found = measurements(profile([*sums, site], "memory", {"memory": "B"}))
    assert list(found) == ["prog:peak", "prog:leaked"]
    assert found["prog:peak"].metric.exact and found["prog:peak"].metric.unit == "B"
    assert found["prog:leaked"].absent == 0.0 and found["prog:peak"].absent is None


def test_memory_of_older_releases_is_summed_up_by_place() -> None:
    resources = [
        {"type": "memory", "subtype": subtype, "uid": "f", "address": address, "amount": amount}
        for subtype, address, amount in (("malloc", 1, 5), ("free", 1, 0), ("calloc", 2, 7))
    ]
    found = measurements(profile(resources, "memory"))
    assert found["f [allocated]"].values.tolist() == [12.0]


def test_instructions_of_a_function_are_summed_up_over_its_call_stacks() -> None:
    own = {"type": "instructions", "subtype": "exclusive"}
    resources = [
        {**own, "uid": {"source": "a.c", "function": name}, "trace": [{"function": caller}], "amount": amount}
        for name, caller, amount in (("f", "g", 5), ("f", "h", 7), ("g", "main", 30))
    ]
    uid = {"source": "a.c", "function": "g", "instructions": "inclusive"}
    resources.append({"type": "instructions", "subtype": "inclusive", "uid": uid, "amount": 35, "calls": 1})
    found = measurements(profile(resources, "mixed", {"instructions": "instr"}))
    assert {location: series.values.tolist() for location, series in found.items()} == {
        "a.c:f": [12],
        "a.c:g": [30],
        "a.c:g:inclusive": [35],
    }
    assert {series.whole for series in found.values()} == {42}
    assert all(series.metric.exact and series.metric.unit == "instr" for series in found.values())


def test_what_is_no_number_is_left_out() -> None:
    values: list[Any] = [1.5, None, "2", float("nan"), float("inf"), True, 4, 10**400]
    resources = [{"uid": "x", "type": "regex", "subtype": "req/s", "amount": one} for one in values]
    assert measurements(profile(resources, "regex"))["x [req/s]"].values.tolist() == [1.5, 4.0]


def test_sides_of_one_session_are_pairs() -> None:
    base, head, other, alone = (profile([]) for _ in range(4))
    session.mark(base, session.Session("s1", "base", runs_are_rounds=True))
    session.mark(head, session.Session("s1", "head", runs_are_rounds=True))
    session.mark(other, session.Session("s2", "head", runs_are_rounds=True))
    assert session.are_pairs(base, head) and session.are_pairs(head, base)
    assert not session.are_pairs(base, other)
    assert not session.are_pairs(base, base)
    assert not session.are_pairs(base, alone) and not session.are_pairs(alone, alone)
    assert session.session_of(base) == session.Session("s1", "base", runs_are_rounds=True)
    assert base["header"]["type"] == "time"


@given(st.recursive(st.none() | st.integers() | st.text(), lambda one: st.dictionaries(st.text(), one)))
def test_any_header_says_whether_there_is_a_session(value: Any) -> None:
    assert session.session_of({"header": {"session": value}}) is None or isinstance(value["id"], str)
    assert session.session_of({"header": value}) is None


@pytest.mark.parametrize(
    "header",
    [{"id": "", "side": "base"}, {"id": 1, "side": "base"}, {"id": "s"}, {"id": "s", "side": 1}, "s"],
)
def test_half_a_session_is_none(header: Any) -> None:
    assert session.session_of({"header": {"session": header}}) is None


@pytest.mark.parametrize(("noted", "expected"), [(True, True), (False, False), (1, False), (None, False)])
def test_whether_uncommitted_changes_were_measured(noted: Any, expected: bool) -> None:
    found = {"id": "s", "side": "head", "uncommitted": noted}
    assert session.is_uncommitted({"header": {"session": found}}) is expected
    assert session.is_uncommitted({"header": {"session": None}}) is False
    assert session.is_uncommitted({}) is False


def test_sizes_are_given_where_they_differ() -> None:
    call = {"type": "mixed", "subtype": "time delta"}
    resources = [
        {**call, "uid": uid, "order": order, "amount": 1.0, **({"structure-unit-size": size} if size else {})}
        for uid, sizes in (("grows", (10, 30, 20)), ("alike", (5, 5, 5)), ("none", (0, 0, 0)))
        for order, size in enumerate(sizes)
    ]
    resources += [{**call, "uid": "some", "order": 0, "amount": 1.0, "workload": "a"},
                  {**call, "uid": "some", "order": 1, "amount": 1.0}]  # fmt: skip
    found = measurements(profile(resources, "mixed"))
    sizes = {uid: found[uid].sizes for uid in ("grows", "alike", "none", "some")}
    assert sizes["grows"] is not None and sizes["grows"].tolist() == [10, 30, 20]
    assert sizes["alike"] is sizes["none"] is sizes["some"] is None


def test_an_amount_that_all_have_counts_and_without_one_there_is_no_series() -> None:
    one = {"type": "time", "subtype": "real"}
    made = Profile(
        {
            "header": {"type": "time", "units": {}},
            "resources": {
                "a%%0%%": {"order": [1, 2]},
                "b%%0%%": {"order": [1, 2]},
            },
            "resource_type_map": {
                "a%%0%%": {**one, "uid": "a", "amount": 2.5},
                "b%%0%%": {**one, "uid": "b"},
            },
        }
    )
    assert {name: series.values.tolist() for name, series in measurements(made).items()} == {
        "a [real]": [2.5, 2.5]
    }


@pytest.mark.parametrize("name", ["rate", "mixed", "req/s"])
def test_more_of_a_metric_is_better_where_the_header_says_so(name: str) -> None:
    resources = [
        {"uid": uid, "type": kind, "subtype": unit, "amount": amount, "order": order}
        for order, amount in enumerate([100.0, 110.0])
        for uid, kind, unit in (("rate", "mixed", "req/s"), ("wall", "time", "real"))
    ]
    made = profile(resources, "mixed", {"mixed(req/s)": "req/s", "time": "s"})
    made["header"] = {**made["header"], "larger_is_better": [name, 7, ""]}
    found = measurements(made)
    # These are no calls of a function, whose number and sum would be told.
    assert {location: one.metric.larger_is_better for location, one in found.items()} == {
        "rate [req/s]": True, "wall [real]": False,
    }  # fmt: skip
    for odd in ("rate", None, {"rate": 1}):
        made["header"] = {**made["header"], "larger_is_better": odd}
        assert not any(one.metric.larger_is_better for one in measurements(made).values())


def test_of_very_many_series_the_five_thousand_largest_are_kept() -> None:
    one = {"type": "instructions", "subtype": "exclusive"}
    columns = {f"{n}%%0%%": {"amount": [n + 1]} for n in range(5001)}
    kinds = {name: {**one, "uid": f"f{name}"} for name in columns}
    made = Profile({"header": {"type": "instructions"}, "resources": columns, "resource_type_map": kinds})
    kept = [own.rounds[0].samples[""].median for own in readings(made).values()]
    assert (len(kept), min(kept)) == (5000, 2)
