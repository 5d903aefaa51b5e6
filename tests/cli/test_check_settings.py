"""`perun check` with methods that have settings, or need what the profile may lack."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perun.plugin.api import NO_POSTPROCESS_CONTEXT
from perun.postprocess.regression_analysis import RegressionAnalysis, RegressionParams
from perun.postprocess.regressogram import Regressogram, RegressogramParams
from perun.profile.factory import store_profile
from profiles import profile_of


def traced(path: Path, slope: float, **exclusive: float) -> str:
    """A trace profile with models of `search`: what it takes at 100 sizes, and exclusive times in ms."""
    search = ({"uid": "search", "amount": slope * n, "structure-unit-size": n} for n in range(1, 101))
    done = ["regression_analysis"]
    profile = profile_of(search, "mixed", "us", cmd="./list", collector="trace", postprocessors=done)
    if slope:
        RegressionAnalysis().process(profile, RegressionParams(method="full"), NO_POSTPROCESS_CONTEXT)
        Regressogram().process(profile, RegressogramParams(), NO_POSTPROCESS_CONTEXT)
    profile.update_resources([
        {"uid": uid, "type": "mixed", "exclusive": time / 4 * 1e6, "location": f"/build/{place}"}
        for place in ("list", "libutil.so")
        for uid, time in {**exclusive, f"only_{place}": 1.0}.items()
        for _ in range(4)
    ])  # fmt: skip
    store_profile(profile, path)
    return str(path)


@pytest.fixture
def check(project: Any, perun: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    """The changes by method, of `search` 1.3 times as slow and `push` 120 ms slower, with these settings."""
    usual = {f"f{number}": 10.0 + number for number in range(9)}
    pair = (
        traced(tmp_path / "old.perf", 1.0, **usual, push=10),
        traced(tmp_path / "new.perf", 1.3, **usual, push=130),
    )

    def run(
        *methods: str, options: tuple[str, ...] = (), **settings: Any
    ) -> dict[str, dict[tuple[str, str], str]]:
        for key, value in {"strategies": [{"method": one} for one in methods], **settings}.items():
            text = value if isinstance(value, str) else json.dumps(value)
            assert perun("config", "--local", "set", f"degradation.{key}", text).code == 0
        outcome = perun("check", "--json", *options, "profiles", *pair)
        assert outcome.code == 0, outcome.err
        found: dict[str, dict[tuple[str, str], str]] = {}
        for change in outcome.json["comparisons"][0]["changes"]:
            named = found.setdefault(change["method"], {})
            named[change["location"], change["type"]] = change["result"]
        return found

    return run


def test_by_short_string(check: Callable[..., Any]) -> None:
    found = check("int", "LOC", "eto")
    assert found["integral_comparison"] == {("search", "integral"): "Degradation"}
    assert found["local_statistics"] == {("search", "local"): "Degradation"}
    assert found["exclusive_time_outliers"] == {
        ("list", "time"): "TotalDegradation",
        ("list:push", "time"): "SevereDegradation",
        ("libutil.so", "time"): "TotalDegradation",
        ("libutil.so:push", "time"): "SevereDegradation",
    }


def test_types_of_models(check: Callable[..., Any]) -> None:
    assert check("int", options=("-m", "best-both"))["integral_comparison"].keys() == {
        ("search", "integral of parametric"),
        ("search", "integral of non-parametric"),
    }


@pytest.mark.parametrize(("settings", "changes"), [
    ({"integral_comparison": {"maybe": 0.5}}, {"search": "MaybeDegradation"}),
    ({"integral_comparison": {"no-change": 0.5}}, {}),
])  # fmt: skip
def test_limits_of_integrals(check, settings, changes) -> None:
    found = check("int", **settings).get("integral_comparison", {})
    assert {location: result for (location, _), result in found.items()} == changes


def test_settings_of_exclusive_times(check: Callable[..., Any]) -> None:
    found = check("eto", location_filter="lib.*so", exclusive_time_outliers={"severe": 1e12})
    assert found["exclusive_time_outliers"] == {
        ("libutil.so", "time"): "TotalDegradation",
        ("push", "time"): "Degradation",
    }
    assert "exclusive_time_outliers" not in check("eto", cutoff=99, exclusive_time_outliers={"total": 99})


def test_what_a_profile_lacks(project: Any, perun: Callable[..., Any], tmp_path: Path) -> None:
    pair = [traced(tmp_path / f"{name}.perf", 0, f=1.0) for name in ("old", "new")]
    rules = json.dumps([{"method": "int"}, {"method": "loc"}, {"method": "eto"}])
    assert perun("config", "--local", "set", "degradation.strategies", rules).code == 0
    outcome = perun("-v", "check", "--format", "manual", "profiles", *pair)
    assert outcome.code == 0
    for name in ("integral_comparison", "local_statistics"):
        (line,) = (line for line in outcome.lines if f"'{name}'" in line)
        assert "the baseline and the target have no models" in line
        assert "perun postprocessby" in line
    assert "applying 'exclusive_time_outliers' method" in outcome.out
    assert "No Change" in outcome.out
