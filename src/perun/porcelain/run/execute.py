"""`perun run` and `perun collect`: measure versions of the project and keep the profiles (manual 3.2.10-12).

The main path is :func:`run_jobs`. It enters each version of a schedule, runs its jobs there, and keeps their
profiles. It yields what happens as events and prints nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perun.errors import JobFailed, PerunError, ProfileError
from perun.plugin.api import (
    Answer,
    Interrupted,
    MinorVersion,
    NoProfile,
    PostprocessContext,
    Report,
    silent,
)
from perun.porcelain import postprocessby, saving
from perun.porcelain.repository import Repository
from perun.porcelain.run import collecting
from perun.porcelain.run.checkouts import IN_A_COPY, Placement
from perun.porcelain.run.events import (
    ChangesSaved,
    Event,
    JobAnswered,
    JobDone,
    JobFailure,
    Tally,
    VersionStarted,
)
from perun.porcelain.run.jobs import Job
from perun.porcelain.run.journal import StepLog
from perun.porcelain.run.keeping import UNNAMED, Keeper, Naming
from perun.porcelain.run.prepared import Versions, prepared_versions
from perun.porcelain.run.schedule import Task, VersionSlot

if TYPE_CHECKING:
    from perun.profile.factory import Profile


def run_jobs(
    repo: Repository,
    schedule: Sequence[VersionSlot],
    *,
    placement: Placement = IN_A_COPY,
    naming: Naming = UNNAMED,
    register: bool | None = None,
    skip_broken: bool = False,
    versions: AbstractContextManager[Versions] | None = None,
    open_log: Callable[[], StepLog] = StepLog,
    tally: Tally | None = None,
    session_id: str = "",
    report: Report = silent,
    report_inside: Report = silent,
) -> Generator[Event]:
    """Run the jobs of the schedule. A failing job or version is an event, and the others go on.

    An interruption (:class:`KeyboardInterrupt`, :class:`~perun.errors.Terminated`) ends the whole run. Where
    the collector had a part of its profile by then, that is saved and is the last event.

    :param register: register each profile in the index of its version; as configured if None.
    :param skip_broken: do not try versions again that `execute.pre_run` is known to fail on.
    :param versions: what enters them, in place of checkouts as `placement` says.
    :param session_id: of the session that the profiles are of; empty where they are of none.
    :param open_log: opens the log that gets each step of each task; closed at the end.
    :param tally: counts each event before it is yielded, for the caller to read.
    :param report: called with the current activity, jobs done and jobs in all; :param report_inside: called
        by the collector with its progress within its job.
    :raises NotTrusted: if the user has not said that he trusts the repository.
    """
    with open_log() as log:
        # Besides the commands themselves: checking versions out runs the filters of the version control.
        repo.require_trust("measuring")
        saving.check_naming(repo, naming.name, naming.template)
        registering = saving.registers_after_run(repo) if register is None else register
        tally = tally or Tally(schedule)
        if not schedule:
            report("done", 0, 0)
            log.end()
            return
        runner = _JobRunner(repo, naming, registering, log, session_id)
        with versions or prepared_versions(repo, placement, skip_broken=skip_broken) as places:
            for slot in schedule:
                short = slot.version.checksum[:10]
                report(f"preparing {short}", tally.finished, tally.total)
                entered = places.enter(slot)
                yield tally.count(entered)
                if isinstance(entered, VersionStarted):
                    for task in slot.tasks:
                        report(f"{short} {task.job}", tally.finished, tally.total)
                        done = runner.run(task, slot.version, entered.measured_in, report_inside)
                        for answer in runner.answers:
                            yield tally.count(answer)
                        if done is not None:
                            yield tally.count(done)
                        if runner.interruption is not None:
                            raise runner.interruption
                elif not entered.known:
                    for task in slot.tasks:
                        log.failed(task.number, entered.error.message)
                if places.save_changes():
                    yield tally.count(ChangesSaved(slot.version))
        report("done", tally.total, tally.total)
        log.end()


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
        self, repo: Repository, naming: Naming, registering: bool, log: StepLog, session_id: str
    ) -> None:
        self._repo = repo
        self._log = log
        self._keeper = Keeper(repo, naming, registering, log, session_id)
        self.interruption: BaseException | None = None
        self.answers: list[JobAnswered] = []

    def run(
        self, task: Task, version: MinorVersion, folder: Path, report: Report
    ) -> JobDone | JobFailure | None:
        """Run one job; None where the collector was asked for answers alone."""
        clock = _Clock()
        notes: list[str] = []
        answers: list[Answer] = []
        self.answers = []
        try:
            profile = self._processed(task.job, version, folder, report, notes.append, clock, answers.append)
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
            )
        except NoProfile:
            self._log.done(task.number)
            self.answers = _answered(version, task.job, answers, ends=True)
            return None
        except PerunError as error:
            self._log.failed(task.number, error.message.partition("\n")[0])
            return JobFailure(version, task.job, error)
        clock.end("save")
        self.answers = _answered(version, task.job, answers)
        return replace(done, seconds=clock.seconds)

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
            profile = collecting.collect(self._repo, job, version, folder, report, note, answer)
        except Interrupted as interruption:
            self.interruption = interruption.__cause__ or KeyboardInterrupt()
            return interruption.profile
        finally:
            clock.end("collect")
        for unit in job.postprocessors:
            context = PostprocessContext(report, note)
            try:
                profile = postprocessby.process(self._repo, profile, unit.name, unit.params, context)
            except (ProfileError, JobFailed) as problem:
                advice = f"; {problem.hint}" if problem.hint else ""
                note(f"the profile is stored without {unit.name}: {problem.message}{advice}")
                profile = postprocessby.without(profile, unit.name, unit.params, problem.message)
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
