"""How a command is ended, and what is known of its run then."""

import ast
import os
import re
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perun.core import atomic
from perun.core.errors import JobFailed
from perun.core.process import ending, programs
from perun.core.process.command import Run
from perun.core.process.execution import INTERRUPTED, Execution, RunSample
from perun.core.process.programs import LAUNCHER
from perun.store.files import ON_DISK
from shared import is_running, wait_for


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Run]:
    """A shell script to run; `{here}` in it is its folder."""

    def make(script: str, workload: str = "") -> Run:
        path = tmp_path / "script"
        path.write_text("#!/bin/sh\n" + script.format(here=tmp_path))
        path.chmod(0o755)
        return Run("./script", workload=workload, cwd=tmp_path, environ={"PATH": "/usr/bin:/bin"})

    return make


@contextmanager
def interrupted_once_there_is(file: Path) -> Iterator[None]:
    """As Ctrl-C, as soon as the program has written the file."""

    def interrupt() -> None:
        while not file.exists():
            time.sleep(0.005)
        # As the system does where no other thread takes the signal.
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    yield
    thread.join()


def record(run: Run, scratch: Path, started: Path) -> RunSample:
    with Execution(run, scratch, single_run=True) as execution, interrupted_once_there_is(started):
        return execution.record()


def test_it_may_tidy_up(run: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "GRACE", 60.0)  # it ends long before
    script = "trap 'touch {here}/tidied; exit 3' TERM\ntouch {here}/started\nsleep 1000 & wait\n"
    sample = record(run(script), tmp_path, tmp_path / "started")
    assert (tmp_path / "tidied").exists()
    assert (sample.early, os.waitstatus_to_exitcode(sample.status)) == (INTERRUPTED, 3)
    assert isinstance(sample.interruption, KeyboardInterrupt)


def test_it_is_killed_where_asking_does_not_help(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(ending, "GRACE", 0.05)
    script = "trap '' TERM\ntouch {here}/started\nwhile :; do sleep 1000; done\n"
    sample = record(run(script), tmp_path, tmp_path / "started")
    assert os.WIFSIGNALED(sample.status) and os.WTERMSIG(sample.status) == signal.SIGKILL


def test_whoever_wants_whole_runs_gets_the_interruption(run: Callable[..., Run], tmp_path: Path) -> None:
    command = run("touch {here}/started\nsleep 1000\n")
    with Execution(command, tmp_path) as execution, interrupted_once_there_is(tmp_path / "started"):  # noqa: SIM117
        with pytest.raises(KeyboardInterrupt):
            execution.run()


def test_what_runs_once_may_read_a_pipe(run: Callable[..., Run], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text("seven"))
    command = run("exit $(wc -c)\n", "< pipe")
    writer.start()
    with Execution(command, tmp_path, single_run=True) as execution:
        assert os.waitstatus_to_exitcode(execution.run().status) == 5
    writer.join()
    with pytest.raises(JobFailed, match="more than once"), Execution(command, tmp_path):
        pass


@pytest.mark.parametrize("ends", [True, False])
def test_what_it_leaves_running_ends_with_it_only_where_that_is_asked_for(run, tmp_path, ends: bool) -> None:
    command = run("sleep 1000 & echo $! > {here}/left; exit 3\n")
    with Execution(command, tmp_path, end_group=ends) as execution:
        assert os.waitstatus_to_exitcode(execution.record().status) == 3
    left = int((tmp_path / "left").read_text())
    try:
        watched = os.pidfd_open(left)
    except ProcessLookupError:
        assert ends
        return
    try:
        if ends:
            assert select.select([watched], [], [], 60)[0]
        else:
            signal.pidfd_send_signal(watched, signal.SIGKILL)  # fails where it has ended
    finally:
        os.close(watched)


# -- What is measured ends where Perun is killed, and where what it measures with is -----------------


MEASURING = """
import os, sys
from pathlib import Path
from perun.core.process.command import Run
from perun.core.process.execution import Execution
folder = Path(os.getcwd())
for script in sys.argv[1:]:
    with Execution(Run("sh", script, cwd=folder, environ=dict(os.environ)), folder) as execution:
        execution.run()
"""
# Children in the group of the command and in a session of their own; each keeps a file of the test open.
FAMILY = "exec 9> held; sleep 600 & setsid sleep 600 & sleep 600; true\n"
DAEMON = "exec 9> kept; setsid sleep 600 > /dev/null 2>&1 & sleep 0\n"


@contextmanager
def measuring(folder: Path, *scripts: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs scripts, one after another."""
    names = []
    for number, script in enumerate(scripts):
        (folder / f"script{number}").write_text(script)
        names.append(f"script{number}")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", MEASURING, *names], cwd=folder, env=environ) as process:
        try:
            yield process
        finally:
            process.kill()
            for file in ("held", "kept"):
                for pid in holders(folder / file):
                    os.kill(pid, signal.SIGKILL)


def holders(file: Path) -> list[int]:
    """The processes that have this file open as descriptor 9."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "fd" / "9") == str(file):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def soon(holds: Callable[[], bool]) -> bool:
    for _ in range(1200):
        if holds():
            return True
        time.sleep(0.02)
    return False


def test_nothing_outlives_perun(tmp_path: Path) -> None:
    with measuring(tmp_path, FAMILY) as process:
        assert soon(lambda: len(holders(tmp_path / "held")) == 4)
        process.kill()
        assert soon(lambda: not holders(tmp_path / "held"))


def test_what_an_earlier_command_left_running_goes_on(tmp_path: Path) -> None:
    with measuring(tmp_path, DAEMON, FAMILY) as process:
        assert soon(lambda: len(holders(tmp_path / "held")) == 4)
        assert len(holders(tmp_path / "kept")) == 1
        process.kill()
        assert soon(lambda: not holders(tmp_path / "held"))
        assert len(holders(tmp_path / "kept")) == 1


def test_nothing_outlives_an_engine_that_is_killed(tmp_path: Path) -> None:
    """The command kills the program that has started it and measures it."""
    (tmp_path / "script").write_text("exec 9> held; sleep 600 & kill -9 $PPID; sleep 600\n")
    engine = [str(LAUNCHER), str(tmp_path / "result"), "/bin/sh", "sh", "script"]
    run = Run("sh", "script", cwd=tmp_path, environ=dict(os.environ))
    with Execution(run, tmp_path, engine=engine) as execution:
        assert os.WTERMSIG(execution.run().status) == signal.SIGKILL
    assert soon(lambda: not holders(tmp_path / "held"))


# -- What a command writes reaches the file and the output of Perun, whatever becomes of one of them


SIZE = 1_000_000
"""Bytes that the command writes, more than a pipe holds."""
COPYING = """
import os, resource, sys
from pathlib import Path
from perun.core.process.command import Run
from perun.core.process.execution import Execution
from perun.core.process.execution import Output

if len(sys.argv) > 3:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)
command = Run("head", args=f"-c {sys.argv[2]} /dev/zero", cwd=Path("/"), environ=dict(os.environ))
with Execution(command, Path(sys.argv[1]), output=Output.COPY, single_run=True) as execution:
    sys.exit(execution.run().status)
"""


def copying(folder: Path, output: int, *more: str) -> subprocess.Popen[bytes]:
    """A process that runs a command and copies what it writes to its own standard output."""
    return subprocess.Popen([sys.executable, "-c", COPYING, str(folder), str(SIZE), *more], stdout=output)


def ended(process: subprocess.Popen[bytes]) -> int:
    """The status of a process; one that waits for ever is killed."""
    try:
        return process.wait(timeout=60)
    finally:
        process.kill()
        process.wait()


def test_a_command_whose_output_nobody_reads_any_more_goes_on(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    process = copying(tmp_path, writer)
    os.close(writer)
    os.read(reader, 1)
    os.close(reader)
    assert ended(process) == 0 and (tmp_path / "output").stat().st_size == SIZE


def test_all_output_goes_through_a_non_blocking_pipe(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    process = copying(tmp_path, writer)
    os.close(writer)
    with open(reader, "rb") as file:
        assert len(file.read()) == SIZE
    assert ended(process) == 0 and (tmp_path / "output").stat().st_size == SIZE


def test_output_is_shown_where_its_file_cannot_grow(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    process = copying(tmp_path, writer, "100000")
    os.close(writer)
    with open(reader, "rb") as file:
        assert len(file.read()) == SIZE
    assert ended(process) == 0 and (tmp_path / "output").stat().st_size == 100_000


def test_a_line_that_is_appended_in_part_only_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        ON_DISK.append(path, b"a" * 60)
        with pytest.raises(OSError, match="too large"), atomic.PathErrors(path):
            ON_DISK.append(path, b"b" * 60)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


# -- Threads that leave requests to end to the main thread -------------------------------------------


def test_an_interruption_that_the_main_thread_holds_back_waits_for_it():
    """Another thread that took it would leave the main thread waiting."""
    go_on = threading.Event()
    beside = threading.Thread(target=go_on.wait)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    ending.start(beside)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    try:
        status = Path(f"/proc/self/task/{beside.native_id}/status").read_text()
        blocked = int(status.partition("SigBlk:")[2].split()[0], 16)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            assert blocked & 1 << number - 1
        assert not blocked & 1 << signal.SIGCHLD - 1
    finally:
        go_on.set()
        beside.join()


# -- Programs that help Perun, and that nothing else starts one --------------------------------------


SOURCE = Path(programs.__file__).parents[2]
STARTERS = {"subprocess", "pty", "multiprocessing", "pexpect"}
SPAWNS = {"fork", "forkpty", "posix_spawn", "posix_spawnp", "popen", "system"}
CALLS = SPAWNS | {"execv", "execve", "execvp", "execvpe"}
MAY_START = re.compile(rf"\b(?:{'|'.join(STARTERS)})\b|\bos\.(?:{'|'.join(CALLS)})\b")
ALLOWED = {"island/supervisor.py", "island/program_runner.py", "harness/_asv_runner.py"}
"""What runs beside or in a measured Python program, where nothing of Perun is."""


def starters(path: Path) -> list[str]:
    """What the module has that starts programs."""
    found: list[str] = []
    text = path.read_text("utf-8")
    for node in ast.walk(ast.parse(text)) if MAY_START.search(text) else ():  # to parse all takes seconds
        if isinstance(node, ast.Import):
            found += [one.name for one in node.names if one.name.split(".")[0] in STARTERS]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            if node.module.split(".")[0] in STARTERS and node.module != "multiprocessing.connection":
                found.append(node.module)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of = node.func.value
            if isinstance(of, ast.Name) and of.id == "os" and node.func.attr in CALLS:
                found.append(f"os.{node.func.attr}")
    return found


def test_nothing_else_starts_programs() -> None:
    modules = {path.relative_to(SOURCE).as_posix(): path for path in SOURCE.rglob("*.py")}
    outside = {name: path for name, path in modules.items() if not name.startswith("core/process/")}
    found = {name: starters(path) for name, path in outside.items() if name not in ALLOWED}
    assert {name: what for name, what in found.items() if what} == {}
    assert len(outside) > 100


def test_what_it_gives() -> None:
    assert programs.run(["sh", "-c", "cat; echo no >&2; exit 3"], given=b"yes") == (3, b"yes", b"no\n")
    assert programs.run(["sh", "-c", "kill -9 $$"]).code == -signal.SIGKILL
    with pytest.raises(FileNotFoundError):
        programs.run(["/there/is/none"])


def test_time_is_limited_and_all_that_was_started_ends(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    with pytest.raises(programs.TimeoutExpired):
        programs.run(["sh", "-c", f"echo $$ > {file}; sleep 3017 & echo $! >> {file}; wait"], timeout=1)
    wait_for(lambda: not any(map(is_running, map(int, file.read_text().split()))))


def test_an_exception_ends_it() -> None:
    with pytest.raises(ValueError), programs.Program(["sleep", "3017"]) as program:
        raise ValueError
    assert program.returncode == -signal.SIGKILL


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=lambda one: one.name)
@pytest.mark.parametrize("foreground", [False, True])
def test_it_ends_with_perun(how: signal.Signals, foreground: bool, tmp_path: Path) -> None:
    file = tmp_path / "pids"
    shell = f"echo $$ > {file}; sleep 3017 & echo $! >> {file}.1; mv {file}.1 {file}.2; wait"
    call = f"programs.run(['sh', '-c', {shell!r}], foreground={foreground})"
    started = tmp_path / "started"  # by then the guard knows of it
    code = f"""
from pathlib import Path
from perun.core.process import programs
class Program(programs.Program):
    def __init__(self, *words, **options):
        super().__init__(*words, **options)
        Path({str(started)!r}).touch()
programs.Program = Program
{call}
"""
    source = str(SOURCE.parent)
    process = subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": source}
    )
    second = tmp_path / "pids.2"
    while not (second.exists() and started.exists()):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(how)
    process.wait()
    wait_for(lambda: not any(map(is_running, map(int, (file.read_text() + second.read_text()).split()))))


def test_it_ends_where_perun_is_killed_before_its_number_is_known(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    code = f"""
import os, time
from pathlib import Path
from perun.core.process import ending, programs
def killed(*given):
    while not Path({str(file)!r}).exists():
        time.sleep(0.01)
    os.kill(os.getpid(), 9)
ending.SignalGuard.add = killed
programs.run(["sh", "-c", "sleep 3017 & echo $$ $! > {file}.1; mv {file}.1 {file}; wait"])
"""
    ended = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(SOURCE.parent)})
    assert ended.returncode == -signal.SIGKILL
    wait_for(lambda: not any(map(is_running, map(int, file.read_text().split()))))


def test_a_process_that_ends_while_it_is_listed_has_started_nothing() -> None:
    for _ in range(100):
        process = subprocess.Popen(["true"])
        waiting = threading.Thread(target=process.wait)
        waiting.start()
        while waiting.is_alive():
            assert ending.descendants(process.pid) == {}
