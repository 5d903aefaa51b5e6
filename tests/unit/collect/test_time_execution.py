"""Running one prepared command many times, with real programs."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.errors import JobFailed
from perun.core.process.command import exit_status, find_executable, outcome
from perun.core.process.execution import Execution, Sample
from perun.plugin.api import Run

MakeRun = Callable[..., Run]


def execute(run: Run, scratch: Path, timeout: float = 0.0) -> Sample:
    with Execution(run, scratch, timeout) as execution:
        return execution.run()


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # killed, and left for a parent that is not ours to reap


def inheritable(descriptor: int) -> bool:
    try:
        return os.get_inheritable(descriptor)
    except OSError:  # that of the listing itself
        return False


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def family(path: Path) -> list[int]:
    assert wait_for(lambda: path.exists() and path.read_text().endswith("\n"))
    return [int(pid) for pid in path.read_text().split()]


def test_a_file_that_cannot_be_emptied_is_named(make_run: MakeRun, tmp_path: Path) -> None:
    memory = os.memfd_create("stderr", os.MFD_ALLOW_SEALING)
    (tmp_path / "stderr").symlink_to(f"/proc/self/fd/{memory}")
    with Execution(make_run("true"), tmp_path) as execution:
        os.write(memory, b"of the run before")
        fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        with pytest.raises(PermissionError) as caught:
            execution.run()
    os.close(memory)
    assert caught.value.filename == str(tmp_path / "stderr")


class TestTimes:
    def test_sleeping_is_real_time_only(self, make_run: MakeRun, tmp_path: Path) -> None:
        sample = execute(make_run("sleep 0.1"), tmp_path)
        assert sample.real >= 0.1
        assert sample.user + sample.system < sample.real
        assert sample.status == 0

    def test_work_is_user_time(self, make_run: MakeRun, tmp_path: Path) -> None:
        sample = execute(make_run("busy 0.1"), tmp_path)
        assert sample.real >= 0.09
        assert sample.user + sample.system >= 0.09

    def test_work_of_descendants_counts(self, make_run: MakeRun, tmp_path: Path) -> None:
        sample = execute(make_run("child 0.1"), tmp_path)
        assert sample.user + sample.system >= 0.09

    def test_runs_do_not_add_up(self, make_run: MakeRun, tmp_path: Path) -> None:
        with Execution(make_run("busy 0.02"), tmp_path) as execution:
            samples = [execution.run() for _ in range(20)]
        works = [sample.user + sample.system for sample in samples]
        assert works[-1] < sum(works) / 4

    def test_a_run_that_stops_and_goes_on_is_waited_for(self, make_run: MakeRun, tmp_path: Path) -> None:
        sample = execute(make_run("stop"), tmp_path)
        assert sample.status == 0
        assert sample.real >= 0.02


class TestOutcome:
    def test_status_and_end_of_the_errors(self, make_run: MakeRun, tmp_path: Path) -> None:
        with Execution(make_run("fail 50"), tmp_path) as execution:
            sample = execution.run()
            assert outcome(sample.status) == "exited with status 3"
            assert exit_status(sample.status) == 3
            assert execution.last_errors() == [f"complaint {line} [31m" for line in range(41, 51)]

    def test_errors_are_those_of_the_last_run(self, make_run: MakeRun, tmp_path: Path) -> None:
        with Execution(make_run("fail 2"), tmp_path) as execution:
            for _ in range(3):
                execution.run()
            assert len(execution.last_errors()) == 2

    def test_errors_are_not_read_whole(self, make_run: MakeRun, tmp_path: Path) -> None:
        with Execution(make_run("fail 300000"), tmp_path) as execution:
            execution.run()
            assert execution.last_errors()[-1].startswith("complaint 300000")

    def test_no_errors(self, make_run: MakeRun, tmp_path: Path) -> None:
        with Execution(make_run("fail 0"), tmp_path) as execution:
            execution.run()
            assert execution.last_errors() == []

    @pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGPIPE, signal.SIGINT])
    def test_signal(self, number: signal.Signals, make_run: MakeRun, tmp_path: Path) -> None:
        sample = execute(make_run(f"signal {int(number)}"), tmp_path)
        assert number.name in outcome(sample.status)
        assert exit_status(sample.status) == 128 + number

    @given(st.integers(0, 255))
    def test_every_exit_status(self, code: int) -> None:
        assert exit_status(code << 8) == code
        assert str(code) in outcome(code << 8)

    @given(st.integers(1, 64), st.booleans())
    def test_every_signal(self, number: int, core: bool) -> None:
        status = number | (0x80 if core else 0)
        assert exit_status(status) == 128 + number
        assert outcome(status).startswith("was killed by ")


class TestSurroundings:
    def test_folder_group_signals_and_environment(
        self, make_run: MakeRun, tmp_path: Path, program_folder: Path
    ) -> None:
        before = os.getcwd()
        answer = tmp_path / "answer"
        inherited = [name for name in os.listdir("/proc/self/fd") if inheritable(int(name))]
        environ = {"PATH": "/bin", "ONLY": "this one"}
        execute(make_run(f"describe {answer}", environ=environ), tmp_path)
        name, folder, flags, descriptors, *entries = answer.read_text().splitlines()
        assert name == "./prog"
        assert folder == str(program_folder)
        assert flags == "1 1 0"
        assert set(descriptors.split()) <= {"0", "1", "2", *inherited}
        assert sorted(entries) == ["ONLY=this one", "PATH=/bin"]
        assert os.getcwd() == before

    def test_folder_is_restored_after_trouble(self, make_run: MakeRun, tmp_path: Path) -> None:
        before = os.getcwd()
        with pytest.raises(RuntimeError), Execution(make_run(), tmp_path):
            assert os.getcwd() != before
            raise RuntimeError
        assert os.getcwd() == before

    def test_nothing_stays_open(self, make_run: MakeRun, tmp_path: Path) -> None:
        before = os.listdir("/proc/self/fd")
        execute(make_run("sleep 0", '<< "text"'), tmp_path, timeout=5)
        with pytest.raises(JobFailed):
            execute(make_run("sleep 0", "< absent"), tmp_path)
        assert len(os.listdir("/proc/self/fd")) == len(before)

    def test_signal_mask_is_restored(self, make_run: MakeRun, tmp_path: Path) -> None:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        execute(make_run(), tmp_path)
        (tmp_path / "broken").write_text("#!/no/such/interpreter\n")
        (tmp_path / "broken").chmod(0o755)
        with pytest.raises(JobFailed):
            execute(make_run(cmd="./broken", cwd=tmp_path), tmp_path)
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


class TestStandardInput:
    def test_is_empty_by_default(self, make_run: MakeRun, tmp_path: Path) -> None:
        assert exit_status(execute(make_run("count"), tmp_path).status) == 0

    def test_text_is_read_anew_by_every_run(self, make_run: MakeRun, tmp_path: Path) -> None:
        with Execution(make_run("count", '<< "žluť  x"'), tmp_path) as execution:
            assert [exit_status(execution.run().status) for _ in range(3)] == [9, 9, 9]

    def test_file_is_relative_to_the_run(
        self, make_run: MakeRun, tmp_path: Path, program_folder: Path
    ) -> None:
        (program_folder / "five").write_text("12345")
        with Execution(make_run("count", "< five"), tmp_path) as execution:
            assert [exit_status(execution.run().status) for _ in range(2)] == [5, 5]

    def test_missing_file_is_named(self, make_run: MakeRun, tmp_path: Path, program_folder: Path) -> None:
        with pytest.raises(JobFailed, match=r"data/big\.txt.*No such file") as failure:
            execute(make_run("count", "< data/big.txt"), tmp_path)
        assert str(program_folder) in failure.value.message
        assert "pre_run" in failure.value.hint

    def test_folder_and_pipe_are_refused(self, make_run: MakeRun, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        for name in ("pipe", "."):
            with pytest.raises(JobFailed, match="not a file"):
                execute(make_run("count", f"< {tmp_path / name}"), tmp_path)

    def test_terminal_is_refused(self, make_run: MakeRun, tmp_path: Path) -> None:
        leader, terminal = os.openpty()
        try:
            with pytest.raises(JobFailed, match="more than once"):
                execute(make_run("count", f"< {os.ttyname(terminal)}"), tmp_path)
        finally:
            os.close(leader)
            os.close(terminal)


class TestNotStarted:
    def test_missing_program(self, make_run: MakeRun, tmp_path: Path, program_folder: Path) -> None:
        with pytest.raises(JobFailed, match=r"command not found: '\./build/prog'") as failure:
            execute(make_run(cmd="./build/prog"), tmp_path)
        assert str(program_folder) in failure.value.message
        assert "execute.pre_run" in failure.value.hint

    def test_program_that_is_not_on_the_path(self, make_run: MakeRun, tmp_path: Path) -> None:
        with pytest.raises(JobFailed, match="command not found: 'prog'") as failure:
            execute(make_run(cmd="prog"), tmp_path)
        assert "./prog" in failure.value.hint

    def test_not_executable(self, make_run: MakeRun, tmp_path: Path) -> None:
        (tmp_path / "data").write_text("x")
        with pytest.raises(JobFailed, match="not executable") as failure:
            execute(make_run(cmd="./data", cwd=tmp_path), tmp_path)
        assert "chmod" in failure.value.hint

    def test_folder(self, make_run: MakeRun, tmp_path: Path) -> None:
        (tmp_path / "build").mkdir()
        with pytest.raises(JobFailed, match="is a folder"):
            execute(make_run(cmd="./build", cwd=tmp_path), tmp_path)

    @pytest.mark.parametrize(
        ("content", "reason"),
        [("#!/no/such/interpreter\n", "interpreter"), ("echo without a first line\n", "'#!'")],
    )
    def test_broken_script(self, content: str, reason: str, make_run: MakeRun, tmp_path: Path) -> None:
        (tmp_path / "script").write_text(content)
        (tmp_path / "script").chmod(0o755)
        with pytest.raises(JobFailed, match=reason):
            execute(make_run(cmd="./script", cwd=tmp_path), tmp_path)

    def test_arguments_that_the_system_refuses(self, make_run: MakeRun, tmp_path: Path) -> None:
        with pytest.raises(JobFailed, match="Argument list too long"):
            execute(make_run(environ={"LONG": "x" * 4_000_000}), tmp_path)
        with pytest.raises(JobFailed, match="null"):
            execute(make_run("a\0b"), tmp_path)

    def test_missing_folder(self, make_run: MakeRun, tmp_path: Path) -> None:
        with pytest.raises(JobFailed, match="cannot run in"):
            execute(make_run(cwd=tmp_path / "absent"), tmp_path)

    def test_path_is_that_of_the_run(self, tmp_path: Path) -> None:
        for folder in ("first", "second"):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / "tool").write_text("#!/bin/sh\n")
        (tmp_path / "second" / "tool").chmod(0o755)
        assert find_executable("tool", tmp_path, {"PATH": "absent:first:second"}) == f"{tmp_path}/second/tool"
        (tmp_path / "tool").write_text("")
        (tmp_path / "tool").chmod(0o755)
        assert Path(find_executable("tool", tmp_path, {"PATH": ":second"})) == tmp_path / "tool"
        assert find_executable("true", tmp_path, {}).endswith("/true")


class TestBeingEnded:
    def test_timeout_kills_descendants(self, make_run: MakeRun, tmp_path: Path) -> None:
        limit, told = 0.3, tmp_path / "pids"
        while not told.exists() or not told.read_text():  # on a busy machine it has not begun by then
            with pytest.raises(JobFailed, match=rf"did not end within {limit} s"):
                execute(make_run(f"family {told}"), tmp_path, timeout=limit)
            limit = limit + 2
        pids = family(tmp_path / "pids")
        assert wait_for(lambda: not any(alive(pid) for pid in pids))
        assert not Path(f"/proc/{pids[0]}").exists()  # reaped

    def test_in_time(self, make_run: MakeRun, tmp_path: Path) -> None:
        sample = execute(make_run("sleep 0.02"), tmp_path, timeout=300)
        assert sample.status == 0
        assert sample.real >= 0.02

    def test_interruption_at_the_very_end_keeps_the_status(
        self, make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The process has ended, and the user interrupts before Perun has asked how."""
        wait = os.waitid

        def interrupted(*arguments: int) -> object:
            wait(*arguments)
            monkeypatch.setattr(os, "waitid", wait)
            raise KeyboardInterrupt

        with Execution(make_run("-c 'exit 7'", cmd="/bin/sh"), tmp_path) as execution:
            monkeypatch.setattr(os, "waitid", interrupted)
            sample = execution.record()
        assert isinstance(sample.interruption, KeyboardInterrupt)
        assert exit_status(sample.status) == 7

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_interruption_kills_descendants(
        self, number: signal.Signals, tmp_path: Path, program_folder: Path
    ) -> None:
        code = (
            "import signal, sys\n"
            "from pathlib import Path\n"
            "from perun.core.process.execution import Execution\n"
            "from perun.plugin.api import Run\n"
            "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\n"
            "pids, folder, scratch = sys.argv[1:]\n"
            "with Execution(Run('./prog', f'family {pids}', cwd=Path(folder)), Path(scratch)) as execution:\n"
            "    execution.run()\n"
        )
        perun = subprocess.Popen(
            [sys.executable, "-c", code, tmp_path / "pids", program_folder, tmp_path],
            env={"PYTHONPATH": os.pathsep.join(sys.path)},
            stderr=subprocess.PIPE,
        )
        pids = family(tmp_path / "pids")
        perun.send_signal(number)
        _, errors = perun.communicate(timeout=120)
        assert (b"KeyboardInterrupt" in errors) == (number == signal.SIGINT)
        assert wait_for(lambda: not any(alive(pid) for pid in pids))

    def test_reading_from_the_terminal_fails_instead_of_hanging(
        self, tmp_path: Path, program_folder: Path
    ) -> None:
        code = (
            "import os, sys\n"
            "from pathlib import Path\n"
            "from perun.core.process.execution import Execution\n"
            "from perun.plugin.api import Run\n"
            "terminal, folder, scratch = sys.argv[1:]\n"
            "os.open(terminal, os.O_RDWR)\n"  # becomes the controlling one of this new session
            "with Execution(Run('./prog', 'terminal', cwd=Path(folder)), Path(scratch)) as execution:\n"
            "    execution.run()\n"
        )
        leader, terminal = os.openpty()
        try:
            done = subprocess.run(
                [sys.executable, "-c", code, os.ttyname(terminal), program_folder, tmp_path],
                env={"PYTHONPATH": os.pathsep.join(sys.path)},
                start_new_session=True,
                capture_output=True,
                timeout=120,
                check=False,
            )
        finally:
            os.close(leader)
            os.close(terminal)
        assert b"reads from the terminal" in done.stderr
