"""The lock of a machine: builds share it, a measurement has it alone, and it is held until that is gone."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from perun.errors import NotPerunRepository
from perun.porcelain.pool.machine_lock import MachineLock

HOLDER = """
import sys, time
from pathlib import Path
from perun.plugin.api import Run
from perun.porcelain.pool.machine_lock import MachineLock
from perun.process.execution import Execution

lock = MachineLock("m", Path(sys.argv[1]))
lock.alone()
program = "-c 'echo $$ >program; exec sleep 600'"
run = Run("sh", program, cwd=Path(sys.argv[1]), environ={"PATH": "/usr/bin:/bin"})
with Execution(run, Path(sys.argv[1])) as execution:
    execution.record()
"""


def is_free(path: Path) -> bool:
    """Whether nobody holds the lock in any way."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def test_builds_share_it(tmp_path: Path) -> None:
    one, other = MachineLock("m", tmp_path), MachineLock("m", tmp_path)
    with one.shared(), other.shared():
        assert not is_free(one.path)
    other.alone()
    assert not is_free(one.path)
    other.release()
    assert is_free(one.path)
    one.close()
    other.close()


def test_it_is_held_until_the_measured_program_is_gone(tmp_path: Path) -> None:
    """The process of a job is killed: whoever gets the lock then finds its program killed before."""
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)])
    try:
        program = tmp_path / "program"
        while not program.exists() or not program.read_text().strip():
            assert holder.poll() is None
        pid = int(program.read_text())
        os.kill(pid, 0)
        holder.kill()
        holder.wait()
        lock = MachineLock("m", tmp_path)
        lock.alone()
        state = Path(f"/proc/{pid}/stat")
        # It may still be there for a moment, but it does not run any more.
        assert not state.exists() or is_killed(pid)
        lock.close()
    finally:
        holder.kill()
        holder.wait()


def is_killed(pid: int) -> bool:
    """Whether the process has ended or SIGKILL is on its way to it."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return True
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    pending = int(status["ShdPnd"], 16) | int(status["SigPnd"], 16)
    return status["State"][0] in "ZX" or bool(pending >> 8 & 1)


def test_a_link_is_no_lock(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    (tmp_path / "perun-pool-m.lock").symlink_to(tmp_path / "other")
    with pytest.raises(NotPerunRepository, match="cannot be the lock"):
        MachineLock("m", tmp_path)
