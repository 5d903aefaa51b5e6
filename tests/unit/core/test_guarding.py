"""What is measured ends where Perun is killed, and where what it measures with is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from perun.core.process.command import Run
from perun.core.process.execution import Execution
from perun.core.process.programs import LAUNCHER

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
