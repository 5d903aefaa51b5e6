"""`perun bisect`: plan, judge the ends, search, confirm, follow a merge.

What is asked and answered is `data`; `judging` says what a version is like, by `measuring` its `quantity`."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import NamedTuple

from perun.core.errors import DamagedStore, PerunError, UsageError
from perun.core.machine import class_of
from perun.history.changes import history
from perun.history.changes.data import History
from perun.plugin.api import MinorVersion
from perun.repository import bisections as journals
from perun.repository.bisections import BisectionJournal
from perun.repository.repository import Repository
from perun.repository.walking import first_parents
from perun.running.bisect import benchmark
from perun.running.bisect.data import (
    BisectRequest,
    BisectResult,
    CostRatio,
    VersionEvidence,
    VersionLabel,
    case_of,
    ends_of,
    resolved,
)
from perun.running.bisect.judging import (
    Bounds,
    Classifier,
    CostClassifier,
    EndsComparison,
    Script,
    ScriptClassifier,
    bounds,
    middle,
)
from perun.running.bisect.measuring import BisectMeasurement, BuiltCopies, UnusableEnd, copies
from perun.running.bisect.quantity import quantity, stored_values
from perun.running.compare.instruments import BudgetSpent
from perun.running.run.collecting import describe_machine

# The versions between two ends, as one line.

_SHOWN = 7


def path(repo: Repository, good: str, bad: str) -> list[MinorVersion]:
    """The versions from the good end to the bad one, both included, the oldest first.

    From each version it goes to its first parent; where that does not come from the good end, to the first
    one that does.

    :raises UsageError: where the bad end does not come from the good one.
    """
    if good == bad:
        raise UsageError(
            f"both ends are {good[:_SHOWN]}", "name a version before the change, and one with it"
        )
    parents: dict[str, tuple[str, ...]] = {}
    for version in repo.vcs.walk_subjects(bad, ordered=True):
        if version.checksum == good:
            break
        parents[version.checksum] = version.parents
    else:
        raise _unrelated(repo, good, bad)
    comes_from = {good}
    for checksum in reversed(parents):  # parents before children
        if any(one in comes_from for one in parents[checksum]):
            comes_from.add(checksum)
    line = [bad]
    while line[-1] != good:
        line.append(next(one for one in parents[line[-1]] if one in comes_from))
    return [repo.vcs.get_minor_version_info(checksum) for checksum in reversed(line)]


def merged(repo: Repository, parent: str, tip: str) -> list[MinorVersion]:
    """The versions that a merge brought along first parents of the merged `tip`, the oldest first; the first
    one is that from which they branched off, which `parent` has, too. Empty if they share no history."""
    known = {version.checksum for version in repo.vcs.walk_subjects(parent)}
    line: list[MinorVersion] = []
    for version in first_parents(repo, tip):
        line.append(version)
        if version.checksum in known:
            return line[::-1]
    return []


def _unrelated(repo: Repository, good: str, bad: str) -> UsageError:
    base = repo.vcs.merge_base(good, bad)
    ends = f"{bad[:_SHOWN]} does not come from {good[:_SHOWN]}"
    if base == bad:
        return UsageError(
            f"{ends}, but is older: the ends are swapped",
            f"name the older version first: perun bisect {bad[:_SHOWN]} {good[:_SHOWN]}",
        )
    if base is None:
        return UsageError(
            f"{ends}: they have no common history",
            repo.vcs.missing_history() or "name a version before the change that the bad one comes from",
        )
    return UsageError(
        f"{ends}: they are on two branches",
        f"they parted at {base[:_SHOWN]}; if that is good: perun bisect {base[:_SHOWN]} {bad[:_SHOWN]}",
    )


# `perun bisect`: find the version that changed what a program costs.

_SPENT = "the budget is spent: give it more with --budget, the rest is kept: perun bisect --resume"


class ProgressSink(NamedTuple):
    """Who is told what happens.

    :param tell: what is done at the moment. :param see: what was found of a version, and between which
        positions the change is then. :param note: something to know.
    """

    tell: Callable[[str], None] = lambda text: None
    see: Callable[[VersionEvidence | None, Bounds], None] = lambda seen, found: None
    note: Callable[[str], None] = lambda text: None


def bisect(
    repo: Repository,
    asked: BisectRequest,
    *,
    resume: bool = False,
    watcher: ProgressSink | None = None,
    rng: random.Random | None = None,
) -> BisectResult:
    """Find the first version that is like the bad end.

    What is measured is stored, and kept in a journal until the answer is there.

    :param resume: go on with the newest bisection that was interrupted; of `asked` the budget counts.
    :raises UsageError: where the ends are none, or there is no command.
    :raises PerunError: where an end cannot be built or measured.
    """
    repo.require_trust("bisecting versions")
    watcher = watcher or ProgressSink()
    if resume:
        journal = journals.resume(repo)
        asked = replace(_planned(journal), budget=asked.budget)
    else:
        typed, asked = asked, resolved(repo, asked, watcher.note)
        path(repo, str(asked.good), str(asked.bad))  # raises, before there is anything to resume
        if asked.benchmark:
            asked = benchmark.named(repo, asked, watcher.tell, watcher.note)
        elif not asked.script:
            case = case_of(repo, asked, typed)
            quantity(repo, case, asked.metric, asked.location, asked.sizes)
        journal = journals.begin(repo, {"asked": asdict(asked)})
    with journal:
        try:
            with copies(repo, watcher.tell) as built, ExitStack() as scratch:
                rng = rng or random.Random()
                found = _Bisection(repo, asked, journal, built, watcher, rng, scratch).run()
        except PerunError as problem:
            if journal.is_empty or isinstance(problem, UnusableEnd):
                journal.end()
            raise
        if found.why != _SPENT:
            journal.end()
    return found


def _planned(journal: BisectionJournal) -> BisectRequest:
    """What was asked for then."""
    try:
        asked = BisectRequest(**journal.plan["asked"])
        return replace(asked, sizes=tuple(asked.sizes))
    except (KeyError, TypeError):
        raise DamagedStore(
            f"{journal.path} holds no bisection that this release knows", "delete it, and begin anew"
        ) from None


class _Result(NamedTuple):
    """Where a search along one line ended."""

    line: Sequence[MinorVersion]
    found: Bounds
    spent: bool

    @property
    def parent(self) -> MinorVersion:
        return self.line[self.found.low]

    @property
    def range(self) -> tuple[MinorVersion, ...]:
        return tuple(self.line[self.found.low + 1 : self.found.high + 1])


class _Bisection:
    """One bisection; what was found of each version is in `_seen`, in the order of time."""

    def __init__(
        self,
        repo: Repository,
        asked: BisectRequest,
        journal: BisectionJournal,
        built: BuiltCopies,
        watcher: ProgressSink,
        rng: random.Random,
        scratch: ExitStack,
    ) -> None:
        self._repo = repo
        self._watcher = watcher
        self._good, self._bad = ends_of(repo, asked)
        self._seen: dict[str, VersionEvidence] = {}
        self._benchmark = asked.benchmark
        self._measuring: BisectMeasurement | None = None
        self._script = asked.script
        if asked.script:
            script = Script(repo, asked.script, built, journal, asked.budget, watcher.tell)
            self._judge: Classifier = ScriptClassifier(script)
            return

        def read() -> History:
            return history.read(repo, asked.bad, lambda done, total: watcher.tell("reading what is stored"))

        if asked.benchmark:
            wanted = benchmark.quantity_of(repo, asked)
            of_suite = benchmark.BenchmarkMeasurement(
                repo, asked, wanted, built, journal, watcher.tell, watcher.note, rng, scratch
            )
            self._measuring = of_suite
            self._judge = benchmark.BenchmarkClassifier(
                of_suite, lambda metric: benchmark.stored_values(read(), wanted, metric, repo)
            )
            return
        wanted = quantity(repo, case_of(repo, asked), asked.metric, asked.location, asked.sizes)
        known, metric = stored_values(read(), wanted, class_of(describe_machine(repo)))
        self._measuring = BisectMeasurement(repo, asked, wanted, built, journal, watcher.tell, rng)
        self._judge = CostClassifier(self._measuring, known, metric)

    def run(self) -> BisectResult:
        """The answer: the ends, the search, the confirmation, and the way into a merge."""
        line = path(self._repo, self._good.checksum, self._bad.checksum)
        try:
            ends = self._judge.ends(self._good, self._bad)
        except BudgetSpent:
            return self._answer(EndsComparison(None), None, why=_SPENT)
        if ends.why:
            return self._answer(ends, None, why=ends.why)
        result = self._search(line)
        if result.spent or len(result.range) > 1:
            return self._answer(ends, result, why=_SPENT if result.spent else self._why_range(result))
        into = self._into_merge(result)
        merge = result.range[0] if into is not None else None
        return self._confirmed(ends, into or result, result, merge)

    def _confirmed(
        self, ends: EndsComparison, result: _Result, main: _Result, merge: MinorVersion | None
    ) -> BisectResult:
        if result.spent or len(result.range) > 1:
            why = _SPENT if result.spent else self._why_range(result)
            return self._answer(ends, result, why=why, merge=merge)
        try:
            answer = self._judge.confirm(self._parent_to_confirm(result, main), result.range[0])
        except BudgetSpent:
            return self._answer(ends, result, why=_SPENT, merge=merge)
        if answer.why and self._judge.forget_stored():
            # It was measured under other conditions than today's.
            self._watcher.note(f"what is stored does not hold today: {answer.why}; measuring instead")
            self._seen.clear()
            return self.run()
        return self._answer(
            ends, result, ratio=answer.ratio, confirmed=not answer.why, why=answer.why, merge=merge
        )

    def _search(self, line: Sequence[MinorVersion]) -> _Result:
        """Narrow the change down along the line, whose ends are known."""
        is_bad = {0: False, len(line) - 1: True}
        skipped: set[int] = set()
        for number, version in enumerate(line[1:-1], 1):
            seen = self._judge.stored(version)
            if seen is not None:
                is_bad[number] = seen.like is VersionLabel.BAD
        found = bounds(is_bad, skipped)
        for version in (line[found.low], line[found.high]):
            seen = self._judge.stored(version)
            if version not in (line[0], line[-1]) and seen is not None:
                self._seen[version.checksum] = seen  # those that decide
        self._watcher.see(None, found)
        while (place := middle(found)) is not None:
            beside_bad = place - found.low > found.high - place
            try:
                seen = self._judge.see(line[place], beside_bad, found.steps)
            except BudgetSpent:
                return _Result(line, found, True)
            self._seen[seen.version.checksum] = seen
            if seen.like in (VersionLabel.GOOD, VersionLabel.BAD):
                is_bad[place] = seen.like is VersionLabel.BAD
            else:
                skipped.add(place)
            found = bounds(is_bad, skipped)
            self._watcher.see(seen, found)
        return _Result(line, found, False)

    def _into_merge(self, result: _Result) -> _Result | None:
        """The search along the branch that brought the change to a merge; None where it was the merge itself,
        or no merge."""
        for tip in result.range[0].parents[1:]:
            if tip == result.parent.checksum:
                continue
            line = merged(self._repo, result.parent.checksum, tip)
            if len(line) < 2:
                continue
            self._watcher.note(f"{result.range[0].checksum[:7]} is a merge: looking at what it brought")
            # Where they branched off is a part of what is good; it need not build.
            if self._like(line[-1]) is VersionLabel.BAD and self._like(line[0]) is not VersionLabel.BAD:
                return self._search(line)
        return None

    def _parent_to_confirm(self, result: _Result, main: _Result) -> MinorVersion:
        """The parent, or where that cannot be measured, the one of the merge that brought the change."""
        seen = self._seen.get(result.parent.checksum)
        is_good = seen is None or seen.like is VersionLabel.GOOD
        return result.parent if is_good else main.parent

    def _like(self, version: MinorVersion) -> VersionLabel:
        known = {self._good.checksum: VersionLabel.GOOD, self._bad.checksum: VersionLabel.BAD}
        if version.checksum in known:
            return known[version.checksum]
        seen = self._seen.get(version.checksum) or self._judge.stored(version)
        if seen is None:
            try:
                seen = self._judge.see(version, True, 2)
            except BudgetSpent:
                return VersionLabel.UNDECIDED
        self._seen[version.checksum] = seen
        return seen.like

    def _why_range(self, result: _Result) -> str:
        likes = [self._seen[one.checksum].like for one in result.range[:-1] if one.checksum in self._seen]
        skipped, undecided = likes.count(VersionLabel.SKIPPED), likes.count(VersionLabel.UNDECIDED)
        reasons = []
        if skipped:
            reasons.append(f"{skipped} of them cannot be built or run")
        if undecided:
            reasons.append(f"{undecided} could not be decided: give more time with --budget")
        return "; ".join(reasons)

    def _answer(
        self,
        ends: EndsComparison,
        result: _Result | None,
        *,
        ratio: CostRatio | None = None,
        confirmed: bool = False,
        why: str = "",
        merge: MinorVersion | None = None,
    ) -> BisectResult:
        between = result.range if result else ()
        seen = tuple(self._seen.values())
        hows = [one.how for one in seen if one.like is not VersionLabel.SKIPPED]
        return BisectResult(
            between[0] if len(between) == 1 else None,
            between,
            result.parent if result else None,
            ratio or ends.ratio,
            confirmed,
            self._measuring.what if self._measuring else self._script,
            ends.kind,
            ends.larger_is_better,
            self._good,
            self._bad,
            seen,
            len(hows) - hows.count("stored"),
            hows.count("stored"),
            sum(one.like is VersionLabel.SKIPPED for one in seen),
            merge,
            why,
            self._benchmark,
        )


def nothing_to_resume(asked: BisectRequest) -> None:
    """:raises UsageError: where more than the budget is given beside `--resume`."""
    if replace(asked, budget=None) != BisectRequest():
        raise UsageError(
            "--resume goes on with what was asked for then", "leave out the rest; only --budget may be new"
        )
