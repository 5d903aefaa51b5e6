"""Forecast of how long a schedule takes, from how long the same jobs took before."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from perun.errors import PerunError
from perun.plugin.params import to_mapping
from perun.porcelain import lookup
from perun.porcelain.repository import Repository
from perun.porcelain.run.events import Event, JobDone, VersionStarted
from perun.porcelain.run.jobs import Job
from perun.porcelain.run.preparations import PreparationRecord
from perun.porcelain.run.schedule import VersionSlot, configuration_of
from perun.profile import incomplete
from perun.profile.factory import Configuration

if TYPE_CHECKING:
    from perun.profile.helpers import ProfileInfo

PROFILES_READ = 4
"""Profiles that are read for each configuration, the newest ones."""
ANCESTORS_READ = 200
"""Ancestors of the current version whose profiles are read."""


class Estimate(NamedTuple):
    """Seconds of jobs and of the preparations before them; `unknown` counts jobs of unknown duration."""

    jobs: float
    preparations: float
    unknown: int

    @property
    def seconds(self) -> float:
        """All that is known."""
        return self.jobs + self.preparations


class _Duration(NamedTuple):
    params: str
    seconds: float


class Forecast:
    """Durations of jobs from stored profiles, and from those that the running batch makes.

    :param schedule: what is to be estimated; the profiles of its versions are read first.
    """

    def __init__(self, repo: Repository, schedule: Sequence[VersionSlot]) -> None:
        self._preparation = PreparationRecord(repo).seconds or 0.0
        # By its text, as parameters of plugins of all kinds may not be hashable.
        jobs = {repr(task.job): task.job for slot in schedule for task in slot.tasks}
        self._measured: dict[str, list[float]] = {}
        stored = _durations(repo, {configuration_of(job) for job in jobs.values()}, schedule)
        self._stored = {text: _typical(job, stored) for text, job in jobs.items()}

    def seconds(self, job: Job) -> float | None:
        """How long the job usually takes; None if it is not known."""
        from statistics import median

        measured = self._measured.get(repr(job))
        return median(measured) if measured else self._stored.get(repr(job))

    def learn(self, event: Event) -> None:
        """Take into account how long a job or a preparation of the running batch took."""
        match event:
            case VersionStarted(seconds=seconds) if seconds:
                self._preparation = seconds
            case JobDone(job=job, seconds=seconds):
                self._measured.setdefault(repr(job), []).append(seconds)

    def estimate(self, schedule: Iterable[VersionSlot]) -> Estimate:
        """How long the schedule takes."""
        jobs, unknown, preparations = 0.0, 0, 0
        last = None
        for slot in schedule:
            preparations += slot.version != last
            last = slot.version
            for task in slot.tasks:
                seconds = self.seconds(task.job)
                jobs += seconds or 0.0
                unknown += seconds is None
        return Estimate(jobs, preparations * self._preparation, unknown)


def _typical(job: Job, stored: Mapping[Configuration, Sequence[_Duration]]) -> float | None:
    from statistics import median

    seen = stored.get(configuration_of(job), ())
    params = _text(to_mapping(job.collector.params))
    # With other parameters, such as the number of repetitions, it is at least a guess.
    same = [one.seconds for one in seen if one.params == params] or [one.seconds for one in seen]
    return median(same) if same else None


def _durations(
    repo: Repository, wanted: set[Configuration], schedule: Sequence[VersionSlot]
) -> dict[Configuration, list[_Duration]]:
    found: dict[Configuration, list[ProfileInfo]] = {}
    for info in _profiles(repo, schedule):
        if info.configuration in wanted:
            found.setdefault(info.configuration, []).append(info)
    durations: dict[Configuration, list[_Duration]] = {}
    for configuration, infos in found.items():
        infos.sort(key=lambda info: info.time, reverse=True)
        seen = (_duration(repo, info) for info in infos[:PROFILES_READ])
        durations[configuration] = [one for one in seen if one is not None]
    return durations


def _profiles(repo: Repository, schedule: Sequence[VersionSlot]) -> Iterable[ProfileInfo]:
    yield from repo.store.pending.list()
    versions = dict.fromkeys(slot.version.checksum for slot in schedule)
    try:
        history = repo.vcs.walk_subjects(repo.vcs.get_minor_head())
        versions |= dict.fromkeys(version.checksum for version in itertools.islice(history, ANCESTORS_READ))
        for version in versions:
            yield from lookup.registered(repo, version)
    except PerunError:
        return  # the command that needs the damaged object reports it


def _duration(repo: Repository, info: ProfileInfo) -> _Duration | None:
    try:
        head = lookup.head(repo, info)
    except PerunError:
        return None
    unit = head["collector_info"]
    if incomplete.reasons_of(head):  # the whole run would have taken longer
        return None
    seconds = unit.get("seconds")
    return _Duration(_text(unit["params"]), seconds) if isinstance(seconds, (int, float)) else None


def _text(params: Any) -> str:
    return json.dumps(params, sort_keys=True, default=str)
