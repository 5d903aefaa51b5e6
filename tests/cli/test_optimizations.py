"""Options of the optimisations: on `collect`, on its collectors and in the job matrix."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from changing_program import HISTORY
from many_functions import counts, functions, guilty, source
from perun.cli.commands.collect import METHODS
from perun.collect._calls.optimizations import settings
from perun.collect.complexity.build import ComplexityParams
from perun.collect.trace.engines.ebpf import EbpfEngine
from perun.collect.trace.params import TraceParams
from perun.plugin.params import specs
from perun.profile.factory import load_profile

CODE = """\
volatile int sink;
__attribute__((noinline)) int leaf(int x) { sink++; return x + 1; }
__attribute__((noinline)) int middle(int n) { int s = 0; for (int i = 0; i < n; i++) s += leaf(i); return s; }
int main(void) { return middle(2000) == 0; }
"""
ALONE = ("-oa", "diff-keep-leaf", "0", "-oa", "cg-proj-keep-leaf", "0")


@pytest.fixture
def built(project: Any) -> Callable[[str, str], str]:
    """Compile and commit a program; returns its version."""
    if not shutil.which("gcc"):
        pytest.skip("there is no gcc")

    def build(subject: str, code: str) -> str:
        (project.path / "prog.c").write_text(code)
        command = ["gcc", "-O1", "-g", "-Wl,--build-id", "-o", "prog", "prog.c"]
        subprocess.run(command, cwd=project.path, check=True)
        return str(project.commit(subject, {"prog.c": code, ".gitignore": "prog\n.perun\n"}))

    return build


def rows(answer: Any) -> dict[str, tuple[bool, str]]:
    return {row["uid"]: (row["traced"], row["method"]) for row in answer["functions"]}


def test_the_command_has_the_options_that_its_collectors_have() -> None:
    assert set(METHODS) == set(settings.METHODS)
    for params in (TraceParams, ComplexityParams):
        known = {spec.name: spec.info.choices for spec in specs(params)}
        assert set(known["optimization_on"]) == set(METHODS)
        assert known["optimization_pipeline"] == tuple(settings.PIPELINES)
        assert known["use_cg_type"] == settings.GRAPH_TYPES


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(("arguments", "message"), [
    (("-op", "basic", "time"), "time does not choose functions, so that --optimization-pipeline"),
    (("-on", "cg-shapes", "trace"), "'cg-shapes' is not one of"),
    (("-oa", "cg-mod", "match", "trace"), "unknown parameter 'cg-mod'"),
    (("-oa", "cg-mode", "mach", "trace"), "cg-mode must be one of match, bottom-up, top-down"),
    (("-p", "optimization_on=[diff-trace]", "trace"), "not 'diff-trace'"),
    (("-on", "cg-shaping", "-off", "cg-shaping", "trace"), "cg-shaping is both on and off"),
    (("-oa", "cg-proj-levels", "0", "trace"), "cg-proj-levels must be a whole number of at least 1"),
    (("-oa", "timed-sample-freq", "nan", "trace"), "timed-sample-freq must be a number of at least"),
    (("-oa", "cg-proj-levels", "3", "trace"), "parameter of cg-shaping, but no optimization is on"),
    (("trace", "--json"), "--json needs --dry-run"),
])  # fmt: skip
def test_wrong_options_are_named(perun: Callable[..., Any], arguments: tuple[str, ...], message: str) -> None:
    failed = perun("collect", "-c", "true", *arguments, check=False)
    assert failed.code != 0
    assert message in failed.err.replace("\n", " ")


def test_what_changed_since_an_earlier_version_is_traced(project, perun, built, tmp_path) -> None:
    first = built("Begin", CODE)
    graph = tmp_path / "graph.json"
    out = perun("collect", "-c", "./prog", "trace", "-cg", "--callgraph", str(graph)).out
    assert "3 calls" in out or "calls" in out
    assert {"main", "middle", "leaf"} <= {one["name"] for one in json.loads(graph.read_text())["functions"]}
    built("Slow down", CODE.replace("sink++; return", "sink += 2; sink++; return"))
    asked = ("collect", "-c", "./prog", "-on", "diff-tracing", *ALONE, "trace", "--dry-run", "--json")
    answer = perun(*asked).json
    assert rows(answer) == {
        "main": (True, ""),
        "middle": (False, "diff-tracing"),
        "leaf": (True, "diff-tracing"),
    }
    assert (answer["previous"], answer["changed"]) == (first, {"leaf": "its control flow changed (color)"})
    unknown = perun(*asked[:3], "-op", "basic", "-oa", "diff-version", "nosuch", *asked[-3:], check=False)
    assert unknown.code != 0 and "diff-version: git knows no commit 'nosuch'" in unknown.err
    idle = perun(*asked[:3], "-op", "basic", "-oa", "probing-threshold", "9", *asked[-3:]).json
    assert "probing-threshold has no effect, as dynamic-probing is not on" in idle["notes"]
    # Nothing was run: there is no profile.
    assert perun("status", "--json").json["pending"] == []
    text = perun(*asked[:-1]).out
    assert "dropped  middle  diff-tracing: it did not change" in text
    # What is kept can be removed.
    perun("collect", "-c", "./prog", "--optimization-reset-cache", "trace", "-cg")
    assert perun(*asked).json["previous"] == ""


def test_the_graph_of_a_stripped_program_is_kept_though_it_cannot_be_traced(
    project, perun, built, tmp_path
) -> None:
    built("Begin", CODE)
    subprocess.run(["strip", "prog"], cwd=project.path, check=True)
    graph = tmp_path / "graph.json"
    out = perun("collect", "-c", "./prog", "trace", "-cg", "--callgraph", str(graph)).out
    assert "the call graph of" in out
    assert json.loads(graph.read_text())["entry"] == "main"
    for name, message in (("calls.svg", "ends in none of .json"), ("new/calls.dot", "No such file")):
        wrong = tmp_path / name
        refused = perun("collect", "-c", "./prog", "trace", "-cg", "--callgraph", str(wrong), check=False)
        assert refused.code == 2 and message in refused.err and not wrong.exists()
    failed = perun("collect", "-c", "./prog", "trace", check=False)
    assert failed.code != 0 and "is stripped" in failed.err


@pytest.mark.slow
def test_ctrl_c_while_a_large_program_is_read_leaves_nothing(project, command, environment) -> None:
    program = Path("/usr/bin/python3")
    if not program.exists():
        pytest.skip(f"{program} is not installed")

    def kept() -> set[Path]:
        return {path for path in (project.path / ".perun").rglob("*") if path.is_file()}

    before = kept()
    reading = subprocess.Popen(
        [*command, "collect", "-c", str(program), "trace", "--only-extract-cg"],
        cwd=project.path, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    # What decodes instructions is loaded just before the first of them, and there are a million.
    while "libcapstone" not in Path(f"/proc/{reading.pid}/maps").read_text():
        assert reading.poll() is None, reading.communicate()
        time.sleep(0.01)
    reading.send_signal(signal.SIGINT)
    out, err = reading.communicate(timeout=120)
    assert (reading.returncode, out, err) == (130, "", "\ninterrupted: nothing is stored\n")
    assert kept() == before


@pytest.mark.parametrize("commits", [3, pytest.param(len(HISTORY), marks=pytest.mark.slow)])
def test_in_a_history_exactly_what_each_commit_changed_is_traced(project, perun, built, commits) -> None:
    if why := ": ".join(filter(None, EbpfEngine(os.environ).unavailable())):
        pytest.skip(f"ebpf: {why}")
    previous = ""
    for number, (subject, code, changed) in enumerate(HISTORY[:commits]):
        version = built(subject, code)
        file = f"{number}.perf"
        perun("collect", "-c", "./prog", "-on", "diff-tracing", "-pn", file, "trace", "-e", "ebpf")
        profile = load_profile(project.path / ".perun/jobs" / file)
        traced = {one["uid"] for _, one in profile.all_resources()}
        region = profile["trace"]["optimization"]
        assert region["previous"] == previous, subject
        if previous:
            assert traced == {"main", *changed.get("color", ())}, subject
            assert region["renamed"] == ({"renamed": "f5"} if "otherwise" in subject else {}), subject
        else:
            assert {"main", "f0", "f23", "assembly"} <= traced
        previous = version


def test_the_job_matrix_has_the_same_parameters(project, perun, built) -> None:
    built("Begin", CODE)
    params = {
        "optimization_pipeline": "basic", "optimization_off": ["baseline-dynamic"],
        "optimization_args": {"cg-proj-levels": 1, "cg-proj-keep-leaf": 0}, "dry_run": True
    }  # fmt: skip
    config = {"vcs": {"type": "git", "url": ".."}, "cmds": ["./prog"]}
    config["collectors"] = [{"name": "trace", "params": params}]
    (project.path / ".perun/local.yml").write_text(json.dumps(config))
    out = perun("run", "matrix", "-q").out
    assert "optimizations: cg-shaping (pipeline basic; static call graph)" in out
    assert "dropped  middle  cg-shaping: it is on level 1 of 3, the first 1 are kept" in out


def test_a_profile_says_what_was_not_traced_and_check_knows(project, perun, built) -> None:
    if why := ": ".join(filter(None, EbpfEngine(os.environ).unavailable())):
        pytest.skip(f"ebpf: {why}")
    built("Begin", CODE)
    perun("collect", "-c", "./prog", "trace", "-e", "ebpf")
    perun("add", "0@p")
    built("Call leaf less", CODE.replace("2000", "1900"))
    asked = ("collect", "-c", "./prog", "-on", "cg-shaping", "-oa", "cg-proj-levels", "2", *ALONE)
    perun(*asked, "trace", "-e", "ebpf")
    shown = perun("show", "0@p", "bars", "sum", "--per", "uid", "--of", "amount", "--terminal")
    assert "1 function was not traced (cg-shaping 1): their time counts as that of" in shown.err + shown.out
    perun("add", "0@p")
    answer = perun("check", "head", "--json").json
    (comparison,) = answer["comparisons"]
    assert "not compared: 1 function not traced in the target (cg-shaping 1): leaf" in comparison["notes"]
    assert {one["result"] for one in comparison["changes"]}.isdisjoint({"NotInTarget", "NotInBaseline"})
    assert "leaf" not in {one["location"] for one in comparison["changes"]}


@pytest.mark.slow
def test_bounds_of_the_source_drop_functions(project, perun, built) -> None:
    pytest.importorskip("z3", reason="the extra bounds is not installed")
    built("Begin", CODE)
    perun("collect", "bounds", "--source", "prog.c")
    asked = ("collect", "-c", "./prog", "-on", "baseline-static", "-oa", "static-keep-top", "1")
    answer = perun(*asked, "trace", "--dry-run", "--json").json
    assert rows(answer) == {"main": (True, ""), "middle": (True, ""), "leaf": (False, "baseline-static")}
    answer = perun(*asked, "-oa", "static-complexity", "linear", "trace", "--dry-run", "--json").json
    assert rows(answer)["middle"] == (False, "baseline-static")


RUNS = 3


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", ["basic", "advanced", "full"])
def test_a_tenth_of_the_calls_names_the_same_function(project, perun, built, pipeline) -> None:
    """In each of ten versions, in which another function was made slower, where all are traced alike.

    Each is traced several times, as `check` takes the medians of runs of a machine that does other things.
    """
    if why := ": ".join(filter(None, EbpfEngine(os.environ).unavailable())):
        pytest.skip(f"ebpf: {why}")
    config = "vcs: {type: git, url: ..}\ndegradation: {strategies: [{method: exclusive_time_outliers}]}\n"
    (project.path / ".perun/local.yml").write_text(config)

    def traced(name: str) -> list[int]:
        calls = []
        for number in range(RUNS):
            file = f"{name}-{number}.perf"
            perun("collect", "-c", "./prog", "-op", pipeline, "-pn", file, "trace", "-e", "ebpf")
            calls.append(int(load_profile(project.path / ".perun/jobs" / file)["trace"]["calls"]))
            perun("add", file)
        return calls

    def named() -> str:
        (comparison,) = perun("check", "head", "--json").json["comparisons"]
        worse = [
            change
            for change in comparison["changes"]
            if "Degradation" in change["result"] and not change["result"].startswith("Total")
        ]
        worst = max(worse, key=lambda one: (one["type"] == "time", one["rate"]), default={"location": ""})
        return str(worst["location"]).rpartition(":")[2].partition(" [")[0]

    whole = sum(counts(functions()).values())
    project.git("checkout", "-q", "-b", "base")
    built("Begin", source())
    traced("base")
    found = {}
    for name in guilty():
        project.git("checkout", "-q", "-b", f"slower-{name}", "base")
        built(f"Make {name} slower", source(name))
        assert max(traced(name)) <= 0.1 * whole
        found[name] = named()
    wrong = {name: told for name, told in found.items() if told != name}
    assert not wrong
