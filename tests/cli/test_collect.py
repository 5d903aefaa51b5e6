"""`perun collect`: one command measured by one collector, with every option of the manual's 3.3.1."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perun.measurement.present import NAMES

RECORDER = """\
#!/bin/sh
# Notes where it runs, with what arguments, and what it reads.
{ echo "in $PWD"; for one in "$@"; do echo "arg $one"; done; sed 's/^/read /'; } >>"$RECORD"
"""
C_PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) {
    volatile long sum = 0;
    for (long i = 0; i < (count > 1 ? atol(words[1]) : 1000); i++) sum += i;
    return sum < 0;
}
"""
QUICK = ("time", "--warmup", "0", "--repeat", "1")


@pytest.fixture
def record(project: Any, record: Path) -> Path:
    """What `./recorder` of the project has noted, in a file outside of it."""
    project.write({"recorder": RECORDER})
    (project.path / "recorder").chmod(0o755)
    project.commit("Add the recorder")
    return record


def pending(project: Any) -> list[Path]:
    return sorted((project.path / ".perun/jobs").glob("*.perf"))


def profiles(project: Any) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in pending(project)]


def test_a_program_built_by_make(perun: Callable[..., Any], project: Any) -> None:
    project.commit("Program", {"program.c": C_PROGRAM, "Makefile": "program: program.c\n\tcc -O0 -o $@ $<\n"})
    perun("config", "set", "execute.pre_run", "[make]")
    outcome = perun("collect", "-c", "./program", "-w", "1000", "time", "-w", "1", "-r", "3")
    stored, value = outcome.lines
    assert re.fullmatch(r"stored time-program-\[_\]-\[1000\]-[\d-]+\.perf \(measured in [\d.]+ m?s\)", stored)
    assert re.fullmatch(r"  (?:real|cpu) time  [\d.]+ [mµ]?s ± (?:[\d.]+|>100 %) \(n = 3\)", value)
    assert outcome.err == ""
    (profile,) = profiles(project)
    assert profile["header"] == {
        "type": "time", "units": {"time": "s"}, "cmd": "./program", "args": "", "workload": "1000"
    }  # fmt: skip
    assert profile["collector_info"]["name"] == "time"
    assert (
        profile["collector_info"]["params"] | {"warmup": 1, "repeat": 3}
        == profile["collector_info"]["params"]
    )
    assert profile["postprocessors"] == []
    assert profile["origin"] == project.head
    assert profile["machine"]["architecture"] == os.uname().machine
    assert {len(columns["amount"]) for columns in profile["resources"].values()} == {3}
    assert all(amount >= 0 for columns in profile["resources"].values() for amount in columns["amount"])
    status = perun("status", "--json").json
    assert [one["name"] for one in status["pending"]] == [pending(project)[0].name]
    assert status["registered"] == []
    perun("add", "0@p")
    assert pending(project) == []


@pytest.mark.parametrize(("options", "noted", "parts"), [
    ([], [], ("", "")),
    (["-a", "-x --long 'a b'"], ["arg -x", "arg --long", "arg a b"], ("-x --long 'a b'", "")),
    (["-w", "file.txt"], ["arg file.txt"], ("", "file.txt")),
    (["--args", "-q", "--workload", "1 2"], ["arg -q", "arg 1", "arg 2"], ("-q", "1 2")),
    (["-w", "< file.txt"], ["read 3"], ("", "< file.txt")),
    (["-a", "-i", "-w", "<< 'two  words'"], ["arg -i", "read two  words"], ("-i", "<< 'two  words'")),
    (["-w", '<< "Hello world"'], ["read Hello world"], ("", '<< "Hello world"')),
    (["-w", "$HOME; echo *"], ["arg $HOME;", "arg echo", "arg *"], ("", "$HOME; echo *")),
])  # fmt: skip
def test_arguments_and_workloads(perun, project, record, options, noted, parts) -> None:
    perun("collect", "-c", "./recorder", *options, *QUICK)
    assert record.read_text().splitlines() == [f"in {project.path}", *noted]
    (profile,) = profiles(project)
    assert (profile["header"]["args"], profile["header"]["workload"]) == parts


def test_every_command_with_every_workload(perun: Callable[..., Any], project: Any) -> None:
    outcome = perun("collect", "-c", "true", "-c", "env true", "-w", "a", "-w", "b", "-a", "-i", *QUICK)
    first = [line.split()[0] for line in outcome.lines]
    assert first[::2] == ["stored"] * 4 and len(first) == 8
    assert set(first[1::2]) <= {"real", "cpu"}  # the processor limits how long it takes, or not
    found = {
        (one["header"]["cmd"], one["header"]["args"], one["header"]["workload"]) for one in profiles(project)
    }
    assert found == {(cmd, "-i", workload) for cmd in ("true", "env true") for workload in "ab"}


def test_params_of_the_collector(perun: Callable[..., Any], project: Any) -> None:
    (project.path / "time.yml").write_text("warmup: 0\nrepeat: 7\n")
    (project.path / "list.yml").write_text("- warmup: 0\n- repeat: 6\n")

    def params(*options: str) -> tuple[int, int]:
        perun("collect", "-c", "true", *options, "-pn", "one.perf", *options[len(options) :], "time")
        (profile,) = profiles(project)
        pending(project)[0].unlink()
        return profile["collector_info"]["params"]["warmup"], profile["collector_info"]["params"]["repeat"]

    assert params("-p", "time.yml") == (0, 7)
    assert params("-p", "list.yml") == (0, 6)
    assert params("--params", "time.yml", "-p", "repeat=2") == (0, 2)
    assert params("-p", "{warmup: 2, repeat: 1}") == (2, 1)
    assert params("-p", "repeat=4", "-p", "time.yml") == (0, 7)


def test_an_option_of_the_collector_wins_over_params(perun: Callable[..., Any], project: Any) -> None:
    perun("collect", "-c", "true", "-p", "repeat=9", "-p", "warmup=0", "time", "-r", "2")
    (profile,) = profiles(project)
    assert profile["collector_info"]["params"]["repeat"] == 2
    assert profile["collector_info"]["params"]["warmup"] == 0


WRONG_PARAMS = [
    ("repat=2", 5, "unknown parameter 'repat'\nhint: did you mean 'repeat'?"),
    ("repeat=two", 5, "repeat must be a whole number, not 'two'"),
    ("repeat=0", 5, "repeat must be at least 1"),
    ("absent.yml", 2, "'absent.yml' is neither a file nor parameters"),
    ("{repeat: ", 5, "YAML"),
    ("[1, 2]", 5, "params must be a mapping"),
]


def test_wrong_params(perun: Callable[..., Any], project: Any) -> None:
    for params, code, message in WRONG_PARAMS:
        perun("collect", "-c", "true", "-p", params, "time", code=code, err=message)
        assert pending(project) == []


def test_name_of_the_profile(perun: Callable[..., Any], project: Any) -> None:
    for _ in range(2):
        perun("collect", "-c", "true", "-pn", "mine.perf", *QUICK)
    perun("collect", "-c", "true", "--profile-name", "other", *QUICK)
    assert [path.name for path in pending(project)] == ["mine(1).perf", "mine.perf", "other.perf"]


def test_template_of_the_name(perun: Callable[..., Any], project: Any) -> None:
    template = "%cmd%-%workload%-%time.repeat%-%counter%-%origin%"
    outcome = perun("collect", "-ot", template, "-c", "true", "-w", "in/a b.txt", "-w", "c", *QUICK)
    names = [f"true-[a_b.txt]-1-0-{project.head}.perf", f"true-[c]-1-1-{project.head}.perf"]
    assert [path.name for path in pending(project)] == names
    assert [line.split()[1] for line in outcome.lines if line.startswith("stored")] == names


WRONG_NAMES = [["-ot", "%tame%"], ["-pn", "a/b"], ["-pn", "../b.perf"], ["-pn", ""], ["-pn", ".perf"]]


def test_wrong_name_is_found_before_anything_runs(perun, project, record) -> None:
    for naming in WRONG_NAMES:
        outcome = perun("collect", *naming, "-c", "./recorder", *QUICK, check=False)
        assert outcome.code in (2, 5)
        assert naming[1] in outcome.err
        assert not record.exists()


def test_several_versions(perun: Callable[..., Any], project: Any, record: Path) -> None:
    first, second, third, _ = project.git("rev-list", "--reverse", "HEAD").split()
    outcome = perun("collect", "-m", "HEAD~3", "-m", third, "-m", "HEAD~3", "-c", "true", *QUICK)
    assert [line.split()[1] for line in outcome.lines if line.startswith("*")] == [first[:10], third[:10]]
    assert sorted(one["origin"] for one in profiles(project)) == sorted([first, third])
    for path in pending(project):
        path.unlink()
    outcome = perun("collect", "-m", "HEAD~1", "--crawl-parents", "-c", "true", *QUICK)
    order = [line.split()[1] for line in outcome.lines if line.startswith("*")]
    assert order == [third[:10], second[:10], first[:10]]
    assert outcome.lines[0] == f"* {third[:10]} Commit 3"
    assert outcome.lines[1].startswith("  stored time-true-")
    assert len(perun("collect", "-cp", "-c", "true", *QUICK).lines) == 12


def test_uncommitted_changes(perun: Callable[..., Any], project: Any, record: Path) -> None:
    perun("collect", "-c", "./recorder", *QUICK)
    assert record.read_text() == f"in {project.path}\n"
    record.unlink()
    edited = RECORDER.replace("in $PWD", "edited, in $PWD")
    (project.path / "recorder").write_text(edited)
    outcome = perun("collect", "-c", "./recorder", *QUICK)
    assert re.fullmatch(f"in {project.path}/.perun/tmp/worktree-\\d+-[0-9a-f]+\n", record.read_text())
    assert outcome.err == (
        "warning: uncommitted changes are not measured; --force-dirty (-f) measures them too\n"
    )
    record.unlink()
    outcome = perun("collect", "--force-dirty", "-c", "./recorder", *QUICK)
    assert record.read_text() == f"edited, in {project.path}\n"
    assert outcome.err == ""
    record.unlink()
    outcome = perun("collect", "--in-place", "-c", "./recorder", *QUICK)
    assert record.read_text() == f"in {project.path}\n"
    assert outcome.err == ""
    assert (project.path / "recorder").read_text() == edited
    # An untracked file is part of no version, so it does not matter.
    project.git("checkout", "recorder")
    (project.path / "untracked").touch()
    record.unlink()
    perun("collect", "-c", "./recorder", *QUICK)
    assert record.read_text() == f"in {project.path}\n"
    assert project.git("worktree", "list").count("\n") == 0


def test_from_a_folder_below(perun: Callable[..., Any], project: Any, record: Path) -> None:
    (project.path / "below").mkdir()
    perun("collect", "-c", "./recorder", *QUICK, cwd=project.path / "below")
    assert record.read_text() == f"in {project.path}\n"


@pytest.mark.parametrize(("script", "ending"), [
    ("for i in $(seq 20); do echo line $i >&2; done; exit 3", "exited with status 3"),
    ("for i in $(seq 20); do echo line $i >&2; done; kill -SEGV $$", "was killed by SIGSEGV"),
])  # fmt: skip
def test_failing_command(perun: Callable[..., Any], project: Any, script: str, ending: str) -> None:
    project.commit("Fail", {"fail.sh": f"{script}\n"})
    outcome = perun("collect", "-c", "sh fail.sh", *QUICK, code=8)
    assert outcome.out == ""
    lines = outcome.err.splitlines()
    assert ending in lines[0]
    assert lines[1] == "the end of its standard error:"
    assert lines[2:12] == [f"  line {number}" for number in range(11, 21)]
    assert lines[12].startswith("hint: ")
    assert pending(project) == []
    assert list((project.path / ".perun/tmp").iterdir()) == []


def test_the_difference_from_the_nearest_ancestor(perun: Callable[..., Any], project: Any) -> None:
    perun("config", "set", "profiles.register_after_run", "true")
    first, second = project.git("rev-list", "--reverse", "--max-count=2", "HEAD").split()
    repeated = ("time", "--warmup", "0", "--repeat", "2")
    command = ("-c", "sh", "-a", "-c true")
    # Two runs on a busy machine may differ by more than the machine is taken to make of them.
    names = "|".join(map(re.escape, NAMES.values()))
    words = rf"({names})(, unconfirmed| by the 95 % interval| above [\d.]+ %)?"
    lines = perun("collect", "-m", first, *command, *repeated).lines
    assert "since" not in lines[-1]
    difference = rf"  (?:real|cpu) time  .* \(n = 2\)  [+-]?[\d.,]+ % \[.*\] since {first[:7]}: {words}"
    assert re.fullmatch(difference, perun("collect", "-m", second, *command, *repeated).lines[-1])
    single = perun("collect", "-m", second, *command, *QUICK).lines[-1]
    difference = rf"  (?:real|cpu) time  .* \(n = 3\)  [+-]?[\d.,]+ % .*since {first[:7]}: {words}"
    assert re.fullmatch(difference, single)
    # Another configuration was not measured before.
    assert "since" not in perun("collect", "-m", second, "-c", "true", *QUICK).lines[-1]


def test_one_of_several_commands_fails(perun: Callable[..., Any], project: Any) -> None:
    outcome = perun("collect", "-c", "false", "-c", "true", *QUICK, code=8)
    assert outcome.lines[0] == "failed false: the command 'false' exited with status 1 (run 1 of 1)"
    assert outcome.lines[-2].startswith("stored time-true-")
    assert outcome.err.splitlines()[0] == (
        "error: 1 profile collected, 1 job failed; the command 'false' exited with status 1 (run 1 of 1)"
    )
    assert len(pending(project)) == 1


def test_command_that_is_not_there(perun: Callable[..., Any], project: Any) -> None:
    perun("collect", "-c", "./absent", *QUICK, code=8, err=f"command not found: './absent' in {project.path}")
    perun("collect", "-c", "absent", *QUICK, code=8, err=("is in no folder of the PATH", "write ./absent"))


def test_command_that_is_not_built_in_a_fresh_copy(perun: Callable[..., Any], project: Any) -> None:
    (project.path / "built").write_text("#!/bin/sh\n")
    (project.path / "built").chmod(0o755)
    perun("collect", "-c", "./built", *QUICK)
    outcome = perun("collect", "-m", "HEAD~1", "-c", "./built", *QUICK, check=False)
    assert outcome.code == 8
    assert "command not found: './built'" in outcome.err
    assert "set execute.pre_run" in outcome.err
    assert len(pending(project)) == 1


WRONG = [
    (["-c", "true", "tima"], 2, "there is no collector 'tima'"),
    (["-c", "true", "tima"], 2, "time"),
    (["time"], 2, "name the command to measure with --cmd (-c)"),
    (["-c", "", "time"], 2, "command to measure is empty"),
    (["-c", "echo 'open", "time"], 2, "cannot be split"),
    (["-c", "./a | ./b", "time"], 2, "the command './a | ./b': only a shell understands '|', "),
    (["-c", "true", "-a", "x > y", "time"], 2, "the arguments 'x > y': only a shell understands '>'"),
    (["-c", "cat < file", "time"], 2, "a file for standard input is a workload: --workload '< FILE'"),
    (["-c", "true", "-w", "< a b", "time"], 2, "must name one file"),
    (["-c", "cat", "-w", "< absent.txt", "time"], 8, "absent.txt: No such file or directory"),
    (["-c", "true", "-m", "nonsense", "time"], 4, "git knows no commit 'nonsense'"),
    (["-c", "true", "time", "--repeat", "0"], 2, "repeat"),
]


def test_wrong_usage(perun: Callable[..., Any], project: Any) -> None:
    for arguments, code, message in WRONG:
        perun("collect", *arguments, code=code, err=message)
        assert pending(project) == []


def test_without_a_version(perun: Callable[..., Any], git_repository: Callable[..., Any]) -> None:
    empty = git_repository()
    perun("init", cwd=empty.path)
    perun("collect", "-c", "true", *QUICK, cwd=empty.path, code=4, err="no commits yet")


def test_outside_of_a_repository(perun: Callable[..., Any], tmp_path: Path) -> None:
    perun("collect", "-c", "true", *QUICK, cwd=tmp_path, code=3, err="perun init")


def test_verbose_names_the_steps_where_there_is_no_terminal(perun: Callable[..., Any], project: Any) -> None:
    outcome = perun("-v", "collect", "-c", "true", "-w", "a", "-w", "b", *QUICK)
    head = project.head[:10]
    assert outcome.err.splitlines() == [
        f"measuring 0/2 preparing {head}",
        f"measuring 0/2 {head} true a",
        f"measuring 1/2 {head} true b",
        "measuring 2/2 done",
    ]


@pytest.mark.parametrize("by_profile", [False, True])
def test_one_benchmark_however_its_command_is_divided(perun, project, record, by_profile) -> None:
    """As the job matrix has it, or the nearest version with profiles; not where only one of them differs."""
    if by_profile:
        perun("collect", "-c", "./recorder", "-w", "8 9", *QUICK)
        perun("add", "0@p")
        project.commit("Later")
    else:
        for key, value in (("cmds", "[./recorder]"), ("workloads", '["8 9"]')):
            perun("config", "set", key, value)
    perun("collect", "-c", "./recorder  8 '9'", *QUICK)
    perun("run", "job", "-c", "time", "-cp", "time", "repeat=1", "-b", "./recorder 8", "-a", "9")
    perun("bench", "./recorder 8 9", "--runs", "1")
    perun("collect", "-c", "./recorder 8 90", *QUICK)
    heads = [tuple(one["header"][key] for key in ("cmd", "args", "workload")) for one in profiles(project)]
    assert sorted(heads) == [*[("./recorder", "", "8 9")] * 2, ("./recorder 8 90", "", "")]
    assert perun("status", "--json").json["registered"][0]["workload"] == "8 9"


def test_the_name_of_a_generator_is_no_word_of_a_command(perun, project, record) -> None:
    generator = "{id: sizes, type: integer, min_range: 1, max_range: 2, step: 1}"
    perun("config", "set", "generators.workload", f"[{generator}]")
    for key, value in (("cmds", "[./recorder]"), ("workloads", "[sizes]")):
        perun("config", "set", key, value)
    perun("collect", "-c", "./recorder sizes", *QUICK)
    (profile,) = profiles(project)
    assert (profile["header"]["cmd"], profile["header"]["workload"]) == ("./recorder sizes", "")
