"""`perun bisect --within COMMIT`: which hunk of a commit, or of what is uncommitted, changed what a program
costs.

The parent is built with parts of the commit, by halves (delta debugging; A. Zeller and R. Hildebrandt,
Simplifying and Isolating Failure-Inducing Input, IEEE TSE 28, 2002). As costs add up, each build tells what
both of its halves cost; the larger one is searched further. What was found is confirmed by the commit without
it. Counts of one run are compared, or times in pairs of runs. Nothing is stored.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from perun.core.errors import JobFailed, PerunError, UsageError
from perun.measurement.difference import Rules, of_counts
from perun.measurement.parted import confirms, first_leads
from perun.measurement.verdict import Verdict, judge
from perun.plugin.api import MinorVersion
from perun.profile.changes import PerformanceChange
from perun.repository.copies import scratch_folder
from perun.repository.repository import Repository
from perun.running.bisect.data import SECONDS, BisectRequest
from perun.running.bisect.measuring import COUNTING
from perun.running.bisect.quantity import AT_A_LOCATION, Quantity, SingleNumber, quantity
from perun.running.compare.decide import BASE, HEAD, PairRunner, usable_cores
from perun.running.compare.instruments import FREE, Clocks, CollectorInstrument, Instrument
from perun.running.compare.plan import CompareCase, CompareOptions, ComparePlan, CompareSide, cases_of
from perun.running.compare.trial import run
from perun.running.explain.data import HUNK
from perun.running.run.builds import Builds
from perun.running.run.pre_run import environment

MOST_BUILDS: Final = 12
"""Variants of the commit that are built at most, beside its ends."""
WORKING: Final = "."
"""Names the working copy in the place of a commit."""


class Hunk(NamedTuple):
    """A part of a commit that can be left out.

    :param number: from 1. :param old: its file before, and :param new: after; empty where there is none.
    :param before: the first line and how many there are, and :param after: the same; None of a whole file.
    """

    number: int
    old: str
    new: str
    before: tuple[int, int] | None = None
    after: tuple[int, int] | None = None

    @property
    def place(self) -> str:
        """As `parser.c:210`."""
        path = self.new or self.old
        return f"{path}:{self.after[0]}" if self.after else path


class HunkReport(NamedTuple):
    """What is known of the commit.

    :param commit: None for the working copy.
    :param verdict: on the whole commit. :param costs: counted before it and with it.
    :param hunks: how many it has.
    :param named: those that did it, the fewest that were told apart; none where it changed nothing.
    :param without: what the commit counts without them, and :param alone: the parent with them alone; None
        where that was not measured. :param rest: what either is, beside the parent.
    :param certain: whether that confirms it.
    :param builds: how many variants were built. :param notes: what does not build.
    """

    commit: MinorVersion | None
    what: str
    unit: str
    verdict: Verdict
    costs: tuple[float, float]
    hunks: int
    named: tuple[Hunk, ...]
    without: float | None
    alone: float | None
    rest: Verdict | None
    certain: bool
    builds: int
    notes: tuple[str, ...]


def within(
    repo: Repository,
    revision: str,
    asked: BisectRequest,
    tell: Callable[[str], None],
) -> HunkReport:
    """Find the hunk.

    :raises UsageError: where the commit has no parent, or nothing that can be left out; where the metric is
        none that is counted. :raises NotTrusted: as the whole of `perun bisect`.
    :raises PerunError: where one of the ends cannot be built or measured.
    """
    repo.require_trust("bisecting")
    version = repo.vcs.uncommitted() if revision == WORKING else repo.version(revision)
    if not version:
        raise UsageError(
            "nothing is uncommitted", "name a commit: --within HEAD; files that are new: git add"
        )
    head = repo.vcs.get_minor_version_info(version)
    if not head.parents:
        hint = repo.vcs.missing_history() or "name another one"
        raise UsageError(f"{head.checksum[:10]} has no parent", hint)
    base = repo.vcs.get_minor_version_info(head.parents[0])
    hunks = list(hunks_of(repo, base, head))
    if not hunks:
        raise UsageError(f"{head.checksum[:10]} changes no file", "name another commit")
    wanted = _quantity(repo, asked)
    with Builds(repo, separate=True) as builds, scratch_folder(repo) as scratch:
        variants = _Variants(repo, builds, (base, head), hunks, wanted, asked, scratch, tell)
        if wanted.recorded is None and not asked.metric:
            variants.notes.append("nothing counts instructions here: times are compared in pairs of runs")
        variants.required(())
        whole = variants.required(hunks)
        ends = whole.verdict.difference.values
        differs = whole.verdict.decides and whole.verdict.change is not PerformanceChange.NoChange
        named = _search(variants, hunks) if differs else ()
        left = None
        without = True
        if named and len(named) < len(hunks):
            left = variants.measured([one for one in hunks if one not in named])
            if left is None:
                without, left = False, variants.measured(named)
    certain = len(named) == len(hunks) == 1 or (
        left is not None and confirms(ends, left.value, left.verdict, without=without)
    )
    return HunkReport(
        head if revision != WORKING else None, str(wanted), variants.unit, whole.verdict, ends, len(hunks),
        named, left.value if left and without else None, left.value if left and not without else None,
        left.verdict if left else None, certain, variants.built, tuple(variants.notes),
    )  # fmt: skip


def _quantity(repo: Repository, asked: BisectRequest) -> Quantity:
    options = CompareOptions(cmd=asked.cmd, args=asked.args, workload=asked.workload)
    cases: Sequence[CompareCase] = list(cases_of(repo, options))
    if len(cases) != 1:
        raise UsageError(
            f"--within: the job matrix has {len(cases)} commands", "name the one to measure: -c CMD -a ARGS"
        )
    metric = asked.metric or (AT_A_LOCATION if asked.location or _counts(repo) else "cpu")
    found = quantity(repo, cases[0], metric, asked.location)
    units = {unit.name for unit in found.recorded.units} if found.recorded is not None else set()
    if found.is_growth or not units <= COUNTING:
        raise UsageError(
            f"--within: {found.metric} is neither counted nor timed in pairs of runs",
            f"name what is: --metric {', --metric '.join((*sorted(COUNTING), *FREE))}",
        )
    return found


def _counts(repo: Repository) -> bool:
    """Whether something counts instructions on this machine."""
    collector = repo.registry.get("collect", AT_A_LOCATION)
    return not next(iter(collector.readiness(environment(repo)))).missing


def hunks_of(repo: Repository, base: MinorVersion, head: MinorVersion) -> Iterator[Hunk]:
    """The parts of the commit, in the order of its diff; a file that came, went, or is no text is one.

    :raises UsageError: where the version control tells no difference.
    """
    files = repo.vcs.difference(base.checksum, head.checksum)
    if files is None:
        raise UsageError("--within needs a version control that tells what a commit changed", "use git")
    number = 0
    for file in files:
        headers = HUNK.findall(file.patch) if file.old == file.new else []
        for found in headers or [()]:
            number += 1
            if not found:
                yield Hunk(number, file.old, file.new)
                continue
            before, length, after, size = (int(one) if one else 1 for one in found)
            yield Hunk(number, file.old, file.new, (before, length), (after, size))


class _Reading(NamedTuple):
    """What a variant costs, and what that is beside the parent."""

    value: float
    verdict: Verdict


class _Variants:
    """The parent with some of the hunks: what each costs, measured once."""

    def __init__(
        self,
        repo: Repository,
        builds: Builds,
        ends: tuple[MinorVersion, MinorVersion],
        hunks: Sequence[Hunk],
        wanted: Quantity,
        asked: BisectRequest,
        scratch: Path,
        tell: Callable[[str], None],
    ) -> None:
        self._repo = repo
        self._builds = builds
        self._ends = ends
        self._hunks = hunks
        self._wanted = wanted
        self._asked = asked
        self._tell = tell
        self._rules = Rules.of(repo.config.section("degradation"))
        self._rng = random.Random()
        self._known: dict[frozenset[int], _Reading | None] = {}
        self._base: tuple[Path, float] | None = None
        self._instrument: Instrument
        if wanted.recorded is None:
            self._instrument = Clocks(repo, wanted.case, (wanted.metric,), scratch, self._rng)
        else:
            collected = CollectorInstrument(repo, wanted.case, wanted.recorded, lambda folder: ends[1])
            self._instrument = SingleNumber(collected, wanted)
        self.built = 0
        self.unit = ""
        self.notes: list[str] = []

    @property
    def spent(self) -> bool:
        """Whether no more is built."""
        return self.built >= MOST_BUILDS

    def required(self, chosen: Sequence[Hunk]) -> _Reading:
        """What an end costs.

        :raises PerunError: where it cannot be built or measured.
        """
        whole = bool(chosen)
        self._tell(f"building {'the commit' if whole else 'its parent'}")
        found = self._read(self._builds.enter(self._ends[whole].checksum).folder)
        self._known[frozenset(one.number for one in chosen)] = found
        return found

    def measured(self, chosen: Sequence[Hunk]) -> _Reading | None:
        """What the parent with these hunks costs; None where that does not build or run."""
        key = frozenset(one.number for one in chosen)
        if key in self._known:
            return self._known[key]
        self.built += 1
        self._tell(f"building with {len(chosen)} of {len(self._hunks)} hunks")
        found = None
        try:
            change = partial(_apply, self._repo, self._ends, chosen)
            found = self._read(self._builds.fresh(self._ends[0].checksum, change))
        except PerunError as problem:
            which = ", ".join(str(number) for number in sorted(key))
            self.notes.append(f"with the hunks {which} alone: {problem.message.splitlines()[0]}")
        self._known[key] = found
        return found

    def _read(self, folder: Path) -> _Reading:
        if self._wanted.recorded is None and self._base is not None:
            return self._paired(self._base[0], folder)
        reading = self._instrument.measure(folder, 0.0, None)
        ((metric, value),) = reading.values.items()
        self.unit = metric.unit
        if self._base is None:
            self._base = folder, value
        return _Reading(value, judge(of_counts((self._base[1], value), (1, 1)), self._rules))

    def _paired(self, base: Path, folder: Path) -> _Reading:
        """What pairs of runs say, beside the parent.

        :raises JobFailed: where there was no time for them.
        """
        sides = CompareSide("base", self._ends[0]), CompareSide("head", self._ends[1])
        planned = ComparePlan(*sides, (self._wanted.case,))
        folders = {BASE: [base], HEAD: [folder]}
        cores = usable_cores(self._asked.pin)
        order = CompareOptions().order
        runner = PairRunner(self._instrument, planned, folders, order, cores, self._rng)
        seconds = self._asked.budget / MOST_BUILDS if self._asked.budget else SECONDS
        trial = run("time", runner, self._rules, self._asked.most_pairs, seconds, lambda *_: None)
        if trial.interruption is not None:
            raise trial.interruption
        if not trial.pairs:
            raise JobFailed("no pair of runs fits into the budget", "give it more time: --budget SECONDS")
        (decision,) = trial.decisions
        return _Reading(decision.verdict.difference.values[1], decision.verdict)


def _search(variants: _Variants, hunks: Sequence[Hunk]) -> tuple[Hunk, ...]:
    """The fewest hunks that were told apart and cost most of the difference."""
    inside: list[Hunk] = []
    group = list(hunks)
    while len(group) > 1 and not variants.spent:
        low, high = (variants.measured(one) for one in (inside, [*inside, *group]))
        assert low is not None and high is not None
        parted = _parted(variants, inside, group, low.value, high.value)
        if parted is None:
            break
        inside, group = parted
    return tuple(group)


def _parted(
    variants: _Variants, inside: list[Hunk], group: list[Hunk], low: float, high: float
) -> tuple[list[Hunk], list[Hunk]] | None:
    """The part of the group that costs most of what it costs, and what is applied before it; None where no
    parts can be built, or none of them leads."""
    for place in _places(group):
        first, second = group[:place], group[place:]
        for applied, rest in ((first, second), (second, first)):
            if variants.spent:
                return None
            middle = variants.measured([*inside, *applied])
            if middle is None:
                continue
            leads = first_leads(low, middle.value, high)
            if leads is None:
                return None
            return (inside, applied) if leads else ([*inside, *applied], rest)
    return None


def _places(group: Sequence[Hunk]) -> list[int]:
    """Where to part it: near the middle first, between files before within one."""
    middle = len(group) / 2
    ends, at = set[int](), 0
    for _, own in groupby(group, key=lambda one: (one.old, one.new)):
        at += len(list(own))
        ends.add(at)
    quarter = len(group) / 4

    def order(place: int) -> tuple[bool, float]:
        return place not in ends or abs(place - middle) > quarter, abs(place - middle)

    return sorted(range(1, len(group)), key=order)


def _apply(
    repo: Repository, ends: tuple[MinorVersion, MinorVersion], chosen: Sequence[Hunk], top: Path
) -> None:
    """Make the working copy of the parent so."""
    base, head = (one.checksum for one in ends)
    for (old, new), own in groupby(chosen, key=lambda one: (one.old, one.new)):
        parts = list(own)
        target = top / (new or old)
        if parts[0].before is None:
            content = repo.vcs.source(head, new) if new else None
            if old and old != new:
                (top / old).unlink(missing_ok=True)
        else:
            content = _merged(repo.vcs.source(base, old) or b"", repo.vcs.source(head, new) or b"", parts)
        if content is None:
            target.unlink(missing_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def _merged(before: bytes, after: bytes, parts: Sequence[Hunk]) -> bytes:
    """The old lines, with the new ones in the places of these hunks."""
    old, new = (one.splitlines(keepends=True) for one in (before, after))
    for part in sorted(parts, key=lambda one: one.number, reverse=True):
        assert part.before is not None and part.after is not None
        (at, length), (to, size) = part.before, part.after
        first = at - 1 if length else at
        start = to - 1 if size else to
        old[first : first + length] = new[start : start + size]
    return b"".join(old)
