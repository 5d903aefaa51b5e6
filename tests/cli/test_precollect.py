"""Collecting what is missing before a check: `check -c`, `degradation.collect_before_check`."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MATRIX = """\
vcs: {type: git, url: ..}
cmds: [sh run.sh]
workloads: [a, b]
collectors: [{name: time, params: {warmup: 0, repeat: 1}}]
"""


@pytest.fixture
def record(project: Any, record: Path) -> Path:
    """What the measured program has noted: its version and workload, a line for each run."""
    record.touch()
    for number in (4, 5, 6):
        project.commit(f"Version {number}", {"run.sh": f"echo {number} $1 >>$RECORD\n"})
    return record


@pytest.fixture
def configure(project: Any) -> Callable[[str], None]:
    def write(text: str = "") -> None:
        (project.path / ".perun/local.yml").write_text(MATRIX + text)

    return write


def logs(project: Any) -> dict[str, str]:
    return {path.name: path.read_text() for path in (project.path / ".perun/logs").glob("*-precollect.log")}


def test_nothing_is_collected_by_default(perun, record, configure) -> None:
    configure()
    assert perun("check", "head").lines[-1] == "nothing compared: no profile is registered"
    assert record.read_text() == ""


@pytest.mark.parametrize("way", ["before", "behind", "configured"])
def test_head_and_its_parents(perun, project, record, configure, way) -> None:
    configure("degradation: {collect_before_check: yes}\n" if way == "configured" else "")
    arguments = {
        "before": ["check", "--compute-missing", "head"],
        "behind": ["check", "head", "-c"],
        "configured": ["check", "head"],
    }[way]
    outcome = perun(*arguments)
    why = "degradation.collect_before_check is true" if way == "configured" else "--compute-missing"
    told = f"note: 2 versions lack 4 profiles of the job matrix: collecting before the check ({why})\n"
    assert outcome.err == told
    assert record.read_text() == "6 a\n6 b\n5 a\n5 b\n"
    assert "\n2 pairs of profiles compared: " in outcome.out
    assert logs(project) == {}
    versions = perun("log", "--json").json["versions"]
    assert [sum(version["profiles"].values()) for version in versions] == [2, 2, 0, 0, 0, 0]
    assert perun("status", "--json").json["pending"] == []
    # All is there now.
    assert perun(*arguments).err == ""
    assert record.read_text() == "6 a\n6 b\n5 a\n5 b\n"


def test_only_what_is_missing(perun, project, record, configure) -> None:
    configure("profiles: {register_after_run: true}\n")
    perun("run", "job", "-c", "time", "-cp", "time", "{warmup: 0, repeat: 1}", "-b", "sh run.sh", "-w", "b")
    record.write_text("")
    perun("check", "-c", "head")
    assert record.read_text() == "6 a\n5 a\n5 b\n"


def test_the_whole_history_with_a_log(perun, project, record, configure) -> None:
    """A version that cannot be measured is told of, and does not end the check."""
    configure("degradation: {collect_before_check: true, log_collect: true}\n")
    checksums = project.git("rev-list", "HEAD").split()
    outcome = perun("check", "all", code=8)
    assert record.read_text() == "6 a\n6 b\n5 a\n5 b\n4 a\n4 b\n"
    assert "\n4 pairs of profiles compared: " in outcome.out
    for checksum in checksums[3:]:
        place = outcome.lines.index(f"* {checksum[:6]}: " + project.git("log", "-1", "--format=%s", checksum))
        assert (
            "not all profiles could be collected: the command 'sh run.sh a' exited with status"
            in (outcome.lines[place + 1])
        )
    kept = logs(project)
    assert sorted(kept) == sorted(f"{checksum}-precollect.log" for checksum in checksums)
    newest = kept[f"{checksums[0]}-precollect.log"].splitlines()
    assert newest[0] == f"version {checksums[0]} measured in {project.path}"
    assert newest[1].startswith("done    sh run.sh a: time-sh_run.sh-[_]-[a]-")
    assert len(newest) == 3
    oldest = kept[f"{checksums[-1]}-precollect.log"]
    assert "failed  sh run.sh a: the command 'sh run.sh a' exited with status" in oldest
    assert project.git("worktree", "list").count("\n") == 0


def test_a_version_that_cannot_be_built(perun, project, record, configure) -> None:
    configure("execute: {pre_run: [grep -q 6 run.sh]}\ndegradation: {log_collect: true}\n")
    outcome = perun("check", "-c", "head", code=8)
    before = project.git("rev-parse", "HEAD~1")
    assert outcome.lines[1] == (
        f"| not all profiles could be collected: {before[:6]}: "
        "execute.pre_run: 'grep -q 6 run.sh' ended with status 1"
    )
    assert outcome.lines[-1] == "nothing compared: no ancestor has a profile of the same configuration (2x)"
    assert logs(project)[f"{before}-precollect.log"] == (
        f"skipped {before}: execute.pre_run: 'grep -q 6 run.sh' ended with status 1\n"
    )
    assert perun("check", "-c", "head", "HEAD~1", code=8).lines == [
        f"* {before[:6]}: Version 5",
        "| not all profiles could be collected: execute.pre_run: 'grep -q 6 run.sh' ended with status 1",
        "nothing compared: no profile is registered",
    ]
    outcome = perun("check", "-c", "head", "HEAD~1", "--json", check=False)
    assert outcome.json["comparisons"] == []
    assert f"\nerror: {before[:10]}: not all profiles could be collected: execute.pre_run" in outcome.err
    # Where both cannot be built, what is told of the version is why it cannot itself.
    configure("execute: {pre_run: [grep -q 7 run.sh]}\n")
    outcome = perun("check", "-c", "head", "HEAD~1", check=False)
    (told,) = [line for line in outcome.lines if "not all profiles" in line]
    why = "execute.pre_run: 'grep -q 7 run.sh' ended with status 1"
    assert told.endswith(f"not all profiles could be collected: {why}")


def test_the_note_comes_first_and_progress_follows(perun, record, configure) -> None:
    configure("degradation: {collect_before_check: yes}\n")
    lines = perun("-v", "check", "head").err.splitlines()
    assert lines[0].startswith("note: 2 versions lack 4 profiles")
    assert [line for line in lines if re.fullmatch("checking 1/4 collecting [0-9a-f]+ sh run.sh b", line)]


def test_without_a_matrix(perun: Callable[..., Any], project: Any) -> None:
    perun("check", "-c", "head", code=5, err="the job matrix is empty")


def test_uncommitted_changes_stay(perun, project, record, configure) -> None:
    configure()
    project.write({"run.sh": "echo edited >>$RECORD\n"})
    assert perun("check", "-c", "all", "HEAD~1", check=False).code == 8  # the oldest have nothing to run
    perun("check", "-c", "head")
    assert "edited" not in record.read_text()
    assert project.git("status", "--short") == " M run.sh"
