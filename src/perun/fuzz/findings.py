"""What a campaign has found so far. Each addition is in the journal at once, from which it is restored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.fuzz.corpus import Compass, Corpus, Counts, Member, Storage
from perun.fuzz.journal import BEGAN, Entry, Journal
from perun.fuzz.results import FAULT, HANG, Confirmation, Point
from perun.fuzz.seeds import TriedSeed

Edges = NDArray[np.intp]

MOST_KEPT: Final = 100
"""Faults, and hangs, that are kept: further ones are counted."""
_SEED: Final = "seed"
_SLOW: Final = "member"
_CONFIRMED: Final = "confirmed"
"""Kinds of lines of the journal, beside those of faults and hangs."""
_NOTHING: Final = np.zeros(0, np.int64)


class Findings:
    """The inputs that matter, and the counts that they hold.

    :ivar corpus: what is mutated: the seeds, and all that raised a count. :ivar seeds: by their names.
    :ivar base: executed lines of the seed that has most. :ivar best: the best ratio to these, and
        :ivar coverage: that over time.
    :ivar interesting: slow inputs, which are to be measured. :ivar faults: and :ivar hangs: the first ones;
        :ivar lost: how many more there were of each.

    :param counted: whether executed lines are; else the ratio is that of times.
    """

    def __init__(self, journal: Journal, *, counted: bool) -> None:
        self.compass = Compass()
        self.corpus = Corpus(self.compass)
        self.seeds: dict[str, Member] = {}
        self.base = 0
        self.best = 1.0
        self.coverage: list[Point] = []
        self.interesting: list[Member] = []
        self.faults: list[Member] = []
        self.hangs: list[Member] = []
        self.lost = {FAULT: 0, HANG: 0}
        self._journal = journal
        self._storage = Storage(journal.folder)
        self._counted = counted
        self._numbers = 0
        self._restored: dict[int, Member] = {}

    def next_number(self) -> int:
        """Of a new member."""
        self._numbers += 1
        return self._numbers

    def ratio(self, lines: int) -> float:
        """So many executed lines to those of the seeds."""
        return lines / self.base if self.base else 1.0

    @property
    def slowest_seed(self) -> float:
        """Seconds of a run."""
        return max((one.seconds for one in self.seeds.values()), default=0.0)

    def add_seeds(self, tried: Sequence[TriedSeed], executions: int) -> None:
        """All seeds that can be used; so many executions it took to know."""
        self.base = max((one.member.lines for one in tried), default=0)
        for seed in tried:
            member = seed.member
            member.number, member.execution = self.next_number(), executions
            member.icov = self.ratio(member.lines)
            self._hold(_SEED, member, seed.edges, seed.counts)
            self._journal.member(_SEED, member, seed.edges, seed.counts)
        self._journal.write(BEGAN, seeds=len(tried))

    def add(self, member: Member, edges: Edges = _NOTHING, counts: Counts = _NOTHING) -> None:
        """An input that raised these counts, or is interesting."""
        member.hot, member.hot_ratio = self.compass.hottest(edges, counts)
        self._hold(_SLOW, member, edges, counts)
        self._journal.member(_SLOW, member, edges, counts)

    def add_failure(self, kind: str, member: Member) -> bool:
        """A fault or a hang; whether it is kept: of too many it is only counted."""
        if len(self._failures(kind)) >= MOST_KEPT:
            self.lost[kind] += 1
            return False
        self._hold(kind, member)
        self._journal.member(kind, member)
        return True

    def confirm(self, member: Member, confirmation: Confirmation) -> None:
        """What measuring said of a member."""
        self._hold_confirmation(member, confirmation)
        self._journal.confirmed(member)

    def restore(self, entry: Entry) -> Member | None:
        """Add what a line of the journal holds; the member of it, if it has a new one."""
        if entry.kind == _CONFIRMED:
            known = self._restored.get(int(entry.values["number"]))
            if known is not None:
                self._hold_confirmation(known, entry.confirmation())
            return None
        if entry.kind not in (_SEED, _SLOW, FAULT, HANG):
            return None
        member = entry.member()
        known = self._restored.setdefault(member.number, member)
        known.ending = member.ending  # a slow one that failed when it was measured has two lines
        self._numbers = max(self._numbers, member.number)
        if entry.kind == _SEED:
            self.base = max(self.base, member.lines)
        self._hold(entry.kind, known, *entry.counts())
        return member

    def _hold(self, kind: str, member: Member, edges: Edges = _NOTHING, counts: Counts = _NOTHING) -> None:
        self._storage.add(member)
        if kind in (FAULT, HANG):
            self._failures(kind).append(member)
            return
        self.compass.take(edges, counts, member.number)
        self.corpus.add(member)
        if kind == _SEED:
            self.seeds[member.name] = member
            self.compass.close_base()
            self.coverage = [Point(0.0, member.execution, 1.0)]
            return
        if member.interesting:
            self.interesting.append(member)
        self._raise_best(member.icov, member)

    def _hold_confirmation(self, member: Member, confirmation: Confirmation) -> None:
        member.confirmation = confirmation
        member.pcr = confirmation.rate
        if not self._counted and member.pcr > 0 and confirmation.ratio:
            self._raise_best(confirmation.ratio, member)

    def _raise_best(self, ratio: float, member: Member) -> None:
        if ratio > self.best:
            self.best = ratio
            self.coverage.append(Point(member.at, member.execution, ratio))

    def _failures(self, kind: str) -> list[Member]:
        return self.faults if kind == FAULT else self.hangs


# What a campaign tells while it runs.


class Began(NamedTuple):
    """The seeds have run.

    :param base: executed lines, or edges, as :param unit: says. :param notes: what the user should know.
    """

    base: int
    seeds: int
    rules: int
    limit: int
    notes: tuple[str, ...]
    unit: str = "lines"


class Found(NamedTuple):
    """An input that executes more lines than any before, or a new fault or hang.

    :param kind: one of :data:`perun.fuzz.results.KINDS`.
    """

    kind: str
    member: Member
    seconds: float


class Tested(NamedTuple):
    """What measuring an input said of it.

    :param outcome: `ok`, `fault` or `hang`. :param ending: in words, where it is not `ok`.
    :param confirmation: None where it is not `ok`.
    """

    outcome: str
    confirmation: Confirmation | None = None
    ending: str = ""


class Status(NamedTuple):
    """Where the campaign stands.

    :param phase: what it does now. :param seconds: so far, and :param left: until its time is over; None
        where it ends by executions. :param per_second: executions, of late.
    :param edges: lines or edges that some input has executed. :param ratio: the best, to the seeds.
    :param waiting: inputs that were stopped early, and wait for their time. :param rules: the best ones, as
        `T.10 41`.
    """

    phase: str
    seconds: float
    left: float | None
    executions: int
    per_second: float
    corpus: int
    edges: int
    ratio: float
    results: int
    hangs: int
    faults: int
    waiting: int
    rules: tuple[str, ...]


Event = Began | Found | Status
Test = Callable[[Member, Member, float], Tested]
"""Measures a member beside its seed, within about so many seconds."""
