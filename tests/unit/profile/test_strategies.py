"""Models chosen by a strategy of `perun check --models-type` (manual 2.2)."""

import math
from typing import Any

import pytest

from perun.core.errors import UsageError
from perun.models.record import ModelRecord
from perun.profile.factory import Profile
from perun.profile.strategies import STRATEGIES


def parametric(uid: Any, model: str, r_square: Any, **more: Any) -> dict[str, Any]:
    coefficients = [{"name": f"b{n}", "value": value} for n, value in enumerate((1.5, 2.5, 3.5))]
    interval = {"x_start": 0, "x_end": 10, "method": "full"}
    return {"uid": uid, "model": model, "r_square": r_square, "coeffs": coefficients, **interval, **more}


LINEAR = parametric("f", "linear", 0.75)
POWER = parametric("f", "power", 0.5)
BUCKETS = {
    "uid": "f", "method": "regressogram", "r_square": 0.875, "bucket_stats": [13.0, 25],
    "bucket_method": "doane", "x_start": 0.0, "x_end": 9.0
}  # fmt: skip
KERNEL = {
    "uid": {"function": "g", "source": "a.c"}, "method": "kernel_regression", "model": "kernel_regression",
    "kernel_mode": "estimator", "r_square": 0.25, "kernel_stats": [1.0], "per_key": "structure-unit-size"
}  # fmt: skip
HOPELESS = parametric("h", "constant", 0)


@pytest.fixture
def profile() -> Profile:
    return Profile(models=[POWER, LINEAR, BUCKETS, KERNEL, HOPELESS])


def chosen(found: dict[str, ModelRecord]) -> dict[str, Any]:
    return {name: record.model for name, record in found.items()}


@pytest.mark.parametrize(("strategy", "expected"), [
    ("best-model", {"f": BUCKETS, "a.c:g": KERNEL}),
    ("best-param", {"f": LINEAR}),
    ("best-nonparam", {"f": BUCKETS, "a.c:g": KERNEL}),
    ("best-both", {"f, linear": LINEAR, "f, regressogram": BUCKETS, "a.c:g, kernel_regression": KERNEL}),
    ("all-models", {
        "f, power": POWER, "f, linear": LINEAR, "f, regressogram": BUCKETS,
        "a.c:g, kernel_regression": KERNEL, "h, constant": HOPELESS
    }),
    ("all-param", {"f, power": POWER, "f, linear": LINEAR, "h, constant": HOPELESS}),
    ("all-nonparam", {"f, regressogram": BUCKETS, "a.c:g, kernel_regression": KERNEL}),
])  # fmt: skip
def test_strategies(profile: Profile, strategy: str, expected: dict[str, Any]) -> None:
    found = chosen(profile.all_filtered_models(strategy))
    assert found == expected
    assert list(found) == list(expected)


def test_every_strategy_of_the_manual_is_there() -> None:
    manual = "best-model best-param best-nonparam all-param all-nonparam all-models best-both"
    assert set(STRATEGIES) == set(manual.split())
    for strategy in STRATEGIES:
        assert Profile().all_filtered_models(strategy) == {}
    with pytest.raises(UsageError, match="no strategy is called 'best'") as caught:
        Profile().all_filtered_models("best")
    assert "best-model" in caught.value.hint


def test_a_parametric_record(profile: Profile) -> None:
    record = profile.all_filtered_models("best-param")["f"]
    assert record == ModelRecord("linear", 0.75, 1.5, 2.5, 3.5, 0.0, 10.0, "f", "full", (), "", LINEAR)
    assert record.is_parametric


def test_non_parametric_records_keep_their_values(profile: Profile) -> None:
    best = profile.all_filtered_models("best-nonparam")
    buckets, kernel = best["f"], best["a.c:g"]
    assert (buckets.type, buckets.method, buckets.values) == ("regressogram", "regressogram", (13.0, 25.0))
    assert (buckets.x_start, buckets.x_end, buckets.b0) == (0.0, 9.0, 0.0)
    assert buckets.model["bucket_method"] == "doane"
    assert kernel.values == (1.0,) and kernel.per_key == "structure-unit-size"
    assert math.isnan(kernel.x_start) and not kernel.is_parametric


def test_the_first_of_equally_good_models_is_the_best() -> None:
    first, second = parametric("f", "linear", 0.5), parametric("f", "power", 0.5)
    assert Profile(models=[first, second]).all_filtered_models("best-model")["f"].type == "linear"


@pytest.mark.parametrize("r_square", [None, "x", 0, -1, math.nan, True, 10**400])
def test_a_model_that_does_not_fit_is_never_the_best(r_square: Any) -> None:
    profile = Profile(models=[parametric("f", "power", r_square), parametric("f", "linear", "0.5")])
    assert profile.all_filtered_models("best-model")["f"].type == "linear"
    assert len(profile.all_filtered_models("all-models")) == 2


def test_names_of_models_of_one_kind() -> None:
    pieces = [parametric("f", "linear", 0.5, x_end=end) for end in (5, 10, 10, 10)]
    assert list(Profile(models=pieces).all_filtered_models("all-param")) == [
        "f, linear", "f, linear, x 0 to 10", "f, linear, x 0 to 10, 2", "f, linear, x 0 to 10, 3"
    ]  # fmt: skip


def test_the_best_model_is_chosen_on_one_scale() -> None:
    constant = parametric("f", "constant", 0.7, explained=0.0, points=20)
    power = parametric("f", "power", 0.6, explained=0.9, points=20)
    for strategy in ("best-model", "best-param"):
        assert Profile(models=[constant, power]).all_filtered_models(strategy)["f"].type == "power"


def test_clocks_are_told_apart() -> None:
    clocks = [parametric("./prog", "linear", 0.9, subtype=clock) for clock in ("real", "sys")]
    assert list(Profile(models=clocks).all_filtered_models("best-model")) == ["./prog [real]", "./prog [sys]"]


def test_models_of_old_profiles() -> None:
    profile = Profile(models=[{"x_interval_start": 1, "x_interval_end": 2, "coeffs": None}])
    (record,) = profile.all_filtered_models("all-models").values()
    assert (record.x_start, record.x_end, record.r_square, record.type) == (1.0, 2.0, 0.0, "")
