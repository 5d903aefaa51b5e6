"""`perun run job` and `perun run matrix`: batches of jobs, and what is run before them (manual 7)."""

import json
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RECORDER = """\
#!/bin/sh
{ printf '%s' "${0##*/}"; for one in "$@"; do printf ' %s' "$one"; done; echo; } >>"$RECORD"
"""
POSTPROCESSOR = '''
"""Scales amounts."""
from dataclasses import dataclass

from perun.plugin.params import param


@dataclass(frozen=True)
class Params:
    factor: int = param(2, help="What to multiply amounts with.")


class Scale:
    name = "my_scale"
    help = "Scales amounts"
    Params = Params

    def process(self, profile, params, ctx):
        for columns in profile["resources"].values():
            columns["amount"] = [amount * params.factor for amount in columns["amount"]]
        return profile


PLUGIN = Scale
'''
QUICK = "{name: time, params: {warmup: 0, repeat: 1}}"


@pytest.fixture
def record(project: Any, record: Path) -> Path:
    """What the programs `./one` and `./two` of the project have noted, a line for each time they ran."""
    project.write({"one": RECORDER, "two": RECORDER})
    for name in ("one", "two"):
        (project.path / name).chmod(0o755)
    project.commit("Add programs")
    return record


@pytest.fixture
def plugin(project, share) -> str:
    """A postprocessor in the repository, which the user trusts."""
    folder = project.path / ".perun/plugins/postprocess"
    folder.mkdir(parents=True)
    (folder / "my_scale.py").write_text(POSTPROCESSOR)
    share(f"plugins:\n  trusted: [{project.path}]\n")
    return "my_scale"


def pending(project: Any) -> list[dict[str, Any]]:
    """The pending profiles in the order in which they were made."""
    files = (project.path / ".perun/jobs").glob("*.perf")
    return [json.loads(path.read_bytes()) for path in sorted(files, key=lambda path: path.stat().st_mtime_ns)]


def command_of(profile: dict[str, Any]) -> str:
    header = profile["header"]
    return " ".join(filter(None, (header["cmd"], header["args"], header["workload"])))


def test_job_of_all_combinations(perun: Callable[..., Any], project: Any, record: Path) -> None:
    outcome = perun(
        *("run", "job", "-c", "time", "-cp", "time", "{warmup: 1, repeat: 2}"),
        *("-b", "./one", "--cmd", "./two", "-a", "-x", "--args", "-y", "-w", "1", "--workload", "2"),
    )
    jobs = [
        f"./{name} {args} {workload}" for name in ("one", "two") for args in ("-x", "-y") for workload in "12"
    ]
    assert record.read_text().splitlines() == [job[2:] for job in jobs for _ in range(3)]
    assert [command_of(profile) for profile in pending(project)] == jobs
    assert all(line.startswith("stored time-") for line in outcome.lines[::2])
    assert all(re.fullmatch(r"  (real|cpu) time  .* \(n = 2\)", line) for line in outcome.lines[1::2])
    assert len(outcome.lines) == 16
    assert {profile["origin"] for profile in pending(project)} == {project.head}


def test_job_with_params_of_units(perun: Callable[..., Any], project: Any, record: Path, plugin: str) -> None:
    (project.path / "scale.yml").write_text("factor: 5\n")
    perun(
        *("run", "job", "-b", "./one", "-c", "time", "-cp", "time", "repeat=4", "-cp", "time", "warmup=0"),
        *("-p", "my-scale", "-p", "my_scale", "--postprocessor-params", "my-scale", "scale.yml"),
    )
    (profile,) = pending(project)
    assert profile["collector_info"]["params"]["repeat"] == 4
    assert profile["collector_info"]["params"]["warmup"] == 0
    assert profile["postprocessors"] == [{"name": "my_scale", "params": {"factor": 5}}] * 2
    assert len(record.read_text().splitlines()) == 4


FORGETFUL = '''
from dataclasses import dataclass

from perun.profile.factory import Profile


@dataclass(frozen=True)
class Params:
    """None."""


class Forgetful:
    name = "forgetful"
    help = "Returns {result}"
    Params = Params

    def {verb}:
        return Profile({result})


PLUGIN = Forgetful
'''


@pytest.mark.parametrize("header", ["{}", "{'cmd': 'other', 'args': '-z', 'workload': 'w', 'type': 'mixed'}"])
def test_what_was_measured_is_said_whatever_plugins_return(perun, project, record, plugin, header) -> None:
    result = f"header={header}"
    for family, verb in (("collect", "collect(self, run"), ("postprocess", "process(self, profile")):
        code = FORGETFUL.format(verb=f"{verb}, params, ctx)", result=result)
        project.write({f".perun/plugins/{family}/forgetful.py": code})
    job = ("run", "job", "-b", "./one", "-a", "-x", "-w", "5")
    perun(*job, "-c", "forgetful")
    perun(*job, "-c", "time", "-p", "my-scale", "-p", "forgetful")
    collected, processed = pending(project)
    for profile in (collected, processed):
        assert [profile["header"][key] for key in ("cmd", "args", "workload")] == ["./one", "-x", "5"]
        assert profile["origin"] == project.head
    assert collected["collector_info"]["name"] == "forgetful"
    assert processed["collector_info"]["name"] == "time"
    assert [unit["name"] for unit in processed["postprocessors"]] == ["my_scale", "forgetful"]
    assert processed["machine"]


def test_one_collector_with_several_params(perun, project, configure) -> None:
    configure(
        "cmds: ['true']\n"
        "collectors:\n"
        "  - {name: time, params: {warmup: 0, repeat: 1}}\n"
        "  - {name: time, params: {warmup: 0, repeat: 2}}\n"
    )
    perun("run", "matrix")
    assert [one["collector_info"]["params"]["repeat"] for one in pending(project)] == [1, 2]


def test_matrix_as_in_the_manual(perun, project, record, plugin, configure) -> None:
    configure(
        "cmds:\n  - ./one\n  - ./two\n"
        "args:\n  - log\n  - log --short\n"
        "workloads:\n  - HEAD\n  - << 'Hello world!'\n"
        "collectors:\n  - name: time\n    params:\n      - warmup: 0\n      - repeat: 1\n"
        "postprocessors:\n  - name: my_scale\n    params:\n      - factor: 3\n  - name: my_scale\n"
    )
    perun("run", "matrix")
    jobs = [
        f"./{name} {args} {workload}"
        for name in ("one", "two")
        for args in ("log", "log --short")
        for workload in ("HEAD", "<< 'Hello world!'")
    ]
    assert [command_of(profile) for profile in pending(project)] == jobs
    assert record.read_text().splitlines() == [
        f"{name} {args}{workload}"
        for name in ("one", "two")
        for args in ("log", "log --short")
        for workload in (" HEAD", "")
    ]
    for profile in pending(project):
        assert profile["postprocessors"] == [
            {"name": "my_scale", "params": {"factor": 3}},
            {"name": "my_scale", "params": {"factor": 2}},
        ]
        assert (
            len(profile["resources"]["./one#0" if "one" in command_of(profile) else "./two#0"]["amount"]) == 1
        )


@pytest.mark.parametrize(("text", "code", "message"), [
    ("", 5, "the job matrix is empty: cmds is not set in {local}"),
    ("cmds: [./one]\n", 5, "the job matrix is empty: collectors is not set in {local}"),
    ("cmds: []\ncollectors: [time]\n", 5, "the job matrix is empty: cmds"),
    ("cmds: [./one]\ncollectors: [{name: tima}]\n", 9, "there is no collector 'tima'"),
    ("cmds: [./one]\ncollectors: [{name: tima}]\n", 9, "time"),
    ("cmds: [./one]\ncollectors: [{name: time, params: {repaet: 2}}]\n", 5,
     "{local}:7: collector 'time': unknown parameter 'repaet'\nhint: did you mean 'repeat'?"),
    ("cmds: [./one]\ncollectors: [{name: time, params: [{repeat: many}]}]\n", 5,
     "{local}:7: collector 'time': repeat must be a whole number, not 'many'"),
    ("cmds: [./one]\ncollectors: [{name: time, params: 3}]\n", 5, "params"),
    ("cmds: [./one]\ncollectors: [{name: time}]\npostprocessors: [{name: no_such}]\n", 9,
     "there is no postprocessor 'no_such'"),
    ("cmds: [./one]\ncollectors: [{name: time}]\nformat: {output_profile_template: '%x%'}\n", 5, "%x%"),
    ("cmds: [./one\n", 5, "{local}"),
    ("cmds: [./one 'a]\ncollectors: [time]\n", 5, '{local}:6: the command "./one \'a" cannot be split'),
    ("cmds: [./one]\nworkloads: ['< a b']\ncollectors: [time]\n", 5, "{local}:7: workload '< a b' must name"),
])  # fmt: skip
def test_wrong_matrix_is_found_before_anything_runs(
    perun, project, record, configure, text, code, message
) -> None:
    configure(f"execute:\n  pre_run: [./two]\n{text}")
    outcome = perun("run", "matrix", code=code, err=message.format(local=project.path / ".perun/local.yml"))
    assert outcome.out == ""
    assert not record.exists()


def test_wrong_pre_run_is_found_before_anything_runs(perun, project, record, configure) -> None:
    configure(f'cmds: [./one]\ncollectors: [{QUICK}]\nexecute: {{pre_run: [./two, "echo \'open"]}}\n')
    for arguments in (["run", "matrix"], ["run", "job", "-b", "./one", "-c", "time"]):
        outcome = perun(*arguments, code=5)
        place = f"{project.path}/.perun/local.yml:6"
        assert f'{place}: execute.pre_run: the command "echo \'open" cannot be split' in outcome.err
    assert not record.exists()


def test_wrong_job(perun: Callable[..., Any], record: Path) -> None:
    cases: list[tuple[list[str], int, str]] = [
        (["-b", "./one"], 2, "--collector"),
        (["-c", "time"], 2, "--cmd"),
        (["-b", "./one", "-c", "tima"], 9, "there is no collector 'tima'"),
        (["-b", "./one", "-c", "time", "-p", "no-such"], 9, "there is no postprocessor 'no"),
        (["-b", "./one", "-c", "time", "-cp", "trace", "a=1"], 2, "--collector-params trace"),
        (["-b", "./one", "-c", "time", "-cp", "time", "repaet=1"], 5, "did you mean 'repeat'?"),
        (["-b", "./one", "-c", "time", "-pp", "normalizer", "a=1"], 2, "--postprocessor-params normalizer"),
    ]
    for arguments, code, message in cases:
        perun("run", "job", *arguments, code=code, err=message)
        assert not record.exists()


@pytest.mark.parametrize(("spelling", "registered"), [
    ("True", True), ("on", True), ("'1'", True), ("no", False), ("'False'", False),
    *(
        pytest.param(spelling, registered, marks=pytest.mark.slow)
        for registered, spellings in ((True, "true TRUE yes Yes 1 'true'"), (False, "false 0"))
        for spelling in spellings.split()
    ),
])  # fmt: skip
def test_register_after_run(perun, project, configure, spelling, registered) -> None:
    configure(f"cmds: ['true']\ncollectors: [{QUICK}]\nprofiles:\n  register_after_run: {spelling}\n")
    outcome = perun("run", "matrix")
    status = perun("status", "--json").json
    assert len(status["registered"]) == registered
    assert len(status["pending"]) == (not registered)
    assert outcome.out.startswith("registered " if registered else "stored ")


def test_each_profile_is_registered_in_its_own_version(perun, project, configure) -> None:
    configure(f"cmds: ['true']\ncollectors: [{QUICK}]\nprofiles: {{register_after_run: true}}\n")
    perun("run", "-c", "matrix")
    versions = perun("log", "--json").json["versions"]
    assert [version["profiles"] for version in versions] == [{"time": 1}] * 3
    assert perun("status", "--json").json["pending"] == []


def test_pre_run_comes_first(perun, project, record, configure) -> None:
    configure(
        f"cmds: [./one]\nworkloads: [a, b]\ncollectors: [{QUICK}]\n"
        "execute:\n  pre_run:\n    - ./two first $HOME * ';' echo no\n    - ./two 'second one'\n"
        "    - sh -c 'pwd; echo $((6*7))'\n"
    )
    perun("run", "matrix")
    assert record.read_text().splitlines() == [
        "two first $HOME * ; echo no",  # there is no shell
        "two second one",
        "one a",
        "one b",
    ]
    log = project.path / f".perun/logs/{project.head}-pre-run.log"
    assert log.read_text() == (
        "$ ./two first $HOME * ';' echo no\n"
        "$ ./two 'second one'\n"
        f"$ sh -c 'pwd; echo $((6*7))'\n{project.path}\n42\n"
    )


@pytest.mark.parametrize("line", ["./two | ./two b", "./two && ./two b", "./two a; ./two b", "./two >out"])
def test_pre_run_that_needs_a_shell_is_refused(perun, record, configure, line) -> None:
    matrix = f"cmds: [./one]\ncollectors: [{QUICK}]\n"
    configure(f"{matrix}execute:\n  pre_run:\n    - ./two first\n    - {line}\n")
    refused = perun("run", "matrix", check=False)
    assert f"local.yml:9: execute.pre_run: the command {line!r}: only a shell understands " in refused.err
    assert "write sh -c '...'" in refused.err
    assert refused.code == 5
    assert not record.exists()


def test_pre_run_that_takes_too_long_is_stopped(perun, record, configure) -> None:
    configure(f"cmds: [./one]\ncollectors: [{QUICK}]\nexecute: {{pre_run: [sleep 1000], timeout: 0.2}}\n")
    refused = perun("run", "matrix", check=False)
    assert "execute.pre_run: 'sleep 1000' did not end within 0.2 s" in refused.err
    assert "set execute.timeout to more" in refused.out
    assert refused.code == 8
    assert not record.exists()


def test_pre_run_may_be_one_text(perun, record, configure) -> None:
    configure(f"cmds: [./one]\ncollectors: [{QUICK}]\nexecute:\n  pre_run: ./two only\n")
    perun("run", "matrix")
    assert record.read_text().splitlines() == ["two only", "one"]


def test_pre_run_runs_in_the_folder_of_each_version(perun, project, configure) -> None:
    project.commit("Build", {"build.sh": "cp file.txt built; pwd\n"})
    project.commit("Change", {"file.txt": "last\n", "extra": ""})
    configure(f"cmds: [cat built]\ncollectors: [{QUICK}]\nexecute: {{pre_run: [sh build.sh]}}\n")
    head, before = project.git("rev-list", "-2", "HEAD").split()
    perun("run", "-m", "HEAD", "-m", "HEAD~1", "matrix")
    assert (project.path / "built").read_text() == "last\n"
    logs = project.path / ".perun/logs"
    assert (logs / f"{head}-pre-run.log").read_text().splitlines()[1] == str(project.path)
    copy = (logs / f"{before}-pre-run.log").read_text().splitlines()[1]
    assert copy.startswith(f"{project.path}/.perun/cache/builds/")
    assert not (project.path / ".git/worktrees").exists()


@pytest.mark.parametrize("url", ["..", "../../.."])
def test_a_perun_root_below_the_top(perun, git_repository, url, tmp_path) -> None:
    repository = git_repository("a project")
    script = "pwd >> $1; cat input >> $1\n"
    repository.commit("Without", {"readme": ""})
    repository.commit("One", {"parts/the part/run.sh": script, "parts/the part/input": "1\n"})
    repository.commit("Two", {"parts/the part/input": "2\n"})
    root = repository.path / "parts/the part"
    perun("init", cwd=root)
    (root / ".perun/local.yml").write_text(
        f"vcs: {{type: git, url: '{url}'}}\n"
        f"cmds: [sh run.sh {tmp_path}/measured]\ncollectors: [{QUICK}]\n"
        f"execute: {{pre_run: [sh run.sh {tmp_path}/prepared]}}\n"
    )
    outcome = perun("run", "-c", "matrix", cwd=root, check=False)
    assert outcome.code == 8
    assert "has no folder 'parts/the part" in outcome.out
    assert "2 profiles collected, 1 version skipped" in outcome.err
    for name in ("prepared", "measured"):
        places = (tmp_path / name).read_text().splitlines()
        assert places[:2] == [str(root), "2"]
        assert places[2].startswith(f"{root}/.perun/cache/builds/")
        assert places[2].endswith("/parts/the part")
        assert places[3:] == ["1"]
    assert repository.git("worktree", "list").count("\n") == 0


def test_failing_pre_run_skips_that_version_only(perun, project, configure) -> None:
    project.commit("Break the build", {"build.sh": "seq 30; echo 'no rule' >&2; exit 3\n"})
    broken = project.head
    project.commit("Repair the build", {"build.sh": "true\n"})
    configure(f"cmds: ['true']\ncollectors: [{QUICK}]\nexecute: {{pre_run: [sh build.sh, sh build.sh]}}\n")
    outcome = perun("run", "-m", "HEAD", "-m", "HEAD~1", "-m", "HEAD~2", "matrix", "--quiet-env", code=8)
    log = project.path / f".perun/logs/{broken}-pre-run.log"
    assert outcome.lines[0].startswith(f"* {project.head[:10]} Repair")
    assert outcome.lines[1].startswith("| stored ")
    assert outcome.lines[3:16] == [
        f"* {broken[:10]} Break the build",
        "| skipped: execute.pre_run: 'sh build.sh' ended with status 3",
        "| the end of its output:",
        *(f"|   {number}" for number in range(22, 31)),
        "|   no rule",
    ]
    assert outcome.lines[16] == f"| hint: all of its output: {log}"
    assert outcome.lines[17].startswith("* ")
    assert outcome.lines[18].startswith("  skipped: execute.pre_run: 'sh build.sh' ended with status ")
    assert outcome.err.splitlines()[0] == (
        "error: 1 profile collected, 2 versions skipped; "
        "the first: execute.pre_run: 'sh build.sh' ended with status 3"
    )
    assert log.read_text().splitlines()[0] == "$ sh build.sh"
    assert log.read_text().count("$ sh build.sh") == 1  # the second one did not run
    assert len(pending(project)) == 1


@pytest.mark.parametrize(("first", "message"), [
    ("no-such-program --now", "'no-such-program' is in no folder of the PATH (running in {here})"),
    ("sh -c 'kill -9 $$'", "was killed by SIGKILL"),
])  # fmt: skip
def test_pre_run_that_cannot_run(perun, project, record, configure, first, message) -> None:
    configure(
        f"cmds: [./one]\nworkloads: [a, b]\ncollectors: [{QUICK}]\n"
        f"execute: {{pre_run: [{json.dumps(first)}, ./two]}}\n"
    )
    outcome = perun("run", "matrix", code=8)
    assert outcome.lines[0].startswith(f"skipped {project.head[:10]}: execute.pre_run: ")
    assert message.format(here=project.path) in outcome.lines[0]
    assert "1 version skipped" in outcome.err
    assert not record.exists()


def test_a_failing_job_leaves_the_others(perun, project, configure) -> None:
    configure(
        f"cmds: [sh]\nargs: [-c 'echo broken >&2; exit 4', -c 'exit 0']\ncollectors: [{QUICK}]\n"
        "profiles: {register_after_run: true}\n"
    )
    outcome = perun("run", "-m", "HEAD", "-m", "HEAD~1", "matrix", code=8)
    assert outcome.lines[1:5] == [
        "| failed sh -c 'echo broken >&2; exit 4': the command \"sh -c 'echo broken >&2; exit 4'\" "
        "exited with status 4 (run 1 of 1)",
        "| the end of its standard error:",
        "|   broken",
        "| hint: correct the command, or measure it anyway with --ignore-failure (-i)",
    ]
    assert outcome.lines[5].startswith("| registered time-sh-[-c__exit_0_]")
    assert outcome.out.count("hint:") == 1  # said once
    assert "2 profiles collected, 2 jobs failed; the first: the command" in outcome.err
    assert len(perun("status", "--json").json["registered"]) == 1
    assert pending(project) == []


def test_without_history(perun: Callable[..., Any], project: Any, configure: Callable[[str], None]) -> None:
    script = "test -e late"
    project.commit("Late", {"late": ""})
    configure(f"cmds: ['{script}']\ncollectors: [{QUICK}]\n")
    outcome = perun("run", "-m", "HEAD", "-m", "HEAD~1", "matrix", "-q", check=False)
    before = project.git("rev-parse", "--short=10", "HEAD~1")
    assert outcome.code == 8
    assert outcome.lines[0].startswith("stored ")
    assert outcome.lines[2].startswith(f"failed {before} test -e late: ")
    configure(f"cmds: ['true']\ncollectors: [{QUICK}]\nexecute: {{pre_run: [{script}]}}\n")
    outcome = perun("run", "-m", "HEAD", "-m", "HEAD~1", "matrix", "--without-vcs-history", check=False)
    assert outcome.lines[2].startswith(f"skipped {before}: execute.pre_run: 'test -e late' ended with")


def test_inside_a_hook_of_git(perun, project, command, environment, configure, monkeypatch) -> None:
    """Git tells its hooks which index is the user's; what is run for another version must not use that."""
    configure(
        f"cmds: [git status --short]\ncollectors: [{QUICK}]\n"
        "execute: {pre_run: [git rm -q --cached file.txt]}\n"
    )
    hook = project.path / ".git/hooks/post-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nexec {' '.join(command)} run -m HEAD~1 matrix\n")
    hook.chmod(hook.stat().st_mode | stat.S_IXUSR)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    project.commit("With a hook", {"file.txt": "new\n"})
    assert len(pending(project)) == 1
    assert project.git("ls-files") == "file.txt"
    assert project.git("status", "--short") == ""


def test_progress_on_a_terminal(terminal, project, configure) -> None:
    """Each line is whole and stands above the bar, which is gone at the end."""
    configure(f"cmds: [sleep 0.3]\nworkloads: ['0', '']\ncollectors: [{QUICK}]\n")
    outcome = terminal("run", "-c", "matrix", "--quiet-env", columns=80)
    assert outcome.code == 0
    shown = plain(outcome.out.replace("\r", "\n"))
    assert re.search(r"measuring \S+ [1-5]/6 0:0\d, 0:0\d left [0-9a-f]{10} sleep 0\.3", shown)
    lines = [line for line in shown.splitlines() if line.strip() and not line.startswith("measuring")]
    assert [line[:15] for line in lines if line[0] == "*"] == [
        f"* {project.git('rev-parse', '--short=10', f'HEAD~{back}')} Co" for back in range(3)
    ]
    stored = [line for line in lines if line[2:].startswith("stored")]
    whole = re.compile(r"[| ] stored time-sleep_0\.3-\S+\.perf \(measured in [\d.]+ m?s\)")
    assert all(map(whole.fullmatch, stored))
    assert sum(line[2:].startswith(("  real time", "  cpu time")) for line in lines) == len(stored)
    assert len(stored) == 6
    assert outcome.out.rstrip("\n").endswith("\x1b[2K")


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", text)


def test_template_with_a_counter(perun, project, configure) -> None:
    configure(f"cmds: ['true']\nworkloads: [a, b]\ncollectors: [{QUICK}]\n")
    perun("run", "-c", "-ot", "%counter%-%workload%", "matrix")
    names = sorted(path.name for path in (project.path / ".perun/jobs").glob("*.perf"))
    assert names == [f"{number}-[{'ab'[number % 2]}].perf" for number in range(6)]


def test_workloads_of_a_generator(perun, project, record, configure) -> None:
    configure(
        f"cmds: [./one]\nworkloads: [plain, made]\ncollectors: [{QUICK}]\n"
        "generators: {workload: [{id: made, type: singleton, value: from generator}]}\n"
    )
    perun("run", "matrix")
    assert record.read_text().splitlines() == ["one plain", "one from generator"]
