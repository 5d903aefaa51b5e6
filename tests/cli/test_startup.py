"""Starting is a feature: what quick commands must not load, answers without click, threads of numpy."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from perun.cli import helptext
from perun.cli.boundary import VARIABLE
from perun.cli.main import COMMANDS, cli
from perun.cli.quick import recognised

HEAVY = (
    "numpy", "pandas", "bokeh", "scipy", "jinja2", "rich", "msgspec", "ruamel", "importlib.metadata",
    "asyncio"
)  # fmt: skip


@pytest.fixture
def loaded(command, environment):
    """The modules that a command imports."""

    def loaded(*arguments):
        done = subprocess.run(
            [command[0], "-X", "importtime", *command[1:], *arguments], env=environment, capture_output=True,
            text=True, check=True
        )  # fmt: skip
        return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.count("|") == 2}

    return loaded


@pytest.fixture
def used(perun, git_repository, write_profile, monkeypatch):
    """A project in which `init` has run, with a profile registered and one pending."""
    repository = git_repository("used", commits=2)
    perun("init", cwd=repository.path)
    jobs = repository.path / ".perun" / "jobs"
    monkeypatch.chdir(repository.path)
    for name in ("a.perf", "b.perf"):
        write_profile(name, folder=jobs, origin=None)
    perun("add", "--force", "0@p")
    return repository


def test_nothing_heavy_is_loaded(loaded, used):
    for line in (
        "--version",
        "--help",
        "status",
        "status --json",
        "log --short",
        "log",
        "config get vcs.type",
        "status --help",
    ):
        modules = loaded(*line.split())
        assert "perun" in modules  # or the list was read wrongly
        assert not [name for name in modules if name.startswith(HEAVY)], line


def test_lists_of_known_profiles_load_nothing_that_reads_one(loaded, perun, used, write_profile):
    jobs = used.path / ".perun" / "jobs"
    write_profile("c.perf", folder=jobs, origin=None)
    for name in ("b.perf", "c.perf"):  # of one second, so that the time of their files orders them
        os.utime(jobs / name, (1_700_000_000, 1_700_000_000))
    perun("add", "--force", "0@p-1@p")
    perun("status")  # notes what is not known
    for line in ("status", "status --json", "log --short", "log"):
        modules = loaded(*line.split())
        assert "perun.measurement.verdict" in modules
        reading = {"perun.store.objects", "perun.measurement.headline", "perun.profile.format.grouping"}
        assert not modules & reading, line


@pytest.mark.parametrize("line", ["--version", "--help", ""])
def test_version_and_help_do_without_click(loaded, tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    assert not loaded(*line.split()) & {"click", "typing", "json", "subprocess", "dataclasses", "re"}


def test_the_first_status_after_init_parses_no_yaml(loaded, perun, git_repository, monkeypatch):
    repository = git_repository("fresh", commits=1)
    perun("init", cwd=repository.path)
    monkeypatch.chdir(repository.path)
    assert not [name for name in loaded("status") if name.startswith("ruamel")]


@pytest.mark.parametrize("line", [
    "config set cmds ./x",
    "config reset -y",
    "add --force 0@p",
    *(pytest.param(line, marks=pytest.mark.slow) for line in ("config edit", "rm 0@i")),
    "status -sb type",
])  # fmt: skip
def test_commands_that_write_cache_the_configuration(loaded, used, perun, line):
    local = used.path / ".perun" / "local.yml"
    local.write_text(local.read_text() + "\nargs: [changed by hand]\n")
    if line.startswith("status"):
        assert [
            name for name in loaded("status") if name.startswith("ruamel")
        ]  # reading commands write nothing
    perun(*line.split(), env={"EDITOR": "true"})
    assert not [name for name in loaded("status") if name.startswith("ruamel")]
    expected = "[]" if "reset" in line else '["changed by hand"]'
    assert perun("config", "get", "args").out == f"args: {expected}\n"


def test_the_cache_is_not_believed_where_the_file_says_otherwise(perun, used):
    perun("config", "set", "cmds", "./x")
    local = used.path / ".perun" / "local.yml"
    status = local.stat()
    local.write_text(local.read_text().replace("./x", "./y"))
    os.utime(local, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert perun("config", "get", "cmds").out == 'cmds: ["./y"]\n'


def test_a_damaged_cache_is_as_good_as_none(perun, used):
    expected = perun("status").out
    for content in ("", "{", "[]", '{"format": 1, "files": 3}', "\0"):
        (used.path / ".perun" / "cache" / "config.json").write_text(content)
        done = perun("status")
        assert (done.out, done.err) == (expected, "")


WARNING = """
import sys, warnings
folder, *sys.path[:] = sys.path
del sys.modules["tabulate"]
warnings.warn("tabulate is old", DeprecationWarning)
import tabulate
"""
"""A library that warns when it is imported, then works."""


@pytest.mark.parametrize("setting", ["error", pytest.param("e::DeprecationWarning", marks=pytest.mark.slow)])
def test_a_warning_of_a_library_fails_no_command(perun, used, tmp_path, environment, setting):
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    (libraries / "tabulate.py").write_text(WARNING)
    path = f"{libraries}:{environment['PYTHONPATH']}"
    line = ("show", "0@p", "tableof", "resources")
    expected = perun(*line).out
    found = perun(*line, env={"PYTHONPATH": path, "PYTHONWARNINGS": setting})
    assert (found.out, found.err) == (expected, "")
    refused = subprocess.run(
        [sys.executable, "-P", "-c", "import tabulate"],
        env={**environment, "PYTHONPATH": path, "PYTHONWARNINGS": setting}, capture_output=True, text=True,
        check=False
    )  # fmt: skip
    assert "DeprecationWarning: tabulate is old" in refused.stderr  # it does warn


def test_the_kept_help_is_that_of_the_commands(perun, tmp_path):
    assert helptext.PATH.read_text(encoding="utf-8") == helptext.render(), "run: python -m perun.cli.helptext"
    assert perun("--help").out == perun().out == helptext.render()


def test_the_lines_of_the_help_are_those_of_the_commands():
    context = cli.make_context("perun", ["status"], resilient_parsing=True)
    for name, (_, line) in COMMANDS.items():
        command = cli.get_command(context, name)
        assert command is not None
        assert re.split(r"(?<=\.)\s", (command.help or "").strip())[0].replace("\n", " ") == line, name


def test_every_command_has_help(perun, project):
    for name in COMMANDS:
        if name not in ("show", "postprocessby"):  # whose subcommands are plugins
            assert perun(name, "--help").out.startswith(f"Usage: perun {name}")


def test_the_version(perun, tmp_path):
    import perun as package

    assert perun("--version").out == perun("--no-color", "--version").out == f"perun {package.__version__}\n"


# -- threads of numpy ----------------------------------------------------------------------------------------


PROGRAM = """
import os, subprocess, sys
from perun.cli import boundary as blas
blas.keep_to_one_thread()
import numpy
print(len(os.listdir("/proc/self/task")))
print(subprocess.run(["printenv", blas.VARIABLE], stdout=subprocess.PIPE, text=True).stdout.strip())
print(os.environ.get(blas.VARIABLE, ""))
print(numpy.__spec__.name, any(isinstance(finder, blas._Finder) for finder in sys.meta_path))
"""


def lines(environ: dict[str, str]) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environ, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.fixture
def environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="the system does not list threads")
def test_one_thread_and_nothing_inherited(environ: dict[str, str]) -> None:
    assert lines(environ) == ["1", "", "", "numpy False"]


def test_the_user_decides(environ: dict[str, str]) -> None:
    _, inherited, seen, _ = lines({**environ, VARIABLE: "2"})
    assert (inherited, seen) == ("2", "2")


# -- answers without click -----------------------------------------------------------------------------------


SPELLINGS = [
    ["status"],
    ["status", "--short"],
    ["status", "-s", "--json"],
    ["log"],
    ["log", "-s"],
    ["log", "--json"],
    ["log", "--changes-only", "--json"],
    ["log", "-s", "-n", "2"],
    ["log", "--max-count", "1", "--graph"],
    ["--no-pager", "-nc", "log", "--short"],
    ["-v", "status"],
]


def test_both_ways_answer_the_same(perun, project):
    for spelling in SPELLINGS:
        assert recognised(spelling) is not None
        # `--dev-mode` changes nothing here but that the command tree is asked.
        through_tree = ["--dev-mode", *spelling]
        assert recognised(through_tree) is None
        assert perun(*spelling).out == perun(*through_tree).out != ""


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["statsu"],
        ["status", "--sort-by", "time"],
        ["status", "--help"],
        ["log", "HEAD~1"],
        ["log", "-x"],
        ["log", "-n"],
        ["log", "-n", "-1"],
        ["status", "-n", "1"],
        ["--metrics", "f", "i", "log"],
        ["add", "--short"],
        ["status", "--changes-only"],
        ["--no-pager"],
    ],
    ids=" ".join,
)
def test_everything_else_goes_to_the_tree(arguments):
    assert recognised(arguments) is None


def test_errors_are_the_same(perun, tmp_path):
    quick = perun("status", cwd=tmp_path, check=False)
    assert recognised(["--", "status"]) is None
    tree = perun("--", "status", cwd=tmp_path, check=False)
    assert (quick.code, quick.err) == (tree.code, tree.err)
    assert quick.code == 3
