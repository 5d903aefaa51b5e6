"""Plugins of a repository: loaded only where the user trusts it; those of the manual's templates work."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

COLLECTOR = {
    "__init__.py": '''
        """Counts letters."""
        COLLECTOR_TYPE = "mixed"
        COLLECTOR_DEFAULT_UNITS = {"mixed": "letters"}
        ''',
    "run.py": '''
        import click

        import perun.logic.runner as runner


        def before(**kwargs):
            """(optional)"""
            return 0, "", dict(kwargs)


        def collect(**kwargs):
            """Counts the letters of the command."""
            amount = len(str(kwargs["executable"].cmd)) * int(kwargs.get("times", 1))
            resources = [{"amount": amount, "uid": "cmd", "type": "mixed", "subtype": "letters"}]
            kwargs["profile"] = {"global": {"time": "0.0", "resources": resources}}
            return 0, "", dict(kwargs)


        def after(**kwargs):
            """(optional)"""
            return 0, "", dict(kwargs)


        @click.command()
        @click.option("--times", "-t", type=int, default=1)
        @click.pass_context
        def mycollector(ctx, **kwargs):
            """Counts letters, from the command line."""
            runner.run_collector_from_cli_context(ctx, "mycollector", kwargs)
        ''',
}
POSTPROCESSOR = {
    "__init__.py": '''
        """Multiplies amounts."""
        SUPPORTED_PROFILES = ["mixed|memory|time"]
        ''',
    "run.py": '''
        import click

        import perun.logic.runner as runner
        from perun.utils.helpers import pass_profile


        def postprocess(profile, **configuration):
            """Multiplies."""
            resources = [resource for _, resource in profile.all_resources()]
            for resource in resources:
                resource["amount"] *= configuration["factor"]
            return 0, "", {"profile": {"global": {"resources": resources}}}


        @click.command()
        @click.option("--factor", type=int, default=3)
        @pass_profile
        def mypostprocessor(profile, **kwargs):
            """Multiplies, from the command line."""
            runner.run_postprocessor_on_profile(profile, "mypostprocessor", kwargs)
        ''',
}
VIEW = {
    "__init__.py": '''
        """Shows amounts."""
        SUPPORTED_PROFILES = ["mixed|memory|mixed"]
        ''',
    "run.py": '''
        import click

        import perun.utils.helpers as helpers


        @click.command()
        @click.option("--mark", "-k", default="*")
        @helpers.pass_profile
        def myview(profile, **kwargs):
            """Display the profile in custom format"""
            for _, resource in profile.all_resources():
                click.echo(kwargs["mark"] + " " + str(resource["amount"]))
        ''',
}
CHECK = '''
    """Compares how many resources there are."""
    from perun.utils.structs import DegradationInfo, PerformanceChange


    def my_degradation_checker(baseline_profile, target_profile):
        """Yields one change."""
        before = len(list(baseline_profile.all_resources()))
        after = len(list(target_profile.all_resources()))
        change = PerformanceChange.Degradation if after > before else PerformanceChange.NoChange
        yield DegradationInfo(change, "everything", str(before), str(after), t="count", rd=after - before)
    '''
# Versions are the lines of the file `history`, the newest last.
VCS = '''
    """Versions are lines."""
    from perun.utils.structs import MajorVersion, MinorVersion


    def _lines():
        with open("history") as history:
            return history.read().split()


    def _version(number):
        parents = [_lines()[number - 1]] if number else []
        return MinorVersion("2024-01-02 03:04:05", "Ada", "a@b", _lines()[number], f"line {number}", parents)


    def init(vcs_init_params):
        return True


    def walk_minor_versions(head_minor_version):
        for number in range(_lines().index(head_minor_version), -1, -1):
            yield _version(number)


    def walk_major_versions():
        yield MajorVersion("trunk", _lines()[-1])


    def get_minor_head():
        return _lines()[-1]


    def get_head_major_version():
        return "trunk"


    def get_minor_version_info(minor_version):
        return _version(_lines().index(massage_parameter(minor_version)))


    def check_minor_version_validity(minor_version):
        if minor_version not in _lines():
            raise ValueError(f"no line {minor_version}")


    def massage_parameter(parameter, parameter_type=None):
        found = [line for line in _lines() if line.startswith(parameter)]
        if parameter != "HEAD" and len(found) != 1:
            raise ValueError(f"no line {parameter}")
        return _lines()[-1] if parameter == "HEAD" else found[0]


    def is_dirty():
        return False


    def save_state():
        return False, _lines()[-1]


    def restore_state(saved, state):
        pass


    def checkout(minor_version):
        pass
    '''


@pytest.fixture
def plugin(project):
    """Write a plugin into the repository: the text of one file, or the files of a package."""

    def plugin(family, name, content):
        folder = project.path / ".perun" / "plugins" / family
        files = (
            {f"{name}.py": content}
            if isinstance(content, str)
            else {f"{name}/{n}": t for n, t in content.items()}
        )
        for file, text in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(dedent(text))

    return plugin


@pytest.fixture
def trust(perun, project):
    return lambda: perun("trust")


@pytest.fixture
def cloned(perun, project):
    """The project is one that somebody else made: the user has not said that he trusts it."""
    perun("trust", "--revoke")
    return project


def test_an_untrusted_plugin_is_not_loaded(perun, cloned, plugin, write_profile, tmp_path):
    write_profile()
    spy = f"open({str(tmp_path / 'loaded')!r}, 'w')\n"
    plugin("view", "myview", {name: spy + dedent(text) for name, text in VIEW.items()})
    plugin("vcs", "git", spy)
    plugin("check", "average_amount_threshold", spy)
    plugin("collect", "mycollector", {name: spy + dedent(text) for name, text in COLLECTOR.items()})
    assert "myview" not in perun("show", "0@p", "--help").out
    for arguments in (("show", "0@p", "myview"), ("collect", "-c", "ls", "mycollector")):
        perun(*arguments, code=11, err=("which you do not trust", f"perun trust {cloned.path}"))
    perun("status")
    perun("log")
    assert not (tmp_path / "loaded").exists()


def test_a_repository_cannot_trust_itself(perun, cloned, plugin, write_profile, tmp_path):
    write_profile()
    plugin("view", "myview", f"open({str(tmp_path / 'loaded')!r}, 'w')")
    perun("config", "--local", "set", "plugins.trusted", f'["{cloned.path}"]', code=5)
    local = cloned.path / ".perun" / "local.yml"
    before = local.read_text()
    local.write_text(before + f"\nplugins:\n  trusted: ['{cloned.path}']\n")
    perun("show", "0@p", "myview", code=5)
    local.write_text(before)
    assert not (tmp_path / "loaded").exists()


def test_trust_in_another_folder_or_a_relative_one_is_none(perun, cloned, plugin, write_profile):
    write_profile()
    plugin("view", "myview", VIEW)
    for folder in (".", "./", str(cloned.path.parent), str(cloned.path / ".perun"), "*"):
        perun("config", "--shared", "set", "plugins.trusted", f'["{folder}"]')
        perun("show", "0@p", "myview", code=11)
    perun("config", "--shared", "set", "plugins.trusted", f'["{cloned.path}"]')
    assert perun("show", "0@p", "myview").out.startswith("* 1.0\n")


def test_the_hint_says_how_to_trust(perun, cloned, plugin, write_profile):
    write_profile()
    plugin("view", "myview", VIEW)
    hint = perun("show", "0@p", "myview", check=False).err.splitlines()[-1]
    perun(*shlex.split(hint.partition("perun ")[2].partition("  (")[0]))
    assert perun("show", "0@p", "myview").out.startswith("* 1.0\n")


def test_a_view(perun, plugin, trust, write_profile):
    write_profile(amounts=(1.5, 2.5))
    plugin("view", "myview", VIEW)
    trust()
    assert perun("show", "0@p", "myview").out == "* 1.5\n* 2.5\n"
    assert perun("show", "0@p", "myview", "-k", "#").out == "# 1.5\n# 2.5\n"
    assert "--mark" in perun("show", "0@p", "myview", "--help").out
    assert "Shows amounts." in perun("show", "0@p", "--help").out


def test_a_collector(perun, project, plugin, trust):
    plugin("collect", "mycollector", COLLECTOR)
    trust()
    perun("collect", "-c", "echo", "mycollector", "--times", "3")
    profile = perun("show", "0@p", "raw").json
    assert profile["header"]["type"] == "mixed"
    assert profile["header"]["units"] == {"mixed": "letters"}
    assert profile["collector_info"]["name"] == "mycollector"
    assert profile["collector_info"]["params"]["times"] == 3
    assert profile["origin"] == project.head
    assert "cmd" in perun("show", "0@p", "tableof", "resources").out
    perun("add", "0@p")
    assert "(1|0|1|0 profiles)" in perun("log", "-s").out


def test_a_collector_in_the_job_matrix(perun, project, plugin, trust):
    plugin("collect", "mycollector", COLLECTOR)
    trust()
    perun("config", "set", "cmds", "[echo]")
    perun("config", "set", "collectors", "[{name: mycollector, params: {times: 2}}]")
    perun("run", "matrix")
    assert perun("show", "0@p", "raw").json["collector_info"]["params"]["times"] == 2


def test_a_postprocessor(perun, project, plugin, trust, write_profile):
    write_profile(amounts=(1.0, 2.0))
    plugin("postprocess", "mypostprocessor", POSTPROCESSOR)
    trust()
    perun("postprocessby", "0@p", "mypostprocessor", "--factor", "5")
    made = [one for one in perun("status", "--json").json["pending"] if one["postprocessors"]]
    assert [one["postprocessors"] for one in made] == [["mypostprocessor"]]
    table = perun("show", made[0]["name"], "tableof", "resources").out.splitlines()
    assert sorted(float(line.split()[1]) for line in table[2:]) == [5.0, 10.0]


def test_a_check(perun, project, plugin, trust, write_profile):
    write_profile("a.perf", amounts=(1.0,), origin="HEAD~1")
    write_profile("b.perf", amounts=(1.0, 1.0))
    perun("add", "--to-origin", "0@p-1@p")
    plugin("check", "my_degradation_checker", CHECK)
    trust()
    perun("config", "set", "degradation.strategies", "[{method: mdc}]")
    [comparison] = perun("check", "head", "--json").json["comparisons"]
    [change] = [one for one in comparison["changes"] if one["location"] == "everything"]
    assert (change["result"], change["from"], change["to"]) == ("Degradation", "1", "2")
    assert "1 degradation(-)" in perun("status").out


def test_a_version_control_system(perun, project, plugin, trust, write_profile):
    write_profile(origin=None)
    plugin("vcs", "lines", VCS)
    trust()
    versions = [str(number) * 40 for number in (1, 2, 3)]
    (project.path / "history").write_text("\n".join(versions))
    perun("config", "set", "vcs.type", "lines")
    assert perun("status").lines[0] == f"On major version trunk (minor version: {versions[2]})"
    assert [line.split() for line in perun("log", "-s").lines[1:]] == [
        [version[:8], "(--no--profiles--)", "line", f"{2 - number}"]
        for number, version in enumerate(reversed(versions))
    ]
    perun("add", "--force", "-m", "222", "0@p")
    (line,) = (line for line in perun("log", "-s").lines if "(1|0|0|1 profiles)" in line)
    assert line.endswith(" line 1")
    perun("log", "4", code=4, err="no line 4")


@pytest.mark.parametrize(("text", "message"), [
    ("import nothing_of_that_name", "nothing_of_that_name"),
    ("raise SystemExit(3)", "SystemExit"),
    ("def f(:", "invalid syntax"),
    ("", "defines no click command"),
])  # fmt: skip
def test_a_broken_plugin_hides_no_other(perun, project, plugin, trust, write_profile, text, message):
    write_profile()
    plugin("view", "broken", {"__init__.py": '"""Broken."""', "run.py": text})
    plugin("view", "myview", VIEW)
    trust()
    perun("show", "0@p", "broken", code=9, err=(message, str(project.path)))
    listed = perun("show", "0@p", "--help").out
    assert "(broken:" in listed
    assert "Shows amounts." in listed
    assert perun("show", "0@p", "myview").out.startswith("* ")


def test_a_plugin_that_fails_is_no_bug_of_perun(perun, project, plugin, trust, write_profile):
    write_profile()
    plugin("view", "myview", {**VIEW, "run.py": VIEW["run.py"].replace('resource["amount"]', "1 / 0")})
    trust()
    perun("show", "0@p", "myview", code=9, err=("the view 'myview'", "ZeroDivisionError"))


def test_what_is_built_in_cannot_be_replaced(perun, plugin, trust, write_profile):
    write_profile()
    plugin("view", "raw", VIEW)
    trust()
    assert perun("show", "0@p", "raw").json["header"]["type"] == "time"
    assert "the view 'raw'" in perun("show", "0@p", "--help").err


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder into which pip installed a package with plugins of four families."""
    folder = tmp_path_factory.mktemp("installed")
    source = shutil.copytree(Path(__file__).parents[1] / "data" / "plugin_package", folder / "source")
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "Count words")):
        names = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        subprocess.run(["git", *names, *words], cwd=source, check=True)
    tools = str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"]
    install = ["pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    install = [sys.executable, "-m", *install, "--target", folder / "packages", source]
    subprocess.run(install, check=True, env={**os.environ, "PATH": tools})
    return folder / "packages"


@pytest.mark.slow
def test_a_package_with_plugins_of_four_families(perun, project, installed):
    def command(*words, **options):
        program = [sys.executable, "-P", "-m", "perun"]
        return perun(*words, program=program, env={"PYTHONPATH": str(installed)}, **options)

    assert "Counts the words that a command writes." in command("collect", "--help").out
    assert "--least" in command("collect", "words", "--help").out
    for name, text in (("first", "a bb ccc"), ("second", "a bb ccc dddd eeeee")):
        command("collect", "-ot", name, "-c", f"echo {text}", "words", "-l", "2")
    assert command("show", "first.perf", "total").out == "2 in all\n"
    assert command("show", "second.perf", "total").out == "4 in all\n"
    assert "counted in dozens" in command("postprocessby", "second.perf", "dozens").err
    (made,) = (one for one in command("status", "--json").json["pending"] if one["postprocessors"])
    assert made["postprocessors"] == ["dozens"]
    assert command("show", made["name"], "total").out == "0.333333 in all\n"
    command("config", "set", "degradation.strategies", "[{method: more_words}]")

    def told():
        words = ("check", "profiles", "first.perf", "second.perf", "--force", "--json")
        found = command(*words).json["comparisons"][0]["changes"]
        return [(one["result"], one["location"]) for one in found if one["method"] == "more_words"]

    assert told() == [("Degradation", "words")]
    command("config", "set", "degradation.more_words", "{limit: 2}")
    assert told() == []
    # In the job matrix, too; and where the package is not installed there are no such plugins.
    command("config", "set", "cmds", "[echo a b c]")
    command("config", "set", "collectors", "[{name: words, params: {least: 1}}]")
    command("config", "set", "postprocessors", "[dozens]")
    (profile,) = command("run", "matrix", "--json").json["profiles"]
    assert (profile["collector"], profile["postprocessors"]) == ("words", ["dozens"])
    assert "there is no collector 'words'" in perun("collect", "words", "--help", check=False).err
