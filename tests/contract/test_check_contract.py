"""What every check keeps to: one suite, run over all of them."""

import copy
import dataclasses
import importlib
import pkgutil
from typing import Any

import pytest

import perun.check
from islands import profile as island_profile
from islands import usage
from perun.check.average_amount_threshold import AverageAmountThreshold, ThresholdParams
from perun.core.errors import ProfileError
from perun.plugin.api import NO_POSTPROCESS_CONTEXT, Check, CheckContext
from perun.plugin.loading import short_string
from perun.plugin.params import specs
from perun.postprocess.regression_analysis import RegressionAnalysis, RegressionParams
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile
from profiles import profile_of

_average: Check[ThresholdParams] = AverageAmountThreshold()

CHECKS = tuple(
    module.name for module in pkgutil.iter_modules(perun.check.__path__) if not module.name.startswith("_")
)
NEED_NO_MODELS = ("average_amount_threshold", "exclusive_time_outliers", "growth", "hodges_lehmann_ratio")
NEED_BOUNDS = ("bound_classes",)
NEED_ISLANDS = ("island_usage",)
NEED_MODELS = tuple(name for name in CHECKS if name not in (*NEED_NO_MODELS, *NEED_BOUNDS, *NEED_ISLANDS))
"""Those that compare nothing but models."""


@pytest.fixture(params=CHECKS)
def check(request: pytest.FixtureRequest) -> Any:
    return importlib.import_module(f"perun.check.{request.param}").PLUGIN()


def profile(**amounts: float) -> Profile:
    """One resource of each uid for each of five sizes, growing with it, and the models of them all."""
    resources = [
        {"uid": uid, "amount": amount * size, "exclusive": amount * size * 1e9, "structure-unit-size": size,
         "order": 1}
        for uid, amount in amounts.items()
        for size in range(1, 6)
    ]  # fmt: skip
    made = profile_of(resources, cmd="./prog")
    return RegressionAnalysis().process(made, RegressionParams(method="full"), NO_POSTPROCESS_CONTEXT)


def bounds(**amounts: float) -> Profile:
    """The same functions as a profile of bounds: as many iterations as :func:`profile` has seconds."""
    made = Profile({"header": {"type": "bound", "units": {"bound": "iterations"}}})
    made.update_resources([
        {"uid": {"source": "a.c", "function": uid, "line": 3, "column": 4}, "type": "bound",
         "subtype": "total bound", "bound": f"{round(10 * amount)} × n", "class": "O(n^1)"}
        for uid, amount in amounts.items()
    ])  # fmt: skip
    return made


def island(**amounts: float) -> Profile:
    """The same functions as files to which an island writes."""
    return island_profile([usage("filewrite", amount, uid=uid) for uid, amount in amounts.items()])


def made_for(check: Any, **amounts: float) -> Profile:
    """A profile that the check can compare."""
    if check.name in NEED_ISLANDS:
        return island(**amounts)
    return bounds(**amounts) if check.name in NEED_BOUNDS else profile(**amounts)


def compare(check: Any, baseline: Profile, target: Profile) -> list[DegradationInfo]:
    return list(check.compare(baseline, target, check.Params(), CheckContext()))


def test_describes_itself(check: Any) -> None:
    assert check.short == short_string(check.name)
    assert check.help
    declared: Any = check.Params
    assert dataclasses.is_dataclass(declared)
    assert all(spec.info.help for spec in specs(check.Params))
    check.Params()


def test_a_profile_against_itself(check: Any) -> None:
    same = made_for(check, f=1.0, g=2.0)
    quiet = {PerformanceChange.NoChange, PerformanceChange.Unknown}
    assert {change.result for change in compare(check, same, same)} <= quiet


def test_changes_can_be_stored(check: Any) -> None:
    pair = made_for(check, f=1.0, g=2.0, old=1.0), made_for(check, f=4.0, g=0.1, new=1.0)
    for change in compare(check, *pair):
        assert isinstance(change, DegradationInfo)
        assert len(change.to_storage_record().split(" ")) == 9


def test_profiles_are_not_changed(check: Any) -> None:
    baseline, target = made_for(check, f=1.0, old=3.0), made_for(check, f=4.0)
    before = copy.deepcopy((baseline.serialize(), target.serialize()))
    compare(check, baseline, target)
    assert (baseline.serialize(), target.serialize()) == before


def test_empty_profiles(check: Any) -> None:
    if check.name in NEED_BOUNDS:
        nothing = bounds()
        assert compare(check, nothing, nothing) == []
        assert [one.location for one in compare(check, nothing, bounds(f=1.0))] == ["a.c:4: f"]
        return
    if check.name in NEED_ISLANDS:
        nothing = island_profile()
        assert [one.location for one in compare(check, nothing, nothing)] == []
        assert "f [filewrite]" in [one.location for one in compare(check, nothing, island(f=1.0))]
        return
    empty = Profile({"header": {"type": "time"}})
    if check.name in NEED_MODELS:
        for pair, name in (
            ((empty, profile(f=1.0)), "the baseline has no models"),
            ((profile(f=1.0), empty), "the target has no models"),
            ((empty, empty), "the baseline and the target have no models"),
        ):
            with pytest.raises(ProfileError, match=name) as caught:
                compare(check, *pair)
            assert "perun postprocessby" in caught.value.hint
        return
    assert compare(check, empty, empty) == []
    for pair in ((empty, profile(f=1.0)), (profile(f=1.0), empty)):
        locations = {change.location for change in compare(check, *pair)}
        # Exclusive times have a total of each binary besides.
        assert "f" in locations <= ({"f", "prog"} if check.short == "ETO" else {"f"})


def test_same_again(check: Any) -> None:
    pair = made_for(check, f=1.0, g=2.0), made_for(check, g=7.0, f=0.1)
    assert compare(check, *pair) == compare(check, *pair)
