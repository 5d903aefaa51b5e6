"""`perun run` and `perun collect`: measure versions of the project and keep the profiles (manual 3.2.10-12).

The main path is :func:`run_jobs`. It enters each version of a schedule, runs its jobs there, and keeps their
profiles. It yields what happens as events and prints nothing.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perun.core.config.schema import is_true
from perun.core.errors import DamagedStore, JobFailed, PerunError, ProfileError
from perun.core.regular import open_for_writing
from perun.core.wording import plural
from perun.plugin.api import Answer, Interrupted, MinorVersion, NoProfile, PostprocessContext, Report, silent
from perun.profile.amounts import readable
from perun.repository import postprocessing
from perun.repository import registering as saving
from perun.repository.copies import IN_A_COPY, Checkouts, Placement, checkouts
from perun.repository.jobs import Job, matrix
from perun.repository.repository import PERUN_FOLDER, Repository
from perun.running.run import collecting, pre_run, schedule
from perun.running.run.benchmarks import Benchmarks
from perun.running.run.builds import Builds
from perun.running.run.collecting import UNNAMED, Keeper, ProfileNaming
from perun.running.run.events import (
    BatchNote,
    ChangesSaved,
    Event,
    JobAnswered,
    JobDone,
    JobFailure,
    RunTally,
    VersionSkipped,
    VersionStarted,
)
from perun.running.run.journal import StepLog
from perun.running.run.pre_run import PreparationRecord
from perun.running.run.rounds import Rounds
from perun.running.run.schedule import Task, VersionSlot, shared_last
from perun.running.run.shares import VersionsAhead, VersionSource

if TYPE_CHECKING:
    from perun.profile.factory import Profile


# Entering a version: check it out, run `execute.pre_run` there, and record how that went.


class PreparedVersions:
    """Enters one version after the other; use :func:`prepared_versions`."""

    def __init__(
        self,
        repo: Repository,
        places: Checkouts,
        builds: Builds | None,
        record: PreparationRecord,
        skip_broken: bool,
    ) -> None:
        self._repo = repo
        self._places = places
        self._builds = builds
        self._record = record
        self._skip_broken = skip_broken
        self._last: VersionStarted | None = None
        self._is_here = False
        """Whether the version that the user has checked out is prepared there."""
        self._entered: set[str] = set()
        self._failed: dict[str, PerunError] = {}

    def enter(self, slot: VersionSlot) -> VersionStarted | VersionSkipped:
        """Check out and prepare the version of the slot, unless it is prepared already.

        :raises PerunError: if no further version can be checked out.
        """
        version = slot.version
        if self._last is not None and self._last.version == version:
            return replace(self._last, round=slot.round, omits_changes=False, seconds=0.0, anew=False)
        self._last = None
        as_committed = not self._places.includes_changes(version.checksum)
        why = self._record.why_broken(version.checksum) if self._skip_broken and as_committed else ""
        if why:
            error = JobFailed(f"known to fail: {why}", "try such versions again with --retry-broken")
            return VersionSkipped(version, error, slot.round, known=True)
        if version.checksum in self._failed:
            return VersionSkipped(version, self._failed[version.checksum], slot.round, known=True)
        try:
            folder, seconds = self._prepared(version.checksum)
        except PerunError as error:
            if not self._places.usable:
                raise
            self._failed[version.checksum] = error
            if isinstance(error, pre_run.PreparationFailed) and as_committed:
                self._record.failed(version.checksum, error.message.partition("\n")[0])
            return VersionSkipped(version, error, slot.round)
        if as_committed and seconds:
            self._record.succeeded(version.checksum, seconds)
        omits_changes = self._places.omits_changes(version.checksum) and version.checksum not in self._entered
        self._entered.add(version.checksum)
        self._last = VersionStarted(version, folder, omits_changes, slot.round, seconds, seconds > 0)
        return self._last

    def _prepared(self, version: str) -> tuple[Path, float]:
        """The folder of the version, and how many seconds it took to prepare it now."""
        here = self._places.is_measured_here(version)
        if here and self._is_here:
            return self._repo.working_root, 0.0
        if self._builds is not None and not here and not self._places.in_place:
            built = self._builds.enter(version)
            return built.folder, built.seconds
        begun = time.monotonic()
        folder = self._places.enter(version)
        pre_run.run_commands(self._repo, version, folder)
        self._is_here = here
        return folder, time.monotonic() - begun

    def save_changes(self) -> bool:
        """Keep changes that the version, measured in place, made to tracked files; whether there were any."""
        if not self._places.save_changes():
            return False
        self._last = None  # its files are not as they were when it was prepared
        return True


@contextmanager
def prepared_versions(
    repo: Repository, placement: Placement, *, skip_broken: bool = False, again: bool = False
) -> Iterator[PreparedVersions]:
    """Versions that are ready to be measured, one at a time; at the end everything is as it was.

    :param skip_broken: do not try versions again that `execute.pre_run` is known to fail on.
    :param again: versions are entered several times, so that each has a folder of its own.
    :raises LockTimeout: if an `--in-place` run of another process has the working directory.
    """
    record = PreparationRecord(repo)
    keeps = again or bool(pre_run.commands(repo))
    with checkouts(repo, placement) as places, Builds(repo) if keeps else nullcontext() as builds:
        yield PreparedVersions(repo, places, builds, record, skip_broken)


def run_jobs(
    repo: Repository,
    schedule: Sequence[VersionSlot],
    *,
    placement: Placement = IN_A_COPY,
    naming: ProfileNaming = UNNAMED,
    register: bool | None = None,
    skip_broken: bool = False,
    versions: AbstractContextManager[VersionSource] | None = None,
    open_log: Callable[[], StepLog] = StepLog,
    tally: RunTally | None = None,
    rounds: Rounds | None = None,
    benchmarks: Benchmarks | None = None,
    report: Report = silent,
    report_inside: Report = silent,
) -> Generator[Event]:
    """Run the jobs of the schedule. A failing job or version is an event, and the others go on.

    An interruption (:class:`KeyboardInterrupt`, :class:`~perun.core.errors.Terminated`) ends the whole run.
    Where the collector had a part of its profile by then, that is saved and is the last event.

    :param register: register each profile in the index of its version; as configured if None.
    :param skip_broken: do not try versions again that `execute.pre_run` is known to fail on.
    :param versions: what enters them, in place of checkouts as `placement` says.
    :param open_log: opens the log that gets each step of each task; closed at the end.
    :param rounds: the session that the profiles are of, which may go on after the schedule.
    :param benchmarks: of suites, which join the schedule once it is known which there are; they have rounds.
    :param tally: counts each event before it is yielded, for the caller to read.
    :param report: called with the current activity, jobs done and jobs in all; :param report_inside: called
        by the collector with its progress within its job.
    :raises NotTrusted: if the user has not said that he trusts the repository.
    """
    with open_log() as log:
        # Besides the commands themselves: checking versions out runs the filters of the version control.
        repo.require_trust("measuring")
        saving.check_naming(repo, naming.name, naming.template)
        registering = repo.registers_after_run if register is None else register
        tally = tally or RunTally(schedule)
        if not schedule and benchmarks is None:
            report("done", 0, 0)
            log.end()
            return
        runner = _JobRunner(repo, naming, registering, log, rounds)
        looks = rounds is not None and rounds.looks
        again = looks or benchmarks is not None or len({slot.round for slot in schedule}) > 1
        places = versions or prepared_versions(repo, placement, skip_broken=skip_broken, again=again)
        with places as entered, nullcontext() if benchmarks is None else benchmarks.suites:
            entering = VersionsAhead(entered)
            if rounds is not None:
                if looks:
                    rounds.look(schedule, entering, lambda activity: report(activity, 0, tally.total))
                    log.shared(rounds.jobs, rounds.shares)
                schedule = shared_last(schedule, rounds.shares)
                if benchmarks is not None and not benchmarks.is_listed:
                    schedule = yield from benchmarks.look(
                        schedule, rounds.versions, entering, log, tally, report
                    )
            while schedule:
                for slot in schedule:
                    yield from _run_slot(
                        slot, runner, benchmarks, entering, log, tally, report, report_inside, rounds
                    )
                schedule = [] if rounds is None else rounds.more()
                log.added(schedule)
                tally.add(schedule)
            if benchmarks is not None and rounds is not None:
                report("storing what was measured", tally.finished, tally.total)
                yield from map(tally.count, benchmarks.store(rounds.versions, registering, log))
        report("done", tally.total, tally.total)
        log.end()


def _run_slot(
    slot: VersionSlot,
    runner: _JobRunner,
    benchmarks: Benchmarks | None,
    places: VersionSource,
    log: StepLog,
    tally: RunTally,
    report: Report,
    report_inside: Report,
    rounds: Rounds | None,
) -> Iterator[Event]:
    """Keep what the version shares with another one that is measured; enter it for the rest, and run those of
    its tasks that did not fail in a round before."""
    short = slot.version.checksum[:10]
    copies = {task.number: done for task in slot.tasks if (done := runner.copy(task, slot.version))}
    yield from map(tally.count, copies.values())
    slot = slot._replace(tasks=tuple(task for task in slot.tasks if task.number not in copies))
    if copies and not slot.tasks:
        return
    report(f"preparing {short}", tally.finished, tally.total)
    begun, measured = time.monotonic(), 0.0
    entered = places.enter(slot)
    yield tally.count(entered)
    if isinstance(entered, VersionStarted):
        of_suites = []
        for task in slot.tasks:
            if runner.has_failed(task, slot.version):
                tally.drop(slot.version, task.job)
                continue
            if task.job.is_benchmark:
                of_suites.append(task)
                continue
            report(f"{short} {task.job}", tally.finished, tally.total)
            done = runner.run(task, slot.version, entered, report_inside)
            for answer in runner.answers:
                yield tally.count(answer)
            if done is not None:
                measured += done.seconds if isinstance(done, JobDone) else 0.0
                yield tally.count(done)
            if runner.interruption is not None:
                raise runner.interruption
        if of_suites and benchmarks is not None:
            report(f"{short} {plural(len(of_suites), 'benchmark')}", tally.finished, tally.total)
            visit = benchmarks.visit(entered, of_suites, log, tally, report_inside)
            measured += visit.seconds
            for task, error in visit.failures:
                yield tally.count(runner.failure(task, slot.version, error))
            yield from map(BatchNote, visit.notes)
        if rounds is not None:
            rounds.spend(time.monotonic() - begun - entered.seconds - measured)
    elif not entered.known:
        for task in slot.tasks:
            log.failed(task.number, entered.error.message)
    if places.save_changes():
        yield tally.count(ChangesSaved(slot.version))


class _Clock:
    """Times the phases of a job.

    :ivar phases: seconds by the name of the phase, in the order of the job.
    """

    def __init__(self) -> None:
        self.phases: dict[str, float] = {}
        self._last = time.monotonic()

    def end(self, phase: str) -> None:
        """Count the time since the end of the last phase to this one."""
        now = time.monotonic()
        self.phases[phase] = self.phases.get(phase, 0.0) + now - self._last
        self._last = now

    @property
    def seconds(self) -> float:
        """All phases that have ended."""
        return sum(self.phases.values())


class _JobRunner:
    """Runs jobs one after the other, and keeps their profiles.

    :ivar interruption: the exception that interrupted the last job and ends the run; None without one.
    :ivar answers: what the collector of the last job told beside its profile.
    """

    def __init__(
        self, repo: Repository, naming: ProfileNaming, registering: bool, log: StepLog, rounds: Rounds | None
    ) -> None:
        self._repo = repo
        self._log = log
        self._rounds = rounds
        self._keeper = Keeper(repo, naming, registering, log, rounds.id if rounds else "")
        self._failed: set[tuple[str, int]] = set()
        self.interruption: BaseException | None = None
        self.answers: list[JobAnswered] = []

    def has_failed(self, task: Task, version: MinorVersion) -> bool:
        """Whether the job failed on the version in an earlier round."""
        return (version.checksum, id(task.job)) in self._failed

    def run(
        self, task: Task, version: MinorVersion, entered: VersionStarted, report: Report
    ) -> JobDone | JobFailure | None:
        """Run one job; None where the collector was asked for answers alone."""
        rounds, folder = self._rounds, entered.measured_in
        job, levels = task.job, None
        if rounds is not None:
            job, levels = rounds.visit(task), rounds.levels(task.round)
        clock = _Clock()
        notes: list[str] = []
        answers: list[Answer] = []
        self.answers = []
        try:
            profile = self._processed(job, version, folder, report, notes.append, clock, answers.append)
            # A later forecast estimates from this how long the job takes.
            profile["collector_info"] = {**profile["collector_info"], "seconds": round(clock.seconds, 3)}
            done = self._keeper.keep(
                task,
                version,
                profile,
                interrupted=self.interruption is not None,
                seconds=clock.seconds,
                phases=clock.phases,
                notes=notes,
                levels=levels,
                share=None if rounds is None else rounds.source(version.checksum, task.job),
                judge=rounds is None or not rounds.spread,
            )
            clock.end("save")
            if rounds is not None and not done.incomplete:
                rounds.learn(version.checksum, task.job, profile, clock.seconds)
        except NoProfile:
            self._log.done(task.number)
            self.answers = _answered(version, task.job, answers, ends=True)
            return None
        except PerunError as error:
            return self.failure(task, version, error)
        self.answers = _answered(version, task.job, answers)
        return replace(done, seconds=clock.seconds)

    def copy(self, task: Task, version: MinorVersion) -> JobDone | JobFailure | None:
        """Keep what the version shares with another one that was measured in this round; None where it is to
        be measured."""
        rounds, clock = self._rounds, _Clock()
        share = None if rounds is None else rounds.share_of(version.checksum, task.job)
        if rounds is None or share is None or self.has_failed(task, version):
            return None
        profile = rounds.measured(share.version, task)
        if profile is None:
            return None
        clock.end("copy")
        told = f"{version.checksum[:10]} shares the measurement of {share.version[:10]}: {share.reason}"
        try:
            done = self._keeper.keep(
                task, version, profile, seconds=clock.seconds, phases=clock.phases, notes=[told],
                levels=rounds.levels(task.round), share=share, judge=False,
            )  # fmt: skip
        except PerunError as error:
            return self.failure(task, version, error)
        rounds.learn(version.checksum, task.job, profile, None)
        return done

    def failure(self, task: Task, version: MinorVersion, error: PerunError) -> JobFailure:
        """The task failed: its job is not run again on the version."""
        self._failed.add((version.checksum, id(task.job)))
        self._log.failed(task.number, error.message.partition("\n")[0])
        return JobFailure(version, task.job, error)

    def _processed(
        self,
        job: Job,
        version: MinorVersion,
        folder: Path,
        report: Report,
        note: Callable[[str], None],
        clock: _Clock,
        answer: Callable[[Answer], None],
    ) -> Profile:
        """The processed profile of the job; the part that an interrupted job has, without processing.

        What was measured is kept where a postprocessor can do nothing with it, and a note says so.
        """
        try:
            layout = None if self._rounds is None else self._rounds.layout(job)
            profile = collecting.collect(self._repo, job, version, folder, report, note, answer, layout)
        except Interrupted as interruption:
            self.interruption = interruption.__cause__ or KeyboardInterrupt()
            return interruption.profile
        finally:
            clock.end("collect")
        for unit in job.postprocessors:
            context = PostprocessContext(report, note)
            try:
                profile = postprocessing.process(self._repo, profile, unit.name, unit.params, context)
            except (ProfileError, JobFailed) as problem:
                advice = f"; {problem.hint}" if problem.hint else ""
                note(f"the profile is stored without {unit.name}: {problem.message}{advice}")
                profile = postprocessing.without(profile, unit.name, unit.params, problem.message)
            clock.end("postprocess")
        return profile


def _answered(
    version: MinorVersion, job: Job, answers: Sequence[Answer], *, ends: bool = False
) -> list[JobAnswered]:
    """The answers as events; with `ends` the last of them ends the job."""
    last = len(answers) - 1
    return [
        JobAnswered(version, job, one.text, one.data, ends=ends and number == last)
        for number, one in enumerate(answers)
    ]


# Collecting what is missing before a check (`check -c`, `degradation.collect_before_check`).


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
        if not self._wanted or isinstance(event, BatchNote):
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
        case BatchNote():
            return event.text
        case ChangesSaved():
            return f"changes of tracked files were kept after {event.version.checksum}"
