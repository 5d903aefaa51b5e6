"""Other programs that the command executes: `perun collect trace --follow-children`."""

import io
import json
import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compiling import CompilerCache
from perun.collect.complexity.build import ComplexityParams
from perun.collect.complexity.collector import ComplexityCollector
from perun.collect.trace import TraceCollector
from perun.collect.trace.engines.ebpf import EbpfEngine
from perun.collect.trace.params import TraceParams
from perun.core.errors import UsageError
from perun.plugin.api import CollectContext, Run, ViewContext
from perun.profile.factory import Profile
from perun.view.flamegraph import PLUGIN, FlameParams
from traced import COUNTS, built, calls, plain, script

Follow = Callable[..., Profile]


@pytest.fixture(autouse=True)
def _can_trace() -> None:
    if not shutil.which("cc"):
        pytest.skip("there is no compiler")
    if why := ": ".join(filter(None, EbpfEngine(os.environ).unavailable())):
        pytest.skip(f"ebpf: {why}")


@pytest.fixture
def programs(compiled_once: CompilerCache, tmp_path: Path) -> Path:
    """A folder with programs, one of which throws exceptions, one forks."""
    for source in ("trace_list.c", "trace_exceptions.cpp", "trace_fork.c"):
        shutil.copy(plain(compiled_once, source), tmp_path / source.partition(".")[0])
    return tmp_path


@pytest.fixture
def follow(programs: Path, cache: Path) -> Follow:
    """Trace a command, or a script of the shell, with all that it executes."""

    def traced(command: str, text: str = "", **params: Any) -> Profile:
        if text:
            script(programs / command, text)
        scratch = programs / "scratch"
        scratch.mkdir(exist_ok=True)
        run = Run(command, "", cwd=programs, environ=dict(os.environ))
        given = {"output_handling": "suppress", "timeout": 60.0, "follow_children": True, **params}
        return TraceCollector().collect(run, TraceParams(**given), CollectContext(scratch, cache=cache))

    return traced


def counts(*of: tuple[str, str]) -> Counter[str]:
    return sum((Counter(COUNTS[one]) for one in of), Counter())


def test_every_program_of_a_script(follow: Follow) -> None:
    """Each as often as it is executed, also instead of the shell, and in processes that it forks."""
    script = "./trace_list 50\n/bin/true\n./trace_exceptions 50\n./trace_list 50\nexec ./trace_fork 30"
    profile = follow("./script", script)
    listed = ("trace_list.c", "50")
    assert calls(profile) == counts(listed, ("trace_exceptions.cpp", "50"), listed, ("trace_fork.c", "30"))
    trace = profile["trace"]
    assert (trace["engine"], trace["lost"], trace["missed-exits"]) == ("ebpf", 0, 75)
    (untraced,) = (note for note in trace["notes"] if "executed and that are not" in note)
    assert "true (" in untraced and "stripped" in untraced
    assert trace["overhead"].get("costs")


def test_the_named_functions_of_each_program(follow: Follow) -> None:
    script = "./trace_list 50; ./trace_fork 30"
    profile = follow("./script", script, strategy="custom", func=("list_search", "work"))
    assert calls(profile) == {"list_search": 50, "work": 90}
    sizes = [one["structure-unit-size"] for _, one in profile.all_resources() if one["uid"] == "list_search"]
    assert len(set(sizes)) > 1


def test_a_program_that_executes_another(follow: Follow, programs: Path) -> None:
    built(
        programs / "first", "-g -O1",
        "#include <stdlib.h>\n__attribute__((noinline)) int own(int n) { return n + 1; }\n"
        'int main(void) { return own(0) - 1 + system("./trace_list 50"); }\n',
    )  # fmt: skip
    assert calls(follow("./first")) == counts(("trace_list.c", "50")) + Counter(own=1, main=1)
    alone = follow("./first", follow_children=False)
    assert calls(alone) == {"own": 1, "main": 1}
    (note,) = (note for note in alone["trace"]["notes"] if "executed and that are not" in note)
    assert "--follow-children" in note


@pytest.mark.parametrize(
    ("params", "told"),
    [({"engine": "uftrace"}, "needs the engine ebpf"), ({"dynamic": ("list.c:1",)}, "follows functions")],
)
def test_what_it_does_not_go_with(follow: Follow, params: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        follow("./trace_list", **params)


def test_what_the_command_leaves_running_goes_on(follow: Follow, programs: Path) -> None:
    """Nobody lets a program that executes another go on when the loader has ended, so none may stop then."""
    loop = "i=0; while [ $i -lt 1000 ]; do /bin/true; i=$((i + 1)); done; echo end > ended"
    script = "\n".join(f"(cd {programs}; {loop}{number}) </dev/null >/dev/null 2>&1 &" for number in range(2))
    follow("./script", f"{script}\n./trace_list 50")
    ended = [programs / f"ended{number}" for number in range(2)]
    deadline = time.monotonic() + 60
    while not all(one.exists() for one in ended) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [one.name for one in ended if not one.exists()] == []


# -- Calls of several processes: in the profile, and in what is made of it for other tools -----------


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
