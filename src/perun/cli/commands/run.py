"""`perun run`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import click

from perun.cli.answers.data import write_json
from perun.cli.commands.measuring import (
    SEED,
    EventData,
    EventPrinter,
    MatrixOptions,
    VersionOptions,
    job_data,
    measure,
    with_version_options,
)
from perun.cli.commands.pool import tell_exposed
from perun.cli.commands.remote import complete_remote
from perun.cli.options import json_option, read_params, since_option, with_options_of
from perun.cli.plugins import write_plugins
from perun.cli.progress import Progress, duration
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.core.conditions import observe
from perun.core.errors import PerunError, UsageError
from perun.core.wording import plural
from perun.profile.amounts import readable
from perun.repository.copies import refuse_after_interruption
from perun.running.pool import dispatch
from perun.running.pool.places import LocalPlace, Place, parsed
from perun.running.run import matrix as batch
from perun.running.run.events import (
    Event,
    Forecast,
    JobDone,
    JobFailure,
    MachineReport,
    PoolEvent,
    RunTally,
    VersionSkipped,
)
from perun.running.run.journal import BatchJournal
from perun.running.run.pre_run import PreparationRecord
from perun.running.run.rounds import Rounds
from perun.running.run.schedule import parents_among
from perun.running.suite.versions import suites_of
from perun.sharing.remotes import Sender, open_remote


@click.group()
@with_version_options("-c")
@click.pass_context
def run(ctx: click.Context, /, where: VersionOptions) -> None:
    """Run a batch of jobs, or the job matrix.

    A job is a command with its arguments and workload, a collector, and the postprocessors applied later.
    `-c` is --crawl-parents here, and --collector behind `job`.
    """
    ctx.meta["where"] = where


def _names(family: str) -> Any:
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        from perun.plugin.registry import Registry

        return [name for name in Registry().names(family) if name.startswith(incomplete)]

    return complete


class _Job(click.Command):
    """A command whose help ends with the units that a job is made of."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The collectors and postprocessors, each with a line."""
        write_plugins(ctx.obj, "collect", "Collectors", formatter)
        write_plugins(ctx.obj, "postprocess", "Postprocessors", formatter)


@run.command(cls=_Job)
@click.option(
    "--cmd",
    "-b",
    multiple=True,
    metavar="CMD",
    help="The command to measure; may be repeated.",
)
@click.option(
    "--args", "-a", multiple=True, metavar="ARGS", help="Arguments of the command; may be repeated."
)
@click.option(
    "--workload", "-w", multiple=True, metavar="WORKLOAD", help="Input of the command; may be repeated."
)
@click.option(
    "--collector",
    "-c",
    required=True,
    multiple=True,
    metavar="NAME",
    shell_complete=_names("collect"),
    help="The collector; may be repeated.",
)
@click.option(
    "--collector-params",
    "-cp",
    nargs=2,
    multiple=True,
    metavar="NAME PARAMS",
    help="Parameters of a collector: a YAML file, key=value, or YAML.",
)
@click.option(
    "--postprocessor",
    "-p",
    multiple=True,
    metavar="NAME",
    shell_complete=_names("postprocess"),
    help="Postprocess each profile with this; may be repeated, applied in order.",
)
@click.option(
    "--postprocessor-params",
    "-pp",
    nargs=2,
    multiple=True,
    metavar="NAME PARAMS",
    help="Parameters of a postprocessor: a YAML file, key=value, or YAML.",
)
@click.option("--seed", type=int, metavar="N", help=SEED)
@json_option("Answer as JSON: the profiles, and what failed.")
@click.pass_context
def job(
    ctx: click.Context,
    cmd: tuple[str, ...],
    args: tuple[str, ...],
    workload: tuple[str, ...],
    collector: tuple[str, ...],
    collector_params: tuple[tuple[str, str], ...],
    postprocessor: tuple[str, ...],
    postprocessor_params: tuple[tuple[str, str], ...],
    seed: int | None,
    as_json: bool,
) -> None:
    """Run one batch of jobs: every command with every argument, workload and collector.

    The parameters of a unit are named by its own help, e.g. `perun collect time --help`.

    \b
    perun run job -c time -b ./mybin -w file.in -w file2.in
    perun run job -c time -cp time repeat=30 -b ./mybin -p normalizer
    """
    from perun.repository.jobs import combine, needs_command

    session: Session = ctx.obj
    if not cmd and any(needs_command(session.registry, name) for name in collector):
        raise click.UsageError("name the command to measure with --cmd (-b)", ctx)
    jobs = combine(
        session.repository,
        cmd,
        args,
        workload,
        _units(collector, collector_params, "--collector-params"),
        _units(postprocessor, postprocessor_params, "--postprocessor-params"),
        "the command line",
        seed,
    )
    measure(session, jobs, ctx.meta["where"], as_json=as_json)


@run.command()
@since_option("Measure all the ancestors that are newer than this version")
@with_options_of(
    MatrixOptions,
    "options",
    push={"is_flag": False, "flag_value": "", "shell_complete": complete_remote},
    harness={"shell_complete": _names("harness")},
)
@json_option("Answer as JSON: the profiles, and what failed; with --dry-run the jobs.")
@click.pass_context
def matrix(ctx: click.Context, /, since: str | None, options: MatrixOptions, as_json: bool) -> None:
    """Run the job matrix of the local configuration.

    `cmds`, `args`, `workloads`, `collectors` and `postprocessors` in `.perun/local.yml` are combined, each
    with each; the commands of `execute.pre_run` are run first, in every version. The whole of it is checked
    before anything runs. The benchmarks of `harnesses` are measured, too.

    \b
    perun run matrix --since v1.0 --every 5 --dry-run
    perun run matrix --since v1.0 --missing
    perun run matrix --resume
    perun run matrix --suite --since v1.0      each benchmark of the project
    perun run matrix --since v1.0 --on ssh:hosts.yml --push team
    """

    run_matrix(ctx.obj, options, ctx.meta["where"], since, as_json=as_json)


def _units(
    names: tuple[str, ...], params: tuple[tuple[str, str], ...], option: str
) -> list[tuple[str, dict[str, Any]]]:
    plain = [name.replace("-", "_") for name in names]
    for name, _ in params:
        if name.replace("-", "_") not in plain:
            raise click.UsageError(f"{option} {name}: this job does not use it")
    return [
        (name, read_params(tuple(text for owner, text in params if owner.replace("-", "_") == key)))
        for name, key in zip(names, plain, strict=True)
    ]


# `perun run matrix`: the plan, the progress with the remaining time, the summary of failures.


def run_matrix(
    session: Session, options: MatrixOptions, where: VersionOptions, since: str | None, *, as_json: bool
) -> None:
    """Plan a batch or resume the interrupted one; list it or run it; raise if something failed."""
    place = None if options.on is None else parsed(options.on)
    if options.push is None or options.dry_run:
        _run_matrix(session, options, where, since, place, None, as_json)
        return
    with open_remote(session.repository, options.push or None) as remote:
        # What is sent from this machine while it measures would disturb that; between two jobs nothing does.
        sender = Sender(session.repository, remote, meanwhile=not isinstance(place, LocalPlace))
        _run_matrix(session, options, where, since, place, sender, as_json)


def _run_matrix(
    session: Session,
    options: MatrixOptions,
    where: VersionOptions,
    since: str | None,
    place: Place | None,
    sender: Sender | None,
    as_json: bool,
) -> None:
    wanted = batch.BatchOptions(
        where.minor,
        where.crawl_parents,
        since,
        options.every,
        options.rounds,
        options.budget,
        options.missing,
        options.alone,
        where.placement,
        where.template,
        options.seed,
        not options.no_share,
        options.suite,
        options.harness,
        options.benchmark,
    )
    repo = session.repository
    journal: BatchJournal | None = None
    if options.find_changes:
        _find_changes(session, options, wanted, place, sender, as_json)
        return
    if options.resume:
        if wanted != batch.BatchOptions():
            raise UsageError(
                "--resume runs the rest of an existing plan and takes no option that changes the plan",
                "it takes only --dry-run, --retry-broken, --quiet-env, --without-vcs-history, --on, --push",
            )
        planned, journal = batch.resumable(repo, suites_of)
    else:
        planned = batch.plan(repo, wanted, rounds=place is None, suites_of=suites_of)
    if sender is not None:
        planned = replace(planned, register=True)  # only what is registered is sent
    if options.dry_run:
        if journal is not None:
            journal.close()
        plan = _DryRun(session, planned, options.retry_broken)
        plan.write_data() if as_json else plan.write()
        return
    if planned.is_empty:
        if journal is not None:
            journal.end()
            journal.close()
        reason = "the batch is complete" if options.resume else "no profile is missing"
        if as_json:
            EventData(session).write()
        else:
            session.say(f"nothing to run: {reason}")
        _send_rest(session, sender, None, as_json=as_json)
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
    kept = EventData(session) if as_json else None
    _, error = _run(session, planned, journal, options, place, sender, kept)
    _finish(session, sender, kept, error)


def _find_changes(
    session: Session,
    options: MatrixOptions,
    wanted: batch.BatchOptions,
    place: Place | None,
    sender: Sender | None,
    as_json: bool,
) -> None:
    """Measure one session of a search after the other, and print what was found."""
    repo = session.repository
    others = {
        "--on": place is not None, "--resume": options.resume, "--dry-run": options.dry_run,
        "--every": options.every > 1, "--rounds": options.rounds is not None, "--missing": options.missing,
        "--crawl-parents (-c)": wanted.crawl_parents,
    }  # fmt: skip
    if unfit := [name for name, given in others.items() if given]:
        raise UsageError(f"--find-changes does not go with {unfit[0]}", "leave one of them out")
    suites = suites_of(repo, wanted)
    search, jobs = batch.search(repo, wanted, suites)
    refuse_after_interruption(repo)
    kept = EventData(session) if as_json else None
    error: PerunError | None = None
    while versions := search.session():
        session.note(f"measuring {plural(len(versions), 'version')} of {search.total}")
        planned = batch.plan_of(repo, wanted, jobs, versions, rounds=True, suites=suites)
        if sender is not None:
            planned = replace(planned, register=True)
        rounds, failure = _run(session, planned, None, options, place, sender, kept)
        error = error or failure
        search.learn(rounds.known())
    (kept or EventPrinter(session, session.say, several=True)).changes(search)
    _finish(session, sender, kept, error)


def _finish(
    session: Session, sender: Sender | None, kept: EventData | None, error: PerunError | None
) -> None:
    """Write the answer, send the rest, and raise the error of the batch, if there is one."""
    if kept:
        kept.write()
    _send_rest(session, sender, error, as_json=kept is not None)
    if error is not None:
        raise error


def _run(
    session: Session,
    planned: batch.BatchPlan,
    journal: BatchJournal | None,
    options: MatrixOptions,
    place: Place | None,
    sender: Sender | None,
    kept: EventData | None,
) -> tuple[Rounds, PerunError | None]:
    """Run the batch and print it; what its session says, and the error of what failed."""
    tally = RunTally(planned.slots)
    forecast = Forecast(session.repository, planned.slots)

    def expected() -> float | None:
        if place is not None:
            return None  # the bar sees how quick the machines are together
        estimate = forecast.estimate(tally.remaining, rounds.shares)
        return None if estimate.unknown else estimate.seconds

    def show_results(*, ended: bool) -> None:
        if planned.spread or planned.suites is not None:
            known = rounds.reported() if planned.register else rounds.known()
            # Of benchmarks nothing is stored before the end.
            stored = (one for one in known if (ended if one.job.is_benchmark else planned.spread))
            printer.results(stored, registered=planned.register)

    versions = planned.versions if planned.spread else [slot.version for slot in planned.slots]
    rounds = batch.rounds_of_plan(session.repository, planned)
    if planned.beside is not None:
        session.note(
            f"measured beside {planned.beside.checksum[:10]}, the nearest version before that was measured; "
            "--alone leaves it out"
        )
    with session.progress(tally.total, "measuring") as bar:
        printer = kept or EventPrinter(
            session,
            bar.write,
            several=len(planned.slots) > 1 or len(planned.versions) > 1,
            history=not options.without_vcs_history and place is None,
            rounds=max((slot.round for slot in planned.slots), default=planned.suite_rounds),
            parents={} if options.without_vcs_history else parents_among(session.repository, versions),
            spread=planned.spread,
        )
        bar.expect(expected())
        events = _events(session, planned, journal, options, place, tally, rounds, bar)
        try:
            with contextlib.closing(events):  # restores the working directory of an interrupted run at once
                for event in events:
                    if not isinstance(event, MachineReport):
                        forecast.learn(event)
                        bar.expect(expected())
                    printer.show(event)
                    if sender is not None and isinstance(event, JobDone) and (why := sender.look()):
                        session.warn(f"nothing is pushed for now: {one_line(why)}")
        except (KeyboardInterrupt, SystemExit):
            show_results(ended=False)
            if kept:
                kept.write(interrupted=True)
            left = f"{tally.total - tally.complete - tally.visits} of {tally.total} jobs are left"
            goes_on = batch.interrupted(session.repository)  # not where the pool was not there yet
            session.note(
                f"\ninterrupted, {left}; run them with: perun run matrix{' --resume' * bool(goes_on)}"
            )
            raise
    show_results(ended=True)
    if not kept:
        _summarise(session, tally)
    if tally.incomplete:
        they = "profile is" if tally.incomplete == 1 else "profiles are"
        session.note(
            f"note: {tally.incomplete} {they} incomplete; measure again with: perun run matrix --resume"
        )
    return rounds, tally.error


def _send_rest(session: Session, sender: Sender | None, error: PerunError | None, *, as_json: bool) -> None:
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
    tell = session.note if as_json else session.say
    tell(what if sent.profiles else f"nothing new to push to {sender.url}")
    for refused in sent.refused:
        session.warn(one_line(refused))


def _events(
    session: Session,
    planned: batch.BatchPlan,
    journal: BatchJournal | None,
    options: MatrixOptions,
    place: Place | None,
    tally: RunTally,
    rounds: Rounds,
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
            rounds=rounds,
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


def _summarise(session: Session, tally: RunTally) -> None:
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

    def __init__(self, session: Session, planned: batch.BatchPlan, retry_broken: bool) -> None:
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
        if self._planned.suites is not None and not any(one.is_benchmark for one in self._planned.jobs):
            commands = ", ".join(sorted(command for _, command in self._planned.suites.commands))
            versions = plural(len(self._planned.versions), "version")
            session.say(f"the benchmarks of {commands} in {versions}, which are known when these are built")
        session.say(self._totals())

    def write_data(self) -> None:
        """Write it as JSON, schema `perun.plan/1`."""
        versions = [
            {
                "minor_version": slot.version.checksum,
                "round": slot.round or None,
                "skipped": self._why(slot.version.checksum) or None,
                "jobs": [
                    {**job_data(task.job), "seconds": self._forecast.seconds(task.job)} for task in slot.tasks
                ],
            }
            for slot in self._planned.slots
        ]
        write_json(self._session.out, {"schema": "perun.plan/1", "versions": versions})

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
