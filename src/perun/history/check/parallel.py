"""Many pairs of profiles compared one after the other, with the help of the spare cores if that pays."""

from __future__ import annotations

import pickle
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from multiprocessing.connection import Connection
from queue import SimpleQueue
from types import TracebackType
from typing import Final, TypeVar

from perun.core.machine import usable_processors
from perun.core.process import programs
from perun.history.check.compare import CheckPair, Comparer, PairOutcome
from perun.history.check.report import ComparisonOptions
from perun.repository.repository import Repository

HELP_AFTER: Final = 0.5
"""Seconds of comparing after which other processes help: their start takes at least that long."""
CHUNK_SECONDS: Final = 0.25
CHUNK_PAIRS: Final = 64
CHUNK_ITEMS: Final = 512
"""The size of a chunk for another process: neighbours, which share profiles, in small numbers, so that no
result waits for long."""
MAX_WORKERS: Final = 8

M = TypeVar("M")


def compare(
    repo: Repository, options: ComparisonOptions, items: Iterable[CheckPair | M]
) -> Iterator[PairOutcome | M]:
    """The outcome of each pair among the items, in their order; what is no pair is passed through.

    Items are taken as they are needed, and a bounded number of them ahead once other processes help.

    :raises PluginError: if a check breaks its contract.
    """
    comparer = Comparer(repo, options)
    iterator = iter(items)
    spent, pairs = 0.0, 0
    for item in iterator:
        if not isinstance(item, CheckPair):
            yield item
            continue
        begun = time.monotonic()
        outcome = comparer.registered(item)
        spent += time.monotonic() - begun
        pairs += 1
        yield outcome
        if spent > HELP_AFTER:
            break
    size = min(max(int(CHUNK_SECONDS * pairs / max(spent, 1e-9)), 1), CHUNK_PAIRS)
    chunks = _chunks(iterator, size)
    first = next(chunks, None)
    second = next(chunks, None) if first else None
    if first is None:
        return
    together = chain((first, second), chunks) if second else iter((first,))
    workers = min(usable_processors(), MAX_WORKERS)
    if second is None or workers < 2:
        for chunk in together:
            for item in chunk:
                yield comparer.registered(item) if isinstance(item, CheckPair) else item
        return

    with Workers(repo, options, workers, comparer) as helpers:
        for chunk, outcomes in helpers.compare(together):
            found = iter(outcomes)
            for item in chunk:
                yield next(found) if isinstance(item, CheckPair) else item


def _chunks(items: Iterator[CheckPair | M], size: int) -> Iterator[list[CheckPair | M]]:
    """Runs of items with `size` pairs each."""
    chunk: list[CheckPair | M] = []
    pairs = 0
    for item in items:
        chunk.append(item)
        pairs += isinstance(item, CheckPair)
        if pairs >= size or len(chunk) >= CHUNK_ITEMS:
            yield chunk
            chunk, pairs = [], 0
    if chunk:
        yield chunk


# Other processes that compare pairs of profiles: threads of `concurrent.futures` ask one process each.
#
# The processes are no `ProcessPoolExecutor`. With two of them by `spawn` on Python 3.11 its first answers
# come after 1.1 to 1.3 s, here after 0.8 s, as it also imports the program that uses Perun. It has no way to
# end a process that still compares. One killed process breaks the whole pool. And if Perun itself is killed,
# its processes wait for ever, since each of them holds both ends of the queue.

CHUNKS_AHEAD = 2
"""Chunks for each process that are being compared or wait for those before them."""
_START = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from perun.history.check.parallel import serve; serve(int(sys.argv[1]))"
)


class Workers:
    """So many processes, which end with the block, whatever they do then.

    :param fallback: compares here what a process could not, for instance because it was killed or because a
        check raised an error, which is so raised here.
    """

    def __init__(self, repo: Repository, options: ComparisonOptions, count: int, fallback: Comparer) -> None:
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

    def compare(
        self, chunks: Iterator[list[CheckPair | M]]
    ) -> Iterator[tuple[list[CheckPair | M], list[PairOutcome]]]:
        """Each chunk with the outcomes of its pairs, in their order."""
        window: deque[tuple[list[CheckPair | M], Future[list[PairOutcome] | None]]] = deque()
        for chunk in chunks:
            window.append((chunk, self._threads.submit(self._ask, _pairs(chunk))))
            if len(window) == CHUNKS_AHEAD * self._count:
                yield self._finish(*window.popleft())
        while window:
            yield self._finish(*window.popleft())

    def _ask(self, pairs: list[CheckPair]) -> list[PairOutcome] | None:
        """The outcomes that an idle process finds; None if it cannot."""
        if not pairs:
            return []
        worker = self._idle.get()
        try:
            return worker.ask(pairs)
        finally:
            self._idle.put(worker)

    def _finish(
        self, chunk: list[CheckPair | M], future: Future[list[PairOutcome] | None]
    ) -> tuple[list[CheckPair | M], list[PairOutcome]]:
        outcomes = future.result()
        if outcomes is None:
            outcomes = [self._fallback.registered(pair) for pair in _pairs(chunk)]
        return chunk, outcomes


def _pairs(chunk: list[CheckPair | M]) -> list[CheckPair]:
    return [item for item in chunk if isinstance(item, CheckPair)]


class _Worker:
    """One process, and the connection to it."""

    def __init__(self, environ: dict[str, str], setup: object) -> None:
        self._process, ours = programs.worker(_START, environ=environ)
        self.connection = Connection(ours)
        self._send(setup)

    def ask(self, pairs: list[CheckPair]) -> list[PairOutcome] | None:
        """The outcomes of the pairs; None if the process could not compare them, or has ended."""
        if not self._send(pairs):
            return None
        try:
            answer: list[PairOutcome] | None = self.connection.recv()
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


def _answer(comparer: Comparer, pairs: Sequence[CheckPair]) -> bytes:
    try:
        return pickle.dumps([comparer.registered(pair) for pair in pairs])
    except Exception:
        return pickle.dumps(None)  # the main process compares them again, and reports what is wrong
