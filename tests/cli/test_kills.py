"""Perun is ended by a signal while what it has started runs: nothing of that goes on."""

import itertools
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

SLEEP = "sleep 3017"
LONG = f"sh -c '{SLEEP} & {SLEEP}; true'"
"""A command with two processes, of which neither is the one that is started."""
COMMANDS = {
    "a build of fuzz": ["fuzz", "-b", "./prog", "-w", "seeds", "-o", "out", "--build", LONG],
    "the preprocessor of bounds": ["collect", "bounds", "-s", "pipe.c", "--timeout", "0"],
    "a process of bounds": ["collect", "bounds", "-s", "slow.c", "--timeout", "0"],
    "a generator of workloads": ["run", "matrix"],
    "a build of complexity": ["collect", "-c", "./prog", "complexity", "--build", LONG],
    "a run of time": ["collect", "-c", LONG, "time"],
    "a run of memory": ["collect", "-c", LONG, "memory"],
    "a run of bench": ["bench", LONG],
    "a build of compare": ["compare", "HEAD", "HEAD~1"],
    "a question of doctor": ["doctor"],
    "git that answers": ["log"],
    "a filter of git": ["collect", "-m", "HEAD~1", "-c", "true", "time"],
}
SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]
CASES_OF_SWITCH = " ".join(f"case {one}: k = {one + 1}; i += {one % 7}; break;" for one in range(3000))
SLOW = "".join(
    f"int f{one}(int n, int k) {{ int i = 0; while (i < n) switch (k) {{ {CASES_OF_SWITCH} }} return i; }}\n"
    for one in range(8)
)
"""Source whose analysis takes more than a minute of a processor."""


@pytest.fixture
def scene(project: Any, perun: Any) -> Path:
    """A project in which each command waits for something for ever, as two versions."""
    place: Path = project.path
    (place / "prog").write_text(f"#!/bin/sh\n{SLEEP}\n")
    (place / "prog").chmod(0o755)
    (place / "seeds").mkdir()
    (place / "seeds" / "one").write_text("one")
    (place / "slow.c").write_text(SLOW)
    (place / "pipe.c").write_text('#include "pipe.h"\n')
    os.mkfifo(place / "pipe.h")
    tools = place / "tools"
    tools.mkdir()
    other = '[ "$*" = --version ] || exec /usr/bin/git "$@"'
    (tools / "git").write_text(f"#!/bin/sh\n{other}\n{SLEEP} & {SLEEP}\n")
    (tools / "git").chmod(0o755)
    return place


def marked(mark: str) -> dict[int, str]:
    """The processes that have the mark in their environment, with their words."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return found


def has_guard(pid: int) -> bool:
    """Whether what the process has started is ended where it is killed."""
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = one.read_bytes().split(b"\0")
            if b"guard" in words[0] and words[1:2] == [str(pid).encode()]:
                return True
    return False


def until(holds: Callable[[], object], seconds: float = 120.0) -> bool:
    """Whether it holds in the end; the time is only for what never ends."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def check(words: list[str], scene: Path, environ: dict[str, str], what: str, how: signal.Signals) -> None:
    """Start the command, end it by the signal when it waits for another program, and find none left."""
    mark = f"MARK_OF_A_TEST={uuid.uuid4()}"
    environ = {**environ, mark.partition("=")[0]: mark.partition("=")[2]}
    if what == "git that answers":
        (scene / "tools" / "git").write_text(f"#!/bin/sh\n{SLEEP} & {SLEEP}\n")
    if what in ("a question of doctor", "git that answers"):
        environ["PATH"] = f"{scene / 'tools'}:{environ['PATH']}"
    waits = {"the preprocessor of bounds": "cc1", "a process of bounds": "bounds.serving"}.get(what, SLEEP)
    with open(scene / "said", "w+") as said:
        process = subprocess.Popen(
            words, cwd=scene, env=environ, stdin=subprocess.DEVNULL,
            stdout=said, stderr=said, start_new_session=True,
        )  # fmt: skip
        try:
            there = until(lambda: process.poll() is not None or waits in " ".join(marked(mark).values()))
            said.seek(0)
            assert there and process.poll() is None, said.read()
            if what == "git that answers":  # one that answers soon has none
                assert until(lambda: has_guard(process.pid))
            process.send_signal(how)
            process.wait(60)
            assert until(lambda: not marked(mark), 30), marked(mark)
        finally:
            process.kill()
            process.wait()
            for left in marked(mark):
                os.kill(left, signal.SIGKILL)


CASES = [
    (what, how)
    for what, how in itertools.product(COMMANDS, SIGNALS)
    if what != "a filter of git" or how == signal.SIGKILL  # git that changes files is waited for otherwise
]
USUAL = [(what, SIGNALS[number % 3]) for number, what in enumerate(list(COMMANDS)[:5])]
USUAL += [("git that answers", how) for how in SIGNALS]
USUAL += [("a filter of git", signal.SIGKILL)]
TIMES = 7
"""Kills of each command by each signal, in the slow run."""


@pytest.mark.parametrize(("what", "how", "times"), [
    *(pytest.param(*one, 1, id=f"{one[0]}-{one[1].name}") for one in USUAL),
    *(pytest.param(*one, TIMES, id=f"{one[0]}-{one[1].name}-often", marks=pytest.mark.slow) for one in CASES),
])  # fmt: skip
def test_nothing_goes_on(what, how, times, scene, perun, environment, command) -> None:
    configuration = "vcs: {type: git, url: ..}\ncmds: [./prog]\ncollectors: [{name: time}]\n"
    if what == "a generator of workloads":
        made = f'{{id: w, type: external, cmd: "{LONG}"}}'
        configuration += f"workloads: [w]\ngenerators: {{workload: [{made}]}}\n"
    elif what == "a build of compare":
        configuration += f'execute: {{pre_run: ["{LONG}"]}}\n'
    elif what == "a filter of git":
        (scene / "filter").write_text(f"#!/bin/sh\n{SLEEP} & {SLEEP}\n")
        (scene / "filter").chmod(0o755)
        git = ["git", "-C", scene, "config", "filter.slow.smudge", f"'{scene / 'filter'}'"]
        subprocess.run(git, check=True)
        (scene / ".git" / "info").mkdir(exist_ok=True)
        (scene / ".git" / "info" / "attributes").write_text("* filter=slow\n")
    (scene / ".perun" / "local.yml").write_text(configuration)
    perun("trust")
    for _ in range(times):
        check([*command, *COMMANDS[what]], scene, dict(environment), what, how)
