"""The loop of the fuzzer (manual 9.5 to 9.7): seeds, gathering by coverage, tests by measuring.

A campaign is a generator of events. It may be left at any moment, by an exception or by no longer asking for
events; :attr:`Campaign.found` is whole in between, and in the journal.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Final

from perun.core.process.command import outcome
from perun.fuzz.corpus import CorpusMember, Threshold, name_of
from perun.fuzz.executing import Executor, InputTask, RunObservation
from perun.fuzz.findings import (
    CampaignJournal,
    CampaignStatus,
    Event,
    Findings,
    InterestingInput,
    JournalLine,
    SeedRuns,
    Test,
)
from perun.fuzz.mutating import Mutation, Mutator
from perun.fuzz.patience import InputTrial, Patience
from perun.fuzz.results import FAULT, HANG, SLOW, Confirmation
from perun.fuzz.rules import MutationRule
from perun.fuzz.seeds import SearchSettings, SeedFile, SeedTrials, try_seeds

# Measuring what was found beside its seed (manual 9.5): the best first, in a share of the time.

_ASIDE: Final = 0.25
"""Share of the time for tests of a campaign that goes on."""
_ROUNDS: Final = 2
"""Times as many inputs are measured at the end as are enough for a round before."""
_RUNS: Final = 6
"""Runs of an input that a test takes at least."""


class MemberMeasurement:
    """Measures members; what that says raises their scores, and those of the rules that made them.

    :param test: measures one. :param seconds: since the campaign began.
    """

    def __init__(
        self,
        found: Findings,
        mutator: Mutator,
        test: Test,
        settings: SearchSettings,
        seconds: Callable[[], float],
    ) -> None:
        self._found = found
        self._mutator = mutator
        self._test = test
        self._settings = settings
        self._seconds = seconds
        self._spent = 0.0

    def between(self) -> Iterator[CorpusMember]:
        """Measure the best of what is new; each once it was, as long as all tests take their share of the
        time at most."""
        for member in self._candidates()[: self._settings.interesting]:
            now = self._seconds()
            allowed = min(_ASIDE * now - self._spent, self._settings.seconds - now)
            if allowed <= 0:
                return
            if _RUNS * member.seconds > allowed:
                continue
            self.measure(member, allowed)
            yield member

    def rest(self, seconds: float) -> Iterator[CorpusMember]:
        """Measure what was not yet for about so many seconds; each once it was."""
        deadline = self._seconds() + seconds
        for member in self._candidates()[: _ROUNDS * self._settings.interesting]:
            left = deadline - self._seconds()
            if left <= 0:
                return
            if _RUNS * member.seconds > left / 2:
                continue  # others can be measured in that time
            self.measure(member, left)
            yield member

    def measure(self, member: CorpusMember, seconds: float) -> None:
        """Measure one for about so many seconds; one that fails then is a fault, or a hang."""
        confirmation = self._tested(member, seconds)
        if confirmation is not None:
            self._confirm(member, confirmation)

    def try_one(self, member: CorpusMember, seconds: float) -> bool:
        """Measure one that nothing is known of; whether it is slower, and so one of those that were found."""
        confirmation = self._tested(member, seconds)
        if confirmation is None or confirmation.rate <= 0:
            return False
        self._found.add(member)
        self._confirm(member, confirmation)
        return True

    def _tested(self, member: CorpusMember, seconds: float) -> Confirmation | None:
        begun = self._seconds()
        tested = self._test(member, self._found.seeds[member.seed], seconds)
        self._spent += self._seconds() - begun
        if tested.outcome != "ok":
            member.ending = tested.ending
            self._found.add_failure(tested.outcome, member)
            return None
        return tested.confirmation

    def _confirm(self, member: CorpusMember, confirmation: Confirmation) -> None:
        self._found.confirm(member, confirmation)
        if member.pcr > 0:
            self._mutator.credit(member.rules, degradations=True)

    def _candidates(self) -> list[CorpusMember]:
        """What is to be measured, the best first; of the same ratio the smaller one."""
        found = self._found.interesting
        new = [one for one in found if one.confirmation is None and not one.ending]
        return sorted(new, key=lambda one: (-one.icov, one.size, one.number))


_SEEN: Final = 1_000_000
"""Inputs that are remembered, so that none is run twice."""
_STATUS: Final = 0.25
"""Seconds between two reports of the status."""
_TICK: Final = 1.0
"""Seconds between two lines of the journal with the counts."""
_DRY: Final = 1000
"""Iterations without a new input after which there is none to be expected."""
_ROOM: Final = 64 * 1024 * 1024
"""Bytes of the mutations that wait to be run."""
_QUICK: Final = 0.1
"""Seconds of a parent whose children may take all the time there is."""
_FOR_SLOW: Final = 0.2
"""Share of the time for children of others: a quick parent has a hundred in the time of one of these."""


class Campaign:
    """One search for slow inputs.

    :param test: measures an input. :param random: decides everything that is left to chance.
    """

    def __init__(
        self,
        rules: Sequence[MutationRule],
        executor: Executor,
        settings: SearchSettings,
        test: Test,
        journal: CampaignJournal,
        random: Random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self.random = random
        self.found = Findings(journal, counted=settings.coverage)
        self.mutator = Mutator(rules, settings.strategy, settings.limit, random)
        self.threshold = Threshold(settings.rate)
        self.executions = 0
        self.iterations = 0
        self.ended = ""
        self.phase = "seeds"
        self._executor = executor
        self._journal = journal
        self._clock = clock
        self._start = clock()
        self._before = 0.0
        self._measuring = MemberMeasurement(self.found, self.mutator, test, settings, lambda: self.seconds)
        self._seen: set[int] = set()
        self._patience = Patience(settings.hang, 0.0, settings.limit)
        self._aside: dict[int, InputTrial] = {}
        self._slow_spent = 0.0
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
        yield self._begin(try_seeds(seeds, self._executor, self.settings, self._until))
        yield from self.search()

    def search(self) -> Iterator[Event]:
        """Search until the time is over; the seeds have been tried."""
        while not self._is_over():
            self.phase = "searching"
            gathering = self._gather() if self.settings.coverage else self._propose()
            number = yield from gathering
            self.threshold.adapt(number, self.settings.interesting, self.found.best)
            if self.settings.tests_between and not self._executor.is_busy and not self._is_over():
                yield from self._statuses(self._measuring.between())
        self._tick(now=True)
        yield self.status()

    def measure_rest(self, seconds: float) -> Iterator[Event]:
        """Measure what was not yet, the best first, for about so many seconds."""
        yield from self._statuses(self._measuring.rest(seconds))
        self._tick(now=True)

    def restore(self, entries: Iterable[JournalLine]) -> None:
        """Continue where the journal ends."""
        for entry in entries:
            if entry.kind == "tick":
                self._restore_counts(entry)
                continue
            member = self.found.restore(entry)
            if member is not None:
                self._seen.add(hash(member.data))
                # What was found after the last line with the counts says how far it was.
                self.executions = max(self.executions, member.execution)
                self._before = max(self._before, member.at)
        self._patience = Patience(self.settings.hang, self.found.slowest_seed, self.settings.limit)
        compass = self.found.compass
        edges = compass.best.nonzero()[0]
        self._executor.learn(edges, compass.best[edges])
        self._start = self._clock()

    def status(self) -> CampaignStatus:
        """Where it stands."""
        seconds = self.seconds
        self._recent.append((seconds, self.executions))
        since, before = self._recent[0]
        left = max(0.0, self.settings.seconds - seconds)
        found = self.found
        return CampaignStatus(
            self.phase,
            seconds,
            left if self.settings.seconds < float("inf") else None,
            self.executions,
            (self.executions - before) / (seconds - since) if seconds > since else 0.0,
            len(found.corpus),
            int((found.compass.best > 0).sum()),
            found.best,
            sum(one.pcr > 0 for one in found.interesting),
            len(found.hangs) + found.lost[HANG],
            len(found.faults) + found.lost[FAULT],
            len(self._patience) + len(self._aside),
            tuple(f"{one.rule.label} {one.successes}" for one in self.mutator.best[:3]),
        )

    @property
    def _until(self) -> float:
        """When the time for searching is over, on the clock of processes."""
        return time.monotonic() + self.settings.seconds - self.seconds

    def _begin(self, tried: SeedTrials) -> SeedRuns:
        self.executions += tried.executions
        self.found.add_seeds(tried.seeds, self.executions)
        for seed in tried.seeds:
            self._seen.add(hash(seed.member.data))
            self._executor.learn(seed.edges, seed.counts)
        self._patience = Patience(self.settings.hang, self.found.slowest_seed, self.settings.limit)
        notes = (*tried.notes, *filter(None, [self._executor.note]))
        count = len(self.mutator.tallies)
        return SeedRuns(self.found.base, len(tried.seeds), count, self.settings.limit, notes, self.unit)

    def _gather(self) -> Generator[Event, None, int]:
        """Run mutations until there are enough that are interesting, or enough were run; returns how many
        there were."""
        number, dry = 0, 0
        end = self.executions + self.settings.gathering
        while number < self.settings.interesting and self.executions < end and not self._is_over():
            batch = self._batch(end - self.executions)
            self.iterations += 1
            dry = 0 if batch else dry + 1
            if dry > _DRY:
                self.ended = "the rules make no input that is new"
                break
            limit = self._patience.of(batch[0].parent.seconds if batch else 0.0)
            until = self._until
            tasks = [InputTask(place, one.data, limit, until) for place, one in enumerate(batch)]
            for mutation, observed in zip(batch, self._executor.run(tasks), strict=True):
                event = self._judge(mutation, observed)
                if event is not None:
                    number += event.kind == SLOW and event.member.interesting
                    if event.member.icov >= self.found.best or event.kind != SLOW:
                        yield event
                if self._is_time_to_report():
                    yield self.status()
                if self._is_over():
                    return number
            yield from self._run_waiting()
        return number

    def _propose(self) -> Generator[Event, None, int]:
        """Without coverage each mutation is to be measured."""
        before = len(self.found.interesting)
        for mutation in self._batch(self.settings.interesting):
            if self._is_over():
                break
            self.executions += 1
            self._tick()
            member = self._member(mutation)
            member.icov, member.interesting = 1.0, True
            if self._measuring.try_one(member, self.settings.seconds - self.seconds):
                yield InterestingInput(SLOW, member, self.seconds)
            yield self.status()
        return len(self.found.interesting) - before

    def _batch(self, most: int) -> list[Mutation]:
        """Mutations of one parent that were not run before."""
        is_spent = self._slow_spent > _FOR_SLOW * self.seconds
        quick = max(_QUICK, 4 * self.found.slowest_seed) if is_spent else math.inf
        parent = self.found.corpus.choose(self.random, quick)
        batch: list[Mutation] = []
        size = 0
        for mutation in self.mutator.mutations(parent, self.found.corpus, self.found.base):
            key = hash(mutation.data)
            if key not in self._seen:
                if len(self._seen) < _SEEN:
                    self._seen.add(key)
                batch.append(mutation)
                size += len(mutation.data)
            if len(batch) >= most or size >= _ROOM or self._is_over():
                break  # of a large input each mutation takes its time
        return batch

    def _judge(
        self, mutation: Mutation, observed: RunObservation, trial: InputTrial | None = None
    ) -> InterestingInput | None:
        """Keep what is worth it; the event, if it is.

        :param trial: where it ran again.
        """
        self.executions += 1
        self._tick()
        ended = observed.outcome == "ok"
        if ended:
            self._patience.ended(mutation, observed.total, observed.seconds)
        if trial is not None:
            self._patience.learned(trial, observed.total if ended else None, observed.seconds)
        elif observed.outcome == "hang":
            self._patience.stopped(mutation, observed.limit)
        if trial is None and mutation.parent.seconds > _QUICK:
            self._slow_spent += observed.seconds
        if observed.outcome == "hang" and observed.limit < self.settings.hang:
            return None
        if observed.outcome != "ok":
            return self._keep_failure(observed, self._member(mutation, observed))
        edges, counts = self.found.compass.larger(observed.edges, observed.counts)
        exceeds = self.threshold.is_exceeded(observed.total, self.found.base)
        interesting = exceeds and observed.total > mutation.parent.lines
        if not (interesting or edges.size):
            return None
        member = self._member(mutation, observed)
        member.lines = observed.total
        member.icov = self.found.ratio(observed.total)
        member.interesting = interesting
        self.found.add(member, edges, counts)
        self._executor.learn(edges, counts)
        self.mutator.credit(mutation.rules)
        return InterestingInput(SLOW, member, self.seconds)

    def _keep_failure(self, observed: RunObservation, member: CorpusMember) -> InterestingInput | None:
        """A fault or a hang; None where there are enough of them."""
        kind = FAULT if observed.outcome == "fault" else HANG
        hang = f"did not end within {self.settings.hang:g} s"
        member.ending = outcome(-observed.code) if kind == FAULT else hang
        return InterestingInput(kind, member, self.seconds) if self.found.add_failure(kind, member) else None

    def _member(self, mutation: Mutation, observed: RunObservation | None = None) -> CorpusMember:
        parent = mutation.parent
        name = name_of(Path(parent.seed), mutation.data)
        rules = (*parent.rules, *mutation.rules)
        return CorpusMember(
            self.found.next_number(), name, mutation.data, parent.name, parent.seed, rules,
            seconds=observed.seconds if observed else 0.0, at=self.seconds, execution=self.executions,
        )  # fmt: skip

    def _run_waiting(self) -> Iterator[Event]:
        """Run again inputs that were stopped early, or parts of them, one at a time."""
        for task, observed in self._executor.finished():
            trial = self._aside.pop(task.number)
            event = self._judge(trial.mutation, observed, trial)
            if event is not None:
                yield event
        self._patience.adapt(self.seconds)
        chosen = None
        if not self._aside:
            seeks = None if self.found.hangs else self._patience.next_hang(self.seconds, self.random)
            chosen = seeks or self._patience.next(self.seconds, self.random)
        if chosen is not None:
            number = -1 - self.executions
            self._aside[number] = chosen
            self._executor.begin(InputTask(number, chosen.mutation.data, chosen.seconds, self._until))

    def _statuses(self, measured: Iterable[CorpusMember]) -> Iterator[Event]:
        """The status after each that was measured."""
        self.phase = "measuring"
        for _ in measured:
            self._tick()
            yield self.status()

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
            lost=self.found.lost,
            rules=rules,
        )

    def _restore_counts(self, entry: JournalLine) -> None:
        values = entry.values
        self._before = float(values["seconds"])
        self.executions, self.iterations = int(values["executions"]), int(values["iterations"])
        self.threshold.rate = float(values["rate"])
        self.found.lost = {**self.found.lost, **values["lost"]}
        for label, counts in values["rules"].items():
            tally = self.mutator.tallies.get(label)
            if tally is not None:
                tally.applied, tally.increases, tally.degradations = counts
