"""`perun utils create`: every plugin that it writes passes its own test, and works with the real command."""

import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
EVERY = [
    *((family, ()) for family in ("collect", "postprocess", "view", "check", "workload", "harness")),
    *((family, ()) for family in ("importer", "exporter")),
    *((family, ("--legacy",)) for family in ("collect", "postprocess", "view", "check")),
]
AS_PACKAGE = [*EVERY, ("fuzz-rules", ())]
"""Everything that can be created, with its options."""
IN_THE_REPOSITORY = ("collect", "view--legacy", "harness", "importer")
OF_PACKAGES = ("workload", "fuzz-rules", "exporter")
"""What `make test` goes through, each kind in one of the two places; what is left out is made of the same."""
every, every_package = (
    pytest.mark.parametrize(("family", "options"), [
        pytest.param(*one, id=name, marks=[pytest.mark.slow] * (name not in often))
        for one, name in ((one, "".join((one[0], *one[1]))) for one in those)
    ])
    for those, often in ((EVERY, IN_THE_REPOSITORY), (AS_PACKAGE, OF_PACKAGES))
)  # fmt: skip
ONCE = ("time", "--repeat", "1", "--warmup", "0")


@pytest.fixture
def measured(perun, project):
    """A project with two pending profiles."""
    for name in ("first", "second"):
        perun("collect", "-ot", name, "-c", "true", *ONCE)
    return project


def use(perun, family, name):
    """Let the real command use the plugin in the current project, as its user would."""
    stem = name.replace("-", "_")
    if family == "collect":
        perun("collect", "-ot", "mine", "-c", "true", "-a", "-x", "-w", "7", name)
        pending = perun("status", "--json").json["pending"]
        made = [one for one in pending if one["collector"].replace("-", "_") == stem]
        assert [one["name"] for one in made] == ["mine.perf"]
        assert [made[0][key] for key in ("cmd", "args", "workload")] == ["true", "-x", "7"]
    elif family == "postprocess":
        assert "factor" in perun("postprocessby", "0@p", name, "--help").out
        perun("postprocessby", "0@p", name, "--factor", "3")
        pending = perun("status", "--json").json["pending"]
        assert [one["postprocessors"] for one in pending if one["postprocessors"]] == [[stem]]
    elif family == "view":
        assert len(perun("show", "0@p", name, "--top", "2").lines) == 2
    elif family == "check":
        perun("config", "set", "degradation.strategies", f"[{{method: {stem}}}]")
        perun("config", "set", f"degradation.{stem}", "{ratio: 1}")  # whatever differs at all
        checked = perun("check", "profiles", "--json", "0@p", "1@p").json
        assert checked["comparisons"][0]["changes"][0]["type"] == "sum"
    elif family == "fuzz-rules":
        Path("seed.ini").write_text("[a]\nx = 1\n[b]\n")
        unmeasured = ("--skip-coverage-testing", "--executions", "1", "--no-minimize", "-np")
        done = perun("fuzz", "-b", "cat", "-w", "seed.ini", "-o", "found", *unmeasured, "--json").json
        assert f"{name}.1" in [one["label"] for one in done["rules"]]
    elif family == "harness":
        program = Path("benches/quick")
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        repository = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "add", "benches"], check=True)
        subprocess.run([*repository, "commit", "-q", "-m", "Add a benchmark"], check=True)
        told = perun(
            "compare", "--harness", name, "--budget", "100", "--max-pairs", "3", "--json", "HEAD", "HEAD"
        ).json
        assert [one["location"] for one in told["comparisons"][0]["changes"]] == ["quick"]
    elif family == "importer":
        Path("results.txt").write_text(f"# {name}\nparse 1\nparse 2\n")
        told = perun("import", "results.txt", "--json").json
        assert [(one["args"], one["resources"]) for one in told["profiles"]] == [("parse", 2)]
    elif family == "exporter":
        assert perun("export", name, "0@p").out.count("\t") > 0
    else:
        perun("config", "set", "generators.workload", f"[{{id: mine, type: {stem}, base: 7, count: 3}}]")
        perun("config", "set", "cmds", "[echo]")
        perun("config", "set", "workloads", "[mine]")
        perun("config", "set", "collectors", "[{name: time, params: {repeat: 1, warmup: 0}}]")
        perun("run", "matrix")
        made = [one for one in perun("status", "--json").json["pending"] if one["cmd"] == "echo"]
        profile = perun("show", made[0]["name"], "raw").json
        assert profile["resources"]["echo#0"]["workload"] == [1, 7, 49]


def own_test(python, path, environment, **more):
    """Run the test that came with a plugin."""
    command = [*python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", path, path]
    # Plugins of pytest that happen to be installed here take longer to import than the test to run.
    environ = {**environment, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **more}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, cwd=path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert "warning" not in done.stdout


@every
def test_in_the_repository(perun, measured, environment, family, options):
    done = perun("utils", "create", family, "my-first", *options)
    plugins = measured.path / ".perun" / "plugins"
    assert {line.partition(" ")[0] for line in done.lines} == {"created"}
    assert f"python -m pytest {plugins}/tests/test_{family}_my_first.py" in done.err
    own_test([sys.executable], plugins / "tests", environment)
    assert "only if you trust it" not in done.err  # the repository is the user's own
    use(perun, family, "my-first")
    perun("utils", "create", family, "my_first", code=9, err="already")


@every_package
def test_as_a_package(perun, measured, environment, tmp_path, family, options):
    package = tmp_path / "package"
    perun("utils", "create", family, "my-second", *options, "--package", package)
    declared = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    assert declared["name"] == "perun-my-second"
    # As if it were installed: what pip would write of it.
    noted = package / "src" / "perun_my_second-0.1.0.dist-info"
    noted.mkdir()
    (noted / "METADATA").write_text("Metadata-Version: 2.1\nName: perun-my-second\nVersion: 0.1.0\n")
    ((group, points),) = declared["entry-points"].items()
    lines = [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (noted / "entry_points.txt").write_text("\n".join(lines) + "\n")
    path = f"{package / 'src'}{os.pathsep}{environment['PYTHONPATH']}"
    own_test([sys.executable], package / "tests", environment, PYTHONPATH=path)
    use(lambda *words: perun(*words, env={"PYTHONPATH": path}), family, "my-second")


def test_as_the_manual_says(perun, project):
    perun("utils", "create", "collect", "mycollector", "--legacy", "-nb", "-na", "-ne", "-st", "memory")
    folder = project.path / ".perun" / "plugins" / "collect" / "mycollector"
    assert sorted(path.name for path in folder.iterdir()) == ["__init__.py", "run.py"]
    assert 'COLLECTOR_TYPE = "memory"' in (folder / "__init__.py").read_text()
    text = (folder / "run.py").read_text()
    assert "def before(" not in text
    assert "def after(" not in text
    assert "def collect(**kwargs)" in text
    perun("utils", "create", "postprocess", "mypostprocessor", "-l", "-nb", "-st", "time", "-st", "memory")
    folder = folder.parents[1] / "postprocess" / "mypostprocessor"
    assert 'SUPPORTED_PROFILES = ["time|memory"]' in (folder / "__init__.py").read_text()
    assert "def before(" not in (folder / "run.py").read_text()
    assert "def after(" in (folder / "run.py").read_text()


@pytest.mark.slow
def test_supported_types(perun, project, environment):
    for family in ("collect", "postprocess", "view"):
        perun("utils", "create", family, "typed", "-st", "memory", "-st", "mixed")
    own_test([sys.executable], project.path / ".perun" / "plugins" / "tests", environment)


REFUSED = [
    (("collect", "time"), 9, "already (built-in"),
    (("view", "1st"), 2, "cannot be the name"),
    (("view", "a/b"), 2, "cannot be the name"),
    (("view", "../x"), 2, "cannot be the name"),
    (("view", "class"), 2, "cannot be the name"),
    (("view", "_x"), 2, "cannot be the name"),
    (("collect", "click", "--legacy"), 2, "cannot be the name"),
    (("collect", "x", "-nb"), 2, "--legacy"),
    (("check", "x", "--legacy", "-na"), 2, "phases"),
    (("check", "x", "-st", "time"), 2, "all types"),
    (("view", "x", "-st", 'a"b'), 2, "is not a valid profile type"),
    (("workload", "x", "--legacy"), 2, "typed contract"),
    (("fuzz", "x"), 2, "fuzz"),
    (("fuzz-rules", "x"), 2, "--package DIRECTORY"),
    (("fuzz-rules", "x", "--legacy", "-p", "new"), 2, "typed contract"),
    (("fuzz-rules", "x", "-st", "time", "-p", "new"), 2, "no profiles"),
]


def test_what_is_refused(perun, project):
    for words, code, message in REFUSED:
        perun("utils", "create", *words, code=code, err=message)
        assert not (project.path / ".perun" / "plugins").exists()


def test_nothing_is_overwritten(perun, project, tmp_path):
    left = project.path / ".perun" / "plugins" / "tests" / "test_view_mine.py"
    left.parent.mkdir(parents=True)
    left.write_text("mine")
    perun("utils", "create", "view", "mine", code=2)
    assert left.read_text() == "mine"
    assert not (left.parents[1] / "view").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    perun("utils", "create", "view", "mine", "-p", tmp_path / "full", code=2)
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["file"]


def test_outside_of_a_repository(perun, tmp_path):
    perun("utils", "create", "view", "mine", code=3)
    perun("utils", "create", "view", "mine", "--package", "mine")
    assert (tmp_path / "mine" / "src" / "perun_mine" / "plugin.py").is_file()


def test_the_editor(terminal, project, tmp_path):
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nfor file; do echo "edits $(basename "$file")"; done\n')
    editor.chmod(0o755)
    done = terminal("utils", "create", "view", "mine", env={"EDITOR": str(editor)})
    assert "edits mine.py\nedits test_view_mine.py\n" in done.out
    assert "edits" not in terminal("utils", "create", "view", "b", "-ne", env={"EDITOR": str(editor)}).out


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A virtual environment with Perun as its users install it, and pytest."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    wheels = [*(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")]
    tools = str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"]
    subprocess.run([*wheels, "-w", folder, PROJECT], check=True, env={**os.environ, "PATH": tools})
    (wheel,) = folder.glob("*.whl")
    subprocess.run([python, "-m", "pip", "install", "-q", wheel, "pytest"], check=True)
    return python


@pytest.mark.slow
@every_package
def test_installed_in_an_environment_of_its_own(
    perun, measured, environment, installed, tmp_path, family, options
):
    package = tmp_path / "package"
    perun("utils", "create", family, "my-third", *options, "--package", package)
    # Fresh for each plugin; Perun and pytest are those of the other one, which saves downloading them again.
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    (theirs,) = installed.parents[1].glob("lib/python*/site-packages")
    (ours,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (ours / "perun.pth").write_text(f"{theirs}\n")
    fresh = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
    install = [python, "-m", "pip", "install", "--quiet", package]
    subprocess.run(install, check=True, env=fresh)
    own_test([python], package / "tests", fresh)

    def command(*words):
        return perun(*words, program=[str(python), "-m", "perun"], env={"PYTHONPATH": None})

    use(command, family, "my-third")
