"""Help: of everything, without a repository and without a profile; and the options that it lists."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from perun.cli.main import cli
from perun.cli.options import UNIFORM
from perun.cli.session import Session
from perun.plugin.registry import Registry

OTHER_MEANING = {"config", "fuzz", "show flamegraph", "show tableof models", "show tableof resources"}
"""Commands in which the manual gives `-h` another meaning than help."""


@pytest.fixture(scope="module")
def commands() -> dict[str, click.Context]:
    """Each command and group of the tree, by its words, with its context."""
    session = Session({}, Path("/"))
    session.registry = Registry()
    found: dict[str, click.Context] = {}

    def walk(command: click.Command, parent: click.Context | None, words: tuple[str, ...]) -> None:
        settings = command.context_settings if parent is None else {}
        context = click.Context(command, parent, words[-1] if words else "perun", obj=session, **settings)
        found[" ".join(words)] = context
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                walk(inner, context, (*words, name))

    walk(cli, None, ())
    assert len(found) > 70
    return found


def test_h_is_help_but_where_the_manual_says_otherwise(commands):
    helps = {words: one.command.get_help_option_names(one) for words, one in commands.items()}
    assert all("--help" in names for names in helps.values())
    assert {words for words, names in helps.items() if "-h" not in names} == OTHER_MEANING


@pytest.mark.parametrize("arguments", [("show", "-h"), ("status", "-h"), ("stats", "list-files", "-h")])
def test_h_prints_the_help(perun, arguments):
    assert perun(*arguments).out == perun(*arguments[:-1], "--help").out


def test_h_of_perun_itself(perun):
    assert perun("-h").out == perun("--help").out == perun().out


@pytest.mark.parametrize(
    ("arguments", "usage", "option"),
    [
        (("show", "bars"), "perun show PROFILE bars", "--per"),
        (("show", "tableof", "resources"), "perun show PROFILE tableof resources", "--headers"),
        (("show", "-m", "HEAD", "raw"), "perun show PROFILE raw", "--format"),
        (("postprocessby", "moving-average", "sma"), "perun postprocessby PROFILE moving-average sma", "-wt"),
        (("postprocessby", "moving_average"), "perun postprocessby PROFILE moving-average", "-mp"),
        (("collect", "time"), "perun collect time", "--repeat"),
        (("collect", "-c", "./app", "time"), "perun collect time", "--repeat"),
    ],
)
def test_help_of_a_plugin_without_a_profile(perun, arguments, usage, option):
    text = perun(*arguments, "--help").out  # outside of any repository
    assert text.startswith(f"Usage: {usage} ")
    assert option in text


def test_a_profile_may_have_the_name_of_a_view(perun, write_profile):
    write_profile("bars.perf", workload="of bars")
    assert "perun show PROFILE raw" in perun("show", "bars", "raw", "--help").out
    assert perun("show", "bars", "raw").json["header"]["workload"] == "of bars"


def test_a_plugin_in_the_place_of_the_profile_is_told(perun, project):
    failed = perun("show", "bars", check=False)
    assert failed.code == 2
    assert "error: bars stands in the place of PROFILE; write: perun show PROFILE bars" in failed.err


def test_help_of_no_plugin_is_that_of_the_group(perun):
    assert "Usage: perun show [OPTIONS] PROFILE" in perun("show", "0@i", "--help").out
    assert "there is no view 'bras'" in perun("show", "0@i", "bras", "--help", check=False).err


def test_run_job_lists_the_units(perun):
    text = perun("run", "job", "--help").out
    registry = Registry()
    for family in ("collect", "postprocess"):
        for name in registry.names(family):
            assert f"  {name}  " in text
            assert registry.help(family, name).split()[0] in text


@pytest.fixture(scope="module")
def options(commands):
    """The options of each command: `[("show bars", click.Option), ...]`."""
    found = [(words, one) for words, context in commands.items() for one in context.command.params]
    return [(words, one) for words, one in found if isinstance(one, click.Option)]


def test_one_thing_has_one_long_name_everywhere(options):
    """Beside that of the manual, where it has another one."""
    for words, option in options:
        names = set(option.opts)
        assert {UNIFORM[name] for name in names & UNIFORM.keys()} <= names, words
        assert {name.replace("_", "-") for name in names if name.startswith("--")} <= names, words
    used = {name for _, option in options for name in option.opts}
    assert UNIFORM.keys() <= used


def test_one_long_name_is_one_thing_everywhere(options):
    """At least it takes as many values; the manual itself has names that do not."""
    values = {}
    for _, option in options:
        for name in (name for name in option.opts if name.startswith("--")):
            values.setdefault(name, set()).add(0 if option.is_flag or option.count else option.nargs)
    assert {name for name, numbers in values.items() if len(numbers) > 1} == {
        "--sampling", "--metric", "--collector-params", "--postprocessor-params"
    }  # fmt: skip


def test_no_name_is_given_twice_in_a_command(commands):
    for words, context in commands.items():
        names = [name for one in context.command.params for name in (*one.opts, *one.secondary_opts)]
        assert len(names) == len(set(names)), words


@pytest.mark.parametrize("name", ["--output-file", "--output"])
def test_both_names_do_the_same(perun, project, write_profile, name):
    write_profile()
    perun("show", "0@p", "raw", name, "out.json")
    assert "resources" in (project.path / "out.json").read_text()


def test_short_options_mean_what_the_manual_says(options):
    """One letter means several things there; the help of each command says which."""
    found = {}
    for words, option in options:
        for short in set(option.opts) & {"-c", "-m", "-cp", "-o"}:
            found.setdefault(short, {})[words] = next(name for name in option.opts if name.startswith("--"))
    params = "--collector-params"
    assert found["-cp"] == {"collect": "--crawl-parents", "run job": params, "fuzz": params}
    assert found["-c"]["collect"] == found["-c"]["compare"] == "--cmd"
    assert found["-c"]["run"] == "--crawl-parents"
    assert found["-c"]["run job"] == "--collector"
    assert found["-c"]["check head"] == "--compute-missing"
    assert found["-m"]["run"] == found["-m"]["collect"] == "--minor-version"
    assert found["-m"]["check all"] == "--models-type"
    assert found["-m"]["check profiles"] == found["-m"]["show"] == found["-m"]["add"] == "--minor"
    assert found["-m"][""] == "--metrics"
    assert found["-m"]["postprocessby regression-analysis"] == "--method"
    assert found["-o"]["show bars"] == "--of"
    assert found["-o"]["collect trace"] == "--output-handling"
