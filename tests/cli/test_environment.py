"""What Perun says of the machine: before a matrix, in `status`, and in `doctor`."""

import json
from pathlib import Path
from typing import Any

import pytest

from perun.core.conditions import observe
from perun.core.machine import class_of, describe
from perun.store.cache import FILE, Cache

MATRIX = (
    "vcs: {type: git, url: ..}\ncmds: ['true']\ncollectors: [{name: time, params: {warmup: 0, repeat: 1}}]\n"
)
OTHER = {"cpu": {"model": "Elsewhere 9000", "total": 3}, "architecture": "odd64"}
CLASS = "Elsewhere 9000, 3 processors, odd64"


@pytest.fixture
def matrix(project: Any) -> Path:
    local = Path(project.path, ".perun/local.yml")
    local.write_text(MATRIX)
    return local


def lines_of(err: str) -> list[str]:
    return [line for line in err.splitlines() if line.startswith("environment: ")]


def test_a_matrix_tells_what_makes_times_uncertain(perun: Any, project: Any, matrix: Path) -> None:
    lasting = {one.message for one in observe() if not one.momentary}
    told = lines_of(perun("run", "matrix").err)
    assert {f"environment: {message}" for message in lasting} <= set(told)
    assert lines_of(perun("run", "matrix", "--dry-run").err) == []
    assert lines_of(perun("run", "matrix", "--quiet-env").err) == []
    for path in (project.path / ".perun/jobs").glob("*.perf"):
        profile = json.loads(path.read_bytes())
        assert profile["machine"]["conditions"] == [one.key for one in observe() if not one.momentary]
        speed = profile["machine"]["speed"]
        assert (speed["loop"], len(speed["processor"]), len(speed["wall"])) == (1, 1, 1)
        assert speed["processor"][0] > 0 and speed["wall"][0] > 0


def test_what_counts_knows_no_speed(perun: Any, project: Any) -> None:
    perun("collect", "-c", "true", "memory")
    (path,) = (project.path / ".perun/jobs").glob("*.perf")
    assert "speed" not in json.loads(path.read_bytes())["machine"]


def elsewhere(project: Any) -> None:
    """Let the one pending profile be from another machine, as if it had come from there by `add`."""
    (path,) = (project.path / ".perun/jobs").glob("*.perf")
    text = path.read_text()
    profile = json.loads(text)
    profile["machine"] = OTHER
    path.write_text(json.dumps(profile))


def test_status_marks_profiles_of_other_machines(perun: Any, project: Any, matrix: Path) -> None:
    perun("run", "matrix")
    elsewhere(project)
    perun("add", "0@p")
    perun("run", "-ot", "second", "matrix")
    perun("add", "0@p")
    done = perun("status")
    rows = [line for line in done.lines if "@i" in line]
    assert sorted("other machine" in row for row in rows) == [False, True]
    assert done.err == f"note: collected on another machine, times do not compare with this one's: {CLASS}\n"
    registered = perun("status", "--json").json["registered"]
    assert sorted(str(one["other_machine"]) for one in registered) == [CLASS, "None"]


def test_pending_profiles_of_other_machines(perun, project, matrix, monkeypatch) -> None:
    perun("run", "matrix")
    cache = Cache(project.path / ".perun/cache" / FILE)
    [(key, fact)] = cache.all("facts", bytes).items()
    assert class_of(describe()).encode() in fact
    cache.put("facts", {key: fact.replace(class_of(describe()).encode(), CLASS.encode())})
    perun("status", err=CLASS, out="other machine")
    for content in (b"", b"{", b"[]", b"3", b'["y"]'):
        cache.put("facts", {key: content})
        done = perun("status")
        assert "other machine" not in done.out + done.err


def test_doctor(perun: Any, project: Any, matrix: Path) -> None:
    done = perun("doctor")
    assert "ok    job matrix: 1 job" in done.out
    assert "ok    time: can run here" in done.out
    assert f"this machine: {class_of(describe())}" in done.out
    for condition in observe():
        if not condition.momentary:
            assert condition.message in done.out
            assert condition.advice in done.out
    project.write({"Makefile": "all:\n"})
    assert "speed: a loop of fixed work takes" in done.out
    perun("run", "-ot", "first", "matrix")
    perun("add", "0@p")
    for _ in range(10):  # versions without profiles do not count
        project.git("commit", "--quiet", "--allow-empty", "-m", "Another one")
    perun("doctor", out=" for the newest profile of such a machine")
    perun("doctor", out=("warn  execute.pre_run: not set", "perun config set execute.pre_run '[\"make\"]'"))
    answer = perun("doctor", "--json").json
    assert answer["schema"] == "perun.doctor/1"
    assert answer["machine"] == class_of(describe())
    assert answer["speed"]["name"] == "speed"
    assert {"perun", "python", "git"} == answer["versions"].keys()
    assert [one["name"] for one in answer["project"]] == [
        "repository",
        "job matrix",
        "execute.pre_run",
        "hooks",
    ]


def test_doctor_noise_answers_anywhere(perun: Any) -> None:
    answer = perun("doctor", "noise", "--budget", "0.01", "--length", "0.001", "--json").json
    assert (answer["schema"], answer["pairs"]) == ("perun.noise/1", 10)


def test_doctor_outside_of_a_repository_and_in_a_broken_one(perun: Any, tmp_path: Path) -> None:
    assert "there is none here" in perun("doctor").out
    perun("init")
    (tmp_path / ".perun/local.yml").write_text("cmds: [\n")
    perun("doctor", out=f"warn  repository: {tmp_path}/.perun/local.yml:")
    (tmp_path / ".perun/local.yml").write_text("cmds: [x]\ncollectors: [none]\n")
    assert "warn  job matrix: " in perun("doctor").out
    assert perun("doctor", "--json").json["project"][1]["ok"] is False


def test_doctor_tells_what_engines_and_compilers_lack(perun: Any, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = perun("doctor", env={"PATH": str(empty)})
    assert "warn  trace (uftrace): uftrace is not installed\n        install it with: apt-get" in done.out
    assert "warn  trace (stap): " in done.out
    answer = perun("doctor", "--json", env={"PATH": str(empty)}).json
    found = {one["name"]: one for one in answer["collectors"]}
    assert found["trace"]["ok"] is found["trace (ebpf)"]["ok"]
    if found["complexity"]["ok"]:
        assert "apt-get install build-essential" in found["complexity (--files and --build)"]["hint"]
    else:
        assert "pip install --force-reinstall" in found["complexity"]["hint"]


PLUGIN = """\
from collections.abc import Iterator
from dataclasses import dataclass

from perun.core.errors import CollectorUnavailable


@dataclass(frozen=True)
class Params:
    pass


class Engines:
    name = "engines"
    help = "Has two engines."
    Params = Params

    def readiness(self, environ):
        yield ("one",)
        yield ("two", "bpftrace is not installed", "apt-get install bpftrace")

    def collect(self, run, params, ctx):
        raise CollectorUnavailable("never")


PLUGIN = Engines
"""


def test_doctor_tells_what_collectors_lack(perun, project, share) -> None:
    project.write({
        ".perun/plugins/collect/engines.py": PLUGIN,
        ".perun/plugins/collect/broken.py": "import nothing_at_all\n",
        ".perun/plugins/check/worse.py": "1 / 0\n",
    })  # fmt: skip
    share(f"plugins: {{trusted: [{project.path}]}}\n")
    perun("doctor", out=(
        "ok    engines (one): can run here",
        "warn  engines (two): bpftrace is not installed\n        apt-get install bpftrace",
        "warn  broken: ",
        "plugins that cannot be used",
        "warn  worse: ",
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("template", "word"), [("master", "to build each version"), ("user", "is set: make")]
)
def test_init_proposes_how_to_build(template: str, word: str, perun: Any, tmp_path: Path) -> None:
    (tmp_path / "Makefile").touch()
    perun("init", "-t", template, err=("this project is built by make (Makefile)", word))
    assert perun("config", "get", "execute.pre_run").out.strip() == (
        'execute.pre_run: ["make"]' if template == "user" else "execute.pre_run: []"
    )
    assert "built by" not in perun("init").err
