"""Postprocessors written as the manual's section 5.2 says, through the registry."""

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import click
import pytest

from perun.core.errors import JobFailed, PluginError
from perun.plugin.params import FreeParams
from perun.plugin.registry import Registry
from perun.profile.factory import Profile
from profiles import columns_of, profile_of

INIT = '''
"""Multiplies amounts.

More of it."""
SUPPORTED_PROFILES = ["mixed|memory", "time"]
'''
RUN = '''
import click

import perun.logic.runner as runner
from perun.utils.helpers import pass_profile
from perun.utils.structs import PostprocessStatus


def before(**kwargs):
    """(optional)"""
    kwargs["factor"] = int(kwargs.get("factor", 2))
    return PostprocessStatus.OK, "", dict(kwargs)


def postprocess(profile, **configuration):
    """Multiplies."""
    resources = [resource for _, resource in profile.all_resources()]
    for resource in resources:
        resource["amount"] *= configuration["factor"]
    return PostprocessStatus.OK, "", {"profile": {"global": {"resources": resources}}}


@click.command()
@click.option("--factor", type=int, default=3)
@pass_profile
def mypostprocessor(profile, **kwargs):
    """Multiplies from the command line."""
    runner.run_postprocessor_on_profile(profile, "mypostprocessor", kwargs)
'''

Make = Callable[..., Any]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Write a postprocessor and get it from the registry."""

    def make(run: str = RUN, init: str = INIT) -> Any:
        folder = tmp_path / "postprocess" / "mypostprocessor"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").write_text(dedent(init))
        (folder / "run.py").write_text(dedent(run))
        return Registry([tmp_path]).get("postprocess", "mypostprocessor")

    return make


@pytest.fixture
def profile() -> Profile:
    return profile_of(columns_of({"f": [1, 2]}), cmd="ls", origin="f" * 40)


def process(plugin: Any, profile: Profile, **values: Any) -> Profile:
    made = plugin.process(profile, FreeParams(values))
    assert isinstance(made, Profile)
    return made


def amounts(profile: Profile) -> list[float]:
    return [resource["amount"] for _, resource in profile.all_resources()]


def test_the_phases_pass_on_their_parameters(make: Make, profile: Profile) -> None:
    assert amounts(process(make(), profile)) == [2, 4]
    assert amounts(process(make(), profile, factor="5")) == [5, 10]


def test_a_new_profile_keeps_how_it_was_collected(make: Make, profile: Profile) -> None:
    made = process(make(), profile)
    for key in ("header", "collector_info", "postprocessors", "origin"):
        assert made[key] == profile[key]


def test_the_profile_may_be_changed_in_place(make: Make, profile: Profile) -> None:
    run = """
    def postprocess(profile, **configuration):
        profile["models"] = [{"uid": "f", "model": "linear"}]
        return 0, "", configuration
    """
    made = process(make(run), profile)
    assert made is profile
    assert len(made["models"]) == 1


def test_all_phases_run_in_order(make: Make, profile: Profile) -> None:
    phase = """
    def {0}(**kwargs):
        kwargs["profile"]["machine"] = kwargs["profile"].get("machine", []) + ["{0}"]
        return 0, "", dict(kwargs)
    """
    run = "".join(dedent(phase.format(name)) for name in ("after", "before", "postprocess"))
    assert process(make(run), profile)["machine"] == ["before", "postprocess", "after"]


@pytest.mark.parametrize(("body", "error", "message"), [
    ("return 1, 'too few points', {}", JobFailed, "failed with status 1: too few points"),
    ("return None", PluginError, "must return (status, message, kwargs)"),
    ("return 0, '', {'profile': None}", PluginError, "must leave a profile"),
    ("raise KeyError('amount')", JobFailed, "KeyError: 'amount'"),
])  # fmt: skip
def test_a_broken_phase(body, error, message, make, profile) -> None:
    plugin = make(f"def postprocess(profile, **configuration):\n    {body}\n")
    with pytest.raises(error) as caught:
        process(plugin, profile)
    assert type(caught.value) is error
    assert message in caught.value.message
    assert "postprocessor 'mypostprocessor'" in caught.value.message


def test_a_postprocessor_without_postprocess(make: Make) -> None:
    with pytest.raises(PluginError, match=r"defines no function postprocess\(\)"):
        make("def collect(**kwargs): pass")


def test_what_it_prints_is_no_answer(make, profile, capsys) -> None:
    process(make("def postprocess(**kwargs):\n    print('hm')\n    return 0, '', kwargs"), profile)
    assert capsys.readouterr() == ("", "hm\n")


def test_what_it_says_of_itself(make: Make) -> None:
    plugin = make()
    assert (plugin.name, plugin.help) == ("mypostprocessor", "Multiplies amounts.")
    assert plugin.supported_profiles == ("mixed", "memory", "time")


@pytest.mark.parametrize("name", ["mypostprocessor", "regression_analysis"])
def test_the_click_command_reaches_perun(name: str, make: Make, profile: Profile) -> None:
    # The template of the manual calls the function `regression_analysis`.
    plugin = make(RUN.replace("def mypostprocessor", f"def {name}"))
    calls: list[Any] = []
    session = SimpleNamespace(profile=profile, run_postprocessor=lambda *arguments: calls.append(arguments))
    assert isinstance(plugin.command, click.Command)
    plugin.command.main(["--factor", "7"], standalone_mode=False, obj=session)
    assert calls == [(profile, "mypostprocessor", {"factor": 7})]
    assert calls[0][0] is profile
