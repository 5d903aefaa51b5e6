"""Pairs of one configuration by one instrument, until they decide or the time for them is over."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.core import conditions
from perun.core.errors import Terminated
from perun.core.process.programs import Speed
from perun.core.wording import plural
from perun.measurement.difference import Rules
from perun.measurement.estimate import Kind
from perun.measurement.many import LEAST_SHARE, Plan, renamed, share_of
from perun.measurement.series import Metric
from perun.models.two_samples.sequential import EARLY
from perun.profile import session
from perun.profile.amounts import readable
from perun.profile.changes import PerformanceChange
from perun.profile.factory import Profile
from perun.profile.head import ProfileHeader
from perun.profile.helpers import ProfileInfo
from perun.profile.sampled import SAMPLED
from perun.repository import registering
from perun.repository.repository import Repository
from perun.running.compare.decide import (
    ARMS,
    BASE,
    BESIDE,
    EXACT_AFTER,
    FIRST_LOOK,
    HEAD,
    InterimPlan,
    MetricDecision,
    PairRunner,
    PairValues,
    among_many,
    decide,
    reachable,
)
from perun.running.compare.instruments import PEAK, BudgetSpent, Reading, clock, time_profile
from perun.running.compare.plan import NOISE, CompareCase, CompareSide

REPEATED: Final = 3
"""Pairs under disturbance that are repeated in any case; beyond, one for each four undisturbed ones."""
LARGEST_BUDGET: Final = 1e7
LATE: Final = 3.0
"""Power of the spending function of samples: what is clear early is very clear, and most of the level is left
for the end, as of many functions few are settled before."""

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
    :ivar shares: of functions of the CPU time, by samples; :ivar small: how many are too small for a verdict;
        :ivar threshold: the growth that does not matter.
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
    shares: dict[Metric, float] = field(default_factory=dict)
    small: int = 0
    threshold: float = 0.0
    reason: str = ""
    advice: str = ""
    interruption: BaseException | None = None

    @property
    def series(self) -> dict[Metric, PairValues]:
        """The values of each metric that all runs gave."""
        return _series(self.pairs)

    @property
    def whole(self) -> MetricDecision | None:
        """What was decided of all samples together."""
        return next((one for one in self.decisions if self.parts and not one.metric.is_part), None)

    @property
    def parts(self) -> list[MetricDecision]:
        """What was decided of functions by samples of their time."""
        return [one for one in self.decisions if one.metric.kind is Kind.SAMPLED]

    def readings(self, side: str) -> list[Reading]:
        """Those of one arm, in the order of measuring."""
        return [pair[side] for pair in self.pairs]


def _series(pairs: Sequence[Mapping[str, Reading]]) -> dict[Metric, PairValues]:
    """The values of each metric that all runs of the pairs gave."""
    readings = [reading.values for pair in pairs for reading in pair.values()]
    every = dict.fromkeys(metric for one in readings for metric in one)
    common = [one for one in every if one.kind is Kind.SAMPLED or all(one in own for own in readings)]
    arms = (*ARMS, BESIDE) if pairs and BESIDE in pairs[0] else ARMS
    old = _renamed(pairs)
    former = set(old.values())

    def amounts(metric: Metric, arm: str) -> NDArray[np.float64]:
        own = metric if arm == HEAD else old.get(metric, metric)
        return np.array([pair[arm].values.get(own, 0.0) for pair in pairs])  # of no sample there is none

    return {
        metric: PairValues(*(amounts(metric, arm) for arm in arms))
        for metric in common
        if metric not in former
    }


def _renamed(pairs: Sequence[Mapping[str, Reading]]) -> dict[Metric, Metric]:
    """What samples say of functions whose files were renamed, by that of the head."""
    sides: list[dict[str, Metric]] = [
        {one.uid: one for pair in pairs for arm in arms for one in pair[arm].values if one.is_part}
        for arms in ((BASE, NOISE), (HEAD,))
    ]
    return {sides[1][new]: sides[0][old] for new, old in renamed(*sides).items()}


def look(trial: Trial, looks: InterimPlan, rules: Rules, *, ends: bool = False) -> None:
    """Judge what was measured so far; of many functions those that are large enough."""
    series = trial.series
    parts = [metric for metric in series if metric.is_part]
    whole = next((own for one, own in series.items() if one.type == SAMPLED and not one.is_part), None)
    if whole is not None:
        sums = [float(one.sum()) for one in whole[:2]]
        trial.shares = {one: share_of([float(own.sum()) for own in series[one][:2]], sums) for one in parts}
    small = {one for one, share in trial.shares.items() if share < LEAST_SHARE and len(parts) > 1}
    series = {one: values for one, values in series.items() if one not in small}
    trial.small = len(small)
    decisions = decide(series, looks, rules, ends=ends)
    parts_of = [one for one in decisions if one.metric.kind is Kind.SAMPLED]
    trial.decisions = [one for one in decisions if one.metric.kind is not Kind.SAMPLED]
    trial.decisions += among_many(parts_of, rules)


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
    trial = Trial(name, threshold=rules.threshold)
    start = clock()
    deadline = start + min(budget, LARGEST_BUDGET)
    looks: InterimPlan | None = None
    planned = partial(InterimPlan, power=LATE) if runner.frequency else InterimPlan

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
        if runner.frequency and runner.warm is not None:
            looked = planned(max(min(fits, most_pairs), 1))
            level = looked.level(1 - rules.confidence, looked.most, ends=True)
            note(_power(runner.warm, runner.frequency, longest * runner.steps, budget, level, rules))
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
                looks = planned(reachable(most_pairs, count * per_pair + left(), per_pair))
            most = looks.most if looks else most_pairs
            if count >= most:
                break
            if (looks and looks.is_one(count)) or _may_be_exact(trial):
                look(trial, looks or planned(most), rules)
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
        look(trial, looks or planned(most_pairs), rules, ends=True)
    if trial.interruption is not None:
        trial.decisions = [undecided(one, len(trial.pairs)) for one in trial.decisions]
    return trial


def _power(warm: Reading, frequency: float, wall: float, budget: float, level: float, rules: Rules) -> str:
    """What the samples of such runs can find. :param wall: seconds of a pair."""
    total = max(warm.values.values())
    parts = sum(one.is_part and value >= LEAST_SHARE * total for one, value in warm.values.items())
    return Plan(level, max(parts, 1), rules.threshold).told(total, wall, frequency, budget)


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
    settled = [one.settled for one in trial.parts or trial.decisions]
    return any(settled) if not trial.parts and len(trial.pairs) >= EARLY else bool(settled) and all(settled)


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
