"""What a version is like: by what is stored, by measuring it, or by a script."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from typing import Final, NamedTuple

from perun.core.errors import JobFailed, PerunError
from perun.core.process.command import exit_status
from perun.core.process.execution import Execution, Output
from perun.measurement.difference import DEFAULTS
from perun.measurement.series import Metric
from perun.models.growth.comparison import APART as ORDERS_APART
from perun.plugin.api import MinorVersion, Run
from perun.profile.changes import PerformanceChange
from perun.repository.bisections import BisectionJournal
from perun.repository.copies import scratch_folder
from perun.repository.repository import Repository
from perun.running.bisect.data import CostRatio, VersionEvidence, VersionLabel
from perun.running.bisect.measuring import (
    BisectMeasurement,
    BuiltCopies,
    PairComparison,
    SkippedVersion,
    UnusableEnd,
    quotient,
    unusable_end,
)
from perun.running.compare.instruments import BudgetSpent
from perun.running.run.pre_run import environment

# `--script`: a command that says whether a version is good, in the convention of `git bisect run`.

SKIP: Final = 125
ABORT: Final = 128


class Script:
    """Runs the command in working copies, once for each version; what the journal knows is not run again."""

    def __init__(
        self,
        repo: Repository,
        command: str,
        built_in: BuiltCopies,
        journal: BisectionJournal,
        budget: float | None,
        tell: Callable[[str], None],
    ) -> None:
        self._repo = repo
        self._command = command
        self._copies = built_in
        self._journal = journal
        self._budget = budget
        self._tell = tell
        self._spent = 0.0

    def is_bad(self, version: MinorVersion) -> bool:
        """Whether the script says so.

        :raises SkippedVersion: where it says 125, or the version cannot be built.
        :raises JobFailed: where it says 128 or more, which ends the bisection.
        :raises BudgetSpent: where there is no time left for it.
        """
        status = self._journal.known("script", version.checksum)
        if status is None:
            if self._budget is not None and self._spent >= self._budget:
                raise BudgetSpent
            begun = time.monotonic()
            status = self._run(version)
            self._spent += time.monotonic() - begun
            if status < ABORT:
                self._journal.keep(status, "script", version.checksum)
        if status == SKIP:
            raise SkippedVersion(
                self._journal.known("skipped", version.checksum) or f"the script exits with {SKIP}"
            )
        if status >= ABORT:
            raise JobFailed(
                f"--script: {self._command!r} exits with {status} at {version.checksum[:7]}",
                "128 and more end the bisection; once that is mended: perun bisect --resume",
            )
        return bool(status)

    def _run(self, version: MinorVersion) -> int:
        try:
            folder = self._copies.folder(version)
        except JobFailed as problem:
            self._journal.keep(problem.message, "skipped", version.checksum)
            return SKIP
        self._tell(f"running the script at {version.checksum[:7]}")
        run = Run(self._command, cwd=folder, environ=environment(self._repo))
        try:
            with (
                scratch_folder(self._repo) as scratch,
                Execution(run, scratch, 0.0, output=Output.DISCARD) as execution,
            ):
                return exit_status(execution.run().status)
        except JobFailed as problem:
            raise JobFailed(
                f"--script cannot be run: {problem.message}",
                "name a program in the PATH, or of the version with ./; for the shell: "
                "--script \"sh -c '...'\"",
            ) from None


NEAR: Final = 0.25
"""Share of the distance between the ends within which a value is clearly that of one of them."""
REPEATS: Final = 0.001
"""Share by which counts of two runs of one program may differ."""
APART: Final = 0.10
"""The least distance of stored times from the middle, as a share: they were measured at other hours."""
OF_GROWTH: Final = DEFAULTS._replace(threshold=2**ORDERS_APART - 1, exact=2**ORDERS_APART - 1)
"""For what is spent at twice the size: the exponents of two orders of growth differ by 0.2 at least."""
_GREW: Final = (PerformanceChange.SevereDegradation, PerformanceChange.Degradation)
_SHRANK: Final = (PerformanceChange.SevereOptimization, PerformanceChange.Optimization)


class EndsComparison(NamedTuple):
    """What the ends say. :param why: why there is nothing to look for; empty where they differ.

    :param decided: whether it is certain that they do not differ.
    """

    ratio: CostRatio | None
    why: str = ""
    larger_is_better: bool = False
    kind: str = ""


class ParentComparison(NamedTuple):
    """What a version says beside its parent. :param why: why it is not confirmed; empty where it is."""

    ratio: CostRatio | None
    why: str = ""


class Classifier(ABC):
    """Tells what versions are like."""

    @abstractmethod
    def ends(self, good: MinorVersion, bad: MinorVersion) -> EndsComparison:
        """Whether the two differ; before anything else is asked.

        :raises PerunError: where one of them cannot be built or run.
        """

    @abstractmethod
    def stored(self, version: MinorVersion) -> VersionEvidence | None:
        """What is known of the version without measuring it."""

    @abstractmethod
    def see(self, version: MinorVersion, beside_bad: bool, steps: int) -> VersionEvidence:
        """What the version is like.

        :param beside_bad: it is nearer to the bad end in history. :param steps: about how many more follow.
        :raises BudgetSpent: where there is no time left for it.
        """

    @abstractmethod
    def confirm(self, parent: MinorVersion, child: MinorVersion) -> ParentComparison:
        """Whether the two differ as the ends do."""

    def forget_stored(self) -> bool:
        """Use what is stored no longer; whether it was used at all."""
        return False


class CostClassifier(Classifier):
    """By the cost of versions beside that of the ends.

    :param known: stored values by checksum; :param metric: what they are, None where there are none.
    """

    def __init__(
        self, measuring: BisectMeasurement, known: Mapping[str, float], metric: Metric | None
    ) -> None:
        self._measuring = measuring
        self._limits = OF_GROWTH if measuring.is_growth else measuring.rules
        self._known = known
        self._metric = metric
        self._counted = metric is not None and metric.exact
        self._unit = ""
        self._uses_stored = False

    def ends(self, good: MinorVersion, bad: MinorVersion) -> EndsComparison:
        """By stored counts; else measured side by side."""
        self._good, self._bad = good, bad
        pair = self._known.get(good.checksum), self._known.get(bad.checksum)
        old, new = pair
        if self._metric and self._counted and old is not None and new is not None and old != new:
            self._exact = True
            self._costs = old, new
            share = quotient(*self._costs)
            self._uses_stored = True
            self._unit = self._metric.unit
            ratio = CostRatio(share, share, share, self._costs, self._unit)
            return EndsComparison(ratio, "", self._metric.larger_is_better, self._metric.type)
        found = self._counted_ends(good, bad) if self._measuring.is_counted else None
        if found is None or self._is_close(found.ratio):
            found = self._measured_ends(good, bad)
        self._exact = found.exact
        self._costs, self._unit = found.ratio.costs, found.ratio.unit
        ends = EndsComparison(found.ratio, "", found.larger_is_better, found.kind)
        if found.change in _GREW + _SHRANK:
            return ends
        if found.change is PerformanceChange.NoChange:
            return ends._replace(why="the ends do not differ")
        return ends._replace(why=f"it is not certain that the ends differ: {found.rule}")

    def _counted_ends(self, good: MinorVersion, bad: MinorVersion) -> PairComparison:
        """By one run of each."""
        with self._naming_ends(good, bad):
            self._measuring.learn((bad, good))
        costs = []
        for name, version in (("good", good), ("bad", bad)):
            try:
                costs.append(self._measuring.alone(version))
            except SkippedVersion as problem:
                raise unusable_end(problem, name, version) from None
        return self._measuring.compared(*costs)

    def _is_close(self, ratio: CostRatio) -> bool:
        """Whether two counts differ by no more than those of two runs of one program may."""
        return not self._measuring.is_growth and 0 < abs(ratio.value - 1) <= REPEATS

    def _measured_ends(self, good: MinorVersion, bad: MinorVersion) -> PairComparison:
        with self._naming_ends(good, bad):
            self._measuring.learn((bad, good))
            return self._measuring.pairs(good, bad, self._limits, self._measuring.left(2), "ends")

    @contextmanager
    def _naming_ends(self, good: MinorVersion, bad: MinorVersion) -> Iterator[None]:
        """Say which of the ends it is that cannot be measured."""
        try:
            yield
        except SkippedVersion as problem:
            is_base = str(problem).startswith(("base (", good.checksum))
            end = ("good", good) if is_base else ("bad", bad)
            raise unusable_end(problem, *end) from None
        except JobFailed as problem:
            raise unusable_end(problem, "good", good) from None

    def stored(self, version: MinorVersion) -> VersionEvidence | None:
        """By a stored value that is that of an end, or clearly nearer to one of them."""
        value = self._known.get(version.checksum)
        if value is None:
            return None
        share, distance = self._share(value)
        clear = min(abs(share), abs(share - 1)) <= NEAR
        far = self._counted or distance * NEAR >= math.log1p(APART)
        if value not in self._costs and not (clear and far):
            return None
        self._uses_stored = True
        return self._by_value(version, value, "stored")

    def forget_stored(self) -> bool:
        """Use what is stored no longer."""
        used, self._uses_stored, self._known = self._uses_stored, False, {}
        return used

    def see(self, version: MinorVersion, beside_bad: bool, steps: int) -> VersionEvidence:
        """By one run where counts repeat, else by pairs of runs beside the end."""
        try:
            if self._exact:
                if self._measuring.left(steps) <= 0:
                    self._measuring.check_known(version)
                return self._by_value(version, self._measuring.alone(version), "measured")
            return self._beside(version, self._bad if beside_bad else self._good, steps)
        except SkippedVersion as problem:
            return VersionEvidence(version, VersionLabel.SKIPPED, "measured", why=str(problem))

    def _share(self, value: float) -> tuple[float, float]:
        """Where the value is between the costs of the ends, 0 the good one and 1 the bad one, and how far the
        two are apart: on logarithms, unless something costs nothing."""
        good, bad = self._costs
        if min(value, good, bad) > 0:
            value, good, bad = math.log(value), math.log(good), math.log(bad)
        return (value - good) / (bad - good), abs(bad - good)

    def _by_value(self, version: MinorVersion, value: float, how: str) -> VersionEvidence:
        share, _ = self._share(value)
        like, near = (VersionLabel.BAD, self._bad) if share > 0.5 else (VersionLabel.GOOD, self._good)
        cost = self._costs[like is VersionLabel.BAD]
        ratio = quotient(cost, value)
        return VersionEvidence(
            version, like, how, CostRatio(ratio, ratio, ratio, (cost, value), self._unit), near.checksum
        )

    def _beside(self, version: MinorVersion, end: MinorVersion, steps: int) -> VersionEvidence:
        """By the ratio to the end: the limit is half of the way to the other end, on logarithms."""
        measuring = self._measuring
        good, bad = self._costs
        half = abs(math.log(bad / good)) / 2
        rules = measuring.rules._replace(threshold=math.expm1(half), severe=math.inf)
        found = measuring.pairs(end, version, rules, measuring.left(steps), "like")
        seen = VersionEvidence(version, VersionLabel.UNDECIDED, "measured", found.ratio, end.checksum)
        towards = (_GREW if bad > good else _SHRANK) if end == self._good else (
            _SHRANK if bad > good else _GREW
        )  # fmt: skip
        away = _SHRANK if towards is _GREW else _GREW
        own, other = (
            (VersionLabel.GOOD, VersionLabel.BAD)
            if end == self._good
            else (VersionLabel.BAD, VersionLabel.GOOD)
        )
        if found.change in towards:
            return seen._replace(like=other)
        if found.change is PerformanceChange.NoChange or found.change in away:
            return seen._replace(like=own)
        return seen._replace(why=found.rule)

    def confirm(self, parent: MinorVersion, child: MinorVersion) -> ParentComparison:
        """By one run of each where counts repeat, else by pairs of runs."""
        measuring = self._measuring
        good, bad = self._costs
        try:
            if self._exact:
                costs = measuring.alone(parent), measuring.alone(child)
                share = quotient(*costs)
                ratio = CostRatio(share, share, share, costs, self._unit)
                limit = 1 + self._limits.exact
                same = (share > 1) == (bad > good) and not 1 / limit <= share <= limit
                return ParentComparison(ratio, "" if same else "measured again, the two do not differ so")
            found = measuring.pairs(parent, child, self._limits, measuring.left(0), "confirm")
        except (SkippedVersion, PerunError) as problem:
            return ParentComparison(None, f"it could not be measured beside its parent: {problem}")
        if found.change in (_GREW if bad > good else _SHRANK):
            return ParentComparison(found.ratio)
        return ParentComparison(found.ratio, f"not confirmed beside its parent: {found.rule}")


class ScriptClassifier(Classifier):
    """By the exit status of a script, as `git bisect run` has it."""

    def __init__(self, script: Script) -> None:
        self._script = script

    def ends(self, good: MinorVersion, bad: MinorVersion) -> EndsComparison:
        """The script has to call both what they are named."""
        for version, name in ((good, "good"), (bad, "bad")):
            try:
                is_bad = self._script.is_bad(version)
            except SkippedVersion as problem:
                raise UnusableEnd(
                    f"the {name} end, {version.checksum[:7]}, cannot be judged: {problem}",
                    f"name another {name} version, one that builds and that --script can judge",
                ) from None
            if is_bad != (name == "bad"):
                said = "bad" if is_bad else "good"
                raise UnusableEnd(
                    f"--script says that the {name} end, {version.checksum[:7]}, is {said}",
                    "name other versions, or correct the script: it exits with 0 for good, with 1 to 127 for "
                    "bad, but with 125 for a version that cannot be judged",
                )
        return EndsComparison(None)

    def stored(self, version: MinorVersion) -> VersionEvidence | None:
        """Nothing."""
        return None

    def see(self, version: MinorVersion, beside_bad: bool, steps: int) -> VersionEvidence:
        """By running it once."""
        try:
            like = VersionLabel.BAD if self._script.is_bad(version) else VersionLabel.GOOD
        except SkippedVersion as problem:
            return VersionEvidence(version, VersionLabel.SKIPPED, "script", why=str(problem))
        return VersionEvidence(version, like, "script")

    def confirm(self, parent: MinorVersion, child: MinorVersion) -> ParentComparison:
        """The script has called the one good and the other one bad."""
        return ParentComparison(None)


# Which version is looked at next, on positions alone: 0 is the good end, the last one the bad end.


class Bounds(NamedTuple):
    """Between which positions the change is.

    :param low: the last one that is like the good end. :param high: the first one after it that is like the
        bad end. :param open: those between them of which nothing is known.
    """

    low: int
    high: int
    open: tuple[int, ...]

    @property
    def steps(self) -> int:
        """About how many positions more have to be looked at."""
        return math.ceil(math.log2(len(self.open) + 1))


def bounds(is_bad: Mapping[int, bool], skipped: Set[int]) -> Bounds:
    """Where the newest change is.

    :param is_bad: of positions that are known, whether they are like the bad end; both ends are among them.
    :param skipped: positions that cannot be looked at.
    """
    low = max(place for place, bad in is_bad.items() if not bad)
    high = min(place for place, bad in is_bad.items() if bad and place > low)
    return Bounds(low, high, tuple(place for place in range(low + 1, high) if place not in skipped))


def middle(found: Bounds) -> int | None:
    """The position to look at next, None if there is no more.

    The middle; where positions are skipped, those of the van der Corput sequence (1/2, 1/4, 3/4, 1/8, ...) in
    turn, as neighbours of what does not build seldom do.
    """
    if not found.open:
        return None
    number = found.high - found.low - len(found.open)  # 1 + how many are skipped
    wanted = found.low + (found.high - found.low) * _van_der_corput(number)
    return min(found.open, key=lambda place: abs(place - wanted))


def _van_der_corput(number: int) -> float:
    """The fraction whose binary digits are those of the number, mirrored at the point; 1 gives 1/2."""
    value, place = 0.0, 0.5
    while number:
        value += place * (number & 1)
        number >>= 1
        place /= 2
    return value
