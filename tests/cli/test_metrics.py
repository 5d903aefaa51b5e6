"""`perun --metrics FILE ID`: a record of how long a command took."""

from __future__ import annotations

import json
import re

import pytest


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
    failed = perun("--metrics", path, "id", "rm", "0@p", check=False)
    assert failed.code == 2
    assert str(path) in failed.err
    assert path.read_text() == content
    assert profile.exists()  # nothing was done


def test_a_folder_that_cannot_be_made(perun, project, tmp_path):
    (tmp_path / "file").touch()
    failed = perun("--metrics", tmp_path / "file" / "metrics.json", "id", "status", check=False)
    assert failed.code == 2
    assert "file/metrics.json" in failed.err
    failed = perun("--metrics", tmp_path, "id", "status", check=False)
    assert failed.code == 2


def test_commands_at_the_same_time(command, environment, project, tmp_path):
    import subprocess

    path = tmp_path / "metrics.json"
    arguments = [*command, "--metrics", str(path), "slow", "config", "edit"]
    go = tmp_path / "go"
    editor = f"sh -c 'while ! [ -e {go} ]; do sleep 0.02; done'"
    slow = subprocess.Popen(arguments, env={**environment, "EDITOR": editor})
    done = subprocess.run(
        [*command, "--metrics", str(path), "quick", "--help"],
        env=environment,
        check=True,
        capture_output=True,
    )
    subprocess.run(
        [*command, "--metrics", str(path), "quick", "status"],
        env=environment,
        check=True,
        capture_output=True,
    )
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
    assert re.fullmatch(r"prepare [\d.]+ m?s", prepared)
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
