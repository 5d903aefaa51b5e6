"""The commits of a batch on their way to machines that have not got them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from perun.errors import PluginError, VersionControlError
from perun.porcelain.pool import worker as remote
from perun.porcelain.pool.engine import Engine, Worker, cannot_take_in
from perun.porcelain.repository import Repository


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
