"""Collectors written as the manual's section 4.2 says, through the registry."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import click
import pytest

from perun.core.errors import CollectorUnavailable, JobFailed, PerunError, PluginError, Terminated
from perun.plugin.api import CollectContext, Run
from perun.plugin.params import FreeParams, from_mapping
from perun.plugin.registry import Registry
from perun.profile.factory import Profile
from perun.profile.incomplete import text_of

INIT = '''
"""My collector counts lines."""
COLLECTOR_TYPE = "mixed"
COLLECTOR_DEFAULT_UNITS = {"mixed": "lines"}
'''
RUN = '''
import click

import perun.logic.runner as runner


def before(**kwargs):
    """(optional)"""
    kwargs["seen"] = ["before"]
    return 0, "", dict(kwargs)


def collect(**kwargs):
    """Counts."""
    kwargs["seen"].append("collect")
    resource = {"amount": 3, "uid": "main", "type": "mixed", "subtype": kwargs.get("mode", "none")}
    kwargs["profile"] = {"global": {"time": "0.0", "resources": [resource]}}
    return 0, "", dict(kwargs)


def after(**kwargs):
    """(optional)"""
    resources = kwargs["profile"]["global"]["resources"]
    for phase in kwargs["seen"] + ["after"]:
        resources.append({**resources[0], "uid": phase})
    return 0, "", dict(kwargs)


@click.command()
@click.option("--mode", "-m", default="fast")
@click.pass_context
def mycollector(ctx, **kwargs):
    """Counts from the command line."""
    runner.run_collector_from_cli_context(ctx, "mycollector", kwargs)
'''

Make = Callable[..., Any]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Write a collector and get it from the registry."""

    def make(run: str = RUN, init: str = INIT, name: str = "mycollector") -> Any:
        folder = tmp_path / "plugins" / "collect" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").write_text(dedent(init))
        (folder / "run.py").write_text(dedent(run))
        return Registry([tmp_path / "plugins"]).get("collect", name)

    return make


def collect(plugin: Any, tmp_path: Path, run: Run | None = None, **params: Any) -> Profile:
    context = CollectContext(tmp_path / "scratch")
    run = run or Run("./bin", "-a 1", "input.txt", tmp_path)
    made = plugin.collect(run, from_mapping(plugin.Params, params, "here"), context)
    assert isinstance(made, Profile)
    return made


def test_the_phases_run_in_order(make: Make, tmp_path: Path) -> None:
    profile = collect(make(), tmp_path, mode="deep")
    resources = [resource for _, resource in profile.all_resources()]
    assert [one["uid"] for one in resources] == ["main", "before", "collect", "after"]
    assert {one["subtype"] for one in resources} == {"deep"}


def test_what_the_profile_lacks_is_filled_in(make: Make, tmp_path: Path) -> None:
    profile = collect(make(), tmp_path, mode=Path("a/b"), more=(1, 2))
    assert profile["header"] == {"type": "mixed", "units": {"mixed": "lines"}}
    assert profile["collector_info"] == {"name": "mycollector", "params": {"mode": "a/b", "more": [1, 2]}}
    assert profile["postprocessors"] == []


def test_what_the_profile_has_stays(make: Make, tmp_path: Path) -> None:
    run = """
    def collect(**kwargs):
        header = {"type": "time", "units": {"time": "ms"}, "cmd": "other", "args": "", "workload": "w"}
        info = {"name": "mycollector", "params": {"a": 1}}
        profile = {"header": header, "collector_info": info, "resources": {}, "resource_type_map": {}}
        return 0, "", {"profile": profile}
    """
    profile = collect(make(run), tmp_path)
    assert profile["header"]["cmd"] == "other"
    assert profile["header"]["units"] == {"time": "ms"}
    assert profile["collector_info"]["params"] == {"a": 1}


def test_a_profile_object_may_be_returned(make: Make, tmp_path: Path) -> None:
    run = """
    from perun.profile.factory import Profile

    def collect(**kwargs):
        profile = Profile()
        profile.update_resources([{"amount": 1, "uid": "f", "type": "mixed"}])
        return 0, "", {"profile": profile}
    """
    profile = collect(make(run), tmp_path)
    assert len(list(profile.all_resources())) == 1
    assert profile["header"]["type"] == "mixed"


SNAPSHOTS = """
def collect(**kwargs):
    resources = [{"amount": 1, "uid": "f", "type": "memory"}]
    kwargs["profile"] = {"snapshots": [{"time": "0.1", "resources": resources}]}
    return 0, "", kwargs
"""


def test_old_layouts_are_accepted(make: Make, tmp_path: Path) -> None:
    assert [number for number, _ in collect(make(SNAPSHOTS), tmp_path).all_snapshots()] == [0]


SPY = """
import os, sys

def collect(executable, cmd, args, workload, depth=1, **kwargs):
    print("counting")
    uid = "|".join([str(executable), executable.cmd, executable.args, executable.workload,
                    cmd, args, workload, str(depth), os.getcwd(), os.environ.get("MARK", "")])
    return 0, "", {"profile": {"resources": {}, "header": {"seen": uid}}}
"""


def test_what_a_phase_is_given(make, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("OUTSIDE", "kept")
    home, environ = Path.cwd(), dict(os.environ)
    place = tmp_path / "version"
    place.mkdir()
    run = Run("./bin", "-a", "< in.txt", place, {"MARK": "m", "PATH": "/bin"})
    profile = collect(make(SPY), tmp_path, run, depth=4)
    expected = [
        "./bin -a < in.txt",
        "./bin",
        "-a",
        "< in.txt",
        "./bin",
        "-a",
        "< in.txt",
        "4",
        str(place),
        "m",
    ]
    assert profile["header"]["seen"].split("|") == expected
    assert (Path.cwd(), dict(os.environ)) == (home, environ)
    assert capsys.readouterr() == ("", "counting\n")


def test_place_and_environment_are_restored_after_a_failure(make: Make, tmp_path: Path) -> None:
    home, environ = Path.cwd(), dict(os.environ)
    plugin = make("def collect(**kwargs): raise RuntimeError('no')")
    with pytest.raises(JobFailed):
        collect(plugin, tmp_path, Run("./bin", cwd=tmp_path, environ={"A": "b"}))
    assert (Path.cwd(), dict(os.environ)) == (home, environ)


def test_a_missing_folder_is_a_failed_job(make: Make, tmp_path: Path) -> None:
    with pytest.raises(JobFailed, match="FileNotFoundError"):
        collect(make(), tmp_path, Run("./bin", cwd=tmp_path / "gone"))


@pytest.mark.parametrize("status", ["0", "CollectStatus.OK", "False", "other.OK"])
def test_a_successful_status(status: str, make: Make, tmp_path: Path) -> None:
    run = f"""
    from enum import Enum
    from perun.utils.structs import CollectStatus
    other = Enum("Other", {{"OK": (0, "fine")}})

    def before(**kwargs):
        return {status}, "", kwargs

    def collect(**kwargs):
        return {status}, "", {{"profile": {{"resources": {{}}}}}}
    """
    assert collect(make(run), tmp_path).type == "mixed"


@pytest.mark.parametrize("status", ["1", "-1", "CollectStatus.ERROR", "True", "None", "'OK'"])
@pytest.mark.parametrize("phase", ["before", "collect", "after"])
def test_another_status_fails_the_job(status: str, phase: str, make: Make, tmp_path: Path) -> None:
    run = f"""
    from perun.utils.structs import CollectStatus

    def before(**kwargs):
        return 0, "", kwargs

    def collect(**kwargs):
        return 0, "", {{"profile": {{"resources": {{}}}}}}

    def after(**kwargs):
        return 0, "", kwargs

    def {phase}(**kwargs):
        return {status}, "no such binary", kwargs
    """
    with pytest.raises(JobFailed, match="no such binary") as caught:
        collect(make(run), tmp_path)
    assert f"{phase}() of the collector 'mycollector'" in caught.value.message


@pytest.mark.parametrize(("body", "error", "message"), [
    ("return None", PluginError, "must return (status, message, kwargs), not None"),
    ("return 0", PluginError, "not 0"),
    ("return 0, ''", PluginError, "not (0, '')"),
    ("return 0, '', []", PluginError, "not (0, '', [])"),
    ("return 0, '', kwargs", PluginError, "must leave a profile in kwargs['profile'], not None"),
    ("return 0, '', {'profile': 'p.perf'}", PluginError, "not 'p.perf'"),
    ("return 0, '', {'profile': {'snapshots': 3}}", PluginError, "in no known layout"),
    ("return 0, '', {'profile': {'global': {'resources': [7]}}}", PluginError, "profile of the collector"),
    ("1 / 0", JobFailed, "ZeroDivisionError: division by zero"),
    ("raise SystemExit(4)", JobFailed, "SystemExit: 4"),
    ("raise OSError", JobFailed, "failed: OSError ("),
    ("__import__('json').loads('{')", JobFailed, "JSONDecodeError"),
])  # fmt: skip
def test_a_broken_phase(body: str, error: type[PerunError], message: str, make: Make, tmp_path: Path) -> None:
    plugin = make(f"def collect(**kwargs):\n    {body}\n")
    with pytest.raises(error) as caught:
        collect(plugin, tmp_path)
    assert type(caught.value) is error
    assert message in caught.value.message
    assert "mycollector" in caught.value.message
    assert "\n" not in caught.value.message
    if error is JobFailed:
        assert f"{tmp_path}/plugins/collect/mycollector/run.py, line 2" in caught.value.message
        assert caught.value.__cause__ is not None


def test_errors_of_perun_pass(make: Make, tmp_path: Path) -> None:
    run = """
    from perun.core.errors import CollectorUnavailable

    def before(**kwargs):
        raise CollectorUnavailable("needs root", "sudo perun")
    def collect(**kwargs):
        return 0, "", kwargs
    """
    with pytest.raises(CollectorUnavailable, match="needs root"):
        collect(make(run), tmp_path)


def test_an_interrupt_passes(make: Make, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        collect(make("def collect(**kwargs): raise KeyboardInterrupt"), tmp_path)


def test_a_request_to_end_passes(make: Make, tmp_path: Path) -> None:
    with pytest.raises(Terminated):  # another SystemExit is a failure of the plugin
        code = "from perun.core.errors import Terminated\ndef collect(**kwargs): raise Terminated(143)"
        collect(make(code), tmp_path)


def test_a_collector_may_say_what_its_profile_lacks(make: Make, tmp_path: Path) -> None:
    run = """
    def collect(**kwargs):
        header = {"type": "time", "incomplete": [{"reason": "lost", "amount": 7, "unit": "packets"}]}
        return 0, "", {**kwargs, "profile": {"header": header, "resources": {}}}
    """
    assert text_of(collect(make(run), tmp_path)) == "7 packets lost"


@pytest.mark.parametrize("run", ["", "collect = 3", "def before(**kwargs): return 0, '', kwargs"])
def test_a_collector_without_collect(run: str, make: Make) -> None:
    with pytest.raises(PluginError, match=r"run\.py defines no function collect\(\)"):
        make(run)


def test_a_package_without_run(tmp_path: Path) -> None:
    folder = tmp_path / "collect" / "empty"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    with pytest.raises(PluginError, match=r"defines no function collect\(\)"):
        Registry([tmp_path]).get("collect", "empty")


def test_a_broken_run_module(make: Make) -> None:
    with pytest.raises(PluginError, match="SyntaxError"):
        make("def collect(:\n")
    with pytest.raises(PluginError, match="No module named 'no_such_library'"):
        make("import no_such_library", name="othercollector")


def test_name_help_and_parameters(make: Make) -> None:
    plugin = make()
    assert (plugin.name, plugin.help) == ("mycollector", "My collector counts lines.")
    assert plugin.Params is FreeParams
    assert plugin.accepts_any is True


@pytest.mark.parametrize("docstring", ["", '"""..."""\n', '"""\n...\n"""\n'])
def test_a_template_without_description_has_help_too(docstring: str, make: Make) -> None:
    assert make(init=docstring).help == "The collector mycollector."


def test_the_click_command_reaches_perun(make: Make, tmp_path: Path) -> None:
    plugin = make()
    calls: list[Any] = []
    session = SimpleNamespace(run_collector=lambda *arguments: calls.append(arguments))
    assert isinstance(plugin.command, click.Command)
    plugin.command.main(["--mode", "slow"], standalone_mode=False, obj=session)
    plugin.command.main([], standalone_mode=False, obj=session)
    assert calls == [("mycollector", {"mode": "slow"}), ("mycollector", {"mode": "fast"})]
    assert collect(plugin, tmp_path, **calls[0][1])["collector_info"]["params"] == {"mode": "slow"}


def test_a_collector_without_command(make: Make) -> None:
    assert make(SNAPSHOTS).command is None


def test_what_perun_raises_in_the_command_is_not_blamed_on_the_plugin(make: Make) -> None:
    def run_collector(name: str, params: Any) -> None:
        raise ZeroDivisionError("of Perun")

    session = SimpleNamespace(run_collector=run_collector)
    with pytest.raises(ZeroDivisionError):
        make().command.main([], standalone_mode=False, obj=session)


def test_what_the_command_itself_raises_is(make: Make, tmp_path: Path) -> None:
    run = RUN.replace("    runner.run", "    1 / 0\n    runner.run")
    with pytest.raises(
        PluginError, match=r"collector 'mycollector' failed: ZeroDivisionError.*run\.py, line \d+"
    ):
        make(run).command.main([], standalone_mode=False, obj=None)


def test_an_option_callback_that_raises(make: Make) -> None:
    run = RUN.replace('default="fast"', 'default="fast", callback=lambda ctx, option, value: 1 / 0')
    with pytest.raises(PluginError, match="ZeroDivisionError"):
        make(run).command.main([], standalone_mode=False, obj=None)


def test_usage_errors_stay_those_of_click(make: Make) -> None:
    with pytest.raises(click.UsageError):
        make().command.main(["--nope"], standalone_mode=False, obj=None)


def test_a_single_file(tmp_path: Path) -> None:
    (tmp_path / "collect").mkdir()
    (tmp_path / "collect" / "flat.py").write_text('"""Flat."""\nCOLLECTOR_TYPE = "time"\n' + SNAPSHOTS)
    plugin = Registry([tmp_path]).get("collect", "flat")
    assert plugin.help == "Flat."
    assert collect(plugin, tmp_path).type == "time"


def test_a_name_of_two_words(make: Make, tmp_path: Path) -> None:
    plugin = make(RUN.replace("mycollector", "my_collector"), name="my_collector")
    assert plugin.name == "my_collector"
    assert plugin.command is not None
    assert "my-collector" in Registry([tmp_path / "plugins"]).names("collect")


def test_the_same_file_is_run_once(make: Make) -> None:
    make()
    module = sys.modules["perun.collect.mycollector"]
    make()
    assert sys.modules["perun.collect.mycollector"] is module
