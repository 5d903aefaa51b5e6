"""`perun postprocessby`, and postprocessors in jobs: each of them called as the manual's 3.4 says."""

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from perun.profile.factory import Profile
from perun.profile.format.json import dumps_pending

UNITS: dict[str, Sequence[str]] = {
    "normalizer": [], "clusterizer": [], "regression_analysis": ["-m", "full", "-dp", "order"],
    "regressogram": ["-per", "order"], "moving_average": ["-per", "order", "sma"],
    "kernel_regression": ["-per", "order", "kernel-smoothing"]
}  # fmt: skip
"""Every postprocessor, with what it must be given for profiles that have no size but the order."""
MODELS = ("regression_analysis", "regressogram", "moving_average", "kernel_regression")
LINE = [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0]
"""Amounts that depend on `order` as 1 + 2 x."""


def pending(project: Any) -> list[Path]:
    return sorted((project.path / ".perun/jobs").glob("*.perf"))


@pytest.fixture
def source(project: Any, write_profile: Callable[..., Path]) -> Path:
    """A profile that is the only pending one."""
    return write_profile("source.perf", amounts=LINE)


@pytest.fixture
def new(project: Any, source: Path) -> Callable[[], dict[str, Any]]:
    """The only profile that is pending beside the source."""

    def read() -> dict[str, Any]:
        (path,) = [path for path in pending(project) if path != source]
        made = json.loads(path.read_bytes())
        assert isinstance(made, dict)
        return made

    return read


@pytest.mark.each_value("name", "dash")
@pytest.mark.parametrize("dash", ["_", "-"])
@pytest.mark.parametrize("name", UNITS)
def test_every_postprocessor_in_both_spellings(name, dash, perun, project, source, new) -> None:
    before = source.read_bytes()
    outcome = perun("postprocessby", "0@p", name.replace("_", dash), *UNITS[name])
    assert re.fullmatch(r"stored time-app-\[_\]-\[input\.txt\]-[\d-]+\.perf\n", outcome.out)
    assert source.read_bytes() == before
    old, made = json.loads(before), new()
    for region in ("header", "collector_info", "origin"):
        assert made[region] == old[region]
    assert made["origin"] == project.head
    (record,) = made["postprocessors"]
    assert record["name"] == name
    assert isinstance(record["params"], dict)
    status = perun("status", "--json").json
    assert sorted(one["postprocessors"] for one in status["pending"]) == [[], [name]]
    assert bool(made["models"]) == (name in MODELS)
    if name in MODELS:
        assert "chosen from the profile: --of" in outcome.err
        assert "'amount'" in outcome.err
        table = perun("show", outcome.out.split()[1], "tableof", "models").lines
        assert len(table) == 2 + len(made["models"])
        assert all("./app" in line for line in table[2:])


def test_normalizer(perun: Callable[..., Any], source: Path, new: Callable[[], Any]) -> None:
    assert perun("postprocessby", "0@p", "normalizer").err == ""
    (columns,) = new()["resources"].values()
    assert columns == {"amount": [amount / 15 for amount in LINE], "order": list(range(8))}


def test_example_of_the_manual(perun: Callable[..., Any], project: Any) -> None:
    uids = {"sys": 0.59, "user": 0.32, "real": 2.32}
    profile = Profile({"header": {"type": "time"}, "collector_info": {"name": "time", "params": {}}})
    profile.update_resources([{"amount": amount, "uid": uid} for uid, amount in uids.items()])
    path = project.path / "echo-time-hello-2017-04-02-13-13-34-12.perf"
    path.write_bytes(dumps_pending(profile))
    perun("postprocessby", f"./{path.name}", "normalizer")
    (made,) = pending(project)
    assert {
        key: columns["amount"] for key, columns in json.loads(made.read_bytes())["resources"].items()
    } == {"sys#0": [0.2543103448275862], "user#0": [0.13793103448275865], "real#0": [1.0]}


@pytest.mark.parametrize(("options", "clusters"), [
    ("", [1, 2, 3, 4, 5, 6, 7, 8]),
    ("-s sort_order", [1, 2, 3, 4, 5, 6, 7, 8]),
    ("--strategy sliding_window", [1, 2, 3, 4, 5, 6, 7, 8]),
    ("-s sliding_window -fww -ww 3 -fwh -wh 100", [1, 1, 1, 2, 2, 2, 3, 3]),
    ("-s sliding_window -rww -ww 0.5 -rwh -wh 9", [1, 1, 1, 1, 2, 2, 2, 2]),
    ("-s sliding_window -www -ww 8 -wh 1", [1, 2, 2, 3, 3, 3, 3, 4]),
    (
        "-s sliding_window --relative-window-width --window-width 1 --fixed-window-height "
        "--window-height 4",
        [1, 1, 1, 2, 2, 2, 3, 3],
    ),
    (
        "-s sliding_window --weighted-window-width --window-width 2 --relative-window-height "
        "--window-height 100",
        [1, 1, 2, 2, 3, 3, 4, 4],
    ),
    ("-s sliding_window --fixed-window-width -ww 8 -wh 0", [1, 2, 3, 4, 5, 6, 7, 8]),
])  # fmt: skip
def test_clusterizer(options, clusters, perun, source, new) -> None:
    perun("postprocessby", "0@p", "clusterizer", *options.split())
    (columns,) = new()["resources"].values()
    assert columns == {"amount": LINE, "order": list(range(8)), "cluster": clusters}


def test_models_depending_on_clusters(perun, source, write_profile) -> None:
    perun("postprocessby", "0@p", "clusterizer", "-s", "sort_order")
    (name,) = [one["name"] for one in perun("status", "--json").json["pending"] if one["postprocessors"]]
    perun("postprocessby", name, "regression_analysis", "-m", "full", "-r", "linear", "-dp", "cluster")
    (path,) = [path for path in source.parent.glob("*.perf") if b"regression_analysis" in path.read_bytes()]
    made = json.loads(path.read_bytes())
    assert [one["name"] for one in made["postprocessors"]] == ["clusterizer", "regression_analysis"]
    (model,) = made["models"]
    assert (model["model"], model["x_start"], model["x_end"]) == ("linear", 1, 8)
    assert [coefficient["value"] for coefficient in model["coeffs"]] == pytest.approx([-1, 2])
    assert model["r_square"] == pytest.approx(1)


def test_the_order_is_not_taken_unless_it_is_named(perun, project, source) -> None:
    for name in MODELS:
        required = [one for one in UNITS[name] if one not in ("-per", "-dp", "order")]
        outcome = perun("postprocessby", "0@p", name, *required, check=False)
        assert outcome.code == 6, name
        assert "only the order of measuring: 'order'" in outcome.err
        assert "a generator of the type integer in workloads" in outcome.err
        assert pending(project) == [source]


@pytest.mark.each_value("name of per", "spelling")
@pytest.mark.parametrize(("name", "of", "per"), [
    ("regression_analysis", ["-o", "--of"], ["-dp", "--depending-on"]),
    ("regressogram", ["-of", "--of-key"], ["-per", "--per-key"]),
    ("moving_average", ["-of", "--of-key"], ["-per", "--per-key"]),
    ("kernel_regression", ["-of", "--of-key"], ["-per", "--per-key"]),
])  # fmt: skip
@pytest.mark.parametrize("spelling", [0, 1])
def test_fields_are_chosen(name, of, per, spelling, perun, source, new) -> None:
    keys = [of[spelling], "order", per[spelling], "amount"]
    rest = [one for one in UNITS[name] if one not in ("-per", "-dp", "order")]
    # The keys are options of the group where the postprocessor has sub-commands.
    outcome = perun("postprocessby", "0@p", name, *([*keys, *rest] if len(rest) == 1 else [*rest, *keys]))
    assert outcome.err == ""
    models = new()["models"]
    assert {(model["x_start"], model["x_end"]) for model in models} == {(1, 15)}


@pytest.mark.parametrize("mode", ["kernel-smoothing", "kernel_smoothing", "kernel_ridge"])
def test_modes_in_both_spellings(mode: str, perun: Callable[..., Any], source: Path, new: Any) -> None:
    perun("postprocessby", "0@p", "kernel_regression", "-per", "order", mode)
    assert [one["kernel_mode"] for one in new()["models"]] == [mode[len("kernel_") :]]


@pytest.mark.parametrize("name", MODELS)
def test_the_same_models_are_not_added_twice(name, perun, project, source, new) -> None:
    # A window of three leaves the averages of the first and the last point unknown.
    options = [*UNITS[name], *(["-ww", "3"] if name == "moving_average" else [])]
    perun("postprocessby", "0@p", name, *options)
    once = new()
    (path,) = [path for path in pending(project) if path != source]
    stored = perun("postprocessby", path.name, name, *options).out.split()[1]
    twice = json.loads((project.path / ".perun/jobs" / stored).read_bytes())
    assert [one["name"] for one in twice["postprocessors"]] == [name, name]
    assert once["models"]
    assert json.dumps(twice["models"]) == json.dumps(once["models"])


def test_what_postprocessors_tell_is_told_once_by_jobs(perun, project, new) -> None:
    unit = "{name: regression_analysis, params: {method: full, depending_on: order}}"
    for key, value in (
        ("cmds", "['true']"),
        ("collectors", "[{name: time, params: {warmup: 0, repeat: 5}}]"),
        ("postprocessors", f"[{unit}]"),
    ):
        perun("config", "set", key, value)
    outcome = perun("run", "--crawl-parents", "matrix")
    assert outcome.out.count("stored") > 1
    assert outcome.out.count("note: chosen from the profile: --of 'amount'") == 1


WRONG: list[tuple[list[str], int, str]] = [
    (["nonsense"], 2, "there is no postprocessor 'nonsense'"),
    (["normaliser"], 2, "did you mean 'normalizer'?"),
    (["normalizer", "--method", "full"], 2, "--method"),
    (["regression-analysis", "-m", "nonsense"], 2, "'nonsense' is not one of 'full'"),
    (["regression-analysis"], 2, "--method"),
    (["regression-analysis", "-m", "full", "-r", "cubic"], 2, "'cubic' is not one of"),
    (["regression-analysis", "-m", "full", "-s", "0"], 2, "--steps"),
    (["regression-analysis", "-m", "full", "-dp", "nonsense"], 6, "no resource has a number in 'nonsense'"),
    (["regression-analysis", "-m", "full", "-o", "uid"], 6, "no resource has a number in 'uid'"),
    (["clusterizer", "-s", "bubbles"], 2, "'bubbles' is not one of 'sort_order', 'sliding_window'"),
    (["clusterizer", "-wh", "-1"], 2, "--window-height"),
    (["clusterizer", "-ww", "wide"], 2, "--window-width"),
    (["clusterizer", "-rwh", "-fwh"], 2, "window_height exclude each other"),
    (["clusterizer", "-rww", "-www"], 2, "window_width exclude each other"),
    (["regressogram", "-bm", "nonsense"], 2, "'nonsense' is not one of"),
    (["regressogram", "-sf", "mode"], 2, "'mode' is not one of"),
    (["regressogram", "-per", "nonsense"], 6, "'nonsense'"),
    (["moving-average", "nonsense"], 2, "'nonsense'"),
    (["moving-average", "sma", "-wt", "nonsense"], 2, "'nonsense' is not one of"),
    (["moving-average", "-per", "nonsense", "sma"], 6, "'nonsense'"),
    (["moving-average", "ema", "-d", "nonsense", "3"], 2, "'nonsense' is not one of"),
    (["kernel-regression", "nonsense"], 2, "'nonsense'"),
    (["kernel-regression", "kernel-smoothing", "-kt", "nonsense"], 2, "'nonsense' is not one of"),
    (["kernel-regression", "-of", "nonsense", "kernel-smoothing"], 6, "'nonsense'"),
    (["kernel-regression", "method-selection", "-bm", "nonsense"], 2, "'nonsense' is not one of"),
]
"""What is asked of a postprocessor, with the exit code and a part of the message."""


def test_wrong_usage_makes_no_profile(perun: Callable[..., Any], project: Any, source: Path) -> None:
    for arguments, code, message in WRONG:
        outcome = perun("postprocessby", "0@p", *arguments, code=code)
        assert outcome.out == ""
        assert message in outcome.err
        assert pending(project) == [source]


def test_profile_without_numbers(perun, project, write_profile) -> None:
    empty = write_profile(amounts=[])
    for name, options in UNITS.items():
        outcome = perun("postprocessby", "0@p", name, *options, code=6)
        assert re.match("error: .*\nhint: .*", outcome.err), name
        assert pending(project) == [empty]


@pytest.mark.parametrize("name", ["normalizer", "regression_analysis"])
def test_damaged_profile(name: str, perun: Callable[..., Any], project: Any) -> None:
    path = project.path / "uneven.perf"
    regions = {
        "header": {"type": "time", "cmd": "x", "args": "", "workload": "", "units": {}},
        "collector_info": {"name": "time", "params": {}},
        "postprocessors": [],
        "resources": {"f#0": {"amount": [1, 2, 3], "structure-unit-size": [1, 2]}},
        "resource_type_map": {"f#0": {"uid": "f", "type": "time"}},
    }
    path.write_text(json.dumps(regions))
    perun("postprocessby", "uneven.perf", name, *UNITS[name], code=6, err="expected columns of equal length")
    assert pending(project) == []


def test_wrong_profile_or_option(perun: Callable[..., Any], project: Any, source: Path) -> None:
    cases: list[tuple[str, list[str], int, str]] = [
        ("1@p", [], 6, "1@p"),
        ("0@i", [], 6, "0 profiles are registered"),
        ("absent.perf", [], 6, "absent.perf"),
        ("0@p", ["-m", "nonsense"], 4, "git knows no commit 'nonsense'"),
        ("0@p", ["-ot", "%nonsense%"], 5, "%nonsense%"),
    ]
    for profile, options, code, message in cases:
        perun("postprocessby", *options, profile, "normalizer", code=code, err=message)
        assert pending(project) == [source]


def test_outside_of_a_repository(perun: Callable[..., Any], tmp_path: Path) -> None:
    perun("postprocessby", "0@p", "normalizer", cwd=tmp_path, code=3)


def test_help_needs_no_profile(perun: Callable[..., Any], project: Any) -> None:
    listing = perun("postprocessby", "0@p", "--help").out
    for name in UNITS:
        assert name.replace("_", "-") in listing
        assert "Usage: perun postprocessby" in perun("postprocessby", "0@p", name, "--help").out


def test_postprocessors_are_appended(perun: Callable[..., Any], project: Any, source: Path) -> None:
    perun("postprocessby", "-ot", "first", "0@p", "normalizer")
    perun("postprocessby", "-ot", "second", "first.perf", "clusterizer", "-s", "sort_order")
    perun("postprocessby", "-ot", "third", "second.perf", "normalizer")
    made = json.loads((source.parent / "third.perf").read_bytes())
    assert [one["name"] for one in made["postprocessors"]] == ["normalizer", "clusterizer", "normalizer"]
    assert made["postprocessors"][0]["params"] == {}
    assert made["postprocessors"][1]["params"]["strategy"] == "sort_order"
    assert perun("show", "third.perf", "raw").code == 0


def test_template_of_the_name(perun: Callable[..., Any], project: Any, source: Path) -> None:
    template = "%collector%-%postprocessors%-%workload%-%origin%"
    for _ in range(2):
        perun("postprocessby", "--output-filename-template", template, "source.perf", "normalizer")
    stem = f"time-normalizer-[input.txt]-{project.head}"
    names = sorted(["source.perf", f"{stem}.perf", f"{stem}(1).perf"])
    assert [path.name for path in pending(project)] == names
    perun("config", "set", "format.output_profile_template", "mine-%clusterizer.strategy%")
    perun("postprocessby", "source.perf", "clusterizer")
    assert (source.parent / "mine-sort_order.perf").exists()


def test_registered_profile_of_an_older_version(perun, project, write_profile) -> None:
    for number, rev in enumerate(("HEAD~1", "HEAD~1", "HEAD")):
        write_profile(f"{number}.perf", origin=rev, workload=str(number))
    perun("add", "-m", "HEAD~1", "0.perf", "1.perf")
    perun("add", "2.perf")
    perun("postprocessby", "-m", "HEAD~1", "1@i", "normalizer")
    (path,) = pending(project)
    made = json.loads(path.read_bytes())
    assert made["header"]["workload"] == "1"
    assert made["origin"] == project.git("rev-parse", "HEAD~1")
    # It belongs to its version, and is registered there.
    perun("add", "0@p", code=6)
    perun("add", "-m", "HEAD~1", "0@p")
    assert pending(project) == []
    # Without -m it is a profile of HEAD.
    perun("postprocessby", "2.perf", "clusterizer")
    (path,) = pending(project)
    assert json.loads(path.read_bytes())["origin"] == project.head
    perun("add", "0@p")
    registered = perun("status", "--json").json["registered"]
    assert sorted(one["postprocessors"] for one in registered) == [[], ["clusterizer"]]


def test_pending_profile_keeps_its_origin(perun, project, write_profile) -> None:
    path = write_profile(origin="HEAD~2")
    perun("postprocessby", "0@p", "normalizer")
    (made,) = set(pending(project)) - {path}
    assert json.loads(made.read_bytes())["origin"] == project.git("rev-parse", "HEAD~2")


MATRIX = """
cmds: ["true"]
workloads: [a, b]
collectors:
  - name: time
    params: {{warmup: 0, repeat: 4}}
postprocessors:
  - name: normalizer
  - name: {name}
    params:
{params}
"""


@pytest.mark.parametrize(("name", "params"), [
    ("regression_analysis", "      method: full\n      steps: 10\n      depending_on: order"),
    ("regression-analysis", "      - method: full\n      - steps: 10\n      - depending_on: order"),
])  # fmt: skip
def test_job_matrix(name: str, params: str, perun: Callable[..., Any], project: Any) -> None:
    with (project.path / ".perun/local.yml").open("a") as file:
        file.write(MATRIX.format(name=name, params=params))
    perun("run", "matrix")
    paths = pending(project)
    assert len(paths) == 2
    for path in paths:
        made = json.loads(path.read_bytes())
        assert [one["name"] for one in made["postprocessors"]] == ["normalizer", "regression_analysis"]
        given = made["postprocessors"][1]["params"]
        assert given | {"method": "full", "steps": 10} == given
        assert max(max(columns["amount"]) for columns in made["resources"].values()) == 1
        assert {model["method"] for model in made["models"]} == {"full"}
        assert made["origin"] == project.head
    shown = perun("status", "--json").json["pending"]
    assert [one["postprocessors"] for one in shown] == [["normalizer", "regression_analysis"]] * 2


@pytest.mark.parametrize("name", UNITS)
def test_job_with_every_postprocessor(name: str, perun: Callable[..., Any], project: Any) -> None:
    given = {"regression_analysis": "{method: full, depending_on: order}"}.get(name, "per_key: order")
    params = ("-pp", name, given) if name in MODELS else ()
    perun(
        *("run", "job", "-c", "time", "-b", "true", "-cp", "time", "repeat=4"),
        *("-cp", "time", "warmup=0", "-p", name, *params),
    )
    (path,) = pending(project)
    made = json.loads(path.read_bytes())
    assert [one["name"] for one in made["postprocessors"]] == [name]
    assert bool(made["models"]) == (name in MODELS)


WRONG_MATRICES = [
    ("normaliser", "      {}", "there is no postprocessor 'normaliser'"),
    ("regression_analysis", "      method: nonsense", "method must be one of full"),
    ("regression_analysis", "      - method: full\n      - step: 10", "unknown parameter 'step'"),
    ("regression_analysis", "      steps: 10", "method is missing"),
    ("clusterizer", "      - window-width", "window-width"),
    ("clusterizer", "      {relative_window_width: true, fixed_window_width: true}", "exclude each"),
]
"""A postprocessor with the lines of its parameters, and a part of the message."""


def test_wrong_matrix_runs_nothing(perun: Callable[..., Any], project: Any) -> None:
    local = project.path / ".perun/local.yml"
    before = local.read_text()
    for name, params, message in WRONG_MATRICES:
        local.write_text(before + MATRIX.format(name=name, params=params))
        outcome = perun("run", "matrix", check=False)
        assert outcome.code in (5, 9), params
        assert message in outcome.err
        assert pending(project) == []


def test_what_was_measured_is_kept_without_models(perun: Callable[..., Any], project: Any) -> None:
    job = (
        *("run", "job", "-c", "time", "-b", "true", "-cp", "time", "{repeat: 4, warmup: 0}"),
        *("-p", "regression-analysis", "-pp", "regression-analysis", "method=full", "-p", "normalizer"),
    )
    outcome = perun(*job)
    assert "note: the profile is stored without regression_analysis: there is no size" in outcome.out
    assert "--depending-on order" in outcome.out
    (path,) = pending(project)
    made = json.loads(path.read_bytes())
    assert sum(len(columns["amount"]) for columns in made["resources"].values()) == 3 * 4
    assert [one["name"] for one in made["postprocessors"]] == ["regression_analysis", "normalizer"]
    assert "only the order of measuring" in made["postprocessors"][0]["problem"]
    assert "problem" not in made["postprocessors"][1]
    assert made["models"] == []


def test_notes_cannot_give_orders_to_the_terminal(perun, project, write_profile) -> None:
    profile = json.loads(write_profile("a.perf", amounts=LINE, cmd="good").read_bytes())
    profile["resources"]["bad#0"] = {"amount": [1], "order": [1]}
    profile["resource_type_map"]["bad#0"] = {"uid": "\x1b[31mbad\n", "type": "time"}
    (project.path / "b.perf").write_text(json.dumps(profile))
    outcome = perun("postprocessby", "./b.perf", "regression-analysis", "-m", "full", "-dp", "order")
    assert "bad" in outcome.err
    assert "\x1b" not in outcome.err


def test_verbose_and_quiet_streams(perun: Callable[..., Any], project: Any, source: Path) -> None:
    outcome = perun("-v", "postprocessby", "0@p", "regression-analysis", "-m", "full", "-dp", "order")
    assert outcome.out.startswith("stored ")
    assert outcome.out.count("\n") == 1
    assert "postprocessing" in outcome.err
    assert os.listdir(project.path / ".perun/tmp") == []
