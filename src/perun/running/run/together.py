"""Runs of one answer at once, each in a process of its own, on as many cores as there are.

Only what is counted is recorded so: counts do not depend on what else runs. The processes are no threads,
as a measured command is started in its folder, and a process has one current folder only.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.core.errors import JobFailed, PerunError
from perun.core.machine import usable_processors
from perun.core.process import programs
from perun.plugin.api import MinorVersion, silent
from perun.repository.jobs import Job
from perun.repository.repository import Repository
from perun.running.run import collecting

if TYPE_CHECKING:
    from perun.profile.factory import Profile

_START: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from perun.running.run.together import serve; serve(int(sys.argv[1]))"
)


class CollectTask(NamedTuple):
    """A job in the folder of one version. :param environ: in place of that of the user."""

    job: Job
    version: MinorVersion
    folder: Path
    environ: Mapping[str, str] | None = None


class Collected(NamedTuple):
    """What a job gave: a profile or an error, and the notes of the collector."""

    profile: Profile | None
    error: PerunError | None
    notes: Sequence[str]

    def taken(self) -> Profile:
        """The profile.

        :raises PerunError: where there is none.
        """
        if self.profile is None:
            raise self.error or JobFailed("nothing was recorded")
        return self.profile


class Together:
    """Processes that collect profiles; they end with the block, whatever they do then."""

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._most = usable_processors()
        self._workers: list[_Worker] = []

    def __enter__(self) -> Together:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.end()

    def collect(self, groups: Sequence[Sequence[CollectTask]]) -> list[list[Collected]]:
        """What each of the jobs gave, in their order, see :meth:`as_done`."""
        found = dict(self.as_done(groups))
        return [found[number] for number in range(len(groups))]

    def as_done(self, groups: Sequence[Sequence[CollectTask]]) -> Iterator[tuple[int, list[Collected]]]:
        """The number of each group, and what its jobs gave, as soon as that is there.

        :param groups: these run at the same time, where there are several cores; the jobs of a group one
            after the other.
        """
        count = min(self._most, len(groups))
        if count < 2:
            for number, tasks in enumerate(groups):
                yield number, [collected(self._repo, task) for task in tasks]
            return
        while len(self._workers) < count:
            self._workers.append(_Worker(self._repo))
        idle: SimpleQueue[_Worker] = SimpleQueue()
        for worker in self._workers:
            idle.put(worker)

        def ask(tasks: Sequence[CollectTask]) -> list[Collected | None]:
            worker = idle.get()
            try:
                return [worker.ask(task) for task in tasks]
            finally:
                idle.put(worker)

        with ExitStack() as stack:
            threads = stack.enter_context(ThreadPoolExecutor(count))
            stack.callback(self._end_unless_done)
            self._done = False
            asked = {threads.submit(ask, tasks): number for number, tasks in enumerate(groups)}
            for future in as_completed(asked):
                done = zip(future.result(), groups[asked[future]], strict=True)
                # What a process could not do, for instance because it was killed, is done here.
                yield asked[future], [one or collected(self._repo, task) for one, task in done]
            self._done = True

    def _end_unless_done(self) -> None:
        """End the processes where the user interrupts: the threads wait for them."""
        if not self._done:
            self.__exit__(None, None, None)


class _Worker:
    """One process, and the connection to it."""

    def __init__(self, repo: Repository) -> None:
        environ = dict(repo.environ)
        self._process, ours = programs.worker(_START, environ=environ)
        self._connection = Connection(ours)
        self._connection.send(tuple(repo._replace(environ=environ, asks=None)))  # it cannot ask the user

    def ask(self, task: CollectTask) -> Collected | None:
        """What the job gave; None if the process has ended."""
        try:
            self._connection.send(task)
            answer: Collected | None = self._connection.recv()
        except (EOFError, OSError, pickle.PickleError, AttributeError, ImportError, TypeError):
            return None
        return answer

    def end(self) -> None:
        """End the process, which ends what it measures."""
        self._process.end()
        self._connection.close()


def collected(repo: Repository, task: CollectTask) -> Collected:
    """Run the job here."""
    notes: list[str] = []
    try:
        profile = collecting.collect(repo, *task[:3], silent, notes.append, environ=task.environ)
    except PerunError as problem:
        return Collected(None, JobFailed(problem.message, problem.hint), notes)
    return Collected(profile, None, notes)


def serve(descriptor: int) -> None:
    """Run the jobs that are asked for until the other side is gone: the main function of a process."""
    connection = Connection(descriptor)
    try:
        repo = Repository(*connection.recv())
        while True:
            connection.send_bytes(_answer(repo, connection.recv()))
    except (EOFError, OSError):
        return


def _answer(repo: Repository, task: CollectTask) -> bytes:
    try:
        return pickle.dumps(collected(repo, task))
    except Exception:
        return pickle.dumps(None)  # the main process does it again, and reports what is wrong
