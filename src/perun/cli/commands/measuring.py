"""What `collect` and `run` share: the options of measuring, and the printing of its events."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from perun.cli.answers import data
from perun.cli.graph import CommitGraph, GraphRows
from perun.cli.options import VERSION, with_options_of
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.core.errors import PerunError, UsageError
from perun.core.wording import plural
from perun.measurement import present
from perun.measurement.verdict import severity
from perun.plugin.api import MinorVersion
from perun.plugin.params import param
from perun.profile.amounts import readable
from perun.repository.copies import Placement
from perun.repository.jobs import Job
from perun.running.run.collecting import ProfileNaming
from perun.running.run.events import (
    BatchNote,
    JobAnswered,
    JobDone,
    JobFailure,
    MachineReport,
    PoolEvent,
    RunTally,
    VersionSkipped,
    VersionStarted,
)
from perun.running.run.execute import run_jobs
from perun.running.run.finding import Search
from perun.running.run.rounds import SessionState
from perun.running.run.schedule import choose, plan_slots


@dataclass(frozen=True)
class VersionOptions:
    """Which versions are measured, and where; how the profiles are named."""

    template: str | None = param(
        None,
        long="--output-filename-template",
        short="-ot",
        metavar="TEMPLATE",
        help="Template for the names of the profiles, instead of format.output_profile_template.",
    )
    minor: tuple[str, ...] = param(
        (),
        long="--minor-version",
        short="-m",
        metavar=VERSION,
        help="Measure this version, HEAD by default; may be repeated.",
    )
    crawl_parents: bool = param(False, help="Measure all the ancestors of these versions too.")
    force_dirty: bool = param(
        False, short="-f", help="Measure the working directory as it is, uncommitted changes included."
    )
    in_place: bool = param(
        False, help="Check versions out in the working directory itself, and restore it afterwards."
    )
    in_a_copy: bool = param(False, help="Measure the current version too in a separate working copy.")

    @property
    def placement(self) -> Placement:
        """Where versions are measured.

        :raises UsageError: if the options contradict each other.
        """
        if self.in_a_copy and (self.force_dirty or self.in_place):
            other = "--force-dirty" if self.force_dirty else "--in-place"
            raise UsageError(f"--in-a-copy and {other} contradict each other", "give one of them")
        return Placement(self.force_dirty, self.in_place, self.in_a_copy)


SEED: Final = "Seed of the random numbers of workload generators, instead of the configured one (or 0)."


@dataclass(frozen=True)
class MatrixOptions:
    """What `run matrix` is asked for, beside the versions."""

    without_vcs_history: bool = param(
        False, short="-q", help="Do not draw the history: the line of each job names its version."
    )
    dry_run: bool = param(False, short="-n", help="Only list the jobs, and estimate how long they take.")
    every: int = param(
        1,
        minimum=1,
        metavar="N",
        help="Measure only every N-th ancestor, beginning with the newest.",
    )
    rounds: int | None = param(
        None,
        minimum=1,
        metavar="N",
        help="Run the whole matrix N times, the versions in another random order each time. By default the "
        "runs of each job are spread over rounds, which go on where neighbours are not settled.",
    )
    budget: float | None = param(
        None,
        minimum=0,
        metavar="SECONDS",
        help="Measure at most so long for each version; 0 for the runs of the jobs alone. By default "
        "execute.budget, 10 seconds.",
    )
    alone: bool = param(
        False,
        help="Measure a single version alone, and not beside the nearest one before it that was measured.",
    )
    no_share: bool = param(
        False,
        help="Measure each version, also where its program and input are those of the version before, or it "
        "executes no code that changed, so that it shares the measurement of that by default.",
    )
    find_changes: bool = param(
        False,
        help="Find the changes of a long history: measure a few of its versions, and more only between those "
        "that differ.",
    )
    missing: bool = param(False, help="Run only the jobs that have no stored profile.")
    resume: bool = param(
        False, help="Run the rest of the last interrupted matrix, or retry what failed in it."
    )
    retry_broken: bool = param(False, help="Also try versions that execute.pre_run is known to fail on.")
    quiet_env: bool = param(
        False,
        help="Do not print what makes times unreliable on this machine; perun doctor explains it.",
    )
    seed: int | None = param(None, metavar="N", help=SEED)
    suite: bool = param(
        False, help="Measure the named benchmarks of the project, in place of the commands of the matrix."
    )
    benchmark: tuple[str, ...] = param(
        (), metavar="PATTERN", help="Of a suite only the benchmarks of this shell pattern; may be repeated."
    )
    harness: str = param("", metavar="NAME", help="The harness of the suite, where there are several.")
    on: str | None = param(
        None,
        metavar="POOL",
        help="Measure on a pool of machines: local:N, dask://HOST:PORT, dask+tls://HOST:PORT or ssh:FILE.",
    )
    push: str | None = param(
        None,
        metavar="[REMOTE]",
        help="Register what is measured, and push it to a remote while the batch goes on; REMOTE may be left "
        "out where there is one only.",
    )


def with_version_options(crawl_short: str) -> Callable[[Any], Any]:
    """Give a command the options of :class:`VersionOptions`, as its keyword `where`.

    :param crawl_short: the short option for all ancestors, which is another one if `-c` is taken.
    """
    return with_options_of(
        VersionOptions,
        "where",
        crawl_parents={"short": crawl_short},
    )


def measure(
    session: Session,
    jobs: Sequence[Job],
    where: VersionOptions,
    name: str | None = None,
    *,
    as_json: bool = False,
) -> None:
    """Run the jobs on the versions and print each event, or in the end all of them as JSON; raise then if
    something failed."""
    place = where.placement
    versions = choose(session.repository, where.minor, where.crawl_parents)
    slots = plan_slots(jobs, versions)
    tally = RunTally(slots)
    single = tally.total == 1  # the command ends with the error of its only job, which is not printed before
    with session.progress(tally.total, "measuring") as bar:
        kept = EventData(session) if as_json else None
        printer = kept or EventPrinter(session, bar.write, several=len(versions) > 1)
        events = run_jobs(
            session.repository,
            slots,
            placement=place,
            naming=ProfileNaming(name, where.template),
            tally=tally,
            report=bar.update,
            report_inside=bar.inside,
        )
        try:
            with contextlib.closing(events):  # restores the working directory of an interrupted run at once
                for event in events:
                    if kept or not (single and isinstance(event, (JobFailure, VersionSkipped))):
                        printer.show(event)
        except (KeyboardInterrupt, SystemExit):
            if kept:
                kept.write(interrupted=True)
            _tell_interrupted(session, tally)
            raise
    if kept:
        kept.write()
    if tally.error is not None:
        raise tally.failures[0].error if single else tally.error


def _tell_interrupted(session: Session, tally: RunTally) -> None:
    """Say what is stored; an incomplete profile of the last job has said so itself."""
    if tally.total > 1:
        done = tally.complete + tally.incomplete
        have = f"{done} of {tally.total} jobs {'has' if done == 1 else 'have'} a profile"
        session.note(f"\ninterrupted: {have}; nothing is stored of the rest")
    elif not tally.incomplete:
        session.note("\ninterrupted: nothing is stored")


class EventData:
    """Keeps the events of a run, and writes them as JSON, schema `perun.run/1`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._profiles: list[dict[str, Any]] = []
        self._failures: list[dict[str, Any]] = []
        self._answers: list[Mapping[str, Any]] = []
        self._results: list[dict[str, Any]] = []
        self._changes: list[dict[str, Any]] | None = None
        self._undecided: int | None = None

    def changes(self, found: Search) -> None:
        """Keep what a search has found."""
        self._undecided = found.undecided
        self._changes = [
            {
                "since": one.since.checksum,
                "minor_version": one.version.checksum,
                **job_data(one.job),
                "between": one.between,
                **data.judged_data(one.judged),
            }
            for one in found.found()
        ]

    def results(self, session: Iterable[SessionState], *, registered: bool) -> None:
        """Keep what the session says of each version and job."""
        self._results += [
            {
                "minor_version": one.version.checksum,
                **job_data(one.job),
                "rounds": one.rounds,
                "registered": registered,
                **data.judged_data(one.judged),
            }
            for one in session
        ]

    def show(self, event: PoolEvent) -> None:
        """Keep the event."""
        if isinstance(event, JobDone):
            self._profiles.append(
                {
                    "name": event.name,
                    "minor_version": event.version.checksum,
                    **job_data(event.job),
                    "registered": event.registered,
                    "incomplete": event.incomplete or None,
                    "seconds": event.seconds,
                    "machine": event.machine or None,
                    **data.judged_data(event.judged),
                    "notes": list(event.notes),
                    "shares": event.shares
                    and {"minor_version": event.shares.version, "reason": event.shares.reason},
                }
            )
        elif isinstance(event, (JobFailure, VersionSkipped)):
            self._failures.append(
                {
                    "minor_version": event.version.checksum,
                    **job_data(event.job if isinstance(event, JobFailure) else None),
                    "message": event.error.message,
                    "hint": event.error.hint or None,
                }
            )
        elif isinstance(event, JobAnswered):
            self._answers.append(event.data)
        elif isinstance(event, MachineReport):
            tell = self._session.warn if event.serious else self._session.note
            tell(f"{one_line(event.machine)}: {one_line(event.text)}")
        elif isinstance(event, BatchNote):
            self._session.note(f"note: {one_line(event.text)}")

    def write(self, *, interrupted: bool = False) -> None:
        """Write what was kept."""
        data.write_json(
            self._session.out,
            {
                "schema": "perun.run/1",
                "interrupted": interrupted,
                "profiles": self._profiles,
                "results": self._results,
                "changes": self._changes,
                "undecided": self._undecided,
                "failures": self._failures,
                "answers": self._answers,
            },
        )


def job_data(job: Job | None) -> dict[str, Any]:
    """What is run, by the names of `perun.status/2`; null where a whole version was skipped."""
    return {
        "cmd": job and job.cmd,
        "args": job and job.args,
        "workload": job and job.workload,
        "collector": job and job.collector.name,
        "postprocessors": job and [one.name for one in job.postprocessors],
    }


class EventPrinter:
    """Prints the events of a run: a line for each version if there are several, one for each job below it.

    :param write: prints a line.
    :param several: whether there are several versions, or rounds.
    :param history: print a line for each version; otherwise the line of each job names its version.
    :param rounds: the number of rounds.
    :param parents: where the versions are drawn as a history, children first: the parents of each.
    :param spread: print what a session says in the end, and of each of its visits only what is odd.
    """

    def __init__(
        self,
        session: Session,
        write: Callable[[str], None],
        *,
        several: bool,
        history: bool = True,
        rounds: int = 1,
        parents: Mapping[str, Sequence[str]] = MappingProxyType({}),
        spread: bool = False,
    ) -> None:
        self._spread = spread
        self._parents = parents
        self._graph = CommitGraph(paint=session.paint)
        self._rows = GraphRows("* ", "  ", ())
        self._session = session
        self._write = write
        self._history = history and several
        self._headings = self._history and not spread
        self._named = several and not self._headings
        self._rounds = rounds
        self._hints: set[str] = set()
        self._notes: set[str] = set()
        self._built: set[str] = set()

    def show(self, event: PoolEvent) -> None:
        """Print the event."""
        if isinstance(event, (VersionStarted, VersionSkipped)):
            self._version(event)
            if isinstance(event, VersionStarted) and event.seconds:
                self._phases({"prepare": event.seconds})
                if self._spread and event.version.checksum in self._built:
                    self._note(
                        "versions are built again in later rounds, as their builds take more room than "
                        "execute.build_cache; set it to more MiB with: perun config set execute.build_cache"
                    )
                self._built.add(event.version.checksum)
        elif isinstance(event, JobAnswered):
            self._write(event.text)
        elif isinstance(event, JobDone):
            word = "registered" if event.registered else "stored"
            if event.job.is_benchmark or (self._spread and not self._session.verbosity):
                self._odd(event)  # the result of the session comes at the end
                return
            where = f" {event.version.checksum[:10]} on {one_line(event.machine)}" if event.machine else ""
            took = f"(measured{where} in {readable(event.seconds, 's')})"
            if event.shares is not None:
                took = f"(what {event.shares.version[:10]} has measured)"
            self._line(f"{word} {self._session.paint(event.name, 'bold')} {took}")
            self._odd(event)
            self._phases(event.phases)
            if event.judged is not None and not self._spread:
                self._line("  " + data.line(self._session, event.judged))
        elif isinstance(event, MachineReport):
            tell = self._session.warn if event.serious else self._session.note
            tell(f"{one_line(event.machine)}: {one_line(event.text)}")
        elif isinstance(event, JobFailure):
            self._failure("failed", f"{self._name(event.version)}{event.job}", event.error)
        elif isinstance(event, BatchNote):
            self._session.note(f"note: {one_line(event.text)}")
        else:
            self._session.warn(
                f"measuring {event.version.checksum[:10]} changed tracked files; "
                "git stash keeps these changes, list them with: git stash list"
            )

    def results(self, session: Iterable[SessionState], *, registered: bool) -> None:
        """Print what the session says of each version and job."""
        self._headings, self._named = self._history, not self._history
        word = "registered" if registered else "stored"
        for version, known in itertools.groupby(session, lambda one: one.version):
            self._heading(version)
            of_suites: dict[str, list[SessionState]] = {}
            for one in known:
                if one.job.is_benchmark:
                    of_suites.setdefault(one.job.cmd, []).append(one)
                    continue
                what = f"{self._name(version)}{one_line(str(one.job))}"
                self._line(f"{word} {plural(one.rounds, 'profile')}: {what}")
                if one.judged is not None:
                    self._line("  " + data.line(self._session, one.judged))
            for command, own in of_suites.items():
                self._suite(f"{word} {plural(len(own), 'benchmark')}: {self._name(version)}{command}", own)

    def _suite(self, what: str, known: Sequence[SessionState]) -> None:
        """Print how many benchmarks of a suite say what, and those that have changed; with -v all."""
        rounds = sorted({one.rounds for one in known})
        words = Counter(
            "nothing before" if one.judged is None or one.judged.verdict is None
            else present.name(one.judged.verdict.change)
            for one in known
        )  # fmt: skip
        counts = ", ".join(f"{count} {name}" for name, count in words.most_common())
        self._line(f"{what}, {' to '.join(map(str, {rounds[0]: 0, rounds[-1]: 0}))} rounds: {counts}")
        for one in known:
            verdict = one.judged and one.judged.verdict
            if one.judged and (self._session.verbosity or (verdict and severity(verdict.change))):
                name = f"{one.job.args} {one.job.workload}".rstrip()
                line = data.line(self._session, one.judged)
                self._line("  " + (line if one.judged.value.metric == name else f"{one_line(name)}: {line}"))

    def changes(self, found: Search) -> None:
        """Print what a search has found."""
        changes = found.found()
        what = plural(len(changes), "change") if changes else "no change"
        self._write(f"{what} found by measuring {plural(found.measured, 'version')} of {found.total}")
        if found.undecided:
            pairs = plural(found.undecided, "pair")
            self._write(f"undecided: {pairs} of neighbours; more time may find more: --budget SECONDS")
        for one in changes:
            checksum = self._session.paint(one.version.checksum[:10], "yellow")
            self._write(f"{checksum} {one_line(one.version.subject)}")
            self._write(f"  {one_line(str(one.job))}: {data.line(self._session, one.judged)}")
            if one.between:
                they = f"{plural(one.between, 'version')} before it cannot be measured"
                self._write(f"  {they}: the change may be in any of them")

    def _heading(self, version: MinorVersion, which: str = "") -> None:
        if self._headings:
            checksum = self._session.paint(version.checksum[:10], "yellow")
            self._write(f"{self._drawn(version)}{checksum} {one_line(version.subject)}{which}")

    def _odd(self, event: JobDone) -> None:
        if event.incomplete:
            self._line(f"{self._session.paint('incomplete:', 'yellow')} {one_line(event.incomplete)}")
        for note in event.notes:
            self._note(note)

    def _version(self, event: VersionStarted | VersionSkipped) -> None:
        self._heading(event.version, f" (round {event.round} of {self._rounds})" if event.round else "")
        if isinstance(event, VersionSkipped):
            self._failure("skipped", "" if self._headings else event.version.checksum[:10], event.error)
        elif event.omits_changes:
            self._session.warn("uncommitted changes are not measured; --force-dirty (-f) measures them too")

    def _phases(self, phases: Mapping[str, float]) -> None:
        """Print how long the phases took if the user wants details, and record it for `--metrics`."""
        if self._session.metrics is not None:
            self._session.metrics.add(phases)
        if self._session.verbosity:
            self._line(", ".join(f"{name} {readable(seconds, 's')}" for name, seconds in phases.items()))

    def _drawn(self, version: MinorVersion) -> str:
        """What stands before the line of the version; what leads to it from those before is printed."""
        parents = self._parents.get(version.checksum)
        if parents is not None:
            for link in self._rows.links:
                self._write(link)
            self._rows = self._graph.commit(version.checksum, parents)
        return self._rows.commit

    def _note(self, note: str) -> None:
        if note not in self._notes:  # the same job on many versions repeats its notes
            self._line(f"{self._session.paint('note:', 'dim')} {one_line(note)}")
        self._notes.add(note)

    def _failure(self, word: str, what: str, error: PerunError) -> None:
        if text := self._session.traceback(error):
            self._line(text)
        self._line(f"{self._session.paint(word, 'red')}{' ' * bool(what)}{what}: {error.message}")
        if error.hint and error.hint not in self._hints:
            self._line(f"hint: {error.hint}")
        self._hints.add(error.hint)
        for note in getattr(error, "__notes__", ()):
            self._line(f"note: {note}")

    def _name(self, version: MinorVersion) -> str:
        return f"{version.checksum[:10]} " if self._named else ""

    def _line(self, text: str) -> None:
        indent = self._rows.text if self._headings else ""
        self._write("\n".join(indent + line for line in text.splitlines()))
