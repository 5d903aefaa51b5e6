"""The schedule: in which order jobs run on which versions, as slots of one version each."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.core.errors import ProfileError
from perun.history import baseline
from perun.plugin.api import MinorVersion
from perun.plugin.params import to_mapping
from perun.profile import incomplete, session
from perun.profile.factory import Configuration
from perun.repository import lookup, walking
from perun.repository.jobs import Job
from perun.repository.repository import Repository
from perun.store.summaries import key_of

if TYPE_CHECKING:
    from perun.profile.helpers import ProfileInfo
    from perun.store.summaries import ProfileSummary


ROUNDS: Final = 5
"""Rounds that the runs of a job are spread over: from so many on, the scatter between them is known."""


class Task(NamedTuple):
    """A job at its place in the schedule, which `number` counts from 0, as `round` counts rounds."""

    number: int
    job: Job
    round: int = 0


class VersionSlot(NamedTuple):
    """A version and the tasks that run while it is checked out; `round` counts from 1, 0 without rounds."""

    version: MinorVersion
    tasks: tuple[Task, ...]
    round: int = 0


class Share(NamedTuple):
    """What a version shares with one before it that has the same program and input.

    :param version: the one that is measured. :param reason: why; empty where it is that version itself.
    """

    version: str
    reason: str = ""


Shares = Mapping[tuple[str, int], Share]
"""By version, and by identity of the job."""
NO_SHARES: Final[Shares] = MappingProxyType({})


def plan_slots(
    jobs: Sequence[Job],
    versions: Iterable[MinorVersion],
    rounds: int | Callable[[Job], int] = 1,
    rng: random.Random | None = None,
) -> list[VersionSlot]:
    """Every job on every version, as often as there are rounds.

    A round is the whole of it, so that what drifts while a batch runs (the temperature, what else the machine
    does) reaches all versions and jobs alike. Where there are several, each has the versions in a random
    order, so that what happens at regular times does not meet the same version again and again either.

    :param rounds: how many, of all jobs or of each. :param rng: decides the orders.
    """
    versions = list(versions)
    rng = rng or random.Random()
    of_job = rounds if callable(rounds) else lambda job: rounds
    most = max(map(of_job, jobs), default=1)
    made: list[VersionSlot] = []
    first = 0
    for number in range(1, most + 1):
        own = [job for job in jobs if of_job(job) >= number]
        for version in rng.sample(versions, len(versions)) if most > 1 else versions:
            tasks = tuple(Task(place, job, number - 1) for place, job in enumerate(own, first))
            made.append(VersionSlot(version, tasks, number if most > 1 else 0))
            first += len(own)
    return made


def described(job: Job) -> str:
    """The job as journals of all releases have it, which call a configured plugin a unit."""
    return repr(job).replace("PluginConfig(name=", "Unit(name=")


def rounds_of(job: Job) -> int:
    """How many rounds the runs of a job are spread over: one of a collector that records a single run."""
    if job.is_benchmark:
        return ROUNDS
    return min(getattr(job.collector.params, "repeat", 1), ROUNDS)


def total(schedule: Iterable[VersionSlot]) -> int:
    """The number of tasks."""
    return sum(len(slot.tasks) for slot in schedule)


def without(schedule: Iterable[VersionSlot], numbers: Container[int]) -> list[VersionSlot]:
    """The schedule without the tasks of these numbers; slots without a task are left out."""
    rest = (
        slot._replace(tasks=tuple(task for task in slot.tasks if task.number not in numbers))
        for slot in schedule
    )
    return [slot for slot in rest if slot.tasks]


def shared_last(schedule: Iterable[VersionSlot], shares: Shares) -> list[VersionSlot]:
    """The schedule with what versions share at the end of each round: what is measured is there then."""
    made = []
    for _, of_round in groupby(schedule, lambda slot: slot.round):
        slots = list(of_round)
        for last in (False, True):
            for slot in slots:
                key = slot.version.checksum
                tasks = tuple(one for one in slot.tasks if ((key, id(one.job)) in shares) is last)
                if tasks:
                    made.append(slot._replace(tasks=tasks))
    return made


def missing(
    repo: Repository, schedule: Sequence[VersionSlot], *, pending: bool = True, whole: bool = False
) -> list[VersionSlot]:
    """What has no profile yet: of a version and job that have `n` profiles the last `n` rounds are left out,
    with `whole` all of them. Incomplete profiles do not count.

    :param pending: count profiles that are not registered too, by their origin.
    """
    stored = _Stored(repo, schedule, pending)
    rounds = max((slot.round for slot in schedule), default=0) or 1
    present = {
        task.number
        for slot in schedule
        for task in slot.tasks
        if stored.count(slot.version.checksum, task.job) > (0 if whole else rounds - (slot.round or 1))
    }
    return without(schedule, present)


def configuration_of(job: Job) -> Configuration:
    """The configuration that profiles of the job have."""
    postprocessors = (unit.name for unit in job.postprocessors)
    return Configuration.of(job.collector.name, job.cmd, job.args, job.workload, postprocessors)


class _Stored:
    """How many profiles of a job a version has."""

    def __init__(self, repo: Repository, schedule: Sequence[VersionSlot], pending: bool) -> None:
        self._repo = repo
        self._pending = pending
        jobs = {id(task.job): task.job for slot in schedule for task in slot.tasks}
        # The same collector may be there twice, with other parameters, which only the profile itself tells.
        alike = Counter(configuration_of(job) for job in jobs.values())
        self._ambiguous = {configuration for configuration, number in alike.items() if number > 1}
        self._wanted = frozenset(alike)
        self._of: dict[str, dict[Configuration, list[ProfileInfo]]] = {}
        self._facts: dict[str, dict[str, ProfileSummary]] = {}

    def count(self, version: str, job: Job) -> int:
        configuration = configuration_of(job)
        infos = self._infos(version).get(configuration, [])
        found = [info for info in infos if self._is_whole(version, info)]
        if configuration not in self._ambiguous:
            return len(found)
        return sum(self._has_params(info, job) for info in found)

    def _infos(self, version: str) -> dict[Configuration, list[ProfileInfo]]:
        if version not in self._of:
            found = self._of[version] = {}
            for info in (*lookup.registered(self._repo, version), *self._origins.get(version, ())):
                found.setdefault(info.configuration, []).append(info)
        return self._of[version]

    def _is_whole(self, version: str, info: ProfileInfo) -> bool:
        if version not in self._facts:
            every = chain.from_iterable(self._infos(version).values())
            self._facts[version] = self._repo.store.profile_summaries.of(map(key_of, every))
        fact = self._facts[version].get(key_of(info))
        if fact is None:  # of another release, or the cache was deleted
            return not incomplete.reasons_of(lookup.head(self._repo, info))
        return not fact.incomplete

    @cached_property
    def _origins(self) -> dict[str, list[ProfileInfo]]:
        """The pending profiles by the version that they come from."""
        found: dict[str, list[ProfileInfo]] = {}
        for info in self._repo.store.pending.list() if self._pending else ():
            if info.configuration in self._wanted:
                head = lookup.head(self._repo, info)
                if not session.is_uncommitted(head):
                    found.setdefault(str(head.get("origin") or ""), []).append(info)
        return found

    def _has_params(self, info: ProfileInfo, job: Job) -> bool:
        head = lookup.head(self._repo, info)
        units = [head["collector_info"], *head["postprocessors"]]
        wanted = [to_mapping(unit.params) for unit in (job.collector, *job.postprocessors)]
        return bool([_plain(unit.get("params")) for unit in units] == _plain(wanted))


def _plain(params: Any) -> Any:
    """As JSON has it: what a profile holds that was written and read again."""
    try:
        return json.loads(json.dumps(params))
    except (TypeError, ValueError) as problem:
        raise ProfileError(f"parameters cannot be written as JSON: {problem}") from None


# Which versions are measured.


def choose(repo: Repository, revisions: Sequence[str], crawl_parents: bool) -> list[MinorVersion]:
    """The versions that `revisions` name (HEAD if there is none), in the given order, each once.

    :param crawl_parents: also all their ancestors, each version after its children.
    """
    versions: dict[str, MinorVersion] = {}
    for revision in revisions or ["HEAD"]:
        checksum = repo.version(revision)
        if crawl_parents:
            for version in repo.vcs.walk_subjects(checksum, ordered=True):
                versions.setdefault(version.checksum, version)
        else:
            versions.setdefault(checksum, repo.vcs.get_minor_version_info(checksum))
    return list(versions.values())


def choose_ancestors(
    repo: Repository, revisions: Sequence[str], since: str | None, every: int
) -> list[MinorVersion]:
    """The versions that `revisions` name (HEAD if there is none) and their ancestors, newest first.

    :param since: only those that are newer; see :func:`perun.repository.walking.since`.
    :param every: take one version of `every`, beginning with the newest.
    """
    return list(walking.since(repo, iter(choose(repo, revisions, True)), since))[::every]


def measured_before(
    repo: Repository, version: MinorVersion, jobs: Sequence[Job], suites: Container[tuple[str, str]] = ()
) -> MinorVersion | None:
    """The nearest ancestor that has a profile of one of the jobs that are measured in rounds, a pending one
    included; None if there is none.

    :param suites: collector and command of benchmarks that are measured, whatever their names.
    """
    wanted = {configuration_of(job) for job in jobs if rounds_of(job) > 1}
    if not (wanted or suites):
        return None

    def is_wanted(info: ProfileInfo) -> bool:
        own = info.configuration
        return own in wanted or (own.collector, own.cmd) in suites

    infos = [info for info in repo.store.pending.list() if is_wanted(info)]
    origins = {str(lookup.head(repo, info).get("origin") or "") for info in infos}
    indexes = repo.store.indexes
    for one in walking.ancestors(repo, version.checksum, baseline.MOST_VERSIONS):
        own = lookup.registered(repo, one.checksum) if indexes.has(one.checksum) else ()
        if one.checksum in origins or any(map(is_wanted, own)):
            return one
    return None


def nearest_before(repo: Repository, versions: Sequence[MinorVersion]) -> dict[str, str]:
    """The nearest of the versions before each of them, by checksums."""
    chosen = {version.checksum for version in versions}
    found = {}
    for checksum, parents in ((version.checksum, version.parents) for version in versions):
        before = parents[0] if parents and parents[0] in chosen else None
        if before is None:
            walk = walking.ancestors(repo, checksum, baseline.MOST_VERSIONS)
            before = next((one.checksum for one in walk if one.checksum in chosen), None)
        if before is not None:
            found[checksum] = before
    return found


def parents_among(repo: Repository, versions: Sequence[MinorVersion]) -> dict[str, tuple[str, ...]]:
    """Of each of the versions (by checksum) the nearest of them that it comes from, as parents in a drawing.

    Empty where they cannot be drawn as a history: one of them is there twice, or before its children.
    """
    places = {version.checksum: place for place, version in enumerate(versions)}
    if len(places) < len(versions):
        return {}
    known = {version.checksum: version.parents for version in versions}
    if any(parent not in places for parents in known.values() for parent in parents):
        known = _nearest(repo, versions, places)
    in_order = all(places[parent] > places[child] for child, parents in known.items() for parent in parents)
    return known if in_order else {}


def _nearest(
    repo: Repository, versions: Sequence[MinorVersion], chosen: Container[str]
) -> dict[str, tuple[str, ...]]:
    """The nearest chosen ancestors of each version; the history between them is walked."""
    history: dict[str, MinorVersion] = {}
    for version in versions:
        if version.checksum not in history:
            walked = repo.vcs.walk_subjects(version.checksum, ordered=True)
            history = {one.checksum: one for one in walked} | history
    nearest: dict[str, tuple[str, ...]] = {}
    for checksum in _parents_first(history):
        found: dict[str, None] = {}
        for parent in history[checksum].parents:
            found.update(dict.fromkeys((parent,) if parent in chosen else nearest.get(parent, ())))
        nearest[checksum] = tuple(found)
    return {version.checksum: nearest[version.checksum] for version in versions}


def _parents_first(history: Mapping[str, MinorVersion]) -> Iterator[str]:
    """The versions, each after all its parents."""
    done: set[str] = set()
    for start in history:
        path = [start]
        while path:
            checksum = path[-1]
            waiting = [one for one in history[checksum].parents if one in history and one not in done]
            if waiting and checksum not in done:
                path.append(waiting[0])
                continue
            path.pop()
            if checksum not in done:
                done.add(checksum)
                yield checksum
