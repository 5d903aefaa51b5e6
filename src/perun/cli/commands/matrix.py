"""What `perun run matrix` does and says: the plan, the progress with the remaining time, the summary."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING

from perun.cli.commands.measuring import Teller, placement, tell_all
from perun.cli.progress import duration
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.conditions import observe
from perun.errors import UsageError
from perun.porcelain.run import matrix as batch
from perun.porcelain.run.execute import Event, JobBroke, JobDone, VersionSkipped, VersionStarted, failure_of
from perun.porcelain.run.forecast import Forecast
from perun.porcelain.run.journal import Journal
from perun.porcelain.run.preparations import Preparations
from perun.porcelain.run.versions import refuse_after_interruption

if TYPE_CHECKING:
    from perun.cli.progress import Progress


def run_matrix(
    session: Session,
    *,
    history: bool,
    dry_run: bool,
    since: str | None,
    every: int,
    rounds: int,
    missing: bool,
    resume: bool,
    retry_broken: bool,
    quiet_env: bool,
    seed: int | None,
    minor: Sequence[str],
    crawl_parents: bool,
    force_dirty: bool,
    in_place: bool,
    in_a_copy: bool,
    template: str | None,
) -> None:
    """Plan the batch, or take up the interrupted one; list it or run it; raise where something failed."""
    wanted = batch.Wanted(
        tuple(minor),
        crawl_parents,
        since,
        every,
        rounds,
        missing,
        placement(force_dirty, in_place, in_a_copy),
        template,
        seed,
    )
    repo = session.repository
    journal: Journal | None = None
    if resume:
        if wanted != batch.Wanted():
            raise UsageError(
                "--resume goes on with what was planned before: no option that plans anew goes with it",
                "only --dry-run, --retry-broken and --without-vcs-history go with it",
            )
        planned, journal = batch.resumable(repo)
    else:
        planned = batch.plan(repo, wanted)
    if dry_run:
        if journal is not None:
            journal.close()
        _Listing(session, planned, retry_broken).write()
        return
    if not planned.total:
        if journal is not None:
            journal.end()
            journal.close()
        session.say("nothing to run: " + ("the batch is complete" if resume else "no profile is missing"))
        return
    refuse_after_interruption(repo)  # before anything is told
    left_over = "" if resume else batch.interrupted(repo)
    if left_over:
        session.note(
            "note: an earlier batch was interrupted; perun run matrix --resume goes on with it "
            f"(or forget it: rm {left_over})"
        )
    if not quiet_env:
        for condition in observe():
            session.note(f"environment: {condition.message}")
    _run(session, planned, journal, history=history, retry_broken=retry_broken)


def _run(
    session: Session, planned: batch.Plan, journal: Journal | None, *, history: bool, retry_broken: bool
) -> None:
    total = planned.total
    rounds = max(stop.round for stop in planned.stops)
    events: list[Event] = []
    with session.progress(total, "measuring") as bar:
        stream = batch.run(
            session.repository,
            planned,
            journal,
            retry_broken=retry_broken,
            report=bar.update,
            report_inside=bar.inside,
        )
        expected = _expecting(Forecast(session.repository, planned.stops), planned, bar, stream, events)
        several = len(planned.stops) > 1
        teller = Teller(session, bar.write, several=several, history=history, rounds=rounds)
        try:
            tell_all(expected, teller)
        except (KeyboardInterrupt, SystemExit):
            done = sum(isinstance(event, JobDone) for event in events)
            left = f"{total - done} of {total} jobs are left"
            session.note(f"\ninterrupted, {left}; go on with: perun run matrix --resume")
            raise
    _summarise(session, events)
    failure = failure_of(events)
    if failure is not None:
        raise failure


def _expecting(
    forecast: Forecast, planned: batch.Plan, bar: Progress, stream: Generator[Event], events: list[Event]
) -> Generator[Event]:
    """The events; after each the bar is told how long the rest will take."""
    left = list(planned.stops)

    def expect() -> None:
        estimate = forecast.estimate(left)
        bar.expect(None if estimate.unknown else estimate.seconds)

    expect()
    try:
        for event in stream:
            events.append(event)
            match event:
                case VersionStarted(seconds=seconds) if seconds:
                    forecast.prepared(seconds)
                case VersionSkipped():
                    del left[0]
                case JobDone(job=job, seconds=seconds):
                    forecast.learn(job, seconds)
            if isinstance(event, (JobDone, JobBroke)):
                rest = left[0].tasks[1:]
                left[:1] = [left[0]._replace(tasks=rest)] if rest else []
            expect()
            yield event
    finally:
        stream.close()


def _summarise(session: Session, events: Sequence[Event]) -> None:
    """Name what failed once more, where it may have scrolled away among the others."""
    failed = [event for event in events if isinstance(event, JobBroke)]
    skipped = [event for event in events if isinstance(event, VersionSkipped)]
    if len(events) - len(failed) - len(skipped) == 0 or not (failed or skipped):
        return
    session.say(session.paint("what failed:", "red"))
    for event in failed:
        _line(session, f"{event.version.checksum[:10]} {event.job} ({event.job.collector.name})", event)
    for version in dict.fromkeys(event.version for event in skipped):
        _line(session, version.checksum[:10], next(one for one in skipped if one.version == version))


def _line(session: Session, what: str, event: JobBroke | VersionSkipped) -> None:
    session.say(f"  {one_line(what)}: {one_line(event.error.message.partition(chr(10))[0])}")


class _Listing:
    """What would be run, and how long it would take."""

    def __init__(self, session: Session, planned: batch.Plan, retry_broken: bool) -> None:
        repo = session.repository
        memory = Preparations(repo)
        self._session = session
        self._planned = planned
        self._why: Callable[[str], str] = (lambda version: "") if retry_broken else memory.why_broken
        self._forecast = Forecast(repo, planned.stops)

    def write(self) -> None:
        """Write it."""
        session = self._session
        rounds = max((stop.round for stop in self._planned.stops), default=0)
        for stop in self._planned.stops:
            which = f" (round {stop.round} of {rounds})" if stop.round else ""
            checksum = session.paint(stop.version.checksum[:10], "yellow")
            session.say(f"* {checksum} {one_line(stop.version.subject)}{which}")
            why = self._why(stop.version.checksum)
            if why:
                session.say(f"  skipped: known to fail: {one_line(why)}")
                continue
            for task in stop.tasks:
                seconds = self._forecast.seconds(task.job)
                time = "" if seconds is None else f", about {_seconds(seconds)}"
                session.say(f"  {one_line(str(task.job))} ({task.job.collector.name}{time})")
        session.say(self._sum())

    def _sum(self) -> str:
        stops = [stop for stop in self._planned.stops if not self._why(stop.version.checksum)]
        total = sum(len(stop.tasks) for stop in stops)
        versions = len({stop.version.checksum for stop in stops})
        counts = f"{total} job{'s' * (total != 1)} in {versions} version{'s' * (versions != 1)}"
        estimate = self._forecast.estimate(stops)
        if estimate.unknown == total:
            return f"{counts}; no stored profile tells how long they take" if total else counts
        time = f"about {_seconds(estimate.seconds)}"
        if estimate.preparations:
            time += f", {_seconds(estimate.preparations)} of it for execute.pre_run"
        if estimate.unknown:
            time += f"; and {estimate.unknown} of them whose time no stored profile tells"
        return f"{counts}: {time}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 60 else duration(seconds)
