"""What every postprocessor keeps to: one suite, run over the built-in ones and one of the documented API."""

import copy
import dataclasses
import importlib
import math
import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest

import perun.postprocess
from perun.cli.plugins import command_of
from perun.core.errors import ConfigError, ProfileError
from perun.plugin.api import PostprocessContext, Postprocessor
from perun.plugin.params import NoParams, from_mapping, specs, to_mapping
from perun.plugin.registry import Registry
from perun.postprocess.clusterizer import Clusterizer, ClusterizerParams
from perun.postprocess.normalizer import Normalizer
from perun.profile.factory import Profile
from perun.profile.format.json import dumps_object, dumps_pending, loads, validate

_normalizer: Postprocessor[NoParams] = Normalizer()
_clusterizer: Postprocessor[ClusterizerParams] = Clusterizer()

QUICK: dict[str, Mapping[str, Any]] = {
    "clusterizer": {}, "kernel_regression": {}, "moving_average": {}, "normalizer": {},
    "regression_analysis": {"method": "full"}, "regressogram": {}
}  # fmt: skip
"""Every built-in postprocessor, with the parameters it must be given."""
CHANGES_RESOURCES = {"clusterizer": {"resources", "resource_type_map"}, "normalizer": {"resources"}}
"""The regions that a postprocessor changes; the others make models."""
DOCUMENTED = "mypostprocessor"
RUN = '''
def postprocess(profile, **configuration):
    """Notes how many resources there are."""
    print("counting")
    profile["models"] = profile["models"] + [{"uid": "f", "count": len(list(profile.all_resources()))}]
    return 0, "", {"profile": profile}
'''
PAGE = Path(__file__).parents[2] / "docs" / "postprocessors.md"
SIZES = (1, 2, 3, 5, 8, 13, 21, 34)


@pytest.fixture(params=[*sorted(QUICK), DOCUMENTED])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    folder = tmp_path / "plugins" / "postprocess" / DOCUMENTED
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text('"""Counts."""\nSUPPORTED_PROFILES = ["mixed|memory|time"]\n')
    (folder / "run.py").write_text(RUN)
    return Registry([tmp_path / "plugins"])


@pytest.fixture
def plugin(name: str, registry: Registry) -> Any:
    return registry.get("postprocess", name)


@pytest.fixture
def params(name: str, plugin: Any) -> Any:
    return from_mapping(plugin.Params, QUICK.get(name), repr(name))


def made(resources: list[dict[str, Any]]) -> Profile:
    profile = Profile({
        "header": {
            "type": "mixed",
            "cmd": "./prog",
            "args": "-O2",
            "workload": "a",
            "units": {"mixed": "us"},
        },
        "collector_info": {"name": "trace", "params": {"sampling": 1}},
        "postprocessors": [{"name": "filter", "params": {"key": [1, None]}}],
        "origin": "f" * 40,
        "machine": {"architecture": "x86_64"},
        "own": [{"region": 1}],
    })  # fmt: skip
    profile.update_resources(resources)
    profile["models"] = [{"uid": "old", "model": "constant", "coeffs": [{"name": "b0", "value": 1.5}]}]
    return profile


def points(ys: Any, xs: Any = SIZES, **constants: Any) -> list[dict[str, Any]]:
    shared = {
        "uid": {"source": "a.c", "function": "f"},
        "type": "mixed",
        "subtype": "time delta",
        **constants,
    }
    return [{"amount": y, "structure-unit-size": x, **shared} for x, y in zip(xs, ys, strict=True)]


def profile() -> Profile:
    return made(points([3 * x + 1 for x in SIZES]) + points([x * x + 0.5 for x in SIZES], uid="g(int)"))


def process(plugin: Any, profile: Profile, params: Any) -> Profile:
    processed = plugin.process(profile, params, PostprocessContext())
    assert isinstance(processed, Profile)
    return processed


def test_every_postprocessor_is_tried_here() -> None:
    modules = {module.name for module in pkgutil.iter_modules(perun.postprocess.__path__)}
    assert {name for name in modules if not name.startswith("_")} == QUICK.keys()


def test_describes_itself(name: str, plugin: Any) -> None:
    assert plugin.name == name
    assert plugin.help
    assert "\n" not in plugin.help
    declared: Any = plugin.Params
    assert dataclasses.is_dataclass(declared)
    assert all(spec.info.help for spec in specs(plugin.Params))
    if name != DOCUMENTED:
        module = importlib.import_module(f"perun.postprocess.{name}")
        assert module.__doc__
        assert module.SUPPORTED_PROFILES == ["mixed|memory|time"]


def test_either_spelling_of_its_name(name: str, registry: Registry, plugin: Any) -> None:
    assert name.replace("_", "-") in registry.names("postprocess")
    assert registry.get("postprocess", name.replace("_", "-")) is plugin


def test_parameters_can_be_noted_and_read_again(plugin: Any, params: Any) -> None:
    noted = made([])
    noted["postprocessors"] = [{"name": plugin.name, "params": to_mapping(params)}]
    (again,) = loads(dumps_object(noted), "noted")["postprocessors"]
    assert from_mapping(plugin.Params, again["params"], "noted") == params


def test_unknown_parameters_are_refused(name: str, plugin: Any) -> None:
    if name == DOCUMENTED:
        pytest.skip("takes any parameters")
    with pytest.raises(ConfigError, match="unknown parameter 'nonsense'"):
        from_mapping(plugin.Params, {**QUICK[name], "nonsense": 1}, repr(name))


def test_other_regions_stay_as_they_are(name: str, plugin: Any, params: Any) -> None:
    given = profile()
    before = copy.deepcopy(given.serialize())
    after = process(plugin, given, params).serialize()
    changed = {region for region in after if after[region] != before.get(region)}
    assert before.keys() <= after.keys()
    assert changed <= CHANGES_RESOURCES.get(name, {"models"})
    assert changed
    assert after["models"][:1] == before["models"]


def test_a_copy_protects_the_original(plugin: Any, params: Any) -> None:
    given = profile()
    before = dumps_pending(given)
    process(plugin, given.copy(), params)
    assert dumps_pending(given) == before


def test_result_is_valid_and_can_be_stored(plugin: Any, params: Any) -> None:
    processed = process(plugin, profile(), params)
    for dumps in (dumps_pending, dumps_object):
        again = loads(dumps(processed), "processed")
        validate(again, "processed")
        for region in ("resources", "resource_type_map", "models", "header", "collector_info"):
            assert again[region] == processed[region]
    assert b"NaN" not in dumps_object(processed)
    assert b"Infinity" not in dumps_object(processed)


def test_models_are_of_the_uids(name: str, plugin: Any, params: Any) -> None:
    if name in CHANGES_RESOURCES or name == DOCUMENTED:
        pytest.skip("makes no models")
    models = process(plugin, profile(), params)["models"][1:]
    assert {model["uid"] for model in models} == {"a.c:f", "g(int)"}
    for model in models:
        assert model["method"]
        assert model["r_square"] <= 1
        assert (model["x_start"], model["x_end"]) == (1, 34)
        assert ("coeffs" in model) != any(region in model for region in ("bucket_stats", "kernel_stats"))


def test_same_again(plugin: Any, params: Any) -> None:
    results = [dumps_object(process(plugin, profile(), params)) for _ in range(2)]
    assert results[0] == results[1]


def test_own_result_can_be_processed_again(plugin: Any, params: Any) -> None:
    validate(process(plugin, process(plugin, profile(), params), params), "processed twice")


def test_prints_nothing_and_writes_no_files(plugin, params, tmp_path, monkeypatch, capfd) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    notes: list[str] = []
    plugin.process(profile(), params, PostprocessContext(note=notes.append))
    out, err = capfd.readouterr()
    assert out == ""
    assert err == ("counting\n" if plugin.name == DOCUMENTED else "")
    assert os.listdir(empty) == []
    assert all(note and "\n" not in note for note in notes)


HUGE = 1e308
DEGENERATE: dict[str, list[dict[str, Any]]] = {
    "no resources": [],
    "no numbers": [{"uid": "f", "type": "mixed"}],
    "texts": points(["a", "b"], ["c", "d"]),
    "one resource": points([1], [1]),
    "one resource, zero": points([0], [0]),
    "two resources": points([1, 2], [1, 2]),
    "no independent field": [{"uid": "f", "type": "mixed", "amount": value} for value in (1, 2, 3, 4)],
    "no uid": [{"type": "mixed", "amount": x, "structure-unit-size": x} for x in SIZES],
    "equal x": points(SIZES, [7] * 8),
    "equal y": points([7] * 8),
    "all equal": points([7] * 8, [7] * 8),
    "zeros": points([0] * 8, [0] * 8),
    "negative": points([-x for x in SIZES], [-x for x in SIZES]),
    "NaN": points([math.nan] * 8),
    "one NaN": points([math.nan, *SIZES[1:]]),
    "NaN in x": points(SIZES, [math.nan, *SIZES[1:]]),
    "infinite": points([math.inf, -math.inf, *SIZES[2:]]),
    "missing": points([None, *SIZES[1:]]),
    "huge": points([HUGE, -HUGE, HUGE, HUGE / 2, 0, 1, -1, -HUGE], [-HUGE, HUGE, 1, 0, 5, HUGE / 3, 2, -1]),
    "tiny": points([5e-324, 1e-310, 0, 1e-300, 5e-324, 0, 0, 1e-320], [5e-324 * n for n in range(8)]),
    "too large for a float": points([10**400, *SIZES[1:]]),
    "true and false": points([True, False, *SIZES[2:]]),
    "numbers in text": points([str(x) for x in SIZES], [str(x) for x in SIZES]),
    "one odd uid": points([1, 2], [1, 1], uid="odd") + points(SIZES),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("resources", DEGENERATE.values(), ids=DEGENERATE.keys())
def test_degenerate_profiles_are_processed_or_refused(resources, plugin, params, capfd) -> None:
    given = made(copy.deepcopy(resources))
    numbers_before = dumps_object(given).count(b"NaN") + dumps_object(given).count(b"Infinity")
    try:
        processed = process(plugin, given, params)
    except ProfileError as refusal:
        assert refusal.message
        assert refusal.hint
    else:
        written = dumps_object(processed)
        validate(loads(written, "processed"), "processed")
        # What is no number in the profile may stay; nothing is added to it that JSON cannot spell.
        assert written.count(b"NaN") + written.count(b"Infinity") <= numbers_before
    out, err = capfd.readouterr()
    assert out == ""
    assert err.replace("counting\n", "") == ""


@pytest.mark.parametrize("case", ["no resources", "no numbers", "texts", "NaN"])
def test_profiles_without_numbers_are_refused(case: str, name: str, plugin: Any, params: Any) -> None:
    if name == DOCUMENTED:
        pytest.skip("counts resources of any kind")
    with pytest.raises(ProfileError):
        process(plugin, made(copy.deepcopy(DEGENERATE[case])), params)


def options(command: click.Command) -> Iterator[click.Option]:
    yield from (one for one in command.params if isinstance(one, click.Option))
    for inner in getattr(command, "commands", {}).values():
        yield from options(inner)


def test_page_of_the_manual_has_every_option_and_value(name: str, plugin: Any) -> None:
    if name == DOCUMENTED:
        pytest.skip("not built in")
    page = PAGE.read_text("utf-8")
    (chapter,) = [part for part in page.split("\n## ") if part.startswith(name.replace("_", "-") + "\n")]
    command = command_of(plugin, name, lambda session, name, params: None)
    for option in options(command):
        for flag in {option.opts[0], *option.secondary_opts}:
            assert f"`{flag}`" in chapter
        if isinstance(option.type, click.Choice):
            for value in option.type.choices:
                assert f"`{value}`" in chapter
    for inner in getattr(command, "commands", {}):
        assert f"`{inner}`" in chapter


ROWS: dict[str, tuple[str, Mapping[str, Any], str]] = {
    "`-mp 1 sma -ww 3`": ("moving_average", {"min_periods": 1, "window_width": 3}, "bucket_stats"),
    "`-mp 1 smm -ww 3`": (
        "moving_average",
        {"moving_method": "smm", "min_periods": 1, "window_width": 3},
        "bucket_stats",
    ),
    "`ema -d span 3`": ("moving_average", {"moving_method": "ema", "decay": ["span", 3]}, "bucket_stats"),
    "`user-selection -bv 1`": (
        "kernel_regression",
        {"kernel_mode": "user-selection", "bandwidth_value": 1},
        "kernel_stats",
    ),
    "`method-selection`": ("kernel_regression", {"kernel_mode": "method-selection"}, "kernel_stats"),
    "`kernel-smoothing`": ("kernel_regression", {"kernel_mode": "kernel-smoothing"}, "kernel_stats"),
    "`kernel-smoothing -sm local-polynomial`": (
        "kernel_regression",
        {"kernel_mode": "kernel-smoothing", "smoothing_method": "local-polynomial"},
        "kernel_stats",
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_rows_of_the_page_are_what_comes_out(row: str) -> None:
    name, given, field = ROWS[row]
    plugin = Registry().get("postprocess", name)
    squares = made(points([x * x + 1 for x in range(1, 9)], range(1, 9)))
    model = process(plugin, squares, from_mapping(plugin.Params, given, row))["models"][-1]
    (line,) = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith(f"| {row} |")]
    shown = [float(cell) for cell in line.split("|")[2:-1]][-8:]
    assert model[field] == pytest.approx(shown, abs=0.005)


def test_models_of_the_page_are_what_comes_out() -> None:
    plugin = Registry().get("postprocess", "regression_analysis")
    squares = made(points([x * x + 1 for x in range(1, 9)], range(1, 9)))
    models = process(plugin, squares, plugin.Params(method="full"))["models"][1:]
    page = PAGE.read_text("utf-8").replace("\N{MINUS SIGN}", "-").partition("With `-m full`:")[2]
    for model in models:
        (line,) = [line for line in page.splitlines() if line.startswith(f"| {model['model']} |")]
        shown = [float(cell) if cell.strip() else 0.0 for cell in line.split("|")[2:-1]]
        values = [coefficient["value"] for coefficient in model["coeffs"]]
        found = [model["r_square"], model["explained"], *values, 0.0][:5]
        assert found == pytest.approx(shown, rel=1e-3, abs=1e-4)


def test_import_is_light(name: str) -> None:
    if name == DOCUMENTED:
        pytest.skip("not built in")
    heavy = {"numpy", "scipy", "pandas", "click", "msgspec", "json"}
    code = f"import perun.postprocess.{name}, sys; print(sys.modules.keys() & {heavy!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True,
        text=True, check=True
    )  # fmt: skip
    assert done.stdout.strip() == "set()"
