"""Average Amount Threshold: classification, units, and odd profiles."""

from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from perun.check.average_amount_threshold import PLUGIN, ThresholdParams
from perun.plugin.api import CheckContext
from perun.profile.amounts import written
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile
from profiles import columns_of, profile_of

AMOUNTS = st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=5)
PROFILES = st.dictionaries(st.sampled_from("abcdef"), AMOUNTS, max_size=6)
MIRROR = {
    PerformanceChange.Degradation: PerformanceChange.Optimization,
    PerformanceChange.Optimization: PerformanceChange.Degradation,
    PerformanceChange.NotInBaseline: PerformanceChange.NotInTarget,
    PerformanceChange.NotInTarget: PerformanceChange.NotInBaseline,
    PerformanceChange.NoChange: PerformanceChange.NoChange,
    PerformanceChange.Unknown: PerformanceChange.Unknown,
    PerformanceChange.MaybeDegradation: PerformanceChange.MaybeOptimization,
    PerformanceChange.MaybeOptimization: PerformanceChange.MaybeDegradation,
}


def profile(amounts: dict[str, list[Any]], units: Any = None, **constants: Any) -> Profile:
    made = profile_of(columns_of(amounts, **constants))
    if units is not None:
        made["header"]["units"] = units
    return made


def compare(baseline: Profile, target: Profile, **params: float) -> dict[str, DegradationInfo]:
    found = list(PLUGIN().compare(baseline, target, ThresholdParams(**params), CheckContext()))
    changes = {change.location: change for change in found}
    assert len(changes) == len(found)
    return changes


def compared(old: list[Any], new: list[Any]) -> DegradationInfo:
    return compare(profile({"f": old}), profile({"f": new}))["f"]


@pytest.mark.parametrize(("old", "new", "change", "rate"), [
    ([1, 3], [4], PerformanceChange.Degradation, 2.0),
    ([1, 3], [3.99], PerformanceChange.NoChange, 1.995),
    ([1, 3], [1.01], PerformanceChange.NoChange, 0.505),
    ([1, 3], [0.5, 1.5], PerformanceChange.Optimization, 0.5),
    ([2], [2], PerformanceChange.NoChange, 1.0),
    ([2], [0], PerformanceChange.NoChange, 0.0),
    ([0], [0], PerformanceChange.NoChange, 1.0),
    ([0], [2], PerformanceChange.Unknown, 0.0),
    ([1e-300], [1e300], PerformanceChange.Degradation, 1.7976931348623157e308),
])  # fmt: skip
def test_classification(old: list[float], new: list[float], change: PerformanceChange, rate: float) -> None:
    found = compared(old, new)
    assert found.result is change
    assert found.rate_degradation == pytest.approx(rate)
    assert found.type == "ratio"
    assert found.confidence_type == "no"


def test_values_of_the_example() -> None:
    old = profile({"search": [60677.984]}, {"mixed(time delta)": "ms"}, type="mixed", subtype="time delta")
    new = profile({"search": [135.288]}, {"mixed(time delta)": "ms"}, type="mixed", subtype="time delta")
    found = compare(old, new)["search"]
    assert (found.from_baseline, found.to_target) == ("60677.98ms", "135.29ms")
    assert found.result is PerformanceChange.Optimization


def test_in_one_profile_only() -> None:
    found = compare(profile({"old": [1.5]}), profile({"new": [0.002]}))
    assert found["old"].result is PerformanceChange.NotInTarget
    assert (found["old"].from_baseline, found["old"].to_target) == ("1.5s", "-")
    assert found["new"].result is PerformanceChange.NotInBaseline
    assert (found["new"].from_baseline, found["new"].to_target) == ("-", "2.0ms")


def test_all_groups_of_a_uid_that_measure_the_same_make_one_mean() -> None:
    old = profile({"f": [1, 1]})
    old.update_resources([{"uid": "f", "type": "time", "amount": 4, "order": 1}])
    found = compare(old, profile({"f": [2]}))["f"]
    assert found.from_baseline == "2.0s"


def timed(runs: list[tuple[float, float, float]]) -> Profile:
    """What the collector of times makes of runs with these real, user and system times."""
    made = profile({})
    made.update_resources(
        {"uid": "./a", "type": "time", "subtype": subtype, "amount": amount, "order": order}
        for order, times in enumerate(runs, 1)
        for subtype, amount in zip(("real", "user", "sys"), times, strict=True)
    )
    return made


def test_clocks_are_compared_apart() -> None:
    """Waiting for 80 ms more shows in the real time alone; a mean of all clocks hides it."""
    before, after = timed([(0.05, 0.04, 0.01)] * 5), timed([(0.13, 0.04, 0.01)] * 5)
    found = compare(before, after)
    assert {location: change.result.name for location, change in found.items()} == {
        "./a [cpu]": "NoChange",
        "./a [real]": "Degradation",
        "./a [sys]": "NoChange",
        "./a [user]": "NoChange",
    }
    assert (found["./a [cpu]"].from_baseline, found["./a [real]"].to_target) == ("50.0ms", "0.13s")


def test_user_and_system_time_of_ticks_say_nothing_apart() -> None:
    """The kernel counts a whole tick as one or the other: their sum is the same."""
    before, after = timed([(0.01, 0.005, 0.0)] * 6), timed([(0.01, 0.0, 0.005)] * 6)
    assert {change.result.name for change in compare(before, after).values()} == {"NoChange"}
    longer = compare(timed([(1, 0.9, 0.02)] * 6), timed([(1, 0.9, 0.06)] * 6))
    assert longer["./a [sys]"].result is PerformanceChange.Degradation
    assert longer["./a [cpu]"].result is PerformanceChange.NoChange


def called(calls: dict[str, list[float]], **more: Any) -> Profile:
    made = Profile({"header": {"type": "mixed", "units": {"mixed(time delta)": "us"}, **more}})
    made.update_resources(
        {"uid": uid, "type": "mixed", "subtype": "time delta", "amount": amount, "call-order": order}
        for uid, amounts in calls.items()
        for order, amount in enumerate(amounts)
    )
    return made


def test_more_calls_are_no_optimization() -> None:
    once, often = called({"f": [100.0]}), called({"f": [37.7] * 1000})
    mean, total = (compare(once, often)[location] for location in ("f", "f [total]"))
    assert (mean.result.name, mean.rate_degradation) == ("NoChange", pytest.approx(0.377))
    assert (total.result.name, total.rate_degradation) == ("Degradation", pytest.approx(377))
    assert (total.from_baseline, total.to_target) == ("100.0us (1 call)", "37700.0us (1000 calls)")
    back = compare(often, once)
    assert [back[location].result.name for location in ("f", "f [total]")] == ["NoChange", "Optimization"]
    assert list(compare(once, called({"f": [30.0]}))) == ["f"]  # as often: the means say it all


def test_sums_are_those_of_one_run() -> None:
    one, three = called({"f": [10.0] * 4}), called({"f": [10.0] * 12}, pooled=3)
    assert list(compare(one, three)) == ["f"]
    total = compare(three, called({"f": [10.0] * 12}))["f [total]"]
    assert (total.from_baseline, total.rate_degradation) == ("40.0us (4 calls)", pytest.approx(3))


def test_one_interrupted_call_is_no_certain_change() -> None:
    calls = [2.0, 3.0, 2.5] * 500
    found = compare(called({"f": calls}), called({"f": [4300.0, *calls[1:]]}))["f"]
    assert found.result is PerformanceChange.Unknown
    assert found.rule.startswith("the means differ, but the trimmed means by a factor of 1")
    assert found.rate_degradation > 2
    assert found.confidence_type == "ratio of trimmed means"
    assert found.confidence_rate == pytest.approx(1, abs=0.05)
    assert compare(called({"f": calls}), called({"f": [2 * call for call in calls]}))["f"].result is (
        PerformanceChange.Degradation
    )


def test_one_slow_run_is_no_certain_change() -> None:
    found = compared([1.0, 1.1, 0.9, 1.0], [1.0, 1.1, 0.9, 20.0])
    assert found.result is PerformanceChange.Unknown
    assert (found.confidence_type, found.confidence_rate) == ("ratio of fastest runs", pytest.approx(1.0))


@pytest.mark.parametrize(
    ("fastest", "change"), [(1.81, "Degradation"), (1.79, "Maybe"), (1.42, "Maybe"), (1.41, "Unknown")]
)
def test_a_robust_measure_has_to_agree(fastest: float, change: str) -> None:
    old, new = [1.0, 1.0, 1.0], [fastest, 2.5, 2.5]
    opposite = change.replace("Degradation", "Optimization")
    for one, other in ((old, new), (new, old)):
        assert compared(one, other).result.name.startswith(change if one is old else opposite)
    narrow = compare(profile({"f": old}), profile({"f": [1.0, 1.3, 1.3]}), degradation=1.1)["f"]
    assert narrow.result is PerformanceChange.Unknown


def test_exact_amounts_have_narrow_limits() -> None:
    def allocated(amount: int) -> Profile:
        made = Profile({"header": {"type": "memory", "units": {"memory": "B"}}})
        uid = {"source": "list.c", "function": "push", "line": 3}
        made.update_resources([{"uid": uid, "type": "memory", "subtype": "malloc", "amount": amount}])
        return made

    (found,) = compare(allocated(50_000_000), allocated(95_000_000)).values()
    assert (found.result.name, found.rate_degradation) == ("Degradation", 1.9)
    (found,) = compare(allocated(1000), allocated(1049)).values()
    assert found.result is PerformanceChange.NoChange
    (found,) = compare(allocated(1000), allocated(1049), exact_degradation=1.01).values()
    assert found.result is PerformanceChange.Degradation
    (found,) = compare(allocated(1000), allocated(940)).values()
    assert found.result is PerformanceChange.Optimization


def test_memory_that_a_command_prints_is_not_exact() -> None:
    def printed(*amounts: float) -> Profile:
        made = profile({})
        made.update_resources(
            {"uid": "rss", "type": "memory", "amount": amount, "order": order}
            for order, amount in enumerate(amounts)
        )
        return made

    found = compare(printed(100, 101), printed(120, 121))["rss"]
    assert (found.result.name, found.rate_degradation) == ("NoChange", pytest.approx(1.2, abs=0.01))


def test_nested_uids_are_compared_as_text() -> None:
    uid = {"source": "list.c", "function": "search", "line": 3}
    nested = Profile({"header": {"type": "memory", "units": {"memory": "B"}}})
    nested.update_resources([{"uid": uid, "type": "memory", "subtype": "malloc", "amount": 64}])
    found = compare(nested, nested)
    assert list(found) == ["list.c:search:3"]
    assert found["list.c:search:3"].to_target == "64B"


def test_other_thresholds() -> None:
    old, new = profile({"f": [10]}), profile({"f": [12]})
    assert compare(old, new, degradation=1.2)["f"].result is PerformanceChange.Degradation
    assert compare(new, old, optimization=0.9)["f"].result is PerformanceChange.Optimization


@given(PROFILES, PROFILES)
@example({"a": [2.0]}, {"a": [1.0]})
@example({"a": [1.9999999999999998]}, {"a": [1.0]})
def test_swapping_mirrors(old: dict[str, list[float]], new: dict[str, list[float]]) -> None:
    there = compare(profile(old), profile(new))
    back = compare(profile(new), profile(old))
    assert there.keys() == back.keys() == old.keys() | new.keys()
    for uid, change in there.items():
        other = back[uid]
        assert other.result is MIRROR[change.result]
        assert (other.from_baseline, other.to_target) == (change.to_target, change.from_baseline)
        if change.rate_degradation:
            assert other.rate_degradation == pytest.approx(1 / change.rate_degradation)


@given(PROFILES)
def test_nothing_changes_against_itself(amounts: dict[str, list[float]]) -> None:
    found = compare(profile(amounts), profile(amounts))
    assert {change.result for change in found.values()} <= {PerformanceChange.NoChange}


@given(st.dictionaries(st.sampled_from("ab"), st.lists(st.integers(1, 10**6), min_size=1)), st.randoms())
def test_order_of_resources_is_of_no_matter(amounts: dict[str, list[int]], random: Any) -> None:
    shuffled = {uid: random.sample(values, len(values)) for uid, values in amounts.items()}
    found = compare(profile(amounts), profile(shuffled))
    assert {change.result for change in found.values()} <= {PerformanceChange.NoChange}


ODD = st.one_of(
    st.floats(), st.integers(), st.text(max_size=3), st.none(), st.booleans(),
    st.lists(st.floats(), max_size=2)
)  # fmt: skip


@given(st.lists(ODD, max_size=4), st.lists(ODD, max_size=4), st.one_of(st.none(), st.text(max_size=2)))
@example([10**400], [10**400], None)
@example([float("inf"), float("-inf")], [1], None)
@example(["0.6s"], [1], None)
def test_odd_amounts_never_raise(old: list[Any], new: list[Any], units: Any) -> None:
    for change in compare(profile({"f": old}, units), profile({"f": new}, units)).values():
        assert isinstance(change, DegradationInfo)


@pytest.mark.parametrize(("amounts", "reason"), [
    ([float("nan"), 1.0], "an amount is not a number"),
    (["0.6s"], "an amount is not a number"),
    ([None], "an amount is not a number"),
    ([10**400], "an amount is not a number"),
])  # fmt: skip
def test_no_mean_is_unknown_with_a_reason(amounts: list[Any], reason: str) -> None:
    found = compared(amounts, [1.0])
    assert found.result is PerformanceChange.Unknown
    assert (found.from_baseline, found.to_target) == (reason, "1.0s")


def test_resources_without_amounts() -> None:
    without = Profile({"header": {"type": "mixed"}})
    without.update_resources([{"uid": "f", "type": "bound", "class": "O(n)"}])
    found = compare(without, profile({"f": [1]}))["f"]
    assert found.result is PerformanceChange.Unknown
    assert found.from_baseline == "no amount"


def test_a_resource_may_stand_for_several() -> None:
    def counted(*rows: tuple[int, Any], kind: str = "memory") -> Profile:
        made = profile({})
        made.update_resources(
            [{"uid": "f", "type": kind, "amount": amount, "count": count} for amount, count in rows],
            columns=["count"],
        )
        return made

    together, apart = counted((40, 4), (30, 3)), profile({"f": [10] * 7}, type="memory")
    assert compare(together, apart)["f"].result is PerformanceChange.NoChange
    assert compare(counted((140, 7)), together)["f"].rate_degradation == 0.5
    assert compare(apart, counted((70, 0), (70, 0)))["f"].rate_degradation == 7.0  # cannot stand for nothing
    assert compare(apart, counted((70, "7")))["f"].rate_degradation == 7.0
    # What other collectors call so may mean anything.
    assert compare(profile({"f": [10]}), counted((70, 7), kind="time"))["f"].rate_degradation == 7.0


def test_amounts_that_are_constants_count() -> None:
    constant = Profile({
        "header": {"type": "time", "units": {"time": "s"}},
        "resources": {"f#0": {}, "f#1": {"order": [1, 2]}},
        "resource_type_map": {
            "f#0": {"uid": "f", "type": "time", "amount": 4},
            "f#1": {"uid": "f", "type": "time", "amount": 1},
        },
    })  # fmt: skip
    assert compare(constant, constant)["f"].to_target == "2.0s"


def test_empty_profiles() -> None:
    empty = Profile({"header": {"type": "time"}})
    assert compare(empty, empty) == {}
    assert compare(empty, profile({"f": [1]}))["f"].result is PerformanceChange.NotInBaseline


@pytest.mark.parametrize(("amount", "unit", "text"), [
    (1.23456, "s", "1.23s"),
    (0.42, "s", "0.42s"),
    (0.0042, "s", "4.2ms"),
    (0.0000042, "s", "4.2us"),
    (0.09, "ms", "90.0us"),
    (1e-14, "s", "1e-05ns"),
    (-0.05, "s", "-50.0ms"),
    (0.0, "s", "0.0s"),
    (0.004, "B", "0.004B"),
    (0.00412345, "", "0.00412"),
    (60677.984, "ms", "60677.98ms"),
])  # fmt: skip
def test_written(amount: float, unit: str, text: str) -> None:
    assert written(amount, unit) == text


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["s", "ms", "us", "ns", "B", ""]))
def test_only_zero_is_shown_as_zero(amount: float, unit: str) -> None:
    assume(abs(amount) > 1e-300)
    assert float(written(amount, unit).rstrip("smunB")) != 0


def test_a_million_resources() -> None:
    # One column for each of ten functions, and once a group for each of many.
    wide = {f"f{index}": [float(index)] * 100_000 for index in range(10)}
    constants = {f"{uid}#0": {"uid": uid, "type": "time"} for uid in wide}
    columns = {f"{uid}#0": {"amount": values} for uid, values in wide.items()}
    large = Profile({"header": {"type": "time"}, "resource_type_map": constants, "resources": columns})
    assert {change.result.name for change in compare(large, large).values()} == {"NoChange"}


@pytest.mark.parametrize(("old", "new", "change", "texts"), [
    ({}, {"f": [800]}, PerformanceChange.Degradation, ("0.0s", "800.0s")),
    ({"f": [0]}, {"f": [800]}, PerformanceChange.Degradation, ("0.0s", "800.0s")),
    ({"f": [800]}, {}, PerformanceChange.Optimization, ("800.0s", "0.0s")),
    ({"f": [0]}, {}, PerformanceChange.NoChange, ("0.0s", "0.0s")),
    ({"f": [3]}, {"f": [4]}, PerformanceChange.NoChange, ("3.0s", "4.0s")),
    ({}, {"f": ["nan"]}, PerformanceChange.NotInBaseline, ("-", "an amount is not a number")),
])  # fmt: skip
def test_what_is_nothing_where_it_is_absent(old, new, change, texts) -> None:
    found = compare(profile(old, absent=0), profile(new, absent=0))["f"]
    assert (found.result, (found.from_baseline, found.to_target)) == (change, texts)
