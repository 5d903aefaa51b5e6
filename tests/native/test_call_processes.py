"""Calls of several processes: in the profile, and in what is made of it for other tools."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from perun.collect.complexity.build import ComplexityParams
from perun.collect.complexity.collector import ComplexityCollector
from perun.collect.trace import TraceCollector
from perun.collect.trace.params import TraceParams
from perun.plugin.api import CollectContext, Run, ViewContext
from perun.profile.factory import Profile
from perun.view.flamegraph import PLUGIN, FlameParams

PROGRAMS = Path(__file__).with_name("programs")
CALLS = 30
EXECUTED = """
#include <string.h>
#include <unistd.h>
int second(void) { return 0; }
int first(char **arguments) { return execl(arguments[0], arguments[0], "again", (char *)0); }
int main(int count, char **arguments) { return count > 1 ? second() : first(arguments); }
"""


def recorded(library: Path, folder: Path, source: str, args: str = "") -> Profile:
    params = ComplexityParams(files=(str(PROGRAMS / source),), compile_flags="-O1 -fno-inline")
    run = Run("program", args, cwd=folder, environ=dict(os.environ))
    return ComplexityCollector(library).collect(run, params, CollectContext(folder))


def counted(profile: Profile) -> dict[int, dict[str, int]]:
    """How often each function was called, by process."""
    found: dict[int, Counter[str]] = {}
    for group in profile.groups():
        of_process = found.setdefault(group.constants["process"], Counter())
        of_process[str(group.constants["uid"]).partition("(")[0]] += group.size
    return {process: dict(found[process]) for process in sorted(found)}


def chrome(profile: Profile) -> list[dict[str, Any]]:
    out = io.StringIO()
    PLUGIN().render(profile, FlameParams(format="chrome"), out, ViewContext())
    events: list[dict[str, Any]] = json.loads(out.getvalue())["traceEvents"]
    return events


def check_forks(profile: Profile) -> None:
    """What the program that forks twice leaves in a profile and in its Chrome trace."""
    processes = counted(profile)
    parent, *children = processes
    assert processes[parent] == {"main": 1, "spawn": 2, "work": CALLS}
    assert [processes[child] for child in children] == [{"in_child": 1, "work": CALLS}] * 2
    events = chrome(profile)
    spans = [event for event in events if event["ph"] == "X"]
    assert Counter(event["pid"] for event in spans) == {
        process: sum(own.values()) for process, own in processes.items()
    }
    # Each has one thread, which has the number of its process.
    assert all(event["tid"] == event["pid"] for event in spans)
    named = {(one["name"], one["pid"], one["args"]["name"]) for one in events if one["ph"] == "M"}
    assert {(pid, name) for what, pid, name in named if what == "thread_name"} == {
        (pid, "main thread") for pid in processes
    }
    programs = {(pid, name) for what, pid, name in named if what == "process_name"}
    assert programs == {(pid, "trace_fork") for pid in processes}
    # A child begins after its parent has begun to wait for it; not always before the end of that, as times
    # leave out what recording itself took. Numbers of processes may wrap around: they tell no order.
    waits = [event for event in spans if event["name"].startswith("spawn")]
    begun_at = sorted(one["ts"] for one in spans if one["name"].startswith("in_child"))
    for begun, wait in zip(begun_at, sorted(waits, key=lambda event: event["ts"]), strict=True):
        assert wait["ts"] < begun


def test_forks(complexity_runtime: Path, tmp_path: Path) -> None:
    check_forks(recorded(complexity_runtime, tmp_path, "trace_fork.c", str(CALLS)))


def test_forks_under_uftrace(tmp_path: Path) -> None:
    if not shutil.which("uftrace"):
        pytest.skip("uftrace is not installed")
    program = tmp_path / "trace_fork"
    flags = ("-g", "-O0")  # else `work` is too short to be patched
    subprocess.run(["cc", *flags, PROGRAMS / "trace_fork.c", "-o", program], check=True)
    run = Run("./trace_fork", str(CALLS), cwd=tmp_path, environ=dict(os.environ))
    params = TraceParams(engine="uftrace", output_handling="suppress", timeout=60.0)
    (tmp_path / "scratch").mkdir()
    check_forks(TraceCollector().collect(run, params, CollectContext(tmp_path / "scratch")))


def test_one_process_has_no_number(complexity_runtime: Path, tmp_path: Path) -> None:
    profile = recorded(complexity_runtime, tmp_path, "trace_threads.c", "10")
    assert not any("process" in group.constants for group in profile.groups())
    assert {event["pid"] for event in chrome(profile)} == {1}


def test_a_process_that_executes_another_program_is_one(complexity_runtime: Path, tmp_path: Path) -> None:
    (tmp_path / "executed.c").write_text(EXECUTED)
    profile = recorded(complexity_runtime, tmp_path, str(tmp_path / "executed.c"))
    assert profile["trace"]["processes"] == 2
    assert {str(group.constants["uid"]) for group in profile.groups()} >= {"main", "first", "second"}
    assert {event["pid"] for event in chrome(profile)} == {1}
