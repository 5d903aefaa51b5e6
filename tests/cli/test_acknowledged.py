"""`perun changes` and `perun ack` on the history of a real C program that counts its own work."""

import json
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from dataclasses import asdict
from pathlib import Path

import project as generated
import pytest

from perun.store.cache import FILE, Cache
from shared import folder_of_run, made_once

COMMITS = 24


def measure(perun, command, environment, folder, commits):
    """Make the history in the folder and measure it: each version is built by make and run."""
    made = generated.make(folder, commits)
    perun("init", cwd=folder)
    with open(folder / ".perun" / "local.yml", "a") as settings:
        settings.write(generated.SETTINGS)
    perun("trust", cwd=folder)
    # Longer than one command of the tests may take.
    words = [*command, "run", "--crawl-parents", "matrix"]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 8 and "5 versions skipped" in done.stderr
    perun("add", "--to-origin", *sorted((folder / ".perun" / "jobs").glob("*.perf")), cwd=folder)
    return made


@pytest.fixture
def measured(perun, command, environment, tmp_path_factory, tmp_path, monkeypatch):
    """The commits of the measured history, in whose folder the test is."""

    def make(folder):
        made = measure(perun, command, environment, folder / "words", COMMITS)
        (folder / "commits.json").write_text(json.dumps(asdict(made)))

    kept = made_once(folder_of_run(tmp_path_factory) / "acknowledged", make)
    shutil.copytree(kept / "words", tmp_path / "words", symlinks=True)
    monkeypatch.chdir(tmp_path / "words")
    return generated.Made(**json.loads((kept / "commits.json").read_text()))


def named(answer):
    """The first word of the location of each step, by version."""
    return {
        change["version"]: {step["location"].split(" ")[0] for step in change["steps"]}
        for change in answer["changes"]
    }


def expected(made):
    return {
        made.leak: {"in_use"}, made.quadratic: {"unique"}, made.five_percent: {"checksum"},
        made.merge: {"fold"}, made.revert: {"in_use"}
    }  # fmt: skip


def test_changes_names_each_commit_of_the_history(perun, measured):
    answer = perun("changes", "--json").json
    assert named(answer) == expected(measured)
    assert answer["measured"] == len(measured.commits) - 5
    steps = {change["version"]: change["steps"][0] for change in answer["changes"]}
    assert round(steps[measured.five_percent]["ratio"], 3) == 1.05
    assert steps[measured.quadratic]["ratio"] > 50
    assert steps[measured.leak]["taken_back"] == measured.revert
    assert steps[measured.revert]["takes_back"] == measured.leak
    results = {version: step["verdict"] for version, step in steps.items()}
    assert results == {
        measured.leak: "SevereDegradation", measured.quadratic: "SevereDegradation",
        measured.five_percent: "Degradation", measured.merge: "SevereDegradation",
        measured.revert: "SevereOptimization"
    }  # fmt: skip


@pytest.mark.slow
def test_changes_names_each_commit_of_a_long_history(perun, command, environment, tmp_path, monkeypatch):
    made = measure(perun, command, environment, tmp_path / "words", 200)
    monkeypatch.chdir(tmp_path / "words")
    assert named(perun("changes", "--json").json) == expected(made)


def test_changes_in_every_format(perun, measured, tmp_path):
    perun("ack", measured.quadratic, "unique", "--because", "the table <was> | too large")
    markdown = perun("changes", "--format", "markdown").out
    assert markdown.startswith("## Performance: 3 degradations (2 severe), 1 optimization, 1 maybe")
    assert f"`{measured.merge[:10]}`" in markdown and "`fold [total]`" in markdown
    suites = ElementTree.fromstring(perun("changes", "--format", "junit").out)
    failed = {case.get("name") for case in suites.iter("testcase") if case.find("failure") is not None}
    assert failed == {"fold [total]", "checksum [total]"}
    target = tmp_path / "changes.sarif"
    assert perun("changes", "--format", "sarif", "--output", target).out == f"5 changes found; see {target}\n"
    (run,) = json.loads(target.read_text())["runs"]
    results = {one["properties"]["minor_version"]: one for one in run["results"]}
    assert set(results) == measured.changing - {measured.revert}
    assert results[measured.quadratic]["suppressions"] == [
        {"kind": "external", "status": "accepted", "justification": "the table <was> | too large"}
    ]
    assert "suppressions" not in results[measured.merge]
    perun("changes", "--json", "--format", "junit", code=2)


def test_changes_fails_on_what_stays_and_is_not_acknowledged(perun, measured):
    def code(*arguments):
        return perun("changes", *arguments, check=False).code

    assert code("--fail-on", "degradation") == 1
    after = f"{measured.merge}.."
    assert code(after, "--fail-on", "maybe") == 0  # the revert alone, which made it better
    since = f"{measured.before(measured.merge)}.."
    assert code(since, "--fail-on", "severe") == 1
    perun("ack", measured.merge, "fold")
    assert code(since, "--fail-on", "maybe") == 0
    # The leak is taken back later, so that nothing leaks in the end.
    until = (f"{measured.commits[0]}..{measured.before(measured.revert)}", "--series", "in_use")
    assert code(*until, "--fail-on", "degradation") == 1
    perun("ack", measured.five_percent, "*")
    perun("ack", measured.quadratic, "uni*")
    assert code("--fail-on", "degradation") == 0
    assert code("--fail-on", "maybe") == 1
    assert code("--series", "label", "--fail-on", "maybe") == 0


def test_check_respects_what_is_acknowledged(perun, measured):
    version = measured.quadratic
    words = ("check", "--fail-on", "degradation", "head", version)
    perun(*words, code=1)
    perun("ack", version, "unique", "--because", "faster later", "--until", "2999-12-31")
    text = perun(*words).out
    assert "92.3x  acknowledged until 2999-12-31: faster later" in text
    assert "1 degradation, 1 of them acknowledged" in text
    assert (
        "> note: unique is acknowledged until 2999-12-31: faster later"
        in perun(*words, "--format", "manual").out
    )
    answer = perun(*words, "--json").json
    (comparison,) = answer["comparisons"]
    (change,) = comparison["changes"]
    assert change["acknowledged"] == {
        "version": version, "location": "unique", "until": "2999-12-31", "because": "faster later"
    }  # fmt: skip
    assert answer["summary"]["acknowledged"] == 1
    suites = ElementTree.fromstring(perun(*words, "--format", "junit").out)
    assert not list(suites.iter("failure")) and "faster later" in "".join(suites.itertext())
    assert "acknowledged until 2999-12-31" in perun(*words, "--format", "markdown").out
    (run,) = json.loads(perun(*words, "--format", "sarif").out)["runs"]
    assert run["results"][0]["suppressions"][0]["status"] == "accepted"
    # Of a baseline further back the change is among those in between.
    later = measured.commits[-1]
    across = ("check", "--fail-on", "degradation", "head", later, "--baseline", measured.before(version))
    assert "fold" in perun(*across, check=False).out  # the merge, which nobody acknowledged
    perun("ack", measured.merge, "fold")
    assert perun(*across).code == 0
    # Before it, it is no excuse.
    perun("ack", "--remove", version)
    perun("ack", measured.commits[0], "unique")
    perun(*across, code=1)


def test_log_and_status_show_steps_and_what_is_acknowledged(perun, measured):
    version = measured.quadratic
    assert "Steps:" not in perun("log").out and "Steps:" not in perun("status", version).out
    perun("changes")
    perun("check", "head", version)
    line = "Severe Degradation  unique [total]  0.865 k -> 79.8 k  +9,125 %  ./words 400 (regex)"
    for words in (("log", version, "-n", "1"), ("status", version)):
        text = perun(*words).out
        assert "Steps: 1 degradation(-)\n" in text and f"  {line}\n" in text
    perun("ack", version, "unique", "--because", "faster later")
    for words in (("log", version, "-n", "1"), ("status", version)):
        text = perun(*words).out
        assert f"  {line}  acknowledged: faster later\n" in text
        assert "Degradation  unique  0.865 k -> 79.8 k  +9,125 %  92.3x  acknowledged: faster later\n" in text
    status = perun("status", version, "--json").json
    assert status["changes"][0]["acknowledged"]["because"] == "faster later"
    versions = perun("log", "--json").json["versions"]
    found = {one["checksum"]: one["steps"] for one in versions if one["steps"]}
    assert set(found) == measured.changing
    assert status["steps"] == found[version]
    assert found[version][0]["acknowledged"]["location"] == "unique"
    assert found[measured.leak][0]["taken_back"] == measured.revert
    perun("config", "set", "format.shortlog", "%checksum:7% %steps%")
    lines = perun("log", "--short").lines
    assert f"{version[:8]} unique [total] +9,125 % acknowledged" in lines
    assert f"{measured.merge[:8]} fold [total] +300 %" in lines and measured.commits[0][:8] in lines
    # What is remembered of part of the history, or of part of the series, is not lost.
    perun("changes", version, "--series", "fold")
    perun("changes", measured.before(measured.merge))
    assert perun("log", "--short").lines == lines
    cache = Cache(Path(".perun/cache") / FILE)
    assert cache.all("steps", bytes)
    cache.put("steps", dict.fromkeys(cache.all("steps", bytes), b"[[1]]"))
    assert "Steps:" not in perun("log").out
    Path(".perun/acknowledged.json").write_text("[")
    perun("log", version, "-n", "1", err="acknowledged.json is no list", out="Degradation  unique")


def test_the_list_of_what_is_acknowledged(perun, measured):
    assert perun("ack").out == "nothing is acknowledged\n"
    perun("changes")
    done = perun("ack", measured.merge[:8], "fold", "--because", "two\nlines")
    assert done.out == f"acknowledged: {measured.merge[:7]} at fold\n" and not done.err
    perun("ack", measured.merge[:8], "fold", "--because", "other words")
    perun("ack", "HEAD", "main", err="no change of")
    assert perun("ack", "--list").lines == [
        f"{measured.merge[:7]} Merge branch 'letters'",
        "  fold  other words",
        f"{measured.commits[-1][:7]} {perun('log', '--json', '-n', '1').json['versions'][0]['desc'].strip()}",
        "  main",
    ]
    assert [one["expired"] for one in perun("ack", "--list", "--json").json["acknowledged"]] == [False, False]
    path = Path(".perun/acknowledged.json")
    text = path.read_text()
    path.write_text(text.replace('"other words"', '"other words", "until": "2020-02-03"'))
    perun("ack", "--list", err="1 entry has expired", out="fold  expired on 2020-02-03  other words")
    perun("changes", "--fail-on", "severe", f"{measured.merge}^..", code=1)
    perun("ack", "--remove", measured.merge)
    assert perun("ack", "--list", "--json").json["acknowledged"][0]["location"] == "main"


WRONG = [
    (("nowhere", "fold"), "no commit 'nowhere'"),
    (("MERGE", "nothing"), "changed nothing at 'nothing'"),
    (("MERGE", " "), "LOCATION is empty"),
    (("MERGE",), "LOCATION is missing"),
    (("MERGE", "fold", "--until", "tomorrow"), "--until tomorrow is no date"),
    (("MERGE", "fold", "--until", "2027-02-30"), "--until 2027-02-30 is no date"),
    (("MERGE", "fold", "--until", "2020-01-01"), "--until 2020-01-01 is over"),
    (("--list", "MERGE", "fold"), "--list and COMMIT contradict each other"),
    (("--remove",), "COMMIT is missing"),
    (("--remove", "MERGE", "fold"), "nothing is acknowledged of"),
]


def test_what_cannot_be_acknowledged(perun, measured):
    perun("changes")
    for arguments, message in WRONG:
        words = [measured.merge if word == "MERGE" else word for word in arguments]
        failed = perun("ack", *words, check=False)
        assert failed.code in (2, 4) and message in failed.err
    assert perun("ack", "--list").out == "nothing is acknowledged\n"


def test_a_damaged_list_is_named(perun, project):
    path = project.path / ".perun" / "acknowledged.json"
    for text in ("", "{}", "[1]", '{"schema": "perun.acknowledged/1", "acknowledged": [{}]}'):
        path.write_text(text)
        for words in (("ack", "HEAD", "x"), ("changes", "--fail-on", "maybe")):
            perun(*words, code=5, err="acknowledged.json is no list of acknowledged changes")
        assert path.read_text() == text
