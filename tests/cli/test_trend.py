"""`perun trend`: values over the versions, as a table, JSON and CSV, also of a throughput."""

import csv
import io
import os

import pytest

from perun.profile.factory import Profile
from perun.repository.repository import open_repository
from perun.store.cache import FILE
from perun.store.pending import link


@pytest.fixture
def measured(project, write_profile, perun):
    """Two configurations measured in two of three versions; the newest is slower."""
    for number, amount in ((2, 1.0), (0, 1.5)):
        amounts = (amount, amount + 0.02, amount - 0.02)
        write_profile(f"a{number}.perf", origin=f"HEAD~{number}", amounts=amounts)
    write_profile("b.perf", cmd="./other", args="-v", workload="", amounts=(0.25,))
    perun("add", "--to-origin", "0@p-2@p")
    return project


def test_the_tables(perun, measured):
    new, old = (measured.git("rev-parse", "--short=7", name) for name in ("HEAD", "HEAD~2"))
    done = perun("trend")
    assert done.lines == [
        "./app  real time (time)",
        f"▁█  between 1 s and 1.5 s, +50.0 % since {old}",
        f"{old}  2024-03-04  1.00 s ± 0.06 (n = 3)                         {'█' * 10}▋       Commit 1",
        f"{new}  2024-03-04  1.50 s ± 0.06 (n = 3)  +50.0 % [-25.4, +202]  {'█' * 16}  Commit 3",
        "",
        "./other  real time (time)",
        f"{new}  2024-03-04  250 ms    {'█' * 16}  Commit 3",
    ]
    assert done.err == "note: 1 of 3 versions have no such profile\n"


def test_series_of_the_same_words_are_told_apart(perun, project, write_profile):
    write_profile("a.perf", cmd="./app 10", args="", workload="")
    write_profile("b.perf", cmd="./app", args="", workload="10")
    write_profile("c.perf", cmd="./app", args="-v", workload="10")
    perun("add", "0@p-2@p")
    titles = [line.partition("  ")[0] for line in perun("trend").lines if "real time" in line]
    assert sorted(titles) == ["./app (workload 10)", "./app -v", "./app 10"]


@pytest.mark.parametrize("pattern", [
    *("app", "./app input.txt", "./app input.txt (time)", "./app [real]", "app input.txt"),
    *("a*in?ut", "time*input"),
])  # fmt: skip
def test_a_series_is_chosen(perun, measured, pattern):
    (series,) = perun("trend", pattern, "--json").json["series"]
    assert series["cmd"] == "./app"


def test_a_series_that_is_not_there(perun, measured):
    failed = perun("trend", "nothing", check=False)
    assert (failed.code, failed.out) == (6, "")
    assert "no series matches 'nothing'" in failed.err
    assert "./app input.txt (real time)" in failed.err
    assert "the metric 'memory'" in perun("trend", "--metric", "memory", check=False).err
    assert len(perun("trend", "--metric", "REAL", "--json").json["series"]) == 2


def test_json(perun, measured):
    answer = perun("trend", "app", "--json").json
    assert (answer["schema"], answer["versions"], answer["measured"]) == ("perun.trend/2", 3, 2)
    (series,) = answer["series"]
    first, last = series["points"]
    assert (first["version"], first["subject"]) == (measured.git("rev-parse", "HEAD~2"), "Commit 1")
    assert first["difference"] is None
    assert last["measured"]["value"] == pytest.approx(1.5)
    difference = last["difference"]
    assert difference["ratio"] == pytest.approx(1.5)
    assert difference["ratio_low"] == pytest.approx(0.746, abs=1e-3)
    assert (difference["since"], difference["verdict"]) == (first["version"], "Unknown")
    assert series["difference"] == difference  # of two points, the first and the last are neighbours


def test_csv(perun, measured):
    rows = list(csv.DictReader(io.StringIO(perun("trend", "--csv").out)))
    assert [(row["cmd"], row["subject"], row["n"]) for row in rows] == [
        ("./app", "Commit 1", "3"),
        ("./app", "Commit 3", "3"),
        ("./other", "Commit 3", "1"),
    ]
    assert float(rows[1]["ratio"]) == pytest.approx(1.5)
    assert (rows[1]["since"], rows[1]["verdict"]) == (rows[0]["version"], "Unknown")
    assert rows[0]["ratio"] == rows[2]["low"] == rows[2]["high"] == ""
    perun("trend", "--csv", "--json", code=2)


def test_which_versions(perun, measured):
    def subjects(*options):
        series = perun("trend", "app", *options, "--json").json["series"]
        return [point["subject"] for one in series for point in one["points"]]

    assert subjects("-n", "1") == ["Commit 3"]
    assert subjects("-m", "HEAD~1") == ["Commit 1"]
    assert subjects("--since", "HEAD~2") == ["Commit 3"]
    assert subjects("--since", "2024-03-04") == ["Commit 1", "Commit 3"]
    assert subjects("--since", "2024-03-05") == []
    perun("trend", "-m", "no-such-branch", code=4)
    perun("trend", "--since", "no-such-branch", code=4)


def dated(project, date, message):
    made = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    project.git("commit", "--quiet", "--allow-empty", "-m", message, environ=made)


@pytest.mark.parametrize("zone, day, shown", [
    ("UTC", "2024-05-02", ["late", "wrong clock"]),
    ("UTC", "2024-05-01", ["early", "late", "wrong clock"]),
    ("XXX-20", "2024-05-02", ["early", "late", "wrong clock"]),  # 20 hours before UTC
    ("XXX+12", "2024-05-02", ["wrong clock"]),
    ("XXX+12", "2024-05-01", ["late", "wrong clock"]),
])  # fmt: skip
def test_a_day_is_that_of_the_user_and_a_wrong_clock_ends_nothing(
    perun, project, write_profile, zone, day, shown
):
    dated(project, "2024-05-01T09:00:00Z", "early")
    dated(project, "2024-05-02T03:00:00Z", "late")
    dated(project, "2001-01-01T00:00:00Z", "back in 2001")
    dated(project, "2024-05-02T17:00:00Z", "wrong clock")
    for number in range(4):
        write_profile(f"{number}.perf", origin=f"HEAD~{number}", amounts=(1.0 + number,))
    perun("add", "--to-origin", "0@p-3@p")
    (series,) = perun("trend", "--since", day, "--json", env={"TZ": zone}).json["series"]
    assert [point["subject"] for point in series["points"]] == shown
    perun("trend", "--since", "2024-13-01", code=4)


def test_along_first_parents(perun, measured, write_profile):
    measured.git("checkout", "--quiet", "-b", "side", "HEAD~1")
    measured.commit("On the side", {"side.txt": "1"})
    write_profile("side.perf", amounts=(9.0,))
    measured.git("checkout", "--quiet", "main")
    measured.git("merge", "--quiet", "--no-ff", "-m", "Merge side", "side")
    write_profile("merge.perf", amounts=(2.0,))
    perun("add", "--to-origin", "0@p-1@p")
    (series,) = perun("trend", "app", "--json").json["series"]
    assert [point["subject"] for point in series["points"]] == ["Commit 1", "Commit 3", "Merge side"]


def test_nothing_is_registered(perun, project):
    done = perun("trend")
    assert done.out == "no measured value is registered in 3 versions\n"
    assert "perun run --crawl-parents matrix" in done.err
    assert perun("trend", "--json").json["series"] == []


def test_on_a_terminal(terminal, measured, perun, write_profile):
    for number, amount in ((2, 1.0), (0, 1.5)):  # seen twice, so it is no matter of the machine
        amounts = (amount, amount + 0.01, amount - 0.02)
        write_profile(f"c{number}.perf", origin=f"HEAD~{number}", amounts=amounts)
    perun("add", "--to-origin", "0@p-1@p")
    shown = terminal("trend", "app", columns=80)
    lines = shown.out.splitlines()
    assert "\x1b[1;31m+50.0 % !!\x1b[0m" in lines[3]
    assert "2024" not in lines[3] and "(n = 3)" not in lines[3]
    assert "\x1b[1;31m+50.0 % [+44.3, +55.9] !!\x1b[0m" in terminal("trend", "app", columns=120).out
    narrow = terminal("trend", "app", columns=40, env={"NO_COLOR": "1"}).out
    assert "\x1b" not in narrow
    assert "Commit" not in narrow


def test_where_blocks_cannot_be_shown(perun, measured):
    lines = perun("trend", "app", env={"PYTHONIOENCODING": "ascii"}).lines
    assert len(lines) == 3
    assert "##########" in lines[1]


def test_a_damaged_index_is_named(perun, measured):
    head = measured.head
    path = measured.path / ".perun" / "objects" / head[:2] / head[2:]
    path.write_bytes(path.read_bytes()[:-3])
    perun("trend", code=6, err=str(path), out="Commit 1")


def test_a_store_without_facts(perun, measured):
    expected = perun("trend").out
    (measured.path / ".perun/cache" / FILE).unlink()
    assert perun("trend").out == expected


def test_series_are_completed(perun, measured):
    env = {"_PERUN_COMPLETE": "bash_complete", "COMP_WORDS": "perun trend ./o", "COMP_CWORD": "2"}
    assert perun(env=env, check=False).out == "plain,./other -v\n"


# -- a throughput in several units ---------------------------------------------------------------------------


SCATTER = (1.0, 1.004, 0.996, 1.002, 0.998)
DROPS = 7
"""The version from which on it is half as fast."""


def throughput(speed: float, unit: str, workload: str) -> Profile:
    """What the regex collector stores. :param speed: in MB/s."""
    factor = {"MB/s": 1.0, "KB/s": 1e3, "GB/s": 1e-3}[unit]
    made = Profile({
        "header": {
            "type": "mixed", "cmd": "./copy", "args": "[v2]", "workload": workload,
            "units": {f"mixed({unit})": unit}, "larger_is_better": [unit],
        },
        "collector_info": {"name": "regex", "params": {}},
        "postprocessors": [],
    })  # fmt: skip
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
    perun("changes", "--series", "copy [A/s]", code=6)
