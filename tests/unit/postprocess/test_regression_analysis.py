"""The regression analysis on profiles: what is noted in them, what is told, and its options."""

import json
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

from perun.cli.plugins import command_of
from perun.core.errors import ConfigError, ProfileError
from perun.models.regression import fits, methods
from perun.plugin.api import NO_POSTPROCESS_CONTEXT, PostprocessContext
from perun.plugin.params import from_mapping, to_mapping
from perun.plugin.registry import Registry
from perun.postprocess import regression_analysis
from perun.postprocess.regression_analysis import RegressionAnalysis, RegressionParams
from perun.profile.factory import Profile
from perun.profile.format.json import dumps_pending, loads

INSERT = "SLList_insert(SLList*, int)"
DESTROY = "SLList_destroy(SLList*)"
INIT = "SLList_init(SLList*)"
SEARCH = "SLList_search(SLList*, int)"

MANUAL_MODELS = {
    "exponential": ([1.0, 1.0], 0.0),
    "linear": ([0.6, 0.1], 0.06666666666666667),
    "logarithmic": ([0.08877935258260898, 0.9675751528184126], 0.8668309711260865),
    "power": ([1.0, 0.0], 0.0),
}
"""The records of 5.1.2, but those of the models that were computed in another way; see below."""


def made(points: dict[str, tuple[list[Any], list[Any]]], x: str = "structure-unit-size") -> Profile:
    profile = Profile({"header": {"type": "mixed"}, "collector_info": {"name": "trace", "params": {}}})
    profile.update_resources(
        [
            {"uid": uid, "type": "mixed", "subtype": "time delta", x: size, "amount": amount}
            for uid, columns in points.items()
            for size, amount in zip(*columns, strict=True)
        ],
        columns=[x],
    )
    return profile


def example() -> Profile:
    return made(
        {INSERT: ([0, 1, 2, 3], [1, 0, 1, 1]), DESTROY: ([4], [1]), INIT: ([0], [6]), SEARCH: ([0], [0])}
    )


def processed(profile: Profile, notes: list[str] | None = None, **params: Any) -> list[dict[str, Any]]:
    given: Any = from_mapping(RegressionParams, {"method": "full", **params}, "the test")
    ctx = PostprocessContext(note=(notes if notes is not None else []).append)
    result = RegressionAnalysis().process(profile, given, ctx)
    return [model for _, model in result.all_models()]


def by_kind(models: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {model["model"]: model for model in models}


def values(model: dict[str, Any]) -> list[float]:
    assert [one["name"] for one in model["coeffs"]] == [f"b{n}" for n in range(len(model["coeffs"]))]
    return [one["value"] for one in model["coeffs"]]


def test_models_of_the_manual() -> None:
    models = by_kind(processed(example()))
    assert set(models) == {*MANUAL_MODELS, "constant", "quadratic"}
    for kind, (coefficients, r_square) in MANUAL_MODELS.items():
        assert values(models[kind]) == pytest.approx(coefficients, rel=1e-12, abs=1e-12)
        assert models[kind]["r_square"] == pytest.approx(r_square, rel=1e-12, abs=1e-12)
    for model in models.values():
        assert (model["uid"], model["method"]) == (INSERT, "full")
        assert (model["x_start"], model["x_end"]) == (0, 3)


def test_constant_of_the_manual_but_for_its_r_square() -> None:
    # The manual prints 0.0; a constant is as good as the line is level or explains nothing.
    constant = by_kind(processed(example()))["constant"]
    assert values(constant) == [0.75, 0]
    steepness = np.arctan(0.1 * 3 / 3) / (np.pi / 2)
    assert constant["r_square"] == pytest.approx(0.06666666666666667 * (1 - steepness), rel=1e-12)


def test_quadratic_has_a_linear_term_which_the_manual_had_not() -> None:
    # The manual's b0 = 0.571 and b1 = 0.051 are of the older model b0 + b1 x^2, least squares on 1 and x^2.
    quadratic = by_kind(processed(example()))["quadratic"]
    x, y = np.arange(4.0), np.array([1.0, 0, 1, 1])
    assert values(quadratic) == pytest.approx(np.polyfit(x, y, 2)[::-1], rel=1e-12)
    assert values(quadratic) == pytest.approx([0.85, -0.65, 0.25])
    assert quadratic["r_square"] == pytest.approx(0.4)
    older = np.polyfit(x**2, y, 1)[::-1]
    assert older == pytest.approx([0.5714285714285714, 0.05102040816326531])


def test_record_of_a_model() -> None:
    assert processed(made({"f": ([0, 1, 2.5], [1, 2, 4])}), regression_models="linear") == [
        {
            "uid": "f",
            "model": "linear",
            "method": "full",
            "r_square": pytest.approx(0.994, abs=1e-3),
            "x_start": 0,
            "x_end": 2.5,
            "coeffs": [
                {"name": "b0", "value": pytest.approx(0.921, abs=1e-3)},
                {"name": "b1", "value": pytest.approx(1.211, abs=1e-3)},
            ],
            "explained": pytest.approx(0.994, abs=1e-3),
            "points": 3,
        }
    ]


def test_points_left_out_are_counted() -> None:
    models = by_kind(processed(example()))
    left_out = {kind: model.get("points_left_out", 0) for kind, model in models.items()}
    assert left_out == {
        "constant": 0, "linear": 0, "quadratic": 0, "logarithmic": 1, "exponential": 1, "power": 2
    }  # fmt: skip


def test_profile_can_be_written_and_read() -> None:
    profile = example()
    profile["postprocessors"] = []
    models = processed(profile)
    assert [model for _, model in loads(dumps_pending(profile), "again").all_models("param")] == models
    assert '"x_start": 0,' in json.dumps(models)


def test_models_are_added_to_those_of_other_postprocessors() -> None:
    profile = example()
    profile["models"] = [{"uid": INSERT, "model": "regressogram", "bucket_stats": [1, 2]}]
    assert [model["model"] for model in processed(profile, regression_models=["linear"])] == [
        "regressogram", "linear"
    ]  # fmt: skip


def test_it_tells_the_keys_that_were_not_named() -> None:
    for params, expected in (
        ({}, ["chosen from the profile: --of 'amount', --depending-on 'structure-unit-size'"]),
        ({"of": "amount"}, ["chosen from the profile: --depending-on 'structure-unit-size'"]),
        ({"of": "amount", "depending-on": "structure-unit-size"}, []),
    ):
        notes: list[str] = []
        processed(made({"f": ([1, 2, 3], [1, 2, 4])}), notes, **params)
        assert notes == expected


def test_it_tells_of_which_uid_there_is_no_model() -> None:
    notes: list[str] = []
    processed(example(), notes)
    assert notes[1:] == [f"'{DESTROY}', '{INIT}', '{SEARCH}': no model: fewer than 3 points"]


def test_many_uids_are_told_in_one_line() -> None:
    notes: list[str] = []
    singles = {f"f{number}": ([1], [1]) for number in range(1000)}
    processed(made({**singles, "g": ([1, 2, 3], [1, 2, 4])}), notes)
    assert notes[1:] == ["'f0', 'f1', 'f2', 'f3', 'f4' and 995 more: no model: fewer than 3 points"]


def test_resources_without_numbers_are_told() -> None:
    notes: list[str] = []
    profile = made({"f": ([1, 2, 3, 4], [1, 2, 4, None])})
    assert values(processed(profile, notes, regression_models=["constant"])[0])[0] == pytest.approx(7 / 3)
    assert notes[1:] == ["'f': left out 1 resource without a number in both fields"]


@pytest.mark.parametrize("method", regression_analysis.METHODS)
def test_methods(method: str) -> None:
    x = np.arange(1.0, 31)
    models = processed(made({"f": (list(x), list(3 * x + 1))}), method=method)
    assert {model["method"] for model in models} == {method}
    best = max(models, key=lambda model: (round(model["r_square"], 9), model["model"] == "linear"))
    assert values(best) == pytest.approx([1, 3])
    assert len(models) == {"full": 6, "interval": 3}.get(method, 1)


def test_other_keys_are_noted_in_the_model() -> None:
    profile = made({"f": ([1, 2, 3, 4], [10, 20, 30, 40])}, x="workload")
    (model,) = processed(profile, regression_models=["linear"])
    assert values(model) == pytest.approx([0, 10], abs=1e-12)
    assert (model["of_key"], model["per_key"]) == ("amount", "workload")
    (inverse,) = processed(profile, regression_models=["linear"], of="workload", depending_on="amount")[1:]
    assert values(inverse) == pytest.approx([0, 0.1], abs=1e-12)
    assert (inverse["of_key"], inverse["per_key"]) == ("workload", "amount")


@pytest.mark.parametrize(
    ("params", "message"), [({"depending_on": "size"}, "'size'"), ({"of": "duration"}, "'duration'")]
)
def test_unknown_keys(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ProfileError, match=message) as caught:
        processed(example(), **params)
    assert "amount, structure-unit-size" in caught.value.hint


def test_no_model_at_all() -> None:
    with pytest.raises(ProfileError, match="'f', 'g': no model: all x are equal") as caught:
        processed(made({"f": ([1, 1, 1], [1, 2, 3]), "g": ([2, 2, 2], [1, 2, 3])}))
    assert "clusterizer" in caught.value.hint


def test_a_profile_without_numbers() -> None:
    with pytest.raises(ProfileError, match="the profile has none of amount"):
        processed(made({"f": (["a", "b", "c"], ["a", "b", "c"])}))


@pytest.mark.parametrize(("params", "message"), [
    ({}, "the parameter method is missing"),
    ({"method": "half"}, "method must be one of full, iterative, interval, initial_guess, bisection"),
    ({"method": "full", "regression_models": ["cubic"]}, "must be one of all, constant, exponential"),
    ({"method": "full", "steps": 0}, "steps must be at least 1"),
    ({"method": "full", "seed": -1}, "seed must be at least 0"),
    ({"method": "full", "step": 1}, "unknown parameter 'step'"),
])  # fmt: skip
def test_wrong_parameters(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_mapping(RegressionParams, params, "'regression_analysis'")


def test_parameters_of_the_manual() -> None:
    params = from_mapping(RegressionParams, {"method": "full", "steps": 10}, "job.yml")
    assert (params.method, params.steps) == ("full", 10)
    assert from_mapping(RegressionParams, to_mapping(params), "profile") == params


def test_models_that_are_chosen() -> None:
    def models(*names: str) -> tuple[str, ...]:
        return RegressionParams(method="full", regression_models=names).chosen_models

    assert models() == models("all") == models("linear", "all") == regression_analysis.MODELS
    assert models("power", "linear", "power") == ("power", "linear")


def test_names_are_those_of_the_mathematics() -> None:
    assert set(regression_analysis.MODELS) == set(fits.MODELS)
    assert tuple(methods.METHODS) == regression_analysis.METHODS


@pytest.mark.parametrize("name", ["regression_analysis", "regression-analysis"])
def test_it_is_found_by_both_names(name: str) -> None:
    assert isinstance(Registry().get("postprocess", name), RegressionAnalysis)


class Session:
    """What a command finds in `ctx.obj`: keeps what it is told."""

    profile = "the profile"
    told: tuple[Any, ...] = ()

    def run_postprocessor(self, *told: Any) -> None:
        self.told = told


def called(*arguments: str) -> tuple[click.testing.Result, Session]:
    session = Session()
    command = command_of(
        RegressionAnalysis(),
        "regression-analysis",
        lambda session, *told: session.run_postprocessor(session.profile, *told),
    )
    return CliRunner().invoke(command, arguments, obj=session), session


@pytest.mark.parametrize(("arguments", "params"), [
    (["-m", "full"], RegressionParams("full")),
    (["--method=interval", "-s", "7"], RegressionParams("interval", steps=7)),
    (["-m", "full", "-r", "linear", "--regression_models", "power", "--regression-models", "all"],
     RegressionParams("full", ("linear", "power", "all"))),
    (["-m", "iterative", "-dp", "workload", "-o", "exclusive", "--seed", "3"],
     RegressionParams("iterative", (), 3, "workload", "exclusive", 3)),
    (["-m", "full", "--depending-on", "x", "--of", "y"], RegressionParams("full", (), 3, "x", "y")),
])  # fmt: skip
def test_options(arguments: list[str], params: RegressionParams) -> None:
    result, session = called(*arguments)
    assert result.exit_code == 0, result.output
    assert session.told == ("the profile", "regression_analysis", params)


@pytest.mark.parametrize(("arguments", "message"), [
    ([], "Missing option '-m' / '--method'"),
    (["-m", "half"], "'full', 'iterative', 'interval', 'initial_guess', 'bisection'"),
    (["-m", "full", "-r", "cubic"], "'constant', 'exponential', 'linear'"),
    (["-m", "full", "-s", "0"], "0 is not in the range x>=1"),
])  # fmt: skip
def test_wrong_options(arguments: list[str], message: str) -> None:
    result, session = called(*arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert not session.told


def test_clocks_have_models_of_their_own() -> None:
    profile = Profile({"header": {"type": "time", "units": {"time": "s"}}})
    profile.update_resources(
        {"uid": "./prog", "type": "time", "subtype": clock, "workload": n, "order": run, "amount": time}
        for clock, factor in (("real", 1.0), ("sys", 0.0))
        for n in (4000, 6000, 8000, 10000)
        for run in range(1, 6)
        for time in [factor * (n / 1e5) ** 2 * (1 + run / 1000)]
    )
    RegressionAnalysis().process(profile, RegressionParams("full"), NO_POSTPROCESS_CONTEXT)
    assert {one["uid"] for one in profile["models"]} == {"./prog"}
    assert {one["per_key"] for one in profile["models"]} == {"workload"}
    best = profile.all_filtered_models("best-param")
    assert {place: record.type for place, record in best.items()} == {
        "./prog [real]": "power", "./prog [sys]": "constant"
    }  # fmt: skip
    real = {one["model"]: one for one in profile["models"] if one["subtype"] == "real"}
    # The manual's R^2 of the constant is that of a level line, as seconds are few beside thousands of nodes.
    assert real["constant"]["explained"] == 0
    assert real["power"]["explained"] > 0.999 > real["linear"]["explained"] > 0.9


def test_the_order_of_measuring_is_no_size() -> None:
    profile = Profile()
    profile.update_resources({"uid": "./prog", "amount": 2.0 * n, "order": n} for n in range(1, 9))
    with pytest.raises(ProfileError, match="no size that the amounts could depend on") as caught:
        RegressionAnalysis().process(profile, RegressionParams("full"), NO_POSTPROCESS_CONTEXT)
    assert "--depending-on order" in caught.value.hint
    asked = RegressionParams("full", depending_on="order")
    assert RegressionAnalysis().process(profile, asked, NO_POSTPROCESS_CONTEXT)["models"]
