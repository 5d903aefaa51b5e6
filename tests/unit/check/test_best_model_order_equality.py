"""Best Model Order Equality: changes of order, confidence, pieces, and properties."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perun.check._common.model_pairs import MODELS
from perun.check.best_model_order_equality import ORDER, PLUGIN, OrderParams
from perun.core.errors import ProfileError
from perun.plugin.api import NO_POSTPROCESS_CONTEXT, CheckContext
from perun.postprocess.regression_analysis import RegressionAnalysis, RegressionParams
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile
from shared import examples

SIZES = np.arange(1.0, 101.0)
CURVES: Mapping[str, Callable[[Any], Any]] = {
    "constant": lambda x: 0 * x + 50, "logarithmic": lambda x: 3 + 7 * np.log(x),
    "linear": lambda x: 10 + 2 * x, "quadratic": lambda x: 5 + x + 0.3 * x**2, "power": lambda x: 2 * x**2.5,
    "exponential": lambda x: 3 * 1.04**x
}  # fmt: skip


def profile(curves: Mapping[str, Any], method: str = "full") -> Profile:
    made = Profile({"header": {"type": "mixed", "units": {"mixed(time delta)": "ms"}}})
    made.update_resources([
        {"uid": uid, "type": "mixed", "subtype": "time delta", "amount": y, "structure-unit-size": x}
        for uid, curve in curves.items()
        for x, y in zip(SIZES.tolist(), np.asarray(curve).tolist(), strict=True)
    ])  # fmt: skip
    return RegressionAnalysis().process(made, RegressionParams(method=method), NO_POSTPROCESS_CONTEXT)


def modelled(*models: tuple[str, float, float, float], uid: str = "f") -> Profile:
    """A profile with these models: type, r_square, start and end."""
    return Profile({
        "header": {"type": "mixed", "units": {"mixed": "ms"}},
        "models": [
            {"uid": uid, "model": kind, "method": "full", "r_square": r_square,
             "coeffs": [{"name": "b0", "value": 1.0}, {"name": "b1", "value": 2.0}], "x_start": start,
             "x_end": end}
            for kind, r_square, start, end in models
        ],
    })  # fmt: skip


def compare(baseline: Profile, target: Profile, **params: float) -> dict[str, DegradationInfo]:
    found = list(PLUGIN().compare(baseline, target, OrderParams(**params), CheckContext()))
    changes = {change.location: change for change in found}
    assert len(changes) == len(found)
    return changes


def verdict(order: float) -> PerformanceChange:
    if not order:
        return PerformanceChange.NoChange
    return PerformanceChange.Degradation if order > 0 else PerformanceChange.Optimization


def test_order_has_all_models() -> None:
    assert sorted(ORDER) == sorted(MODELS)


@pytest.mark.parametrize("old", CURVES)
@pytest.mark.parametrize("new", CURVES)
def test_known_changes(old: str, new: str) -> None:
    before = {"f": CURVES[old](SIZES)} | {kind: curve(SIZES) for kind, curve in CURVES.items()}
    found = compare(profile(before), profile(before | {"f": CURVES[new](SIZES)}))
    order = [*CURVES].index(new) - [*CURVES].index(old)
    change = found.pop("f")
    assert (change.result, change.rate_degradation, change.type) == (verdict(order), order, "order")
    assert (change.from_baseline, change.to_target) == (old, new)
    assert (change.confidence_type, change.confidence_rate) == ("r_square", pytest.approx(1, abs=1e-4))
    assert {other.result for other in found.values()} == {PerformanceChange.NoChange}


@pytest.mark.parametrize("percent", [1, 5, 25, 100, 1000])
def test_a_shift_is_no_change_of_order(percent: float) -> None:
    old = profile({kind: curve(SIZES) for kind, curve in CURVES.items()})
    new = profile({kind: curve(SIZES) * (1 + percent / 100) for kind, curve in CURVES.items()})
    for pair in ((old, new), (new, old)):
        assert {uid: change.result for uid, change in compare(*pair).items()} == dict.fromkeys(
            CURVES, PerformanceChange.NoChange
        )


def test_the_example_of_the_manual() -> None:
    old, new = modelled(("power", 0.995, 1, 100)), modelled(("linear", 0.99, 1, 100))
    change = compare(old, new)["f"]
    assert change.result is PerformanceChange.Optimization
    assert (change.from_baseline, change.to_target) == ("power", "linear")
    assert (change.confidence_type, change.confidence_rate, change.rate_degradation) == ("r_square", 0.99, -2)


@pytest.mark.parametrize(("r_square", "found"), [(0.9, True), (0.89, False)])
def test_both_models_must_fit(r_square: float, found: bool) -> None:
    poor, good = modelled(("quadratic", r_square, 1, 9)), modelled(("linear", 0.95, 1, 9))
    for pair in ((poor, good), (good, poor)):
        change = compare(*pair)["f"]
        assert (change.result is not PerformanceChange.NoChange) is found
        assert change.confidence_rate == r_square
    assert compare(good, poor, confidence=0.8)["f"].result is PerformanceChange.Degradation
    assert compare(good, poor, confidence=0.96)["f"].result is PerformanceChange.NoChange


def test_the_best_model_is_compared() -> None:
    old = modelled(("linear", 0.95, 1, 9), ("power", 0.91, 1, 9), ("constant", 0.2, 1, 9))
    new = modelled(("exponential", 0.3, 1, 9), ("quadratic", 0.97, 1, 9))
    change = compare(old, new)["f"]
    assert (change.from_baseline, change.to_target, change.rate_degradation) == ("linear", "quadratic", 1)


def test_a_line_is_no_parabola_by_rounding() -> None:
    old = modelled(("linear", 1 - 1e-15, 1, 9), ("quadratic", 1.0, 1, 9))
    assert compare(old, modelled(("linear", 1.0, 1, 9)))["f"].result is PerformanceChange.NoChange


def test_pieces_are_compared_one_by_one() -> None:
    old = modelled(("constant", 1, 1, 50), ("linear", 1, 51, 100))
    new = modelled(("constant", 1, 1, 52), ("power", 0.95, 53, 100))
    change = compare(old, new)["f"]
    assert change.result is PerformanceChange.Degradation
    assert (change.from_baseline, change.to_target, change.confidence_rate) == ("linear", "power", 0.95)
    # The rate of a part is the relative change of its integral: of 1 + 2x to x^2 in the second one.
    line, power = (100 - 53) + (100**2 - 53**2), (100**3 - 53**3) / 3
    assert change.partial_intervals == [
        (PerformanceChange.NoChange, 0, 1, 50),
        (PerformanceChange.Degradation, pytest.approx(power / line - 1), 53, 100),
    ]
    assert compare(new, old)["f"].rate_degradation == -2
    assert compare(old, old)["f"].result is PerformanceChange.NoChange


@pytest.mark.parametrize("method", ["interval", "bisection"])
def test_pieces_of_the_regression(method: str) -> None:
    kinked = np.where(SIZES <= 50, 100, 100 + 3 * (SIZES - 50))
    steep = np.where(SIZES <= 50, 100, 100 * 1.2 ** (SIZES - 50))
    change = compare(profile({"f": kinked}, method), profile({"f": steep}, method))["f"]
    assert change.result is PerformanceChange.Degradation
    assert (change.from_baseline, change.to_target) == ("linear", "exponential")


def test_new_gone_and_unknown_uids() -> None:
    old, new = modelled(("linear", 1, 1, 9), uid="old"), modelled(("power", 1, 1, 9), uid="new")
    found = compare(old, new)
    assert (found["old"].result, found["old"].from_baseline) == (PerformanceChange.NotInTarget, "linear")
    assert (found["new"].result, found["new"].to_target) == (PerformanceChange.NotInBaseline, "power")
    bad = modelled(("linear", 0, 1, 9), uid="old")
    change = compare(old, bad)["old"]
    assert (change.result, change.to_target) == (PerformanceChange.Unknown, "no model")
    assert compare(old, modelled(("linear", 1, 10, 19), uid="old"))["old"].result is PerformanceChange.Unknown


def test_models_without_a_formula_are_not_compared() -> None:
    steps = modelled()
    steps["models"] = [{"uid": "f", "model": "regressogram", "bucket_stats": [1, 2], "r_square": 1}]
    with pytest.raises(ProfileError, match="the baseline has no models of a regression analysis"):
        compare(steps, modelled(("linear", 1, 1, 9)))


NOISY = st.integers(0, 2**32 - 1).map(
    lambda seed: 1 + 0.05 * np.random.default_rng(seed).standard_normal(100)
)
KINDS = st.sampled_from([*CURVES])
DRAWN = st.tuples(KINDS, KINDS, NOISY, st.booleans())


def two_profiles(drawn: Any, scale: float = 1) -> tuple[Profile, Profile]:
    """Noise is on curves that are not constant, whose rating would depend on the unit."""
    old, new, noise, noisy = drawn
    curves = [
        scale * CURVES[kind](SIZES) * (noise if noisy and kind != "constant" else 1) for kind in (old, new)
    ]
    return profile({"f": curves[0]}), profile({"f": curves[1]})


@settings(max_examples=examples(30))
@given(DRAWN)
def test_swapping_mirrors(drawn: Any) -> None:
    old, new = two_profiles(drawn)
    there, back = compare(old, new)["f"], compare(new, old)["f"]
    assert back.result.value == -there.result.value
    assert back.rate_degradation == -there.rate_degradation
    assert (back.from_baseline, back.to_target) == (there.to_target, there.from_baseline)
    assert back.confidence_rate == there.confidence_rate


@settings(max_examples=examples(30))
@given(DRAWN)
def test_nothing_changes_against_itself(drawn: Any) -> None:
    for one in two_profiles(drawn):
        assert compare(one, one)["f"].result is PerformanceChange.NoChange


@settings(max_examples=examples(30))
@given(DRAWN, st.floats(1e-6, 1e6))
def test_scaling_both_changes_nothing(drawn: Any, scale: float) -> None:
    plain, scaled = compare(*two_profiles(drawn))["f"], compare(*two_profiles(drawn, scale))["f"]
    assert (scaled.result, scaled.rate_degradation) == (plain.result, plain.rate_degradation)
    assert (scaled.from_baseline, scaled.to_target) == (plain.from_baseline, plain.to_target)


def test_the_scale_of_logarithms_does_not_decide() -> None:
    """A power model fits the logarithms of a noisy line better than a line the amounts: that is no growth."""
    kinds = set()
    for seed in range(8):
        chosen = np.random.default_rng(seed)
        old, new = (
            profile({"f": (20 + 3 * SIZES) * np.exp(chosen.normal(0, 0.15, SIZES.size))}) for _ in range(2)
        )
        kinds.add(compare(old, new)["f"].result)
    assert kinds == {PerformanceChange.NoChange}


def test_interrupted_calls_are_no_growth() -> None:
    line = CURVES["linear"](SIZES)
    interrupted = np.where(np.isin(SIZES, (97, 99)), 5000, line)
    change = compare(profile({"f": line}), profile({"f": interrupted}))["f"]
    assert change.result is PerformanceChange.NoChange


def test_evidence_against_no_change_is_told() -> None:
    old, new = profile({"f": 100 + SIZES}), profile({"f": 100 + SIZES + 0.001 * SIZES**2})
    change = compare(old, new)["f"]
    assert (change.from_baseline, change.to_target) == ("linear", "quadratic")
    assert change.result is PerformanceChange.NoChange
    assert change.rule == "models of two kinds have the same shape here: they differ by a factor only"


def test_a_kind_that_comes_first_may_grow_faster() -> None:
    """A power comes after the quadratic model in the order, whatever its exponent is."""
    old, new = profile({"f": SIZES**1.2}), profile({"f": 3 + SIZES + 0.5 * SIZES**2})
    for pair, word in (((old, new), "slower"), ((new, old), "faster")):
        change = compare(*pair)["f"]
        assert change.result is PerformanceChange.NoChange
        assert f"but the target does not grow {word} surely: the exponents of n^b differ by" in change.rule
    flat = profile({"f": 50 * 1.004**SIZES})
    change = compare(profile({"f": SIZES**1.2}), flat)["f"]
    assert (change.from_baseline, change.to_target) == ("power", "exponential")
    assert change.rule.endswith("but the target does not grow faster at the largest sizes")
