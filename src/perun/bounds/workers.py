"""Processes that analyse sources, so that all processors are used and nothing of the analysis stays behind.

A solver that crashes, or a function that takes too long, ends its process only: that function is reported as
not analysed, and another process goes on with the rest. An interruption ends them all at once.
"""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final, NamedTuple

from perun.bounds.answer import FunctionBounds, Gap, SourceBounds
from perun.bounds.sources import BoundsParams
from perun.core.errors import JobFailed
from perun.core.process import programs
from perun.core.process.ending import fields_of, waited

MAX_WORKERS: Final = 8
_LOOK: Final = 1.0
"""Seconds after which a process that says nothing is looked at."""
_IDLE: Final = 4
"""How often the limit passes before a process that does not work is ended."""
_TIMES: Final = 11
"""The fields after the state that have its processor time, of itself and of the system (proc_pid_stat(5))."""
_START: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; from perun.bounds.serving import main; main(int(sys.argv[1]))"
)


class AnalysisTask(NamedTuple):
    """Each `parts`-th function of a source, beginning with the number `part`; the whole of it by default.

    :ivar known: the bounds of functions that another process has found, by their numbers. :ivar lost: why
        such a process had to be ended, by the numbers of the functions that it was at. :ivar spent: the
        seconds of processor time that such processes have taken.
    """

    path: str
    part: int = 0
    parts: int = 1
    spent: float = 0.0
    known: Mapping[int, FunctionBounds] = {}  # nobody changes it, and a proxy is not pickled
    lost: Mapping[int, str] = {}


class AnalysisProgress(NamedTuple):
    """The function of this number is analysed now, or has been, with these bounds."""

    function: str
    number: int
    bounds: FunctionBounds | None = None


class AnalysisRefusal(NamedTuple):
    """The user has to do something first: an error and a hint."""

    message: str
    hint: str = ""


class Setup(NamedTuple):
    """What a process is told first."""

    params: BoundsParams
    cache: Path | None


Answer = AnalysisProgress | SourceBounds | AnalysisRefusal


def analysed(
    tasks: Sequence[AnalysisTask], setup: Setup, folder: Path, environ: Mapping[str, str], count: int
) -> Iterator[tuple[AnalysisTask, AnalysisProgress | SourceBounds]]:
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
                if isinstance(answer, AnalysisRefusal):
                    raise JobFailed(answer.message, answer.hint)
                yield task, answer


class _Processes:
    """The processes that run, each with the task that it works on."""

    def __init__(self, setup: Setup, folder: Path, environ: Mapping[str, str]) -> None:
        self._setup = setup
        self._folder = folder
        self._environ = {**environ, "PYTHONHASHSEED": "0"}  # so that steps are the same each time
        self._all: list[_Process] = []
        self.working: dict[Connection, tuple[_Process, AnalysisTask]] = {}

    def __enter__(self) -> _Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._all:
            process.end()

    def start(self, task: AnalysisTask) -> None:
        """Give the task to a process that has none."""
        busy = {id(process) for process, _ in self.working.values()}
        idle = next((one for one in self._all if id(one) not in busy), None)
        if idle is None:
            idle = _Process(self._setup, self._folder, self._environ)
            self._all.append(idle)
        self.working[idle.connection] = idle, task
        idle.begin(task)

    def answers(self) -> list[tuple[AnalysisTask, Answer]]:
        """What the processes have to say next; at least one answer, which may take long."""
        found: list[tuple[AnalysisTask, Answer]] = []
        limit = self._setup.params.timeout
        while not found:
            ready = wait(list(self.working), min(_LOOK, limit / 4) if limit else None)
            for connection, (process, task) in list(self.working.items()):
                if connection in ready:
                    answer = process.receive() or self._lost(process, task, "")
                elif limit and process.is_over(limit):
                    why = f"takes longer than {limit:g} s; --timeout gives it more"
                    answer = self._lost(process, task, why)
                else:
                    continue
                if answer is not None:
                    found.append((task, answer))
                    if not isinstance(answer, AnalysisProgress):
                        self.working.pop(connection, None)
        return found

    def _lost(self, process: _Process, task: AnalysisTask, why: str) -> Answer | None:
        """What is known of a task whose process has ended, or is ended for that reason; None if another one
        goes on with it."""
        del self.working[process.connection]
        self._all.remove(process)
        spent = task.spent + process.spent()
        how = process.end()
        reason = f"the analysis of it {why or how}"
        if process.at is None:
            return SourceBounds(task.path, (), (Gap(1, "", reason),))
        known = {**task.known, **process.known}
        self.start(task._replace(known=known, spent=spent, lost={**task.lost, process.at: reason}))
        return None


class _Process:
    """One process, and the connection to it."""

    def __init__(self, setup: Setup, folder: Path, environ: dict[str, str]) -> None:
        self._errors = TemporaryFile()  # noqa: SIM115  # closed by `end`
        self._process, ours = programs.worker(
            _START, stdout=programs.DEVNULL, stderr=self._errors, cwd=folder, environ=environ
        )
        self.connection = Connection(ours)
        self.known: dict[int, FunctionBounds] = {}
        self.at: int | None = None
        """The number of the function that it is at; None while it reads the source."""
        self._begun = 0.0
        self._waited: float | None = None
        self._spent_before = self._spent_then = 0.0
        self.send(setup)

    def begin(self, task: AnalysisTask) -> None:
        """Give it a task."""
        self.known, self.at = {}, None
        self._restart_clock()
        self._spent_before = self._spent_then
        self.send(task)

    def spent(self) -> float:
        """Seconds of processor time that its task has taken."""
        return self._processor_time() - self._spent_before

    def _processor_time(self) -> float:
        times = fields_of(self._process.pid)[_TIMES:][:2]
        return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")

    def is_over(self, limit: float) -> bool:
        """Whether the function that it is at has taken more seconds of processor time than that, or has not
        gone on for a multiple of them in which it did not wait for a core; reading a source, which is
        preprocessed and parsed, has twice as many."""
        taken = time.monotonic() - self._begun
        if self._waited is None:
            if taken > min(_LOOK, limit / 4):
                self._waited = waited(self._process.pid)
            return False
        limit *= 1 if self.at is not None else 2
        if taken <= limit:
            return False
        if self._processor_time() - self._spent_then > limit:
            return True
        return taken - (waited(self._process.pid) - self._waited) > _IDLE * limit

    def _restart_clock(self) -> None:
        self._begun, self._waited = time.monotonic(), None
        self._spent_then = self._processor_time()

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
        self._restart_clock()
        if isinstance(answer, AnalysisProgress):
            self.at = answer.number
            if answer.bounds is not None:
                self.known[answer.number] = answer.bounds
        return answer

    def end(self) -> str:
        """End the process now; how it ended."""
        status = self._process.end()
        self.connection.close()
        with self._errors as errors:
            errors.seek(0)
            said = errors.read().decode("utf-8", "replace").strip().rpartition("\n")[2]
        how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        return f"{how}: {said}" if said and status > 0 else how
