"""Views written as the manual's sections 1.6.3 and 6.2 say, through the registry."""

import io
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import click
import pytest

from perun.core.errors import PluginError, UsageError
from perun.plugin.params import FreeParams
from perun.plugin.registry import Registry
from perun.profile.factory import Profile
from profiles import columns_of, profile_of

INIT = '''
"""Lists the uids."""
SUPPORTED_PROFILES = ["mixed|memory|mixed"]
'''
RUN = '''
import click
import perun.utils.helpers as helpers


@click.command()
@click.argument("key", default="uid")
@click.option("--times", "-t", type=int, default=1)
@click.option("--tag", multiple=True)
@helpers.pass_profile
def myview(profile, key, **kwargs):
    """Display the profile in custom format"""
    for _, resource in profile.all_resources():
        print(resource[key] * kwargs["times"])
    click.echo(" ".join(kwargs["tag"]) or "end")
'''

Make = Callable[..., Any]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Write a view and get it from the registry."""

    def make(run: str = RUN, init: str = INIT) -> Any:
        folder = tmp_path / "view" / "myview"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").write_text(dedent(init))
        (folder / "run.py").write_text(dedent(run))
        return Registry([tmp_path]).get("view", "myview")

    return make


@pytest.fixture
def profile() -> Profile:
    return profile_of(columns_of({"f": [1], "g": [1]}))


def render(plugin: Any, profile: Profile, **values: Any) -> str:
    out = io.StringIO()
    plugin.render(profile, FreeParams(values), out)
    return out.getvalue()


def test_render_with_defaults(make: Make, profile: Profile, capsys: pytest.CaptureFixture[str]) -> None:
    assert render(make(), profile) == "f\ng\nend\n"
    assert capsys.readouterr() == ("", "")


def test_render_with_options_and_arguments(make: Make, profile: Profile) -> None:
    assert render(make(), profile, key="type", times="2", tag=["a", "b"]) == "timetime\ntimetime\na b\n"


def test_an_argument_that_is_needed(make: Make, profile: Profile) -> None:
    plugin = make(RUN.replace(', default="uid"', ""))
    assert render(plugin, profile, key="uid").startswith("f\n")
    with pytest.raises(UsageError, match=r"Missing parameter: key|Missing argument"):
        render(plugin, profile)


def test_wrong_parameters(make: Make, profile: Profile) -> None:
    with pytest.raises(UsageError, match="has no parameter 'time'") as caught:
        render(make(), profile, time=1)
    assert "'times'" in caught.value.hint
    with pytest.raises(UsageError, match="'much' is not a valid integer"):
        render(make(), profile, times="much")


def test_as_a_command(make: Make, profile: Profile, capsys: pytest.CaptureFixture[str]) -> None:
    plugin = make()
    assert isinstance(plugin.command, click.Command)
    plugin.command.main(["type", "-t", "1"], standalone_mode=False, obj=SimpleNamespace(profile=profile))
    assert capsys.readouterr().out == "time\ntime\nend\n"


@pytest.mark.parametrize(("statement", "error", "message"), [
    ("1 / 0", PluginError, "the view 'myview' failed: ZeroDivisionError"),
    ("raise SystemExit(2)", PluginError, "SystemExit: 2"),
    ("raise click.UsageError('no amounts')", UsageError, "the view 'myview': no amounts"),
    ("click.get_current_context().exit(3)", PluginError, "ended with status 3"),
])  # fmt: skip
def test_a_view_that_fails(statement, error, message, make, profile) -> None:
    plugin = make(RUN.replace("    for _", f"    {statement}\n    for _"))
    with pytest.raises(error) as caught:
        render(plugin, profile)
    assert message in caught.value.message


def test_a_view_that_fails_as_a_command(make: Make, profile: Profile) -> None:
    plugin = make(RUN.replace("    for _", "    profile['nothing']\n    for _"))
    with pytest.raises(PluginError, match=r"KeyError: 'nothing'.*view/myview/run\.py, line \d+"):
        plugin.command.main([], standalone_mode=False, obj=SimpleNamespace(profile=profile))


def test_an_early_exit_is_no_failure(make: Make, profile: Profile) -> None:
    plugin = make(RUN.replace("    for _", "    click.get_current_context().exit()\n    for _"))
    assert render(plugin, profile) == ""


def test_a_reader_that_went_away(make: Make, profile: Profile) -> None:
    plugin = make(RUN.replace("    for _", "    raise BrokenPipeError\n    for _"))
    with pytest.raises(BrokenPipeError):
        render(plugin, profile)


@pytest.mark.parametrize(
    "run", ["", "def myview(profile): pass", "import click\na = click.Command('a')\nb = click.Command('b')"]
)
def test_a_view_without_command(run: str, make: Make) -> None:
    with pytest.raises(PluginError, match="defines no click command myview"):
        make(run)


def test_a_group_of_commands(make: Make, profile: Profile, capsys: pytest.CaptureFixture[str]) -> None:
    run = """
    import click
    from perun.utils.helpers import pass_profile

    @click.group()
    def myview():
        "Two ways."

    @myview.command()
    @pass_profile
    def short(profile):
        print(profile.type)

    @myview.command()
    @pass_profile
    def broken(profile):
        profile.nothing
    """
    plugin = make(run, "")
    session = SimpleNamespace(profile=profile)
    plugin.command.main(["short"], standalone_mode=False, obj=session)
    assert capsys.readouterr().out == "time\n"
    assert plugin.help == "Two ways."
    with pytest.raises(PluginError, match="AttributeError"):
        plugin.command.main(["broken"], standalone_mode=False, obj=session)


def test_help(make: Make) -> None:
    assert make().help == "Lists the uids."


def test_help_of_a_package_without_docstring(make: Make) -> None:
    assert make(init="").help == "Display the profile in custom format"


def test_pass_profile_passes_on_what_the_command_returns(profile: Profile) -> None:
    from perun.utils.helpers import pass_profile

    @click.command()
    @pass_profile
    def kind(profile: Profile) -> str:
        """Returns it."""
        return profile.type

    assert kind.help == "Returns it."
    assert kind.main([], standalone_mode=False, obj=SimpleNamespace(profile=profile)) == "time"
