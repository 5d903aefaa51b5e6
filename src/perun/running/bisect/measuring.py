"""Measuring versions: one alone, where counts repeat, or two of them in pairs of runs.

All that is measured is stored as `perun compare` stores it, and then written to the journal.
"""

from __future__ import annotations

import math
import random
import re
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.core.errors import JobFailed
from perun.measurement.difference import Basis, Rules, of_counts
from perun.measurement.series import Metric
from perun.measurement.verdict import judge
from perun.models.growth.comparison import APART
from perun.plugin.api import MinorVersion
from perun.profile.changes import PerformanceChange
from perun.repository import registering
from perun.repository.bisections import BisectionJournal
from perun.repository.copies import scratch_folder
from perun.repository.repository import Repository
from perun.running.bisect.data import PER_DOUBLING, SECONDS, BisectRequest, CostRatio
from perun.running.bisect.quantity import (
    GROWTH,
    CallsOrder,
    NoSuchLocation,
    Quantity,
    SingleNumber,
    WorkloadsOrder,
)
from perun.running.compare import compare as answers
from perun.running.compare.decide import BASE, PairRunner, usable_cores
from perun.running.compare.instruments import BudgetSpent, Clocks, CollectorInstrument, Instrument, Reading
from perun.running.compare.plan import CompareOptions, ComparePlan, CompareSide
from perun.running.compare.trial import Trial, profiles_of, run, store
from perun.running.run.builds import Builds
from perun.running.run.collecting import describe_machine

if TYPE_CHECKING:
    from perun.profile.factory import Profile

COUNTING: Final = frozenset({"instructions", "memory"})
"""Collectors whose numbers repeat from run to run."""
Tell = Callable[[str], None]
"""Gets what is done at the moment."""


class SkippedVersion(Exception):
    """A version that cannot be built or run; the text says why. :ivar hint: what to do next, where known."""

    def __init__(self, why: str, hint: str = "") -> None:
        super().__init__(why)
        self.hint = hint


class PairComparison(NamedTuple):
    """What the pairs of two versions say.

    :param change: the label of the second one. :param exact: whether all runs of a version gave the same.
    :param rule: why it is that label.
    """

    ratio: CostRatio
    change: PerformanceChange
    exact: bool
    rule: str
    larger_is_better: bool
    kind: str


class BuiltCopies:
    """Versions that are checked out and built; use :func:`copies`."""

    def __init__(self, builds: Builds, tell: Tell) -> None:
        self._builds = builds
        self._tell = tell
        self._versions: dict[Path, str] = {}
        self._copied: dict[str, Path] = {}

    def folder(self, version: MinorVersion) -> Path:
        """The folder of the version, which is built now where it is not yet; it stays until two others are
        asked for.

        :raises PerunError: where it cannot be checked out or built.
        """
        self._tell(f"preparing {version.checksum[:7]}")
        folder = self._builds.enter(version.checksum).folder
        self._versions[folder] = version.checksum
        return folder

    def copied(self, version: MinorVersion) -> Path:
        """The folder of a copy of the version, which stays as long as the versions do.

        :raises PerunError: as :meth:`folder`.
        """
        found = self._copied.get(version.checksum)
        if found is None:
            found = self._copied[version.checksum] = self._builds.copied(self.folder(version))
        return found

    def version_of(self, folder: Path) -> str:
        """The checksum of the version in that folder."""
        return self._versions[folder]


@contextmanager
def copies(repo: Repository, tell: Tell) -> Iterator[BuiltCopies]:
    """Versions that are built; those that a killed process has not finished are removed first."""
    with Builds(repo, separate=True) as builds:
        yield BuiltCopies(builds, tell)


class BisectMeasurement:
    """Measures versions, each step once: what the journal knows is not measured again.

    :ivar spent: seconds of measuring in this process. :ivar rules: where the words begin.
    """

    def __init__(
        self,
        repo: Repository,
        asked: BisectRequest,
        wanted: Quantity,
        built_in: BuiltCopies,
        journal: BisectionJournal,
        tell: Tell,
        rng: random.Random,
    ) -> None:
        self.spent = 0.0
        self.rules = Rules.of(repo.config.section("degradation"))
        self._repo = repo
        self._asked = asked
        self._wanted = wanted
        self._copies = built_in
        self._journal = journal
        self._tell = tell
        self._rng = rng
        known = journal.known("metric")
        self._metric = None if known is None else Metric(*known)

    @property
    def what(self) -> str:
        """What is measured, as `instructions of sort of ./app big.txt`."""
        return str(self._wanted)

    @property
    def is_growth(self) -> bool:
        """Whether an order of growth is measured."""
        return self._wanted.is_growth

    @property
    def is_counted(self) -> bool:
        """Whether one run of a version is known to be enough, before any two were compared."""
        recorded = self._wanted.recorded
        names = {unit.name for unit in recorded.units} if recorded is not None else set()
        return bool(self._wanted.sizes) or (not self.is_growth and bool(names) and names <= COUNTING)

    def compared(self, old: float, new: float) -> PairComparison:
        """What two counted numbers say, or two counted orders of growth."""
        share = quotient(old, new)
        if not self.is_growth:
            unit, larger, kind = self._journal.known("counted") or ("", False, "")
            verdict = judge(of_counts((old, new), (1, 1)), self.rules, larger_is_better=larger)
            ratio = CostRatio(share, share, share, (old, new), unit)
            return PairComparison(ratio, verdict.change, True, verdict.reason, larger, kind)
        change = judge(of_counts((old, new), (1, 1))).change
        if abs(math.log2(share)) < APART:
            change = PerformanceChange.NoChange
        ratio = CostRatio(share, share, share, (old, new), PER_DOUBLING)
        rule = f"the exponents differ by {abs(math.log2(share)):.2g}"
        return PairComparison(ratio, change, True, rule, False, GROWTH)

    def left(self, steps: int) -> float:
        """The seconds for the next step, where about so many follow; 0 where the budget is spent."""
        if self._asked.budget is None:
            return SECONDS
        return max(self._asked.budget - self.spent, 0.0) / (steps + 1)

    def learn(self, versions: Sequence[MinorVersion]) -> None:
        """Find out what is recorded of the location, by the first of the versions that has it: those that do
        not have it count nothing there, as a function that leaks nothing.

        :raises PerunError: where none of them has it, or one cannot be built or run.
        """
        if not self._wanted.location or self._metric is not None or self._wanted.is_growth:
            return
        for version in versions:
            with self._instrument() as instrument:
                try:
                    reading = instrument.measure(self._copies.folder(version), 0.0, None)
                except NoSuchLocation:
                    if version is versions[-1]:
                        raise
                    continue
                except JobFailed as problem:
                    raise SkippedVersion(f"{version.checksum}: {problem.message}", problem.hint) from None
            (self._metric,) = reading.values
            self._journal.keep(list(self._metric), "metric")
            if self.is_counted:
                self._keep(version, *self._taken(reading))
            return

    def alone(self, version: MinorVersion) -> float:
        """The number that one run of the version gives.

        :raises SkippedVersion: where it cannot be built or run.
        """
        known = self._known("value", version)
        if known is not None:
            return float(known)
        with self._attempt(version):
            value, made = self._once(version)
        self._keep(version, value, made)
        return value

    def _keep(self, version: MinorVersion, value: float, made: Sequence[Profile]) -> None:
        wanted = [registering.SaveRequest(profile, version.checksum, registers=True) for profile in made]
        if wanted:
            registering.save_together(self._repo, wanted)
        self._journal.keep(value, "value", version.checksum)

    def _once(self, version: MinorVersion) -> tuple[float, list[Profile]]:
        """The number of one run, and what there is to be stored of it.

        :raises PerunError: where the version cannot be built or run.
        """
        with self._instrument() as instrument:
            folder = self._copies.folder(version)
            self._tell(f"measuring {version.checksum[:7]}")
            reading = instrument.measure(folder, 0.0, None)
        return self._taken(reading)

    def _taken(self, reading: Reading) -> tuple[float, list[Profile]]:
        """The number of a run, and what there is to be stored of it; what the number is of is kept."""
        ((metric, value),) = reading.values.items()
        if self.is_counted and not self.is_growth and self._journal.known("counted") is None:
            self._journal.keep([metric.unit, metric.larger_is_better, metric.type], "counted")
        return value, [reading.profile] if reading.profile is not None else []

    def pairs(
        self, base: MinorVersion, head: MinorVersion, rules: Rules, seconds: float, why: str
    ) -> PairComparison:
        """What pairs of runs say, with the sequential test of `perun compare`.

        :param why: names the step beside the two versions: `ends`, `like` or `confirm`.
        :raises SkippedVersion: where `head` cannot be built or run. :raises PerunError: where `base` cannot.
        :raises BudgetSpent: where there are no seconds left.
        """
        key = (why, base.checksum, head.checksum)
        known = self._journal.known(*key)
        if known is None:
            self._known("value", head)
            if seconds <= 0:
                raise BudgetSpent
            known = self._measured(base, head, rules, seconds)
            if known["settled"]:  # else more time may decide
                self._journal.keep(known, *key)
        return _compared(known)

    def check_known(self, version: MinorVersion) -> None:
        """:raises BudgetSpent: where the version would have to be measured."""
        if self._known("value", version) is None:
            raise BudgetSpent

    def _known(self, step: str, version: MinorVersion) -> Any:
        why = self._journal.known("skipped", version.checksum)
        if why is not None:
            raise SkippedVersion(why)
        return self._journal.known(step, version.checksum)

    @contextmanager
    def _attempt(self, version: MinorVersion) -> Iterator[None]:
        """Where the version cannot be built or run, that is kept and it is skipped."""
        begun = time.monotonic()
        try:
            yield
        except (JobFailed, NoSuchLocation) as problem:
            self._journal.keep(problem.message, "skipped", version.checksum)
            raise SkippedVersion(problem.message, problem.hint) from problem
        finally:
            self.spent += time.monotonic() - begun

    def _measured(
        self, base: MinorVersion, head: MinorVersion, rules: Rules, seconds: float
    ) -> dict[str, Any]:
        old = self._copies.folder(base)
        options = CompareOptions(base.checksum, head.checksum, most_pairs=self._asked.most_pairs)
        case = self._wanted.case
        planned = ComparePlan(CompareSide("base", base), CompareSide("head", head), (case,))
        with self._attempt(head), self._instrument() as instrument:
            folders = {"base": [old], "head": [self._copies.folder(head)]}
            machine_state = describe_machine(self._repo)
            cores = usable_cores(self._asked.pin)
            runner = PairRunner(instrument, planned, folders, options.order, cores, self._rng)
            self._tell(f"measuring {head.checksum[:7]} beside {base.checksum[:7]}")
            trial = run(instrument.name, runner, rules, self._asked.most_pairs, seconds, lambda *_: None)
        if trial.interruption is not None:
            raise trial.interruption
        if not trial.pairs:
            raise BudgetSpent
        made: dict[str, list[Profile]] = {
            side.name: profiles_of(self._repo, case, trial, side, machine_state) for side in planned.sides
        }
        about = answers.about_trial(uuid.uuid4().hex, planned, trial, options)
        store(self._repo, planned.sides, made, about, int(time.time()))
        return as_data(trial)

    @contextmanager
    def _instrument(self) -> Iterator[Instrument]:
        wanted = self._wanted
        if wanted.recorded is not None:
            collected = CollectorInstrument(self._repo, wanted.case, wanted.recorded, self._version_of)
            if wanted.sizes:
                yield WorkloadsOrder(self._repo, wanted, self._version_of)
            elif wanted.is_growth:
                yield CallsOrder(collected, wanted)
            else:
                yield SingleNumber(collected, wanted, self._metric)
            return
        with scratch_folder(self._repo) as scratch:
            yield Clocks(self._repo, wanted.case, (wanted.metric,), scratch, self._rng)

    def _version_of(self, folder: Path) -> MinorVersion:
        return self._repo.vcs.get_minor_version_info(self._copies.version_of(folder))


def as_data(trial: Trial) -> dict[str, Any]:
    """What the trial says, for the journal."""
    (decision,) = trial.decisions
    found = decision.verdict.difference
    # Times that are equal are those of a clock that ticks slowly.
    counted = found.basis in (Basis.COUNTS, Basis.RUNS) and decision.metric.type != "time"
    old, new = found.values
    bounds = [found.ratio, found.low, found.high]
    if found.basis is Basis.COUNTS:  # of what is 0 there are no ratios
        bounds = [quotient(old, new)] * 3
    return {
        "ratio": bounds,
        "costs": [old, new],
        "unit": decision.metric.unit,
        "change": decision.verdict.change.name,
        "exact": counted,
        "settled": counted or decision.settled or not trial.reason,
        "rule": decision.verdict.reason,
        "larger_is_better": decision.metric.larger_is_better,
        "kind": decision.metric.type,
        "pairs": len(trial.readings(BASE)),
    }


def quotient(old: float, new: float) -> float:
    """The second number by the first one; infinite where only that is 0."""
    if old == new:
        return 1.0
    return new / old if old else math.inf


def _compared(data: dict[str, Any]) -> PairComparison:
    value, low, high = data["ratio"]
    old, new = data["costs"]
    return PairComparison(
        CostRatio(value, low, high, (old, new), data["unit"]),
        PerformanceChange[data["change"]],
        data["exact"],
        data["rule"],
        data["larger_is_better"],
        data["kind"],
    )


class UnusableEnd(JobFailed):
    """An end that cannot be built or run, or is not what it is named: there is nothing to go on with."""


def unusable_end(problem: JobFailed | SkippedVersion, end: str, version: MinorVersion) -> UnusableEnd:
    """The error where an end cannot be built or run. :param end: `good` or `bad`."""
    # Pairs of runs name the versions in their way.
    message = re.sub(r"^(?:(?:base|head) \(\w+\)|[0-9a-f]{40,}): ", "", str(problem))
    return UnusableEnd(
        f"the {end} end, {version.checksum[:7]}, cannot be measured: {message}",
        problem.hint or f"name another {end} version that builds and runs",
    )
