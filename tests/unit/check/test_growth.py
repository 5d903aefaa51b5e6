"""Growth: labels, types, rates and words of changes between profiles that were measured over sizes."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from perun.check.growth import PLUGIN, GrowthParams
from perun.cli.answers.changes import factor_of
from perun.core.errors import ProfileError
from perun.plugin.api import CheckContext
from perun.profile import session
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile

Curve = Callable[[Any], Any]
SIZES = np.repeat(np.geomspace(10, 5000, 9).round(), 10)


def profile(seed: int = 0, kind: str = "mixed", subtype: str = "time delta", **curves: Curve) -> Profile:
    """Ten calls of each size, the times with a noise of 3 %; nothing else has any."""
    made = Profile({"header": {"type": kind, "units": {f"{kind}({subtype})": "us"}}})
    noise = np.random.default_rng(seed)
    for uid, curve in curves.items():
        y = curve(SIZES) * (noise.normal(1, 0.03, SIZES.size) if kind == "mixed" else 1)
        made.update_resources(
            {"uid": uid, "type": kind, "subtype": subtype, "amount": amount, "structure-unit-size": size}
            for size, amount in zip(SIZES.tolist(), y.tolist(), strict=True)
        )
    return made


def compare(baseline: Profile, target: Profile, **params: Any) -> dict[str, DegradationInfo]:
    found = list(PLUGIN().compare(baseline, target, GrowthParams(**params), CheckContext()))
    changes = {change.location: change for change in found}
    assert len(changes) == len(found)
    return changes


def side_by_side(baseline: Profile, target: Profile) -> tuple[Profile, Profile]:
    session.mark(baseline, session.Session("s", "base", runs_are_rounds=True))
    session.mark(target, session.Session("s", "head", runs_are_rounds=True))
    return baseline, target


def linear(n: Any) -> Any:
    return 20 + 2 * n


def test_another_order_is_severe_and_its_mirror_an_optimization() -> None:
    old, new = profile(1, f=linear, same=linear), profile(2, f=lambda n: 20 + 0.05 * n**2, same=linear)
    change = compare(old, new)["f"]
    assert (change.result, change.type) == (PerformanceChange.SevereDegradation, "order")
    assert change.interval is not None and 0.2 < change.interval[0] < 1 < change.interval[1]
    assert change.rate_degradation == pytest.approx(1, abs=0.1)
    assert change.p_value is not None and change.p_value < 0.001
    assert (change.confidence_type, change.sizes) == ("aicc", (90, 90))
    assert change.from_baseline.endswith("µs * n") and change.to_target.endswith("ns * n^2")
    assert "more than 0.2" in change.rule
    assert factor_of(change) == f"order {change.rate_degradation:+.3g}"
    back = compare(new, old)["f"]
    assert (back.result, back.type) == (PerformanceChange.SevereOptimization, "order")
    assert back.rate_degradation == pytest.approx(-change.rate_degradation)
    assert compare(old, new)["same"].result is PerformanceChange.Unknown, "they were measured apart"


def test_a_factor_is_measured() -> None:
    pair = side_by_side(profile(1, f=linear), profile(2, f=lambda n: 20 + 2.8 * n))
    change = compare(*pair)["f"]
    assert (change.result, change.type) == (PerformanceChange.Degradation, "factor")
    assert change.interval is not None and change.interval[0] < 1.4 < change.interval[1]
    assert change.interval[1] - change.interval[0] < 0.2
    assert factor_of(change) == f"{change.rate_degradation:.3g}x, factor"


def test_measured_apart_nothing_is_known_of_a_factor_below_two() -> None:
    old, new, slow = (profile(k, f=lambda n, k=k: 20 + k * n) for k in (2, 3, 7))
    change = compare(old, new)["f"]
    assert change.result is PerformanceChange.Unknown
    assert change.interval is not None and change.interval[0] < 1 < change.interval[1]
    assert "made apart" in change.rule
    assert compare(old, slow)["f"].result is PerformanceChange.Degradation


def test_a_start_that_takes_longer_is_a_level() -> None:
    pair = side_by_side(profile(1, f=lambda n: 50 + 0 * n), profile(2, f=lambda n: 80 + 0 * n))
    change = compare(*pair)["f"]
    assert (change.result, change.type) == (PerformanceChange.Degradation, "factor")
    assert (change.from_baseline[:2], change.to_target[:2]) in {("49", "79"), ("50", "80"), ("49", "80")}


def test_what_is_not_felt_is_a_maybe() -> None:
    pair = side_by_side(
        profile(1, "instructions", "", f=lambda n: 1e6 + n + 0 * n),
        profile(1, "instructions", "", f=lambda n: 1e6 + 2 * n),
    )
    change = compare(*pair)["f"]
    assert change.result is PerformanceChange.MaybeDegradation
    assert change.rate_degradation == pytest.approx(2, rel=0.01)
    assert "largest size" in change.rule


def test_counts_need_no_pairs() -> None:
    old = profile(1, "instructions", "", f=lambda n: 100 + 10 * n)
    new = profile(1, "instructions", "", f=lambda n: 100 + 13 * n)
    assert compare(old, new)["f"].result is PerformanceChange.Degradation


def test_few_sizes_say_so() -> None:
    old, new = (
        Profile({"header": {"type": "mixed", "units": {}}}),
        Profile({"header": {"type": "mixed", "units": {}}}),
    )
    for one, power in ((old, 1), (new, 2)):
        one.update_resources(
            {"uid": "f", "type": "mixed", "amount": 10.0 * size**power + call, "structure-unit-size": size}
            for size in (10, 11, 12)
            for call in range(6)
        )
    change = compare(old, new)["f"]
    assert change.type != "order"
    assert "needs 5 sizes" in change.rule


def test_noise_that_hides_everything_is_unknown() -> None:
    noise = np.random.default_rng(3)
    old, new = (profile(k, f=lambda n: noise.lognormal(3, 2, n.size)) for k in (1, 2))
    change = compare(old, new)["f"]
    assert change.result is PerformanceChange.Unknown
    assert change.detectable is not None and change.detectable > 1.5


def test_clocks_are_compared_apart() -> None:
    def time(factor: float, size: int, run: int) -> float:
        return 0.1 + factor * size + run * 1e-4

    def timed(slow: float) -> Profile:
        made = Profile({"header": {"type": "time", "units": {"time": "s"}}})
        made.update_resources(
            {"uid": "./prog", "type": "time", "subtype": subtype, "amount": time(factor, size, run),
             "workload": str(size)}
            for size in (1, 2, 4, 8, 16, 32)
            for run in range(6)
            for subtype, factor in (("real", slow), ("user", 1))
        )  # fmt: skip
        return made

    found = compare(timed(1), timed(3))
    assert sorted(found) == ["./prog [real]", "./prog [user]"]
    assert found["./prog [real]"].result is PerformanceChange.Degradation
    assert found["./prog [user]"].result is PerformanceChange.Unknown


def test_profiles_without_sizes_are_named() -> None:
    plain = Profile({"header": {"type": "time"}})
    plain.update_resources([{"uid": "f", "type": "time", "amount": 1.0}])
    with pytest.raises(ProfileError, match="the target profile has no sizes") as caught:
        compare(profile(f=linear), plain)
    assert "workload generator" in caught.value.hint


def test_a_field_of_ones_own() -> None:
    def keyed(factor: float) -> Profile:
        made = Profile({"header": {"type": "mixed", "units": {}}})
        made.update_resources(
            {"uid": "f", "type": "mixed", "amount": 1.0, "length": size, "cost": factor * size}
            for size in range(1, 50)
        )
        return made

    found = compare(keyed(1), keyed(3), of_key="cost", per_key="length")
    assert found["f"].rate_degradation == pytest.approx(3)


@pytest.mark.parametrize("confidence", [1.0, 1.5])
def test_a_confidence_that_cannot_be_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match="below 1"):
        GrowthParams(confidence=confidence)


def test_unchanged_functions_of_many() -> None:
    curves: Mapping[str, Curve] = {f"f{k}": lambda n, k=k: 10 + (k + 1) * n for k in range(30)}
    found = compare(profile(1, **curves), profile(2, **curves))
    quiet = {PerformanceChange.NoChange, PerformanceChange.Unknown}
    assert sum(change.result not in quiet for change in found.values()) == 0
