"""One job in the folder of one version: run its collector, and describe where the profile comes from."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from perun.core import conditions, machine
from perun.core.errors import (
    DamagedStore,
    JobFailed,
    PerunError,
    ProfileError,
    ProfileNotFound,
    VersionControlError,
)
from perun.core.process.command import find_executable
from perun.core.process.layout import Layout, padding
from perun.core.process.programs import speed_now
from perun.history import baseline
from perun.measurement.comparable import COUNTED, SPEED, WITHOUT_RUNS
from perun.plugin.api import Answer, CollectContext, Interrupted, MinorVersion, Report, Run, unheard
from perun.plugin.loading import errors_of
from perun.plugin.params import to_mapping
from perun.profile import incomplete, session
from perun.profile.head import Configuration
from perun.repository import registering as saving
from perun.repository import workloads
from perun.repository.copies import scratch_folder
from perun.repository.jobs import Job
from perun.repository.repository import PERUN_FOLDER, Repository
from perun.repository.user import cache_folder
from perun.running.run import pre_run
from perun.running.run.events import JobDone
from perun.running.run.journal import StepLog
from perun.running.run.pre_run import environment
from perun.running.run.schedule import Share, Task

if TYPE_CHECKING:
    from perun.profile.factory import Profile
    from perun.profile.helpers import ProfileInfo


# What collectors keep of versions, as statistics of these (manual 3.6.6), and find of earlier ones.

MOST_VERSIONS: Final = 2000
"""Ancestors that are looked at before a search ends."""


class VersionStatistics:
    """The :class:`~perun.plugin.api.Statistics` of one version of a repository."""

    def __init__(self, repo: Repository, version: MinorVersion) -> None:
        self._repo = repo
        self._version = version

    def load(self, name: str) -> dict[str, Any] | None:
        """What is kept of the version; None if there is nothing, or it is damaged."""
        return self._of(self._version.checksum, name)

    def save(self, name: str, values: Mapping[str, Any]) -> None:
        """Keep `values` of the version, in place of what was kept."""
        stats, version = self._repo.store.stats, self._version
        with self._repo.store.lock():
            stats.path(version.checksum, name).unlink(missing_ok=True)
            stats.add(version.checksum, version.date, name, values)

    def earlier(self, name: str, revision: str = "") -> tuple[str, dict[str, Any]] | None:
        """What is kept of the nearest ancestor that has any, or of `revision`, with the version."""
        if revision:
            checksum = self._repo.version(revision)
            found = self._of(checksum, name)
            return None if found is None else (checksum, found)
        for checksum in self._ancestors():
            found = self._of(checksum, name)
            if found is not None:
                return checksum, found
        return None

    def remove(self, name: str) -> None:
        """Forget what is kept under the name of any version."""
        stats = self._repo.store.stats
        for checksum in stats.found():
            if name in stats.names(checksum):
                stats.delete(checksum, name)

    def profile(self, collector: str, cmd: str | None) -> Profile | None:
        """The newest profile of the command, of the version or of the nearest ancestor that has one.

        Pending profiles count as well, of which a head says the version.
        """
        wanted = Configuration.of(collector, cmd or "", "", "", ())

        def is_wanted(info: ProfileInfo) -> bool:
            own = info.configuration
            return own.collector == wanted.collector and cmd in (None, own.cmd)

        pending = self._repo.store.pending
        indexes, objects = self._repo.store.indexes, self._repo.store.objects
        waiting = [one for one in pending.list() if is_wanted(one)]
        for checksum in (self._version.checksum, *self._ancestors()):
            registered = [one.info() for one in indexes.read(checksum)] if indexes.has(checksum) else []
            own = [one for one in registered if is_wanted(one)]
            own += [one for one in waiting if self._origin(one.realpath) == checksum]
            for info in sorted(own, key=lambda one: one.time, reverse=True):
                try:
                    return objects.get(info.checksum) if info.is_registered else pending.load(info.realpath)
                except ProfileError:
                    continue
        return None

    def _origin(self, path: str) -> str:
        try:
            return str(self._repo.store.pending.regions(path).get("origin", ""))
        except ProfileError:
            return ""

    def _ancestors(self) -> Iterator[str]:
        try:
            for number, version in enumerate(self._repo.vcs.walk_subjects(self._version.checksum)):
                if number > MOST_VERSIONS:
                    return
                if version.checksum != self._version.checksum:
                    yield version.checksum
        except VersionControlError:
            return  # there is no history yet

    def _of(self, checksum: str, name: str) -> dict[str, Any] | None:
        try:
            return self._repo.store.stats.get(checksum, name)
        except (ProfileNotFound, DamagedStore):
            return None


def collect(
    repo: Repository,
    job: Job,
    version: MinorVersion,
    folder: Path,
    report: Report,
    note: Callable[[str], None],
    answer: Callable[[Answer], None] = unheard,
    layout: Layout | None = None,
    environ: Mapping[str, str] | None = None,
) -> Profile:
    """The profile that the collector of the job makes of the version in `folder`.

    :param report: called with the activity of the collector, steps done, and steps in all.
    :param note: called with each message of the collector to the user.
    :param answer: called with what the collector was asked for beside a profile.
    :param layout: draws where the program and its files lie. :param environ: in place of that of the user.
    :raises NoProfile: where it was asked for nothing else.
    :raises Interrupted: with the incomplete profile, where the collector had one by then.
    """
    environ = environment(repo) if environ is None else dict(environ)
    run = Run(job.cmd, job.args, job.workload, folder, environ, version.checksum)
    if layout is not None:
        environ.update([padding(layout.rng)])
        if folder != repo.working_root:
            program = find_executable(run.command().argv[0], folder, environ)
            with scratch_folder(repo) as scratch:
                layout.place_anew(program, folder, scratch)
    # Before the run: the load it finds, not the one it makes.
    machine_state = describe_machine(repo)
    generated = job.generated
    context = CollectContext(
        folder,  # of its own for each run
        report,
        note,
        _cache(repo, job.collector.name),
        repo.root / PERUN_FOLDER / "logs",
        VersionStatistics(repo, version),
        answer,
    )
    try:
        if generated is None:
            profile = _run_collector(repo, job, run, context)
        elif generated.merged:
            profile = workloads.merge(_each_workload(repo, job, run, generated.inputs, context))
        else:
            profile = _run_collector(repo, job, run._replace(workload=generated.inputs[0].text), context)
    except Interrupted as interruption:
        if generated is not None and generated.merged:  # it is of one of the workloads, not of them all
            raise (interruption.__cause__ or KeyboardInterrupt()) from None
        complete(interruption.profile, job, machine_state)
        raise
    return complete(profile, job, machine_state)


def describe_machine(repo: Repository) -> dict[str, Any]:
    """What a profile that is measured now says of the machine, and of how versions are built on it."""
    return {
        **machine.describe(),
        "conditions": conditions.lasting(),
        "build": pre_run.build(repo),
    }


def complete(profile: Profile, job: Job, machine_state: Mapping[str, Any]) -> Profile:
    """The profile with what every collector would say the same of.

    What was measured is the job's to say, whatever the collector says: profiles without their command would
    be compared with those of another one.
    """
    measured = {"cmd": job.cmd, "args": job.args, "workload": job.workload}
    profile["header"] = {**(profile.get("header") or {}), **measured}
    if job.generated is not None:
        profile["workload_generator"] = job.generated.describe()
    if SPEED not in machine_state and profile.type not in COUNTED | WITHOUT_RUNS:
        machine_state = {**machine_state, **_speed_of(int(time.monotonic()))}
    profile["machine"] = machine_state
    params = to_mapping(job.collector.params)
    profile.setdefault("collector_info", {"name": job.collector.name, "params": params})
    profile.setdefault("postprocessors", [])
    return profile


@lru_cache(maxsize=1)
def _speed_of(second: int) -> dict[str, Any]:
    """The speed of the machine, timed once a second at most: visits of a session may be shorter."""
    return speed_now()


def _each_workload(
    repo: Repository,
    job: Job,
    run: Run,
    inputs: Sequence[workloads.Input],
    context: CollectContext,
) -> Iterator[tuple[workloads.Input, Profile]]:
    """The profiles of one workload after the other."""
    for number, one in enumerate(inputs, 1):
        which = f"workload {number} of {len(inputs)}"

        def report_workload(activity: str, done: int, total: int, which: str = which) -> None:
            context.report(f"{which}: {activity}", done, total)

        own = context._replace(report=report_workload)
        yield one, _run_collector(repo, job, run._replace(workload=one.text), own)


def _run_collector(repo: Repository, job: Job, run: Run, context: CollectContext) -> Profile:
    collector = repo.registry.get("collect", job.collector.name)
    with scratch_folder(repo) as scratch:
        own = context._replace(scratch=scratch)
        with errors_of(collector, f"the collector {collector.name!r}", JobFailed):
            profile: Profile = collector.collect(run, job.collector.params, own)
    return profile


def _cache(repo: Repository, name: str) -> Path | None:
    """The folder of the user for what a collector keeps from run to run; None if there is none."""
    folder = cache_folder(repo.environ)
    return folder and folder / name


# Keeping the profile of a job: saved, registered as the user wants it, each step in the log of the batch.


@dataclass(frozen=True)
class ProfileNaming:
    """How profiles are named: one fixed name, or a template other than the configured one."""

    name: str | None = None
    template: str | None = None


UNNAMED: Final = ProfileNaming()


class Keeper:
    """Keeps the profiles of one batch.

    :param session_id: the id of the session that they are of; empty of a single run.
    """

    def __init__(
        self, repo: Repository, naming: ProfileNaming, registering: bool, log: StepLog, session_id: str = ""
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
        levels: tuple[float, float] | None = None,
        share: Share | None = None,
        judge: bool = True,
    ) -> JobDone:
        """Save the profile, and register it if the user wants that, unless its job was interrupted.

        :param seconds: how long the job took, :param phases: and its parts.
        :param machine: the one of a pool that measured it. :param levels: as of
            :class:`~perun.profile.session.Session`, of a session that ends when it is certain.
        :param share: what several versions share, of which this is the one that was measured, or another one.
        :param judge: put what was measured beside the version before.
        :raises PerunError: if it cannot be kept.
        """
        if self._session:  # what machines of a pool measure at the same time has no noise in common
            where = f"{self._session}@{machine}" if machine else self._session
            shared = share or Share("")
            own = session.Session(
                where, round=task.round, levels=levels, measured=shared.version, reason=shared.reason
            )
            session.mark(profile, own)
        lacking = incomplete.text_of(profile)
        registering = self._registering and not interrupted
        judged = None
        if judge:
            judged = baseline.comparison_of_profile(
                self._repo, version.checksum, profile, registering=registering
            )
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
            share if share is not None and share.reason else None,
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
