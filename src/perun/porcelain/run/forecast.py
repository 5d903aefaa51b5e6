"""How long a schedule will take, told from how long the same jobs took before."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from perun.errors import PerunError
from perun.plugin.params import to_mapping
from perun.porcelain import lookup
from perun.porcelain.repository import Repository
from perun.porcelain.run.jobs import Job
from perun.porcelain.run.preparations import Preparations
from perun.porcelain.run.schedule import Stop, configuration_of
from perun.profile.factory import Configuration

if TYPE_CHECKING:
    from perun.profile.helpers import ProfileInfo

LOOKED_AT = 4
"""Profiles that are read for each configuration, the newest ones."""
FAR_BACK = 200
"""Versions before the current one whose profiles are looked for."""


class Estimate(NamedTuple):
    """Seconds that jobs and the preparations before them take; of how many jobs that is not known."""

    jobs: float
    preparations: float
    unknown: int

    @property
    def seconds(self) -> float:
        """All that is known."""
        return self.jobs + self.preparations


class _Seen(NamedTuple):
    params: str
    seconds: float


class Forecast:
    """Durations of jobs from stored profiles, and from those that the running batch makes.

    :param schedule: what is to be told of; profiles of its versions are looked at first.
    """

    def __init__(self, repo: Repository, schedule: Sequence[Stop]) -> None:
        self._preparation = Preparations(repo).seconds or 0.0
        # By its text, as parameters of plugins of all kinds may not be hashable.
        jobs = {repr(task.job): task.job for stop in schedule for task in stop.tasks}
        self._measured: dict[str, list[float]] = {}
        stored = _durations(repo, {configuration_of(job) for job in jobs.values()}, schedule)
        self._stored = {text: _usual(job, stored) for text, job in jobs.items()}

    def seconds(self, job: Job) -> float | None:
        """How long the job usually takes; None where it is not known."""
        from statistics import median

        measured = self._measured.get(repr(job))
        return median(measured) if measured else self._stored.get(repr(job))

    def learn(self, job: Job, seconds: float) -> None:
        """The job has just taken this long."""
        self._measured.setdefault(repr(job), []).append(seconds)

    def prepared(self, seconds: float) -> None:
        """Preparing a version has just taken this long."""
        self._preparation = seconds

    def estimate(self, schedule: Iterable[Stop]) -> Estimate:
        """How long the schedule takes."""
        jobs, unknown, preparations = 0.0, 0, 0
        last = None
        for stop in schedule:
            preparations += stop.version != last
            last = stop.version
            for task in stop.tasks:
                seconds = self.seconds(task.job)
                jobs += seconds or 0.0
                unknown += seconds is None
        return Estimate(jobs, preparations * self._preparation, unknown)


def _usual(job: Job, stored: Mapping[Configuration, Sequence[_Seen]]) -> float | None:
    from statistics import median

    seen = stored.get(configuration_of(job), ())
    params = _text(to_mapping(job.collector.params))
    # With other parameters, such as the number of repetitions, it is at least a guess.
    same = [one.seconds for one in seen if one.params == params] or [one.seconds for one in seen]
    return median(same) if same else None


def _durations(
    repo: Repository, wanted: set[Configuration], schedule: Sequence[Stop]
) -> dict[Configuration, list[_Seen]]:
    found: dict[Configuration, list[ProfileInfo]] = {}
    for info in _profiles(repo, schedule):
        if info.configuration in wanted:
            found.setdefault(info.configuration, []).append(info)
    durations: dict[Configuration, list[_Seen]] = {}
    for configuration, infos in found.items():
        infos.sort(key=lambda info: info.time, reverse=True)
        seen = (_seen(repo, info) for info in infos[:LOOKED_AT])
        durations[configuration] = [one for one in seen if one is not None]
    return durations


def _profiles(repo: Repository, schedule: Sequence[Stop]) -> Iterable[ProfileInfo]:
    yield from repo.store.pending.list()
    versions = dict.fromkeys(stop.version.checksum for stop in schedule)
    try:
        history = repo.vcs.walk_subjects(repo.vcs.get_minor_head())
        versions |= dict.fromkeys(version.checksum for version in itertools.islice(history, FAR_BACK))
        for version in versions:
            yield from lookup.registered(repo, version)
    except PerunError:
        return  # whatever is damaged here is told where it matters


def _seen(repo: Repository, info: ProfileInfo) -> _Seen | None:
    try:
        unit = lookup.head(repo, info)["collector_info"]
    except PerunError:
        return None
    seconds = unit.get("seconds")
    return _Seen(_text(unit["params"]), seconds) if isinstance(seconds, (int, float)) else None


def _text(params: Any) -> str:
    return json.dumps(params, sort_keys=True, default=str)
