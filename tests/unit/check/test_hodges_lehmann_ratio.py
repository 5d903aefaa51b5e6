"""Hodges-Lehmann ratio: labels of whole profiles with repeated measurements."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.check.hodges_lehmann_ratio import PLUGIN, RatioParams
from perun.core.errors import ConfigError, ProfileError
from perun.plugin.api import CheckContext
from perun.profile import session
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile

Change = PerformanceChange
SURE = {Change.Degradation, Change.SevereDegradation, Change.Optimization, Change.SevereOptimization}


def timed(user: Iterable[float], wall: float = 1.5, uid: str = "./prog") -> Profile:
    profile = Profile({"header": {"type": "time", "cmd": uid, "units": {"time": "s"}}})
    profile.update_resources(
        {"uid": uid, "type": "time", "subtype": subtype, "order": order, "amount": amount}
        for order, value in enumerate(map(float, user), 1)
        for subtype, amount in (("real", wall * value), ("user", value), ("sys", value / 4))
    )
    return profile


def memory(amounts: dict[str, list[float]]) -> Profile:
    profile = Profile({"header": {"type": "memory", "units": {"memory": "B"}}})
    profile.update_resources(
        {"uid": {"source": "prog", "memory": metric}, "type": "memory", "subtype": metric, "amount": amount,
         **({"absent": 0} if metric == "leaked" else {})}
        for metric, values in amounts.items()
        for amount in values
    )  # fmt: skip
    return profile


def calls(amounts: dict[str, list[float]], sizes: list[int] | None = None) -> Profile:
    profile = Profile({"header": {"type": "mixed", "units": {"mixed(time delta)": "us"}}})
    profile.update_resources(
        {"uid": uid, "type": "mixed", "subtype": "time delta", "order": order, "amount": amount,
         **({"structure-unit-size": sizes[order]} if sizes else {})}
        for uid, values in amounts.items()
        for order, amount in enumerate(values)
    )  # fmt: skip
    return profile


def pairs(old: Profile, new: Profile) -> tuple[Profile, Profile]:
    session.mark(old, session.Session("s", "base", runs_are_rounds=True))
    session.mark(new, session.Session("s", "head", runs_are_rounds=True))
    return old, new


def compare(baseline: Profile, target: Profile, **params: float) -> dict[str, DegradationInfo]:
    found = list(PLUGIN().compare(baseline, target, RatioParams(**params), CheckContext()))
    changes = {change.location: change for change in found}
    assert len(changes) == len(found)
    assert list(changes) == sorted(changes)
    return changes


def noise(seed: int, size: int, sigma: float = 0.01) -> np.ndarray:
    return np.random.default_rng(seed).lognormal(0, sigma, size)


def test_pairs_find_what_drowns_in_the_noise_of_both() -> None:
    disturbed = noise(1, 20, 0.3)
    found = compare(*pairs(timed(disturbed * noise(2, 20)), timed(1.1 * disturbed * noise(3, 20))))
    assert list(found) == ["./prog [cpu]", "./prog [real]", "./prog [sys]", "./prog [user]"]
    change = found["./prog [cpu]"]
    assert change.result is Change.Degradation
    assert change.rate_degradation == pytest.approx(1.1, abs=0.02)
    assert change.interval is not None and 1.07 < change.interval[0] < 1.1 < change.interval[1] < 1.13
    assert change.sizes == (20, 20) and change.detectable is not None and 1.001 < change.detectable < 1.03
    assert change.p_value is not None and change.p_value < 0.01
    assert "lies above 1.02" in change.rule
    apart = compare(timed(disturbed * noise(2, 20)), timed(1.1 * disturbed * noise(3, 20)))
    assert {one.result for one in apart.values()} == {Change.Unknown}
    assert "nothing has shown its noise" in apart["./prog [cpu]"].rule


@pytest.mark.parametrize("factor", [1.0, 1.004])
def test_no_change_is_a_finding_and_needs_a_narrow_interval(factor: float) -> None:
    found = compare(*pairs(timed(noise(2, 30)), timed(factor * noise(3, 30))))
    assert {one.result for one in found.values()} == {Change.NoChange}
    few = compare(*pairs(timed(noise(2, 10, 0.02)), timed(factor * noise(3, 10, 0.02))))
    assert {one.result for one in few.values()} == {Change.Unknown}
    assert "more rounds of both would decide" in few["./prog [cpu]"].rule


def test_severe_is_what_the_interval_says() -> None:
    found = compare(*pairs(timed(noise(2, 20)), timed(1.5 * noise(3, 20))))
    assert {one.result for one in found.values()} == {Change.SevereDegradation}
    assert "lies above 1.25" in found["./prog [cpu]"].rule
    less = compare(*pairs(timed(noise(2, 20)), timed(1.25 * noise(3, 20))))
    assert less["./prog [cpu]"].result is Change.Degradation


@given(st.integers(0, 2**32 - 1), st.floats(0.3, 3), st.booleans())
def test_exchanging_the_profiles_mirrors_each_label(seed: int, factor: float, side_by_side: bool) -> None:
    old, new = noise(seed, 12, 0.05), factor * noise(seed + 1, 12, 0.05)
    one, other = timed(old), timed(new)
    if side_by_side:
        pairs(one, other)
    there, back = compare(one, other), compare(other, one)
    for location, change in there.items():
        assert back[location].result.value in (
            {-change.result.value} if change.result is not Change.Unknown else {change.result.value}
        )
        assert back[location].rate_degradation == pytest.approx(1 / change.rate_degradation)


def test_measured_apart_only_what_a_machine_does_not_do_by_itself_is_definite() -> None:
    old = timed(noise(1, 20))
    half = compare(old, timed(1.5 * noise(2, 20)))["./prog [cpu]"]
    assert half.result is Change.Unknown and half.interval is not None
    assert half.interval[0] < 1 < half.interval[1], "the interval says what the word says"
    assert compare(old, timed(2.4 * noise(2, 20)))["./prog [cpu]"].result is Change.Degradation
    assert compare(old, timed(2.7 * noise(2, 20)))["./prog [cpu]"].result is Change.SevereDegradation
    assert compare(old, timed(1.1 * noise(2, 20)), apart=0.02)["./prog [cpu]"].result is Change.Degradation


def test_of_very_many_unchanged_functions_none_is_definite() -> None:
    def profile(seed: int) -> Profile:
        generator = np.random.default_rng(seed)
        values = {f"f{number}": generator.lognormal(0, 0.1, 30).tolist() for number in range(150)}
        return calls(values)

    found = compare(profile(1), profile(2), apart=0.0, threshold=0.0)
    assert not SURE & {one.result for one in found.values()}
    assert min(one.p_value for one in found.values() if one.p_value is not None) > 0.01


@pytest.mark.parametrize(("size", "level"), [(10, 0.99), (20, 0.95)])
def test_false_alarms_of_pairs_stay_within_the_level(size: int, level: float) -> None:
    rounds, false = 40, 0
    for seed in range(rounds):
        disturbed = noise(seed, size, 0.4)
        old, new = disturbed * noise(1000 + seed, size, 0.05), disturbed * noise(5000 + seed, size, 0.05)
        found = compare(*pairs(timed(old), timed(new)), confidence=level, threshold=0.0)
        false += bool(SURE & {one.result for one in found.values()})
    assert false <= rounds * (1 - level) + 2 * math.sqrt(rounds * level * (1 - level))


def test_that_a_mode_is_taken_more_often_is_a_maybe() -> None:
    modes = np.random.default_rng(3)
    slow = np.where(modes.random(90) < 0.7, 2.0, 1.0) * noise(4, 90)
    fast = np.where(modes.random(90) < 0.3, 2.0, 1.0) * noise(5, 90)
    old, new = pairs(timed(fast), timed(slow))
    for profile in (old, new):  # of a session that ended when it was certain
        profile["header"]["session"]["levels"] = [0.01, 0.05]
    found = compare(old, new)["./prog [cpu]"]
    assert found.result is Change.MaybeDegradation
    assert "two modes" in found.rule


def test_counts_have_a_threshold_of_their_own() -> None:
    found = compare(memory({"peak": [50e6], "leaked": [0]}), memory({"peak": [50.1e6], "leaked": [0]}))
    assert found["prog:peak"].result is Change.Degradation
    assert found["prog:leaked"].result is Change.NoChange
    assert found["prog:peak"].sizes == (1, 1) and found["prog:peak"].interval == (1.002, 1.002)
    assert compare(memory({"peak": [95e6]}), memory({"peak": [50e6]}))["prog:peak"].result in SURE
    tolerant = compare(memory({"peak": [1000]}), memory({"peak": [1001]}), exact_threshold=0.01)
    assert tolerant["prog:peak"].result is Change.NoChange


def test_counts_that_vary_from_run_to_run_are_measured() -> None:
    old, new = 1000 * noise(1, 12, 0.001), 1100 * noise(2, 12, 0.001)
    assert compare(memory({"peak": old.tolist()}), memory({"peak": new.tolist()}))["prog:peak"].result in SURE
    few = compare(memory({"peak": [1000, 1001]}), memory({"peak": [1002, 1000]}))["prog:peak"]
    assert few.result is Change.Unknown


def test_new_leaks_are_leaks_and_gone_ones_are_gone() -> None:
    without, leaking = memory({"peak": [9]}), memory({"peak": [9], "leaked": [64]})
    assert compare(without, leaking)["prog:leaked"].result is Change.SevereDegradation
    assert compare(leaking, without)["prog:leaked"].result is Change.SevereOptimization
    assert compare(without, leaking)["prog:leaked"].rate_degradation == 0.0


def test_more_calls_are_seen_beside_shorter_ones() -> None:
    old = calls({"f": [2.65], "main": [9.0]})
    new = calls({"f": [1.0] * 1000, "main": [9.0]})
    found = compare(old, new)
    assert list(found) == ["f [calls]", "main [calls]"], "a single call has no noise that is known"
    assert found["f [calls]"].result is Change.SevereDegradation
    assert found["f [calls]"].rate_degradation == 1000
    once_more = compare(calls({"f": [1.0] * 10}), calls({"f": [1.0] * 11}))
    assert once_more["f [calls]"].result is Change.Unknown, "another run may have another number"


def test_one_preempted_call_decides_nothing() -> None:
    generator = np.random.default_rng(5)
    old, new = generator.lognormal(0, 0.1, (2, 1500))
    new[700] = 4300
    found = compare(calls({"f": old.tolist()}), calls({"f": new.tolist()}))["f"]
    assert found.result not in SURE
    assert found.rate_degradation == pytest.approx(1, abs=0.02)


def test_functions_of_a_size_are_compared_size_by_size() -> None:
    sizes = list(range(1, 61))
    old = [size**2 * factor for size, factor in zip(sizes, noise(1, 60, 0.05), strict=True)]
    new = [3 * size**2 * factor for size, factor in zip(sizes, noise(2, 60, 0.05), strict=True)]
    found = compare(calls({"f": old}, sizes), calls({"f": new}, sizes))["f"]
    assert found.result is Change.SevereDegradation
    assert found.rate_degradation == pytest.approx(3, rel=0.05)


def test_what_one_profile_lacks() -> None:
    found = compare(timed([1.0, 2]), timed([1.0, 2], uid="./other"))
    assert {location: one.result for location, one in found.items()} == {
        "./other [real]": Change.NotInBaseline,
        "./prog [real]": Change.NotInTarget,
    }


def test_values_without_a_ratio_and_other_units_are_unknown() -> None:
    old, new = timed([0.0, 1, 2, 0]), timed([1.0, 1, 2, 0])
    found = compare(old, new)
    assert list(found) == ["./prog [cpu]", "./prog [real]"], "user and sys are told by their sum"
    assert found["./prog [cpu]"].result is Change.Unknown
    assert "0 has no ratio" in found["./prog [cpu]"].rule
    others = timed([1.0, 1, 2, 3])
    others["header"]["units"] = {"time": "calls"}
    assert "units differ" in compare(timed([1.0, 2]), others)["./prog [cpu]"].rule


def test_profiles_without_repetitions_are_not_for_this_method() -> None:
    with pytest.raises(ProfileError, match="no repeated measurements"):
        compare(timed([1.0]), timed([2.0]))


@pytest.mark.parametrize("value", [0.0, 0.4, 1.0, 99.0])
def test_a_confidence_is_a_probability(value: float) -> None:
    with pytest.raises(ConfigError, match=r"hodges_lehmann_ratio\.confidence"):
        RatioParams(confidence=value)


@given(
    st.lists(st.floats(-1e308, 1e308) | st.just(0.0), min_size=1, max_size=12),
    st.lists(st.floats(-1e308, 1e308), min_size=1, max_size=12),
    st.sampled_from(["time", "mixed", "memory", "regex"]),
)
def test_any_amounts_have_an_answer(old: list[float], new: list[float], kind: str) -> None:
    def profile(values: list[float]) -> Profile:
        made = Profile({"header": {"type": kind}})
        resources: list[dict[str, Any]] = [
            {"uid": "x", "type": kind, "subtype": "user", "order": order, "amount": value}
            for order, value in enumerate(values)
        ]
        made.update_resources(resources)
        return made

    try:
        found = compare(profile(old), profile(new))
    except ProfileError:
        return
    for change in found.values():
        assert change.rule
        assert math.isfinite(change.rate_degradation)


def printed(rates: np.ndarray, latencies: np.ndarray) -> Profile:
    """What a program prints of itself: requests per second, of which more is better, and their latency."""
    header = {"type": "mixed", "units": {"mixed(req/s)": "req/s", "time": "s"}, "larger_is_better": ["req/s"]}
    profile = Profile({"header": header})
    profile.update_resources(
        {"uid": "server", "type": kind, "subtype": subtype, "order": order, "amount": amount}
        for order, pair in enumerate(zip(rates.tolist(), latencies.tolist(), strict=True))
        for (kind, subtype), amount in zip((("mixed", "req/s"), ("time", "latency")), pair, strict=True)
    )
    return profile


@pytest.mark.parametrize(("rate", "latency", "labels"), [
    (0.9, 1.0, [Change.NoChange, Change.Degradation]),
    (1.1, 1.0, [Change.NoChange, Change.Optimization]),
    (1.0, 1.0, [Change.NoChange, Change.NoChange]),
    (0.6, 1.6, [Change.SevereDegradation, Change.SevereDegradation]),
    (1.6, 0.6, [Change.SevereOptimization, Change.SevereOptimization]),
    (1.6, 1.6, [Change.SevereDegradation, Change.SevereOptimization]),
])  # fmt: skip
def test_more_is_better(rate: float, latency: float, labels: list[Change]) -> None:
    one = printed(1000 * noise(1, 20, 0.003), noise(2, 20, 0.003))
    other = printed(rate * 1000 * noise(3, 20, 0.003), latency * noise(4, 20, 0.003))
    found = compare(*pairs(one, other))
    assert list(found) == ["server [latency]", "server [req/s]"]
    assert [change.result for change in found.values()] == labels
    assert found["server [req/s]"].rate_degradation == pytest.approx(rate, rel=0.01)
    assert found["server [req/s]"].rule.endswith("more of it is better")
