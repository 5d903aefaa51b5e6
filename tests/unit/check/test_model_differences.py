"""Fast Check, Linear Regression, Polynomial Regression: known changes of known size, and their properties."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perun.core.errors import ProfileError
from perun.plugin.api import NO_POSTPROCESS_CONTEXT, CheckContext
from perun.postprocess.regression_analysis import RegressionAnalysis, RegressionParams
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile
from shared import examples

CHECKS = ("fast_check", "linear_regression", "polynomial_regression")
SIZES = np.arange(1.0, 101.0)
CURVES: Mapping[str, Callable[[Any], Any]] = {
    "constant": lambda x: 0 * x + 50, "linear": lambda x: 10 + 2 * x,
    "logarithmic": lambda x: 3 + 7 * np.log(x), "quadratic": lambda x: 5 + x + 0.3 * x**2,
    "power": lambda x: 2 * x**2.5, "exponential": lambda x: 3 * 1.04**x
}  # fmt: skip
TYPES = {
    "constant": ("constant", "constant", "constant"), "linear": ("linear", "linear", "linear"),
    "logarithmic": ("logarithmic", "quadratic", "cubic"),
    "quadratic": ("quadratic", "quadratic", "quadratic"), "power": ("power", "quadratic", "quadratic"),
    "exponential": ("exponential", "quadratic", "cubic")
}  # fmt: skip
"""The type of a difference that is such a curve, in the order of :data:`CHECKS`."""
NO, MAYBE_WORSE, WORSE = (
    PerformanceChange.NoChange,
    PerformanceChange.MaybeDegradation,
    PerformanceChange.Degradation,
)


def profile(
    curves: Mapping[str, Any], method: str = "full", sizes: Any = SIZES, unit: str = "ms", **fields: Any
) -> Profile:
    """The models of uids whose amounts are `curves` at `sizes`."""
    made = Profile({"header": {"type": "mixed", "units": {"mixed(time delta)": unit}}})
    made.update_resources([
        {"uid": uid, "type": "mixed", "subtype": "time delta", "amount": y, "structure-unit-size": x}
        | fields
        for uid, curve in curves.items()
        for x, y in zip(sizes.tolist(), np.asarray(curve).tolist(), strict=True)
    ])  # fmt: skip
    return RegressionAnalysis().process(made, RegressionParams(method=method), NO_POSTPROCESS_CONTEXT)


def compare(name: str, baseline: Profile, target: Profile, **params: float) -> dict[str, DegradationInfo]:
    check: Any = importlib.import_module(f"perun.check.{name}").PLUGIN()
    found = list(check.compare(baseline, target, check.Params(**params), CheckContext()))
    changes = {change.location: change for change in found}
    assert len(changes) == len(found)
    return changes


def mirrored(change: PerformanceChange) -> PerformanceChange:
    if change is PerformanceChange.Unknown:
        return change
    return PerformanceChange(-change.value)


@pytest.fixture(params=CHECKS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def same() -> Profile:
    return profile({kind: curve(SIZES) for kind, curve in CURVES.items()})


@pytest.mark.parametrize("changed", CURVES)
@pytest.mark.parametrize(
    ("percent", "expected"), [(1, NO), (5, NO), (25, MAYBE_WORSE), (26, WORSE), (100, WORSE), (1000, WORSE)]
)
@pytest.mark.each_value("name percent", "changed")
def test_known_shifts(name, changed, percent, expected, same) -> None:
    factor = 1 + percent / 100
    shifted = {kind: curve(SIZES) * (factor if kind == changed else 1) for kind, curve in CURVES.items()}
    for baseline, target, verdict, rate in (
        (same, profile(shifted), expected, percent),
        (profile(shifted), same, mirrored(expected), 100 * (1 / factor - 1)),
    ):
        found = compare(name, baseline, target)
        assert {uid for uid, change in found.items() if change.result is not NO} <= {changed}
        change = found[changed]
        assert change.result is verdict
        assert change.rate_degradation == change.rate_degradation_relative == pytest.approx(rate)
        assert change.type == ("-" if verdict is NO else TYPES[changed][CHECKS.index(name)])
        assert (change.confidence_type, change.confidence_rate) == ("r_square", pytest.approx(1))


@pytest.mark.parametrize("added", ["constant", "linear", "quadratic"])
def test_the_type_is_that_of_what_was_added(name: str, added: str) -> None:
    new = {kind: curve(SIZES) + CURVES[added](SIZES) for kind, curve in CURVES.items()}
    for kind in ("constant", "linear", "quadratic"):  # the sum is one of the models again
        change = compare(name, profile({"f": CURVES[kind](SIZES)}), profile({"f": new[kind]}))["f"]
        assert change.result is WORSE
        assert change.type == added


def test_values_have_units_and_the_models(name: str) -> None:
    old, new = profile({"f": CURVES["linear"](SIZES)}), profile({"f": CURVES["quadratic"](SIZES)})
    change = compare(name, old, new)["f"]
    assert (change.from_baseline, change.to_target) == ("111.0ms (linear)", "1066.09ms (quadratic)")
    assert len(change.to_storage_record().split(" ")) == 9


def test_new_gone_and_unknown_uids(name: str) -> None:
    line = CURVES["linear"](SIZES)
    old, new = profile({"f": line, "old": line, "less": line}), profile({"f": line, "new": line, "few": line})
    old.update_resources([{"uid": "few", "type": "mixed", "amount": 1, "structure-unit-size": 2}])
    new.update_resources([{"uid": "less", "type": "mixed", "amount": 1, "structure-unit-size": 2}])
    for both in (old, new):
        both.update_resources([{"uid": "neither", "type": "mixed", "amount": 1}])
    found = compare(name, old, new)
    assert {uid: change.result for uid, change in found.items()} == {
        "f": NO, "old": PerformanceChange.NotInTarget, "new": PerformanceChange.NotInBaseline,
        "few": PerformanceChange.Unknown, "less": PerformanceChange.Unknown
    }  # fmt: skip
    assert (found["old"].from_baseline, found["old"].to_target) == ("linear", "-")
    assert (found["few"].from_baseline, found["few"].to_target) == ("no model", "linear")
    assert list(found) == sorted(found)


def test_without_a_common_x(name: str) -> None:
    old = profile({"f": CURVES["linear"](SIZES)})
    new = profile({"f": CURVES["linear"](SIZES + 100)}, sizes=SIZES + 100)
    change = compare(name, old, new)["f"]
    assert change.result is PerformanceChange.Unknown
    assert change.from_baseline == "models for x = 1 to 100"
    assert change.to_target == "models for x = 101 to 200"


def test_of_part_of_the_x(name: str) -> None:
    old = profile({"f": CURVES["power"](SIZES)})
    longer = np.arange(1.0, 1001.0)
    new = profile({"f": 2 * CURVES["power"](longer)}, sizes=longer)
    assert compare(name, old, new)["f"].rate_degradation == pytest.approx(100)


def test_a_profile_without_models(name: str) -> None:
    with_models = profile({"f": CURVES["linear"](SIZES)})
    without = Profile({key: value for key, value in with_models.items() if key != "models"})
    with pytest.raises(ProfileError, match="the target has no models of a regression analysis") as caught:
        compare(name, with_models, without)
    assert "perun postprocessby <profile> regression-analysis" in caught.value.hint


def test_models_of_other_fields_are_not_compared(name: str) -> None:
    old = profile({"f": CURVES["linear"](SIZES)})
    new = profile({"f": CURVES["linear"](SIZES)})
    for model in new["models"]:
        model.update(of_key="amount", per_key="cluster")
    change = compare(name, old, new)["f"]
    assert change.result is PerformanceChange.Unknown
    assert change.to_target == "model of 'amount' depending on 'cluster'"


@pytest.mark.parametrize("method", ["interval", "bisection"])
def test_pieces_are_compared_where_they_are(name: str, method: str) -> None:
    bent = np.where(SIZES <= 50, 100, 100 + 30 * (SIZES - 50))
    old = profile({"f": bent, "g": bent}, method)
    new = profile({"f": np.where(SIZES <= 50, 100, 2 * bent), "g": bent}, method)
    found = compare(name, old, new)
    assert found["g"].result is NO
    change = found["f"]
    assert change.result is WORSE
    assert change.rate_degradation == pytest.approx(50, abs=5)
    assert "(constant, " in change.from_baseline
    assert change.from_baseline.endswith("linear)")


def test_curves_that_cross_are_told_in_parts(name: str) -> None:
    old, new = profile({"f": CURVES["constant"](SIZES)}), profile({"f": CURVES["linear"](SIZES)})
    change = compare(name, old, new)["f"]
    assert change.result is WORSE
    assert [part[0] for part in change.partial_intervals] == [PerformanceChange.Optimization, WORSE]
    assert change.partial_intervals[0][3] == pytest.approx(20, abs=0.1)
    # The rates of parts are shares: from 50 to 12 ... 50 the target is 38 % below the baseline on average.
    assert change.partial_intervals[0][1] == pytest.approx(-0.38, abs=0.01)
    assert change.partial_intervals[1][1] == pytest.approx(1.6, abs=0.01)


def test_where_a_model_is_negative_nothing_is_compared(name: str) -> None:
    """A line below 0 at small sizes, as a fit may be, says nothing of them: -6417 is no amount."""
    old = profile({"f": -6417 + 150 * SIZES})
    new = profile({"f": 4 * (-6417 + 150 * SIZES)})
    change = compare(name, old, new)["f"]
    assert (change.result, change.rate_degradation) == (WORSE, pytest.approx(300))
    back = compare(name, new, old)["f"]
    assert (back.result, back.rate_degradation) == (PerformanceChange.Optimization, pytest.approx(-75))
    assert compare(name, old, profile({"f": -6417 + 150 * SIZES + 40}))["f"].result in (NO, MAYBE_WORSE)


def test_models_that_explain_nothing_are_no_evidence(name: str) -> None:
    chosen = np.random.default_rng(3)
    old, new = (profile({"f": chosen.uniform(1, 100, 100) * factor}) for factor in (1, 1.5))
    for one in (old, new):
        one["models"] = [model for model in one["models"] if model["model"] == "linear"]
    change = compare(name, old, new)["f"]
    assert change.result is PerformanceChange.Unknown
    assert change.rule.startswith("the models explain 0.0")
    assert change.rule.endswith("of the measured points, less than r_square = 0.15")
    assert compare(name, old, new, r_square=0.0)["f"].result in (MAYBE_WORSE, WORSE)


def test_one_interrupted_call_is_no_change(name: str) -> None:
    line = CURVES["linear"](SIZES)
    interrupted = np.where(SIZES == 90, 20_000, line)
    change = compare(name, profile({"f": line}), profile({"f": interrupted}), r_square=0.0)["f"]
    assert change.result is NO
    assert change.rate_degradation > 5
    assert change.rule == "the models differ by more, but the medians of the measured points by 0.0 % only"
    slower = compare(name, profile({"f": line}), profile({"f": 2 * interrupted}), r_square=0.0)["f"]
    assert slower.result is WORSE


def test_other_limits(name: str) -> None:
    old, new = profile({"f": CURVES["linear"](SIZES)}), profile({"f": 1.08 * CURVES["linear"](SIZES)})
    assert compare(name, old, new)["f"].result is MAYBE_WORSE
    assert compare(name, old, new, unchanged=8)["f"].result is NO
    assert compare(name, old, new, changed=7)["f"].result is WORSE


NOISY = st.integers(0, 2**32 - 1).map(
    lambda seed: 1 + 0.03 * np.random.default_rng(seed).standard_normal(100)
)


@settings(max_examples=20)
@given(st.lists(NOISY, min_size=2, max_size=2), st.sampled_from([*CURVES][1:]))
def test_noise_is_no_change(noise: list[Any], kind: str) -> None:
    # But for the small x of a parabola, where it is lost in the noise of the large ones.
    old, new = (profile({"f": CURVES[kind](SIZES) * factor}) for factor in noise)
    allowed = (NO, MAYBE_WORSE, mirrored(MAYBE_WORSE)) if kind == "quadratic" else (NO,)
    assert compare("fast_check", old, new)["f"].result in allowed


PAIR = st.tuples(st.sampled_from([*CURVES]), st.sampled_from([*CURVES]), st.floats(0.1, 10))
AMOUNTS = st.tuples(PAIR, st.one_of(st.none(), NOISY))
EXACT_ONLY = ("constant",)


def two_profiles(drawn: Any, scale: float = 1) -> tuple[Profile, Profile]:
    (one, other, factor), noise = drawn
    curves = [scale * CURVES[one](SIZES), scale * factor * CURVES[other](SIZES)]
    if noise is not None:
        # The rating of a constant depends on the unit where its points do not lie on a level line.
        curves = [
            curve * (1 if kind in EXACT_ONLY else noise)
            for kind, curve in zip((one, other), curves, strict=True)
        ]
    return profile({"f": curves[0]}), profile({"f": curves[1]})


@settings(max_examples=examples(30))
@given(AMOUNTS, st.sampled_from(CHECKS))
def test_swapping_mirrors(drawn: Any, name: str) -> None:
    old, new = two_profiles(drawn)
    there, back = compare(name, old, new)["f"], compare(name, new, old)["f"]
    assert back.result is mirrored(there.result)
    assert (back.from_baseline, back.to_target) == (there.to_target, there.from_baseline)
    assert (back.type, back.confidence_rate) == (there.type, there.confidence_rate)
    if there.result not in (NO, PerformanceChange.Unknown):
        assert there.rate_degradation * back.rate_degradation < 0


@settings(max_examples=examples(30))
@given(AMOUNTS, st.sampled_from(CHECKS))
def test_nothing_changes_against_itself(drawn: Any, name: str) -> None:
    for one in two_profiles(drawn):
        change = compare(name, one, one)["f"]
        assert (change.result, change.rate_degradation) == (NO, 0)


@settings(max_examples=examples(30))
@given(AMOUNTS, st.sampled_from(CHECKS), st.floats(1e-6, 1e6))
def test_scaling_both_changes_no_verdict(drawn: Any, name: str, scale: float) -> None:
    plain = compare(name, *two_profiles(drawn))["f"]
    scaled = compare(name, *two_profiles(drawn, scale))["f"]
    assert (scaled.result, scaled.type) == (plain.result, plain.type)
    assert scaled.rate_degradation == pytest.approx(plain.rate_degradation, rel=1e-6, abs=1e-6)
