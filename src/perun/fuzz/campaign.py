"""The loop of the fuzzer (manual 9.5 to 9.7): seeds, gathering by coverage, tests by measuring.

A campaign is a generator of events. It may be left at any moment, by an exception or by no longer asking for
events; :meth:`Campaign.state` is whole in between, and what was found is in the journal.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Final

from perun.fuzz.compass import Compass
from perun.fuzz.corpus import Corpus, Member, name_of
from perun.fuzz.events import Began, Event, Found, Status, Test
from perun.fuzz.executing import Executor, Observed, Task
from perun.fuzz.initial import Tried, try_seeds
from perun.fuzz.journal import Entry, Journal
from perun.fuzz.mutating import Mutation, Mutator
from perun.fuzz.patience import Patience, Waiting
from perun.fuzz.results import FAULT, HANG, SLOW, Point
from perun.fuzz.rules import Rule
from perun.fuzz.score import Threshold
from perun.fuzz.seeds import SeedFile
from perun.fuzz.settings import Settings
from perun.process.outcome import outcome

MOST_KEPT: Final = 100
"""Faults, and hangs, that are kept: further ones are counted."""
_SEEN: Final = 1_000_000
"""Inputs that are remembered, so that none is run twice."""
_STATUS: Final = 0.25
"""Seconds between two reports of the status."""
_TICK: Final = 1.0
"""Seconds between two lines of the journal with the counts."""
_ASIDE: Final = 0.25
"""Share of the time for tests of a campaign that goes on."""
_ROUNDS: Final = 2
"""Times as many inputs are measured at the end as are enough for a round before."""
_RUNS: Final = 6
"""Runs of an input that a test takes at least."""
_DRY: Final = 1000
"""Iterations without a new input after which there is none to be expected."""


class Campaign:
    """One search for slow inputs.

    :param test: measures an input. :param random: decides everything that is left to chance.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        executor: Executor,
        settings: Settings,
        test: Test,
        journal: Journal,
        random: Random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self.random = random
        self.compass = Compass()
        self.corpus = Corpus(self.compass)
        self.mutator = Mutator(rules, settings.strategy, settings.limit, random)
        self.threshold = Threshold(settings.rate)
        self.seeds: dict[str, Member] = {}
        self.base = 0
        self.interesting: list[Member] = []
        self.faults: list[Member] = []
        self.hangs: list[Member] = []
        self.lost = {FAULT: 0, HANG: 0}
        self.coverage: list[Point] = []
        self.executions = 0
        self.iterations = 0
        self.best = 1.0
        self.ended = ""
        self.phase = "seeds"
        self._executor = executor
        self._test = test
        self._journal = journal
        self._clock = clock
        self._start = clock()
        self._before = 0.0
        self._test_seconds = 0.0
        self._numbers = 0
        self._seen: set[int] = set()
        self._patience = Patience(settings.hang, 0.0)
        self._aside: dict[int, Waiting] = {}
        self._recent: deque[tuple[float, int]] = deque(maxlen=40)
        self._reported = self._ticked = clock()

    @property
    def unit(self) -> str:
        """What is counted: `lines` or `edges`."""
        return self._executor.unit

    @property
    def seconds(self) -> float:
        """Since the beginning; without the time between the parts of a resumed campaign."""
        return self._before + self._clock() - self._start

    def run(self, seeds: Sequence[SeedFile]) -> Iterator[Event]:
        """Try the seeds, and search until the time is over.

        :raises PerunError: where no seed can be used, before anything is searched.
        """
        yield from self._begin(try_seeds(seeds, self._executor, self.settings))
        yield from self.search()

    def search(self) -> Iterator[Event]:
        """Search until the time is over; the seeds have been tried."""
        while not self._is_over():
            self.phase = "searching"
            gathering = self._gather() if self.settings.coverage else self._propose()
            found = yield from gathering
            self.threshold.adapt(found, self.settings.interesting, self.best)
            if self.settings.tests_between and not self._executor.is_busy:
                yield from self._measure_some()
        self._tick(now=True)
        yield self.status()

    def measure_rest(self, seconds: float) -> Iterator[Event]:
        """Measure what was not yet, the best first, for about so many seconds."""
        self.phase = "measuring"
        deadline = self._clock() + seconds
        for member in self._candidates()[: _ROUNDS * self.settings.interesting]:
            left = deadline - self._clock()
            if left <= 0:
                break
            if _RUNS * member.seconds > left / 2:
                continue  # others can be measured in that time
            self._measure(member, left)
            yield self.status()
        self._tick(now=True)

    def restore(self, entries: Iterable[Entry]) -> None:
        """Continue where the journal ends."""
        known: dict[int, Member] = {}
        for entry in entries:
            if entry.kind == "tick":
                self._restore_counts(entry)
            elif entry.kind == "confirmed":
                member = known.get(int(entry.values["number"]))
                if member is not None:
                    member.confirmation = entry.confirmation()
                    member.pcr = member.confirmation.rate
            elif entry.kind in ("seed", "member", FAULT, HANG):
                member = known.setdefault(entry.member().number, entry.member())
                self._seen.add(hash(member.data))
                self._numbers = max(self._numbers, member.number)
                self._restore_member(entry, member)
        self._patience = self._new_patience()
        edges = self.compass.best.nonzero()[0]
        self._executor.learn(edges, self.compass.best[edges])
        self._start = self._clock()

    def status(self) -> Status:
        """Where it stands."""
        seconds = self.seconds
        self._recent.append((seconds, self.executions))
        since, before = self._recent[0]
        left = max(0.0, self.settings.seconds - seconds)
        return Status(
            self.phase,
            seconds,
            left if self.settings.seconds < float("inf") else None,
            self.executions,
            (self.executions - before) / (seconds - since) if seconds > since else 0.0,
            len(self.corpus),
            int((self.compass.best > 0).sum()),
            self.best,
            sum(one.pcr > 0 for one in self.interesting),
            len(self.hangs) + self.lost[HANG],
            len(self.faults) + self.lost[FAULT],
            len(self._patience) + len(self._aside),
            tuple(f"{one.rule.label} {one.successes}" for one in self.mutator.best[:3]),
        )

    def _begin(self, tried: Tried) -> Iterator[Event]:
        self.executions += tried.executions
        for seed in tried.seeds:
            self._numbers += 1
            member = seed.member
            member.number, member.execution = self._numbers, self.executions
            self.seeds[member.name] = member
            self._seen.add(hash(member.data))
            self.corpus.add(member)
            self.compass.take(seed.edges, seed.counts, member.number)
            self._executor.learn(seed.edges, seed.counts)
            self._journal.member("seed", member, seed.edges, seed.counts)
        self.base = max((one.lines for one in self.seeds.values()), default=0)
        for member in self.seeds.values():
            member.icov = member.lines / self.base if self.base else 1.0
        self.compass.close_base()
        self._patience = self._new_patience()
        self._start = self._clock()
        self.coverage.append(Point(0.0, self.executions, 1.0))
        notes = (*tried.notes, *filter(None, [self._executor.note]))
        count = len(self.mutator.tallies)
        yield Began(self.base, len(self.seeds), count, self.settings.limit, notes)

    def _new_patience(self) -> Patience:
        slowest = max((one.seconds for one in self.seeds.values()), default=0.0)
        return Patience(self.settings.hang, slowest)

    def _gather(self) -> Generator[Event, None, int]:
        """Run mutations until there are enough that are interesting, or enough were run; returns how many
        there were."""
        found, dry = 0, 0
        end = self.executions + self.settings.gathering
        while found < self.settings.interesting and self.executions < end and not self._is_over():
            batch = list(islice(self._new_mutations(), end - self.executions))
            self.iterations += 1
            dry = 0 if batch else dry + 1
            if dry > _DRY:
                self.ended = "the rules make no input that is new"
                break
            limit = self._patience.of(batch[0].parent.seconds if batch else 0.0)
            tasks = [Task(number, one.data, limit) for number, one in enumerate(batch)]
            for mutation, observed in zip(batch, self._executor.run(tasks), strict=True):
                event = self._judge(Waiting(mutation, 0), observed, limit)
                if event is not None:
                    found += event.kind == SLOW and event.member.interesting
                    if event.member.icov >= self.best or event.kind != SLOW:
                        yield event
                if self._is_time_to_report():
                    yield self.status()
                if self._is_over():
                    return found
            yield from self._run_waiting()
        return found

    def _propose(self) -> Generator[Event, None, int]:
        """Without coverage each mutation is to be measured."""
        before = len(self.interesting)
        for mutation in islice(self._new_mutations(), self.settings.interesting):
            self.executions += 1
            member = self._member(mutation)
            member.icov, member.interesting = 1.0, True
            self.interesting.append(member)
            self._measure(member, self.settings.seconds - self.seconds)
            if member.pcr > 0:
                self._keep("member", member)
                self.corpus.add(member)
                yield Found(SLOW, member, self.seconds)
            else:
                self.interesting.remove(member)
            yield self.status()
            if self._is_over():
                break
        return len(self.interesting) - before

    def _new_mutations(self) -> Iterator[Mutation]:
        """Those of one parent that were not run before."""
        parent = self.corpus.choose(self.random)
        for mutation in self.mutator.mutations(parent, self.corpus, self.base):
            key = hash(mutation.data)
            if key in self._seen:
                continue
            if len(self._seen) < _SEEN:
                self._seen.add(key)
            yield mutation

    def _judge(self, tried: Waiting, observed: Observed, timeout: float) -> Found | None:
        """Keep what is worth it; the event, if it is."""
        self.executions += 1
        self._tick()
        mutation = tried.mutation
        if observed.outcome == "hang" and timeout < self.settings.hang:
            self._patience.stopped(tried, observed.seconds)
            return None
        if tried.level:
            self._patience.spend(tried, observed.seconds)
        member = self._member(mutation)
        member.seconds = observed.seconds
        if observed.outcome != "ok":
            return self._keep_failure(observed, member)
        member.lines = observed.total
        member.icov = observed.total / self.base if self.base else 1.0
        edges, counts = self.compass.larger(observed.edges, observed.counts)
        exceeds = self.threshold.is_exceeded(member.lines, self.base)
        member.interesting = exceeds and member.lines > mutation.parent.lines
        if not (member.interesting or edges.size):
            return None
        hot, hot_ratio = self.compass.hottest(edges, counts)
        member.hot, member.hot_ratio = hot, hot_ratio
        self.compass.take(edges, counts, member.number)
        self._executor.learn(edges, counts)
        self.corpus.add(member)
        self.mutator.credit(mutation.rules)
        self._keep("member", member, edges, counts)
        if member.interesting:
            self.interesting.append(member)
        if member.icov > self.best:
            self.best = member.icov
            self.coverage.append(Point(member.at, self.executions, self.best))
        return Found(SLOW, member, self.seconds)

    def _keep_failure(self, observed: Observed, member: Member) -> Found | None:
        """A fault or a hang; None where there are enough of them."""
        kind = FAULT if observed.outcome == "fault" else HANG
        kept = self.faults if kind == FAULT else self.hangs
        if len(kept) >= MOST_KEPT:
            self.lost[kind] += 1
            return None
        hang = f"did not end within {self.settings.hang:g} s"
        member.ending = outcome(-observed.code) if kind == FAULT else hang
        kept.append(member)
        self._keep(kind, member)
        return Found(kind, member, self.seconds)

    def _member(self, mutation: Mutation) -> Member:
        self._numbers += 1
        parent = mutation.parent
        name = name_of(Path(parent.seed), mutation.data)
        rules = (*parent.rules, *mutation.rules)
        return Member(
            self._numbers, name, mutation.data, parent.name, parent.seed, rules,
            at=self.seconds, execution=self.executions,
        )  # fmt: skip

    def _run_waiting(self) -> Iterator[Event]:
        """Give inputs that were stopped early the whole time until a hang, one at a time."""
        for task, observed in self._executor.finished():
            event = self._judge(self._aside.pop(task.number), observed, task.timeout)
            if event is not None:
                yield event
        self._patience.adapt(self.seconds)
        chosen = None
        if not self._aside:
            seeks = not self.hangs and self._patience.next_hang(self.seconds)
            chosen = seeks or self._patience.next(self.seconds, self.random)
        if chosen is not None:
            waiting, seconds = chosen
            number = -1 - self.executions
            self._aside[number] = waiting
            self._executor.begin(Task(number, waiting.mutation.data, seconds))

    def _candidates(self) -> list[Member]:
        """What is to be measured, the best first; of the same ratio the smaller one."""
        found = [one for one in self.interesting if one.confirmation is None and not one.ending]
        return sorted(found, key=lambda one: (-one.icov, len(one.data), one.number))

    def _measure_some(self) -> Iterator[Event]:
        """Measure the best of what was gathered, as long as that takes its share of the time at most."""
        for member in self._candidates()[: self.settings.interesting]:
            allowed = _ASIDE * self.seconds - self._test_seconds
            if allowed <= 0 or self._is_over():
                return
            if _RUNS * member.seconds > allowed:
                continue
            self.phase = "measuring"
            self._measure(member, allowed)
            yield self.status()

    def _measure(self, member: Member, seconds: float) -> None:
        begun = self._clock()
        tested = self._test(member, self.seeds[member.seed], seconds)
        self._test_seconds += self._clock() - begun
        if tested.outcome != "ok":
            member.ending = tested.ending
            kept = self.faults if tested.outcome == "fault" else self.hangs
            if len(kept) < MOST_KEPT:
                kept.append(member)
            return
        member.confirmation = tested.confirmation
        if tested.confirmation is not None:
            member.pcr = tested.confirmation.rate
            self._journal.confirmed(member)
            if member.pcr > 0:
                self.mutator.credit(member.rules, degradations=True)
                if not self.settings.coverage and tested.confirmation.ratio:
                    self.best = max(self.best, tested.confirmation.ratio)

    def _keep(self, kind: str, member: Member, edges: object = (), counts: object = ()) -> None:
        self._journal.member(kind, member, edges, counts)

    def _is_over(self) -> bool:
        if self.ended:
            return True
        if self.settings.executions is not None and self.executions >= self.settings.executions:
            self.ended = f"{self.settings.executions} executions were made"
        elif self.seconds >= self.settings.seconds:
            self.ended = "the time is over"
        return bool(self.ended)

    def _is_time_to_report(self) -> bool:
        now = self._clock()
        if now - self._reported < _STATUS:
            return False
        self._reported = now
        return True

    def _tick(self, *, now: bool = False) -> None:
        """Write the counts to the journal, once a second."""
        if not now and self._clock() - self._ticked < _TICK:
            return
        self._ticked = self._clock()
        rules = {
            label: [one.applied, one.increases, one.degradations]
            for label, one in self.mutator.tallies.items()
            if one.applied
        }
        self._journal.write(
            "tick",
            seconds=self.seconds,
            executions=self.executions,
            iterations=self.iterations,
            rate=self.threshold.rate,
            lost=self.lost,
            rules=rules,
        )

    def _restore_counts(self, entry: Entry) -> None:
        values = entry.values
        self._before = float(values["seconds"])
        self.executions, self.iterations = int(values["executions"]), int(values["iterations"])
        self.threshold.rate = float(values["rate"])
        self.lost = {**self.lost, **values["lost"]}
        for label, counts in values["rules"].items():
            tally = self.mutator.tallies.get(label)
            if tally is not None:
                tally.applied, tally.increases, tally.degradations = counts

    def _restore_member(self, entry: Entry, member: Member) -> None:
        if entry.kind in (FAULT, HANG):
            (self.faults if entry.kind == FAULT else self.hangs).append(member)
            return
        self.compass.take(*entry.counts(), member.number)
        self.corpus.add(member)
        if entry.kind == "seed":
            self.seeds[member.name] = member
            self.base = max(self.base, member.lines)
            self.compass.close_base()
            self.coverage = [Point(0.0, member.execution, 1.0)]
            return
        if member.interesting:
            self.interesting.append(member)
        if member.icov > self.best:
            self.best = member.icov
            self.coverage.append(Point(member.at, member.execution, self.best))
