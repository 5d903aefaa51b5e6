"""What the tests of pools share: a project whose program notes when it runs, what these notes say, and a
farm of a scheduler and workers as processes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

import command_server

LIMIT = 300
"""Seconds after which something never comes."""
PROGRAM = """\
echo "begin $$ {number} $*" >>"$RECORD"
sleep {seconds}
echo "end $$ {number} $*" >>"$RECORD"
"""
LOCAL = """\
vcs: {{type: git, url: ..}}
cmds: [sh run.sh]
args: [{args}]
collectors: [{{name: time, params: {{warmup: 0, repeat: 1}}}}]
execute: {{pre_run: [sh build.sh]}}
pool: {{patience: 600, attempts: 1000, drift: 0}}
"""


@dataclass(frozen=True)
class Notes:
    """What the programs of a project have noted, in their order: builds, and the begin and end of runs."""

    lines: list[list[str]]

    @property
    def begun(self) -> Counter[tuple[str, str]]:
        """How often each version was run with each argument."""
        return Counter((number, args) for word, _, number, args in self.lines if word == "begin")

    @property
    def overlapping(self) -> list[tuple[str, str]]:
        """The runs that began while another went on, which ended afterwards; with that one."""
        ends = {pid: place for place, (word, pid, *_) in enumerate(self.lines) if word == "end"}
        begins = [(place, pid) for place, (word, pid, *_) in enumerate(self.lines) if word == "begin"]
        return [
            (first, second)
            for start, first in begins
            for place, second in begins
            if start < place < ends.get(first, 0)
        ]


class PoolProject:
    """A project with versions that take some time to run, and a job matrix of them with several arguments.

    :ivar machine: what this machine is called in the test; a farm has others, whose names begin so.
    """

    def __init__(self, project: Any, command: list[str], environment: dict[str, str], folder: Path) -> None:
        self.project = project
        self.command = command
        self.folder = folder
        self.machine = f"test-{os.getpid()}-{folder.name}"
        self.record = folder / "record"
        self.record.touch()
        self.environment = environment
        environment |= {"RECORD": str(self.record), "PERUN_POOL_MACHINE": self.machine}

    def fill(self, versions: int, args: int, seconds: float = 0.02) -> None:
        """Commit so many versions, and configure so many arguments."""
        for number in range(versions):
            program = PROGRAM.format(number=number, seconds=seconds)
            build = f'echo "build $$ {number} -" >>"$RECORD"\n'
            self.project.commit(f"Number {number}", {"run.sh": program, "build.sh": build})
        listed = ", ".join(f"a{number}" for number in range(args))
        self.configure(LOCAL.format(args=listed))

    def configure(self, text: str) -> None:
        """Make this the configuration of the project."""
        (self.project.path / ".perun/local.yml").write_text(text)

    @property
    def configured(self) -> str:
        """The configuration of the project."""
        return (self.project.path / ".perun/local.yml").read_text()

    @property
    def notes(self) -> Notes:
        """What was noted until now."""
        return Notes([line.split() for line in self.record.read_text().splitlines()])

    @property
    def stored(self) -> list[dict[str, Any]]:
        """The pending profiles, in the order of their names."""
        paths = sorted((self.project.path / ".perun/jobs").glob("*.perf"))
        return [json.loads(path.read_bytes()) for path in paths]

    def profiles(self) -> Counter[tuple[str, str]]:
        """How many pending profiles there are of each version and argument."""
        found: Counter[tuple[str, str]] = Counter()
        for profile in self.stored:
            subject = self.project.git("log", "-1", "--format=%s", profile["origin"])
            found[subject.removeprefix("Number ").strip(), profile["header"]["args"]] += 1
        return found

    @property
    def repeated(self) -> int:
        """How often a job was measured again, as the profiles say."""
        return sum(profile["collector_info"].get("measured_again", 0) for profile in self.stored)

    @property
    def journals(self) -> list[Path]:
        """The journals of batches."""
        return sorted((self.project.path / ".perun/batches").glob("*.jsonl"))

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `perun run matrix` with these words to its end, however busy the machine is."""
        return self.perun("run", "matrix", *words)

    def perun(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `perun` with these words to its end, however busy the machine is."""
        done = subprocess.run(
            [*self.command, *words], env=self.environment, capture_output=True, text=True, timeout=LIMIT,
            check=False
        )  # fmt: skip
        assert "Traceback" not in done.stdout + done.stderr, done
        return done

    @contextmanager
    def running(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """A `perun run matrix` that runs meanwhile, and is killed at the end if it still does."""
        pipe = subprocess.PIPE
        words = (*self.command, "run", "matrix", *words)
        with subprocess.Popen(words, env=self.environment, stdout=pipe, stderr=pipe) as client:
            try:
                yield client
            finally:
                client.kill()

    def checked(self, place: str, *words: str) -> list[dict[str, Any]]:
        """What `perun pool check` says of the machines of the pool."""
        done = self.perun("pool", "check", place, "--json", *words)
        return list(json.loads(done.stdout)["machines"]) if done.stdout else []

    def processes(self, word: str = "") -> list[int]:
        """The processes of the pool; if there is a word, those that were called with it."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):  # it has ended, or is of another user
                named = process.environ().get("PERUN_POOL_MACHINE", "").startswith(self.machine)
                words = process.cmdline()
                # The server of commands may have been started by this test, and serves those after it too.
                if named and (not word or word in words) and command_server.__file__ not in words:
                    found.append(process.pid)
        return found

    def close(self) -> None:
        """Leave nothing on this machine, whatever has become of the test."""
        while left := self.processes():
            for pid in left:
                with suppress(psutil.Error):
                    psutil.Process(pid).kill()
        for lock in Path("/tmp").glob(f"perun-pool-{self.machine}*.lock"):
            lock.unlink()


class Farm:
    """A scheduler and workers as processes, each of which can be killed and is then started again.

    :ivar machines: what the machines of the workers are called: those of one name are one machine.
    """

    def __init__(self, pool: PoolProject, machines: Sequence[str], options: Sequence[str] = ()) -> None:
        self._pool = pool
        self._options = options
        self.machines = [f"{pool.machine}-{one}" for one in machines]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.place = f"dask{'+tls' if options else ''}://127.0.0.1:{self.port}"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start what does not run."""
        quiet = (*self._options, "--no-dashboard", "--dashboard-address", "127.0.0.1:0")
        self._start("scheduler", "scheduler", "--host", "127.0.0.1", "--port", str(self.port), *quiet)
        single = ("--nthreads", "1", "--resources", "bench=1", "--no-nanny", "--death-timeout", "600")
        address = f"{'tls' if self._options else 'tcp'}://127.0.0.1:{self.port}"
        for number, machine in enumerate(self.machines):
            self._start(f"worker-{number}", "worker", address, *single, *quiet, machine=machine)

    def _start(self, name: str, *words: str, machine: str = "") -> None:
        process = self.processes.get(name)
        if process is not None and process.poll() is None:
            return
        environment = {**self._pool.environment, "PERUN_POOL_MACHINE": machine or self._pool.machine}
        with open(self._pool.folder / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "dask", *words], env=environment, cwd=self._pool.folder, stdout=log,
                stderr=log
            )  # fmt: skip

    def kill(self, name: str) -> None:
        """Kill it, and wait for its end."""
        self.processes[name].kill()
        self.processes[name].wait(LIMIT)

    def __enter__(self) -> Farm:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        for name in self.processes:
            self.kill(name)


def wanted(versions: int, args: int) -> dict[tuple[str, str], int]:
    """One of each version and argument, as :attr:`Notes.begun` and :meth:`PoolProject.profiles` have them."""
    return {(str(number), f"a{one}"): 1 for number in range(versions) for one in range(args)}


def eventually(is_so: Callable[[], bool], process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait until it is so; a process that has ended cannot make it so any more."""
    deadline = time.monotonic() + LIMIT
    while not is_so():
        if process is not None and process.poll() is not None:
            raise AssertionError(process.communicate())
        assert time.monotonic() < deadline
        time.sleep(0.02)
