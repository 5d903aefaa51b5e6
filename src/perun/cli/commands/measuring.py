"""What `collect` and `run` share: the options for versions, and the telling of what happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click

from perun.cli.commands.completing import complete_minor
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.porcelain.jobs import Job
from perun.porcelain.run import (
    Event,
    JobBroke,
    JobDone,
    Naming,
    VersionSkipped,
    VersionStarted,
    failure_of,
    run_jobs,
)
from perun.porcelain.versions import Placement, chosen


def version_options(crawl_short: str) -> Callable[[Any], Any]:
    """The options that say which versions are measured, and where."""
    options = [
        click.option("--output-filename-template", "-ot", "template", metavar="TEMPLATE", help="Template for the names of the profiles, instead of format.output_profile_template."),
        click.option("--minor-version", "-m", "minor", multiple=True, metavar="HASH", shell_complete=complete_minor, help="Measure this version, HEAD by default; may be repeated."),
        click.option("--crawl-parents", crawl_short, "crawl_parents", is_flag=True, help="Measure all the ancestors of these versions too."),
        click.option("--force-dirty", "-f", is_flag=True, help="Measure the current version in the working directory although there are uncommitted changes."),
        click.option("--in-place", is_flag=True, help="Check versions out in the working directory itself, and give it back afterwards."),
    ]

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def measure(
    session: Session,
    jobs: Sequence[Job],
    *,
    minor: Sequence[str],
    crawl_parents: bool,
    force_dirty: bool,
    in_place: bool,
    template: str | None,
    name: str | None = None,
    history: bool = True,
) -> None:
    """Run the jobs on the versions, telling each step; raise at the end where something failed.

    :param history: also name each version before its jobs.
    """
    repo = session.repository
    versions = chosen(repo, minor, crawl_parents)
    events: list[Event] = []
    with session.progress(len(jobs) * len(versions), "measuring") as bar:
        stream = run_jobs(
            repo,
            jobs,
            versions,
            placement=Placement(force_dirty, in_place),
            naming=Naming(name, template),
            report=bar.update,
            report_inside=bar.inside,
        )
        for event in _closing(stream):
            events.append(event)
            _tell(session, event, bar.write, history and len(versions) > 1)
    failure = failure_of(events)
    if failure is not None:
        if len(events) > 2 or len(jobs) * len(versions) > 1:
            raise failure
        raise _only_error(events)


def _closing(stream: Iterator[Event]) -> Iterator[Event]:
    # An interrupted run must give the working directory back now, not when the generator is collected.
    try:
        yield from stream
    finally:
        close = getattr(stream, "close", None)
        if close is not None:
            close()


def _only_error(events: Sequence[Event]) -> Exception:
    return next(event.error for event in events if isinstance(event, (JobBroke, VersionSkipped)))


def _tell(session: Session, event: Event, write: Callable[[str], None], many: bool) -> None:
    if isinstance(event, VersionStarted):
        if many:
            checksum = session.paint(event.version.checksum[:10], "yellow")
            write(f"* {checksum} {one_line(event.version.subject)}")
    elif isinstance(event, VersionSkipped):
        checksum = session.paint(event.version.checksum[:10], "yellow")
        if many:
            write(f"* {checksum} {one_line(event.version.subject)}")
            write(session.paint("  skipped: ", "red") + event.error.message)
    elif isinstance(event, JobDone):
        word = "registered" if event.registered else "stored"
        write(f"{'  ' * many}{word} {session.paint(event.name, 'bold')} ({event.seconds:.2f} s)")
    elif many:
        write(f"  {session.paint('failed:', 'red')} {event.job}: {event.error.message}")
        if event.error.hint:
            write(f"  hint: {event.error.hint}")
