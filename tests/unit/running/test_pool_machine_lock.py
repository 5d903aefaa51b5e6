"""The lock of a machine: builds share it, a measurement has it alone, and it is held until that is gone."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from perun.core.errors import NotPerunRepository
from perun.running.pool.folders import MachineLock

HOLDER = """
import sys, time
from pathlib import Path
from perun.plugin.api import Run
from perun.running.pool.folders import MachineLock
from perun.core.process.execution import Execution

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


def test_it_is_held_until_the_measured_program_is_killed(tmp_path: Path) -> None:
    """The process of a job is killed:

    the lock is free when the guard has killed the program, and not before.
    """
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)])
    companion = None
    try:
        noted = tmp_path / "program"
        while not noted.exists() or not noted.read_text().strip():
            assert holder.poll() is None
        program = psutil.Process(int(noted.read_text()))
        guards = [one for one in psutil.Process(holder.pid).children() if one.name() == "perun_guard"]
        guards[0].suspend()
        # Else its group is left without a parent by the end of the holder, and the kernel resumes it.
        companion = subprocess.Popen(["sleep", "600"], process_group=guards[0].pid)
        holder.kill()
        holder.wait()
        lock = MachineLock("m", tmp_path)
        assert not is_free(lock.path)
        assert program.is_running()
        guards[0].resume()
        lock.alone()
        program.wait(60)
        lock.close()
    finally:
        for one in filter(None, (holder, companion)):
            one.kill()
            one.wait()


def test_a_link_is_no_lock(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    (tmp_path / "perun-pool-m.lock").symlink_to(tmp_path / "other")
    with pytest.raises(NotPerunRepository, match="cannot be the lock"):
        MachineLock("m", tmp_path)
