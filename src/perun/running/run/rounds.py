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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.history import baseline
from perun.history.baseline import BaselineComparison
from perun.measurement.difference import more_needed
from perun.measurement.noise import WINDOW
from perun.measurement.verdict import Verdict, settled
from perun.plugin.api import MinorVersion
from perun.repository import lookup, walking
from perun.repository.jobs import Job
from perun.repository.repository import Repository
from perun.running.run.schedule import ROUNDS, Task, VersionSlot, configuration_of, rounds_of
from perun.store.summaries import ProfileSummary, profile_summary_of

if TYPE_CHECKING:
    from perun.profile.factory import Profile

LOOKS: Final = (ROUNDS, 7, 10, 14, 20, 28, 40, 56)
"""Rounds after which neighbours are compared; the last is the end in any case."""
SPENDING: Final = 0.25
"""Exponent of the spending function of these looks: half of the level is spent by the first of them, as most
neighbours are settled there."""
VISIT: Final = 0.2
"""Seconds that the timed runs of a visit take at least, as far as the job asks for so many runs: less time is
lost between visits then."""


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
    :param budget: seconds of visits for each version in all; 0 for no more rounds than these.
    :param spread: the runs that each job asks for are spread over its visits, else each has all of them.
    :param session_id: its id.
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
        rng: random.Random | None = None,
    ) -> None:
        self.id = session_id
        self._repo = repo
        self.spread = spread
        self._rules = baseline.rules_of(repo)
        self._versions = list(versions)
        self._budget = budget * len(self._versions)
        self._rng = rng or random.Random()
        self._spent = 0.0
        self._facts: dict[tuple[str, int], list[ProfileSummary]] = {}
        self._jobs = {id(one.job): one.job for slot in slots for one in slot.tasks}
        self._run_seconds: dict[int, float] = {}
        self._visit_seconds: dict[tuple[str, int], float] = {}
        self._next = max((one.number for slot in slots for one in slot.tasks), default=-1) + 1
        self._round = max((slot.round for slot in slots), default=0)
        self.open: set[tuple[str, int]] = set()

    @property
    def is_sequential(self) -> bool:
        """Whether the number of rounds depends on what they say."""
        return self._budget > 0

    @cached_property
    def _before(self) -> dict[str, str]:
        """The nearest of the versions before each of them; history is walked for it."""
        return _before(self._repo, self._versions)

    def levels(self, round: int) -> tuple[float, float] | None:
        """The error levels of a look after that round, which counts from 0; None where nobody looks."""
        if not self.is_sequential:
            return None
        return _level(1 - self._rules.confidence, round + 1), _level(
            1 - self._rules.maybe_confidence, round + 1
        )

    def visit(self, job: Job) -> Job:
        """The job as one visit runs it: with a share of its runs, and one to warm up."""
        params = job.collector.params
        if not self.spread or rounds_of(job) == 1:
            return job
        runs = math.ceil(params.repeat / rounds_of(job))
        if seconds := self._run_seconds.get(id(job)):
            runs = min(max(runs, math.ceil(VISIT / seconds)), params.repeat)
        own = {"repeat": runs}
        if hasattr(params, "warmup"):
            own["warmup"] = min(params.warmup, 1)
        return replace(job, collector=replace(job.collector, params=replace(params, **own)))

    def learn(self, version: str, job: Job, profile: Profile, seconds: float) -> None:
        """A visit has given a complete profile, and took so long. Where runs are not spread, nobody asks."""
        if not self.spread:
            return
        self._spent += seconds
        self._facts.setdefault((version, id(job)), []).append(profile_summary_of(profile))
        self._visit_seconds[version, id(job)] = seconds
        params = profile["collector_info"].get("params")
        if isinstance(params, Mapping) and (runs := params.get("repeat")):
            self._run_seconds.setdefault(id(job), seconds / (runs + params.get("warmup", 0)))

    def more(self) -> list[VersionSlot]:
        """The next round, of what is not settled; empty where there is nothing, or no time."""
        if not self.is_sequential or self._round >= LOOKS[-1]:
            return []
        if self._round in LOOKS:
            self._look()
        needed = sum(self._visit_seconds.get(one, 0.0) for one in self.open)
        if not self.open or self._spent + needed > self._budget:
            return []
        self._round += 1
        made: list[VersionSlot] = []
        for version in self._rng.sample(self._versions, len(self._versions)):
            jobs = [job for key, job in self._jobs.items() if (version.checksum, key) in self.open]
            tasks = tuple(Task(place, job, self._round - 1) for place, job in enumerate(jobs, self._next))
            if tasks:
                made.append(VersionSlot(version, tasks, self._round))
                self._next += len(tasks)
        return made

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
        for version in self._versions:
            for job in self._jobs.values():
                if facts := self._facts.get((version.checksum, id(job))):
                    yield version, job, facts

    def recall(self) -> None:
        """Take in what an earlier process has measured in this session, and stored."""
        jobs = {configuration_of(job): job for job in self._jobs.values()}
        known = baseline.KnownSummaries(self._repo)
        waiting = known.of(lookup.pending(self._repo)).items()
        for version in self._versions:
            own = known.of(lookup.registered(self._repo, version.checksum))
            for info, fact in [*own.items(), *(one for one in waiting if one[1].origin == version.checksum)]:
                job, headline = jobs.get(info.configuration), fact.headline
                if job is not None and headline is not None and headline.rounds[0].session == self.id:
                    self._facts.setdefault((version.checksum, id(job)), []).append(fact)

    def _look(self) -> None:
        """See which neighbours are settled: decided, with a narrow interval, or beyond what rounds decide."""
        self.open = set()
        for version, before in self._before.items():
            for key, job in self._jobs.items():
                rounds = len(self._facts.get((version, key), ()))
                if rounds < ROUNDS or rounds_of(job) < ROUNDS:
                    continue
                found = self._judged(version, job)
                verdict = None if found is None else found.verdict
                if verdict is not None and not self._is_settled(verdict):
                    self.open |= {(version, key), (before, key)}

    def _is_settled(self, verdict: Verdict) -> bool:
        found = verdict.difference
        return bool(found.unknown) or settled(verdict, self._rules) or more_needed(found, self._rules) is None

    def _judged(self, version: str, job: Job) -> BaselineComparison | None:
        own = self._value(version, job)
        line: list[tuple[str, baseline.SeriesValue]] = []
        before = self._before.get(version)
        while before is not None and len(line) < WINDOW:
            if (value := self._value(before, job)) is not None:
                line.append((before, value))
            before = self._before.get(before)
        return None if own is None else baseline.compare_with_line(own, line, self._rules)

    def _value(self, version: str, job: Job) -> baseline.SeriesValue | None:
        facts = self._facts.get((version, id(job)), ())
        valued = [one for one in facts if one.headline is not None and not one.incomplete]
        return baseline.value_of(valued) if valued else None


def _before(repo: Repository, versions: Sequence[MinorVersion]) -> dict[str, str]:
    """The nearest of the versions before each of them."""
    chosen = {version.checksum for version in versions}
    found = {}
    for checksum, parents in ((version.checksum, version.parents) for version in versions):
        before = parents[0] if parents and parents[0] in chosen else None
        if before is None:
            walk = walking.ancestors(repo, checksum, baseline.MOST_VERSIONS)
            before = next((one.checksum for one in walk if one.checksum in chosen), None)
        if before is not None:
            found[checksum] = before
    return found


@lru_cache(maxsize=256)
def _level(alpha: float, rounds: int) -> float:
    from perun.models.two_samples.sequential import nominal_levels

    sizes = [*(look for look in LOOKS if look < rounds), rounds]
    return nominal_levels(alpha, sizes, LOOKS[-1], SPENDING)[-1]
