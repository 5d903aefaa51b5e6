"""Profiles that lack a part of their run: made, kept, displayed, and never compared silently."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *kept[6000];
volatile int sum;
__attribute__((noinline)) void step(int i) { kept[i] = malloc(64); sum += i; sum *= 3; }
int main(void) {
    for (int i = 0; i < 6000; i++) {
        step(i);
        /* Waits where the file `go` is missing, until it is ended. */
        if (i == 1220 && access("go", F_OK)) {
            fclose(fopen("waiting", "w"));
            for (;;) pause();
        }
    }
    return 0;
}
"""
MATRIX = """\
vcs: {{type: git, url: ..}}
cmds: [./steps]
args: [a, b, c]
collectors: [{collector}]
profiles: {{register_after_run: {registering}}}
"""
COLLECTORS = {
    "trace": "{name: trace, params: {engine: uftrace, output_handling: suppress, func: [step]}}",
    "memory": "{name: memory, params: {unwind: none}}",
}
"""Collectors that record a run, by what they are called."""


@pytest.fixture(params=sorted(COLLECTORS))
def batch(request: pytest.FixtureRequest, project: Any, memory_recorder: Path) -> str:
    """The name of a collector; the project has a program that waits and a matrix with three jobs of it."""
    name = str(request.param)
    if name == "trace" and not shutil.which("uftrace"):
        pytest.skip("uftrace is not installed")
    if name == "memory" and "site-packages" not in str(memory_recorder) and not _installed(memory_recorder):
        pytest.skip("the recorder of allocations is not installed")
    compile_steps(project.path)
    write_matrix(project, COLLECTORS[name])
    return name


def _installed(recorder: Path) -> bool:
    from perun.collect.memory.collector import LIBRARY

    return recorder == LIBRARY


def compile_steps(folder: Path) -> None:
    (folder / "steps.c").write_text(PROGRAM)
    subprocess.run(["cc", "-g", "-O1", "-fno-builtin", "steps.c", "-o", "steps"], cwd=folder, check=True)


def write_matrix(project: Any, collector: str, *, registering: bool = False) -> None:
    text = MATRIX.format(collector=collector, registering=str(registering).lower())
    (project.path / ".perun/local.yml").write_text(text)


def pending(project: Any) -> list[dict[str, Any]]:
    paths = sorted((project.path / ".perun/jobs").glob("*.perf"))
    return [json.loads(path.read_bytes()) for path in paths]


def interrupt(
    command: list[str],
    environment: Mapping[str, str],
    folder: Path,
    *arguments: str,
    number: signal.Signals = signal.SIGINT,
) -> tuple[int, str]:
    """Run the command, and send it the signal when its program waits; its exit code and what it wrote."""
    with subprocess.Popen(
        [*command, *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            while not (folder / "waiting").exists():
                assert process.poll() is None, process.communicate()
                time.sleep(0.01)
            process.send_signal(number)
            out, _ = process.communicate()
        finally:
            process.kill()
    (folder / "waiting").unlink()
    assert "Traceback" not in out, out
    return process.returncode, out


@pytest.mark.parametrize("batch", ["memory", pytest.param("trace", marks=pytest.mark.slow)], indirect=True)
def test_an_interruption_ends_the_batch_and_its_profile_says_so(
    perun, project, command, environment, batch
) -> None:
    """One Ctrl-C during the first of three jobs: the others do not run, and nobody believes the first."""
    write_matrix(project, COLLECTORS[batch], registering=True)
    code, out = interrupt(command, environment, project.path, "run", "--force-dirty", "matrix")
    assert code == 130
    (profile,) = pending(project)
    (reason,) = profile["header"]["incomplete"]
    assert (reason["reason"], reason["unit"]) == ("interrupted", "s")
    assert "incomplete: interrupted after" in out
    assert "3 of 3 jobs are left; run them with: perun run matrix --resume" in out

    perun("status", out="interrupted after")
    assert perun("status", "--json").json["pending"][0]["incomplete"].startswith("interrupted after")
    shown = perun("show", "0@p", "raw")
    assert shown.err.startswith("warning: this profile is incomplete: interrupted after")
    perun("add", "0@p")
    perun("run", "--force-dirty", "matrix", "--missing", "--dry-run", out="3 jobs in 1 version")

    (project.path / "go").touch()
    assert perun("run", "matrix", "--resume").out.count("registered") == 3
    missing = perun("run", "--force-dirty", "matrix", "--missing")
    assert missing.out == "nothing to run: no profile is missing\n"
    perun("run", "matrix", "--resume", code=2)


def test_an_interruption_says_that_nothing_is_stored(project, command, environment) -> None:
    (project.path / "wait.sh").write_text("touch waiting; exec sleep 60\n")
    one = ("collect", "-c", "sh wait.sh", "time", "--warmup", "0")
    code, out = interrupt(command, environment, project.path, *one)
    assert (code, out) == (130, "\ninterrupted: nothing is stored\n")
    two = ("run", "job", "-c", "time", "-b", "true", "-b", "sh wait.sh")
    code, out = interrupt(command, environment, project.path, *two)
    assert code == 130
    assert out.endswith("\ninterrupted: 1 of 2 jobs has a profile; nothing is stored of the rest\n")
    assert len(pending(project)) == 1


@pytest.mark.parametrize("batch", ["memory"], indirect=True)
def test_check_does_not_compare_it(perun, project, command, environment, batch) -> None:
    (project.path / ".perun/local.yml").write_text(
        MATRIX.format(collector=COLLECTORS[batch], registering="false").replace("[a, b, c]", "[a]")
    )
    (project.path / "go").touch()
    perun("run", "--force-dirty", "matrix")
    perun("add", "0@p")
    project.git("commit", "--quiet", "--allow-empty", "-m", "Next")
    (project.path / "go").unlink()
    interrupt(command, environment, project.path, "run", "--force-dirty", "matrix")
    perun("add", "0@p")

    found = perun("check", "head", "--json", "--fail-on", "maybe").json
    (comparison,) = found["comparisons"]
    assert comparison["incomplete"].startswith("the target is incomplete (interrupted after")
    assert {change["result"] for change in comparison["changes"]} == {"Unknown"}
    assert found["summary"]["optimizations"] == 0
    text = perun("check", "head").out
    assert "incomplete: the target is incomplete (interrupted after" in text
    assert "--force" in text
    assert not list((project.path / ".perun/objects").rglob("*.changes"))

    forced = perun("check", "--force", "head").out
    assert "compared nevertheless, as --force asks for" in forced
    assert perun("check", "--force", "head", "--json").json["summary"]["optimizations"]
    markdown = perun("check", "head", "--format", "markdown").out
    assert "Incomplete profiles" in markdown
    assert "is incomplete (interrupted after" in perun("check", "head", "--format", "junit").err

    # Measured again it is compared, and the incomplete one is not looked at any more.
    (project.path / "go").touch()
    perun("run", "matrix", "--resume")
    perun("add", "0@p")
    again = perun("check", "head", "--json").json
    assert [one["incomplete"] for one in again["comparisons"]] == [None]


def test_a_time_limit_keeps_what_was_recorded(perun: Any, project: Any, batch: str) -> None:
    for limit in (1.5, 12.0, 60.0):  # a busy machine may not have started the program so soon
        collector = COLLECTORS[batch].replace("params: {", f"params: {{timeout: {limit}, ")
        (project.path / ".perun/local.yml").write_text(
            MATRIX.format(collector=collector, registering="false").replace("[a, b, c]", "[a]")
        )
        for path in (project.path / ".perun/jobs").glob("*.perf"):
            path.unlink()
        done = perun("run", "--force-dirty", "matrix", check=False)
        if (project.path / "waiting").exists():
            break
    assert done.code == 0, done
    assert f"incomplete: stopped by the time limit of {limit:g} s" in done.out
    assert "1 profile is incomplete; measure again with: perun run matrix --resume" in done.err
    (profile,) = pending(project)
    assert profile["header"]["incomplete"] == [{"reason": "timeout", "amount": limit, "unit": "s"}]


@pytest.mark.parametrize("batch", ["memory"], indirect=True)
def test_a_killed_command_and_termination(perun, project, command, environment, batch) -> None:
    write_matrix(project, "{name: memory, params: {unwind: none}}")
    code, _ = interrupt(command, environment, project.path, "run", "-f", "matrix", number=signal.SIGTERM)
    assert code == 128 + signal.SIGTERM
    (profile,) = pending(project)
    assert profile["header"]["incomplete"][0]["reason"] == "interrupted"
    perun("rm", "0@p")
    perun("collect", "-f", "-c", "sh -c 'kill -9 $$'", "memory", "--unwind", "none")
    (profile,) = pending(project)
    assert profile["header"]["incomplete"] == [{"reason": "killed", "amount": 9, "unit": "signal"}]
    assert "killed by SIGKILL" in perun("status").out


def test_nothing_is_kept_of_interrupted_times(perun, project, command, environment) -> None:
    compile_steps(project.path)
    write_matrix(project, "{name: time, params: {warmup: 0, repeat: 1}}")
    code, out = interrupt(command, environment, project.path, "run", "-f", "matrix")
    assert (code, pending(project)) == (130, [])
    assert "3 of 3 jobs are left" in out


def test_a_later_release_may_know_more_reasons(perun, project, write_profile) -> None:
    path = write_profile("a.perf")
    profile = json.loads(path.read_bytes())
    profile["header"]["incomplete"] = [{"reason": "throttled", "amount": 3, "unit": "times"}, "odd"]
    path.write_text(json.dumps(profile))
    perun("add", "a.perf")
    assert "throttled (3 times); odd" in perun("status").out
    assert os.listdir(project.path / ".perun/jobs") == [".index"]


def test_lost_events_are_tried_again(perun: Any, project: Any, fake: str) -> None:
    """They fail nothing and do not count as done, also where the profiles themselves have to be read."""
    (project.path / ".perun/local.yml").write_text(
        "vcs: {type: git, url: ..}\ncmds: [app]\nargs: ['lost=7', 'amount=2']\n"
        f"collectors: [{fake}]\nprofiles: {{register_after_run: true}}\n"
    )
    done = perun("run", "matrix")
    assert "incomplete: 7 events lost" in done.out
    assert "1 profile is incomplete; measure again with: perun run matrix --resume" in done.err
    registered = perun("status", "--json").json["registered"]
    assert {one["args"]: one["incomplete"] for one in registered} == {
        "lost=7": "7 events lost",
        "amount=2": None,
    }
    shutil.rmtree(project.path / ".perun/cache")
    assert perun("run", "matrix", "--missing", "--dry-run").lines[1].startswith("  app lost=7 (fake")
    project.write({"mended": ""})
    assert perun("run", "-f", "matrix", "--missing").out.count("registered") == 1
    assert perun("run", "matrix", "--missing").out == "nothing to run: no profile is missing\n"
