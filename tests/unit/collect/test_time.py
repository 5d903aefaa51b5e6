"""Running one prepared command many times, with real programs."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.collect.time import COLLECTOR_DEFAULT_UNITS, COLLECTOR_TYPE, TimeCollector, TimeParams
from perun.core.errors import JobFailed
from perun.core.process.command import exit_status, find_executable, outcome
from perun.core.process.execution import Execution, RunSample
from perun.measurement.headline import processor
from perun.plugin.api import CollectContext, Run
from perun.plugin.params import specs
from perun.profile.factory import Profile
from shared import is_running, wait_for

MakeRun = Callable[..., Run]


def execute(run: Run, scratch: Path, timeout: float = 0.0) -> RunSample:
    with Execution(run, scratch, timeout) as execution:
        return execution.run()


def inheritable(descriptor: int) -> bool:
    try:
        return os.get_inheritable(descriptor)
    except OSError:  # that of the listing itself
        return False


def family(path: Path) -> list[int]:
    wait_for(lambda: path.exists() and path.read_text().endswith("\n"))
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
        assert sample.real >= 0.1 and sample.user + sample.system < sample.real and sample.status == 0

    def test_work_is_user_time(self, make_run: MakeRun, tmp_path: Path) -> None:
        sample = execute(make_run("busy 0.1"), tmp_path)
        assert sample.real >= 0.09 and sample.user + sample.system >= 0.09

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
        assert sample.status == 0 and sample.real >= 0.02


class TestOutcome:
    @pytest.mark.parametrize(("lines", "runs", "last"), [
        (50, 1, range(41, 51)),
        (2, 3, (1, 2)),  # of the last run alone
        (300_000, 1, range(299_991, 300_001)),  # not read whole
        (0, 1, ()),
    ])  # fmt: skip
    def test_the_end_of_the_errors(self, lines: int, runs: int, last, make_run, tmp_path: Path) -> None:
        with Execution(make_run(f"fail {lines}"), tmp_path) as execution:
            for _ in range(runs):
                sample = execution.run()
            assert outcome(sample.status) == "exited with status 3" and exit_status(sample.status) == 3
            assert execution.last_errors() == [f"complaint {line} [31m" for line in last]

    @pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGPIPE, signal.SIGINT])
    def test_signal(self, number: signal.Signals, make_run: MakeRun, tmp_path: Path) -> None:
        sample = execute(make_run(f"signal {int(number)}"), tmp_path)
        assert number.name in outcome(sample.status)
        assert exit_status(sample.status) == 128 + number

    @given(st.integers(0, 255))
    def test_every_exit_status(self, code: int) -> None:
        assert exit_status(code << 8) == code and str(code) in outcome(code << 8)

    @given(st.integers(1, 64), st.booleans())
    def test_every_signal(self, number: int, core: bool) -> None:
        status = number | (0x80 if core else 0)
        assert exit_status(status) == 128 + number
        assert outcome(status).startswith("was killed by ")


class TestSurroundings:
    def test_folder_group_signals_and_environment(self, make_run, tmp_path, program_folder: Path) -> None:
        before = os.getcwd()
        answer = tmp_path / "answer"
        inherited = [name for name in os.listdir("/proc/self/fd") if inheritable(int(name))]
        environ = {"PATH": "/bin", "ONLY": "this one"}
        execute(make_run(f"describe {answer}", environ=environ), tmp_path)
        name, folder, flags, descriptors, *entries = answer.read_text().splitlines()
        assert name == "./prog" and folder == str(program_folder) and flags == "1 1 0"
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

    def test_file_is_relative_to_the_run(self, make_run, tmp_path: Path, program_folder: Path) -> None:
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

    @pytest.mark.parametrize(("cmd", "mode", "content", "message", "hint"), [
        ("prog", 0o755, "#!/bin/sh\n", "command not found: 'prog'", "./prog"),
        ("./data", 0o644, "x", "not executable", "chmod"),
        ("./build", 0o755, "", "is a folder", ""),
        ("./script", 0o755, "#!/no/such/interpreter\n", "interpreter", ""),
        ("./script", 0o755, "echo without a first line\n", "'#!'", ""),
    ])  # fmt: skip
    def test_what_is_no_program(self, cmd, mode, content, message, hint: str, make_run, tmp_path) -> None:
        path = tmp_path / cmd
        path.write_text(content) if content else path.mkdir()
        path.chmod(mode)
        with pytest.raises(JobFailed, match=message) as failure:
            execute(make_run(cmd=cmd, cwd=tmp_path), tmp_path)
        assert hint in failure.value.hint

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
        wait_for(lambda: not any(is_running(pid) for pid in pids))
        assert not Path(f"/proc/{pids[0]}").exists()  # reaped

    def test_in_time(self, make_run: MakeRun, tmp_path: Path) -> None:
        sample = execute(make_run("sleep 0.02"), tmp_path, timeout=300)
        assert sample.status == 0 and sample.real >= 0.02

    def test_interruption_at_the_very_end_keeps_the_status(self, make_run, tmp_path, monkeypatch) -> None:
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
    def test_interruption_kills_descendants(self, number, tmp_path: Path, program_folder: Path) -> None:
        code = (
            "import signal, sys\nfrom pathlib import Path\n"
            "from perun.core.process.execution import Execution\nfrom perun.plugin.api import Run\n"
            "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))\npids, folder, scratch = sys.argv[1:]\n"
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
        wait_for(lambda: not any(is_running(pid) for pid in pids))

    def test_reading_from_the_terminal_fails_instead_of_hanging(self, tmp_path, program_folder: Path) -> None:
        code = (
            "import os, sys\nfrom pathlib import Path\nfrom perun.core.process.execution import Execution\n"
            "from perun.plugin.api import Run\nterminal, folder, scratch = sys.argv[1:]\n"
            "os.open(terminal, os.O_RDWR)\n"  # becomes the controlling one of this new session
            "with Execution(Run('./prog', 'terminal', cwd=Path(folder)), Path(scratch)) as execution:\n"
            "    execution.run()\n"
        )
        leader, terminal = os.openpty()
        try:
            done = subprocess.run(
                [sys.executable, "-c", code, os.ttyname(terminal), program_folder, tmp_path],
                env={"PYTHONPATH": os.pathsep.join(sys.path)}, start_new_session=True, capture_output=True,
                timeout=120, check=False
            )  # fmt: skip
        finally:
            os.close(leader)
            os.close(terminal)
        assert b"reads from the terminal" in done.stderr


# -- The profile that the time collector makes, and how it fails -------------------------------------


Reports = list[tuple[str, int, int]]


def collect(run: Run, scratch: Path, reports: Reports | None = None, **params: object) -> Profile:
    seen: Reports = [] if reports is None else reports
    ctx = CollectContext(scratch, lambda *report: seen.append(report))
    return TimeCollector().collect(run, TimeParams(**params), ctx)  # type: ignore[arg-type]


def test_profile(make_run: MakeRun, tmp_path: Path) -> None:
    profile = collect(make_run("sleep", "0.01"), tmp_path, warmup=1, repeat=2)
    assert COLLECTOR_TYPE == "time" and COLLECTOR_DEFAULT_UNITS == {"time": "s"}
    assert profile["header"] == {
        "type": "time", "units": {"time": "s"}, "cmd": "./prog", "args": "sleep", "workload": "0.01"
    }  # fmt: skip
    assert profile["collector_info"]["name"] == "time" and profile["collector_info"]["params"]["repeat"] == 2
    assert profile["collector_info"]["params"]["warmup"] == 1 and profile["postprocessors"] == []
    resources = [resource for _, resource in profile.all_resources()]
    assert sorted((resource["subtype"], resource["order"]) for resource in resources) == [
        (subtype, order) for subtype in ("real", "sys", "user") for order in (1, 2)
    ]
    for resource in resources:
        assert resource.keys() == {"amount", "type", "subtype", "uid", "order"}
        assert resource["uid"] == "./prog" and resource["type"] == "time"
        assert isinstance(resource["amount"], float)
        assert (0.01 if resource["subtype"] == "real" else 0) <= resource["amount"] < 5


def test_a_run_that_others_take_the_processor_from_says_so(tmp_path: Path) -> None:
    """Beside a program on the same processor, what is left of the real time is the time of the processor."""
    core = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, [{core}])"
    (tmp_path / "prog.py").write_text(f"{code}\nfor number in range(2_000_000): pass\n")
    run = Run(sys.executable, "prog.py", cwd=tmp_path, environ=dict(os.environ))
    with subprocess.Popen([sys.executable, "-c", f"{code}\nprint(flush=True)\nwhile True: pass"],
                          stdout=subprocess.PIPE) as other:  # fmt: skip
        try:
            other.stdout.readline()
            profile = collect(run, tmp_path, warmup=0, repeat=3)
        finally:
            other.kill()
    runs = {name: [one for _, one in profile.all_resources() if one["subtype"] == name]
            for name in ("real", "user", "sys")}  # fmt: skip
    pairs = zip(profile["collector_info"]["waited"], runs["real"], strict=True)
    assert all(waited > 0.2 * one["amount"] for waited, one in pairs)
    found = processor(profile)
    assert found is not None and found.metric == "cpu time"


def test_amounts_stay_in_the_order_of_the_runs(make_run: MakeRun, tmp_path: Path) -> None:
    profile = collect(make_run(), tmp_path, warmup=0, repeat=12)
    for columns in profile["resources"].values():
        assert columns["order"] == list(range(1, 13))


def test_progress(make_run: MakeRun, tmp_path: Path) -> None:
    reports: Reports = []
    collect(make_run("sleep 0"), tmp_path, reports, warmup=2, repeat=3)
    assert reports == [
        *(("warming up", done, 2) for done in range(3)),
        *(("timing ./prog sleep 0", done, 3) for done in range(4)),
    ]


def test_defaults_of_the_manual() -> None:
    declared = {spec.name: spec for spec in specs(TimeParams)}
    assert (declared["warmup"].default, declared["warmup"].flags) == (3, ["-w", "--warmup"])
    assert (declared["repeat"].default, declared["repeat"].flags) == (10, ["-r", "--repeat"])
    assert declared["ignore_failure"].flags == ["-i", "--ignore-failure"]


def test_failure_says_what_when_and_why(make_run: MakeRun, tmp_path: Path) -> None:
    with pytest.raises(JobFailed) as failure:
        collect(make_run("fail", "20"), tmp_path)
    lines = failure.value.message.splitlines()
    assert lines[0] == "the command './prog fail 20' exited with status 3 (warm-up 1 of 3)"
    assert lines[2:] == [f"  complaint {line} [31m" for line in range(11, 21)]
    assert "--ignore-failure" in failure.value.hint and failure.value.exit_code == 8


def test_failure_of_a_later_run(make_run: MakeRun, tmp_path: Path) -> None:
    with pytest.raises(JobFailed, match=r"status 7 \(run 2 of 5\)"):
        collect(make_run(f"third {tmp_path / 'count'}"), tmp_path, warmup=1, repeat=5)


def test_signal_is_named(make_run: MakeRun, tmp_path: Path) -> None:
    with pytest.raises(JobFailed, match=r"killed by SIGSEGV \(Segmentation fault\)"):
        collect(make_run("signal 11"), tmp_path)


def test_ignored_failure_is_recorded(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run(f"third {tmp_path / 'count'}")
    profile = collect(run, tmp_path, warmup=1, repeat=4, ignore_failure=True)
    codes = {resource["order"]: resource["exitcode"] for _, resource in profile.all_resources()}
    assert codes == {1: 0, 2: 7, 3: 0, 4: 0}
    killed = collect(make_run("signal 9"), tmp_path, warmup=0, repeat=1, ignore_failure=True)
    assert {resource["exitcode"] for _, resource in killed.all_resources()} == {137}


def test_timeout_is_no_failure_to_ignore(make_run: MakeRun, tmp_path: Path) -> None:
    with pytest.raises(JobFailed, match=r"within 0\.05 s"):
        collect(make_run("sleep 20"), tmp_path, timeout=0.05, ignore_failure=True)


def test_interrupted_report_leaves_the_folder(make_run: MakeRun, tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = Path.cwd()
    with pytest.raises(KeyboardInterrupt):
        TimeCollector().collect(make_run(), TimeParams(), CollectContext(tmp_path, interrupt))
    assert Path.cwd() == before
