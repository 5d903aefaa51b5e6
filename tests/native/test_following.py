"""Other programs that the command executes: `perun collect trace --follow-children`."""

from __future__ import annotations

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
from perun.collect.trace import TraceCollector
from perun.collect.trace.engines.ebpf import EbpfEngine
from perun.collect.trace.params import TraceParams
from perun.core.errors import UsageError
from perun.plugin.api import CollectContext, Run
from perun.profile.factory import Profile
from traced import COUNTS, calls, plain

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
def follow(programs: Path) -> Follow:
    """Trace a command, or a script of the shell, with all that it executes."""

    def traced(command: str, script: str = "", **params: Any) -> Profile:
        if script:
            file = programs / command
            file.write_text(f"#!/bin/sh\n{script}\n")
            file.chmod(0o755)
        scratch = programs / "scratch"
        scratch.mkdir(exist_ok=True)
        run = Run(command, "", cwd=programs, environ=dict(os.environ))
        given = {"output_handling": "suppress", "timeout": 60.0, "follow_children": True, **params}
        return TraceCollector().collect(run, TraceParams(**given), CollectContext(scratch))

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
    source = programs / "first.c"
    source.write_text(
        "#include <stdlib.h>\n__attribute__((noinline)) int own(int n) { return n + 1; }\n"
        'int main(void) { return own(0) - 1 + system("./trace_list 50"); }\n'
    )
    subprocess.run(["cc", "-g", "-O1", "-o", programs / "first", source], check=True)
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
