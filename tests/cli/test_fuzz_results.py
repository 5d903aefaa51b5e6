"""`perun fuzz --keep` and `--replay`: what a campaign found becomes workloads, and is measured again."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from perun.fuzz import results
from perun.fuzz.corpus import CorpusMember
from perun.fuzz.findings import FORMAT, CampaignJournal
from perun.fuzz.results import FAULT, FOLDERS, HANG, SLOW, Campaign, Program, Result, Seed
from perun.repository.repository import open_repository
from perun.running.fuzz.options import FuzzOptions, marked

FRAIL = """\
#!/bin/sh
case "$(cat "$1")" in *hangs*) exec sleep 60;; *fails*) kill -SEGV $$;; esac
"""
REPAIRED = """\
#!/bin/sh
[ "$(cat "$1")" != fine ] || exec sleep 0.5
"""
"""It is slower with the seed than with all that was found, however loaded the machine is."""
QUADRATIC = """
#include <stdio.h>
int main(int count, char **words) {
    FILE *file = fopen(words[1], "r");
    volatile long n = 0, sum = 0;
    while (fgetc(file) != EOF) n++;
    for (long i = 0; i < n; i++) for (long j = 0; j < n / 8; j++) sum += j;
    return 0;
}
"""
RECORDING = '#!/bin/sh\n{ echo "$*"; cat "$1"; echo; } >>"$RECORD"\n'
STRANGE = "a <b> & 'c'\n;$(touch owned).txt"


@pytest.fixture
def folder(project: Any) -> Path:
    """The results of a campaign on `./prog` of the project: one slow input, a hang and a fault."""
    project.write({"prog": FRAIL, "seed.txt": "fine\n"})
    (project.path / "prog").chmod(0o755)
    project.commit("Add a program")
    return campaign_in(project.path / "results")


def campaign_in(folder: Path, name: str = "words.txt", cmd: str = "./prog", **settings: Any) -> Path:
    found = []
    for kind, data in ((SLOW, b"slow"), (HANG, b"it hangs"), (FAULT, b"it fails")):
        file = str(Path(FOLDERS[kind], f"{kind}-{name}"))
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(data)
        found.append(Result(file, kind, "seed.txt", "seed.txt", ("T.1",), len(data), None, None, 0.1, 1.0, 3))
    options = FuzzOptions(cmd, "", ("seed.txt",), folder, **{"coverage": False, "hang": 10.0, **settings})
    given = marked(open_repository(folder.parent, dict(os.environ)), options)
    seed = Seed("seed.txt", "seed.txt", 5, 0, 0.001)
    results.save(folder, Campaign(Program(cmd, "", "."), given, 1, (seed,), 0, tuple(found)))
    journal = CampaignJournal(folder)
    journal.write("campaign", format=FORMAT, settings=given, random_seed=1)
    journal.member("seed", CorpusMember(0, "seed.txt", b"fine\n", "", "seed.txt", ()))
    journal.close()
    return folder


def kept(project: Any) -> dict[str, bytes]:
    home = project.path / ".perun/workloads/fuzz"
    return {path.name: path.read_bytes() for path in home.iterdir()}


def test_kept_results_are_measured_by_the_matrix_in_each_version(
    perun, project, folder, environment, tmp_path
) -> None:
    environment["RECORD"] = str(tmp_path / "record")
    project.write({"prog": RECORDING})
    project.commit("Record")
    perun("fuzz", "--keep", folder, out=("kept: slow-words.txt", "added to the job matrix: workloads: fuzz"))
    assert kept(project) == {"slow-words.txt": b"slow"}
    project.commit("Another", {"other": "1"})
    perun("config", "set", "collectors", "[{name: time, params: {warmup: 0, repeat: 1}}]")
    perun("run", "-m", "HEAD", "-m", "HEAD~1", "matrix")
    lines = (tmp_path / "record").read_text().split("\n")
    assert lines.count("slow") == 2
    loads = {path.split("/")[-1] for path in lines if path.endswith("slow-words.txt")}
    assert loads == {"slow-words.txt"}


def test_keeping_again_changes_nothing_and_another_content_gets_another_name(perun, project, folder) -> None:
    first = perun("fuzz", "--keep", folder, "--json").json
    assert [one["is_new"] for one in first["files"]] == [True]
    config = (project.path / ".perun/local.yml").read_bytes()
    second = perun("fuzz", "--keep", folder, "--json").json
    assert [one["is_new"] for one in second["files"]] == [False]
    assert second["settings"] == []
    assert (project.path / ".perun/local.yml").read_bytes() == config
    (folder / "slow-words.txt").write_bytes(b"slower")
    perun("fuzz", "--keep", folder)
    assert kept(project) == {"slow-words.txt": b"slow", "slow-words-2.txt": b"slower"}


def test_hangs_are_kept_only_by_name_and_names_become_safe(perun: Any, project: Any, folder: Path) -> None:
    strange = campaign_in(project.path / "more", STRANGE)
    answer = perun("fuzz", "--keep", strange, "--result", f"hangs/hang-{STRANGE}")
    assert "stop their jobs after execute.timeout" in answer.err
    (name,) = kept(project)
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
    assert name.endswith(".txt")
    assert not (project.path / "owned").exists()


@pytest.mark.parametrize(
    ("way", "workload", "content"), [("stdin", "< fuzz", False), ("argument", "fuzz", True)]
)
def test_inputs_reach_the_program_as_in_the_campaign(way, workload, content, perun, project) -> None:
    project.write({"prog": REPAIRED})
    (project.path / "prog").chmod(0o755)
    found = campaign_in(project.path / "results", input=way)
    perun("fuzz", "--keep", found)
    assert json.loads(perun("config", "get", "workloads").out.partition(": ")[2]) == [workload]
    assert ("content: true" in (project.path / ".perun/local.yml").read_text()) is content


@pytest.mark.parametrize(("arguments", "message"), [
    (["--keep", "nowhere"], "nowhere holds no results.json"),
    (["--keep", "results", "--result", "nix"], "holds no result 'nix'"),
    (["--keep", "results", "-b", "./prog"], "--cmd cannot be combined"),
    (["--keep", "results", "--replay", "results"], "--replay cannot be combined"),
    (["--replay", "results", "--resume"], "--resume cannot be combined"),
    (["--replay", "results", "-m", "nix"], "nix"),
    (["--result", "x"], "belong to --keep and --replay"),
])  # fmt: skip
def test_a_mistake_is_named_before_anything_happens(arguments, message, perun, project, folder) -> None:
    before = (project.path / ".perun/local.yml").read_bytes()
    answer = perun("fuzz", *arguments, check=False)
    assert answer.code != 0
    assert message in answer.err
    assert (project.path / ".perun/local.yml").read_bytes() == before
    assert not (project.path / ".perun/workloads").exists()


def test_a_matrix_with_another_command_is_left_as_it_is(perun: Any, project: Any, folder: Path) -> None:
    perun("config", "set", "cmds", "[./other]")
    before = (project.path / ".perun/local.yml").read_bytes()
    answer = perun("fuzz", "--keep", folder, check=False)
    assert answer.code != 0
    assert "it would also run './other fuzz'" in answer.err
    assert (project.path / ".perun/local.yml").read_bytes() == before
    assert not (project.path / ".perun/workloads").exists()


def test_replay_says_what_is_repaired_and_what_remains(perun: Any, project: Any, folder: Path) -> None:
    names = ["--result", "hang-words.txt", "--result", "fault-words.txt"]
    folder = campaign_in(project.path / "short", hang=4.0)  # which the hang takes
    answer = perun("fuzz", "--replay", folder, *names, "--json", "--fail-on", "remaining", code=1)
    assert [(one["kind"], one["state"]) for one in answer.json["results"]] == [
        ("hang", "remains"),
        ("fault", "remains"),
    ]
    project.write({"prog": REPAIRED})
    text = perun("fuzz", "--replay", folder, *names, "--fail-on", "remaining").out
    assert "2 repaired in" in text
    assert "with uncommitted changes" in text
    project.commit("Repair it")
    old = perun("fuzz", "--replay", folder, *names[2:], "-m", "HEAD~1", "--json").json
    assert [one["state"] for one in old["results"]] == ["remains"]
    assert old["version"] == project.git("rev-parse", "HEAD~1").strip()
    assert (project.path / "prog").read_text() == REPAIRED


def test_replay_measures_a_slow_input_beside_its_seed(perun: Any, project: Any, folder: Path) -> None:
    (one,) = perun("fuzz", "--replay", folder, "--result", "slow-words.txt", "--json").json["results"]
    assert one["now"]["pairs"] == 10
    assert one["now"]["low"] <= one["now"]["ratio"] <= one["now"]["high"]
    assert one["lines_now"] is None


def test_what_was_found_becomes_contracts(perun, project, compiled_once, tmp_path) -> None:
    source = tmp_path / "prog.c"
    source.write_text(QUADRATIC)
    shutil.copy(compiled_once("cc", "-O1", source), project.path / "prog")
    folder = campaign_in(project.path / "results")
    told = perun("guard", "add", "--from-fuzz", "results", err="commit both")
    assert "./prog perun-guard/slow-words.txt\n  instructions at most +2 % of the lock" in told.out
    pattern = {"kind": "repeated", "before": "<", "unit": "ab", "after": ">", "middle": "", "close": "",
               "gap": "", "times": 3}  # fmt: skip
    points = [{"times": times, "size": 2 * times, "cost": 1, "seconds": 0.01} for times in (1, 900)]
    found = json.loads((folder / "results.json").read_text())
    found["results"][0]["growth"] = {"pattern": pattern, "points": points, "orders": [{"name": "quadratic"}]}
    (folder / "results.json").write_text(json.dumps(found))
    told = perun("guard", "add", "--from-fuzz", "results")
    assert (
        "./prog perun-guard/slow-words-{n}.txt\n  instructions grow at most n^2.1 for n 56..896" in told.out
    )
    assert (project.path / "perun-guard/slow-words-56.txt").read_text() == f"<{'ab' * 56}>"
    perun("guard", "check", "{n}")
    perun("guard", "add", "--from-fuzz", "results", code=2, err="has contracts of ./prog")
    perun("guard", "add", "./prog 3", "--from-fuzz", "results", code=2, err="give a COMMAND")
    perun("guard", "add", code=2, err="give a COMMAND")
