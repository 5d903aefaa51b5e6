"""Real programs in an island: they do what they do alone, and what they used is known whatever ended them."""

import json
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from perun.core.errors import CollectorUnavailable
from perun.island import command_line, opening
from perun.island import result as results
from perun.island.opening import OpenRecording
from perun.island.supervisor import control_group

ISLAND: Final = [sys.executable, "-m", "perun.island"]
MILLISECOND: Final = 0.001


def run(*words: str, cwd: Path, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, cwd=cwd, input=given, capture_output=True, text=True, timeout=100, check=False
    )


def recorded(tmp_path: Path, code: str, *options: str) -> OpenRecording:
    """The code as a program in an island, and what was recorded of it."""
    (tmp_path / "prog.py").write_text(code)
    found = run(*ISLAND, *options, "--record-to", "run", "prog.py", cwd=tmp_path)
    assert (found.returncode, found.stderr) == (0, "")
    return opened(tmp_path / "run")


def opened(folder: Path) -> OpenRecording:
    """What was recorded; whatever the program was, its accounting is complete."""
    found = opening.read(folder)
    for life in found.threads:
        own = [row for row in found.usage if (row.process, row.thread) == (life.process, life.name)]
        lived = (life.destroyed - life.created) / 1e9
        assert sum(row.seconds for row in own) == pytest.approx(lived, abs=MILLISECOND)
        assert all(row.seconds >= 0 and 0 <= row.ambiguous <= row.seconds + 1e-9 for row in own)
    assert all(life.destroyed <= found.end for life in found.threads if life.process == 0)
    return found


def amount(found: OpenRecording, subtype: str, **where: Any) -> float:
    return sum(
        row.amount
        for row in found.usage
        if row.subtype == subtype and all(getattr(row, name) == value for name, value in where.items())
    )


ENDINGS = {
    "return": "print('out'); import sys; sys.stderr.write('err')",
    "exit code": "import sys; print('out'); sys.exit(3)",
    "exit with words": "import sys; sys.exit('it is wrong')",
    "exception": "def f(): 1 / 0\ntry: f()\nexcept ZeroDivisionError as e: raise ValueError('x') from e",
    "exception group": "raise ExceptionGroup('all', [ValueError(1), OSError(2)])",
    "own excepthook": "import sys; sys.excepthook = lambda *a: print('hook', a[1]); raise KeyError('k')",
    "syntax error": "print('a'\nx = = 2",
    "os._exit": "import os; print('lost', end=''); os._exit(7)",
    "signal": "import os, signal; print('out', flush=True); os.kill(os.getpid(), signal.SIGTERM)",
    "kill -9": "import os, signal; print('out', flush=True); os.kill(os.getpid(), 9)",
    "Ctrl-C": "raise KeyboardInterrupt",
    "threads and atexit": (
        "import atexit, threading\natexit.register(print, 'atexit')\nmay = threading.Event()\n"
        "threading.Thread(target=lambda: (may.wait(), print('thread'))).start()\nprint('main')\nmay.set()"
    ),
    "standard input": "import sys\nfor line in sys.stdin: print(line.upper(), end='')\nprint(input.__name__)",
    "itself": (
        "import sys, __main__\nprint(sys.argv, sys.path, sys.orig_argv, __name__, __file__, __spec__,"
        " __doc__, __package__, __main__ is sys.modules['__main__'], type(__loader__).__name__,"
        " sorted(vars(__main__)))"
    ),
    "pickle and multiprocessing": (
        "import multiprocessing, pickle\nclass A: pass\ndef f(x): return x * 2\n"
        "print(type(pickle.loads(pickle.dumps(A()))) is A)\nif __name__ == '__main__':\n"
        "    with multiprocessing.get_context('fork').Pool(1) as pool: print(pool.map(f, [1, 2]))"
    ),
    "an unclosed file keeps its data": (
        "f = open('data.txt', 'w'); f.write('kept'); print(open('data.txt').read())"
    ),
    "unclosed in a cycle": (
        "class A: pass\na = A(); a.a = a; a.f = open('kept.txt', 'w'); a.f.write('kept')\n"
        "del a\nimport gc; gc.collect(); print(open('kept.txt').read())"
    ),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_a_program_says_and_ends_as_it_does_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(ENDINGS[name] + "\n")
    alone = run(sys.executable, "prog.py", "a", "-b", cwd=tmp_path, given="one\ntwo\n")
    inside = run(*ISLAND, "--record-to", "run", "prog.py", "a", "-b", cwd=tmp_path, given="one\ntwo\n")
    assert (inside.returncode, inside.stdout, inside.stderr) == (alone.returncode, alone.stdout, alone.stderr)
    found = opened(tmp_path / "run")
    status = found.result.status
    assert os.waitstatus_to_exitcode(status) == alone.returncode
    if alone.stdout and "hook" not in alone.stdout and alone.returncode != 7:
        rows = [row for row in found.usage if "<stdout>" in row.object and row.subtype == "filewrite"]
        assert sum(row.amount for row in rows) >= len(alone.stdout.splitlines()[0])
    assert found.notes == []
    killed = ("os._exit", "signal", "kill -9")
    assert found.recordings[0].complete == (name not in killed)


@pytest.mark.parametrize("words", [
    ("-c", "import sys; print(sys.argv, sys.path, __name__, globals().get('__file__')); 1 / 0", "x"),
    ("-m", "pack", "x"),
    ("-m", "pack.inner", "x"),
    ("-m", "nothing.there"),
    ("folder", "x"),
    ("./missing.py",),
    ("-m", "json.tool", "--help"),
])  # fmt: skip
def test_modules_code_and_folders_run_as_they_do_alone(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "folder").mkdir()
    shown = "import sys\nprint(sys.argv, sys.path, __name__, __file__, __spec__.name)\nraise SystemExit(4)\n"
    for file in ("pack/__init__.py", "pack/__main__.py", "pack/inner.py", "folder/__main__.py"):
        (tmp_path / file).write_text(shown if "init" not in file else "")
    alone = run(sys.executable, *words, cwd=tmp_path)
    inside = run(*ISLAND, "--record-to", "run", *words, cwd=tmp_path)
    assert (inside.returncode, inside.stdout, inside.stderr) == (alone.returncode, alone.stdout, alone.stderr)


def test_the_report_comes_after_the_program_on_standard_error(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text("print(open('prog.py').read() == ''); raise SystemExit(5)")
    found = run(*ISLAND, "prog.py", cwd=tmp_path)
    assert (found.returncode, found.stdout) == (5, "False\n") and "ended: exit code 5, after" in found.stderr
    assert f"{tmp_path}/prog.py#1  fileread" in found.stderr
    assert "Time consumption" in found.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["prog.py"], "recordings are removed"


def test_the_report_as_json_with_all_files_that_were_asked_for(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text("import time; time.sleep(.01); open('out', 'w').write('12345678')")
    options = ["--format", "json", "--output", "o.json", "--chrome-trace", "c.json", "--speedscope", "s.json"]
    found = run(*ISLAND, *options, "prog.py", cwd=tmp_path)
    assert (found.returncode, found.stderr) == (0, "")
    told = json.loads((tmp_path / "o.json").read_text())
    assert (told["schema"], told["ended"], told["status"]) == ("perun.island/1", "exit code 0", 0)
    written = [row for row in told["usage"] if row["object"] == f"{tmp_path}/out#1" and row["type"] == "disk"]
    assert sum(row["amount"] for row in written if row["subtype"] == "filewrite") == 8
    events = json.loads((tmp_path / "c.json").read_text())["traceEvents"]
    assert {"time.sleep", "file.write"} <= {event["name"] for event in events}
    frames = json.loads((tmp_path / "s.json").read_text())["shared"]["frames"]
    assert {"name": "time.sleep"} in frames


def test_the_timeline_follows_the_report(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text("import time; time.sleep(.01)")
    assert run(*ISLAND, "--timeline", "csv", "-o", "report", "prog.py", cwd=tmp_path).returncode == 0
    lines = (tmp_path / "report").read_text().splitlines()
    timeline = lines[lines.index("time,thread,api,object,amount") + 1 :]
    assert [line.split(",")[1:3] for line in timeline if "sleep" in line] == [
        ["MainThread", "start time.sleep"], ["MainThread", "time.sleep"],
    ]  # fmt: skip


def test_four_threads_write_800_bytes(tmp_path: Path) -> None:
    found = recorded(
        tmp_path,
        "import threading\ndef work(number):\n    with open(f'out{number}', 'w') as file:\n"
        "        for _ in range(25): file.write('12345678')\n"
        "threads = [threading.Thread(target=work, args=(n,), name=f'w{n}') for n in range(4)]\n"
        "for one in threads: one.start()\nfor one in threads: one.join()\n",
    )
    assert amount(found, "filewrite") == 800
    for number in range(4):
        assert amount(found, "filewrite", thread=f"w{number}", object=f"{tmp_path}/out{number}#1") == 200
        assert amount(found, "filesopened", thread=f"w{number}") == 1
    writes = [span for span in found.spans() if span.api.name == "file.write"]
    assert len(writes) == 100
    assert [life.name for life in found.threads] == ["MainThread", "w0", "w1", "w2", "w3"]


def test_two_sockets_to_one_peer_are_told_apart(tmp_path: Path) -> None:
    found = recorded(
        tmp_path,
        "import socket\nserver = socket.create_server(('127.0.0.1', 0)); port = server.getsockname()[1]\n"
        "one = socket.create_connection(('127.0.0.1', port)); here, _ = server.accept()\n"
        "two = socket.create_connection(('127.0.0.1', port)); there, _ = server.accept()\n"
        "one.sendall(b'x' * 10); two.sendall(b'y' * 200); two.sendall(b'z' * 3)\n"
        "assert len(here.recv(100)) == 10\ngot = 0\nwhile got < 203: got += len(there.recv(100))\n"
        "open('port', 'w').write(str(port))\n",
    )
    peer = f"tcp 127.0.0.1:{(tmp_path / 'port').read_text()}"
    sent = {
        row.object: (row.amount, row.calls) for row in found.usage if row.subtype == "tcp-send" and row.amount
    }
    assert sorted(sent.values()) == [(10, 1), (203, 2)]
    assert all(name.startswith(peer) for name in sent)
    received = {row.object: row.amount for row in found.usage if row.subtype == "tcp-recv"}
    assert sorted(received.values()) == [10, 203] and not sent.keys() & received.keys()
    assert amount(found, "tcp-connect") == amount(found, "tcp-accept") == 2


@pytest.mark.parametrize(("burst", "seconds"), [("0", 2.0), ("1", 1.0)])
def test_20_bytes_at_10_bytes_per_second_take_as_long_as_expected(burst: str, seconds, tmp_path) -> None:
    code = "with open('out', 'w', buffering=1) as file:\n    file.write('1' * 20)\n"
    found = recorded(tmp_path, code, "--limit", "filewrite=10", "--burst", burst)
    (call,) = (
        one for one in found.recordings[0].calls() if found.recordings[0].apis[one.api].name == "file.write"
    )
    # The limiter looks at the clock when the bytes are written: on a busy machine long after the call began.
    assert 0 <= (call.expected - call.start) / 1e9 - seconds < 60
    assert call.end >= call.expected
    assert amount(found, "filewrite", object=f"{tmp_path}/out#1") == 20


def test_the_sixth_open_file_is_refused(tmp_path: Path) -> None:
    code = (
        "files = []\ntry:\n    for number in range(9): files.append(open(f'out{number}', 'w'))\n"
        "except OSError as problem:\n    caught = problem\n"
        "files.pop().close(); files.append(open('again', 'w'))\nprint(len(files), caught, file=files[0])\n"
    )
    recorded(tmp_path, code, "--limit", "filesopened=5")
    assert (tmp_path / "out0").read_text() == "5 [Errno 24] Too many open files: limit filesopened=5\n"


@pytest.mark.parametrize(("options", "said"), [
    (["--limit", "diskwrite=1", "prog.py"], "there is no limit 'diskwrite'; there are: cpu, "),
    (["--stop-rule", "none", "prog.py"], "invalid choice: 'none'"),
    (["--python", "/nonexistent/python", "prog.py"], "there is no program '/nonexistent/python'"),
    (["--burst", "-1", "prog.py"], "the burst is a number of seconds"),
    ([], "name a program"),
    (["-m"], "-m needs a value"),
    (["--frobnicate", "prog.py"], "unrecognized arguments: --frobnicate"),
])  # fmt: skip
def test_a_wrong_command_line_says_what_is_wrong(options: list[str], said: str, tmp_path: Path) -> None:
    found = run(*ISLAND, *options, cwd=tmp_path)
    assert (found.returncode, found.stdout) == (2, "") and said in found.stderr
    assert "Traceback" not in found.stderr


def test_a_folder_with_a_run_is_not_overwritten(tmp_path: Path) -> None:
    recorded(tmp_path, "pass")
    found = run(*ISLAND, "--record-to", "run", "prog.py", cwd=tmp_path)
    assert found.returncode == 2 and "run holds a recorded run already" in found.stderr


def status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def state(pid: int) -> str:
    return status(pid)["State"][0]


def until(condition: Callable[[], bool]) -> None:
    """Wait until it is so; a minute means never."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def stop(pid: int, send: Callable[[], object]) -> None:
    """Have the program stopped, and its parent, the supervisor, note it and wait again."""
    parent = int(status(pid)["PPid"])

    def waits() -> int:
        """How often it has waited, 0 while it does not."""
        found = status(parent)
        return int(found["voluntary_ctxt_switches"]) if found["State"][0] == "S" else 0

    until(lambda: waits() > 0)
    before = waits() or int(status(parent)["voluntary_ctxt_switches"])
    send()
    until(lambda: state(pid) == "T" and waits() > before)


class Running:
    """A program in an island that says its number and then does something until it is told to end.

    It says so by `os.write`, which is not recorded: a stop right after it is in no call.
    """

    def __init__(self, tmp_path: Path, code: str, *options: str, errors: bool = False) -> None:
        (tmp_path / "prog.py").write_text(f"import os\n{code}")
        self.folder = tmp_path / "run"
        words = [*ISLAND, "--record-to", str(self.folder), *options, str(tmp_path / "prog.py")]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE if errors else None,
            text=True, cwd=tmp_path, start_new_session=True
        )  # fmt: skip
        assert self.process.stdout
        self.ready = self.process.stdout.readline()
        self.pid = int(self.ready)

    def stop(self, pid: int) -> None:
        """Stop the process or group, so that the supervisor has seen it."""
        stop(self.pid, lambda: os.kill(pid, signal.SIGSTOP))

    def stop_for(self, seconds: float, pid: int) -> tuple[int, int]:
        """Stop the process or group; since when it was certainly stopped, and until when, ns."""
        self.stop(pid)
        since = time.monotonic_ns()
        time.sleep(seconds)
        until = time.monotonic_ns()
        os.kill(pid, signal.SIGCONT)
        return since, until

    def finish(self) -> OpenRecording:
        self.folder.with_name("end").touch()
        self.process.communicate("\n", timeout=60)
        return opened(self.folder)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def start(code: str, *options: str, errors: bool = False) -> Running:
        started.append(Running(tmp_path, code, *options, errors=errors))
        return started[-1]

    yield start
    for one in started:
        one.folder.with_name("end").touch()  # should its program be left alone
        one.process.kill()
        one.process.communicate()


COMPUTING = "os.write(1, b'%d\\n' % os.getpid())\nwhile not os.path.exists('end'): sum(range(1000))\n"
WRITING = (
    "out = open('out', 'w', buffering=1)\nos.write(1, b'%d\\n' % os.getpid())\n"
    "while True: out.write('1234567\\n')\n"
)


def test_a_stop_while_computing_is_stopped_time(running: Callable[..., Running]) -> None:
    program = running(COMPUTING)
    before = time.monotonic_ns()
    since, last = program.stop_for(0.05, program.pid)
    until(lambda: state(program.pid) != "T")
    found = program.finish()
    ((start, end),) = found.stops
    assert before <= start + found.start and end + found.start >= last
    assert found.by_rule["exact"] == pytest.approx((end - start) / 1e9, abs=MILLISECOND)
    assert end - start >= (last - since) * 0.5
    (row,) = (row for row in found.usage if row.type == "stopped")
    assert row.seconds == found.by_rule["exact"]


def test_a_stop_while_sleeping_counts_only_beyond_what_was_asked_for(running: Callable[..., Running]) -> None:
    program = running("import time\nos.write(1, b'%d\\n' % os.getpid())\ntime.sleep(0.1)\ninput()\n")
    program.stop_for(0.3, program.pid)
    found = program.finish()
    ((start, end),) = found.stops
    (sleep,) = (span for span in found.spans() if span.api.name == "time.sleep")
    inside = max(0, min(end, sleep.end) - max(start, sleep.start)) / 1e9
    took = (sleep.end - sleep.start) / 1e9
    slept = sum(row.seconds for row in found.usage if row.subtype == "sleep")
    assert slept == pytest.approx(max(min(0.1, took), took - inside), abs=MILLISECOND)
    assert slept <= took - inside + 0.1 + MILLISECOND


def test_a_killed_program_is_accounted_to_its_last_write(running, tmp_path: Path) -> None:
    program = running(WRITING)
    until(lambda: (tmp_path / "out").stat().st_size > 80_000)
    os.kill(program.pid, signal.SIGKILL)
    program.process.wait(60)
    found = program.finish()
    assert found.result.ending == "killed by SIGKILL"
    assert program.process.returncode == -signal.SIGKILL
    written = (tmp_path / "out").stat().st_size
    assert written - 8 <= amount(found, "filewrite", object=f"{tmp_path}/out#1") <= written + 8


def test_a_program_that_is_killed_while_it_is_stopped_was_stopped_to_its_end(running) -> None:
    program = running(COMPUTING)
    program.stop(program.pid)
    os.kill(program.pid, signal.SIGKILL)
    program.process.wait(60)
    found = program.finish()
    ((_, end),) = found.stops
    assert end == found.end - found.start


def test_a_stop_that_is_over_before_the_supervisor_had_its_turn_is_told(running) -> None:
    program = running(COMPUTING)
    parent = int(status(program.pid)["PPid"])
    for one in (parent, program.pid):
        os.kill(one, signal.SIGSTOP)
        until(lambda one=one: state(one) == "T")
    for one in (program.pid, parent):
        os.kill(one, signal.SIGCONT)
    found = program.finish()
    assert found.stops == []
    assert [note for note in found.notes if note.startswith("1 stop could not be timed")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_runner_reaches_the_program(number: int, running: Callable[..., Running]) -> None:
    program = running(
        "import signal, sys\n"
        f"signal.signal({number:d}, lambda *a: sys.exit(40 + a[0]))\n"
        "os.write(1, b'%d\\n' % os.getpid())\nwhile True: signal.pause()\n"
    )
    program.process.send_signal(number)
    assert program.process.wait(60) == 40 + number
    assert os.waitstatus_to_exitcode(opened(program.folder).result.status) == 40 + number


def test_who_kills_the_runner_ends_the_program(running: Callable[..., Running]) -> None:
    program = running(COMPUTING)
    program.process.kill()
    until(lambda: not Path(f"/proc/{program.pid}").exists())
    until(lambda: opening.read(program.folder).result.status >= 0)
    assert opened(program.folder).result.ending == "killed by SIGKILL"


def test_a_group_that_is_stopped_is_one_stop_seen_by_the_supervisor(running: Callable[..., Running]) -> None:
    program = running(COMPUTING)
    since, last = program.stop_for(0.05, -os.getpgid(program.pid))
    assert os.getpgid(program.pid) == program.process.pid
    until(lambda: state(program.pid) != "T")
    ((start, end),) = program.finish().stops
    assert end - start >= (last - since) * 0.5


def test_a_share_of_a_processor_is_held_by_stops(tmp_path: Path) -> None:
    code = (
        "import time\nwhile time.process_time() < 0.2: pass\n"
        "print(time.process_time(), file=open('used', 'w'))\n"
    )
    found = recorded(tmp_path, code, "--limit", "cpu=0.05")
    used = float((tmp_path / "used").read_text())
    assert found.live >= (used - 0.1) / 0.05, (
        "it used 0.05 of a processor, but for what it used before a look"
    )
    assert found.result.held == "duty cycle" and len(found.stops) > 2
    # On a busy machine it may wait longer for a processor than it is stopped.
    assert found.by_rule["exact"] > sum(end - start for start, end in found.stops) / 2e9


def test_a_control_group_holds_a_program_back_without_stops(tmp_path: Path) -> None:
    code = "import time\nwhile time.process_time() < 0.1: pass\n"
    options = ("--limit", "cpu=0.05", "--hold-cpu-by", "cgroup")
    try:
        control_group(0.25).remove()
    except CollectorUnavailable as refused:
        found = run(*ISLAND, *options, "-c", code, cwd=tmp_path)
        assert (found.returncode, found.stdout) == (refused.exit_code, "")
        assert "cannot make a control group" in found.stderr and "--hold-cpu-by stops" in found.stderr
        return
    told = recorded(tmp_path, code, *options)
    assert (told.result.held, told.stops) == ("cgroup", [])
    seconds = {row.subtype: row.seconds for row in told.usage if row.type == "wait"}
    # On a busy machine it may get less than its share anyway.
    assert ("throttled" in seconds) == (told.result.throttled > 0)
    assert seconds.get("throttled", 0) <= told.result.throttled / 1e9 + 1e-9
    assert told.live > 0.1


class Shell:
    """An interactive shell in a terminal of its own."""

    def __init__(self, tmp_path: Path) -> None:
        self.said = ""
        code = "import pty; pty.spawn(['bash', '--norc', '--noediting', '-i'])"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path,
            env={**os.environ, "PS1": "$ ", "TERM": "dumb"}, start_new_session=True, bufsize=0
        )  # fmt: skip

    def type(self, keys: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(keys.encode())

    def until(self, words: str) -> None:
        """Read until the shell or a program says this; a minute means never."""
        assert self._process.stdout
        deadline = time.monotonic() + 60
        while words not in self.said:
            assert select.select([self._process.stdout], [], [], deadline - time.monotonic())[0], self.said
            self.said += self._process.stdout.read(4096).decode()
        self.said = self.said.partition(words)[2]

    def close(self) -> None:
        # The shell gets a hangup, and passes it on to its jobs.
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    if not shutil.which("bash"):
        pytest.skip("there is no bash")
    found = Shell(tmp_path)
    yield found
    found.close()


def test_the_shell_stops_and_continues_the_program_as_any_job(shell: Shell, tmp_path: Path) -> None:
    code = "import os\nprint('up', 6 * 7, open('pid', 'w').write(str(os.getpid())))\nprint('got', input())\n"
    (tmp_path / "prog.py").write_text(code)
    shell.type(f"{shlex.join(ISLAND)} --record-to run prog.py\n")
    shell.until("up 42")

    def stopped() -> None:
        shell.type("\x1a")
        shell.until("Stopped")

    # The shell sees its child stop, not the program, which until then may still take what is typed.
    stop(int((tmp_path / "pid").read_text()), stopped)
    shell.type("fg\n")
    shell.until("prog.py")
    shell.type("hello\n")
    shell.until("got hello")
    shell.type("echo code=$?\n")
    shell.until("code=0")
    found = opened(tmp_path / "run")
    assert len(found.stops) == 1
    # It waited for a terminal meanwhile.
    ((start, end),) = found.stops
    ambiguous = sum(life.ambiguous for life in found.threads)
    assert ambiguous + found.by_rule["exact"] == pytest.approx((end - start) / 1e9, abs=MILLISECOND)


def test_ctrl_c_ends_the_program_and_the_report_comes(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text("import time\nprint('up', 6 * 7)\ntime.sleep(100)\n")
    shell.type(f"{shlex.join(ISLAND)} prog.py\n")
    shell.until("up 42")
    shell.type("\x03")
    shell.until("KeyboardInterrupt")
    shell.until("ended: killed by SIGINT, after")
    shell.until("Time consumption")
    shell.type("echo code=$?\n")
    shell.until("code=130")


def test_ctrl_c_while_python_still_loads_shows_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "argparse.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([*ISLAND, "prog.py"], capture_output=True, check=False, env=environ)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_what_is_open_at_the_end_is_told(tmp_path: Path) -> None:
    code = (
        "kept = open('kept', 'w')\nwith open('closed', 'w') as file: file.write('1')\n"
        "import os; os._exit(0)\n"
    )
    found = recorded(tmp_path, code)
    state = {Path(one.object).name: one.closed is None for one in found.objects if one.kind == "file"}
    assert state.items() >= {"kept#1": True, "closed#1": False}.items()
    lines = list(command_line.as_text(found))
    assert any("closed#1  filewrite " in line and "(open)" not in line for line in lines)
    assert any("kept#1  filesopened  (open)" in line for line in lines)


def test_who_kills_the_supervisor_ends_the_program_and_is_told_so(running: Callable[..., Running]) -> None:
    program = running(COMPUTING, errors=True)
    parent = int(Path(f"/proc/{program.pid}/stat").read_text().rpartition(") ")[2].split()[1])
    until(lambda: results.read(program.folder).pid == program.pid)  # before, nobody else knows the program
    os.kill(parent, signal.SIGKILL)
    _, errors = program.process.communicate(timeout=60)
    assert (program.process.returncode, errors) == (
        8, "perun.island: the supervisor of the program was killed, and so was the program\n",
    )  # fmt: skip
    until(lambda: not Path(f"/proc/{program.pid}").exists() or state(program.pid) == "Z")
    found = opened(program.folder)
    assert found.result.status == -1 and "the supervisor was killed" in found.notes[0]
