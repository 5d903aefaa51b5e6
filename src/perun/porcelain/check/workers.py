"""Other processes that compare pairs of profiles: threads of `concurrent.futures` ask one process each.

The processes are no `ProcessPoolExecutor`. With two of them by `spawn` on Python 3.11 its first answers come
after 1.1 to 1.3 s, here after 0.8 s, as it also imports the program that uses Perun. It has no way to end a
process that still compares. One killed process breaks the whole pool. And if Perun itself is killed, its
processes wait for ever, since each of them holds both ends of the queue.
"""

from __future__ import annotations

import pickle
import socket
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from queue import SimpleQueue
from types import TracebackType
from typing import TypeVar

from perun.porcelain.check.compare import Comparer, Outcome, Pair
from perun.porcelain.check.report import Options
from perun.porcelain.repository import Repository
from perun.process import programs

CHUNKS_AHEAD = 2
"""Chunks for each process that are being compared or wait for those before them."""
_START = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from perun.porcelain.check.workers import serve; serve(int(sys.argv[1]))"
)

M = TypeVar("M")


class Workers:
    """So many processes, which end with the block, whatever they do then.

    :param fallback: compares here what a process could not, for instance because it was killed or because a
        check raised an error, which is so raised here.
    """

    def __init__(self, repo: Repository, options: Options, count: int, fallback: Comparer) -> None:
        self._setup = tuple(repo._replace(asks=None)), options  # a worker cannot ask the user
        self._environ = dict(repo.environ)
        self._count = count
        self._fallback = fallback
        self._workers: list[_Worker] = []
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        self._threads = ThreadPoolExecutor(count)

    def __enter__(self) -> Workers:
        for _ in range(self._count):
            self._workers.append(_Worker(self._environ, self._setup))
            self._idle.put(self._workers[-1])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.kill()
        # The threads read the end of their connections now.
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.connection.close()

    def compare(self, chunks: Iterator[list[Pair | M]]) -> Iterator[tuple[list[Pair | M], list[Outcome]]]:
        """Each chunk with the outcomes of its pairs, in their order."""
        window: deque[tuple[list[Pair | M], Future[list[Outcome] | None]]] = deque()
        for chunk in chunks:
            window.append((chunk, self._threads.submit(self._ask, _pairs(chunk))))
            if len(window) == CHUNKS_AHEAD * self._count:
                yield self._finish(*window.popleft())
        while window:
            yield self._finish(*window.popleft())

    def _ask(self, pairs: list[Pair]) -> list[Outcome] | None:
        """The outcomes that an idle process finds; None if it cannot."""
        if not pairs:
            return []
        worker = self._idle.get()
        try:
            return worker.ask(pairs)
        finally:
            self._idle.put(worker)

    def _finish(
        self, chunk: list[Pair | M], future: Future[list[Outcome] | None]
    ) -> tuple[list[Pair | M], list[Outcome]]:
        outcomes = future.result()
        if outcomes is None:
            outcomes = [self._fallback.registered(pair) for pair in _pairs(chunk)]
        return chunk, outcomes


def _pairs(chunk: list[Pair | M]) -> list[Pair]:
    return [item for item in chunk if isinstance(item, Pair)]


class _Worker:
    """One process, and the connection to it."""

    def __init__(self, environ: dict[str, str], setup: object) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = programs.Program(
                [sys.executable, "-P", "-c", _START, str(theirs.fileno()), *sys.path],
                environ=environ,
                inherit=[theirs.fileno()],
            )
        self.connection = Connection(ours.detach())
        self._send(setup)

    def ask(self, pairs: list[Pair]) -> list[Outcome] | None:
        """The outcomes of the pairs; None if the process could not compare them, or has ended."""
        if not self._send(pairs):
            return None
        try:
            answer: list[Outcome] | None = self.connection.recv()
        except (EOFError, OSError, pickle.UnpicklingError, AttributeError, ImportError):
            return None
        return answer

    def _send(self, request: object) -> bool:
        """Send the request; whether the process still reads."""
        try:
            self.connection.send(request)
        except OSError:
            return False
        return True

    def kill(self) -> None:
        """End the process now."""
        self._process.end()


def serve(descriptor: int) -> None:
    """Compare the pairs of each request until the other side is gone: the main function of a worker."""
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
        return pickle.dumps(None)  # the main process compares them again, and reports what is wrong
