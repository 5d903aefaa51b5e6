"""Programs that help Perun, and that nothing else starts one."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perun.core.process import programs

SOURCE = Path(programs.__file__).parents[2]
STARTERS = {"subprocess", "pty", "multiprocessing", "pexpect"}
SPAWNS = {"fork", "forkpty", "posix_spawn", "posix_spawnp", "popen", "system"}
CALLS = SPAWNS | {"execv", "execve", "execvp", "execvpe"}
ALLOWED = {"island/supervisor.py", "island/program_runner.py"}
"""What runs beside a measured Python program, where nothing of Perun is."""


def starters(path: Path) -> list[str]:
    """What the module has that starts programs."""
    found = []
    for node in ast.walk(ast.parse(path.read_bytes())):
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
    done = programs.run(["sh", "-c", "cat; echo no >&2; exit 3"], given=b"yes")
    assert done == (3, b"yes", b"no\n")
    assert programs.run(["sh", "-c", "kill -9 $$"]).code == -signal.SIGKILL
    with pytest.raises(FileNotFoundError):
        programs.run(["/there/is/none"])


def test_time_is_limited_and_all_that_was_started_ends(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    with pytest.raises(programs.TimeoutExpired):
        programs.run(["sh", "-c", f"echo $$ > {file}; sleep 3017 & echo $! >> {file}; wait"], timeout=1)
    await_end(file.read_text().split())


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
    await_end((file.read_text() + second.read_text()).split())


def await_end(pids: list[str]) -> None:
    """Wait until none of the processes runs; the time is only for one that never ends."""
    end = time.monotonic() + 60
    while any(map(runs, pids)):
        assert time.monotonic() < end
        time.sleep(0.02)


def runs(pid: str) -> bool:
    """Whether the process runs; one that waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
