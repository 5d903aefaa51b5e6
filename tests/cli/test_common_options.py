"""The options that commands have in common do the same in each: `--minor`, `--since`, `--series`, `-o` ..."""

from __future__ import annotations

import csv
import io

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
    failed = perun(*verb, "HEAD", "--minor", "HEAD", check=False)
    assert failed.code == 2
    assert "and --minor are the same: give one of them" in failed.err


def test_what_stands_behind_a_version_stays_the_argument(perun, measured):
    perun("ack", "-m", "HEAD", "compare", "--because", "as it must be")
    (entry,) = perun("ack", "--list", "--json").json["acknowledged"]
    assert (entry["version"], entry["location"]) == (measured.git("rev-parse", "HEAD"), "compare")
    perun("ack", "--remove", "HEAD", "compare")
    failed = perun("ack", "-m", "HEAD", "HEAD~1", "compare", check=False)
    assert failed.code == 2
    missing = perun("explain", check=False)
    assert missing.code == 2
    assert "Missing argument 'VERSION|A..B'" in missing.err


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
    assert len(perun("run", "matrix", "--since", "2000-01-01", "--dry-run", "--json").json["versions"]) == 3


def test_a_series_is_an_argument_or_an_option_of_trend(perun, measured):
    assert perun("trend", "-s", "app", "--json").json == perun("trend", "app", "--json").json
    assert "no series matches 'other'" in perun("trend", "--series", "other", check=False).err
    assert perun("trend", "app", "-s", "app", check=False).code == 2


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
    assert perun("bench", check=False).code == 2
    assert perun("bench", "true", "-a", "1", check=False).code == 2


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
