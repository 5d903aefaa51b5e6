"""The options that commands have in common do the same in each: `--minor`, `--since`, `--metrics` ..."""

import csv
import io
import json
import re

import pytest


@pytest.fixture
def measured(perun, project, write_profile):
    """A profile in each of the three versions; the newest is slower."""
    for number, amount in ((2, 1.0), (1, 1.0), (0, 1.5)):
        amounts = (amount, amount + 0.02, amount - 0.02)
        write_profile(f"a{number}.perf", origin=f"HEAD~{number}", amounts=amounts)
    perun("add", "--to-origin", "0@p-2@p")
    return project


@pytest.mark.parametrize(
    "verb", [("status",), ("log",), ("check", "head"), ("check", "all"), ("changes",)], ids=" ".join
)
def test_a_version_is_an_argument_or_an_option(perun, measured, verb):
    as_argument = perun(*verb, "HEAD~1", "--json").json
    assert perun(*verb, "--minor", "HEAD~1", "--json").json == as_argument
    assert as_argument != perun(*verb, "--json").json
    if verb[0] != "check":
        assert perun(*verb, "-m", "HEAD~1", "--json").json == as_argument


@pytest.mark.parametrize(
    "verb", [("status",), ("changes",), ("check", "all"), ("push", "team")], ids=" ".join
)
def test_a_version_is_named_once(perun, measured, verb):
    perun(*verb, "HEAD", "--minor", "HEAD", code=2, err="and --minor are the same: give one of them")


def test_what_stands_behind_a_version_stays_the_argument(perun, measured):
    perun("ack", "-m", "HEAD", "compare", "--because", "as it must be")
    (entry,) = perun("ack", "--list", "--json").json["acknowledged"]
    assert (entry["version"], entry["location"]) == (measured.git("rev-parse", "HEAD"), "compare")
    perun("ack", "--remove", "HEAD", "compare")
    perun("ack", "-m", "HEAD", "HEAD~1", "compare", code=2)
    perun("explain", code=2, err="Missing argument 'VERSION|A..B'")


def test_versions_begin_behind_one(perun, measured):
    head = measured.git("rev-parse", "HEAD")
    assert [one["checksum"] for one in perun("log", "--since", "HEAD~1", "--json").json["versions"]] == [head]
    checked = perun("check", "all", "--since", "HEAD~1", "--json").json["comparisons"]
    assert [one["minor_version"] for one in checked] == [head]
    assert checked[0]["baseline"] == measured.git("rev-parse", "HEAD~1")
    # A difference is from an older version, whether that is listed or not.
    (value,) = perun("log", "--since", "HEAD~1", "--json").json["versions"][0]["values"]
    assert value["difference"]["since"] == measured.git("rev-parse", "HEAD~1")
    failed = perun("log", "--since", "nothing", check=False)
    assert failed.code != 0
    assert "nothing" in failed.err


def test_versions_begin_with_a_day(perun, measured):
    assert len(perun("log", "--since", "2000-01-01", "--json").json["versions"]) == 3
    assert perun("log", "--since", "2100-01-01", "--json").json["versions"] == []


def test_profiles_of_new_versions_are_sent(perun, measured, tmp_path):
    perun("remote", "add", "team", f"file://{tmp_path / 'remote'}")
    head = measured.git("rev-parse", "HEAD")
    sent = perun("push", "--since", "HEAD~1", "--json").json["profiles"]
    assert [one["minor"] for one in sent] == [head]
    sent = perun("push", "-m", "HEAD~1", "--json").json["profiles"]
    assert [one["minor"] for one in sent] == [measured.git("rev-parse", "HEAD~1")]
    failed = perun("push", "team", "HEAD~1..HEAD", "--since", "HEAD~2", check=False)
    assert "--since contradict each other" in failed.err


def test_the_matrix_begins_with_a_version_or_a_day(perun, measured):
    perun("config", "set", "cmds", "[./app]")
    perun("config", "set", "collectors", "[time]")
    planned = perun("run", "matrix", "--since", "HEAD~1", "--dry-run", "--json").json
    assert planned["schema"] == "perun.plan/1"
    (version,) = planned["versions"]
    assert version["minor_version"] == measured.git("rev-parse", "HEAD")
    assert [(job["cmd"], job["collector"]) for job in version["jobs"]] == [("./app", "time")]
    since = ("--since", "2000-01-01", "--rounds", "1")
    assert len(perun("run", "matrix", *since, "--dry-run", "--json").json["versions"]) == 3


def test_a_series_is_an_argument_or_an_option_of_trend(perun, measured):
    assert perun("trend", "-s", "app", "--json").json == perun("trend", "app", "--json").json
    assert "no series matches 'other'" in perun("trend", "--series", "other", check=False).err
    perun("trend", "app", "-s", "app", code=2)


def test_answers_go_to_a_file(perun, measured):
    for verb in (("trend",), ("changes",), ("check", "head")):
        assert '"schema"' not in perun(*verb, "--json", "-o", "answer.json").out
        assert '"schema"' in (measured.path / "answer.json").read_text("utf-8")
    perun("trend", "--format", "csv", "-o", "answer.csv")
    text = (measured.path / "answer.csv").read_text("utf-8")
    assert len(list(csv.DictReader(io.StringIO(text)))) == 3
    assert text == perun("trend", "--csv").out  # as it was called before


def test_bench_takes_a_command_as_others_do(perun, project):
    found = perun("bench", "-c", "sleep", "-a", "0.001", "--runs", "3", "--json").json
    assert [one["command"] for one in found["benchmarks"]] == ["sleep 0.001"]
    found = perun("bench", "-w", "0", "-r", "3", "-c", "sleep", "--workload", "0.001", "true", "--json").json
    assert [one["command"] for one in found["benchmarks"]] == ["true", "sleep 0.001"]
    perun("bench", code=2)
    perun("bench", "true", "-a", "1", code=2)


def test_what_makes_profiles_names_them_as_json(perun, project):
    (one,) = perun("collect", "-c", "sleep 0.001", "--json", "time", "-r", "3", "-w", "0").json["profiles"]
    head = project.git("rev-parse", "HEAD")
    assert (one["minor_version"], one["cmd"], one["collector"], one["registered"]) == (
        *(head, "sleep 0.001", "time"), False,
    )  # fmt: skip
    assert one["measured"]["n"] == 3
    (added,) = perun("add", one["name"], "--json").json["profiles"]
    assert added == {"name": one["name"], "minor_version": head, "registered": True, "refused": False}
    made = perun("postprocessby", "--json", "0@i", "normalizer").json
    assert made["name"] in {other["name"] for other in perun("status", "--json").json["pending"]}
    (gone,) = perun("rm", "0@i", "--json").json["profiles"]
    assert gone == {"name": one["name"], "minor_version": head}


def test_what_failed_is_in_the_json(perun, project):
    perun("config", "set", "cmds", "['sleep 0.001', 'false']")
    perun("config", "set", "collectors", "[{name: time, params: {repeat: 2, warmup: 0}}]")
    failed = perun("run", "matrix", "--json", check=False)
    assert failed.code != 0
    assert [one["cmd"] for one in failed.json["profiles"]] == ["sleep 0.001"]
    (failure,) = failed.json["failures"]
    assert (failure["cmd"], failure["collector"]) == ("false", "time")
    assert failure["message"]
    job = perun("run", "job", "-c", "time", "-b", "false", "--json", check=False)
    assert [one["cmd"] for one in job.json["failures"]] == ["false"]
    perun("run", "matrix", "--missing", "--json", check=False)


# -- --metrics -----------------------------------------------------------------------------------------------


def test_a_record(perun, project, tmp_path):
    path = tmp_path / "metrics.json"
    perun("--metrics", path, "first", "status")
    perun("-m", path, "second", "log", "nope", check=False)
    records = json.loads(path.read_text())
    assert list(records) == ["first", "second"]
    assert (records["first"]["command"], records["first"]["exit_code"]) == ("status", 0)
    assert (records["second"]["command"], records["second"]["exit_code"]) == ("log", 4)
    for record in records.values():
        assert 0 < record["wall_s"] < 60
        assert 0 < record["cpu_s"] < 60
        assert record["children_cpu_s"] >= 0
        assert record["peak_memory_kb"] > 1000


def test_a_record_of_the_same_id_is_replaced_and_others_stay(perun, project, tmp_path):
    path = tmp_path / "metrics.json"
    path.write_text('{"mine": {"anything": [1]}, "id": 3}')
    perun("--metrics", path, "id", "status")
    records = json.loads(path.read_text())
    assert records["mine"] == {"anything": [1]}
    assert records["id"]["command"] == "status"


@pytest.mark.parametrize("content", ["[", "[]", "3", "\0"])
def test_a_file_of_something_else_is_left_alone(perun, project, write_profile, tmp_path, content):
    profile = write_profile()
    path = tmp_path / "other"
    path.write_text(content)
    perun("--metrics", path, "id", "rm", "0@p", code=2, err=str(path))
    assert path.read_text() == content
    assert profile.exists()  # nothing was done


def test_a_folder_that_cannot_be_made(perun, project, tmp_path):
    (tmp_path / "file").touch()
    perun("--metrics", tmp_path / "file" / "metrics.json", "id", "status", code=2, err="file/metrics.json")
    perun("--metrics", tmp_path, "id", "status", code=2)


def test_commands_at_the_same_time(command, environment, project, tmp_path):
    import subprocess

    path = tmp_path / "metrics.json"
    arguments = [*command, "--metrics", str(path), "slow", "config", "edit"]
    go = tmp_path / "go"
    editor = f"sh -c 'while ! [ -e {go} ]; do sleep 0.02; done'"
    slow = subprocess.Popen(arguments, env={**environment, "EDITOR": editor})
    done = subprocess.run(
        [*command, "--metrics", str(path), "quick", "--help"], env=environment, check=True,
        capture_output=True
    )  # fmt: skip
    subprocess.run(
        [*command, "--metrics", str(path), "quick", "status"], env=environment, check=True,
        capture_output=True
    )  # fmt: skip
    go.touch()
    assert slow.wait(60) == 0
    assert b"Usage" in done.stdout
    assert list(json.loads(path.read_text())) == ["quick", "slow"]


PHASES = ["prepare", "collect", "postprocess", "save"]


def test_phases_of_jobs(perun, project, fake, tmp_path):
    path = tmp_path / "metrics.json"
    job = ("run", "job", "-b", "./app", "-a", "amount=1", "-a", "amount=2", "-c", "fake", "-p", "normalizer")
    done = perun("-v", "--metrics", path, "jobs", *job)
    phases = json.loads(path.read_text())["jobs"]["phases_s"]
    assert list(phases) == PHASES
    assert all(0 < seconds < 60 for seconds in phases.values())
    lines = [line for line in done.lines if not re.search("(real|cpu) time", line)]
    prepared, first, timed, second, again = lines
    assert re.fullmatch(r"prepare [\d.]+ [mµ]?s", prepared)
    assert first.startswith("stored ") and second.startswith("stored ")
    for line in (timed, again):
        assert re.fullmatch(r"collect [\d.]+ [mµ]?s, postprocess [\d.]+ [mµ]?s, save [\d.]+ [mµ]?s", line)


def test_phases_are_no_part_of_the_usual_answer(perun, project, fake, tmp_path):
    path = tmp_path / "metrics.json"
    done = perun("--metrics", path, "one", "collect", "-c", "./app", "fake")
    assert [line.split()[0] for line in done.lines] == ["stored", "real"]
    assert list(json.loads(path.read_text())["one"]["phases_s"]) == ["prepare", "collect", "save"]
    perun("--metrics", path, "two", "status")
    assert "phases_s" not in json.loads(path.read_text())["two"]
