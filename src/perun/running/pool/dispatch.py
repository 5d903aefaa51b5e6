"""`perun run matrix --on POOL`: the batch is leased to machines, job by job, and its profiles are kept here.

A lease is written to the journal of the batch before the job is sent. Whatever is lost on the way, a worker,
the scheduler or this process, is leased again; a machine that has measured it already answers from what it
kept.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.core.errors import (
    ConfigError,
    JobFailed,
    PerunError,
    PluginError,
    RemoteError,
    UsageError,
    VersionControlError,
)
from perun.core.wording import plural
from perun.plugin.api import Report, silent
from perun.profile.format.head import load
from perun.repository import workloads
from perun.repository.copies import IN_A_COPY
from perun.repository.jobs import Job
from perun.repository.repository import Repository
from perun.running.pool import orders, places
from perun.running.pool import orders as generated
from perun.running.pool import worker as remote
from perun.running.pool.engine import PoolEngine, TaskEnd, Worker, cannot_take_in, connected
from perun.running.pool.leases import Inspector, Lease, Reservations, ScheduledTask
from perun.running.pool.measuring import JobResult, error_of
from perun.running.pool.places import LocalPlace, Place
from perun.running.run.collecting import Keeper, ProfileNaming
from perun.running.run.events import (
    JobAnswered,
    JobFailure,
    MachineReport,
    PoolEvent,
    RunTally,
    VersionSkipped,
)
from perun.running.run.journal import BatchJournal
from perun.running.run.matrix import BatchPlan
from perun.running.run.pre_run import PreparationFailed, PreparationRecord

# Commits and generated inputs of a batch on their way to the machines of a pool.

# The commits of a batch on their way to machines that have not got them.


class BatchCommits:
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

    def supply(self, engine: PoolEngine, worker: Worker) -> bool:
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

    def _send(self, engine: PoolEngine, worker: Worker, wanted: Sequence[str], known: Sequence[str]) -> bool:
        data, tags = self._vcs.pack(wanted, known)
        try:
            told = engine.call(worker.address, remote.receive, self.project, wanted, data, tags)
        except OSError as problem:
            raise cannot_take_in(worker, "the versions", problem) from None
        return told is not None


# The files that workload generators made for a batch, on their way to machines that have not got them.

PIECE: Final = 8 << 20
"""Bytes that are sent at once."""


class Inputs:
    """The generated files of a batch. Each machine gets all of them before its first job: what is sent later
    would disturb what another worker of the machine measures.

    :param project: what the project is called on the machines.
    """

    def __init__(self, repo: Repository, project: str, jobs: Iterable[Job]) -> None:
        self._repo = repo
        self._project = project
        self._names = sorted({name for job in jobs for name in orders.folders(orders.describe(repo, job))})
        self._supplied: set[tuple[str, str]] = set()

    def supply(self, engine: PoolEngine, worker: Worker) -> bool:
        """Give the machine of the worker the files that it lacks, once; whether it has all now.

        :raises RemoteError: if it cannot take them in.
        """
        for name in self._names:
            if (worker.machine, name) in self._supplied:
                continue
            has = engine.ask(worker.address, remote.has_inputs, self._project, name)
            if has is None or not (has or self._send(engine, worker, name)):
                return False
            self._supplied.add((worker.machine, name))
        return True

    def _send(self, engine: PoolEngine, worker: Worker, name: str) -> bool:
        with tempfile.TemporaryFile() as file:
            with tarfile.TarFile(fileobj=file, mode="w", dereference=True) as archive:
                for inside, path in workloads.files_of(generated.home(self._repo) / name):
                    archive.add(path, inside, recursive=False)
            size = file.tell()
            file.seek(0)
            for offset in range(0, size, PIECE):
                data = file.read(PIECE)
                piece = (name, offset, data, offset + len(data) == size)
                try:
                    told = engine.call(worker.address, remote.receive_inputs, self._project, *piece)
                except OSError as problem:
                    raise cannot_take_in(worker, f"the generated files {name}", problem) from None
                if told is None:
                    return False
        return True


_TICK: Final = 0.5
"""Seconds after which the workers are looked at again."""


class PoolSettings(NamedTuple):
    """What the configuration says of pools: seconds that a lost part is waited for, attempts of one job, and
    the percentage by which a machine may drift."""

    patience: float
    attempts: int
    drift: float

    @classmethod
    def of(cls, repo: Repository) -> PoolSettings:
        """Those of the repository.

        :raises ConfigError: if one makes no sense.
        """
        found = {key: float(repo.config.get(f"pool.{key}")) for key in cls._fields}
        for key, value in found.items():
            least = 1 if key == "attempts" else 0
            if not least <= value < 1 << 31:
                raise ConfigError(
                    f"pool.{key} is {value:g}: expected a number from {least} on",
                    f"set it with: perun config set pool.{key} NUMBER",
                )
        return cls(found["patience"], int(found["attempts"]), found["drift"])


def run(
    repo: Repository,
    planned: BatchPlan,
    place: Place,
    open_log: Callable[[], BatchJournal],
    *,
    retry_broken: bool = False,
    tally: RunTally | None = None,
    report: Report = silent,
) -> Generator[PoolEvent]:
    """The events of the batch, in the order in which its jobs end; errors as of
    :func:`perun.running.run.execute.run_jobs`.

    :param open_log: opens the journal of the batch; it is closed at the end.
    :raises PerunError: if the pool cannot be used at all. What is left then is run with `--resume`.
    """
    repo.require_trust("measuring on a pool", places.brought(place, repo.environ))
    if planned.placement != IN_A_COPY:
        raise UsageError(
            "on a pool versions are measured as they are committed",
            "leave out --force-dirty, --in-place and --in-a-copy",
        )
    orders.check(repo, planned.jobs)
    settings = PoolSettings.of(repo)
    commits = BatchCommits(repo, (slot.version.checksum for slot in planned.slots))
    # A batch that never had a pool leaves no journal: there is nothing to go on with.
    with connected(place, settings.patience) as engine, open_log() as log:
        assert isinstance(log, BatchJournal)
        tally = tally or RunTally(planned.slots)
        several = not isinstance(place, LocalPlace)
        batch = _Batch(repo, planned, log, engine, commits, settings, tally, report, several)
        try:
            yield from batch.skip_broken(retry_broken)
            yield from batch.run()
        except BaseException:  # the end of the program too: nothing goes on measuring
            engine.stop(batch.name)
            raise
        engine.tell_all(remote.forget, batch.name)
        log.end()


class _Batch:
    """The loop of one batch.

    :ivar name: what the machines know it by, the same when it is resumed.
    :param several: the pool may have other machines than this one, which are told of and calibrated.
    """

    def __init__(
        self,
        repo: Repository,
        planned: BatchPlan,
        log: BatchJournal,
        engine: PoolEngine,
        commits: BatchCommits,
        settings: PoolSettings,
        tally: RunTally,
        report: Report,
        several: bool,
    ) -> None:
        self.name = _batch_name(log.path)
        self._repo = repo
        self._log = log
        self._engine = engine
        self._commits = commits
        self._settings = settings
        self._tally = tally
        self._report = report
        self._record = PreparationRecord(repo)
        self._leases = Reservations(planned.slots, _begun_on(planned, log))
        self._inputs = Inputs(repo, commits.project, planned.jobs)
        self._orders = orders.Orders(repo, self.name, commits.project)
        self._keeper = Keeper(
            repo, ProfileNaming(template=planned.template), planned.register, log, planned.session
        )
        self._watch = _Watch(settings.patience, {series.machine for series in self._leases.series})
        self._skipped: set[str] = set()
        self._slots = planned.slots
        self._tasks = {task.number: task for slot in planned.slots for task in slot.tasks}
        self._several = several
        self._inspector = Inspector(repo, settings.drift if several else 0)

    def skip_broken(self, retry: bool) -> Iterator[PoolEvent]:
        """Leave out the versions that `execute.pre_run` is known to fail on."""
        for version in [] if retry else dict.fromkeys(slot.version.checksum for slot in self._slots):
            if why := self._record.why_broken(version):
                hint = "try such versions again with --retry-broken"
                yield from self._skip(version, JobFailed(f"known to fail: {why}", hint), known=True)

    def run(self) -> Iterator[PoolEvent]:
        """Lease jobs until all have ended."""
        while not self._leases.is_done:
            workers = self._engine.workers()
            told = list(self._watch.look({one.machine for one in workers}))
            yield from told if self._several else ()
            for lease in self._leases.lost({one.address for one in workers}):
                self._engine.drop(lease.wanted.number)
                yield from self._give_back(lease, f"its worker {lease.worker.address} is gone")
            self._check_patience(bool(workers))
            yield from self._inspector.look(self._engine, self._leases.idle(workers))
            fit = [one for one in workers if one.machine not in self._inspector.aside]
            self._check_fit(workers, fit)
            yield from self._move_stranded()
            while (found := self._leases.next_lease(fit)) is not None:
                self._send(found)
            self._tell_progress()
            ended = self._engine.next_ended(_TICK)
            while ended is not None:
                yield from self._handle(ended)
                ended = self._engine.next_ended(0)

    def _send(self, lease: Lease) -> None:
        number, version, job = lease.wanted
        if not all(sent.supply(self._engine, lease.worker) for sent in (self._commits, self._inputs)):
            self._leases.give_back(lease, counted=False)
            return
        self._log.leased(number, lease.worker.machine)
        order = self._orders.make(number, job, version).as_json()
        self._engine.submit(lease.worker.address, remote.measure, number, order)

    def _handle(self, ended: TaskEnd) -> Iterator[PoolEvent]:
        lease = self._leases.held[ended.token]
        answer = ended.answer
        if not isinstance(answer, JobResult):
            why = answer.why if isinstance(answer, remote.LostJob) else "its worker or the scheduler is gone"
            yield from self._give_back(lease, why, counted=isinstance(answer, remote.LostJob))
            return
        self._leases.end(lease)
        error = error_of(answer, lease.worker.machine)
        yield from self._failed(lease, error) if error is not None else self._done(lease, answer)

    def _give_back(self, lease: Lease, why: str, *, counted: bool = False) -> Iterator[PoolEvent]:
        """Lease the task again, unless that was tried often enough."""
        self._leases.give_back(lease, counted=counted)
        if counted and lease.attempt >= self._settings.attempts:
            self._leases.take(lease.wanted)
            text = (
                f"it was lost {plural(lease.attempt, 'time')}, the last time on {lease.worker.machine}: {why}"
            )
            yield from self._failed(lease, JobFailed(text, "perun run matrix --resume tries it again"))
            return
        yield MachineReport(lease.worker.machine, f"{_short(lease.wanted)} is leased again: {why}")

    def _failed(self, lease: Lease, error: PerunError) -> Iterator[PoolEvent]:
        number, version, job = lease.wanted
        why = error.message.partition("\n")[0]
        self._log.failed(number, why)
        if version.checksum in self._skipped:
            return  # it was told of the whole version
        if isinstance(error, PreparationFailed):
            self._record.failed(version.checksum, why)
            self._leases.put(lease.wanted)
            yield from self._skip(version.checksum, error)
        else:
            yield self._tally.count(JobFailure(version, job, error))

    def _skip(self, version: str, error: PerunError, *, known: bool = False) -> Iterator[PoolEvent]:
        """Leave out all tasks of the version that no worker has."""
        self._skipped.add(version)
        dropped = self._leases.drop(version)
        if not known:
            for wanted in dropped:
                self._log.failed(wanted.number, error.message.partition("\n")[0])
        numbers = {wanted.number for wanted in dropped}
        for slot in self._slots:
            if numbers & {task.number for task in slot.tasks}:
                yield self._tally.count(VersionSkipped(slot.version, error, slot.round, known))

    def _done(self, lease: Lease, result: JobResult) -> Iterator[PoolEvent]:
        number, version, job = lease.wanted
        facts = result.facts
        if self._record.why_broken(version.checksum):
            self._record.succeeded(version.checksum, float(facts["prepared"]))
        for text, data, ends in facts["answers"]:
            if ends:
                self._log.done(number)
            yield self._tally.count(JobAnswered(version, job, text, data, ends))
        if not result.profile:
            return
        notes = list(facts["notes"])
        # The profile says it too: this process may end before it has told.
        told: dict[str, Any] = {"seconds": round(facts["seconds"], 3)}
        if again := int(facts.get("again", 0)):
            told["measured_again"] = again
            lost = f"{_short(lease.wanted)} was lost {plural(again, 'time')} on {lease.worker.machine}"
            notes.append(f"measured again: {lost} while it was measured")
        try:
            limit = self._repo.store.pending.limit
            profile = load(
                io.BytesIO(result.profile), f"the profile from {lease.worker.machine}", limit=limit
            )
            profile["collector_info"] = {**profile["collector_info"], **told}
            done = self._keeper.keep(
                self._tasks[number],
                version,
                profile,
                seconds=float(facts["seconds"]),
                phases=dict(facts["phases"]),
                notes=notes,
                machine=lease.worker.machine,
            )
        except PerunError as error:
            yield from self._failed(lease, error)
        else:
            yield self._tally.count(done)

    def _move_stranded(self) -> Iterator[PoolEvent]:
        """Give series of machines that are gone for good to others."""
        for series in self._leases.stranded(self._watch.expected() - self._inspector.aside):
            old, series.machine = series.machine, ""
            left = plural(len(series.left), "job")
            text = f"it measures no more: {left} of {series.job} are given to another machine"
            advice = "compare what was measured before with that only if the machines are alike"
            yield MachineReport(old, f"{text}; {advice}", serious=True)

    def _check_fit(self, workers: Sequence[Worker], fit: Sequence[Worker]) -> None:
        if workers and not fit and not self._leases.held:
            raise RemoteError(
                "all machines of the pool are set aside, as they are not as fast as they were",
                "find out why, or accept it: perun pool check POOL --reset; then go on with --resume",
            )

    def _check_patience(self, any_worker: bool) -> None:
        if any_worker or self._watch.is_patient():
            return
        seconds = f"for {self._settings.patience:g} s"
        if lacking := self._engine.without_resource():
            raise RemoteError(
                f"{plural(lacking, 'worker')} of the pool lack the resource bench, so that none gets a job",
                "start them with: --nthreads 1 --resources bench=1",
            )
        left = plural(self._tally.total - self._tally.finished, "job")
        raise RemoteError(
            f"there has been no worker {seconds}; {left} left",
            "start one: dask worker ADDRESS --nthreads 1 --resources bench=1  (and go on with --resume)",
        )

    def _tell_progress(self) -> None:
        held = sorted(self._leases.held.values(), key=lambda one: one.worker)
        doing = "; ".join(f"{one.worker.machine}: {_short(one.wanted)}" for one in held)
        self._report(doing or "waiting for machines", self._tally.finished, self._tally.total)


class _Watch:
    """Which machines are there, and which are gone for longer than anybody waits."""

    def __init__(
        self, patience: float, expected: Iterable[str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._patience = patience
        self._clock = clock
        self._there: set[str] = set()
        self._last = clock()
        self._seen = dict.fromkeys(expected, self._last)

    def look(self, there: set[str]) -> Iterator[PoolEvent]:
        """Note who is there now; tells who has come and gone."""
        now = self._clock()
        for machine in sorted(there - self._there):
            yield MachineReport(machine, "it is there")
        for machine in sorted(self._there - there):
            yield MachineReport(machine, "it has no worker any more")
        self._there = there
        self._seen |= dict.fromkeys(there, now)
        if there:
            self._last = now

    def expected(self) -> set[str]:
        """The machines that are there, and those that may come back."""
        now = self._clock()
        return {machine for machine, last in self._seen.items() if now - last <= self._patience}

    def is_patient(self) -> bool:
        """Whether it is not too long that none was there."""
        return self._clock() - self._last <= self._patience


def _short(wanted: ScheduledTask) -> str:
    return f"{wanted.version.checksum[:10]} {wanted.job}"


def _batch_name(journal: Path) -> str:
    """What machines know the batch by: other batches have other journals, also those of other machines."""
    told = f"{os.uname().nodename}\0{journal.resolve()}"
    return hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _begun_on(planned: BatchPlan, log: BatchJournal) -> Mapping[str, str]:
    """The machine that each series was on last, by its job."""
    job_of = {number: job for _, _, tasks in log.plan["stops"] for number, job in tasks}
    return {repr(planned.jobs[job_of[number]]): machine for number, machine in log.machines.items()}
