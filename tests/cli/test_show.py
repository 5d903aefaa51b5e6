"""`perun show`: the lookup of 3.5.1 and 13.2.3, and the views `raw` and `tableof`."""

import json
import os
import re
import shutil

import pytest


@pytest.fixture
def workload(perun):
    """The workload of the profile that is shown, by which the tests tell profiles apart."""

    def workload(*arguments, **options):
        return perun("show", *arguments, "raw", **options).json["header"]["workload"]

    return workload


@pytest.fixture
def everywhere(perun, project, write_profile):
    """A profile `same.perf` in the index, another among the pending ones, and one in a folder."""
    write_profile("same.perf", workload="index")
    perun("add", "same.perf")
    write_profile("same.perf", workload="pending")
    folder = project.path / "folder"
    folder.mkdir()
    write_profile("same.perf", workload="file", folder=folder)
    return folder


def test_tags(workload, everywhere):
    assert workload("0@i") == workload("@i") == "index"
    assert workload("0@p") == workload("@p") == "pending"


def test_the_index_comes_before_pending_profiles(perun, workload, everywhere):
    assert workload("same.perf") == "index"
    perun("rm", "0@i")
    assert workload("same.perf") == "pending"
    assert workload("same") == "pending"


def test_a_path_names_its_file(workload, everywhere, project):
    assert workload("folder/same.perf") == "file"
    assert workload(str(everywhere / "same.perf")) == "file"
    assert workload("./same.perf", cwd=everywhere) == "file"
    assert workload(".perun/jobs/same.perf") == "pending"


def test_another_version(workload, perun, write_profile):
    write_profile("old.perf", origin="HEAD~1", workload="old")
    perun("add", "--to-origin", "old.perf")
    assert workload("-m", "HEAD~1", "0@i") == "old"
    assert workload("--minor", "main~1", "old.perf") == "old"
    perun("show", "old.perf", "raw", code=6, err="no profile matches 'old.perf'")
    perun("show", "-m", "nope", "0@i", "raw", code=4)


def test_a_file_outside_of_the_project(workload, write_profile, tmp_path):
    write_profile("out.perf", folder=tmp_path, workload="outside", origin=None)
    assert workload("../out.perf") == "outside"


def test_a_part_of_a_pending_name(perun, workload, write_profile):
    write_profile("time-app-small.perf", workload="small")
    write_profile("time-app-large.perf", workload="large")
    assert workload("large") == "large"
    failed = perun("show", "app", "raw", code=2)
    assert re.search(r"[k-z]{10}@p  time-app-small.perf\n  [k-z]{10}@p  time-app-large.perf", failed.err)


def test_where_nobody_can_be_asked_the_walk_only_tells(perun, everywhere, write_profile):
    write_profile("far-away.perf", folder=everywhere)
    assert "found" not in perun("show", "", "raw", check=False).err
    failed = perun("show", "far", "raw", input="y\n", check=False)
    assert failed.code == 6
    assert f"found {everywhere / 'far-away.perf'}; give this path to use it" in failed.err
    assert failed.out == ""


def test_the_walk_asks_before_it_takes_a_match(terminal, everywhere, write_profile):
    write_profile("far-1.perf", folder=everywhere, workload="one")
    write_profile("far-2.perf", folder=everywhere, workload="two")
    taken = terminal("show", "far", "raw", keys="n\ny\n")
    assert f"use {everywhere / 'far-1.perf'}? [y/N]" in taken.out
    assert f"use {everywhere / 'far-2.perf'}? [y/N]" in taken.out
    assert '"workload": "two"' in taken.out
    assert '"workload": "one"' not in taken.out
    refused = terminal("show", "far", "raw", keys="\nn\n")
    assert refused.code == 6
    assert '"workload"' not in refused.out


def test_the_walk_leaves_out_git_and_perun(perun, project, write_profile):
    write_profile("hidden.perf", folder=project.path / ".git")
    write_profile("hidden.perf", folder=project.path / ".perun" / "tmp")
    failed = perun("show", "hidden", "raw", check=False)
    assert (failed.code, "found" in failed.err) == (6, False)


@pytest.mark.parametrize(("arguments", "code", "message"), [
    (("0@i", "raw"), 6, "there is no profile 0@i: 0 profiles are registered"),
    (("7@p", "raw"), 6, "there is no profile 7@p: 1 profile is pending"),
    (("0@p-1@i", "raw"), 2, "mixes registered and pending tags"),
    (("3@p-1@p", "raw"), 2, "names 0 profiles"),
    (("nope", "raw"), 6, "no profile matches 'nope'"),
    (("profil", "tableof"), 2, "tableof"),
    (("profile.pref", "raw"), 6, "did you mean profile.perf?"),
    (("0@p", "rwa"), 2, "did you mean 'raw'"),
    (("0@p", "-m", "HEAD", "raw"), 2, "-m is in the wrong place"),
    (("0@p", "raw", "--nope"), 2, "--nope"),
    ((), 2, "Usage: perun show"),
])  # fmt: skip
def test_what_is_refused(perun, write_profile, arguments, code, message):
    write_profile()
    assert perun("show", *arguments, code=code, err=message).out == ""


def test_help_needs_no_profile(perun, project):
    assert "tableof" in perun("show", "nothing", "--help").out
    assert "--output-file" in perun("show", "nothing", "tableof", "--help").out
    assert "Usage: perun show" in perun("show", "--help").out


def test_a_damaged_object(perun, project, write_profile):
    write_profile()
    perun("add", "0@p")
    checksum = perun("status", "--json").json["registered"][0]["checksum"]
    path = project.path / ".perun" / "objects" / checksum[:2] / checksum[2:]
    path.write_bytes(path.read_bytes()[:-9])
    perun("show", "0@i", "raw", code=6, err=str(path))
    path.unlink()
    perun("show", "0@i", "raw", code=6, err=checksum)


def test_a_file_that_is_no_profile(perun, project, tmp_path):
    (tmp_path / "x.perf").write_text("{}")
    perun("show", "../x.perf", "raw", code=6, err=f"{tmp_path}/x.perf: header")


def test_raw_can_be_registered_again(perun, project, write_profile, tmp_path):
    write_profile("a.perf", amounts=(1.5, 2.5))
    raw = perun("show", "a.perf", "raw").out
    perun("add", "a.perf")
    (tmp_path / "copy.perf").write_text(raw)
    perun("add", "../copy.perf")
    first, second = perun("status", "--json").json["registered"]
    assert first["checksum"] == second["checksum"]


def test_tableof(perun, write_profile):
    write_profile(amounts=(0.5, 2.25))
    assert perun("show", "0@p", "tableof", "resources").out == (
        "uid      amount    order  subtype    type\n"
        "-----  --------  -------  ---------  ------\n"
        "./app      0.5         0  real       time\n"
        "./app      2.25        1  real       time\n"
    )


@pytest.mark.parametrize(("format_", "expected"), [
    ("github", "| uid   |"),
    ("html", "<table>"),
    ("latex", r"\begin{tabular}"),
    ("tsv", "uid  \t"),
    ("grid", "+==="),
])  # fmt: skip
def test_formats_of_tableof(perun, write_profile, format_, expected):
    write_profile()
    assert expected in perun("show", "0@p", "tableof", "-f", format_, "resources").out
    perun("show", "0@p", "tableof", "-f", "nope", "resources", code=2)


def test_tableof_into_a_file(perun, project, write_profile):
    write_profile()
    perun("show", "0@p", "tableof", "--to-file", "-of", "table.txt", "resources")
    assert (project.path / "table.txt").read_text().startswith("uid ")
    before = set(os.listdir(project.path))
    perun("show", "0@p", "tableof", "--to-file", "resources")
    [made] = set(os.listdir(project.path)) - before
    assert (project.path / made).read_text() == (project.path / "table.txt").read_text().rstrip("\n") + "\n"


@pytest.mark.parametrize("key", ["cmd", "bin"])
def test_profiles_of_older_layouts(perun, project, workload, key):
    path = project.path / ".perun" / "jobs" / "old.perf"
    profile = {
        "origin": project.head,
        "header": {"type": "memory", key: "./a", "params": "-x", "workload": "w", "units": {"memory": "B"}},
        "collector_info": {"name": "memory", "params": {}},
        "postprocessors": [],
        "global": {"resources": [{"amount": 4, "type": "memory", "uid": "main"}]},
    }
    path.write_text(json.dumps(profile))
    assert workload("0@p") == "w"
    assert "0@p | memory    | ./a -x w " in perun("status").out
    perun("add", "0@p")
    assert "main" in perun("show", "0@i", "tableof", "resources").out
    assert perun("status", "--json").json["registered"][0]["cmd"] == "./a"
    stored = perun("show", "0@i", "raw").json["header"]
    assert (stored["cmd"], "bin" in stored) == ("./a", False)


def test_it_writes_nothing(perun, project, write_profile):
    write_profile()
    perun("add", "0@p")
    write_profile()
    shutil.rmtree(project.path / ".perun" / "cache")
    before = {path: path.stat().st_mtime_ns for path in project.path.rglob("*")}
    perun("show", "0@i", "raw")
    perun("show", "0@p", "tableof", "resources")
    assert {path: path.stat().st_mtime_ns for path in project.path.rglob("*")} == before


@pytest.mark.parametrize(("collector", "view"), [
    ("time", "bars mean --per subtype --of amount --terminal"),
    ("trace", "bars sum --per uid --of amount --terminal"),  # it has no stacks for a flame graph
    ("my-own", "tableof resources --limit 50"),
])  # fmt: skip
def test_without_a_view_the_collector_chooses_one(perun, write_profile, collector, view):
    write_profile("a profile.perf", collector=collector)
    shown = perun("show", "a profile.perf")
    assert shown.out == perun("show", "0@p", *view.split()).out
    first, second = shown.err.splitlines()
    assert first == f"shown by: perun show 'a profile.perf' {view}"
    assert second.startswith(f"name another view in place of {view.split()[0]}: ")
    assert "flamegraph" in second


def test_a_chosen_view_writes_its_page_and_names_the_version(perun, project, write_profile):
    path = write_profile(collector="complexity", type_="mixed")
    document = json.loads(path.read_text("utf-8"))
    for group in document["resources"].values():
        group["structure-unit-size"] = [1, 2, 3]
    path.write_text(json.dumps(document), "utf-8")
    perun("add", "0@p")
    shown = perun("show", "-m", "HEAD", "0@i")
    assert shown.out == "scatter-complexity-app-input.txt.html\n"
    assert (project.path / shown.lines[0]).is_file()
    assert shown.err.splitlines()[0] == "shown by: perun show -m HEAD 0@i scatter"
