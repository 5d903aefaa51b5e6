"""Exclusive Time Outliers: known changes among many functions, binaries, and odd profiles."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import iqr, median_abs_deviation

from perun.check._common.exclusive import BinaryPair, paired
from perun.check.exclusive_time_outliers import PLUGIN, OutlierParams
from perun.core.errors import ConfigError, ProfileError
from perun.models.outliers import Spread, deviation_multiple
from perun.plugin.api import CheckContext
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile
from perun.profile.session import pool

MIRROR = {
    getattr(PerformanceChange, f"{kind}Degradation"): getattr(PerformanceChange, f"{kind}Optimization")
    for kind in ("", "Maybe", "Severe", "Total")
}
MIRROR |= {PerformanceChange.NotInBaseline: PerformanceChange.NotInTarget}
MIRROR |= {other: change for change, other in MIRROR.items()}
MIRROR |= {change: change for change in (PerformanceChange.NoChange, PerformanceChange.Unknown)}
MS = 1_000_000
BINARY = "/home/user/build/mybin"
Functions = Mapping[str, float]


def profile(functions: Functions, location: str | None = BINARY, **more: Functions) -> Profile:
    """A trace of functions, each called four times: exclusive times in milliseconds, by binary."""
    made = Profile({"header": {"type": "mixed", "cmd": "./prog", "units": {"mixed(time delta)": "ns"}}})
    for path, times in {location: functions, **more}.items():
        place = {} if path is None else {"location": path}
        made.update_resources([
            {"uid": uid, "type": "mixed", "subtype": "time delta", "amount": 3 * time * MS,
             "exclusive": time * MS * share, "call-order": number, **place}
            for uid, time in times.items()
            for number, share in enumerate([0.25] * 4)
        ])  # fmt: skip
    return made


def compare(
    baseline: Profile, target: Profile, settings: Mapping[str, Any] | None = None, **params: Any
) -> dict[str, DegradationInfo]:
    """The changes by the formulas alone, without the limits that keep noise out."""
    params = {"noise": 0.0, "total": 0.0} | params
    settings = {"cutoff": 0.0} | dict(settings or {})
    found = list(PLUGIN().compare(baseline, target, OutlierParams(**params), CheckContext(settings=settings)))
    changes = {change.location: change for change in found}
    assert len(changes) == len(found)
    assert {change.type for change in found} <= {"time"}
    return changes


def names(changes: Mapping[str, DegradationInfo]) -> dict[str, str]:
    return {location: change.result.name for location, change in changes.items()}


def noisy(count: int = 40, seed: int = 5) -> tuple[dict[str, float], dict[str, float]]:
    """Functions of 10 to 20 ms that take the same time in both versions, up to 0.1 ms."""
    random = np.random.default_rng(seed)
    old = {f"f{number:02}": float(time) for number, time in enumerate(random.uniform(10, 20, count))}
    # Evenly spread: nothing is an outlier, nor beyond two standard deviations.
    steps = random.permutation(np.linspace(-0.1, 0.1, count))
    return old, {name: time + float(step) for (name, time), step in zip(old.items(), steps, strict=True)}


@pytest.mark.parametrize(("factor", "up", "down"), [
    (1.005, "NoChange", "NoChange"),
    (1.01, "MaybeDegradation", "NoChange"),  # of 16 ms, and of 10
    (1.05, "SevereDegradation", "SevereOptimization"),
    (1.25, "SevereDegradation", "SevereOptimization"),
    (2.0, "SevereDegradation", "SevereOptimization"),
    (11.0, "SevereDegradation", "SevereOptimization"),
])  # fmt: skip
def test_known_changes(factor: float, up: str, down: str) -> None:
    old, new = noisy()
    slower, faster = old["f03"] * factor, old["f07"] / factor
    found = compare(profile(old), profile(new | {"f03": slower, "f07": faster}))
    kinds = names(found)
    total = kinds.pop("mybin")
    assert {name: kind for name, kind in kinds.items() if kind != "NoChange"} == {
        name: kind for name, kind in (("f03", up), ("f07", down)) if kind != "NoChange"
    }
    after = sum((new | {"f03": slower, "f07": faster}).values())
    assert found["f03"].rate_degradation == pytest.approx(slower - old["f03"])
    assert found["f03"].rate_degradation_relative == pytest.approx(100 * (slower - old["f03"]) / after)
    assert found["f07"].rate_degradation == pytest.approx(faster - old["f07"])
    if up.startswith("Severe"):
        assert found["f03"].confidence_type == found["f07"].confidence_type == "IQR multiple"
        assert found["f03"].confidence_rate > 1.5
    difference = after - sum(old.values())
    assert total == ("TotalDegradation" if difference > 0 else "TotalOptimization")
    assert found["mybin"].rate_degradation == pytest.approx(difference)


@pytest.mark.parametrize(("step", "change", "confidence"), [
    (0.0, "NoChange", "StdDev multiple"),
    (0.1, "NoChange", "StdDev multiple"),
    (0.14, "MaybeDegradation", "StdDev multiple"),
    (0.22, "Degradation", "IQR multiple"),
    (0.3, "SevereDegradation", "IQR multiple"),
    (-0.14, "MaybeOptimization", "StdDev multiple"),
    (-0.22, "Optimization", "IQR multiple"),
    (-0.3, "SevereOptimization", "IQR multiple"),
])  # fmt: skip
def test_three_severities(step: float, change: str, confidence: str) -> None:
    old, new = noisy()
    found = compare(profile(old), profile(new | {"f03": old["f03"] + step}), maybe=2.0, outlier=1.5)
    assert found["f03"].result.name == change
    assert found["f03"].confidence_type == confidence
    differences = np.array([found[name].rate_degradation for name in old])
    if confidence == "IQR multiple":
        fence = np.percentile(differences, 75 if step > 0 else 25)
        expected = abs(step - fence) / iqr(differences)
    else:
        expected = abs(step) / np.std(differences, ddof=1)
    assert found["f03"].confidence_rate == pytest.approx(expected)


def test_values_of_the_example() -> None:
    old = profile({"_ctypes_get_fielddesc": 76.473, "rest": 1276.958})
    new = profile({"_ctypes_get_fielddesc": 129.378, "_ctypes_init_fielddesc": 77.953, "rest": 1283.02})
    found = compare(old, new)
    total, slower, added = (
        found[name] for name in ("mybin", "_ctypes_get_fielddesc", "_ctypes_init_fielddesc")
    )
    assert (total.from_baseline, total.to_target) == ("1353.43ms", "1490.35ms")
    assert (total.result, total.confidence_type) == (PerformanceChange.TotalDegradation, "no")
    assert (round(total.rate_degradation, 2), round(total.rate_degradation_relative, 2)) == (136.92, 9.19)
    assert (round(slower.rate_degradation, 2), round(slower.rate_degradation_relative, 2)) == (52.9, 3.55)
    assert (added.from_baseline, added.to_target) == ("0.0ms", "77.95ms")
    assert (added.result, round(added.rate_degradation_relative, 2)) == (
        PerformanceChange.NotInBaseline,
        5.23,
    )


def test_functions_in_one_version_only() -> None:
    old, new = noisy()
    found = compare(profile(old | {"gone": 3.0}), profile(new | {"new": 0.001}))
    assert names({name: found[name] for name in ("gone", "new")}) == {
        "gone": "NotInTarget",
        "new": "NotInBaseline",
    }
    assert (found["gone"].from_baseline, found["gone"].to_target) == ("3.0ms", "0.0ms")
    assert found["gone"].rate_degradation == -3
    assert (found["gone"].confidence_type, found["new"].confidence_type) == (
        "IQR multiple",
        "StdDev multiple",
    )
    assert {found[name].result for name in old} == {PerformanceChange.NoChange}


def test_what_did_not_change_among_what_did_is_no_change() -> None:
    old, _ = noisy()
    new = {name: time + 5 + number / 1000 for number, (name, time) in enumerate(old.items())} | {
        "f00": old["f00"]
    }
    kinds = names(compare(profile(old), profile(new)))
    assert kinds["f00"] == "NoChange"
    assert {kinds[name] for name in old if name != "f00"} == {"MaybeDegradation"}


def test_where_nothing_else_changed_any_change_is_severe() -> None:
    old, _ = noisy()
    found = compare(profile(old), profile(old | {"f03": old["f03"] * 1.01, "f04": old["f04"] * 11}))
    changed = {name: kind for name, kind in names(found).items() if kind != "NoChange"}
    assert changed == {"f03": "SevereDegradation", "f04": "SevereDegradation", "mybin": "TotalDegradation"}
    assert all(np.isfinite(info.confidence_rate) for info in found.values())


def test_the_same_profile() -> None:
    old, _ = noisy()
    found = compare(profile(old, **{"/lib/x.so": {"g": 1.0}}), profile(old, **{"/lib/x.so": {"g": 1.0}}))
    assert set(names(found).values()) == {"NoChange"}
    assert found.keys() == {"mybin", "x.so", "g", *old}


def test_too_few_functions_for_outliers() -> None:
    found = compare(profile({"f": 1.0, "g": 2.0}), profile({"f": 5.0, "g": 2.0, "h": 1.0}))
    expected = {"f": "Unknown", "g": "NoChange", "h": "NotInBaseline", "mybin": "TotalDegradation"}
    assert names(found) == expected


def test_three_functions_are_enough_for_outliers() -> None:
    old = {"f": 1.0, "g": 2.0, "h": 3.0}
    assert names(compare(profile(old), profile(old | {"f": 10.0})))["f"] == "SevereDegradation"


def test_totals_of_each_location() -> None:
    old, new = noisy()
    found = compare(
        profile(old, **{"/lib/libx-310.so": {"g": 10.0, "h": 9.0}, "/lib/old.so": {"z": 7.0}}),
        profile(
            new, "/tmp/other/mybin", **{"/lib/libx-311.so": {"g": 30.0, "h": 9.0}, "/lib/qq.so": {"y": 30.0}}
        ),
    )
    assert names({name: found[name] for name in ("libx-311.so", "g", "h", "old.so", "z", "qq.so", "y")}) == {
        "libx-311.so": "TotalDegradation",
        "g": "SevereDegradation",
        "h": "NoChange",
        "old.so": "TotalOptimization",
        "z": "NotInTarget",
        "qq.so": "TotalDegradation",
        "y": "NotInBaseline",
    }
    assert found["libx-311.so"].rate_degradation == pytest.approx(20)
    whole = sum(new.values()) + 39 + 30
    assert found["libx-311.so"].rate_degradation_relative == pytest.approx(100 * 20 / whole)
    assert "mybin" in found


def test_names_of_several_binaries() -> None:
    old, _ = noisy(5)
    both = profile(old, **{"/lib/x.so": {"f00": 1.0, "x.so": 2.0}, "/opt/x.so": {"g": 1.0}})
    assert compare(both, both).keys() == {
        "mybin", "mybin:f00", "f01", "f02", "f03", "f04",
        "/lib/x.so", "/lib/x.so:f00", "x.so", "/opt/x.so", "g",
    }  # fmt: skip


def test_location_filter() -> None:
    old, new = noisy()
    pair = profile(old, **{"/lib/x.so": {"g": 1.0}}), profile(new, **{"/lib/x.so": {"g": 2.0}})
    assert compare(*pair, {"location_filter": "lib.*so$"}).keys() == {"x.so", "g"}
    assert compare(*pair, {"location_filter": ""}).keys() == {"x.so", "g", "mybin", *old}
    assert compare(*pair, {"location_filter": "nothing"}) == {}
    with pytest.raises(ConfigError, match=re.escape("degradation.location_filter")):
        compare(*pair, {"location_filter": "("})


def test_cutoff() -> None:
    old, new = noisy()
    slower = profile(new | {"f03": old["f03"] + 6, "f04": old["f04"] + 3, "new": 3.0})
    whole = sum(new.values()) - new["f03"] - new["f04"] + old["f03"] + old["f04"] + 12
    assert 0.9 < 100 * 6 / whole < 1.1
    changed = {
        name: info.result.name
        for name, info in compare(profile(old), slower, {"cutoff": 0.8}).items()
        if info.result is not PerformanceChange.NoChange
    }
    assert changed == {"f03": "SevereDegradation", "mybin": "TotalDegradation"}
    assert names(compare(profile(old), slower, total=5))["mybin"] == "NoChange"
    for wrong in ("many", -1, float("nan")):
        with pytest.raises(ConfigError, match=re.escape("degradation.cutoff")):
            compare(profile(old), slower, {"cutoff": wrong})


def test_limits_can_be_set() -> None:
    old, new = noisy()
    pair = profile(old), profile(new | {"f03": old["f03"] + 0.3})
    assert names(compare(*pair, severe=100))["f03"] == "Degradation"
    assert names(compare(*pair, severe=100, outlier=100))["f03"] == "MaybeDegradation"
    assert names(compare(*pair, severe=100, outlier=100, maybe=100))["f03"] == "NoChange"
    assert OutlierParams() == OutlierParams(
        severe=3.5, outlier=1.5, maybe=2.0, noise=5.0, total=10.0, similarity=0.6
    )


def test_a_difference_at_the_limit_is_within_it() -> None:
    # Differences of -2, -1, 0, 1 and 2 ms, which floating point has exactly: quartiles -1 and 1.
    # They are small, so that the relative differences are as far apart from each other.
    old = {name: 32_000.0 for name in "abcde"}
    new = {name: 32_000.0 + step for name, step in zip("abcde", (-2, -1, 0, 1, 2), strict=True)}
    # Nothing is outside the quartiles by more than half of their range of 2.
    found = names(compare(profile(old), profile(new), severe=100, outlier=0.5, maybe=100))
    assert found["e"] == found["a"] == "NoChange"
    found = names(compare(profile(old), profile(new), severe=100, outlier=0.49, maybe=100))
    assert (found["a"], found["e"]) == ("Optimization", "Degradation")
    # The modified z-score of 2 ms is twice 0.6745, as the median absolute deviation is 1 ms.
    found = names(compare(profile(old), profile(new), severe=2 * 0.6745, outlier=100, maybe=100))
    assert found["e"] == "NoChange"
    found = names(compare(profile(old), profile(new), severe=2 * 0.6744, outlier=100, maybe=100))
    assert found["e"] == "SevereDegradation"


def test_a_change_of_as_much_as_the_cutoff_is_told() -> None:
    # 40 of 160 ms are 25 %, exactly.
    old, new = {"f": 60.0, "g": 40.0, "h": 20.0}, {"f": 100.0, "g": 40.0, "h": 20.0}
    for cutoff, change in ((25, "SevereDegradation"), (25.01, "NoChange")):
        assert names(compare(profile(old), profile(new), {"cutoff": cutoff}))["f"] == change
    for total, change in ((25, "TotalDegradation"), (25.01, "NoChange")):
        assert names(compare(profile(old), profile(new), total=total))["mybin"] == change


def calls(times: Mapping[str, list[float]]) -> Profile:
    """A trace of single calls: exclusive times in milliseconds."""
    made = Profile({"header": {"type": "mixed", "cmd": "./prog", "units": {"mixed(time delta)": "ns"}}})
    made.update_resources(
        {"uid": uid, "type": "mixed", "exclusive": time * MS, "call-order": order}
        for uid, several in times.items()
        for order, time in enumerate(several)
    )
    return made


def by_default(baseline: Profile, target: Profile) -> dict[str, str]:
    found = PLUGIN().compare(baseline, target, OutlierParams(), CheckContext())
    return {change.location: change.result.name for change in found}


def test_the_noise_of_a_large_function_is_no_change() -> None:
    """A difference of 4 % of the largest function is a hundred times that of the others."""
    old = {f"f{number}": [0.1 + number / 1000] * 5 for number in range(20)} | {"large": [20.0] * 5}
    new = {name: [1.001 * time for time in times] for name, times in old.items()} | {"large": [20.8] * 5}
    assert set(by_default(calls(old), calls(new)).values()) == {"NoChange"}
    slower = by_default(calls(old), calls(new | {"large": [30.0] * 5}))
    assert (slower["large"], slower["prog"]) == ("SevereDegradation", "TotalDegradation")


def test_an_interrupted_call_is_no_change() -> None:
    old = {f"f{number}": [0.1 + number / 1000] * 50 for number in range(20)}
    assert set(by_default(calls(old), calls(old | {"f3": [4.3, *old["f3"][1:]]})).values()) == {"NoChange"}
    slower = {"f3": [2 * time for time in old["f3"]]}
    assert by_default(calls(old), calls(old | slower))["f3"] == "SevereDegradation"


def test_calls_that_differ_much_are_no_certain_change() -> None:
    """Six of 50 calls are interrupted, more than are left out: their own differences tell."""
    old = {f"f{number}": [0.1 + number / 1000] * 50 for number in range(20)}
    calm = [0.1 + number / 1000 for number in range(50)]
    interrupted = [4.0 if number % 8 == 5 else time for number, time in enumerate(calm)]
    found = by_default(calls(old | {"f3": calm}), calls(old | {"f3": interrupted}))
    assert (found["f3"], found["prog"]) == ("MaybeDegradation", "NoChange")


def test_a_function_that_is_called_once_may_have_been_interrupted() -> None:
    old = {f"f{number}": [0.1 + number / 1000] * 50 for number in range(20)} | {"main": [50.0]}
    found = by_default(calls(old), calls(old | {"main": [90.0]}))
    assert (found["main"], found["prog"]) == ("MaybeDegradation", "NoChange")
    found = by_default(calls(old), calls(old | {"main": [190.0]}))
    assert (found["main"], found["prog"]) == ("SevereDegradation", "TotalDegradation")


def trace(seed: int, **factors: float) -> Profile:
    """One run of 12 functions, with 3 % noise of each call."""
    random = np.random.default_rng(seed)
    return calls({
        name: (factors.get(name, 1) * (index + 5) * random.normal(0.02, 0.0006, 50)).tolist()
        for index, name in enumerate("abcdefghijkl")
    })  # fmt: skip


def test_a_change_as_large_as_those_of_the_other_functions_is_unknown() -> None:
    """Some functions take 1.6 times as long: that happens to two runs of one program."""
    alone = by_default(trace(1), trace(2, c=1.6))
    assert alone.pop("c") == "SevereDegradation"
    assert set(alone.values()) == {"NoChange"}
    slow = dict.fromkeys("abcd", 1.6)
    found = PLUGIN().compare(trace(1), trace(2, **slow), OutlierParams(), CheckContext())
    changes = {change.location: change for change in found}
    assert {changes[name].result for name in ("prog", *slow)} == {PerformanceChange.Unknown}
    assert changes["a"].rule.startswith("the other functions of the two runs differ as much: ")
    more = by_default(trace(1), trace(2, **dict.fromkeys("abcd", 2.1)))
    assert {more[name] for name in slow} == {"SevereDegradation"}
    assert more["prog"] == "TotalDegradation"


def test_repeated_runs_tell_their_noise() -> None:
    slow = dict.fromkeys("abcd", 1.6)
    steady, slower = pool([trace(seed) for seed in (1, 2, 3)]), pool([trace(n, **slow) for n in (4, 5, 6)])
    found = by_default(steady, slower)
    assert {found[name] for name in slow} == {"SevereDegradation"}
    assert found["prog"] == "TotalDegradation"
    once = pool([trace(4), trace(5, **slow), trace(6)])
    found = by_default(steady, once)
    assert set(found.values()) == {"NoChange"}, "the median of the runs"
    assert by_default(steady, pool([trace(4), trace(5, a=1.6), trace(6, a=1.9)]))["a"] == "MaybeDegradation"


def test_what_changed_most_comes_first() -> None:
    old = {"a": [1.0] * 3, "b": [9.0] * 3, "c": [5.0] * 3, "d": [7.0] * 3}
    found = by_default(calls(old), calls(old | {"c": [50.0] * 3, "a": [2.0] * 3}))
    assert list(found) == ["prog", "c", "a", "b", "d"]


def test_profiles_without_exclusive_times() -> None:
    old, new = noisy()
    plain = Profile({"header": {"type": "time"}})
    plain.update_resources([{"uid": "f", "type": "time", "amount": 1.0}])
    for pair, which in (((plain, profile(new)), "baseline"), ((profile(old), plain), "target")):
        with pytest.raises(ProfileError, match=f"the {which} profile has no exclusive times") as caught:
            compare(*pair)
        assert "perun collect trace" in caught.value.hint


def test_resources_without_a_location_belong_to_the_command() -> None:
    assert compare(profile({"f": 1.0}, None), profile({"f": 1.0}, None)).keys() == {"prog", "f"}


def test_a_uid_of_several_parts() -> None:
    made = Profile({"header": {"type": "mixed"}})
    made.update_resources([
        {"uid": {"bin": f"/lib/x-{version}.so", "function": "g"}, "type": "mixed", "exclusive": 5}
        for version in (1,)
    ])  # fmt: skip
    assert compare(made, made).keys() == {"x-1.so", "g"}


@pytest.mark.parametrize("value", [None, "soon", float("inf"), float("nan")])
def test_times_that_are_no_numbers(value: Any) -> None:
    old, new = noisy()
    odd = profile(new)
    odd.update_resources([{"uid": "f03", "type": "mixed", "exclusive": value, "location": BINARY}])
    found = compare(profile(old), odd)
    assert names(found)["f03"] == names(found)["mybin"] == "Unknown"
    assert found["f03"].to_target == "a time is not a number"
    assert found["f03"].rate_degradation == 0
    assert names(found)["f04"] == "NoChange"


times = st.dictionaries(st.sampled_from("abcdefghijklmnop"), st.integers(0, 10**10), max_size=16)


def traced(functions: Mapping[str, int], factor: int = 1) -> Profile:
    return profile({name: time * factor / MS for name, time in functions.items()})


@given(times, times)
def test_swapping_mirrors(old: dict[str, int], new: dict[str, int]) -> None:
    there, back = compare(traced(old), traced(new)), compare(traced(new), traced(old))
    assert there.keys() == back.keys()
    for name, info in there.items():
        assert back[name].result is MIRROR[info.result]
        assert back[name].rate_degradation == pytest.approx(-info.rate_degradation)
        assert back[name].confidence_rate == pytest.approx(info.confidence_rate, rel=1e-3, abs=1e-3)


@given(times)
def test_a_profile_against_itself(functions: dict[str, int]) -> None:
    assert set(names(compare(traced(functions), traced(functions))).values()) <= {"NoChange"}


@given(times, times, st.integers(1, 1000))
def test_scale_does_not_matter(old: dict[str, int], new: dict[str, int], factor: int) -> None:
    expected = names(compare(traced(old), traced(new)))
    for limits in ({"severe": 3.5 - 1e-6}, {"outlier": 1.5 + 1e-6}, {"maybe": 2 - 1e-6}, {"maybe": 2 + 1e-6}):
        assume(names(compare(traced(old), traced(new), **limits)) == expected)
    assert names(compare(traced(old, factor), traced(new, factor))) == expected


@given(st.lists(st.integers(-(10**6), 10**6), min_size=3, max_size=50))
def test_spread_against_scipy(values: list[int]) -> None:
    differences = np.array(values, float)
    spread = Spread.of(differences, 1e-9)
    assert spread.mad == pytest.approx(median_abs_deviation(differences))
    assert spread.q3 - spread.q1 == pytest.approx(iqr(differences))
    assume(spread.mad > 0)
    expected = np.abs(differences - np.median(differences)) / median_abs_deviation(differences, scale=0.6745)
    assert spread.modified_z(differences) == pytest.approx(expected)
    multiples = deviation_multiple(differences, differences, 1e-9)
    assert multiples == pytest.approx(np.abs(differences) / np.std(differences, ddof=1))


@pytest.mark.parametrize(("old", "new", "pairs"), [
    ("/a/x", "/a/x", {"x": ("/a/x", "/a/x")}),
    ("/w1/x", "/w2/x", {"x": ("/w1/x", "/w2/x")}),
    ("/w1/a/x /w1/b/x", "/w2/a/x /w2/b/x",
     {"/w2/a/x": ("/w1/a/x", "/w2/a/x"), "/w2/b/x": ("/w1/b/x", "/w2/b/x")}),
    ("python3.10", "python3.11", {"python3.11": ("python3.10", "python3.11")}),
    ("z-1.so z-2.so", "z-2.so z-3.so", {"z-2.so": ("z-2.so", "z-2.so"), "z-3.so": ("z-1.so", "z-3.so")}),
    ("abc", "xyz", {"abc": ("abc", None), "xyz": (None, "xyz")}),
])  # fmt: skip
def test_pairs(old: str, new: str, pairs: Mapping[str, tuple[str | None, str | None]]) -> None:
    common = {"f": 1.0}
    found = paired(dict.fromkeys(old.split(), common), dict.fromkeys(new.split(), common), 0.6)
    assert found == [BinaryPair(name, *paths) for name, paths in pairs.items()]


def test_closest_names_without_a_common_function_are_not_paired() -> None:
    assert paired({"libc.so": {"f": 1.0}}, {"libm.so": {"g": 1.0}}, 0.6) == [
        BinaryPair("libc.so", "libc.so", None),
        BinaryPair("libm.so", None, "libm.so"),
    ]
