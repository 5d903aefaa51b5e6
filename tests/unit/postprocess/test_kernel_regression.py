"""Kernel regression of profiles: the model of the manual, modes by parameters, and the command line."""

import json
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

from perun.cli.plugins import command_of
from perun.core.errors import ConfigError, ProfileError, UsageError
from perun.models.kernel import estimates
from perun.models.kernel.estimates import KERNELS as KERNELS_MADE
from perun.models.kernel.estimates import ridge, smoothing
from perun.plugin.api import PostprocessContext
from perun.plugin.params import from_mapping, to_mapping
from perun.postprocess.kernel_regression import (
    BANDWIDTH_METHODS,
    KERNELS,
    KINDS,
    MODES,
    PLUGIN,
    SMOOTHINGS,
    KernelParams,
)
from perun.profile.factory import Profile
from perun.profile.format.json import dumps_pending, loads
from profiles import profile_of

X = [10, 12, 20, 31, 31, 40, 44, 51, 64]
Y = [115.5, 140.1, 200.7, 268.4, 270.1, 281.2, 276.0, 250.3, 180.9]


def profile(**uids: tuple[list[Any], list[Any]]) -> Profile:
    resources = (
        {"uid": uid, "structure-unit-size": x, "amount": y}
        for uid, (xs, ys) in uids.items()
        for x, y in zip(xs, ys, strict=True)
    )
    return profile_of(resources, "mixed", {}, cmd="x", collector="trace")


def process(given: Profile, notes: list[str] | None = None, **values: Any) -> list[dict[str, Any]]:
    params = from_mapping(KernelParams, values, "test")
    ctx = PostprocessContext(note=(notes if notes is not None else []).append)
    return list(PLUGIN().process(given, params, ctx)["models"])


def test_a_model_is_as_the_manual_shows_it() -> None:
    notes: list[str] = []
    (model,) = process(profile(quad=(X, Y)), notes)
    expected = estimates.estimator_settings(X, Y)
    assert isinstance(expected, estimates.KernelEstimate)
    assert model == {
        "uid": "quad", "per_key": "structure-unit-size", "of_key": "amount", "model": "kernel_regression",
        "method": "kernel_regression", "kernel_mode": "estimator", "r_square": expected.r_square,
        "bandwidth": expected.bandwidth, "x_start": 10, "x_end": 64, "kernel_stats": expected.values.tolist()
    }  # fmt: skip
    assert len(model["kernel_stats"]) == len(X)
    assert 0.9 < model["r_square"] <= 1
    assert notes == ["chosen from the profile: --of-key 'amount', --per-key 'structure-unit-size'"]


MADE: dict[str, tuple[dict[str, Any], Any]] = {
    "user": (
        {"kernel_mode": "user-selection", "bandwidth_value": 7.5, "reg_type": "lc"},
        lambda x, y: estimates.user_selection(x, y, 7.5, "lc"),
    ),
    "method": ({"kernel_mode": "method-selection"}, lambda x, y: estimates.method_selection(x, y, "scott")),
    "silverman": (
        {"kernel_mode": "method_selection", "bandwidth-method": "silverman"},
        lambda x, y: estimates.method_selection(x, y, "silverman"),
    ),
    "smoothing": ({"kernel_mode": "kernel-smoothing"}, smoothing),
    "tricube": (
        {"kernel_mode": "kernel-smoothing", "kernel_type": "tricube", "bandwidth_value": 30},
        lambda x, y: smoothing(x, y, "tricube", bandwidth=30.0),
    ),
    "polynomial": (
        {"kernel_mode": "kernel-smoothing", "smoothing_method": "local-polynomial", "polynomial_order": 2,
         "bandwidth_method": "silverman"},
        lambda x, y: smoothing(x, y, "epanechnikov", "local-polynomial", "silverman", 2),
    ),
    "ridge": (
        {"kernel_mode": "kernel-ridge", "gamma_range": [0.001, 0.01], "gamma_step": 0.002},
        lambda x, y: ridge(x, y, [0.001, 0.003, 0.005, 0.007, 0.009]),
    ),
    "aic": (
        {"bandwidth_method": "aic", "reg_type": "ll"},
        lambda x, y: estimates.estimator_settings(x, y, estimates.EstimatorSettings("ll", "aic")),
    ),
    "sub-samples": (
        {"efficient": True, "n_sub_samples": 5, "return_median": True},
        lambda x, y: estimates.estimator_settings(
            x, y, estimates.EstimatorSettings(efficient=True, n_sub_samples=5, return_median=True)
        ),
    ),
    "re-samples": (
        {"efficient": True, "randomize": True, "n_sub_samples": 6, "n_re_samples": 3},
        lambda x, y: estimates.estimator_settings(
            x, y, estimates.EstimatorSettings(efficient=True, randomize=True, n_sub_samples=6, n_re_samples=3)
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(MADE))
def test_parameters_of_a_job_matrix_reach_the_estimate(name: str) -> None:
    values, make = MADE[name]
    (model,) = process(profile(f=(X, Y)), **values)
    expected = make(X, Y)
    assert model["bandwidth"] == pytest.approx(expected.bandwidth)
    assert model["kernel_stats"] == pytest.approx(expected.values.tolist())
    assert model["r_square"] == pytest.approx(expected.r_square)
    assert model["kernel_mode"] == KINDS[values.get("kernel_mode", next(iter(MODES))).replace("_", "-")]


def test_names_of_parameters_are_names_of_the_mathematics() -> None:
    assert set(KERNELS) == KERNELS_MADE.keys()
    assert set(MODES) == KINDS.keys()
    for method in SMOOTHINGS:
        process(profile(f=(X, Y)), kernel_mode="kernel-smoothing", smoothing_method=method)
    for mode, methods in BANDWIDTH_METHODS.items():
        for method in methods:
            process(profile(f=(X, Y)), kernel_mode=mode, bandwidth_method=method)


def test_each_uid_gets_a_model_and_what_has_none_is_told() -> None:
    notes: list[str] = []
    models = process(
        profile(g=([1], [2]), f=(X, Y), h=([3, 3], [1, 2])), notes, per_key="structure-unit-size"
    )
    assert [model["uid"] for model in models] == ["f"]
    assert notes == [
        "chosen from the profile: --of-key 'amount'",
        "'g': no model: it has one point only",
        "'h': no model: all x are equal",
    ]


def test_present_models_stay() -> None:
    given = profile(f=(X, Y))
    given["models"] = [{"uid": "old", "model": "constant", "coeffs": []}]
    assert [model["uid"] for model in process(given)] == ["old", "f"]


def test_a_profile_without_any_model_is_an_error() -> None:
    with pytest.raises(ProfileError, match="all x are equal"):
        process(profile(f=([3, 3], [1, 2])))
    with pytest.raises(ProfileError, match="nonsense"):
        process(profile(f=(X, Y)), of_key="nonsense")


def test_a_bandwidth_that_was_raised_is_told() -> None:
    notes: list[str] = []
    values = {
        "kernel_mode": "kernel-smoothing",
        "smoothing_method": "local-polynomial",
        "bandwidth_value": 0.5,
    }
    (model,) = process(profile(f=(X, Y)), notes, **values)
    assert model["bandwidth"] > 0.5
    assert notes[-1].startswith("the bandwidth 0.5 is too small for 1 model")
    notes.clear()
    process(profile(f=(X, Y)), notes, **values | {"bandwidth_value": 50})
    assert not any("too low" in note for note in notes)


@pytest.mark.parametrize(("low", "high", "step", "gammas"), [
    (1e-5, 1e-4, 1e-5, [k * 1e-5 for k in range(1, 10)]),
    (0.25, 1.25, 0.5, [0.25, 0.75]),
    (0.25, 1.3, 0.5, [0.25, 0.75, 1.25]),
    (0.5, 0.5, 0.1, [0.5]),
    (0.1, 0.35, 1.0, [0.1, 0.2, 0.3]),  # the step is longer than the range, so it becomes 0.1
])  # fmt: skip
def test_gammas_of_a_range(low: float, high: float, step: float, gammas: list[float]) -> None:
    params = from_mapping(KernelParams, {"gamma_range": [low, high], "gamma_step": step}, "test")
    assert params.gammas == pytest.approx(gammas)


@pytest.mark.parametrize(("values", "message"), [
    ({"kernel_mode": "nonsense"}, "kernel_mode must be one of estimator-settings"),
    ({"kernel_mode": "user-selection"}, "user-selection needs a bandwidth_value"),
    ({"kernel_mode": "user-selection", "bandwidth_value": 1e-12}, "bandwidth_value must be at least 1e-10"),
    ({"kernel_mode": "user-selection", "bandwidth_value": "inf"},
     "bandwidth_value must be a finite number of at least"),
    ({"kernel_mode": "user-selection", "bandwidth_value": -1}, "bandwidth_value must be at least 1e-10"),
    ({"bandwidth_method": "scott"}, "bandwidth_method of estimator-settings must be one of cv_ls, aic"),
    ({"kernel_mode": "kernel-smoothing", "bandwidth_method": "aic"},
     "bandwidth_method of kernel-smoothing must be one of scott, silverman"),
    ({"kernel_type": "nonsense"}, "kernel_type must be one of epanechnikov"),
    ({"kernel_mode": "kernel-ridge", "gamma_range": [2, 1]}, "the smaller one first"),
    ({"kernel_mode": "kernel-ridge", "gamma_range": [0, 1]}, "above 0"),
    ({"kernel_mode": "kernel-ridge", "gamma_range": [1]}, "must be two numbers"),
    ({"kernel_mode": "kernel-ridge", "gamma_range": ["a", "b"]}, "must be two numbers"),
    ({"kernel_mode": "kernel-ridge", "gamma_range": [0.1, "nan"]}, "above 0"),
    ({"kernel_mode": "kernel-ridge", "gamma_range": [0.1, 1], "gamma_step": 1e-9}, "more than 10000"),
    ({"polynomial_order": 0}, "polynomial_order must be at least 1"),
    ({"n_sub_samples": 0}, "n_sub_samples must be at least 1"),
])  # fmt: skip
def test_wrong_parameters_are_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_mapping(KernelParams, values, "test")


def test_parameters_can_be_noted_and_read_again() -> None:
    for values, _ in MADE.values():
        params = from_mapping(KernelParams, values, "test")
        assert from_mapping(KernelParams, json.loads(json.dumps(to_mapping(params))), "test") == params


def test_the_processed_profile_is_written_and_read() -> None:
    given = profile(f=(X, Y))
    process(given)
    assert loads(dumps_pending(given), "test")["models"] == given["models"]


# -- the command line -------------------------------------------------------------------------------------


class Session:
    """What the command finds in `ctx.obj`."""

    def __init__(self) -> None:
        self.profile = profile(f=(X, Y))
        self.calls: list[tuple[Profile, str, KernelParams]] = []

    def run_postprocessor(self, profile: Profile, name: str, params: KernelParams) -> None:
        self.calls.append((profile, name, params))


COMMAND = command_of(
    PLUGIN(), "kernel-regression", lambda session, *told: session.run_postprocessor(session.profile, *told)
)


def called(*arguments: str) -> KernelParams:
    session = Session()
    result = CliRunner().invoke(COMMAND, arguments, obj=session, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    ((given, name, params),) = session.calls
    assert given is session.profile
    assert name == "kernel_regression"
    return params


@pytest.mark.parametrize(("arguments", "values"), [
    ("estimator-settings", {}),
    ("-of exclusive -per order estimator-settings", {"of_key": "exclusive", "per_key": "order"}),
    ("--of-key=a --per-key=b estimator-settings", {"of_key": "a", "per_key": "b"}),
    ("estimator-settings -rt lc -bw aic --efficient --randomize -nsub 7 -nres 3 --return-median", {
        "reg_type": "lc", "bandwidth_method": "aic", "efficient": True, "randomize": True,
        "n_sub_samples": 7, "n_re_samples": 3, "return_median": True
    }),
    (
        "estimator-settings --reg-type=ll --bandwidth-method=cv_ls --uniformly --no-randomize "
        "--n-sub-samples=50 --n-re-samples=25 --return-mean",
        {},
    ),
    ("user-selection -bv 3", {"kernel_mode": "user-selection", "bandwidth_value": 3}),
    ("user-selection --bandwidth-value 0.5 --reg-type lc",
     {"kernel_mode": "user-selection", "bandwidth_value": 0.5, "reg_type": "lc"}),
    ("method-selection", {"kernel_mode": "method-selection", "bandwidth_method": "scott"}),
    ("method-selection -rt lc -bm silverman",
     {"kernel_mode": "method-selection", "reg_type": "lc", "bandwidth_method": "silverman"}),
    ("kernel-smoothing", {"kernel_mode": "kernel-smoothing"}),
    ("kernel-smoothing -kt normal4 -sm local-polynomial -bm silverman -bv 2 -q 5", {
        "kernel_mode": "kernel-smoothing", "kernel_type": "normal4",
        "smoothing_method": "local-polynomial", "bandwidth_method": "silverman", "bandwidth_value": 2,
        "polynomial_order": 5
    }),
    ("kernel-ridge", {"kernel_mode": "kernel-ridge"}),
    ("kernel-ridge -gr 0.01 0.1 -gs 0.01",
     {"kernel_mode": "kernel-ridge", "gamma_range": [0.01, 0.1], "gamma_step": 0.01}),
])  # fmt: skip
def test_options_are_those_of_the_manual(arguments: str, values: dict[str, Any]) -> None:
    assert called(*arguments.split()) == from_mapping(KernelParams, values, "test")


@pytest.mark.parametrize(("arguments", "message"), [
    ("user-selection", "Missing option '-bv'"),
    ("user-selection -bv 0", "-bv"),
    ("estimator-settings -bw scott", "'scott' is not one of"),
    ("method-selection -bm aic", "'aic' is not one of"),
    ("kernel-smoothing -kt box", "'box' is not one of"),
    ("kernel-smoothing -q 0", "-q"),
    ("kernel-ridge -gr 2 1", "the smaller one first"),
    ("kernel-ridge -gs 0", "-gs"),
    ("nonsense", "No such command 'nonsense'"),
])  # fmt: skip
def test_wrong_options_are_wrong_usage(arguments: str, message: str) -> None:
    result = CliRunner().invoke(COMMAND, arguments.split(), obj=Session())
    assert result.exit_code == 2 or isinstance(result.exception, UsageError)
    assert message in f"{result.output}{result.exception}"


def test_modes_are_the_commands() -> None:
    assert isinstance(COMMAND, click.Group)
    assert list(COMMAND.commands) == list(MODES)
    for command in COMMAND.commands.values():
        assert isinstance(command, click.Command)
        assert all(option.help for option in command.params if isinstance(option, click.Option))
    assert np.isfinite(called("kernel-ridge").gammas).all()
