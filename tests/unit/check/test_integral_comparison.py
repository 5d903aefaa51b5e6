"""Integral Comparison, and what it has in common with Local Statistics: known changes of known models."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.integrate import quad

from perun.check import integral_comparison, local_statistics
from perun.check._common.differences import IntegralParams
from perun.core.errors import ProfileError, UsageError
from perun.plugin.api import NO_POSTPROCESS_CONTEXT, CheckContext
from perun.postprocess.moving_average import PLUGIN as MovingAverage
from perun.postprocess.regression_analysis import RegressionAnalysis, RegressionParams
from perun.postprocess.regressogram import Regressogram, RegressogramParams
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile
from perun.profile.session import pool

MIRROR = {
    PerformanceChange.Degradation: PerformanceChange.Optimization,
    PerformanceChange.MaybeDegradation: PerformanceChange.MaybeOptimization,
    PerformanceChange.NotInBaseline: PerformanceChange.NotInTarget,
    PerformanceChange.NoChange: PerformanceChange.NoChange,
    PerformanceChange.Unknown: PerformanceChange.Unknown,
}
MIRROR |= {other: change for change, other in MIRROR.items()}
SHAPES: Mapping[str, tuple[Callable[[Any], Any], tuple[float, ...]]] = {
    "constant": (lambda x: 7.0 + 0 * x, (7.0,)), "linear": (lambda x: 3 + 2 * x, (3.0, 2.0)),
    "logarithmic": (lambda x: 5 + 4 * np.log(x), (5.0, 4.0)),
    "quadratic": (lambda x: 2 + x + 0.5 * x * x, (2.0, 1.0, 0.5)),
    "power": (lambda x: 3 * x**1.5, (3.0, 1.5)), "exponential": (lambda x: 4 * 1.1**x, (4.0, 1.1))
}  # fmt: skip
IN_TIMES = ("power", "exponential")
"""Models that are multiplied by multiplying b0 alone."""
X = np.arange(1.0, 61.0)
CHECKS = pytest.mark.parametrize("check", (integral_comparison, local_statistics), ids=("INT", "LOC"))


def profile(curves: Mapping[str, Any], x: Any = X, **constants: Any) -> Profile:
    """Resources of each uid: the values of its curve over x."""
    made = Profile({"header": {"type": "mixed", "cmd": "./prog", "units": {"mixed(time delta)": "us"}}})
    common = {"type": "mixed", "subtype": "time delta"}
    made.update_resources([
        {"uid": uid, "amount": float(amount), "structure-unit-size": float(size), **common, **constants}
        for uid, values in curves.items()
        for size, amount in zip(x, values, strict=True)
    ])  # fmt: skip
    return made


def regressed(curves: Mapping[str, Any], method: str = "full", x: Any = X) -> Profile:
    params = RegressionParams(method=method)
    return RegressionAnalysis().process(profile(curves, x), params, NO_POSTPROCESS_CONTEXT)


def modelled(*models: Mapping[str, Any]) -> Profile:
    """A profile of nothing but models; a resource for each uid."""
    made = profile({model["uid"]: [1.0] for model in models}, [1.0])
    made["models"] = [dict(model) for model in models]
    return made


def formula(uid: str, kind: str, *coefficients: float, r_square: float = 0.9, **more: Any) -> dict[str, Any]:
    interval = {"x_start": 1, "x_end": 60}
    coeffs = [{"name": f"b{number}", "value": value} for number, value in enumerate(coefficients)]
    model = {"uid": uid, "model": kind, "method": "full", "r_square": r_square, "coeffs": coeffs}
    return {**model, **interval, **more}


def bucketed(uid: str, values: Sequence[float], r_square: float = 0.9, **more: Any) -> dict[str, Any]:
    kind = {"model": "regressogram", "method": "regressogram", "statistic_function": "mean"}
    interval = {"x_start": 0, "x_end": 100}
    return {"uid": uid, **kind, "r_square": r_square, "bucket_stats": list(values), **interval, **more}


def compare(
    check: Any, baseline: Profile, target: Profile, models_type: str = "", **params: Any
) -> dict[tuple[str, str], DegradationInfo]:
    found = list(
        check.PLUGIN().compare(
            baseline, target, check.PLUGIN.Params(**params), CheckContext(models_type=models_type)
        )
    )
    changes = {(change.location, change.type): change for change in found}
    assert len(changes) == len(found)
    return changes


def one(check: Any, baseline: Mapping[str, Any], target: Mapping[str, Any], **params: Any) -> DegradationInfo:
    (change,) = compare(check, modelled(baseline), modelled(target), **params).values()
    return change


def times(model: Mapping[str, Any], factor: float) -> dict[str, Any]:
    """The model with all its values multiplied."""
    if "bucket_stats" in model:
        return {**model, "bucket_stats": [value * factor for value in model["bucket_stats"]]}
    scaled = model["coeffs"][:1] if model["model"] in IN_TIMES else model["coeffs"]
    coeffs = [{**one, "value": one["value"] * factor} if one in scaled else one for one in model["coeffs"]]
    return {**model, "coeffs": coeffs}


@CHECKS
@pytest.mark.parametrize(("factor", "change"), [
    (1.01, PerformanceChange.NoChange),
    (1.05, PerformanceChange.NoChange),
    (1.25, PerformanceChange.MaybeDegradation),
    (2.0, PerformanceChange.Degradation),
    (11.0, PerformanceChange.Degradation),
    (0.99, PerformanceChange.NoChange),
    (0.95, PerformanceChange.NoChange),
    (0.75, PerformanceChange.Optimization),
    (1 / 1.01, PerformanceChange.NoChange),
    (1 / 1.05, PerformanceChange.NoChange),
    (1 / 1.25, PerformanceChange.MaybeOptimization),
    (1 / 2, PerformanceChange.Optimization),
    (1 / 11, PerformanceChange.Optimization),
])  # fmt: skip
def test_known_changes_of_all_shapes(check: Any, factor: float, change: PerformanceChange) -> None:
    same = {f"same_{shape}": curve(X) for shape, (curve, _) in SHAPES.items()}
    old = regressed(same | {shape: curve(X) for shape, (curve, _) in SHAPES.items()})
    new = regressed(same | {shape: curve(X) * factor for shape, (curve, _) in SHAPES.items()})
    found = {location: info for (location, _), info in compare(check, old, new).items()}
    assert found.keys() == same.keys() | SHAPES.keys()
    for shape in SHAPES:
        assert found[shape].result is change
        assert found[shape].rate_degradation == pytest.approx(factor - 1, rel=1e-6)
        assert found[shape].rate_degradation_relative == pytest.approx(100 * (factor - 1), rel=1e-6)
        assert (found[shape].confidence_type, found[shape].confidence_rate) == ("r_square", pytest.approx(1))
        assert found[shape].from_baseline.endswith(f"us ({shape})")
        assert found[f"same_{shape}"].result is PerformanceChange.NoChange
        assert found[f"same_{shape}"].rate_degradation == 0


@CHECKS
def test_known_changes_amid_noise(check: Any) -> None:
    """Of repeated runs, which show the noise of each function, however many functions changed."""
    random = np.random.default_rng(7)

    def run(is_new: bool) -> Profile:
        return profile({
            f"{shape} {factor}": curve(X) * (factor if is_new else 1) * random.normal(1, 0.02, X.size)
            for shape, (curve, _) in SHAPES.items()
            if shape != "constant"  # noise has no r_square
            for factor in (1, 1.4, 0.7)
        })  # fmt: skip

    old, new = (
        RegressionAnalysis().process(
            pool([run(is_new) for _ in range(3)]), RegressionParams("full"), NO_POSTPROCESS_CONTEXT
        )
        for is_new in (False, True)
    )
    expected = {
        "1": PerformanceChange.NoChange,
        "1.4": PerformanceChange.Degradation,
        "0.7": PerformanceChange.Optimization,
    }
    for (location, _), info in compare(check, old, new).items():
        factor = location.partition(" ")[2]
        assert info.result is expected[factor], location
        assert info.rate_degradation == pytest.approx(float(factor) - 1, abs=0.1)


@CHECKS
@pytest.mark.parametrize("unit", [Regressogram(), MovingAverage()])
def test_models_of_values(check: Any, unit: Any) -> None:
    old = unit.process(profile({"f": 3 + 2 * X, "g": 3 + 2 * X}), unit.Params(), NO_POSTPROCESS_CONTEXT)
    new = unit.process(profile({"f": 4.5 + 3 * X, "g": 3 + 2 * X}), unit.Params(), NO_POSTPROCESS_CONTEXT)
    found = {location: info for (location, _), info in compare(check, old, new).items()}
    assert found["f"].result is PerformanceChange.Degradation
    assert found["f"].rate_degradation == pytest.approx(0.5)
    assert found["g"].result is PerformanceChange.NoChange


factors = st.floats(0.05, 20)
models = st.one_of(
    st.builds(lambda a: formula("f", "constant", a), factors),
    st.builds(lambda a, b: formula("f", "linear", a, b), factors, factors),
    st.builds(lambda a, b: formula("f", "logarithmic", a, b), factors, factors),
    st.builds(lambda a, b, c: formula("f", "quadratic", a, b, c), factors, factors, factors),
    st.builds(lambda a, b: formula("f", "power", a, b), factors, st.floats(-2, 3)),
    st.builds(lambda a, b: formula("f", "exponential", a, b), factors, st.floats(0.9, 1.1)),
    st.builds(lambda a: bucketed("f", a), st.lists(factors, min_size=60, max_size=60)),
    st.builds(lambda a: bucketed("f", a), st.lists(factors, min_size=2, max_size=10)),
)


@CHECKS
@given(baseline=models, target=models)
@example(bucketed("f", [5, 1, 2, *[1] * 57]), bucketed("f", [5, 2, 1, *[1] * 57]))
def test_swapping_mirrors(check: Any, baseline: dict[str, Any], target: dict[str, Any]) -> None:
    there, back = one(check, baseline, target), one(check, target, baseline)
    assert back.result is MIRROR[there.result]
    assert there.rate_degradation * back.rate_degradation <= 0
    assert (back.from_baseline, back.to_target) == (there.to_target, there.from_baseline)
    mirrored = [(MIRROR[change], start, end) for change, _, start, end in there.partial_intervals]
    assert [(change, start, end) for change, _, start, end in back.partial_intervals] == mirrored


@CHECKS
@given(model=models, r_square=st.floats(0.01, 1))
def test_a_model_against_itself(check: Any, model: dict[str, Any], r_square: float) -> None:
    same = one(check, {**model, "r_square": r_square}, {**model, "r_square": r_square})
    assert (same.result, same.rate_degradation, same.partial_intervals) == (PerformanceChange.NoChange, 0, [])


@CHECKS
@given(baseline=models, target=models, factor=st.floats(1e-6, 1e6))
def test_scale_does_not_matter(check, baseline, target, factor) -> None:
    plain = one(check, baseline, target)
    for no_change, maybe in ((0.1 - 1e-6, 0.25 - 1e-6), (0.1 + 1e-6, 0.25 + 1e-6)):  # rounding decides there
        assume(one(check, baseline, target, no_change=no_change, maybe=maybe).result is plain.result)
    scaled = one(check, times(baseline, factor), times(target, factor))
    assert scaled.result is plain.result
    assert scaled.rate_degradation == pytest.approx(plain.rate_degradation, rel=1e-6, abs=1e-9)


@CHECKS
@given(baseline=models, target=models, exponent=st.integers(-40, 40))
def test_a_scale_of_a_power_of_two_changes_nothing_at_all(check, baseline, target, exponent) -> None:
    plain = one(check, baseline, target)
    scaled = one(check, times(baseline, 2.0**exponent), times(target, 2.0**exponent))
    assert (scaled.result, scaled.rate_degradation) == (plain.result, pytest.approx(plain.rate_degradation))
    assert [run[0] for run in scaled.partial_intervals] == [run[0] for run in plain.partial_intervals]


@pytest.mark.parametrize("old", SHAPES)
@pytest.mark.parametrize("new", SHAPES)
def test_integrals_against_scipy(old: str, new: str) -> None:
    info = one(integral_comparison, formula("f", old, *SHAPES[old][1]), formula("f", new, *SHAPES[new][1]))
    before, after = (quad(SHAPES[shape][0], 1, 60)[0] for shape in (old, new))
    assert info.rate_degradation == pytest.approx((after - before) / before)


@CHECKS
def test_only_the_common_x_counts(check: Any) -> None:
    info = one(
        check,
        formula("f", "linear", 0, 1, x_start=0, x_end=10),
        formula("f", "linear", 0, 2, x_start=8, x_end=99),
    )
    assert info.result is PerformanceChange.Degradation
    assert info.rate_degradation == pytest.approx(1)
    assert (info.from_baseline, info.to_target) == ("9.0us (linear)", "18.0us (linear)")
    apart = one(
        check,
        formula("f", "linear", 0, 1, x_start=0, x_end=5),
        formula("f", "linear", 0, 2, x_start=5, x_end=9),
    )
    assert (apart.result, apart.rate_degradation) == (PerformanceChange.Unknown, 0)


@CHECKS
def test_models_that_fit_badly_prove_no_change(check: Any) -> None:
    good, bad = formula("f", "constant", 10), formula("f", "constant", 20, r_square=0.14)
    assert one(check, good, bad).result is PerformanceChange.Unknown
    assert one(check, good, bad).partial_intervals == []
    assert one(check, good, {**bad, "r_square": 0.15}).result is PerformanceChange.Degradation
    assert one(check, good, bad, r_square=0.1).result is PerformanceChange.Degradation
    assert one(check, bad, bad).result is PerformanceChange.NoChange


@CHECKS
def test_limits_can_be_set(check: Any) -> None:
    old, new = formula("f", "constant", 10), formula("f", "constant", 12)
    assert one(check, old, new, no_change=0.2).result is PerformanceChange.NoChange
    assert one(check, old, new, maybe=0.19).result is PerformanceChange.Degradation
    assert one(check, new, old, maybe=0.19).result is PerformanceChange.Optimization


@CHECKS
def test_an_integral_of_zero(check: Any) -> None:
    zero, some = formula("f", "constant", 0), formula("f", "constant", 1)
    assert one(check, zero, zero).result is PerformanceChange.NoChange
    for pair in ((zero, some), (some, zero)):
        info = one(check, *pair)
        assert (info.result, info.rate_degradation) == (PerformanceChange.Unknown, 0)


@CHECKS
def test_negative_amounts(check: Any) -> None:
    info = one(check, formula("f", "constant", -10), formula("f", "constant", -5))
    assert info.result is PerformanceChange.Degradation
    assert info.rate_degradation == pytest.approx(0.5)


@CHECKS
def test_models_that_cannot_be_evaluated(check: Any) -> None:
    info = one(check, formula("f", "mystery", 1), formula("f", "constant", 1))
    assert info.result is PerformanceChange.Unknown
    huge = one(check, formula("f", "exponential", 1e300, 1e300), formula("f", "constant", 1))
    assert huge.result is PerformanceChange.Unknown
    assert math.isfinite(huge.rate_degradation)


@CHECKS
def test_pieces_of_x_are_one_model(check: Any) -> None:
    old = np.where(X < 31, 200.0, 200.0 + 9 * X)
    new = np.where(X < 31, 200.0, 400.0 + 18 * X)
    before, after = (regressed({"f": curve}, "bisection") for curve in (old, new))
    assert len(before["models"]) > 1
    (info,) = compare(check, before, after).values()
    assert info.result is PerformanceChange.Degradation
    expected = {"INT": (new.sum() - old.sum()) / old.sum(), "LOC": 0.5}[check.PLUGIN.short]
    assert info.rate_degradation == pytest.approx(expected, rel=0.05)


@CHECKS
@pytest.mark.parametrize(("models_type", "kinds"), [
    ("best-model", {""}),
    ("best-param", {""}),
    ("best-nonparam", {""}),
    ("best-both", {" of parametric", " of non-parametric"}),
    ("all-param", {" of linear", " of power"}),
    ("all-nonparam", {" of regressogram"}),
    ("all-models", {" of linear", " of power", " of regressogram"}),
])  # fmt: skip
def test_types_of_models(check: Any, models_type: str, kinds: set[str]) -> None:
    old = modelled(
        formula("f", "linear", 0, 2), formula("f", "power", 2, 1, r_square=0.5), bucketed("f", [20, 60, 100])
    )
    new = modelled(
        formula("f", "linear", 0, 3), formula("f", "power", 3, 1, r_square=0.5), bucketed("f", [30, 90, 150])
    )
    found = compare(check, old, new, models_type)
    what = {"INT": "integral", "LOC": "local"}[check.PLUGIN.short]
    assert found.keys() == {("f", what + kind) for kind in kinds}
    for info in found.values():
        assert info.result is PerformanceChange.Degradation
        assert info.rate_degradation == pytest.approx(0.5)
        assert info.confidence_rate == (0.5 if info.type.endswith("power") else 0.9)


@CHECKS
def test_an_unknown_type_of_models(check: Any) -> None:
    with pytest.raises(UsageError, match="best-guess"):
        compare(check, modelled(formula("f", "linear", 1, 2)), modelled(), "best-guess")


@CHECKS
def test_uids_without_a_counterpart(check: Any) -> None:
    extra = profile({"unmodelled": [1.0], "f": [1.0], "gone": [1.0], "half": [1.0]}, [1.0])
    old, new = Profile(extra.serialize()), profile({"f": [1.0], "new": [1.0], "half": [1.0]}, [1.0])
    old["models"] = [
        formula("f", "linear", 1, 2),
        formula("gone", "linear", 1, 2),
        formula("half", "power", 1, 2),
    ]
    new["models"] = [formula("f", "linear", 1, 2), formula("new", "constant", 4)]
    found = {location: info for (location, _), info in compare(check, old, new).items()}
    assert {name: info.result for name, info in found.items()} == {
        "f": PerformanceChange.NoChange, "gone": PerformanceChange.NotInTarget,
        "half": PerformanceChange.Unknown, "new": PerformanceChange.NotInBaseline
    }  # fmt: skip
    assert (found["gone"].from_baseline, found["gone"].to_target) == ("linear", "-")
    assert (found["half"].from_baseline, found["half"].to_target) == ("power", "no model")
    assert (found["new"].from_baseline, found["new"].to_target) == ("-", "constant")


@CHECKS
def test_models_of_other_fields_are_not_compared(check: Any) -> None:
    old = formula("f", "linear", 1, 2)
    info = one(check, old, {**old, "of_key": "exclusive", "per_key": "snapshot"})
    assert info.result is PerformanceChange.Unknown
    both = one(check, {**old, "of_key": "exclusive"}, {**old, "of_key": "exclusive"})
    assert (both.result, both.from_baseline) == (PerformanceChange.NoChange, "62 (linear)")


@CHECKS
@pytest.mark.parametrize(("models_type", "what", "maker"), [
    ("", "the baseline has no models", "regression-analysis"),
    ("best-param", "the baseline and the target have no models of the kind 'best-param'",
     "regression-analysis"),
    ("all-nonparam", "the baseline has no models of the kind 'all-nonparam'", "regressogram"),
])  # fmt: skip
def test_profiles_without_models(check: Any, models_type: str, what: str, maker: str) -> None:
    old = profile({"f": X})
    new = Regressogram().process(profile({"f": X}), RegressogramParams(), NO_POSTPROCESS_CONTEXT)
    with pytest.raises(ProfileError, match=what) as caught:
        compare(check, old, new, models_type)
    assert "perun postprocessby" in caught.value.hint
    assert maker in caught.value.hint


def test_the_defaults_are_those_of_the_method() -> None:
    assert IntegralParams() == IntegralParams(no_change=0.1, maybe=0.25, r_square=0.15)
