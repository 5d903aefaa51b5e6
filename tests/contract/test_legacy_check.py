"""Checks written as the manual's section 8.4 says, through the registry."""

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from perun.core.errors import PluginError
from perun.plugin.api import CheckContext
from perun.plugin.params import FreeParams
from perun.plugin.registry import Registry
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile
from profiles import columns_of, profile_of

CHECK = '''
"""Compares how many resources there are."""
from perun.utils.structs import DegradationInfo, PerformanceChange


def my_degradation_checker(baseline_profile, target_profile):
    """Yields one change."""
    print("looking")
    before = len(list(baseline_profile.all_resources()))
    after = len(list(target_profile.all_resources()))
    change = PerformanceChange.Degradation if after > before else PerformanceChange.NoChange
    yield DegradationInfo(change, "all", str(before), str(after), t="count", rd=after - before)
'''
SPY = """
from perun.utils.structs import DegradationInfo, PerformanceChange

def my_degradation_checker({parameters}):
    seen = repr(sorted((name, repr(value)) for name, value in locals().items()))
    yield DegradationInfo(PerformanceChange.NoChange, seen, "", "")
"""

Make = Callable[[str], Any]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Write a check and get it from the registry."""

    def make(text: str) -> Any:
        (tmp_path / "check").mkdir(exist_ok=True)
        (tmp_path / "check" / "my_degradation_checker.py").write_text(dedent(text))
        return Registry([tmp_path]).get("check", "MDC")

    return make


def profile(count: int) -> Profile:
    return profile_of(columns_of({"f": range(count)}))


def compare(plugin: Any, models_type: str = "", **values: Any) -> list[DegradationInfo]:
    context = CheckContext(models_type=models_type)
    return list(plugin.compare(profile(1), profile(3), FreeParams(values), context))


def test_it_yields_its_changes(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    expected = DegradationInfo(PerformanceChange.Degradation, "all", "1", "3", t="count", rd=2)
    assert compare(make(CHECK)) == [expected]
    assert capsys.readouterr() == ("", "looking\n")


def test_what_it_says_of_itself(make: Make) -> None:
    plugin = make(CHECK)
    assert (plugin.name, plugin.short) == ("my_degradation_checker", "MDC")
    assert plugin.help == "Compares how many resources there are."


def test_help_of_a_module_without_docstring(make: Make) -> None:
    plugin = make(CHECK.replace('"""Compares how many resources there are."""', ""))
    assert plugin.help == "Yields one change."


def seen(plugin: Any) -> str:
    (change,) = compare(plugin, "best-param", limit=3, target=4, baseline_profile=5)
    return change.location


@pytest.mark.parametrize(("parameters", "given", "kept_out"), [
    ("baseline, target", [], ["models_strategy", "limit"]),
    ("base, targ, limit=1", ["('limit', '3')"], ["models_strategy"]),
    ("base, targ, models_strategy='x'", ["('models_strategy', \"'best-param'\")"], ["limit"]),
    ("base, targ, more=7", ["('more', '7')"], ["limit"]),
    ("base, targ, *, limit", ["('limit', '3')"], []),
    (
        "baseline_profile, targ, **rest",
        ["'limit': 3", "'models_strategy': 'best-param'", "'target': 4"],
        [],
    ),
])  # fmt: skip
def test_more_parameters(parameters: str, given: list[str], kept_out: list[str], make: Make) -> None:
    text = seen(make(SPY.format(parameters=parameters))).replace('\\"', '"').replace("\\'", "'")
    for part in given:
        assert part in text
    for part in kept_out:
        assert part not in text


def test_without_a_kind_of_models_the_default_of_the_function_holds(make: Make) -> None:
    assert "mine" in compare(make(SPY.format(parameters="base, targ, models_strategy='mine'")))[0].location


@pytest.mark.parametrize(("body", "message"), [
    ("pass", "must be a generator, but returns None"),
    ("return 3", "must be a generator, but returns 3"),
    ("yield 'slower'", "must yield DegradationInfo, not 'slower'"),
    ("yield None", "must yield DegradationInfo, not None"),
    ("yield from [1 / 0]", "failed: ZeroDivisionError: division by zero"),
    ("raise SystemExit", "failed: SystemExit"),
])  # fmt: skip
def test_a_check_that_fails(body: str, message: str, make: Make) -> None:
    plugin = make(f"def my_degradation_checker(baseline, target):\n    {body}\n")
    with pytest.raises(PluginError) as caught:
        compare(plugin)
    assert "the check 'my_degradation_checker'" in caught.value.message
    assert message in caught.value.message


def test_a_parameter_that_nobody_gives(make: Make) -> None:
    plugin = make("def my_degradation_checker(baseline, target, other):\n    yield\n")
    with pytest.raises(PluginError, match=r"TypeError.*'other'"):
        compare(plugin)


def test_a_list_will_do(make: Make) -> None:
    assert compare(make("def my_degradation_checker(baseline, target): return []")) == []


@pytest.mark.parametrize("text", ["", "def other(baseline, target): yield", "my_degradation_checker = 3"])
def test_a_module_without_the_function(text: str, make: Make) -> None:
    with pytest.raises(PluginError, match=r"defines no function my_degradation_checker\(\)"):
        make(text)


def test_a_package(tmp_path: Path) -> None:
    folder = tmp_path / "check" / "my_degradation_checker"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(CHECK)
    assert len(compare(Registry([tmp_path]).get("check", "my-degradation-checker"))) == 1
