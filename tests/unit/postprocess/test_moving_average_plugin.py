import math
from typing import Any

import click
import pytest
from click.testing import CliRunner

from perun.cli.plugins import command_of
from perun.core.errors import ConfigError, ProfileError, UsageError
from perun.models.moving_average import KINDS
from perun.plugin.api import PostprocessContext
from perun.plugin.params import from_mapping, to_mapping
from perun.postprocess.moving_average import PLUGIN, WINDOW_TYPES, MovingAverageParams
from perun.profile.factory import Profile
from perun.profile.format.json import dumps_object, dumps_pending, loads
from profiles import profile_of

CUBES = [(x, 3 * x**3) for x in range(6)]


def profile(points: dict[str, list[tuple[Any, Any]]]) -> Profile:
    resources = (
        {"uid": uid, "structure-unit-size": x, "amount": y} for uid, pairs in points.items() for x, y in pairs
    )
    return profile_of(resources, "mixed", {}, cmd="x", collector="trace")


def process(given: Profile, notes: list[str] | None = None, **values: Any) -> list[dict[str, Any]]:
    params = from_mapping(MovingAverageParams, values, "test")
    ctx = PostprocessContext(note=(notes if notes is not None else []).append)
    return list(PLUGIN().process(given, params, ctx)["models"])


def test_the_example_of_the_manual() -> None:
    notes: list[str] = []
    (model,) = process(profile({"pow::test3": CUBES}), notes)
    assert model == {
        "bucket_stats": [0.0, 3.0, 24.0, 81.0, 192.0, 375.0], "per_key": "structure-unit-size",
        "of_key": "amount", "uid": "pow::test3", "x_end": 5, "r_square": 1.0, "model": "moving_average",
        "method": "moving_average", "moving_method": "sma", "x_start": 0, "window_width": 1
    }  # fmt: skip
    assert notes == ["chosen from the profile: --of-key 'amount', --per-key 'structure-unit-size'"]


@pytest.mark.parametrize(("values", "expected"), [
    ({"window_width": 3, "min_periods": 1}, [1.5, 9.0, 36.0, 99.0, 216.0, 283.5]),
    ({"window_width": 3, "center": False, "min_periods": 1}, [0.0, 1.5, 9.0, 36.0, 99.0, 216.0]),
    ({"window-width": 3, "window-type": "triang", "min-periods": 1}, [1.0, 7.5, 33.0, 94.5, 210.0, 314.0]),
    ({"moving_method": "smm", "window_width": 3, "min_periods": 2}, [1.5, 3.0, 24.0, 81.0, 192.0, 283.5]),
    ({"moving_method": "ema"}, [0.0, 3.0, 24.0, 81.0, 192.0, 375.0]),
    ({"moving_method": "ema", "decay": ["com", 1]}, [0, 2, 102 / 7, 50, 3822 / 31, 15822 / 63]),
    ({"moving_method": "ema", "decay": ["span", 3]}, [0, 2, 102 / 7, 50, 3822 / 31, 15822 / 63]),
    ({"moving_method": "ema", "decay": ["halflife", 1]}, [0, 2, 102 / 7, 50, 3822 / 31, 15822 / 63]),
    ({"moving_method": "ema", "decay": "alpha 0.5"}, [0, 2, 102 / 7, 50, 3822 / 31, 15822 / 63]),
])  # fmt: skip
def test_methods(values: dict[str, Any], expected: list[float]) -> None:
    (model,) = process(profile({"f": CUBES}), **values)
    assert model["bucket_stats"] == pytest.approx(expected, rel=1e-12)
    assert model["moving_method"] == values.get("moving_method", "sma")


def test_the_width_of_an_exponential_average_is_its_decay() -> None:
    (model,) = process(profile({"f": CUBES}), moving_method="ema", decay=["span", 3])
    assert (model["decay"], model["window_width"]) == ("span", 3.0)


def test_points_without_an_average_can_be_stored() -> None:
    given = profile({"f": CUBES})
    (model,) = process(given, window_width=3)
    assert [math.isnan(value) for value in model["bucket_stats"]] == [True, False, False, False, False, True]
    for written in (dumps_object(given), dumps_pending(given)):
        (read,) = loads(written, "test")["models"]
        assert [math.isnan(value) for value in read["bucket_stats"]] == [True, *[False] * 4, True]


def test_uids_without_a_model_are_told() -> None:
    notes: list[str] = []
    given = profile({"f": CUBES, "one": [(1, 2)], "few": CUBES[:3]})
    models = process(given, notes, window_width=4, of_key="amount", per_key="structure-unit-size")
    assert [model["uid"] for model in models] == ["f"]
    assert notes == [
        "'one': no model: it has one point only",
        "'few': no model: no window of width 4 gives a value for its 3 points",
    ]


def test_no_model_at_all() -> None:
    with pytest.raises(ProfileError, match="no window of width 7 gives a value"):
        process(profile({"f": CUBES}), window_width=7)


@pytest.mark.parametrize(("values", "complaint"), [
    ({"moving_method": "mean"}, "one of sma, smm, ema"),
    ({"window_type": "gauss"}, "window_type must be one of"),
    ({"window_width": -1}, "at least 1"),
    ({"window_width": 3, "min_periods": 4}, "min_periods must be at most the window_width 3, not 4"),
    ({"decay": ["span", 3]}, "decay is for the moving_method ema"),
    ({"moving_method": "ema", "decay": ["span", 0]}, "span >= 1, not 0"),
    ({"moving_method": "ema", "decay": ["com"]}, "a name and a number"),
    ({"moving_method": "ema", "decay": ["com", "much"]}, "a name and a number"),
    ({"moving_method": "ema", "decay": ["tau", 3]}, "one of com, span, halflife, alpha"),
    ({"moving_method": "ema", "window_width": 3}, "has no window"),
    ({"moving_method": "smm", "window_type": "triang"}, "window_type is for the moving_method sma"),
])  # fmt: skip
def test_wrong_parameters(values: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        from_mapping(MovingAverageParams, values, "test")


def test_parameters_noted_in_a_profile_are_parameters() -> None:
    for params in (MovingAverageParams(), MovingAverageParams("ema", decay=("span", "3"))):
        assert from_mapping(MovingAverageParams, to_mapping(params), "test") == params


def test_all_window_types_can_be_chosen() -> None:
    assert set(WINDOW_TYPES) == set(KINDS)


class Surroundings:
    """What the command line gives to the commands of plugins."""

    def __init__(self) -> None:
        self.profile = Profile()
        self.calls: list[tuple[str, MovingAverageParams]] = []

    def run_postprocessor(self, profile: Profile, name: str, params: MovingAverageParams) -> None:
        assert profile is self.profile
        self.calls.append((name, params))


COMMAND = command_of(
    PLUGIN(), "moving-average", lambda session, *told: session.run_postprocessor(session.profile, *told)
)


def invoke(*args: str) -> MovingAverageParams:
    surroundings = Surroundings()
    result = CliRunner().invoke(COMMAND, args, obj=surroundings, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    ((name, params),) = surroundings.calls
    assert name == "moving_average"
    return params


@pytest.mark.parametrize(("line", "expected"), [
    ("", MovingAverageParams()),
    ("-mp 2", MovingAverageParams(min_periods=2)),
    ("sma", MovingAverageParams()),
    ("-mp 2 -of amount -per order sma -wt kaiser --no-center -ww 5",
     MovingAverageParams("sma", 2, "amount", "order", "kaiser", False, 5)),
    ("--min_periods 2 --of-key a --per-key b sma --window_type triang --center --window_width 7",
     MovingAverageParams("sma", 2, "a", "b", "triang", True, 7)),
    ("--min-periods 2 sma --window-type triang --window-width 7",
     MovingAverageParams("sma", 2, "", "", "triang", True, 7)),
    ("smm --no-center -ww 4", MovingAverageParams("smm", center=False, window_width=4)),
    ("ema", MovingAverageParams("ema")),
    ("ema -d span 3", MovingAverageParams("ema", decay=("span", "3.0"))),
    ("ema --decay=com 3", MovingAverageParams("ema", decay=("com", "3.0"))),
])  # fmt: skip
def test_command_line_of_the_manual(line: str, expected: MovingAverageParams) -> None:
    assert invoke(*line.split()) == expected


@pytest.mark.parametrize(
    "line", ["smm -wt triang", "sma -ww 0", "-mp 0 sma", "ema -ww 3", "ema -d tau 3", "ema -d com", "wma"]
)
def test_wrong_options(line: str) -> None:
    with pytest.raises(click.UsageError):
        invoke(*line.split())


@pytest.mark.parametrize("line", ["-mp 4 sma -ww 3", "ema -d span 0.5", "ema -d alpha nan"])
def test_options_that_make_no_sense(line: str) -> None:
    with pytest.raises(UsageError, match="moving-average"):
        invoke(*line.split())
