"""A program that prints its throughput in several units has one history; names can be pasted."""

from __future__ import annotations

import os

import pytest

from perun.profile.factory import Profile
from perun.repository.repository import open_repository
from perun.store.pending import link

SCATTER = (1.0, 1.004, 0.996, 1.002, 0.998)
DROPS = 7
"""The version from which on it is half as fast."""


def throughput(speed: float, unit: str, workload: str) -> Profile:
    """What the regex collector stores. :param speed: in MB/s."""
    factor = {"MB/s": 1.0, "KB/s": 1e3, "GB/s": 1e-3}[unit]
    made = Profile(
        {
            "header": {
                "type": "mixed", "cmd": "./copy", "args": "[v2]", "workload": workload,
                "units": {f"mixed({unit})": unit}, "larger_is_better": [unit],
            },
            "collector_info": {"name": "regex", "params": {}},
            "postprocessors": [],
        }
    )  # fmt: skip
    made.update_resources(
        {"uid": "copy", "type": "mixed", "subtype": unit, "order": n, "amount": speed * factor * one}
        for n, one in enumerate(SCATTER)
    )
    return made


@pytest.fixture
def history(perun, git_repository, monkeypatch):
    git = git_repository("rates", commits=10)
    perun("init", cwd=git.path)
    monkeypatch.chdir(git.path)
    line = git.git("rev-list", "--reverse", "HEAD").split()
    store = open_repository(git.path, os.environ).store
    for number, version in enumerate(line):
        speed = (50.0 if number >= DROPS else 100.0) * (1 + 0.002 * (number % 3))
        unit = ("MB/s", "KB/s", "GB/s")[number % 3]
        made = [throughput(speed * more, unit, size) for more, size in ((1, "small"), (1.2, "large"))]
        link(store, version, [(one, f"{number}-{n}.perf", 100 * number + n) for n, one in enumerate(made)])
    return line


def test_all_commands_see_one_series_and_one_ratio(perun, history):
    trend = perun("trend", "small", "--json").json["series"]
    (series,) = trend
    assert (series["unit"], len(series["points"])) == ("B/s", len(history))
    ratio = series["points"][DROPS]["difference"]["ratio"]
    assert ratio == pytest.approx(0.5, abs=0.005)
    logged = {one["checksum"]: one["values"] for one in perun("log", "--json").json["versions"]}
    (own,) = (one for one in logged[history[DROPS]] if one["workload"] == "small")
    assert own["difference"]["ratio"] == ratio
    (change,) = perun("changes", "--series", "small", "--json").json["changes"]
    (step,) = change["steps"]
    assert (change["version"], step["location"], step["unit"]) == (history[DROPS], "copy [B/s]", "B/s")
    assert step["ratio"] == pytest.approx(ratio) and step["degradation"]
    told = perun("check", "head", history[DROPS], "--json").json
    found = [one for pair in told["comparisons"] if pair["workload"] == "small" for one in pair["changes"]]
    assert [(one["location"], one["factor"]) for one in found] == [("copy [B/s]", pytest.approx(ratio))]


def test_a_family_is_one_line_and_what_is_printed_can_be_pasted(perun, history):
    lines = perun("changes").lines
    (line,) = (line for line in lines if "copy [B/s]" in line)
    assert "mean of 2, " in line and "./copy small (regex), ./copy large (regex)" in line
    assert "95.4 MiB/s" not in line and " MiB/s -> " in line
    assert "  ./copy (regex)" in lines
    names = ("copy [B/s]", "./copy [v2] small (regex)", "./copy small", "./copy [v2] small", "*[[]B/s]")
    for pasted in names:
        assert perun("changes", "--series", pasted, "--json").json["changes"], pasted
    for pasted in ("./copy small", "./copy [v2] small", "./copy [v2] small (regex)"):
        (series,) = perun("trend", pasted, "--json").json["series"]
        assert series["workload"] == "small"
    assert perun("changes", "--series", "copy [A/s]", check=False).code == 6
