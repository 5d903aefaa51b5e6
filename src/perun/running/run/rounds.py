"""Rounds of a session: the runs of a job are spread over visits of its version, and go on where they decide.

Each version is visited several times, the versions in another random order each time, so that what disturbs
the machine for a while disturbs all of them alike. After the first rounds the neighbours are compared. Those
that are settled leave; the others get more rounds, as long as there is time. Looking again and again costs no
false alarms: each look has an error level of its own (:mod:`perun.models.two_samples.sequential`), which the
profiles keep, so that whoever compares them later says the same.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.core.errors import ProfileError
from perun.core.process.layout import Layout
from perun.history import baseline
from perun.history.baseline import BaselineComparison
from perun.measurement.many import among
from perun.measurement.noise import WINDOW
from perun.measurement.verdict import is_change, settled
from perun.plugin.api import MinorVersion
from perun.repository import lookup
from perun.repository.jobs import Job
from perun.repository.repository import Repository
from perun.running.run.schedule import (
    NO_SHARES,
    ROUNDS,
    Share,
    Shares,
    Task,
    VersionSlot,
    configuration_of,
    nearest_before,
    rounds_of,
    shared_last,
)
from perun.running.run.shares import VersionsAhead, looked
from perun.store.summaries import ProfileSummary, profile_summary_of

if TYPE_CHECKING:
    from perun.profile.factory import Profile
    from perun.profile.helpers import ProfileInfo

LOOKS: Final = (ROUNDS, 7, 10, 14, 20, 28, 40, 56, 80, 112)
"""Rounds after which neighbours are compared; the last is the end in any case."""
SPENDING: Final = 0.25
"""Exponent of the spending function of these looks: half of the level is spent by the first of them, as most
neighbours are settled there."""
VISIT: Final = 0.05
"""Seconds that the timed runs of a visit take at least, as far as the job asks for so many runs. Of the same
time many short visits tell more than few long ones, as machines are noisier between visits than within."""


class SessionState(NamedTuple):
    """What the session says of a version and a job.

    :param rounds: in which it was measured. :param judged: beside the nearest version before that is of the
        session; None where nothing can be compared.
    """

    version: MinorVersion
    job: Job
    rounds: int
    judged: BaselineComparison | None


class Rounds:
    """The visits of one session.

    :param slots: the first rounds, which are run in any case. :param versions: of these, in any order.
    :param budget: seconds of rounds for each version in all, without what builds it; 0 for no more rounds
        than these.
    :param spread: the runs that each job asks for are spread over its visits, else each has all of them.
    :param session_id: its id.
    :param shares: what versions share with others; None where that is to be looked for: see :meth:`look`.
    :ivar budget: as given, or what benchmarks need. :ivar looks: whether that is still to be done.
    :ivar jobs: those of the slots, by identity.
    :ivar open: the versions, by checksum, and jobs, by identity, that a neighbour was not settled with at the
        last look.
    """

    def __init__(
        self,
        repo: Repository,
        slots: Sequence[VersionSlot],
        versions: Sequence[MinorVersion],
        budget: float,
        session_id: str,
        *,
        spread: bool = True,
        shares: Shares | None = NO_SHARES,
        rng: random.Random | None = None,
    ) -> None:
        self.id = session_id
        self._repo = repo
        self.spread = spread
        self._rules = baseline.rules_of(repo)
        self.looks = shares is None
        self.shares = shares or NO_SHARES
        self.versions = list(versions)
        self.budget = budget
        self._known = baseline.KnownSummaries(repo)
        self._rng = rng or random.Random()
        self._spent = self._beside = 0.0
        self._facts: dict[tuple[str, int], list[ProfileSummary]] = {}
        self.jobs = {id(one.job): one.job for slot in slots for one in slot.tasks}
        self._layouts: dict[tuple[str, str, str], Layout] = {}
        self._run_seconds: dict[int, float] = {}
        self._visit_seconds: dict[tuple[str, int], float] = {}
        self._next = max((one.number for slot in slots for one in slot.tasks), default=-1) + 1
        self._round = max((slot.round for slot in slots), default=0)
        self._is_last = False
        self.open: set[tuple[str, int]] = set()

    @property
    def is_sequential(self) -> bool:
        """Whether the number of rounds depends on what they say."""
        return self.budget > 0

    @cached_property
    def _before(self) -> dict[str, str]:
        """The nearest of the versions before each of them; history is walked for it."""
        return nearest_before(self._repo, self.versions)

    def look(
        self, slots: Iterable[VersionSlot], places: VersionsAhead, report: Callable[[str], None]
    ) -> None:
        """Look which versions share what is measured of others, before any is.

        :param slots: what is to be run. :param report: called with the activity.
        """
        tasks = {(slot.version.checksum, id(task.job)) for slot in slots for task in slot.tasks}
        self.looks = False
        self.shares = looked(self._repo, self.versions, self.jobs, tasks, places, report)

    def share_of(self, version: str, job: Job) -> Share | None:
        """What the version shares with another one that is measured; None where it is measured itself."""
        return self.shares.get((version, id(job)))

    def source(self, version: str, job: Job) -> Share | None:
        """What is measured of the version, where others share it; else None."""
        is_shared = any((share.version, key) == (version, id(job)) for (_, key), share in self.shares.items())
        return Share(version) if is_shared else None

    def measured(self, version: str, task: Task) -> Profile | None:
        """What the version has measured in the round of the task, where that is complete and stored."""
        for info, job, fact in self._stored(version):
            number = fact.headline.rounds[0].number if fact.headline else None
            if job is task.job and number == task.round and not fact.incomplete:
                with suppress(ProfileError):  # removed meanwhile, or damaged
                    return lookup.load(self._repo, lookup.ProfileLocation(info))
        return None

    def levels(self, round: int, share: float = 1.0) -> tuple[float, float] | None:
        """The error levels of a look after that round, which counts from 0; None where nobody looks.

        :param share: of both, where others are looked at as well.
        """
        if not self.is_sequential:
            return None
        ends = self._is_last and round + 1 == self._round
        weak = _level(share * (1 - self._rules.maybe_confidence), round + 1, ends=ends)
        return _level(share * (1 - self._rules.confidence), round + 1, ends=ends), weak

    def by_chance(self) -> dict[tuple[str, int], float]:
        """The benchmarks whose change chance explains, among all that the version has, and the share of the
        levels that each of them has to keep to."""
        found: dict[tuple[str, int], float] = {}
        alpha = 1 - self._rules.confidence
        for version in self._before:
            verdicts = {}
            for key, job in self.jobs.items():
                judged = self._judged(version, job, tested=True) if job.is_benchmark else None
                if judged is not None and judged.verdict is not None:
                    verdicts[key] = judged.verdict
            adjusted, share = among([one.difference.p_value for one in verdicts.values()], alpha)
            for (key, one), chance in zip(verdicts.items(), adjusted, strict=True):
                if is_change(one) and chance > alpha:
                    found[version, key] = share
        return found

    def visit(self, task: Task) -> Job:
        """The job as one visit runs it: with a share of its runs, and in the first round one to warm up."""
        job, params = task.job, task.job.collector.params
        if not self.spread or rounds_of(job) == 1:
            return job
        runs = math.ceil(params.repeat / rounds_of(job))
        if seconds := self._run_seconds.get(id(job)):
            runs = min(max(runs, math.ceil(VISIT / seconds)), params.repeat)
        own = {"repeat": runs}
        if hasattr(params, "warmup"):
            own["warmup"] = 0 if task.round else min(params.warmup, 1)
        return replace(job, collector=replace(job.collector, params=replace(params, **own)))

    def layout(self, job: Job) -> Layout | None:
        """What draws where the program and its files lie in each visit, where the job is judged by several:
        else what a place makes of a version would look like its own."""
        if not self.spread or rounds_of(job) == 1:
            return None
        return self._layouts.setdefault((job.cmd, job.args, job.workload), Layout(self._rng))

    def learn(self, version: str, job: Job, profile: Profile, seconds: float | None) -> None:
        """A visit has given a complete profile, and took so long; None of what was measured of another
        version. Where runs are not spread, nobody asks."""
        if not self.spread:
            return
        self.take(version, job, profile_summary_of(profile), seconds)
        if seconds is None:
            return
        params = profile["collector_info"].get("params")
        if isinstance(params, Mapping) and (runs := params.get("repeat")):
            self._run_seconds.setdefault(id(job), seconds / (runs + params.get("warmup", 0)))

    def take(self, version: str, job: Job, fact: ProfileSummary, seconds: float | None) -> None:
        """As :meth:`learn`, of what is known of the profile."""
        self._facts.setdefault((version, id(job)), []).append(fact)
        if seconds is not None:
            self._spent += seconds
            self._visit_seconds[version, id(job)] = seconds

    def add(self, of_version: Mapping[str, Sequence[Job]], rounds: int, each: float) -> list[VersionSlot]:
        """The first rounds of benchmarks, which are known when the suites of the versions are built.

        :param of_version: those of each version. :param each: seconds of a benchmark of a version, where
            there are fewer.
        """
        made: list[VersionSlot] = []
        for number in range(1, rounds + 1):
            for version in self._rng.sample(self.versions, len(self.versions)):
                own = of_version.get(version.checksum, ())
                tasks = tuple(Task(place, job, number - 1) for place, job in enumerate(own, self._next))
                if tasks:
                    made.append(VersionSlot(version, tasks, number))
                    self._next += len(tasks)
        self.jobs |= {id(job): job for own in of_version.values() for job in own}
        self._round = max(self._round, rounds)
        self.need(each)
        return made

    def need(self, each: float) -> None:
        """Have so many seconds for each benchmark of a version at least, where rounds may go on."""
        if self.is_sequential:
            self.budget = max(self.budget, each * len(self.benchmarks))

    @property
    def benchmarks(self) -> list[Job]:
        """The jobs that are benchmarks of suites."""
        return [job for job in self.jobs.values() if job.is_benchmark]

    def spend(self, seconds: float) -> None:
        """A visit took so long beside what was learned of it, without what built the version."""
        self._spent += seconds
        self._beside = seconds

    def more(self) -> list[VersionSlot]:
        """The next round, of what is not settled; empty where there is nothing, or no time."""
        if not self.is_sequential or self._is_last:
            return []
        if self._round in LOOKS:
            self._look()
        needed = sum(self._visit_seconds.get(one, 0.0) for one in self.open)
        needed += self._beside * len({version for version, _ in self.open})
        measured = sum(
            any((version.checksum, key) not in self.shares for key in self.jobs) for version in self.versions
        )
        left = self.budget * measured - self._spent
        if not self.open or needed > left:
            return []
        self._round += 1
        # What ends by its time, whatever it says, spends at its end what is left of the level.
        self._is_last = 2 * needed > left or self._round == LOOKS[-1]
        made: list[VersionSlot] = []
        for version in self._rng.sample(self.versions, len(self.versions)):
            jobs = [job for key, job in self.jobs.items() if (version.checksum, key) in self.open]
            tasks = tuple(Task(place, job, self._round - 1) for place, job in enumerate(jobs, self._next))
            if tasks:
                made.append(VersionSlot(version, tasks, self._round))
                self._next += len(tasks)
        return shared_last(made, self.shares)

    def known(self) -> Iterator[SessionState]:
        """What the session says by now, in the order of the versions and jobs, of each beside the nearest
        version of the session before it."""
        for version, job, facts in self._measured():
            yield SessionState(version, job, len(facts), self._judged(version.checksum, job))

    def reported(self) -> Iterator[SessionState]:
        """The same of profiles that are registered: what the whole history says, as all commands do."""
        read = baseline.KnownSummaries(self._repo)
        for version, of_version in groupby(self._measured(), lambda one: one[0]):
            values = baseline.values_of_version(self._repo, version.checksum, read)
            wanted = {}
            measured = list(of_version)
            for _, job, facts in measured:
                series = baseline.headline_series_of(configuration_of(job), facts[-1])
                if series is not None and series in values:
                    wanted[id(job)] = series
            lines = baseline.lines_of_ancestors(self._repo, version.checksum, wanted.values(), read)
            for _, job, facts in measured:
                series = wanted.get(id(job))
                judged = None
                if series is not None:
                    judged = baseline.compare_with_line(values[series], lines[series], self._rules)
                yield SessionState(version, job, len(facts), judged)

    def _measured(self) -> Iterator[tuple[MinorVersion, Job, list[ProfileSummary]]]:
        for version in self.versions:
            for job in self.jobs.values():
                if facts := self._facts.get((version.checksum, id(job))):
                    yield version, job, facts

    def recall(self) -> None:
        """Take in what an earlier process has measured in this session, and stored."""
        for version in self.versions:
            for _, job, fact in self._stored(version.checksum):
                if job.is_benchmark:  # of what was measured by then, the journal tells
                    continue
                self._facts.setdefault((version.checksum, id(job)), []).append(fact)

    def _stored(self, version: str) -> Iterator[tuple[ProfileInfo, Job, ProfileSummary]]:
        """The profiles of the version that this session has given, and that have a value."""
        jobs = {configuration_of(job): job for job in self.jobs.values()}
        for infos in (lookup.registered(self._repo, version), lookup.pending(self._repo)):
            for info, fact in self._known.of(infos).items():
                job, headline = jobs.get(info.configuration), fact.headline
                is_own = info.is_registered or fact.origin == version
                if is_own and job and headline and headline.rounds[0].session == self.id:
                    yield info, job, fact

    def _look(self) -> None:
        """See which neighbours are settled: decided, or with a narrow interval."""
        self.open = set()
        for version, before in self._before.items():
            for key, job in self.jobs.items():
                rounds = len(self._facts.get((version, key), ()))
                if rounds < ROUNDS or rounds_of(job) < ROUNDS:
                    continue
                # The k-th value of a benchmark is of the k-th round: what has left does not come back.
                if job.is_benchmark and min(rounds, len(self._facts.get((before, key), ()))) < self._round:
                    continue
                found = self._judged(version, job)
                verdict = None if found is None else found.verdict
                if verdict and not (verdict.difference.unknown or settled(verdict, self._rules)):
                    self.open |= {(version, key), (before, key)}
        for version, key in self.by_chance():
            self.open |= {(version, key), (self._before[version], key)}
        # What is measured again is so of all that share it.
        shares = self.shares
        measured = {(shares[one].version if one in shares else one[0], one[1]) for one in self.open}
        self.open = measured | {one for one, share in shares.items() if (share.version, one[1]) in measured}

    def _judged(self, version: str, job: Job, *, tested: bool = False) -> BaselineComparison | None:
        own = self._value(version, job)
        line: list[tuple[str, baseline.SeriesValue]] = []
        before = self._before.get(version)
        while before is not None and len(line) < WINDOW:
            if (value := self._value(before, job)) is not None:
                line.append((before, value))
            before = self._before.get(before)
        return None if own is None else baseline.compare_with_line(own, line, self._rules, tested=tested)

    def _value(self, version: str, job: Job) -> baseline.SeriesValue | None:
        facts = self._facts.get((version, id(job)), ())
        valued = [one for one in facts if one.headline is not None and not one.incomplete]
        return baseline.value_of(valued) if valued else None


def _level(alpha: float, rounds: int, *, ends: bool) -> float:
    from perun.models.two_samples.sequential import level

    sizes = [*(look for look in LOOKS if look < rounds), rounds]
    return level(alpha, sizes, LOOKS[-1], SPENDING, ends=ends)
