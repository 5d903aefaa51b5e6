"""Versions that were built on a machine: each in a folder of its own, kept for the next job on it."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from perun.errors import VersionControlError
from perun.porcelain.pool.folders import locked, opened
from perun.porcelain.pool.machine_lock import MachineLock
from perun.porcelain.repository import Repository
from perun.porcelain.run import pre_run

MAX_BUILDS: Final = 20
"""Of one project; those that were not used for the longest time go first."""


class Builds:
    """The builds of one project, by the way that its versions are built.

    :param machine: shared while a version is built, so that nothing is measured meanwhile.
    """

    def __init__(self, repo: Repository, machine: MachineLock) -> None:
        self._repo = repo
        self._machine = machine
        self._folder = repo.root / "builds"
        self._folder.mkdir(exist_ok=True)
        self._way = hashlib.sha256(pre_run.build(repo).encode()).hexdigest()[:8]

    @contextmanager
    def built(self, version: str, place: str) -> Iterator[Path]:
        """The folder `place` of the version, built, which nobody removes or builds again in the block.

        :raises PerunError: if it cannot be checked out or built.
        """
        build = self._folder / f"{self._way}-{version}"
        lock = opened(build.with_suffix(".lock"))
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)
            while not self._is_ready(build):
                fcntl.flock(lock, fcntl.LOCK_EX)  # others are waited for, who may build it
                if not self._is_ready(build):
                    self._build(build, version, place)
                fcntl.flock(lock, fcntl.LOCK_SH)
            os.utime(_mark(build))
            yield _inside(build, version, place)
        finally:
            os.close(lock)

    def _build(self, build: Path, version: str, place: str) -> None:
        _mark(build).unlink(missing_ok=True)
        with self._machine.shared():
            with locked(self._repo.root / "project.lock"):
                self._prune()
                # It is left where it is: the end of the block would remove it.
                self._repo.vcs.working_copy(build).__enter__().switch(version)
            pre_run.run_commands(self._repo, version, _inside(build, version, place))
        _mark(build).touch()

    def _is_ready(self, build: Path) -> bool:
        """Whether it was built to the end, and no job has changed files of the version since."""
        if not _mark(build).exists() or not build.is_dir():
            return False
        return not self._repo.registry.get("vcs", "git")(build, self._repo.environ).is_dirty()

    def _prune(self) -> None:
        marks = sorted(self._folder.glob("*.done"), key=lambda path: path.stat().st_mtime, reverse=True)
        for mark in marks[MAX_BUILDS - 1 :]:
            lock = opened(mark.with_suffix(".lock"))
            with suppress(BlockingIOError):  # in use
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                mark.unlink()
                with self._repo.vcs.working_copy(mark.with_suffix("")):
                    pass  # entering removes what is there
            os.close(lock)


def _mark(build: Path) -> Path:
    return build.with_suffix(".done")


def _inside(build: Path, version: str, place: str) -> Path:
    folder = build / place
    if not folder.is_dir() or not folder.resolve().is_relative_to(build.resolve()):
        raise VersionControlError(f"version {version[:10]} has no folder {place!r}")
    return folder
