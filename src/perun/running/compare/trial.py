"""Pairs of one configuration by one instrument, until they decide or the time for them is over."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from perun.core import conditions
from perun.core.errors import Terminated
from perun.core.process.programs import Speed
from perun.core.wording import plural
from perun.measurement.difference import Rules
from perun.measurement.series import Metric
from perun.models.two_samples.sequential import EARLY
from perun.profile import session
from perun.profile.amounts import readable
from perun.profile.changes import PerformanceChange
from perun.profile.factory import Profile
from perun.profile.head import ProfileHeader
from perun.profile.helpers import ProfileInfo
from perun.repository import registering
from perun.repository.repository import Repository
from perun.running.compare.decide import (
    ARMS,
    BESIDE,
    EXACT_AFTER,
    FIRST_LOOK,
    InterimPlan,
    MetricDecision,
    PairRunner,
    PairValues,
    decide,
    reachable,
)
from perun.running.compare.instruments import PEAK, BudgetSpent, Reading, clock, time_profile
from perun.running.compare.plan import CompareCase, CompareSide

REPEATED: Final = 3
"""Pairs under disturbance that are repeated in any case; beyond, one for each four undisturbed ones."""
LARGEST_BUDGET: Final = 1e7

Progress = Callable[[Sequence[MetricDecision], int, int, float], None]
"""Gets what the pairs said at the last look, the pairs so far and at most, and the seconds that are left."""


@dataclass
class Trial:
    """What was measured, and what it says.

    :ivar pairs: the readings of each pair by arm, in the order of measuring.
    :ivar repeated: pairs that were measured again, as something disturbed them, and :ivar disturbance: what
        did so to the first of them.
    :ivar speed: how fast the machine was meanwhile, where runs are timed.
    :ivar seconds: how long it all took. :ivar pinned: whether the program was kept on one core.
    :ivar together: the processors on which both sides ran at the same time, none where they were in turns;
        :ivar parallel: whether they were in turns as the program uses several cores.
    :ivar reason: why there are no more pairs, where the time was over, and :ivar advice: what to do where it
        was not enough for one. :ivar interruption: the exception that ended it.
    """

    name: str
    pairs: list[Mapping[str, Reading]] = field(default_factory=list)
    decisions: list[MetricDecision] = field(default_factory=list)
    repeated: int = 0
    disturbance: str = ""
    speed: Speed = field(default_factory=Speed)
    seconds: float = 0.0
    pinned: bool = False
    together: tuple[int, ...] = ()
    parallel: bool = False
    reason: str = ""
    advice: str = ""
    interruption: BaseException | None = None

    @property
    def series(self) -> dict[Metric, PairValues]:
        """The values of each metric that all runs gave."""
        return _series(self.pairs)

    def readings(self, side: str) -> list[Reading]:
        """Those of one arm, in the order of measuring."""
        return [pair[side] for pair in self.pairs]


def _series(pairs: Sequence[Mapping[str, Reading]]) -> dict[Metric, PairValues]:
    """The values of each metric that all runs of the pairs gave."""
    readings = [reading.values for pair in pairs for reading in pair.values()]
    common = [metric for metric in readings[0] if all(metric in one for one in readings)] if readings else []
    arms = (*ARMS, BESIDE) if pairs and BESIDE in pairs[0] else ARMS
    return {
        metric: PairValues(*(np.array([pair[arm].values[metric] for pair in pairs]) for arm in arms))
        for metric in common
    }


def run(
    name: str,
    runner: PairRunner,
    rules: Rules,
    most_pairs: int,
    budget: float,
    progress: Progress,
    clock: Callable[[], float] = time.monotonic,
    note: Callable[[str], None] = lambda text: None,
) -> Trial:
    """Measure pairs until each metric is settled, beyond :data:`EARLY` pairs until one of them is,
    `most_pairs` are there, or `budget` seconds are over.

    An interruption ends it, too; what was measured by then is returned.

    :param note: called where the budget is enough for few pairs only, before they are measured.
    :raises PerunError: names the side whose command fails.
    """
    trial = Trial(name)
    start = clock()
    deadline = start + min(budget, LARGEST_BUDGET)
    looks: InterimPlan | None = None

    def left() -> float:
        return deadline - clock()

    try:
        longest = _warmed_up(trial, runner, left)
        fits = int(left() / longest / runner.steps) if longest else most_pairs
        if fits < min(FIRST_LOOK, most_pairs):
            note(
                f"one run takes about {readable(longest, 's')}: the budget of {readable(budget, 's')} is "
                f"enough for about {plural(fits, 'pair')} of {_runs(runner)}, but {FIRST_LOOK} decide: "
                f"--budget {_enough(longest, runner)}"
            )
        warm = clock()
        watch = conditions.ConditionWatch()
        while left() > 0:
            if trial.pairs and trial.pairs[0][ARMS[0]].sample is not None:
                trial.speed.visit()
            before = conditions.now()
            pair = runner.measure(len(trial.pairs), left)
            if _is_disturbed(trial, watch, before):
                continue
            trial.pairs.append(pair)
            count = len(trial.pairs)
            per_pair = (clock() - warm) / (count + trial.repeated)
            if looks is None and count >= min(FIRST_LOOK, most_pairs):
                looks = InterimPlan(reachable(most_pairs, count * per_pair + left(), per_pair))
            most = looks.most if looks else most_pairs
            if count >= most:
                break
            if (looks and looks.is_one(count)) or _may_be_exact(trial):
                series = trial.series
                trial.decisions = decide(series, looks or InterimPlan(most), rules)
                if _is_settled(trial):
                    break
            progress(trial.decisions, count, most, min(per_pair * (most - count), left()))
        else:
            trial.reason = f"the budget of {readable(budget, 's')} is spent"
    except BudgetSpent:
        trial.reason = trial.reason or f"the budget of {readable(budget, 's')} is spent"
    except (KeyboardInterrupt, Terminated) as interruption:
        trial.interruption = interruption
        trial.reason = "interrupted"
    trial.seconds = clock() - start
    trial.pinned, trial.together, trial.parallel = runner.is_pinned, runner.together, runner.parallel
    if not _is_settled(trial):
        looks = looks or InterimPlan(most_pairs)
        trial.decisions = decide(trial.series, looks, rules, ends=True)
    if trial.interruption is not None:
        trial.decisions = [undecided(one, len(trial.pairs)) for one in trial.decisions]
    return trial


def _warmed_up(trial: Trial, runner: PairRunner, left: Callable[[], float]) -> float:
    """The seconds of the longest run; the trial gets the reason where no pair fits into what is left.

    :raises BudgetSpent: in that case.
    """
    begun, longest, than = left(), 0.0, ""
    with suppress(BudgetSpent):
        longest = runner.warm_up(left)
        if longest * runner.steps <= left():
            return longest
    if not longest:
        longest, than = begun - left(), "more than "
    trial.advice = f"--budget {_enough(longest, runner)} is enough for {FIRST_LOOK}"
    if than:
        trial.advice = "give it more time with --budget"
    trial.advice += ", or count in place of timing: --metric instructions needs few runs"
    trial.reason = (
        f"one run takes {than}{readable(longest, 's')}, so that no pair of {_runs(runner)} fits into the "
        f"budget of {readable(begun, 's')}"
    )
    raise BudgetSpent


def _runs(runner: PairRunner) -> str:
    """What a pair is made of."""
    return f"{runner.steps} duets" if runner.together else f"{runner.steps} runs"


def _enough(longest: float, runner: PairRunner) -> int:
    """Seconds that are enough for the first look, where a run takes so long."""
    return math.ceil(longest * runner.steps * (FIRST_LOOK + 1))


def _is_settled(trial: Trial) -> bool:
    """Whether the answer is there: each metric is settled, or after many pairs one of them."""
    settled = [one.settled for one in trial.decisions]
    return any(settled) if len(trial.pairs) >= EARLY else bool(settled) and all(settled)


def _may_be_exact(trial: Trial) -> bool:
    return len(trial.pairs) == EXACT_AFTER and all(metric.exact for metric in trial.series)


def _is_disturbed(trial: Trial, watch: conditions.ConditionWatch, before: conditions.Moment) -> bool:
    """Whether the pair since then has to be measured again; counts it."""
    why = watch.disturbance(before, conditions.now())
    if not why or trial.repeated >= REPEATED + len(trial.pairs) // 4:
        return False
    trial.repeated += 1
    trial.disturbance = trial.disturbance or why
    return True


def undecided(decision: MetricDecision, pairs: int) -> MetricDecision:
    """The decision as that of a series which somebody has ended, so that its level does not hold."""
    rule = f"interrupted after {pairs} pairs; by then {decision.verdict.reason}"
    verdict = decision.verdict._replace(change=PerformanceChange.Unknown, reason=rule)
    return decision._replace(verdict=verdict, settled=False)


# The profiles of a trial: one of each side, or one of each run of a collector, marked as one session.
#
# They are saved together: there are both sides or none.


class NewestProfiles(NamedTuple):
    """The newest profile of each side, and how many `profiles` there are of both."""

    base: ProfileInfo
    head: ProfileInfo
    profiles: int


def profiles_of(
    repo: Repository, case: CompareCase, trial: Trial, side: CompareSide, machine_state: Mapping[str, Any]
) -> list[Profile]:
    """What was measured of one side: the profiles of a collector, one for each run; or one of the times of
    all runs, and before it one of their peaks of memory where these were measured."""
    readings = trial.readings(side.name)
    collected = [reading.profile for reading in readings if reading.profile is not None]
    if collected:
        return collected
    samples = [reading.sample for reading in readings if reading.sample is not None]
    state = {**machine_state, **trial.speed.described()}
    times = time_profile(repo, case.job, samples, state, warmup=1)
    return [*_peaks(times, readings, case), times]


def _peaks(times: Profile, readings: Sequence[Reading], case: CompareCase) -> Iterator[Profile]:
    """A profile of the peaks, apart from that of the times: not every comparison measures them."""
    peak = clock(case.job.cmd, PEAK)
    if not all(peak in reading.values for reading in readings):
        return
    header = {**times["header"], "type": peak.type, "units": {peak.type: peak.unit}}
    info = {"name": PEAK, "params": {"repeat": len(readings)}}
    same = {key: times[key] for key in ("machine", "workload_generator") if key in times}
    profile = Profile({"header": header, "collector_info": info, "postprocessors": [], **same})
    common = {"type": peak.type, "subtype": peak.subtype, "uid": peak.uid}
    profile.update_resources(
        [
            {"amount": int(reading.values[peak]), **common, "order": order}
            for order, reading in enumerate(readings, 1)
        ]
    )
    yield profile


def store(
    repo: Repository,
    sides: Sequence[CompareSide],
    made: Mapping[str, Sequence[Profile]],
    about: Mapping[str, Any],
    last: int,
) -> NewestProfiles:
    """Store the profiles of both sides, and register those of versions; those of uncommitted changes are
    pending.

    :param made: the profiles by the name of the side. :param about: what the header of each says of the
        session, its `id` among it. :param last: the time of the newest profile of each side.
    :raises PerunError: where the store refuses; then nothing is left.
    """
    wanted = requests(sides, made, about, last)
    paths = registering.save_together(repo, wanted)
    names = [side.name for side in sides for _ in made[side.name]]
    newest = {
        name: ProfileInfo(path.name, str(path), ProfileHeader.of(one.profile), one.moment or last)
        for name, one, path in zip(names, wanted, paths, strict=True)
    }
    return NewestProfiles(newest["base"], newest["head"], len(wanted))


def requests(
    sides: Sequence[CompareSide], made: Mapping[str, Sequence[Profile]], about: Mapping[str, Any], last: int
) -> list[registering.SaveRequest]:
    """What :func:`store` stores, the profiles of each side in turn, marked as of the session."""
    return [
        registering.SaveRequest(
            _marked(side, profile, about),
            side.version.checksum,
            not side.uncommitted,
            # A second apart, so that those of both sides are listed in the order of measuring.
            last - len(made[side.name]) + 1 + number,
        )
        for side in sides
        for number, profile in enumerate(made[side.name])
    ]


def _marked(side: CompareSide, profile: Profile, about: Mapping[str, Any]) -> Profile:
    """Marked as of the session."""
    session.mark(profile, session.Session(about["id"], side.name, runs_are_rounds=True))
    details = {**about, **profile["header"][session.KEY], "uncommitted": bool(side.uncommitted)}
    profile["header"] = {**profile["header"], session.KEY: details}
    return profile
