"""Entering a version: check it out, run `execute.pre_run` there, and record how that went."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from perun.errors import JobFailed, PerunError
from perun.porcelain.repository import Repository
from perun.porcelain.run import pre_run
from perun.porcelain.run.checkouts import Checkouts, Placement, checkouts
from perun.porcelain.run.events import VersionSkipped, VersionStarted
from perun.porcelain.run.preparations import PreparationRecord
from perun.porcelain.run.schedule import VersionSlot


class Versions(Protocol):
    """What enters one version after the other, so that jobs can run there."""

    def enter(self, slot: VersionSlot) -> VersionStarted | VersionSkipped:
        """Make the version ready to be measured.

        :raises PerunError: if no further version can be.
        """

    def save_changes(self) -> bool:
        """The jobs of the version have run; whether they changed tracked files, which were kept."""


class PreparedVersions:
    """Enters one version after the other; use :func:`prepared_versions`."""

    def __init__(
        self, repo: Repository, places: Checkouts, record: PreparationRecord, skip_broken: bool
    ) -> None:
        self._repo = repo
        self._places = places
        self._record = record
        self._skip_broken = skip_broken
        self._last: VersionStarted | None = None

    def enter(self, slot: VersionSlot) -> VersionStarted | VersionSkipped:
        """Check out and prepare the version of the slot, unless it is the one that was entered last.

        :raises PerunError: if no further version can be checked out.
        """
        version = slot.version
        if self._last is not None and self._last.version == version:
            return replace(self._last, round=slot.round, omits_changes=False, seconds=0.0)
        self._last = None
        as_committed = not self._places.includes_changes(version.checksum)
        why = self._record.why_broken(version.checksum) if self._skip_broken and as_committed else ""
        if why:
            error = JobFailed(f"known to fail: {why}", "try such versions again with --retry-broken")
            return VersionSkipped(version, error, slot.round, known=True)
        started = time.monotonic()
        try:
            folder = self._places.enter(version.checksum)
            pre_run.run_commands(self._repo, version.checksum, folder)
        except PerunError as error:
            if not self._places.usable:
                raise
            if isinstance(error, pre_run.PreparationFailed) and as_committed:
                self._record.failed(version.checksum, error.message.partition("\n")[0])
            return VersionSkipped(version, error, slot.round)
        seconds = time.monotonic() - started
        if as_committed:
            self._record.succeeded(version.checksum, seconds)
        omits_changes = self._places.omits_changes(version.checksum)
        self._last = VersionStarted(version, folder, omits_changes, slot.round, seconds)
        return self._last

    def save_changes(self) -> bool:
        """Keep changes that the version, measured in place, made to tracked files; whether there were any."""
        if not self._places.save_changes():
            return False
        self._last = None  # its files are not as they were when it was prepared
        return True


@contextmanager
def prepared_versions(
    repo: Repository, placement: Placement, *, skip_broken: bool = False
) -> Iterator[PreparedVersions]:
    """Versions that are ready to be measured, one at a time; at the end everything is as it was.

    :param skip_broken: do not try versions again that `execute.pre_run` is known to fail on.
    :raises LockTimeout: if an `--in-place` run of another process has the working directory.
    """
    record = PreparationRecord(repo)
    with checkouts(repo, placement) as places:
        yield PreparedVersions(repo, places, record, skip_broken)
