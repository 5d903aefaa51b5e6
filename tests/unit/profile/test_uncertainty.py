"""Changes that the cost of recording calls may account for are unknown."""

from typing import Any

import pytest

from perun.profile.changes import DegradationInfo, PerformanceChange, without_doubtful
from perun.profile.factory import Profile


def profile(calls: int, time: int, uncertainty: int, *, usual: bool = False) -> Profile:
    """A profile of `leaf`, whose calls took `time` ns altogether."""
    times = {"time": time, "subtracted": 10**6, "uncertainty": uncertainty}
    times["below"] = usual or time <= uncertainty
    row = {"calls": calls, "at-zero": 0, "doubtful": 0, "inclusive": times, "exclusive": times}
    return Profile({"trace": {"overhead": {"costs": [], "functions": {"leaf": row}}}})


def judged(old: Profile, new: Profile, location: str = "leaf", kind: str = "ratio") -> DegradationInfo:
    change = DegradationInfo(PerformanceChange.Degradation, location, "1us", "3us", kind, rd=3, rule="twice")
    (found,) = without_doubtful([change], old, new)
    return found


@pytest.mark.parametrize("location", ["leaf", "leaf [time delta]"])
def test_a_difference_within_the_uncertainty_is_unknown(location: str) -> None:
    found = judged(profile(100, 20_000, 9_000), profile(100, 40_000, 11_000), location)
    assert found.result is PerformanceChange.Unknown
    assert found.rule.endswith("may be wrong by: 200 ns in a call")


def test_a_larger_difference_stays() -> None:
    for new in (profile(100, 41_000, 11_000), profile(50, 30_000, 5_500)):
        found = judged(profile(100, 20_000, 9_000), new)
        assert (found.result, found.rule) == (PerformanceChange.Degradation, "twice")


def test_a_small_ratio_is_unknown_where_interruptions_make_the_means_differ() -> None:
    old, new = profile(100, 100_000, 5_000), profile(100, 200_000, 5_000)
    change = DegradationInfo(PerformanceChange.Degradation, "leaf", "1us", "1us", "ratio", rd=1.05)
    (found,) = without_doubtful([change], old, new)
    assert found.result is PerformanceChange.Unknown


def test_sums_are_compared_by_their_own_uncertainty() -> None:
    old = profile(100, 20_000, 9_000)
    more, far_more = profile(200, 40_000, 18_000), profile(300, 61_000, 27_000)
    assert judged(old, far_more, "leaf [total]").result is PerformanceChange.Degradation
    assert judged(old, more, "leaf [total]").result is PerformanceChange.Unknown
    assert judged(old, more, "program:leaf", "time").result is PerformanceChange.Unknown


def test_times_that_say_nothing_in_both_are_unknown_however_far_apart() -> None:
    """Interruptions of a few calls make the sums of such times large."""
    old, new = profile(100, 10**6, 9_000, usual=True), profile(100, 10**7, 9_000, usual=True)
    found = judged(old, new)
    assert found.result is PerformanceChange.Unknown
    assert "within the uncertainty" in found.rule
    grown = judged(profile(100, 5, 9_000), profile(100, 10**6, 9_000), kind="order")
    assert grown.result is PerformanceChange.Degradation


@pytest.mark.parametrize(
    "region", [None, {}, {"overhead": {"why-not": "no"}}, {"overhead": {"functions": {"leaf": {"calls": 0}}}}]
)
def test_profiles_without_the_figures_are_judged_as_before(region: Any) -> None:
    old = Profile({} if region is None else {"trace": region})
    assert judged(old, profile(1, 0, 10)).result is PerformanceChange.Degradation


def test_what_is_no_change_stays() -> None:
    for result in (PerformanceChange.NoChange, PerformanceChange.NotInTarget):
        change = DegradationInfo(result, "leaf", "1us", "-")
        assert list(without_doubtful([change], profile(1, 0, 10), profile(1, 0, 10))) == [change]
        assert change.result is result
