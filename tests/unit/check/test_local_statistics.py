"""Local Statistics: windows, partial intervals and buckets; see also the tests of Integral Comparison."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.check.local_statistics import PLUGIN, LocalParams
from perun.plugin.api import NO_POSTPROCESS_CONTEXT, CheckContext
from perun.postprocess.regressogram import Regressogram, RegressogramParams
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile


def bucketed(*values: float, **more: Any) -> Profile:
    made = Profile({"header": {"type": "mixed"}})
    made.update_resources([{"uid": "f", "type": "mixed", "amount": 1.0, "structure-unit-size": 1}])
    made["models"] = [
        {"uid": "f", "model": "regressogram", "method": "regressogram", "r_square": 0.9,
         "bucket_stats": list(values), "x_start": 0, "x_end": 100, **more}
    ]  # fmt: skip
    return made


def compare(baseline: Profile, target: Profile, **params: Any) -> DegradationInfo:
    (info,) = PLUGIN().compare(baseline, target, LocalParams(**params), CheckContext())
    return info


def runs(info: DegradationInfo) -> list[tuple[str, float, float, float]]:
    return [
        (change.name, *(round(number, 2) for number in numbers))
        for change, *numbers in info.partial_intervals
    ]


TEN = [10.0] * 50


@pytest.mark.parametrize(("target", "change", "rate", "parts"), [
    ([*TEN[:40], *[30.0] * 10], "Degradation", 0.4, [("Degradation", 2.0, 81.63, 100.0)]),
    ([*TEN[:46], *[30.0] * 4], "MaybeDegradation", 0.16, [("Degradation", 2.0, 93.88, 100.0)]),
    ([*TEN[:48], *[30.0] * 2], "NoChange", 0.08, [("Degradation", 2.0, 97.96, 100.0)]),
    ([*TEN[:25], *[30.0] * 25], "Degradation", 1.0, [("Degradation", 1.92, 48.98, 100.0)]),
    ([*TEN[:10], *[12.0] * 40], "MaybeDegradation", 0.16, [("MaybeDegradation", 0.2, 20.41, 100.0)]),
    ([*TEN[:40], *[5.0] * 10], "MaybeOptimization", -0.1, [("Optimization", -0.5, 81.63, 100.0)]),
    (
        [*TEN[:30], *[30.0] * 10, *[1.0] * 10],  # on average, both versions are slower than the other one
        "MaybeDegradation",
        0.22,
        [("Degradation", 2.0, 61.22, 79.59), ("Optimization", -0.9, 81.63, 100.0)],
    ),
])  # fmt: skip
def test_where_it_changed(target, change, rate, parts) -> None:
    info = compare(bucketed(*TEN), bucketed(*target))
    assert info.result.name == change
    assert info.rate_degradation == pytest.approx(rate)
    assert runs(info) == parts


def test_few_points_are_one_window() -> None:
    info = compare(bucketed(*[10.0] * 39), bucketed(*[10.0] * 30, *[20.0] * 9))
    assert info.result is PerformanceChange.MaybeDegradation
    assert runs(info) == [("MaybeDegradation", 0.21, 0.0, 100.0)]
    wide = compare(bucketed(*[10.0] * 39), bucketed(*[10.0] * 30, *[20.0] * 9), fewest=10, window=0.1)
    assert runs(wide) == [("Degradation", 1.0, 78.95, 100.0)]


def test_what_is_left_is_a_window_too() -> None:
    info = compare(bucketed(*[10.0] * 41), bucketed(*[10.0] * 40, 20.0))
    assert info.rate_degradation == pytest.approx(1 / 21)
    assert runs(info) == [("Degradation", 1.0, 100.0, 100.0)]


def test_an_empty_bucket_says_nothing() -> None:
    filled, empty = bucketed(*TEN), bucketed(*TEN[:20], 0.0, 0.0, *TEN[22:])
    for pair in ((filled, empty), (empty, filled), (empty, empty)):
        info = compare(*pair)
        assert (info.result, info.rate_degradation) == (PerformanceChange.NoChange, 0)
        assert info.partial_intervals == []


def test_unequal_numbers_of_buckets() -> None:
    def made(buckets: int, factor: float) -> Profile:
        profile = Profile({"header": {"type": "mixed"}})
        profile.update_resources([
            {"uid": "f", "type": "mixed", "amount": factor * x * x, "structure-unit-size": x}
            for x in range(1, 401)
        ])  # fmt: skip
        params = RegressogramParams(bucket_number=buckets)
        return Regressogram().process(profile, params, NO_POSTPROCESS_CONTEXT)

    for buckets in ((5, 50), (50, 5)):
        # Steps of unlike width differ by far more than the limits where nothing changed.
        same = compare(made(buckets[0], 1), made(buckets[1], 1))
        assert (same.result, same.rate_degradation) == (PerformanceChange.NoChange, pytest.approx(0))
        slower = compare(made(buckets[0], 1), made(buckets[1], 1.5))
        assert slower.result is PerformanceChange.Degradation
        assert slower.rate_degradation == pytest.approx(0.5)


def test_unequal_numbers_of_buckets_without_resources() -> None:
    info = compare(bucketed(*[10.0] * 60), bucketed(*[20.0] * 50))
    assert (info.result, info.rate_degradation) == (PerformanceChange.Degradation, pytest.approx(1))


def test_limits_of_windows_can_be_set() -> None:
    steep = bucketed(*TEN[:40], *[30.0] * 10)
    assert runs(compare(bucketed(*TEN), steep, window_no_change=1.0)) == []
    assert runs(compare(bucketed(*TEN), steep, window_maybe=1.0)) == [("MaybeDegradation", 2.0, 81.63, 100.0)]


def test_the_defaults_are_those_of_the_method() -> None:
    limits = {"no_change": 0.1, "maybe": 0.25, "r_square": 0.15, "window_no_change": 0.2, "window_maybe": 0.5}
    assert LocalParams() == LocalParams(**limits, window=0.05, fewest=40, points=1000)


@given(st.lists(st.floats(1, 100), min_size=2, max_size=90), st.floats(1, 100))
def test_one_much_slower_point_is_never_an_optimization(values: list[float], factor: float) -> None:
    slower = [*values[:-1], values[-1] * factor]
    info = compare(bucketed(*values), bucketed(*slower))
    assert info.result.value <= 0
    assert info.rate_degradation >= 0
    assert all(run[0].value < 0 for run in info.partial_intervals)


def test_formulas_have_as_many_points_as_asked_for() -> None:
    profile = bucketed()
    profile["models"] = [
        {"uid": "f", "model": "linear", "method": "full", "r_square": 1,
         "coeffs": [{"name": "b0", "value": 0}, {"name": "b1", "value": value}], "x_start": 0, "x_end": 1}
        for value in (1,)
    ]  # fmt: skip
    steps = bucketed(*np.linspace(1, 2, 100), x_end=1)
    assert compare(profile, steps).result is PerformanceChange.Degradation
    (run,) = compare(profile, profile, points=10).partial_intervals or [None]
    assert run is None


def test_what_lies_within_the_scatter_is_no_change() -> None:
    """Many times as much at the start, which is small; over all x the models differ by 2 %."""

    def line(b0: float, b1: float, r_square: float) -> Profile:
        made = bucketed()
        coeffs = [{"name": "b0", "value": b0}, {"name": "b1", "value": b1}]
        (model,) = made["models"]
        made["models"] = [
            {**{key: model[key] for key in ("uid", "x_start", "x_end")}, "model": "linear", "method": "full"}
            | {"coeffs": coeffs, "r_square": r_square}
        ]
        return made

    assert compare(line(1, 10, 0.99), line(40, 9.4, 0.99)).result is PerformanceChange.NoChange
    exact = compare(line(1, 10, 1), line(40, 9.4, 1))
    assert exact.result is PerformanceChange.Degradation
    assert exact.partial_intervals[0][0] is PerformanceChange.Degradation
    assert compare(line(1, 10, 0.2), line(1.3, 13, 0.2)).result is PerformanceChange.Degradation
