"""Collecting what is missing before a check (`check -c`, `degradation.collect_before_check`)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from perun.core.config.schema import is_true
from perun.core.errors import DamagedStore, PerunError
from perun.core.regular import open_for_writing
from perun.core.wording import plural
from perun.plugin.api import MinorVersion, Report
from perun.profile.amounts import readable
from perun.repository.jobs import matrix
from perun.repository.repository import PERUN_FOLDER, Repository
from perun.running.run import schedule
from perun.running.run.events import (
    ChangesSaved,
    Event,
    JobAnswered,
    JobDone,
    JobFailure,
    VersionSkipped,
    VersionStarted,
)
from perun.running.run.execute import run_jobs


def collect_missing(
    repo: Repository, versions: Sequence[MinorVersion], report: Report, note: Callable[[str], None]
) -> dict[str, PerunError]:
    """Run and register, for each version, the jobs of the matrix that it has no profile of.

    What happens goes to `.perun/logs/<version>-precollect.log` if `degradation.log_collect` is true, and
    nowhere else; a job that fails leaves its profile missing.

    :param report: called with what is collected, jobs done and jobs in all.
    :param note: called before the first job runs, with how much is to be collected.
    :return: by checksum of the version, what the first of its jobs that failed did so for, or that its index
        is damaged.
    :raises ConfigError: if the job matrix is empty or wrong.
    """
    failures: dict[str, PerunError] = {}
    lacking: list[schedule.VersionSlot] = []
    for slot in schedule.plan_slots(matrix(repo), versions):
        try:
            lacking += schedule.missing(repo, [slot], pending=False)
        except DamagedStore as problem:
            failures[slot.version.checksum] = problem
    if lacking:
        they = f"{plural(len(lacking), 'version')} {'lacks' if len(lacking) == 1 else 'lack'}"
        profiles = plural(schedule.total(lacking), "profile")
        note(f"{they} {profiles} of the job matrix: collecting before the check")

    def collecting(activity: str, done: int, total: int) -> None:
        report(f"collecting {activity}", done, total)

    log = _Log(repo)
    events = run_jobs(repo, lacking, register=True, report=collecting)
    with contextlib.closing(events):
        for event in events:
            log.write(event)
            if isinstance(event, (JobFailure, VersionSkipped)):
                failures.setdefault(event.version.checksum, event.error)
    return failures


class _Log:
    """What happened to each version in a file of its own, if the user wants that."""

    def __init__(self, repo: Repository) -> None:
        self._folder = repo.root / PERUN_FOLDER / "logs"
        self._wanted = is_true(repo.config.get("degradation.log_collect"))
        self._begun: set[str] = set()

    def write(self, event: Event) -> None:
        if not self._wanted:
            return
        self._folder.mkdir(exist_ok=True)
        checksum = event.version.checksum
        path = self._folder / f"{checksum}-precollect.log"
        with open_for_writing(path, append=checksum in self._begun) as file:
            file.write(f"{_line(event)}\n".encode(errors="backslashreplace"))
        self._begun.add(checksum)


def _line(event: Event) -> str:
    match event:
        case VersionStarted():
            return f"version {event.version.checksum} measured in {event.measured_in}"
        case VersionSkipped():
            return f"skipped {event.version.checksum}: {event.error.message}"
        case JobAnswered():
            return event.text
        case JobDone():
            return f"done    {event.job}: {event.name} ({readable(event.seconds, 's')})"
        case JobFailure():
            return f"failed  {event.job}: {event.error.message}"
        case ChangesSaved():
            return f"changes of tracked files were kept after {event.version.checksum}"
