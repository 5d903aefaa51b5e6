"""`perun compare`: measure two versions side by side, and say what changed, with how much certainty."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from perun.errors import PerunError, Terminated
from perun.plugin.api import MinorVersion, Report, Run, silent
from perun.porcelain.check.report import Comparison, VersionReport
from perun.porcelain.compare import report as answers
from perun.porcelain.compare.decide import Decision, disagreements
from perun.porcelain.compare.identical import why_identical
from perun.porcelain.compare.instruments import Clocks, Collected, Instrument
from perun.porcelain.compare.metrics import Wanted, wanted
from perun.porcelain.compare.options import SECONDS, CompareOptions
from perun.porcelain.compare.pairs import LEAST, PairRunner, usable_cores
from perun.porcelain.compare.plan import Case, Plan
from perun.porcelain.compare.sides import Folders, prepared
from perun.porcelain.compare.storing import Stored, profiles_of, store
from perun.porcelain.compare.trial import Trial, run
from perun.porcelain.compare.watching import opens_any
from perun.porcelain.repository import Repository
from perun.porcelain.run.checkouts import scratch_folder
from perun.porcelain.run.collecting import describe_machine
from perun.porcelain.run.pre_run import environment
from perun.profile.amounts import factor

if TYPE_CHECKING:
    from perun.profile.factory import Profile


def unlimited(seconds: float | None) -> None:
    """A forecast that nobody looks at."""


@dataclass(frozen=True)
class Outcome:
    """The answer; `interruption` is the exception that ended the comparison before its end."""

    report: VersionReport
    interruption: BaseException | None = None


class _Tried(NamedTuple):
    """A trial of one configuration, and what else there is to say of it; it is judged when all are there."""

    case: Case
    trial: Trial
    stored: Stored | None
    about: Mapping[str, Any]
    notes: tuple[str, ...]


class _Watched(NamedTuple):
    """Who gets the progress: what is done, and the seconds that are left."""

    report: Report
    expect: Callable[[float | None], None]


def compare(
    repo: Repository,
    planned: Plan,
    options: CompareOptions,
    report: Report = silent,
    expect: Callable[[float | None], None] = unlimited,
    dice: random.Random | None = None,
) -> Outcome:
    """Measure each configuration of both sides in pairs, store what was measured, and judge it.

    A configuration whose command fails is a comparison with an error, and the others go on. An interruption
    (Ctrl-C) ends it: what was measured by then is judged as unknown, and not stored.

    :param report: gets what is done, steps done and in all. :param expect: gets the seconds that are left.
    :param dice: decides the order of runs; another one each time by default.
    :raises PerunError: where a side cannot be prepared, or a metric is unknown; nothing is stored then.
    """
    repo.require_trust("comparing versions")
    jobs = [(case, wanted(repo, options.metrics, case)) for case in planned.cases]
    found: list[Comparison | _Tried] = []
    session = _Session(repo, planned, options, _Watched(report, expect), dice or random.Random())
    try:
        with prepared(repo, planned.sides, options.builds, report) as folders:
            for number, (case, metrics) in enumerate(jobs):
                shares = len(jobs) - number
                for one in session.compare(case, metrics, folders, shares):
                    found.append(one)
                if session.interruption is not None:
                    break
    except (KeyboardInterrupt, Terminated) as interruption:
        session.interruption = session.interruption or interruption
    comparisons = list(_judged(planned, found, options))
    return Outcome(answers.report(repo, planned, comparisons), session.interruption)


def _judged(
    planned: Plan, found: Sequence[Comparison | _Tried], options: CompareOptions
) -> Iterator[Comparison]:
    """The comparisons."""
    decided: dict[tuple[str, str, str], list[Decision]] = {}
    for one in found:
        if isinstance(one, Comparison):
            yield one
            continue
        job = one.case.job
        of_case = decided.setdefault((job.cmd, job.args, job.workload), [])
        before = set(disagreements(of_case))
        of_case += one.trial.decisions
        comparison = answers.measured(planned, one.case, one.trial, one.stored, one.about)
        # Those of two clocks of this instrument are among the notes already.
        meanings = set(disagreements(of_case)) - before - set(comparison.notes)
        yield replace(comparison, notes=(*comparison.notes, *sorted(meanings), *one.notes))


class _Session:
    """Everything that is measured in the same minutes.

    :ivar interruption: the exception that ended a trial before its end.
    """

    def __init__(
        self,
        repo: Repository,
        planned: Plan,
        options: CompareOptions,
        watched: _Watched,
        dice: random.Random,
    ) -> None:
        self.id = uuid.uuid4().hex
        self.interruption: BaseException | None = None
        self._repo = repo
        self._plan = planned
        self._options = options
        self._watched = watched
        self._dice = dice
        self._left = SECONDS * len(planned.cases) if options.budget is None else options.budget

    def compare(
        self, case: Case, metrics: Wanted, folders: Folders, shares: int
    ) -> Iterator[Comparison | _Tried]:
        """The trials of one configuration: of the clocks together, and of each other metric.

        :param shares: configurations that share the time that is left, this one included.
        """
        base, head = (folders[side.name] for side in self._plan.sides)
        why = "" if self._options.always else self._why_identical(case, base[0], head[0], shares)
        if why:
            yield answers.identical(self._plan, case, f"{why}; measure them nevertheless with --always")
            return
        notes = [
            f"all builds of the {name} are the same program, so that --builds {len(builds)} measures no more"
            for name, builds in folders.items()
            if len(builds) > 1
            and all(self._why_identical(case, builds[0], other, shares) for other in builds[1:])
        ]
        with scratch_folder(self._repo) as scratch:
            instruments = list(self._instruments(case, metrics, folders, scratch))
            for number, instrument in enumerate(instruments):
                seconds = self._left / shares / (len(instruments) - number)
                yield self._tried(case, instrument, folders, seconds, tuple(notes))
                if self.interruption is not None:
                    return

    def _why_identical(self, case: Case, first: Path, second: Path, shares: int) -> str:
        run_of = Run(case.job.cmd, case.job.args, case.workload, environ=environment(self._repo))

        def opens(run: Run, names: Collection[str]) -> bool | None:
            begun = time.monotonic()
            self._watched.report(f"{case.job}: looking what it reads", 0, self._options.most_pairs)
            with scratch_folder(self._repo) as scratch:
                found = opens_any(run, names, scratch, max(self._left / shares, LEAST))
            self._left -= time.monotonic() - begun
            return found

        return why_identical(run_of._replace(cwd=first), run_of._replace(cwd=second), opens)

    def _instruments(
        self, case: Case, metrics: Wanted, folders: Folders, scratch: Path
    ) -> Iterator[Instrument]:
        versions = {folder: side.version for side in self._plan.sides for folder in folders[side.name]}

        def version_of(folder: Path) -> MinorVersion:
            return versions[folder]

        if metrics.free:
            yield Clocks(self._repo, case, metrics.free, scratch, self._dice)
        for recorded in metrics.recorded:
            yield Collected(self._repo, case, recorded, version_of)

    def _tried(
        self, case: Case, instrument: Instrument, folders: Folders, seconds: float, notes: tuple[str, ...]
    ) -> Comparison | _Tried:
        """What one instrument finds, stored; or that a command fails."""
        options, planned = self._options, self._plan
        machine_state = describe_machine(self._repo)  # the load it finds, not the one it makes
        cores = usable_cores(options.pin)
        runner = PairRunner(instrument, planned, folders, options.order, cores, self._dice)

        def progress(decisions: Sequence[Decision], pairs: int, most: int, left: float) -> None:
            self._watched.report(f"{case.job}{_so_far(decisions)}", pairs, most)
            self._watched.expect(left)

        self._watched.report(f"{case.job}: warming up", 0, options.most_pairs)
        try:
            trial = run(instrument.name, runner, options.rules, options.most_pairs, seconds, progress)
        except PerunError as problem:
            return answers.unmeasured(planned, case, problem.message, problem)
        self._left -= trial.seconds
        self.interruption = trial.interruption
        about = answers.about(self.id, planned, trial, options)
        stored = None
        if trial.pairs and trial.interruption is None:
            now = int(time.time())
            stored = self._store(case, trial, about, machine_state, now)
        return _Tried(case, trial, stored, about, notes)

    def _store(
        self,
        case: Case,
        trial: Trial,
        about: Mapping[str, Any],
        machine_state: Mapping[str, Any],
        newest: int,
    ) -> Stored:
        made: dict[str, list[Profile]] = {
            side.name: profiles_of(self._repo, case, trial, side, machine_state) for side in self._plan.sides
        }
        return store(self._repo, self._plan.sides, made, about, newest)


def _so_far(decisions: Sequence[Decision]) -> str:
    """The intervals of the metrics so far: `: real 1.02x [0.99, 1.05], cpu 1x [0.99, 1.01]`."""
    shown: list[str] = []
    for one in decisions:
        found = one.verdict.difference
        name = one.metric.subtype or one.metric.type
        shown.append(f"{name} {factor(found.ratio, (found.low, found.high))}")
    return f": {', '.join(shown)}" if shown else ""
