"""Other processes that compare pairs of profiles: one request, one answer at a time, over a socket each.

They are not made by `multiprocessing`, which imports the program that it is used in once more, or copies a
process in which other threads run.
"""

from __future__ import annotations

import pickle
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, Generic, TypeVar

from perun.porcelain.check.compare import Comparer, Outcome, Pair
from perun.porcelain.check.report import Options
from perun.porcelain.repository import Repository

AHEAD = 2
"""Chunks for each process that are under way or wait for those before them."""
_START = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from perun.porcelain.check.workers import serve; serve(int(sys.argv[1]))"
)

M = TypeVar("M")


class Workers:
    """So many processes, which end with the block, whatever they do then.

    :param spare: compares what a process could not, e.g. as it was killed or the answer cannot be sent; so
        an error of a check is raised here.
    """

    def __init__(self, repo: Repository, options: Options, count: int, spare: Comparer) -> None:
        self._setup = tuple(repo), options
        self._environ = dict(repo.environ)
        self._count = count
        self._spare = spare
        self._workers: list[_Worker] = []

    def __enter__(self) -> Workers:
        for _ in range(self._count):
            self._workers.append(_Worker(self._environ, self._setup))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.end()

    def compare(self, chunks: Iterator[list[Pair | M]]) -> Iterator[tuple[list[Pair | M], list[Outcome]]]:
        """Each chunk with the outcomes of its pairs, in their order."""
        window: deque[_Ticket[M]] = deque()
        while True:
            self._hand_out(chunks, window)
            if not window:
                return
            ticket = window[0]
            while ticket.outcomes is None:
                self._receive()
                self._hand_out(chunks, window)
            window.popleft()
            yield ticket.chunk, ticket.outcomes

    def _hand_out(self, chunks: Iterator[list[Pair | M]], window: deque[_Ticket[M]]) -> None:
        """Give every idle process a chunk, as far as the window allows."""
        for worker in self._workers:
            while worker.ticket is None and len(window) < AHEAD * self._count:
                chunk = next(chunks, None)
                if chunk is None:
                    return
                ticket = _Ticket(chunk)
                window.append(ticket)
                if ticket.outcomes is None:
                    self._give(worker, ticket)

    def _give(self, worker: _Worker, ticket: _Ticket[M]) -> None:
        worker.ticket = ticket
        if not worker.send(ticket.pairs):
            self._do(worker)

    def _receive(self) -> None:
        """Take the answers that are there, after waiting for one."""
        busy = {worker.connection: worker for worker in self._workers if worker.ticket is not None}
        for connection in wait(list(busy)):
            worker = busy[connection]  # type: ignore[index]  # only connections were given
            outcomes = worker.answer()
            if outcomes is None:
                self._do(worker)
            elif worker.ticket is not None:
                worker.ticket.outcomes, worker.ticket = outcomes, None

    def _do(self, worker: _Worker) -> None:
        """Do here what the process could not."""
        assert worker.ticket is not None
        worker.ticket.outcomes = [self._spare.registered(pair) for pair in worker.ticket.pairs]
        worker.ticket = None


class _Ticket(Generic[M]):
    """A chunk and, once it was compared, the outcomes of its pairs."""

    def __init__(self, chunk: list[Pair | M]) -> None:
        self.chunk = chunk
        self.pairs = [item for item in chunk if isinstance(item, Pair)]
        self.outcomes: list[Outcome] | None = None if self.pairs else []


class _Worker:
    """The other process and what it does now."""

    def __init__(self, environ: dict[str, str], setup: object) -> None:
        self.ticket: _Ticket[Any] | None = None
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _START, str(theirs.fileno()), *sys.path],
                stdin=subprocess.DEVNULL,
                env=environ,
                pass_fds=[theirs.fileno()],
                # Ctrl-C is for the process that waits for them; it ends them.
                process_group=0,
            )
        self.connection = Connection(ours.detach())
        self._alive = self.send(setup)

    def send(self, request: object) -> bool:
        """Whether the process is there to take the request."""
        try:
            self.connection.send(request)
        except OSError:
            return False
        return True

    def answer(self) -> list[Outcome] | None:
        """The outcomes; None where the process could not, or cannot any more."""
        try:
            answer: list[Outcome] | None = self.connection.recv()
        except (EOFError, OSError, pickle.UnpicklingError, AttributeError, ImportError):
            return None
        return answer

    def end(self) -> None:
        """End the process now."""
        self._process.kill()
        self._process.wait()
        self.connection.close()


def serve(descriptor: int) -> None:
    """Compare what is asked for until the other side is gone: the whole life of such a process."""
    import gc

    gc.set_threshold(100_000, 50, 100)
    connection = Connection(descriptor)
    try:
        opened, options = connection.recv()
        comparer = Comparer(Repository(*opened), options)
        while True:
            connection.send_bytes(_answer(comparer, connection.recv()))
    except (EOFError, OSError):
        return


def _answer(comparer: Comparer, pairs: Sequence[Pair]) -> bytes:
    try:
        return pickle.dumps([comparer.registered(pair) for pair in pairs])
    except Exception:
        return pickle.dumps(None)  # it is tried again, and tells what is wrong, where that can be reported
