"""Running inputs for their counts, in this process or in several (`--jobs`).

What comes back of a run are the counts that are larger than those known: nothing else guides the search, and
a program may have a hundred thousand counters.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from perun.fuzz.corpus import Compass, Counts
from perun.fuzz.coverage.api import Coverage, Outcome


class Task(NamedTuple):
    """An input to run.

    :param number: by which its answer is known. :param timeout: in seconds, without those in which the
        program waits for a core. :param until: when there is no time any more, as :func:`time.monotonic`
        counts, which is the same in all processes.
    """

    number: int
    data: bytes
    timeout: float
    until: float = math.inf


class Observed(NamedTuple):
    """What a run did.

    :param code: as :attr:`perun.fuzz.coverage.api.Execution.code`. :param total: executed lines.
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

    def run(self, tasks: Sequence[Task]) -> Iterator[Observed]:
        """Run the tasks; the answers in their order.

        :raises PerunError: if the program can be run no more.
        """
        ...

    def learn(self, edges: NDArray[np.intp], counts: Counts) -> None:
        """These counts are known from now on."""
        ...

    def begin(self, task: Task) -> None:
        """Run one task beside the others; :meth:`finished` gives its answer."""
        ...

    def finished(self) -> list[tuple[Task, Observed]]:
        """The tasks of :meth:`begin` that have ended since the last call."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether a task of :meth:`begin` still runs."""
        ...

    def close(self) -> None:
        """End all that runs."""
        ...


def observe(coverage: Coverage, task: Task, known: Compass) -> Observed:
    """Run one task, and compare its counts with those known."""
    nothing = np.zeros(0, np.int64)
    if task.until <= time.monotonic():
        return Observed("hang", 0, 0, 0.0, nothing, nothing, 0.0)
    done = coverage.run(task.data, task.timeout, task.until)
    if done.outcome != "ok":
        limit = min(task.timeout, done.seconds) if done.outcome == "hang" else task.timeout
        return Observed(done.outcome, done.code, done.total, done.seconds, nothing, nothing, limit)
    edges = known.rises(done.counts)
    return Observed("ok", done.code, done.total, done.seconds, edges, done.counts[edges], task.timeout)


class Here:
    """Runs inputs in this process, one after the other."""

    is_busy = False

    def __init__(self, coverage: Coverage) -> None:
        self._coverage = coverage
        self._known = Compass()
        self._finished: list[tuple[Task, Observed]] = []
        coverage.start()
        self.note, self.unit = coverage.note, coverage.unit

    def run(self, tasks: Sequence[Task]) -> Iterator[Observed]:
        """Each task is run when its answer is asked for."""
        for task in tasks:
            yield observe(self._coverage, task, self._known)

    def learn(self, edges: NDArray[np.intp], counts: Counts) -> None:
        """These counts are known from now on."""
        self._known.take(edges, counts, 0)

    def begin(self, task: Task) -> None:
        """Run it at once: there is nobody else."""
        self._finished.append((task, observe(self._coverage, task, self._known)))

    def finished(self) -> list[tuple[Task, Observed]]:
        """Those since the last call."""
        found, self._finished = self._finished, []
        return found

    def close(self) -> None:
        """End the program."""
        self._coverage.close()


class Nobody:
    """Runs nothing: for a search without coverage."""

    is_busy = False
    note = ""
    unit = "lines"

    def run(self, tasks: Sequence[Task]) -> Iterator[Observed]:
        """Nothing is run."""
        raise AssertionError("a search without coverage measures")

    def learn(self, edges: NDArray[np.intp], counts: Counts) -> None:
        """Nothing is known."""

    def begin(self, task: Task) -> None:
        """Nothing is run."""

    def finished(self) -> list[tuple[Task, Observed]]:
        """Nothing."""
        return []

    def close(self) -> None:
        """There is nothing to end."""


# Running inputs until the time for it is over, and no longer.

_HANG: Final = "hang"


class Ran(Protocol):
    """What is needed of a run: how it ended (`ok`, `fault`, `hang`), its count, and its time in seconds."""

    @property
    def outcome(self) -> str: ...  # noqa: D102
    @property
    def total(self) -> int: ...  # noqa: D102
    @property
    def seconds(self) -> float: ...  # noqa: D102


class RunInput(Protocol):
    """Runs the program on an input, as :meth:`perun.fuzz.coverage.api.Coverage.run` does."""

    def __call__(self, data: bytes, timeout: float, until: float = math.inf) -> Ran: ...  # noqa: D102


class OutOfTime(Exception):
    """There is no time left for a run, or it was ended as the time was over: nothing is known of it."""


def until(end: float, run: RunInput, clock: Callable[[], float] = time.monotonic) -> RunInput:
    """`run` with an end, by the clock: from then on it raises :class:`OutOfTime`."""

    def limited(data: bytes, timeout: float, until: float = math.inf) -> Ran:
        left = end - clock()
        if left <= 0:
            raise OutOfTime
        ran = run(data, timeout, min(until, time.monotonic() + left))
        if ran.outcome == _HANG and ran.seconds < timeout:
            raise OutOfTime
        return ran

    return limited
