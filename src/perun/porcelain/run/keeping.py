"""Keeping the profile of a job: saved, registered as the user wants it, each step in the log of the batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from perun.errors import PerunError
from perun.plugin.api import MinorVersion
from perun.porcelain import earlier, saving
from perun.porcelain.repository import Repository
from perun.porcelain.run.events import JobDone
from perun.porcelain.run.journal import StepLog
from perun.porcelain.run.schedule import Task
from perun.profile import incomplete, session

if TYPE_CHECKING:
    from perun.profile.factory import Profile


@dataclass(frozen=True)
class Naming:
    """How profiles are named: one fixed name, or a template other than the configured one."""

    name: str | None = None
    template: str | None = None


UNNAMED: Final = Naming()


class Keeper:
    """Keeps the profiles of one batch.

    :param session_id: the id of the session that they are of; empty of a single run.
    """

    def __init__(
        self, repo: Repository, naming: Naming, registering: bool, log: StepLog, session_id: str = ""
    ) -> None:
        self._repo = repo
        self._naming = naming
        self._registering = registering
        self._log = log
        self._session = session_id
        self._counter = len(log.finished)  # the number of the next profile, for its name

    def keep(
        self,
        task: Task,
        version: MinorVersion,
        profile: Profile,
        *,
        interrupted: bool = False,
        seconds: float,
        phases: Mapping[str, float],
        notes: Sequence[str],
        machine: str = "",
    ) -> JobDone:
        """Save the profile, and register it if the user wants that, unless its job was interrupted.

        :param seconds: how long the job took, :param phases: and its parts.
        :param machine: the one of a pool that measured it.
        :raises PerunError: if it cannot be kept.
        """
        if self._session:  # what machines of a pool measure at the same time has no noise in common
            where = f"{self._session}@{machine}" if machine else self._session
            session.mark(profile, session.Session(where, round=task.round))
        lacking = incomplete.text_of(profile)
        registering = self._registering and not interrupted
        judged = earlier.of_profile(self._repo, version.checksum, profile, registering=registering)
        path = self._saved(task, profile, version, lacking, registering=registering)
        return JobDone(
            version,
            task.job,
            path.name,
            path,
            registering,
            seconds,
            tuple(dict.fromkeys(notes)),
            lacking,
            phases,
            judged,
            machine,
        )

    def _saved(
        self, task: Task, profile: Profile, version: MinorVersion, lacking: str, *, registering: bool
    ) -> Path:
        """Save the profile, and register it if that is wanted; the journal gets each step."""
        if lacking:
            self._log.incomplete(task.number, lacking)
        path = saving.save(
            self._repo,
            profile,
            version.checksum,
            name=self._naming.name,
            template=self._naming.template,
            counter=self._counter,
            announce=partial(self._log.saving, task.number),
        )
        self._counter += 1
        self._log.saved(task.number, path.name)
        if registering:
            try:
                name = saving.register(self._repo, path, profile, version.checksum)
            except (PerunError, OSError) as problem:
                problem.add_note(f"the profile is stored, but not registered: {path}")
                raise
            path = path.with_name(name)
        self._log.done(task.number)
        return path
