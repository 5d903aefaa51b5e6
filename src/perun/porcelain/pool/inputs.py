"""The files that workload generators made for a batch, on their way to machines that have not got them."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterable
from typing import Final

from perun.porcelain.pool import generated, orders
from perun.porcelain.pool import worker as remote
from perun.porcelain.pool.engine import Engine, Worker, cannot_take_in
from perun.porcelain.repository import Repository
from perun.porcelain.run import workloads
from perun.porcelain.run.jobs import Job

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
