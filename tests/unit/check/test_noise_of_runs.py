"""What the noise of runs leaves of a change: of single runs, of repeated ones, and of what is counted."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

from perun.check._common.points import NONE, UNKNOWN, MedianChange, MedianError, error_of_means
from perun.models.growth import forms
from perun.models.growth.comparison import Curve, GrowthComparison, OrderComparison, Quotient, widened
from perun.models.growth.forms import ExponentDifference
from perun.plugin.api import NO_POSTPROCESS_CONTEXT, CheckContext
from perun.plugin.registry import Registry
from perun.postprocess.regression_analysis import RegressionAnalysis, RegressionParams
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile
from perun.profile.session import Session, mark, pool

METHODS = pytest.mark.parametrize("method", ["fast", "int", "loc"])
FUNCTIONS = "abcdefgh"
SIZES = np.arange(1.0, 61.0)
UNCERTAIN = {PerformanceChange.Unknown, PerformanceChange.MaybeDegradation}
ALIKE: Mapping[str, float] = {}


def run(
    seed: int, factors: Mapping[str, float] = ALIKE, kind: str = "mixed", names: str = FUNCTIONS
) -> Profile:
    """A run of functions of a size; 2 % noise, and `factors` of the times of some of them."""
    random = np.random.default_rng(seed)
    made = Profile({"header": {"type": kind, "cmd": "./prog", "units": {}}})
    for name in names:
        times = (20 + 3 * SIZES) * random.normal(1, 0.02, SIZES.size) * factors.get(name, 1)
        made.update_resources(
            {"uid": name, "type": kind, "amount": time, "structure-unit-size": size}
            for size, time in zip(SIZES.tolist(), times.tolist(), strict=True)
        )
    return made


def modelled(profile: Profile) -> Profile:
    return RegressionAnalysis().process(profile, RegressionParams("full"), NO_POSTPROCESS_CONTEXT)


@lru_cache
def baseline() -> Profile:
    return modelled(run(1))


def changes(method: str, old: Profile, new: Profile, **params: Any) -> dict[str, DegradationInfo]:
    check = Registry().get("check", method)
    found = check.compare(old, new, check.Params(**params), CheckContext())
    return {change.location: change for change in found}


@METHODS
def test_a_function_that_changed_alone_is_certain(method: str) -> None:
    found = changes(method, baseline(), modelled(run(2, {"c": 1.5})))
    assert found.pop("c").result is PerformanceChange.Degradation
    assert {change.result for change in found.values()} == {PerformanceChange.NoChange}


@METHODS
def test_where_many_differ_the_machine_may_be_the_cause(method: str) -> None:
    """Half of the functions take 1.6 times as long: that happens to runs of one program."""
    slow = dict.fromkeys("aceg", 1.6)
    found = changes(method, baseline(), modelled(run(2, slow)))
    assert {found[name].result for name in slow} == {PerformanceChange.Unknown}
    assert found["a"].rule.startswith("the 95 % interval of the ratio of two such runs, ")
    assert found["a"].rule.endswith(" includes 1: measure in rounds, or side by side by perun compare")


@METHODS
@pytest.mark.parametrize(("factor", "expected"), [(2.2, "Degradation"), (1 / 2.2, "Optimization")])
def test_more_than_a_machine_does_is_certain(method: str, factor: float, expected: str) -> None:
    everything = dict.fromkeys(FUNCTIONS, factor)
    found = changes(method, baseline(), modelled(run(2, everything)))
    assert {change.result.name for change in found.values()} == {expected}
    more = {"apart": 150.0 if method == "fast" else 1.5}
    found = changes(method, baseline(), modelled(run(2, everything)), **more)
    assert {change.result for change in found.values()} == {PerformanceChange.Unknown}


@METHODS
def test_of_one_function_alone_nothing_is_known_of_runs(method: str) -> None:
    old = modelled(run(1, names="a"))
    change = changes(method, old, modelled(run(2, {"a": 1.5}, names="a")))["a"]
    assert change.result is PerformanceChange.MaybeDegradation
    assert change.rule.startswith("the 99 % interval of the ratio of two such runs, 0.7")
    change = changes(method, old, modelled(run(2, {"a": 2.2}, names="a")))["a"]
    assert change.result is PerformanceChange.Degradation


@METHODS
def test_what_is_counted_has_no_noise_of_runs(method: str) -> None:
    old, new = (modelled(run(seed, {"a": by}, "instructions", "a")) for seed, by in ((1, 1), (2, 1.5)))
    assert changes(method, old, new)["a"].result is PerformanceChange.Degradation


def rounds(levels: list[float], seed: int, side: str = "") -> Profile:
    """Pooled runs, whose functions took so many times as long."""
    runs = [run(seed + at, dict.fromkeys("ab", level), names="ab") for at, level in enumerate(levels)]
    for one in runs if side else ():
        mark(one, Session("session", "base" if side == "base" else "head", runs_are_rounds=True))
    return modelled(pool(runs))


@METHODS
def test_repeated_runs_show_how_much_they_differ(method: str) -> None:
    steady, slower = rounds([1, 1.02, 1.01], 10), rounds([1.5, 1.52, 1.49], 20)
    found = changes(method, steady, slower)
    assert {change.result for change in found.values()} == {PerformanceChange.Degradation}
    unsteady = rounds([1, 1.6, 1.05], 10), rounds([1.6, 1.65, 1.9], 20)
    assert {change.result for change in changes(method, *unsteady).values()} <= UNCERTAIN


@METHODS
def test_pairs_of_runs_are_compared_with_each_other(method: str) -> None:
    """What disturbed the machine disturbed both of a pair."""
    speeds, slower = [1, 1.6, 1.05, 1.3], [1.52, 2.4, 1.57, 1.96]
    found = changes(method, rounds(speeds, 10), rounds(slower, 20))
    assert {change.result for change in found.values()} <= UNCERTAIN
    found = changes(method, rounds(speeds, 10, "base"), rounds(slower, 20, "head"))
    assert {change.result for change in found.values()} == {PerformanceChange.Degradation}


def test_growth_knows_the_noise_of_runs_as_well() -> None:
    found = changes("grow", baseline(), modelled(run(2, {"c": 1.5})))
    assert found.pop("c").result is PerformanceChange.Degradation
    # That there is no change has to be shown, which the one that changed stands against.
    assert {change.result for change in found.values()} == {PerformanceChange.Unknown}
    found = changes("grow", baseline(), modelled(run(2)))
    assert found["a"].result is PerformanceChange.NoChange
    assert {change.result for change in found.values()} <= {found["a"].result, PerformanceChange.Unknown}
    found = changes("grow", baseline(), modelled(run(2, dict.fromkeys("aceg", 1.6))))
    assert {found[name].result for name in "aceg"} == {PerformanceChange.Unknown}
    found = changes("grow", rounds([1, 1.02, 1.01], 10), rounds([1.5, 1.52, 1.49], 20))
    assert {change.result for change in found.values()} == {PerformanceChange.Degradation}
    alone = [modelled(run(seed, {"a": by}, names="a")) for seed, by in ((1, 1), (2, 1.5), (3, 2.5))]
    assert changes("grow", alone[0], alone[1])["a"].result is PerformanceChange.Unknown
    assert changes("grow", alone[0], alone[2])["a"].result is PerformanceChange.Degradation


@pytest.mark.parametrize("estimate", [1.5, 1 / 1.5])
def test_noise_widens_the_bounds_of_a_comparison(estimate: float) -> None:
    quotient = Quotient(estimate, estimate / 1.1, estimate * 1.1, 1e-6)
    line = Curve("1", forms.LinearForm(1.0, 0.0, 1.0, (1.0, 0.0, 0.0), 9))
    order = OrderComparison(line, line, ExponentDifference(0.0, 0.0, 0.0, 1.0), 0.0)
    found = GrowthComparison(order, line, line, quotient, quotient, quotient, (1.0, 9.0), (9, 9))
    assert widened(found, 0.0, 4.0, 1.0, 0.01) is found
    more = widened(found, 0.05, 4.0, 1.0, 0.01)
    half = math.hypot(math.log(1.1), 0.05 * stats.t.ppf(0.995, 4))
    for one in (more.factor, more.level, more.largest):
        assert one.low == pytest.approx(estimate * math.exp(-half))
        assert one.high == pytest.approx(estimate * math.exp(half))
        assert one.p_value == pytest.approx(2 * stats.t.sf(math.log(1.5) / 0.05, 4))
    assert widened(found, 9.0, 4.0, 1e-9, 0.01).level[:3] == pytest.approx(quotient[:3])
    endless = widened(found._replace(level=Quotient(estimate, 0.0, math.inf, 1.0)), 0.05, 4.0, 1.0, 0.01)
    assert endless.level == (estimate, 0.0, math.inf, 1.0)


def test_the_errors_are_those_of_the_t_test() -> None:
    old, new = np.array([1.0, 1.4, 1.2, 0.7]), np.array([1.9, 1.5, 2.2, 1.8])
    for paired in (False, True):
        error = error_of_means(old, new, paired=paired)
        test = stats.ttest_rel(new, old) if paired else stats.ttest_ind(new, old)
        assert (new.mean() - old.mean()) / error.value == pytest.approx(test.statistic)
        assert error.freedom == test.df
        interval = test.confidence_interval(0.99)
        assert error.half_width(0.99) == pytest.approx((interval.high - interval.low) / 2)
    assert error_of_means(old, new[:3], paired=True) == error_of_means(old, new[:3])


def test_intervals_of_a_ratio() -> None:
    """A balance of 0.5 is a ratio of 3/2, one of -0.5 of 2/3."""
    for balance, ratio in ((0.5, 1.5), (-0.5, 2 / 3)):
        assert MedianChange(balance).interval == pytest.approx((ratio, ratio))
        assert MedianChange(balance, NONE, UNKNOWN).interval == pytest.approx((ratio / 2, ratio * 2))
        assert MedianChange(balance, NONE, UNKNOWN).interval_95 == pytest.approx((ratio, ratio))
        assert MedianChange(balance, NONE, UNKNOWN, 0.2).interval == pytest.approx((ratio / 1.2, ratio * 1.2))
    error = MedianError(0.1, 5)
    half = math.hypot(*[stats.t.ppf(0.995, 5) * 0.1] * 2)
    low, high = MedianChange(0.5, error, error).interval
    assert (math.log(low), math.log(high)) == pytest.approx((math.log(1.5) - half, math.log(1.5) + half))
