"""In which order jobs are run on which versions: stops, each a version with what is to be run there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from perun.errors import ProfileError
from perun.plugin.api import MinorVersion
from perun.plugin.params import to_mapping
from perun.porcelain import lookup
from perun.porcelain.repository import Repository
from perun.porcelain.run.jobs import Job
from perun.profile.factory import Configuration

if TYPE_CHECKING:
    from perun.profile.helpers import ProfileInfo


class Task(NamedTuple):
    """A job at its place in the schedule, which `number` counts from 0."""

    number: int
    job: Job


class Stop(NamedTuple):
    """A version and what is run when it is on the disk; `round` counts from 1, and is 0 without rounds."""

    version: MinorVersion
    tasks: tuple[Task, ...]
    round: int = 0


def stops(jobs: Sequence[Job], versions: Iterable[MinorVersion], rounds: int = 1) -> list[Stop]:
    """Every job on every version, as often as there are rounds.

    A round is the whole of it, so that what drifts while a batch runs (the temperature, what else the machine
    does) reaches all versions and jobs alike.
    """
    versions = list(versions)
    made: list[Stop] = []
    for number in range(1, rounds + 1):
        for version in versions:
            first = len(made) * len(jobs)
            tasks = tuple(Task(*one) for one in enumerate(jobs, first))
            made.append(Stop(version, tasks, number if rounds > 1 else 0))
    return made


def total(schedule: Iterable[Stop]) -> int:
    """The number of tasks."""
    return sum(len(stop.tasks) for stop in schedule)


def without(schedule: Iterable[Stop], numbers: Container[int]) -> list[Stop]:
    """The schedule without the tasks of these numbers; stops without a task are left out."""
    rest = (
        stop._replace(tasks=tuple(task for task in stop.tasks if task.number not in numbers))
        for stop in schedule
    )
    return [stop for stop in rest if stop.tasks]


def missing(repo: Repository, schedule: Sequence[Stop], *, pending: bool = True) -> list[Stop]:
    """What has no profile yet: of a version and job that have `n` profiles the last `n` rounds are left out.

    :param pending: count profiles that are not registered too, by their origin.
    """
    stored = _Stored(repo, schedule, pending)
    rounds = max((stop.round for stop in schedule), default=0) or 1
    present = {
        task.number
        for stop in schedule
        for task in stop.tasks
        if stored.count(stop.version.checksum, task.job) > rounds - (stop.round or 1)
    }
    return without(schedule, present)


def configuration_of(job: Job) -> Configuration:
    """The configuration that profiles of the job have."""
    postprocessors = (unit.name for unit in job.postprocessors)
    return Configuration.of(job.collector.name, job.cmd, job.args, job.workload, postprocessors)


class _Stored:
    """How many profiles of a job a version has."""

    def __init__(self, repo: Repository, schedule: Sequence[Stop], pending: bool) -> None:
        self._repo = repo
        self._pending = pending
        jobs = {id(task.job): task.job for stop in schedule for task in stop.tasks}
        # The same collector may be there twice, with other parameters, which only the profile itself tells.
        alike = Counter(configuration_of(job) for job in jobs.values())
        self._ambiguous = {configuration for configuration, number in alike.items() if number > 1}
        self._wanted = frozenset(alike)
        self._of: dict[str, dict[Configuration, list[ProfileInfo]]] = {}

    def count(self, version: str, job: Job) -> int:
        configuration = configuration_of(job)
        found = self._infos(version).get(configuration, [])
        if configuration not in self._ambiguous:
            return len(found)
        return sum(self._has_params(info, job) for info in found)

    def _infos(self, version: str) -> dict[Configuration, list[ProfileInfo]]:
        if version not in self._of:
            found = self._of[version] = {}
            for info in (*lookup.registered(self._repo, version), *self._origins.get(version, ())):
                found.setdefault(info.configuration, []).append(info)
        return self._of[version]

    @cached_property
    def _origins(self) -> dict[str, list[ProfileInfo]]:
        """The pending profiles by the version that they come from."""
        found: dict[str, list[ProfileInfo]] = {}
        for info in self._repo.store.pending.list() if self._pending else ():
            if info.configuration in self._wanted:
                origin = lookup.head(self._repo, info).get("origin")
                found.setdefault(str(origin or ""), []).append(info)
        return found

    def _has_params(self, info: ProfileInfo, job: Job) -> bool:
        head = lookup.head(self._repo, info)
        units = [head["collector_info"], *head["postprocessors"]]
        wanted = [to_mapping(unit.params) for unit in (job.collector, *job.postprocessors)]
        return bool([_plain(unit.get("params")) for unit in units] == _plain(wanted))


def _plain(params: Any) -> Any:
    """As JSON has it: what a profile holds that was written and read again."""
    import json

    try:
        return json.loads(json.dumps(params))
    except (TypeError, ValueError) as problem:
        raise ProfileError(f"parameters cannot be written as JSON: {problem}") from None
