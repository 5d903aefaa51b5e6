"""The engine ebpf on real programs: namespaces, recursion, sampling, and what is left after a kill."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perun.collect._calls.events import UNKNOWN, CallEvents
from perun.collect.trace.engines.ebpf import PAUSE, EbpfEngine, _Pauses
from traced import Trace, calls, script

METHODS = ("session", "multi", "perf_event")
MOSTLY = ("session", *(pytest.param(one, marks=pytest.mark.slow) for one in METHODS[1:]))
"""The last one takes seconds: `make test` has the others where they matter."""
TRACING = """
import json, os, sys
from pathlib import Path
from perun.collect.trace.collector import TraceCollector
from perun.collect.trace.params import TraceParams
from perun.plugin.api import CollectContext, Run
folder = Path(os.getcwd())
run = Run(sys.argv[1], sys.argv[2], cwd=folder, environ=dict(os.environ))
profile = TraceCollector().collect(run, TraceParams(engine="ebpf"), CollectContext(folder))
print(json.dumps(profile["trace"]))
"""
"""A program that traces its arguments and prints the summary."""


@pytest.fixture(autouse=True)
def _can_trace() -> None:
    if not shutil.which("cc"):
        pytest.skip("there is no compiler")
    if why := ": ".join(filter(None, EbpfEngine(os.environ).unavailable())):
        pytest.skip(f"ebpf: {why}")


@pytest.fixture(params=MOSTLY)
def method(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each method of attaching probes that the kernel has."""
    monkeypatch.setattr(EbpfEngine, "forced_method", request.param)
    if why := EbpfEngine(os.environ).unavailable()[0]:
        pytest.skip(f"{request.param}: {why}")
    return str(request.param)


@pytest.fixture
def trace(trace: Trace) -> Trace:
    """Trace a command in the folder of the test: `trace("./trace_list", "100", func=("list_search",))`."""
    return lambda command, args="", **params: trace(Path(command), args, engine="ebpf", **params)


def test_deep_recursion(compiled: Callable[[str], Path], trace: Trace, method: str) -> None:
    """The kernel catches the returns of 64 nested calls only; the exits of the others are probed."""
    compiled("trace_recursion.c")
    profile = trace("./trace_recursion", "10000")
    assert calls(profile) == {"main": 1, "fibonacci": 1973, "is_even": 6, "is_odd": 5, "deep": 10_001}
    assert profile["trace"]["attached"] == method
    assert (profile["trace"]["missed-exits"], profile["trace"]["lost"]) == (0, 0)
    deep = {one["structure-unit-size"]: one for _, one in profile.all_resources() if one["uid"] == "deep"}
    assert sorted(deep) == list(range(10_001))
    # Each call contains the one that it makes.
    times = [deep[size]["amount"] for size in range(10_001)]
    assert times == sorted(times)
    assert sum(1 for one in deep.values() if one["caller"] == "main") == 1


def test_exits_that_cannot_be_recorded_are_counted(compiled, trace: Trace, method: str, monkeypatch) -> None:
    program = compiled("trace_recursion.c")
    monkeypatch.setenv("PATH", str(program.parent))  # there is no objdump
    profile = trace("./trace_recursion", "500")
    assert calls(profile)["deep"] == 501
    missing = 501 + 1 - 60  # with main, but for those whose returns are caught
    assert profile["trace"]["missed-exits"] == missing
    told = f"the exits of {missing} calls nested more than 60 deep are not recorded"
    assert any(told in note for note in profile["trace"]["notes"])


def test_what_held_up_the_thread_is_not_in_its_times() -> None:
    pauses = _Pauses()

    def left_out(*rows: tuple[int, int]) -> list[tuple[int, int]]:
        time, function = (np.array(column, np.int64) for column in zip(*rows, strict=True))
        count = len(rows)
        events = CallEvents(time, function, np.ones(count, np.bool_), np.full(count, UNKNOWN, np.int64))
        left = pauses.left_out(7, events)
        return list(zip(left.time.tolist(), left.function.tolist(), strict=True))

    assert left_out((10, 1), (20, 2)) == [(10, 1), (20, 2)]
    assert left_out((30, 3), (500, PAUSE), (540, 3), (60, PAUSE), (610, 4)) == [(30, 3), (40, 3), (50, 4)]
    assert left_out((620, 1)) == [(60, 1)]


def test_in_a_namespace_of_processes(compiled: Callable[[str], Path], tmp_path: Path) -> None:
    """As in a container: numbers of processes are others for the kernel than for the program."""
    unshare = ["unshare", "--pid", "--fork", "--mount-proc"]
    if not shutil.which("unshare"):
        pytest.skip("unshare is not installed")
    tried = subprocess.run([*unshare, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"no namespace of processes may be made: {tried.stderr}")
    program = compiled("trace_recursion.c")
    command = [*unshare, sys.executable, "-c", TRACING, f"./{program.name}", "200"]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["calls"] == 1 + 1973 + 11 + 201 and (found["missed-exits"], found["lost"]) == (0, 0)


def test_a_missing_library_is_named() -> None:
    """The loader is dynamically linked; libelf is hidden in a namespace of mounts."""
    linked = subprocess.run(
        ["ldd", EbpfEngine.folder / "perun_trace"], capture_output=True, text=True, check=True
    )
    library = next(line.split()[2] for line in linked.stdout.splitlines() if "libelf.so.1" in line)
    code = (
        "import os; from perun.collect.trace.engines.ebpf import EbpfEngine\n"
        "print(EbpfEngine(os.environ).unavailable())"
    )
    script = 'mount --bind /dev/null "$1" && exec "$2" -c "$3"'
    hidden = ["unshare", "--mount", "sh", "-c", script, "sh", library, sys.executable, code]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(hidden, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no namespace of mounts may be made: {done.stderr}")
    assert done.stdout == "('the library libelf.so.1 is missing', 'apt-get install libelf1 zlib1g')\n"


def test_what_was_not_traced_is_named(compiled: Callable[[str], Path], trace: Trace, tmp_path: Path) -> None:
    """The process executes the traced program, and starts others."""
    compiled("trace_list.c")
    script(tmp_path / "script", "/bin/true\n/bin/true\nexec ./trace_list 20")
    profile = trace("./script", binary="trace_list", strategy="custom", func=("list_search",))
    assert calls(profile) == {"list_search": 20}
    (note,) = (note for note in profile["trace"]["notes"] if "executed" in note)
    assert "not traced: /bin/true; " in note and "--follow-children" in note and "--binary (-b)" in note


@contextmanager
def family(folder: Path, compiled: Callable[[str], Path]) -> Iterator[subprocess.Popen[bytes]]:
    """Perun in a process of its own, which traces a program with children that does not end."""
    program = compiled("trace_family.c")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", TRACING, f"./{program.name}", ""]
    with subprocess.Popen(command, env=environ, cwd=folder, stdout=subprocess.PIPE) as process:
        try:
            assert _soon(lambda: len(_running(program)) == 3)
            yield process
        finally:
            process.kill()
            for left in _running(program):
                os.kill(left, signal.SIGKILL)


@pytest.mark.parametrize(
    "victim", ["perun", *(pytest.param(one, marks=pytest.mark.slow) for one in ("loader", "supervisor"))]
)
def test_nothing_traced_is_left(compiled: Callable[[str], Path], tmp_path: Path, victim: str) -> None:
    """Neither children nor what has left the session of the program."""
    with family(tmp_path, compiled) as process:
        program = tmp_path / "trace_family"
        (loader,) = _children(process.pid, "perun_trace")
        (supervisor,) = _children(loader, "perun_trace")
        os.kill({"perun": process.pid, "loader": loader, "supervisor": supervisor}[victim], signal.SIGKILL)
        assert _soon(lambda: not _running(program))
        assert _soon(lambda: not _running(EbpfEngine.folder / "perun_trace", tmp_path))


def _soon(holds: Callable[[], bool]) -> bool:
    for _ in range(600):
        if holds():
            return True
        time.sleep(0.05)
    return False


def _children(process: int, name: str) -> list[int]:
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(one) for one in children if Path(f"/proc/{one}/comm").read_text().strip() == name]


def _running(program: Path, argument: Path | None = None) -> list[int]:
    """The processes that run this program, one of whose arguments has this path in it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "exe") == str(program) and (
                argument is None or os.fsencode(argument) in (process / "cmdline").read_bytes()
            ):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def test_a_probe_that_is_named_counts_once(compiled: Callable[[str], Path], trace: Trace) -> None:
    """Where all USDT probes are traced, too."""
    compiled("trace_usdt.c")
    every = {"sort_begin#sort_end": 12, "tick": 11}
    chosen: dict[str, Any] = {"strategy": "custom", "with_usdt": True}
    assert calls(trace("./trace_usdt", **chosen)) == every
    assert calls(trace("./trace_usdt", usdt=("sort_begin", "tick"), **chosen)) == every
    one_in_four = {**every, "sort_begin#sort_end": 3}
    assert calls(trace("./trace_usdt", usdt=("sort_begin#4",), **chosen)) == one_in_four


@pytest.mark.parametrize("method", METHODS, indirect=True)
def test_sampled_calls(compiled: Callable[[str], Path], trace: Trace, method: str) -> None:
    """Of each function the first of so many calls; the others are not even written to the recording."""
    compiled("trace_recursion.c")
    func = ("fibonacci#100", "is_even#4", "is_odd", "deep#7")
    chosen: dict[str, Any] = {"strategy": "custom", "func": func}
    profile = trace("./trace_recursion", "200", **chosen)
    # Without sessions the kernel catches the returns of what is left out, too, up to its limit.
    lost = 0 if method == "session" else 20
    assert calls(profile) == {"fibonacci": 20, "is_even": 2, "is_odd": 5, "deep": 29 - lost}
    assert (profile["trace"]["missed-exits"], profile["trace"]["lost"]) == (0, lost)
    sizes = [one["structure-unit-size"] for _, one in profile.all_resources() if one["uid"] == "deep"]
    assert sorted(sizes) == list(range(200 - (28 - lost) * 7, 201, 7))


def test_sampled_calls_of_what_throws(compiled: Callable[[str], Path], trace: Trace, method: str) -> None:
    compiled("trace_exceptions.cpp")
    profile = trace("./trace_exceptions", "50", global_sampling=3)
    names = ("catcher", "middle", "thrower", "with_destructor")
    assert calls(profile) == {**dict.fromkeys(names, 17), "main": 1}
