"""Processes that analyse sources, so that all processors are used and nothing of the analysis stays behind.

A solver that crashes or a source that is nested too deeply ends its process only, and what it had to do is
reported as not read. An interruption ends them all at once.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final, NamedTuple

from perun.collect.bounds.found import Gap, SourceBounds
from perun.collect.bounds.params import BoundsParams
from perun.errors import JobFailed

MAX_WORKERS: Final = 8
_START: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from perun.collect.bounds.serving import main; main(int(sys.argv[1]))"
)


class Task(NamedTuple):
    """Each `parts`-th function of a source, beginning with the number `part`; the whole of it by default."""

    path: str
    part: int = 0
    parts: int = 1


class Progress(NamedTuple):
    """A function of the task was analysed."""

    function: str


class Refused(NamedTuple):
    """The user has to do something first: an error and a hint."""

    message: str
    hint: str = ""


class Setup(NamedTuple):
    """What a process is told first."""

    params: BoundsParams
    cache: Path | None


Answer = Progress | SourceBounds | Refused


def analysed(
    tasks: Sequence[Task], setup: Setup, folder: Path, environ: Mapping[str, str], count: int
) -> Iterator[tuple[Task, Progress | SourceBounds]]:
    """What the tasks find, as it is found: functions of each as they are done, and what it found at its end.

    :param folder: which paths are relative to. :param count: of processes.
    :raises JobFailed: where the user has to do something first.
    """
    waiting = deque(tasks)
    with _Processes(setup, folder, environ) as processes:
        while waiting or processes.working:
            while waiting and len(processes.working) < count:
                processes.start(waiting.popleft())
            for task, answer in processes.answers():
                if isinstance(answer, Refused):
                    raise JobFailed(answer.message, answer.hint)
                yield task, answer


class _Processes:
    """The processes that run, each with the task that it works on."""

    def __init__(self, setup: Setup, folder: Path, environ: Mapping[str, str]) -> None:
        self._setup = setup
        self._folder = folder
        self._environ = dict(environ)
        self._all: list[_Process] = []
        self.working: dict[Connection, tuple[_Process, Task]] = {}

    def __enter__(self) -> _Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._all:
            process.end()

    def start(self, task: Task) -> None:
        """Give the task to a process that has none."""
        busy = {id(process) for process, _ in self.working.values()}
        idle = next((one for one in self._all if id(one) not in busy), None)
        if idle is None:
            idle = _Process(self._setup, self._folder, self._environ)
            self._all.append(idle)
        self.working[idle.connection] = idle, task
        idle.send(task)

    def answers(self) -> list[tuple[Task, Answer]]:
        """What the processes have to say next; at least one answer, which may take long."""
        found: list[tuple[Task, Answer]] = []
        for connection in wait(list(self.working)):
            process, task = self.working[connection]  # type: ignore[index]
            answer = process.receive()
            if answer is None:
                self._all.remove(process)
                gap = Gap(1, "", f"the analysis of it {process.end()}")
                answer = SourceBounds(task.path, (), (gap,))
            if not isinstance(answer, Progress):
                del self.working[connection]  # type: ignore[arg-type]
            found.append((task, answer))
        return found


class _Process:
    """One process, and the connection to it."""

    def __init__(self, setup: Setup, folder: Path, environ: dict[str, str]) -> None:
        ours, theirs = socket.socketpair()
        self._errors = TemporaryFile()  # noqa: SIM115  # closed by `end`
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _START, str(theirs.fileno()), *sys.path],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                cwd=folder,
                env=environ,
                pass_fds=[theirs.fileno()],
                process_group=0,  # Ctrl-C goes to the process that waits for them, which ends them
            )
        self.connection = Connection(ours.detach())
        self.send(setup)

    def send(self, request: Any) -> None:
        """Send a request; one that has ended is found out when its answer is read."""
        try:
            self.connection.send(request)
        except OSError:
            return

    def receive(self) -> Answer | None:
        """The next answer; None where the process has ended."""
        try:
            answer: Answer = self.connection.recv()
        except (EOFError, OSError):
            return None
        return answer

    def end(self) -> str:
        """End the process now; how it ended."""
        self._process.poll()
        self._process.kill()
        status = self._process.wait()
        self.connection.close()
        with self._errors as errors:
            errors.seek(0)
            said = errors.read().decode("utf-8", "replace").strip().rpartition("\n")[2]
        how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        return f"{how}: {said}" if said and status > 0 else how
