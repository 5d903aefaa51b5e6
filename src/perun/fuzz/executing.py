"""Running inputs for their counts, in this process or in several (`--jobs`).

What comes back of a run are the counts that are larger than those known: nothing else guides the search, and
a program may have a hundred thousand counters.
"""

from __future__ import annotations

import contextlib
import math
import pickle
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from perun.core.errors import JobFailed, PerunError
from perun.core.process import programs
from perun.core.process.command import outcome
from perun.fuzz.corpus import Compass, Counts
from perun.fuzz.coverage.api import Coverage, Outcome


class InputTask(NamedTuple):
    """An input to run.

    :param number: by which its answer is known. :param timeout: in seconds, without those in which the
        program waits for a core. :param until: when there is no time any more, as :func:`time.monotonic`
        counts, which is the same in all processes.
    """

    number: int
    data: bytes
    timeout: float
    until: float = math.inf


class RunObservation(NamedTuple):
    """What a run did.

    :param code: as :attr:`perun.fuzz.coverage.api.CoverageRun.code`. :param total: executed lines.
    :param edges: whose count was larger than what was known when it ran; :param counts: of these.
    :param limit: seconds that it was given: the timeout of the task, or less where the time was over.
    """

    outcome: Outcome
    code: int
    total: int
    seconds: float
    edges: NDArray[np.intp]
    counts: Counts
    limit: float


class Executor(Protocol):
    """Runs inputs.

    :ivar note: what the user should know of how programs are run.
    :ivar unit: what is counted, `lines` or `edges`.
    """

    note: str
    unit: str

    def run(self, tasks: Sequence[InputTask]) -> Iterator[RunObservation]:
        """Run the tasks; the answers in their order.

        :raises PerunError: if the program can be run no more.
        """
        ...

    def learn(self, edges: NDArray[np.intp], counts: Counts) -> None:
        """These counts are known from now on."""
        ...

    def begin(self, task: InputTask) -> None:
        """Run one task beside the others; :meth:`finished` gives its answer."""
        ...

    def finished(self) -> list[tuple[InputTask, RunObservation]]:
        """The tasks of :meth:`begin` that have ended since the last call."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether a task of :meth:`begin` still runs."""
        ...

    def close(self) -> None:
        """End all that runs."""
        ...


def observe(coverage: Coverage, task: InputTask, known: Compass) -> RunObservation:
    """Run one task, and compare its counts with those known."""
    nothing = np.zeros(0, np.int64)
    if task.until <= time.monotonic():
        return RunObservation("hang", 0, 0, 0.0, nothing, nothing, 0.0)
    done = coverage.run(task.data, task.timeout, task.until)
    if done.outcome != "ok":
        limit = min(task.timeout, done.seconds) if done.outcome == "hang" else task.timeout
        return RunObservation(done.outcome, done.code, done.total, done.seconds, nothing, nothing, limit)
    edges = known.rises(done.counts)
    return RunObservation("ok", done.code, done.total, done.seconds, edges, done.counts[edges], task.timeout)


class SerialExecutor:
    """Runs inputs in this process, one after the other."""

    is_busy = False

    def __init__(self, coverage: Coverage) -> None:
        self._coverage = coverage
        self._known = Compass()
        self._finished: list[tuple[InputTask, RunObservation]] = []
        coverage.start()
        self.note, self.unit = coverage.note, coverage.unit

    def run(self, tasks: Sequence[InputTask]) -> Iterator[RunObservation]:
        """Each task is run when its answer is asked for."""
        for task in tasks:
            yield observe(self._coverage, task, self._known)

    def learn(self, edges: NDArray[np.intp], counts: Counts) -> None:
        """These counts are known from now on."""
        self._known.take(edges, counts, 0)

    def begin(self, task: InputTask) -> None:
        """Run it at once: there is nobody else."""
        self._finished.append((task, observe(self._coverage, task, self._known)))

    def finished(self) -> list[tuple[InputTask, RunObservation]]:
        """Those since the last call."""
        found, self._finished = self._finished, []
        return found

    def close(self) -> None:
        """End the program."""
        self._coverage.close()


class NullExecutor:
    """Runs nothing: for a search without coverage."""

    is_busy = False
    note = ""
    unit = "lines"

    def run(self, tasks: Sequence[InputTask]) -> Iterator[RunObservation]:
        """Nothing is run."""
        raise AssertionError("a search without coverage measures")

    def learn(self, edges: NDArray[np.intp], counts: Counts) -> None:
        """Nothing is known."""

    def begin(self, task: InputTask) -> None:
        """Nothing is run."""

    def finished(self) -> list[tuple[InputTask, RunObservation]]:
        """Nothing."""
        return []

    def close(self) -> None:
        """There is nothing to end."""


# Running inputs until the time for it is over, and no longer.

_HANG: Final = "hang"


class RunOutcome(Protocol):
    """What is needed of a run: how it ended (`ok`, `fault`, `hang`), its count, and its time in seconds."""

    @property
    def outcome(self) -> str: ...  # noqa: D102
    @property
    def total(self) -> int: ...  # noqa: D102
    @property
    def seconds(self) -> float: ...  # noqa: D102


class RunInput(Protocol):
    """Runs the program on an input, as :meth:`perun.fuzz.coverage.api.Coverage.run` does."""

    def __call__(self, data: bytes, timeout: float, until: float = math.inf) -> RunOutcome: ...  # noqa: D102


class OutOfTime(Exception):
    """There is no time left for a run, or it was ended as the time was over: nothing is known of it."""


def until(end: float, run: RunInput, clock: Callable[[], float] = time.monotonic) -> RunInput:
    """`run` with an end, by the clock: from then on it raises :class:`OutOfTime`."""

    def limited(data: bytes, timeout: float, until: float = math.inf) -> RunOutcome:
        left = end - clock()
        if left <= 0:
            raise OutOfTime
        ran = run(data, timeout, min(until, time.monotonic() + left))
        if ran.outcome == _HANG and ran.seconds < timeout:
            raise OutOfTime
        return ran

    return limited


# Several processes that run inputs, each with a program of its own (`--jobs`).
#
# They are processes of a socket, as those that compare profiles: an interpreter that is started anew has no
# threads and locks of this one, and ends where this one is killed, as its socket is closed then.

AHEAD: Final = 4
"""Tasks that a process has: one runs, the others wait, so that it never waits for us."""
SMALL: Final = 16 * 1024
"""Bytes of an input up to which there are tasks ahead. All that lies in a socket has to fit into its buffer:
two processes that wait for each other to read would wait for ever."""
_END: Final = 5.0
"""Seconds that a process has to end its program."""
_START: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; from perun.fuzz.executing import serve; serve(int(sys.argv[1]))"
)


class Pool:
    """So many processes that run inputs.

    :param makers: make the coverage of each; they are pickled. :param environ: of the processes.
    :raises PerunError: what :meth:`Coverage.start` raises in one of them.
    """

    def __init__(self, makers: Sequence[Callable[[], Coverage]], environ: Mapping[str, str]) -> None:
        self._workers: list[_Worker] = []
        self._aside: dict[int, tuple[InputTask, _Worker]] = {}
        self._finished: list[tuple[InputTask, RunObservation]] = []
        self._learned: list[tuple[NDArray[np.intp], Counts]] = []
        self.note, self.unit = "", "lines"
        try:
            for make in makers:
                self._workers.append(_Worker(make, environ))
            for worker in self._workers:
                self.note, self.unit = worker.started()
        except BaseException:
            self.close()
            raise

    @property
    def is_busy(self) -> bool:
        """Whether a task of :meth:`begin` still runs."""
        return bool(self._aside)

    def run(self, tasks: Sequence[InputTask]) -> Iterator[RunObservation]:
        """Run the tasks in whatever process has room; the answers in the order of the tasks."""
        self._teach()
        waiting = list(reversed(tasks))
        answers: dict[int, RunObservation] = {}
        for task in tasks:
            while task.number not in answers:
                self._feed(waiting)
                answers |= self._receive(None)
            yield answers.pop(task.number)

    def learn(self, edges: NDArray[np.intp], counts: Counts) -> None:
        """Have all processes know these counts before they run other tasks."""
        if edges.size:
            self._learned.append((edges, counts))

    def begin(self, task: InputTask) -> None:
        """Run the task in a process that gets no other meanwhile, if there are several."""
        worker = min(self._workers, key=lambda one: (one.is_aside, len(one.tasks)))
        worker.is_aside = len(self._workers) > 1 + len(self._aside)
        self._aside[task.number] = (task, worker)
        worker.give(task)

    def finished(self) -> list[tuple[InputTask, RunObservation]]:
        """Those that have ended since the last call; none is waited for."""
        if self._aside:
            self._receive(0)
        found, self._finished = self._finished, []
        return found

    def close(self) -> None:
        """End all processes and their programs."""
        for worker in self._workers:
            worker.connection.close()
        for worker in self._workers:
            worker.end()

    def _teach(self) -> None:
        """Send what was learned to those that have nothing to do; who has, keeps counts that are older."""
        learned, self._learned = self._learned, []
        if learned:
            for worker in self._workers:
                if not worker.tasks:
                    worker.send(learned)

    def _feed(self, waiting: list[InputTask]) -> None:
        """Give waiting tasks to the processes that have the fewest."""
        able = [worker for worker in self._workers if not worker.is_aside]
        while waiting:
            worker = min(able, key=lambda one: len(one.tasks))
            ahead = AHEAD if len(waiting[-1].data) <= SMALL else 1
            if len(worker.tasks) >= ahead:
                return
            worker.give(waiting.pop())

    def _receive(self, seconds: float | None) -> dict[int, RunObservation]:
        """The answers that have come, but for those of tasks that were begun aside."""
        answers: dict[int, RunObservation] = {}
        busy = {worker.connection: worker for worker in self._workers if worker.tasks}
        for connection in wait(list(busy), seconds):
            worker = busy[connection]  # type: ignore[index]
            number, observed = worker.answer()
            if number in self._aside:
                task, _ = self._aside.pop(number)
                worker.is_aside = False
                self._finished.append((task, observed))
            else:
                answers[number] = observed
        return answers


class _Worker:
    """One process, the connection to it, and the tasks that it has."""

    def __init__(self, make: Callable[[], Coverage], environ: Mapping[str, str]) -> None:
        self._process, ours = programs.worker(_START, environ=environ)
        self.connection = Connection(ours)
        self.tasks: list[int] = []
        self.is_aside = False
        self.send(make)

    def started(self) -> tuple[str, str]:
        """Its note and unit, once it is ready."""
        found: tuple[str, str] = self._get()
        return found

    def give(self, task: InputTask) -> None:
        """Another task."""
        self.tasks.append(task.number)
        self.send(task)

    def answer(self) -> tuple[int, RunObservation]:
        """The next answer; waits for it."""
        found: RunObservation = self._get()
        return self.tasks.pop(0), found

    def send(self, what: object) -> None:
        """Send it; that the process has ended, and why, is found out when its answer is read."""
        with contextlib.suppress(OSError):
            self.connection.send(what)

    def end(self) -> None:
        """Wait for its end, and kill it if that takes too long."""
        try:
            self._process.wait(_END)
        except programs.TimeoutExpired:
            self._process.end()

    def _get(self) -> Any:
        try:
            found = self.connection.recv()
        except (EOFError, OSError):
            raise self._lost() from None
        if isinstance(found, BaseException):
            raise found
        return found

    def _lost(self) -> JobFailed:
        """What is said of a process that has ended by itself."""
        self.end()
        code = self._process.returncode
        hint = "go on with --resume"
        if code == -signal.SIGKILL:
            hint += "; where memory was short, which the log of the kernel tells, with fewer jobs"
        return JobFailed(f"a process of --jobs {outcome(-code if code < 0 else code << 8)}", hint)


def serve(descriptor: int) -> None:
    """Run the tasks of each request until the other side is gone: the main function of a process."""
    connection = Connection(descriptor)
    coverage: Coverage | None = None
    known = Compass()
    with contextlib.suppress(EOFError, OSError):
        try:
            coverage = connection.recv()()
            coverage.start()
            connection.send((coverage.note, coverage.unit))
            while True:
                request = connection.recv()
                if isinstance(request, InputTask):
                    connection.send(observe(coverage, request, known))
                else:
                    for edges, counts in request:
                        known.take(edges, counts, 0)
        except EOFError:
            pass
        except Exception as problem:  # such as a full disk
            connection.send(_picklable(problem))
    if coverage is not None:
        coverage.close()


def _picklable(problem: Exception) -> Exception:
    """The exception for the other process; a defect comes with its traceback as a note."""
    if not isinstance(problem, (PerunError, OSError)):
        problem.add_note("".join(traceback.format_exception(problem)))
    try:
        pickle.loads(pickle.dumps(problem))
    except Exception:
        if isinstance(problem, OSError):
            return OSError(problem.errno, problem.strerror)
        if isinstance(problem, PerunError):
            return JobFailed(problem.message, problem.hint)
        return RuntimeError("".join(traceback.format_exception(problem)))
    return problem
