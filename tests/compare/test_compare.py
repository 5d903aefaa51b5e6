"""`perun compare` in real repositories: the sides, what is stored, and what is left behind."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perun.core.errors import JobFailed, NotTrusted, PluginError, UsageError, VersionControlError
from perun.history.check.report import Comparison
from perun.profile import session
from perun.profile.changes import PerformanceChange
from perun.running.compare.plan import copy_changes
from perun.running.run import builds
from perun.vcs.git import Git
from perun.vcs.svs import PLUGIN as Svs
from perun.vcs.tagit import PLUGIN as Tagit
from shared import conftest_of, two_cores

COUNTED = {"metrics": ("counter",), "always": True}


def labels(found: Comparison) -> list[PerformanceChange]:
    return [change.result for result in found.results for change in result.changes]


def test_two_versions(project: Any) -> None:
    found = project.only("HEAD~1", "HEAD", **COUNTED)
    (change,) = found.results[0].changes
    assert change.result is PerformanceChange.Degradation
    assert (change.location, change.rate_degradation) == ("sh run.sh", pytest.approx(1.1))
    assert (change.from_baseline, change.to_target) == ("1000", "1100")
    assert found.baseline_version.checksum == project.git.git("rev-parse", "HEAD~1")
    # Warmed up once each, then three pairs with the base twice; on a busy machine up to three are repeated.
    runs = Counter(project.record.read_text().split())
    assert 4 <= runs["1100"] <= 7 and runs == {"1000": 2 * runs["1100"] - 1, "1100": runs["1100"]}
    assert project.leftovers == []


def test_what_was_measured_is_stored_as_pairs(project: Any) -> None:
    project.only("HEAD~1", "HEAD", **COUNTED)
    base, head = project.registered("HEAD~1"), project.registered("HEAD")
    assert (len(base), len(head), project.pending) == (3, 3, [])
    assert all(session.are_pairs(old, new) for old, new in zip(base, head, strict=True))
    # In the order of measuring, whatever their names are.
    times = [sorted(entry.time for entry in project.entries(one)) for one in ("HEAD~1", "HEAD")]
    assert times[0] == times[1] == list(range(times[0][0], times[0][0] + 3))
    assert {session.session_of(one)[1] for one in base} == {"base"}
    assert {session.session_of(one)[1] for one in head} == {"head"}


def test_the_default_is_the_merge_base_and_the_working_directory(project: Any) -> None:
    git = project.git
    git.git("checkout", "--quiet", "-b", "topic", "HEAD~1")
    git.commit("On the branch", {"other": "x"})
    git.write({"cost": "2000\n", "new/file": "new"})
    git.git("rm", "--quiet", "n")
    before = git.git("status", "--porcelain")
    found = project.only(**COUNTED)
    assert found.baseline_version.checksum == git.git("rev-parse", "main~1")
    assert labels(found) == [PerformanceChange.SevereDegradation]
    assert git.git("status", "--porcelain") == before
    assert set(project.record.read_text().split()) == {"1000", "2000"}
    # The base is a version, what is uncommitted is none.
    assert len(project.registered("main~1")) == 3
    assert project.registered("HEAD") == []
    assert {one["header"]["session"]["uncommitted"] for one in project.pending} == {True}
    assert {one["header"]["session"]["uncommitted"] for one in project.registered("main~1")} == {False}
    assert any("pending, not registered" in note for note in found.notes)


def test_a_pending_profile_of_uncommitted_changes_is_none_of_the_version(project: Any) -> None:
    project.git.write({"cost": "1200\n"})
    project.only("HEAD~1", **COUNTED)
    assert len(project.pending) == 3
    done = project.perun("run", "matrix", "--missing", "--dry-run")
    assert "1 job in 1 version" in done.out, done


def test_the_copy_has_all_that_is_uncommitted(project: Any) -> None:
    """Changed, staged, deleted, new, replaced by a folder, replaced by a link, and ignored files."""
    git = project.git
    git.commit("Files", {"a": "1", "b": "1", "c": "1", "d": "1", "e": "1", ".gitignore": "*.o\n", "x.sh": ""})
    (git.path / "a").write_text("2")
    (git.path / "b").write_text("2")
    git.git("add", "b")
    (git.path / "c").unlink()
    (git.path / "d").unlink()
    git.write({"d/inside": "new", "f.o": "ignored", "sp ace/ü": "new"})
    (git.path / "e").unlink()
    (git.path / "e").symlink_to("a")
    (git.path / "x.sh").chmod(0o755)
    shown = "for f in a b c d/inside e f.o 'sp ace/ü'; do cat \"$f\"; echo; done >>$RECORD 2>&1\n"
    git.write({"run.sh": shown + "test -x x.sh && test -L e && echo fine >>$RECORD\n"})
    found = project.only("HEAD", cmd="sh run.sh", most_pairs=1, budget=60.0)
    assert labels(found) == [PerformanceChange.Unknown] * 2
    lines = project.record.read_text().splitlines()
    cannot = "cat: {}: No such file or directory"
    assert lines[:9] == ["2", "2", cannot.format("c"), "", "new", "2", cannot.format("f.o"), "", "new"]
    assert "fine" in lines


def test_the_noise_is_that_of_another_copy(project: Any) -> None:
    """Two copies of one program may differ: a copy never does from itself. All paths are of one length."""
    project.git.commit("Say where", {"run.sh": "pwd >>$RECORD\n", "cost": "1200\n"})
    project.git.commit("Change", {"cost": "1300\n"})
    project.only("HEAD~1", "HEAD", cmd="sh run.sh", most_pairs=1)
    folders = {Path(line) for line in project.record.read_text().splitlines()}
    assert len(folders) == 3 and len({len(str(one)) for one in folders}) == 1
    assert project.leftovers == []


def test_each_side_is_built(project: Any) -> None:
    project.configure(
        "cmds: [sh built.sh]\ncollectors: [{name: counter}]\n"
        "execute: {pre_run: [cp run.sh built.sh, sh -c 'echo build >>$RECORD']}\n"
    )
    found = project.only("HEAD~1", "HEAD", builds=2, **COUNTED)
    assert labels(found) == [PerformanceChange.Degradation]
    assert project.record.read_text().split().count("build") == 4
    assert sum("are the same program, so that --builds 2" in note for note in found.notes) == 2
    assert project.leftovers == []


def test_a_version_is_built_for_several_comparisons_once(project: Any) -> None:
    project.configure(
        "cmds: [sh built.sh]\ncollectors: [{name: counter}]\n"
        "execute: {pre_run: [cp run.sh built.sh, sh -c 'echo build >>$RECORD']}\n"
    )

    def compare(*versions: str) -> int:
        assert "Degradation" in labels(project.only(*versions, **COUNTED))[0].name
        return project.record.read_text().split().count("build")

    assert [compare("HEAD~1", "HEAD") for _ in range(2)] == [2, 2]
    project.git.write({"cost": "2000\n"})
    assert [compare("HEAD") for _ in range(2)] == [3, 4]  # what is not committed is built each time
    project.git.commit("Cost more", {"cost": "2000\n"})
    assert compare("HEAD~1", "HEAD") == 5
    assert labels(project.only("HEAD", "HEAD", **COUNTED)) == [PerformanceChange.NoChange]
    assert project.record.read_text().split().count("build") == 6  # to see the noise, each side is a build
    assert project.leftovers == []


def test_clocks_are_stored_as_a_time_profile(project: Any) -> None:
    found = project.only(
        "HEAD~1", "HEAD", cmd="sh run.sh", args="a", metrics=("wall", "cpu", "peak-memory"), most_pairs=2
    )
    assert [change.location for change in found.results[0].changes] == [
        "sh run.sh [real]", "sh run.sh [cpu]", "sh run.sh [peak]",
    ]  # fmt: skip
    assert labels(found) == [PerformanceChange.Unknown] * 3  # two pairs say nothing
    sides = project.registered("HEAD~1"), project.registered("HEAD")
    (base, peaks_of_base), (head, peaks) = (sorted(side, key=_collector, reverse=True) for side in sides)
    assert session.are_pairs(base, head)
    assert session.are_pairs(peaks_of_base, peaks)
    assert head["header"]["cmd"] == "sh run.sh"
    assert head["header"]["args"] == "a"
    assert (head["collector_info"]["name"], head["collector_info"]["params"]["repeat"]) == ("time", 2)
    assert head["machine"]["speed"] == base["machine"]["speed"]
    assert len(head["machine"]["speed"]["processor"]) == len(head["machine"]["speed"]["wall"]) >= 1
    assert head["header"]["session"]["pairs"] == 2
    for tag in ("0@i", "1@i"):
        done = project.perun("show", tag, "tableof", "resources", "-h", "subtype", "-h", "amount")
        assert done.code == 0, done
    amounts = [resource["amount"] for _, resource in peaks_of(project, "HEAD").all_resources()]
    assert len(amounts) == 2
    assert all(100_000 < amount < 60_000_000 for amount in amounts)  # not that of Perun, with its libraries


def _collector(profile: Any) -> str:
    return str(profile["collector_info"]["name"])


def peaks_of(project: Any, version: str) -> Any:
    objects = project.repository.store.objects
    found = [objects.get(entry.checksum) for entry in project.entries(version)]
    return next(one for one in found if _collector(one) == "peak-memory")


def test_generated_workloads_are_configurations_of_their_own(project: Any) -> None:
    project.configure(
        "cmds: [sh run.sh]\nworkloads: [sizes]\ncollectors: [{name: counter}]\n"
        "generators: {workload: [{id: sizes, type: integer, min_range: 10, max_range: 20, step: 10}]}\n"
    )
    found = project.compare("HEAD~1", "HEAD", **COUNTED).report.comparisons
    assert [one.target.head.workload for one in found] == ["10", "20"]


def test_the_same_files_are_not_measured(project: Any) -> None:
    found = project.only("HEAD", "HEAD", metrics=("counter",))
    assert found.reason.startswith("all files are the same on both sides; ")
    assert found.error is None
    assert not project.record.exists()
    assert labels(project.only("HEAD", "HEAD", **COUNTED)) == [PerformanceChange.NoChange]


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_a_program_that_is_built_twice_is_the_same_program(project: Any) -> None:
    source = "int main(int n, char **v) { return n > 5; } /* %s */\n"
    project.git.commit("C", {"p.c": source % "one", ".gitignore": "p\n"})
    project.git.commit("A comment", {"p.c": source % "two"})
    project.configure("cmds: [./p]\ncollectors: [{name: counter}]\nexecute: {pre_run: [cc -g -o p p.c]}\n")
    found = project.only("HEAD~1", "HEAD", metrics=("counter",))
    assert found.reason.startswith("the compiled program is the same on both sides, and opens no file that")
    assert found.same
    project.git.commit("More work", {"p.c": source.replace("n > 5", "n > 6") % "two"})
    assert labels(project.only("HEAD~1", "HEAD", metrics=("counter",))) == [PerformanceChange.NoChange]
    # The same program on another input is another thing to measure.
    project.git.commit("Input", {"input": "1"})
    project.git.commit("Another input", {"input": "2"})
    assert project.only("HEAD~1", "HEAD", cmd="./p", workload="< input", most_pairs=1).reason == ""
    assert project.only("HEAD~1", "HEAD", cmd="./p", most_pairs=1).reason
    # What exists on one side only can be seen without being opened.
    project.git.commit("One more", {"more": "1"})
    assert project.only("HEAD~1", "HEAD", cmd="./p", most_pairs=1).reason == ""


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_a_program_that_reads_what_its_command_does_not_name(project: Any) -> None:
    source = (
        "#include <stdio.h>\n#include <unistd.h>\n"
        "int main(int n, char **v) {\n"
        '  return n > 1 ? execlp("cat", "cat", "data.txt", NULL) : !fopen("%s", "r");\n}\n'
    )
    project.configure("cmds: [./p]\ncollectors: [{name: counter}]\nexecute: {pre_run: [cc -o p p.c]}\n")
    project.git.commit("C", {"p.c": source % "data.txt", ".gitignore": "p\n", "data.txt": "1", "note": "1"})
    project.git.commit("Another note", {"note": "2"})
    assert project.only("HEAD~1", "HEAD", metrics=("counter",)).same
    project.git.commit("Other data", {"data.txt": "2"})
    assert project.only("HEAD~1", "HEAD", metrics=("counter",)).reason == ""
    assert project.only("HEAD~2", "HEAD~1", cmd="./p", args="x", most_pairs=1).same
    # A child of the program reads it; and of one that fails nothing is known.
    assert project.only("HEAD~1", "HEAD", cmd="./p", args="x", most_pairs=1).reason == ""
    project.git.commit("Gone", {"p.c": source % "none"})
    project.git.commit("Yet another note", {"note": "3"})
    assert "exited with status 1" in project.only("HEAD~1", "HEAD", metrics=("wall",)).reason


# -- what goes wrong -----------------------------------------------------------------------------------------


def nothing_is_left(project: Any) -> bool:
    stored = [project.registered(version) for version in ("HEAD", "HEAD~1", "HEAD~2")]
    return not any(stored) and project.pending == [] and project.leftovers == []


def test_an_untrusted_repository(project: Any) -> None:
    """Not even the filters of git run, which looking for uncommitted changes would do."""
    project.git.write({".gitattributes": "cost filter=stranger\n", "cost": "9\n"})
    project.git.git("config", "filter.stranger.clean", f"touch {project.path}/ran; cat")
    project.environ = {**project.environ, "PERUN_CONFIG_DIR": str(project.path / "of-nobody")}
    with pytest.raises(NotTrusted, match="comparing versions"):
        project.compare(cmd="true")
    assert not (project.path / "ran").exists()


def test_an_unknown_revision(project: Any) -> None:
    with pytest.raises(VersionControlError, match="no-such"):
        project.compare("no-such")
    with pytest.raises(VersionControlError, match="no-such"):
        project.compare("HEAD", "no-such")


def test_a_build_that_fails_names_its_side(project: Any) -> None:
    project.configure(
        "cmds: [sh run.sh]\ncollectors: [{name: counter}]\nexecute: {pre_run: ['grep 1000 cost']}\n"
    )
    with pytest.raises(JobFailed, match=r"^head \(\w{10}\) cannot be prepared: execute.pre_run: 'grep"):
        project.compare("HEAD~1", "HEAD", **COUNTED)
    assert nothing_is_left(project)


def test_a_command_that_fails_names_its_side(project: Any) -> None:
    project.git.write({"run.sh": "echo broken >&2; exit 3\n"})
    found = project.only("HEAD", most_pairs=1)
    assert isinstance(found.error, JobFailed)
    assert found.reason.startswith("head (")
    assert "with uncommitted changes): the command 'sh run.sh' exited with status 3" in found.reason
    assert "broken" in found.reason
    assert nothing_is_left(project)


def test_a_metric_that_nobody_gives(project: Any) -> None:
    with pytest.raises(UsageError, match="--metric steps: it is none of wall, cpu"):
        project.compare("HEAD~1", "HEAD", cmd="sh run.sh", metrics=("steps",))
    found = project.only("HEAD~1", "HEAD", metrics=("steps",))
    assert isinstance(found.error, PluginError)
    assert "no collector gives it for sh run.sh, but sh run.sh" in found.reason or "main" in found.reason
    assert nothing_is_left(project)


def test_a_budget_for_less_than_one_pair(project: Any) -> None:
    found = project.only("HEAD~1", "HEAD", cmd="sleep 5", budget=0.05, always=True)
    (change,) = found.results[0].changes
    assert change.result is PerformanceChange.Unknown
    assert "no pair of 3 runs fits into the budget of 50 ms: give it more time with --budget" in change.rule
    assert nothing_is_left(project)


def test_there_is_nothing_to_compare(project: Any, git_repository: Callable[..., Any]) -> None:
    project.git.git("checkout", "--quiet", "--orphan", "lonely")
    project.git.commit("Alone")
    with pytest.raises(VersionControlError, match="no common ancestor"):
        project.compare()
    project.git.git("branch", "--quiet", "--delete", "--force", "main")
    with pytest.raises(VersionControlError, match="the main branch is none of"):
        project.compare()


def test_the_main_branch_is_configured(project: Any) -> None:
    project.git.git("branch", "--move", "main", "trunk")
    (project.path / ".perun/local.yml").write_text(
        "vcs: {type: git, url: .., main_branch: trunk}\ncmds: [sh run.sh]\ncollectors: [{name: counter}]\n"
    )
    project.trust()
    project.git.write({"cost": "1200\n"})
    assert labels(project.only(**COUNTED)) == [PerformanceChange.Degradation]


# -- the command ---------------------------------------------------------------------------------------------


def test_answers_and_exit_codes(project: Any) -> None:
    base = ["compare", "HEAD~1", "HEAD", "--metric", "counter"]
    done = project.perun(*base, "--fail-on", "degradation")
    assert done.code == 1, done
    assert "\n|   Degradation  " in done.out
    assert "  note: 3 pairs in" in done.out
    done = project.perun(*base, "--json", "--threshold", "20%", "--fail-on", "inconclusive")
    assert done.code == 0, done
    (found,) = json.loads(done.out)["comparisons"]
    assert found["changes"][0]["result"] == "NoChange"
    assert found["session"]["pairs"] == 3
    undecided = ["compare", "HEAD~1", "-c", "sh run.sh", "--max-pairs", "1", "--fail-on", "inconclusive"]
    assert project.perun(*undecided).code == 12
    failing = project.perun("compare", "HEAD~1", "-c", "false", "--format", "junit")
    assert failing.code == 8
    assert "<error" in failing.out
    assert project.leftovers == []


@pytest.mark.parametrize(("options", "message"), [
    (["--threshold", "much"], "--threshold: 'much' is no share"),
    (["--confidence", "100%"], "--confidence: '100%' is no share"),
    (["-w", "input"], "--args and --workload belong to a command"),
    (["--budget", "0"], "0 is no time"),
    (["-c", "'"], "cannot be split"),
])  # fmt: skip
def test_wrong_usage(project: Any, options: list[str], message: str) -> None:
    done = project.perun("compare", "HEAD~1", *options)
    assert done.code == 2
    assert message in done.err


@pytest.mark.parametrize("options", [(), pytest.param(("--duet",), marks=two_cores)])
def test_what_measures_says_the_same_as_what_reads_its_rounds(project: Any, options: tuple[str, ...]) -> None:
    """`compare` and `bench` store what they measured; `check` and `log` tell the same of it."""
    git = project.git
    project.configure("degradation: {strategies: [{method: hodges_lehmann_ratio}]}\n")
    compared = json.loads(
        project.perun(
            "-v",
            "compare",
            "HEAD~1",
            "HEAD",
            "-c",
            "sh run.sh",
            "--always",
            "--max-pairs",
            "10",
            "--json",
            *options,
        ).out
    )
    git.git("checkout", "--quiet", "HEAD~1")
    project.perun("bench", "sh run.sh 1", "-r", "3")
    git.git("checkout", "--quiet", "main")
    (bench,) = json.loads(project.perun("bench", "sh run.sh 1", "-r", "3", "--json").out)["benchmarks"]
    checked = json.loads(project.perun("-v", "check", "head", "--json").out)["comparisons"]
    (newest,) = json.loads(project.perun("log", "-n", "1", "--json").out)["versions"]
    said = ("ratio", "ratio_low", "ratio_high", "verdict")
    numbers = {
        " ".join(filter(None, (one["cmd"], one["args"]))): [one["difference"][name] for name in said]
        for one in newest["values"]
        if one["collector"] == "time"
    }
    registered = json.loads(project.perun("status", "--json").out)["registered"]
    own = [one["difference"] for one in registered if one["collector"] == "time"]
    of_status = [[one[name] for name in said] for one in own]
    assert sorted(of_status) == sorted(numbers.values())
    assert [bench["difference"][name] for name in said] == numbers["sh run.sh 1"]
    (measured,) = compared["comparisons"]
    (again,) = (one for one in checked if one["session"] is None and one["cmd"] == measured["cmd"])
    of_check = {
        one["location"]: [one[name] for name in said]
        for one in again["changes"]
        if one["method"] == "hodges_lehmann_ratio"
    }
    of_compare = {one["location"]: [one[name] for name in said] for one in measured["changes"]}
    shared = {name: of_check[name] for name in of_compare if name in of_check}
    assert len(shared) > 1 and shared == {name: of_compare[name] for name in shared}
    assert numbers["sh run.sh"] in of_compare.values()


def started(project: Any, runs: int, *options: str) -> subprocess.Popen[str]:
    """A comparison that has measured so many runs, and would go on for very long."""
    project.git.commit("Slow", {"run.sh": "echo run >>$RECORD\n"})
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "perun", "compare", "HEAD~1", "-c", "sh run.sh", "--always",
         "--max-pairs", "1000000", "--budget", "1000000", "--threshold", "0.0001%", *options],
        cwd=project.path, env=dict(project.environ), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not project.record.exists() or project.record.read_text().count("run") < runs:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    return process


@pytest.mark.parametrize("options", [(), pytest.param(("--duet",), marks=two_cores)])
def test_an_interruption_prints_the_verdict_so_far(project: Any, options: tuple[str, ...]) -> None:
    process = started(project, 6, *options)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "  Unknown  " in out
    assert "interrupted: this is the verdict so far" in err
    assert nothing_is_left(project)


def test_what_a_killed_comparison_leaves_is_removed(project: Any) -> None:
    process = started(project, 3)
    process.kill()
    process.communicate(timeout=60)
    assert project.leftovers and len(builds.unfinished(project.repository)) == 1  # the copy for the noise
    assert labels(project.only("HEAD~2", "HEAD~1", **COUNTED)) == [PerformanceChange.Degradation]
    assert project.leftovers == [] and builds.unfinished(project.repository) == []
    assert os.listdir(Path(project.path, ".perun/jobs")) in ([], [".index"])


# -- what is asked of version control ------------------------------------------------------------------------


def test_merge_base(git_repository: Callable[..., Any]) -> None:
    git = git_repository(commits=2)
    vcs = Git(git.path, os.environ)
    fork = git.head
    git.git("checkout", "--quiet", "-b", "topic")
    topic = git.commit("On the branch")
    git.git("checkout", "--quiet", "main")
    main = git.commit("On main")
    assert vcs.merge_base(main, topic) == vcs.merge_base(topic, main) == fork
    assert vcs.merge_base(main, fork) == fork
    # What any system does that has no command for it.
    assert super(Git.__mro__[1], vcs).merge_base(main, topic) == fork
    git.git("checkout", "--quiet", "--orphan", "alone")
    alone = git.commit("Alone")
    assert vcs.merge_base(main, alone) is None
    assert super(Git.__mro__[1], vcs).merge_base(main, alone) is None


def test_changed_files_below_and_above_the_folder(git_repository: Callable[..., Any]) -> None:
    git = git_repository(commits=1)
    git.commit("Files", {"sub/a": "1", "top": "1", "gone": "1", "link": "1", ".gitignore": "*.o\n"})
    assert Git(git.path, os.environ).changed_files() == []
    git.write({"sub/a": "2", "top": "2", "sub/new file": "", "sub/x.o": "", "ünicode": ""})
    git.git("rm", "--quiet", "gone")
    (git.path / "link").unlink()
    git.write({"link/inside": "a folder now"})
    found = Git(git.path, os.environ).changed_files()
    assert sorted(found) == sorted(["sub/a", "top", "sub/new file", "ünicode", "gone", "link", "link/inside"])
    below = Git(git.path / "sub", os.environ).changed_files()
    assert {"a", "new file", "../top", "../gone"} <= set(below)


def test_changed_files_of_other_systems(tmp_path: Path) -> None:
    folder = tmp_path / "tagged"
    folder.mkdir()
    tagit = Tagit(folder, os.environ)
    tagit.init({})
    (folder / "a").write_text("1")
    (folder / ".tagitignore").write_text("*.o\n")
    tagit.snapshot("one")
    assert tagit.changed_files() == []
    (folder / "a").write_text("22")
    (folder / "b").write_text("new")
    (folder / "x.o").write_text("ignored")
    assert sorted(tagit.changed_files()) == ["a", "b"]
    assert Svs(tmp_path, os.environ).changed_files() == []


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_is_copied_stays_in_the_copy(tmp_path: Path, kind: str) -> None:
    """Where the version has a link to a folder elsewhere, nothing is written through it."""
    source, copy, outside = (tmp_path / name for name in ("source", "copy", "outside"))
    for folder in (source / "sub", copy, outside):
        folder.mkdir(parents=True)
    (source / "sub/file").write_text("new")
    if kind == "link":
        (copy / "sub").symlink_to(outside)
    else:
        (copy / "sub").write_text("a file")
    copy_changes(source, ["sub/file", "never/was"], copy)
    assert (copy / "sub/file").read_text() == "new"
    assert list(outside.iterdir()) == []


TIMER = (
    conftest_of("compare")
    .COLLECTOR.replace("Counter", "Timer")
    .replace('"counter"', '"timer"')
    .replace("instructions", "time")
    .replace(
        'amount = int((run.cwd / "cost").read_text())',
        'import random\n        cost, noise, other = map(float, (run.cwd / "cost").read_text().split())\n'
        "        scale = noise * (5 if random.random() < other else 1)\n"
        "        amount = cost * math.exp(random.gauss(0, scale))",
    )
)


@pytest.mark.parametrize(
    "seeds",
    [range(5, 7), *(pytest.param(range(at, at + 10), marks=pytest.mark.slow) for at in range(0, 100, 10))],
    ids=lambda seeds: f"{seeds.start}-{seeds.stop}",
)
def test_a_stored_session_is_told_alike(project: Any, seeds: range) -> None:
    """`compare` and `check diff` say the same word of what was measured, whatever ended the session."""
    (project.path / ".perun/plugins/collect/timer.py").write_text("import math\n" + TIMER)
    others = "{method: average_amount_threshold, instead_of: hodges_lehmann_ratio}"
    rules = f"degradation: {{strategies: [{{method: hodges_lehmann_ratio}}, {others}]}}\n"
    project.configure(f"cmds: [sh run.sh]\ncollectors: [{{name: timer}}]\n{rules}")
    for seed in seeds:
        rng = random.Random(seed)
        random.seed(seed)  # of the collector
        slower = rng.choice((0, 0, 0.01, 0.03, 0.05, 0.1, -0.1, 1.0))
        noise, outliers = rng.choice((0.002, 0.01, 0.03, 0.1)), rng.choice((0, 0.1))
        for cost in (100, 100 * (1 + slower)):
            project.git.commit("Cost", {"cost": f"{cost} {noise} {outliers}\n"})
        pairs = rng.choice((2, 3, 5, 10, 30, 60))
        found = project.only("HEAD~1", "HEAD", metrics=("timer",), always=True, most_pairs=pairs)
        answer = json.loads(project.perun("check", "diff", "HEAD~1", "HEAD", "--json").out)
        (change,), (compared,) = found.results[0].changes, answer["comparisons"]
        said = compared["changes"]
        if change.result is PerformanceChange.NoChange:
            assert said == []
        else:
            assert [one["result"] for one in said] == [change.result.name]
            assert said[0]["interval"] == (change.interval and pytest.approx(change.interval))
