"""Commits and generated inputs of a batch on their way to the machines of a pool."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Final

from perun.core.errors import PluginError, VersionControlError
from perun.repository import workloads
from perun.repository.jobs import Job
from perun.repository.repository import Repository
from perun.running.pool import orders
from perun.running.pool import orders as generated
from perun.running.pool import worker as remote
from perun.running.pool.engine import Engine, Worker, cannot_take_in

# The commits of a batch on their way to machines that have not got them.


class Commits:
    """The versions of a batch, with their history.

    :raises PluginError: if the version control cannot send versions. :raises VersionControlError: if the
        history
        is not whole.
    """

    def __init__(self, repo: Repository, versions: Iterable[str]) -> None:
        self._vcs: Any = repo.vcs
        self._versions = list(dict.fromkeys(versions))
        self._supplied: set[str] = set()
        if not hasattr(self._vcs, "pack"):
            kind = str(repo.config.get("vcs.type"))
            raise PluginError(f"a pool measures versions of git, not of {kind}", "measure without --on")
        if shallow := repo.vcs.missing_history():
            raise VersionControlError("the versions cannot be sent to a pool without their history", shallow)

    @cached_property
    def project(self) -> str:
        """What the project is called on the machines: its first commit."""
        name: str = self._vcs.first_version(self._versions)
        return name

    def supply(self, engine: Engine, worker: Worker) -> bool:
        """Give the machine of the worker what it lacks, once; whether it has all now.

        :raises RemoteError: if it cannot take it in.
        """
        if worker.machine in self._supplied:
            return True
        answer = engine.ask(worker.address, remote.lacking, self.project, self._versions)
        if answer is None:
            return False
        wanted, known = answer
        if wanted and not self._send(engine, worker, wanted, known):
            return False
        self._supplied.add(worker.machine)
        return True

    def _send(self, engine: Engine, worker: Worker, wanted: Sequence[str], known: Sequence[str]) -> bool:
        data, tags = self._vcs.pack(wanted, known)
        try:
            told = engine.call(worker.address, remote.receive, self.project, wanted, data, tags)
        except OSError as problem:
            raise cannot_take_in(worker, "the versions", problem) from None
        return told is not None


# The files that workload generators made for a batch, on their way to machines that have not got them.

PIECE: Final = 8 << 20
"""Bytes that are sent at once."""


class Inputs:
    """The generated files of a batch. Each machine gets all of them before its first job: what is sent later
    would disturb what another worker of the machine measures.

    :param project: what the project is called on the machines.
    """

    def __init__(self, repo: Repository, project: str, jobs: Iterable[Job]) -> None:
        self._repo = repo
        self._project = project
        self._names = sorted({name for job in jobs for name in orders.folders(orders.describe(repo, job))})
        self._supplied: set[tuple[str, str]] = set()

    def supply(self, engine: Engine, worker: Worker) -> bool:
        """Give the machine of the worker the files that it lacks, once; whether it has all now.

        :raises RemoteError: if it cannot take them in.
        """
        for name in self._names:
            if (worker.machine, name) in self._supplied:
                continue
            has = engine.ask(worker.address, remote.has_inputs, self._project, name)
            if has is None or not (has or self._send(engine, worker, name)):
                return False
            self._supplied.add((worker.machine, name))
        return True

    def _send(self, engine: Engine, worker: Worker, name: str) -> bool:
        with tempfile.TemporaryFile() as file:
            with tarfile.TarFile(fileobj=file, mode="w", dereference=True) as archive:
                for inside, path in workloads.files_of(generated.home(self._repo) / name):
                    archive.add(path, inside, recursive=False)
            size = file.tell()
            file.seek(0)
            for offset in range(0, size, PIECE):
                data = file.read(PIECE)
                piece = (name, offset, data, offset + len(data) == size)
                try:
                    told = engine.call(worker.address, remote.receive_inputs, self._project, *piece)
                except OSError as problem:
                    raise cannot_take_in(worker, f"the generated files {name}", problem) from None
                if told is None:
                    return False
        return True
