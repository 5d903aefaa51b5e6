"""How a command is ended, and what is known of its run then."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perun.core.errors import JobFailed
from perun.core.process import ending
from perun.core.process.command import Run
from perun.core.process.execution import INTERRUPTED, Execution, Sample


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


def record(run: Run, scratch: Path, started: Path) -> Sample:
    with Execution(run, scratch, single_run=True) as execution, interrupted_once_there_is(started):
        return execution.record()


def test_it_may_tidy_up(
    run: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ending, "GRACE", 60.0)  # it ends long before
    script = "trap 'touch {here}/tidied; exit 3' TERM\ntouch {here}/started\nsleep 1000 & wait\n"
    sample = record(run(script), tmp_path, tmp_path / "started")
    assert (tmp_path / "tidied").exists()
    assert (sample.early, os.waitstatus_to_exitcode(sample.status)) == (INTERRUPTED, 3)
    assert isinstance(sample.interruption, KeyboardInterrupt)


def test_it_is_killed_where_asking_does_not_help(
    run: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
def test_what_it_leaves_running_ends_with_it_only_where_that_is_asked_for(
    run: Callable[..., Run], tmp_path: Path, ends: bool
) -> None:
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
