"""Bounds of loops: collected from sources, of which nothing is built, and compared along the history."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from perun.profile.factory import Profile
from perun.profile.format.json import dumps_pending

SUM = """\
int sum(int *a, int n) {
  int s = 0;
  for (int i = 0; i < n; i++) {
    s += a[i];
  }
  return s;
}
"""
NESTED = """\
/* Adds up all pairs. */
int sum(int *a, int n) {
  int s = 0;
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) {
      s += a[i] * a[j];
    }
  }
  return s;
}
"""
LINEAR = ("1 + max(n, 0)", "O(n^1)")
QUADRATIC = ("max(n, 0) × max(n, 0)", "O(n^2)")


def profile(
    path: Path, functions: Mapping[str, tuple[str, str]], origin: str | None = None, time: int = 0
) -> Path:
    """A profile of functions with a loop each, which stands in the second line of its function."""
    made = Profile({
        "header": {"type": "bound", "cmd": "src", "args": "", "workload": "",
                   "units": {"bound": "iterations"}},
        "collector_info": {"name": "bounds", "params": {"source_dir": ["src"]}},
        "postprocessors": [],
    })  # fmt: skip
    resources = []
    for at, (name, (bound, growth)) in enumerate(functions.items()):
        uid = {"source": "src/a.c", "function": name}
        common = {"type": "bound", "bound": bound, "class": growth}
        loop, whole = (20 * at + 2, 20 * at + 9), (20 * at, 4)
        for kind, (line, column) in (("local bound", loop), ("total bound", whole)):
            place = {**uid, "line": line, "column": column}
            resources.append({**common, "uid": place, "subtype": kind})
    made.update_resources(resources)
    if origin:
        made["origin"] = origin
    path.write_bytes(dumps_pending(made))
    if time:
        os.utime(path, (time, time))
    return path


@pytest.fixture
def two(tmp_path: Path, project: Any) -> list[Path]:
    """Two profiles: in the second f is quadratic, and g has no bound any more."""
    return [
        profile(tmp_path / "old.perf", {"f": LINEAR, "g": LINEAR}),
        profile(tmp_path / "new.perf", {"f": QUADRATIC, "g": ("inf", "O(∞)")}),
    ]


def test_a_commit_that_nests_a_loop(project, perun, environment) -> None:
    """It is found by `run matrix` and `check`, without a compiler that could build anything."""
    project.commit("Add up", {"src/sum.c": SUM, "src/odd.c": "int odd(int n) { return n % 2; }\n"})
    project.commit("Add up pairs", {"src/sum.c": NESTED})
    (project.path / ".perun/local.yml").write_text(
        "vcs: {type: git, url: ..}\n"
        "cmds: [./not-built, ./neither]\n"
        "workloads: [small, large]\n"
        "profiles: {register_after_run: true}\n"
        "collectors: [{name: bounds, params: {source_dir: src}}]\n"
    )
    done = perun("run", "-m", "HEAD", "-m", "HEAD~1", "matrix")
    assert done.out.count("registered bounds-src") == 2  # whatever commands there are
    assert "not-built" not in done.out
    assert not (project.path / "src/sum").exists()

    found = perun("check", "head", "--fail-on", "degradation", code=1)
    line = next(line for line in found.lines if "Degradation" in line)
    assert "src/sum.c:2: sum" in line
    assert "O(n^1) -> O(n^2)" in line
    assert "upper bounds" in found.out  # what they are, and that nothing was run
    assert any("src/sum.c:5: loop 2 of sum" in line for line in found.lines)
    assert "odd" not in found.out
    assert perun("check", "all", "--fail-on", "severe").code == 0

    table = perun("show", "0@i", "tableof", "resources", "-h", "uid", "-h", "bound", "-h", "class",
                  "-f", "class", "O(n^2)")  # fmt: skip
    assert {line.split()[0] for line in table.lines[2:]} == {"src/sum.c:sum:5:7", "src/sum.c:sum:1:4"}
    assert "warning" not in perun("fsck").out
    assert "src/sum.c:2: sum" in perun("-v", "status").out


def test_json_names_what_changed(two: list[Path], perun: Callable[..., Any]) -> None:
    (comparison,) = perun("check", "profiles", *two, "--json").json["comparisons"]
    changes = {one["location"]: one for one in comparison["changes"]}
    f = changes["src/a.c:1: f"]
    assert (f["result"], f["type"], f["from"], f["to"]) == ("Degradation", "order", "O(n^1)", "O(n^2)")
    assert f["rule"].startswith("at most 1 + max(n, 0) -> max(n, 0) × max(n, 0)")
    assert f["confidence_type"] == "no"
    assert f["interval"] is None
    assert changes["src/a.c:22: loop 1 of g"]["result"] == "SevereDegradation"
    assert "upper bounds" in comparison["notes"][0]


def test_services_get_file_and_line(two: list[Path], perun: Callable[..., Any]) -> None:
    run = perun("check", "profiles", *two, "--format", "sarif").json["runs"][0]
    places = {
        one["locations"][0]["logicalLocations"][0]["name"]: one["locations"][0]["physicalLocation"]
        for one in run["results"]
    }
    assert places["src/a.c:22: loop 1 of g"] == {
        "artifactLocation": {"uri": "src/a.c"},
        "region": {"startLine": 22},
    }
    root = ElementTree.fromstring(perun("check", "profiles", *two, "--format", "junit").out)
    failed = {case.get("name") for case in root.iter("testcase") if case.find("failure") is not None}
    assert failed == {"src/a.c:1: f", "src/a.c:2: loop 1 of f", "src/a.c:21: g", "src/a.c:22: loop 1 of g"}


@pytest.mark.parametrize("format", ["text", "manual", "markdown"])
def test_every_format_tells_the_classes(format: str, two: list[Path], perun: Callable[..., Any]) -> None:
    out = perun("check", "profiles", *two, "--format", format).out
    assert "src/a.c:1: f" in out
    assert "O(n^1)" in out
    assert "O(n^2)" in out
    assert "O(∞)" in out
    assert "no amount" not in out


def test_other_rules_do_not_apply_to_bounds_unless_they_name_them(two, project, perun) -> None:
    perun("config", "set", "degradation.strategies",
          "[{method: average_amount_threshold}, {method: bound_classes, type: time}]")  # fmt: skip
    perun("config", "set", "degradation.bound_classes.factor", "1.2")
    answer = perun("check", "profiles", *two, "--json").json
    text = json.dumps(answer)
    assert '"bound_classes"' in text
    assert "average_amount_threshold" not in text


def test_shown_as_a_table(two: list[Path], perun: Callable[..., Any]) -> None:
    shown = perun("show", two[0])
    assert shown.lines[0].split() == ["uid", "subtype", "bound", "class"]
    assert "src/a.c:f:2:9" in shown.lines[2]
    assert "1 + max(n, 0)" in shown.lines[2]
    refused = perun("show", two[0], "flamegraph", check=False)
    assert refused.code != 0
    assert "bounds are formulas" in refused.err
    assert '"1 + max(n, 0)"' in perun("show", two[0], "raw").out


def test_lists_and_log(project: Any, perun: Callable[..., Any]) -> None:
    for name, version, bound in (("old.perf", "HEAD~1", LINEAR), ("new.perf", "HEAD", QUADRATIC)):
        origin = project.git("rev-parse", version)
        profile(project.path / ".perun/jobs" / name, {"f": bound}, origin, 1_714_557_600)
    assert "2 pending profiles" in perun("status").out
    perun("add", "0@p", "1@p", check=False)
    assert perun("log", "--short").code == 0
    assert perun("log", "--json").code == 0


def test_what_is_wrong_is_said(project: Any, perun: Callable[..., Any]) -> None:
    cases = {
        (): "name the C sources to analyse",
        ("-s", "nix.c"): "there is no source 'nix.c'",
        ("-s", "src"): "is a folder",
        ("-d", "nix"): "'nix' does not exist",
        ("-d", "src/empty"): "has no C sources",
        ("-s", "src/a.c", "-f", "nix"): "src/a.c defines no function 'nix'",
        ("--compile-commands", "nix.json"): "cannot read nix.json",
        ("--compile-commands", "src/a.c"): "src/a.c is no compilation database",
    }
    (project.path / "src/empty").mkdir(parents=True)
    (project.path / "src/a.c").write_text(SUM)
    for arguments, message in cases.items():
        outcome = perun("collect", "--force-dirty", "bounds", *arguments, check=False)
        assert outcome.code != 0
        assert message in outcome.err + outcome.out, arguments


def test_what_cannot_be_read_is_told_and_the_rest_analysed(project: Any, perun: Callable[..., Any]) -> None:
    text = '#include "absent.h"\n' + SUM + "int bad(int n) { for (int i = 0 i < n; i++) {} return 0; }\n"
    (project.path / "a.c").write_text(text)
    (project.path / "compile_commands.json").write_text(
        json.dumps([{"directory": str(project.path), "file": "a.c", "command": "cc -c a.c"}])
    )
    out = perun("collect", "--force-dirty", "bounds", "--compile-commands", "compile_commands.json").out
    assert "a.c:1: there is no header 'absent.h'" in out
    assert "a.c:9: " in out
    assert "bad is not analysed" in out
    table = perun("show", "0@p").out
    assert "a.c:sum:4:6" in table
    assert "O(∞)" in next(line for line in table.splitlines() if "a.c:bad" in line)


def test_a_missing_library_is_named_with_its_remedy(project, perun, tmp_path, monkeypatch) -> None:
    """The search path of a fresh process has an installation without the solver, as after a plain install."""
    (tmp_path / "hide").mkdir()
    (tmp_path / "hide/sitecustomize.py").write_text(
        "import importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'z3' else find(name, *rest)\n"
    )
    path = os.pathsep.join([str(tmp_path / "hide"), os.environ.get("PYTHONPATH", "")])
    (project.path / "a.c").write_text(SUM)
    env = {"PYTHONPATH": path}
    outcome = perun("collect", "--force-dirty", "bounds", "-s", "a.c", check=False, env=env)
    assert outcome.code != 0
    assert "z3-solver is not installed" in outcome.err + outcome.out
    assert "pip install" in outcome.err + outcome.out


def test_one_job_of_the_command_line(project: Any, perun: Callable[..., Any]) -> None:
    """No command is needed; one that is given stands in the profile, as in the manual's example."""
    project.commit("Add up", {"a.c": SUM})
    for given, cmd in (((), "a.c"), (("-b", "partitioning"), "partitioning")):
        perun("run", "job", *given, "-c", "bounds", "-cp", "bounds", "source=a.c")
        newest = max((project.path / ".perun/jobs").glob("*.perf"), key=lambda path: path.stat().st_mtime_ns)
        assert json.loads(newest.read_bytes())["header"]["cmd"] == cmd
    perun("run", "job", "-c", "bounds", "-c", "time", "-cp", "bounds", "source=a.c", check=False, err="--cmd")
