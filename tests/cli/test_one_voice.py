"""What `status`, `log` and `trend` say of the same versions is the same, in a history with a merge."""

from __future__ import annotations

import json
import os

import pytest

from perun.porcelain.repository import open_repository
from perun.profile.factory import Profile
from perun.store.linking import link

RUNS = (1.0, 1.01, 0.99, 1.02, 0.98)


def profile(kind: str, cmd: str, rows: list[dict[str, object]]) -> Profile:
    made = Profile(
        {
            "header": {"type": kind, "cmd": cmd, "args": "", "workload": "", "units": {kind: "s"}},
            "collector_info": {"name": kind, "params": {}},
            "postprocessors": [],
        }
    )
    made.update_resources(rows)
    return made


def times(level: float) -> Profile:
    rows = [
        {"uid": "./app", "type": "time", "subtype": "real", "order": n, "amount": level * one}
        for n, one in enumerate(RUNS)
    ]
    return profile("time", "./app", rows)


def family(level: float) -> Profile:
    rows = [
        {
            "uid": "./fam",
            "type": "time",
            "subtype": "real",
            "order": n,
            "workload": size,
            "amount": size * level * one,
        }
        for size in (1, 4, 9)
        for n, one in enumerate(RUNS)
    ]
    return profile("time", "./fam", rows)


def count(amount: int) -> Profile:
    rows = [{"uid": "./app", "type": "memory", "subtype": "peak", "amount": amount}]
    return profile("memory", "./app", rows)


def zeros(amount: float) -> Profile:
    rows = [{"uid": "lost", "type": "mixed", "subtype": "lost", "amount": amount}]
    return profile("mixed", "./zero", rows)


@pytest.fixture
def history(perun, git_repository, monkeypatch):
    git = git_repository("voices", commits=10)
    perun("init", cwd=git.path)
    monkeypatch.chdir(git.path)
    git.git("checkout", "-q", "-b", "side", "HEAD~2")
    side = git.commit("on the side")
    git.git("checkout", "-q", "main")
    git.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    line = git.git("rev-list", "--reverse", "--first-parent", "HEAD").split()
    store = open_repository(git.path, os.environ).store
    for number, version in enumerate([*line, side]):
        level = (4.0 if number >= 6 else 1.0) * (1 + 0.002 * (number % 3))
        made = [times(level), family(level), count(1000 + 500 * (number >= 8)), zeros(float(number == 9))]
        link(store, version, [(one, f"{number}-{n}.perf", 100 * number + n) for n, one in enumerate(made)])
    link(store, line[3], [(times(1.03), "again.perf", 399)])
    return line


def said(one: dict[str, object]) -> tuple[object, ...]:
    return json.dumps(one["measured"]), json.dumps(one["difference"])


def test_the_lists_say_the_same(perun, history):
    log = {
        (version["checksum"], value["cmd"], value["collector"]): said(value)
        for version in json.loads(perun("log", "--json").out)["versions"]
        for value in version["values"]
    }
    trend = {
        (point["version"], series["cmd"], series["collector"]): said(point)
        for series in json.loads(perun("trend", "--json").out)["series"]
        for point in series["points"]
    }
    status = {
        (version, one["cmd"], one["collector"]): said(one)
        for version in history
        for one in json.loads(perun("status", version, "--json").out)["registered"]
    }
    assert len(status) == 4 * len(history)
    assert {key: log[key] for key in status} == status
    assert trend == status
    words = {json.loads(difference)["verdict"] for _, difference in status.values() if difference != "null"}
    assert {"NoChange", "SevereDegradation"} <= words
    steady = json.loads(status[history[5], "./app", "memory"][1])
    assert (steady["ratio"], steady["ratio_low"], steady["ratio_high"]) == (1, 1, 1)
