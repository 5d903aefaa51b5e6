"""`perun run matrix`: the plan, the progress with the remaining time, the summary of failures."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from dataclasses import replace

from perun.cli.answers.pool import tell_exposed
from perun.cli.commands.measuring import EventPrinter, MatrixOptions, VersionOptions
from perun.cli.progress import Progress, duration
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.conditions import observe
from perun.errors import PerunError, UsageError
from perun.porcelain.pool import dispatch
from perun.porcelain.pool.places import Local, Place, parsed
from perun.porcelain.run import matrix as batch
from perun.porcelain.run.events import (
    Event,
    JobDone,
    JobFailure,
    MachineTold,
    PoolEvent,
    Tally,
    VersionSkipped,
)
from perun.porcelain.run.forecast import Forecast
from perun.porcelain.run.in_place import refuse_after_interruption
from perun.porcelain.run.journal import Journal
from perun.porcelain.run.preparations import PreparationRecord
from perun.porcelain.run.versions import parents_among
from perun.porcelain.sharing.remotes import open_remote
from perun.porcelain.sharing.sending import Sender
from perun.profile.amounts import readable
from perun.wording import plural


def run_matrix(session: Session, options: MatrixOptions, where: VersionOptions) -> None:
    """Plan a batch or resume the interrupted one; list it or run it; raise if something failed."""
    place = None if options.on is None else parsed(options.on)
    if options.push is None or options.dry_run:
        _run_matrix(session, options, where, place, None)
        return
    with open_remote(session.repository, options.push or None) as remote:
        # What is sent from this machine while it measures would disturb that; between two jobs nothing does.
        sender = Sender(session.repository, remote, meanwhile=not isinstance(place, Local))
        _run_matrix(session, options, where, place, sender)


def _run_matrix(
    session: Session,
    options: MatrixOptions,
    where: VersionOptions,
    place: Place | None,
    sender: Sender | None,
) -> None:
    wanted = batch.BatchOptions(
        where.minor,
        where.crawl_parents,
        options.since,
        options.every,
        options.rounds,
        options.missing,
        where.placement,
        where.template,
        options.seed,
    )
    repo = session.repository
    journal: Journal | None = None
    if options.resume:
        if wanted != batch.BatchOptions():
            raise UsageError(
                "--resume runs the rest of an existing plan and takes no option that changes the plan",
                "it takes only --dry-run, --retry-broken, --quiet-env, --without-vcs-history, --on, --push",
            )
        planned, journal = batch.resumable(repo)
    else:
        planned = batch.plan(repo, wanted)
    if sender is not None:
        planned = replace(planned, register=True)  # only what is registered is sent
    if options.dry_run:
        if journal is not None:
            journal.close()
        _DryRun(session, planned, options.retry_broken).write()
        return
    if not planned.total:
        if journal is not None:
            journal.end()
            journal.close()
        reason = "the batch is complete" if options.resume else "no profile is missing"
        session.say(f"nothing to run: {reason}")
        _send_rest(session, sender, None)
        return
    refuse_after_interruption(repo)  # before any output
    unfinished = "" if options.resume else batch.interrupted(repo)
    if unfinished:
        session.note(
            "note: an earlier batch was interrupted; perun run matrix --resume runs the rest of it "
            f"(to discard it: rm {unfinished})"
        )
    if not options.quiet_env:
        for condition in observe():
            session.note(f"environment: {condition.message}")
    if journal is not None:
        journal.resumed()
    _run(session, planned, journal, options, place, sender)


def _run(
    session: Session,
    planned: batch.Plan,
    journal: Journal | None,
    options: MatrixOptions,
    place: Place | None,
    sender: Sender | None,
) -> None:
    tally = Tally(planned.slots)
    forecast = Forecast(session.repository, planned.slots)

    def expected() -> float | None:
        if place is not None:
            return None  # the bar sees how quick the machines are together
        estimate = forecast.estimate(tally.remaining)
        return None if estimate.unknown else estimate.seconds

    versions = [slot.version for slot in planned.slots]
    with session.progress(tally.total, "measuring") as bar:
        printer = EventPrinter(
            session,
            bar.write,
            several=len(planned.slots) > 1,
            history=not options.without_vcs_history and place is None,
            rounds=max(slot.round for slot in planned.slots),
            parents={} if options.without_vcs_history else parents_among(session.repository, versions),
        )
        bar.expect(expected())
        events = _events(session, planned, journal, options, place, tally, bar)
        try:
            with contextlib.closing(events):  # restores the working directory of an interrupted run at once
                for event in events:
                    if not isinstance(event, MachineTold):
                        forecast.learn(event)
                        bar.expect(expected())
                    printer.show(event)
                    if sender is not None and isinstance(event, JobDone) and (why := sender.look()):
                        session.warn(f"nothing is pushed for now: {one_line(why)}")
        except (KeyboardInterrupt, SystemExit):
            left = f"{tally.total - tally.complete} of {tally.total} jobs are left"
            goes_on = batch.interrupted(session.repository)  # not where the pool was not there yet
            session.note(
                f"\ninterrupted, {left}; run them with: perun run matrix{' --resume' * bool(goes_on)}"
            )
            raise
    _summarise(session, tally)
    if tally.incomplete:
        they = "profile is" if tally.incomplete == 1 else "profiles are"
        session.note(
            f"note: {tally.incomplete} {they} incomplete; measure again with: perun run matrix --resume"
        )
    _send_rest(session, sender, tally.error)
    if tally.error is not None:
        raise tally.error


def _send_rest(session: Session, sender: Sender | None, error: PerunError | None) -> None:
    """Send what has not been sent yet, and say what was in all; `error` is that of the batch."""
    if sender is None:
        return
    try:
        sent = sender.send()
    except PerunError as problem:
        why = "what was measured is registered here; send it with: perun push"
        if error is None:
            problem.add_note(why)
            raise
        session.warn(f"{one_line(problem.message)}; {why}")
        return
    what = f"sent {plural(sent.profiles, 'profile')} to {sender.url}: {readable(sent.bytes, 'B')}"
    session.say(what if sent.profiles else f"nothing new to push to {sender.url}")
    for refused in sent.refused:
        session.warn(one_line(refused))


def _events(
    session: Session,
    planned: batch.Plan,
    journal: Journal | None,
    options: MatrixOptions,
    place: Place | None,
    tally: Tally,
    bar: Progress,
) -> Generator[Event] | Generator[PoolEvent]:
    repo = session.repository
    if place is None:
        return batch.run(
            repo,
            planned,
            journal,
            retry_broken=options.retry_broken,
            tally=tally,
            report=bar.update,
            report_inside=bar.inside,
        )
    tell_exposed(session, place)
    return dispatch.run(
        repo,
        planned,
        place,
        lambda: journal or batch.new_journal(repo, planned),
        retry_broken=options.retry_broken,
        tally=tally,
        report=bar.update,
    )


def _summarise(session: Session, tally: Tally) -> None:
    """List the failures once more, as their lines may have scrolled away among the others."""
    if not (tally.started and tally.failures):
        return
    session.say(session.paint("what failed:", "red"))
    failed = [event for event in tally.failures if isinstance(event, JobFailure)]
    skipped = [event for event in tally.failures if isinstance(event, VersionSkipped)]
    for event in failed:
        _line(session, f"{event.version.checksum[:10]} {event.job} ({event.job.collector.name})", event)
    for version in dict.fromkeys(event.version for event in skipped):
        _line(session, version.checksum[:10], next(one for one in skipped if one.version == version))


def _line(session: Session, what: str, event: JobFailure | VersionSkipped) -> None:
    session.say(f"  {one_line(what)}: {one_line(event.error.message.partition(chr(10))[0])}")


class _DryRun:
    """The list of the jobs that the batch runs, and how long it takes."""

    def __init__(self, session: Session, planned: batch.Plan, retry_broken: bool) -> None:
        repo = session.repository
        record = PreparationRecord(repo)
        self._session = session
        self._planned = planned
        self._why: Callable[[str], str] = (lambda version: "") if retry_broken else record.why_broken
        self._forecast = Forecast(repo, planned.slots)

    def write(self) -> None:
        """Print the list."""
        session = self._session
        rounds = max((slot.round for slot in self._planned.slots), default=0)
        for slot in self._planned.slots:
            which = f" (round {slot.round} of {rounds})" if slot.round else ""
            checksum = session.paint(slot.version.checksum[:10], "yellow")
            session.say(f"* {checksum} {one_line(slot.version.subject)}{which}")
            why = self._why(slot.version.checksum)
            if why:
                session.say(f"  skipped: known to fail: {one_line(why)}")
                continue
            for task in slot.tasks:
                seconds = self._forecast.seconds(task.job)
                time = "" if seconds is None else f", about {_seconds(seconds)}"
                session.say(f"  {one_line(str(task.job))} ({task.job.collector.name}{time})")
        session.say(self._totals())

    def _totals(self) -> str:
        slots = [slot for slot in self._planned.slots if not self._why(slot.version.checksum)]
        total = sum(len(slot.tasks) for slot in slots)
        versions = len({slot.version.checksum for slot in slots})
        counts = f"{plural(total, 'job')} in {plural(versions, 'version')}"
        estimate = self._forecast.estimate(slots)
        if estimate.unknown == total:
            return f"{counts}; no stored profile says how long they take" if total else counts
        time = f"about {_seconds(estimate.seconds)}"
        if estimate.preparations:
            time += f", {_seconds(estimate.preparations)} of it for execute.pre_run"
        if estimate.unknown:
            time += f"; {estimate.unknown} of them of unknown duration are not counted in"
        return f"{counts}: {time}"


def _seconds(seconds: float) -> str:
    return readable(seconds, "s") if seconds < 60 else duration(seconds)
