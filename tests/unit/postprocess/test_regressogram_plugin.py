import json
from typing import Any

import pytest

from perun.core.errors import ConfigError, ProfileError
from perun.models.regressogram import METHODS
from perun.plugin.api import PostprocessContext
from perun.plugin.params import from_mapping, specs
from perun.postprocess.regressogram import BUCKET_METHODS, PLUGIN, RegressogramParams
from perun.profile.factory import Profile
from perun.profile.format.json import dumps_object, loads
from profiles import profile_of


def profile(points: dict[str, list[tuple[Any, Any]]], per: str = "structure-unit-size") -> Profile:
    resources = ({"uid": uid, per: x, "amount": y} for uid, pairs in points.items() for x, y in pairs)
    return profile_of(resources, "mixed", {}, cmd="x", collector="trace")


LINEAR = [(x, 8 + 2.5 * x) for x in range(10)]


def process(given: Profile, notes: list[str] | None = None, **values: Any) -> list[dict[str, Any]]:
    params = from_mapping(RegressogramParams, values, "test")
    ctx = PostprocessContext(note=(notes if notes is not None else []).append)
    return list(PLUGIN().process(given, params, ctx)["models"])


def test_the_example_of_the_manual() -> None:
    (model,) = process(profile({"linear::test2": LINEAR}), bucket_number=2)
    assert model == {
        "bucket_stats": [13.0, 25.5], "uid": "linear::test2", "bucket_method": "user",
        "model": "regressogram", "method": "regressogram",
        "r_square": pytest.approx(0.7575757575757576, rel=1e-12), "x_end": 9.0, "statistic_function": "mean",
        "x_start": 0.0, "per_key": "structure-unit-size", "of_key": "amount"
    }  # fmt: skip


def test_doane_and_mean_are_the_defaults() -> None:
    (model,) = process(profile({"f": LINEAR}))
    assert (model["bucket_method"], model["statistic_function"]) == ("doane", "mean")
    assert model["bucket_stats"] == [9.25, 14.25, 19.25, 24.25, 29.25]


def test_median() -> None:
    given = profile({"f": [(0, 1), (1, 2), (2, 30), (9, 4)]})
    (model,) = process(given, statistic_function="median", bucket_number=2)
    assert model["bucket_stats"] == [2.0, 4.0]


@pytest.mark.parametrize("method", BUCKET_METHODS)
def test_methods(method: str) -> None:
    (model,) = process(profile({"f": LINEAR}), bucket_method=method)
    assert model["bucket_method"] == method
    assert 1 <= len(model["bucket_stats"]) <= 10


def test_all_methods_can_be_chosen() -> None:
    assert set(BUCKET_METHODS) == set(METHODS)


def test_models_are_added_and_can_be_stored() -> None:
    given = profile({"f": LINEAR, "g": LINEAR[:4]})
    given["models"] = [{"uid": "f", "model": "linear"}]
    models = process(given)
    assert [(model["uid"], model["model"]) for model in models] == [
        ("f", "linear"),
        ("f", "regressogram"),
        ("g", "regressogram"),
    ]
    assert loads(dumps_object(given), "test")["models"] == models


def test_fields_that_are_looked_up_are_told() -> None:
    notes: list[str] = []
    (model,) = process(profile({"f": LINEAR}, per="snapshot"), notes)
    assert notes == ["chosen from the profile: --of-key 'amount', --per-key 'snapshot'"]
    assert (model["of_key"], model["per_key"]) == ("amount", "snapshot")


def test_fields_that_are_named() -> None:
    notes: list[str] = []
    (model,) = process(profile({"f": LINEAR}), notes, of_key="structure-unit-size", per_key="amount")
    assert not notes
    assert (model["x_start"], model["x_end"]) == (8.0, 30.5)
    process(profile({"f": LINEAR}), notes, of_key="amount")
    assert notes == ["chosen from the profile: --per-key 'structure-unit-size'"]


def test_uids_without_a_model_are_told() -> None:
    notes: list[str] = []
    given = profile({"f": LINEAR, "one": [(1, 2)], "eq": [(1, 2), (1, 3)], "odd": [(1, 2), (2, 3), ("?", 4)]})
    models = process(given, notes, of_key="amount", per_key="structure-unit-size")
    assert [model["uid"] for model in models] == ["f", "odd"]
    assert notes == [
        "'one': no model: it has one point only",
        "'eq': no model: all x are equal",
        "'odd': left out resources without a number in both fields",
    ]


def test_no_model_at_all() -> None:
    with pytest.raises(ProfileError, match="'one', 'two': no model: it has one point only") as problem:
        process(profile({"one": [(1, 2)], "two": [(1, 2)]}))
    assert "--per-key" in problem.value.hint


def test_unknown_field() -> None:
    with pytest.raises(ProfileError, match="'size'"):
        process(profile({"f": LINEAR}), per_key="size")


@pytest.mark.parametrize(
    ("name", "value"),
    [("bucket_method", "square"), ("statistic_function", "mode"), ("bucket_number", -1), ("buckets", 2)],
)
def test_wrong_parameters(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        from_mapping(RegressogramParams, {name: value}, "test")


def test_options_of_the_manual() -> None:
    assert [spec.flags for spec in specs(RegressogramParams)] == [
        ["-bn", "--bucket_number"],
        ["-bm", "--bucket_method"],
        ["-sf", "--statistic_function"],
        ["-of", "--of-key"],
        ["-per", "--per-key"],
    ]


def test_progress() -> None:
    steps: list[tuple[int, int]] = []
    ctx = PostprocessContext(report=lambda activity, done, total: steps.append((done, total)))
    PLUGIN().process(profile({"f": LINEAR, "g": LINEAR}), RegressogramParams(), ctx)
    assert steps == [(0, 2), (1, 2)]


def test_result_is_json_without_numpy() -> None:
    assert json.dumps(process(profile({"f": LINEAR})))
