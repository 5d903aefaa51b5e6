"""What pairs of numbers say, by known numbers."""

from collections.abc import Sequence

import numpy as np
import pytest

from perun.measurement.difference import DEFAULTS, Rules
from perun.measurement.series import Metric
from perun.models.two_samples.sequential import nominal_levels
from perun.profile.changes import PerformanceChange
from perun.running.compare.compare import change_of
from perun.running.compare.decide import (
    InterimPlan,
    MetricDecision,
    PairValues,
    decide,
    disagreements,
    reachable,
)

WALL = Metric("./p", "time", "real", "s", False)
CPU = Metric("./p", "time", "cpu", "s", False)
COUNT = Metric("./p", "instructions", "", "", True)
NOISE = np.random.default_rng(7).normal(0, 0.003, (3, 40))


def values(ratio: float, pairs: int = 20, scale: float = 1.0, noise: float = 1.0) -> PairValues:
    """Pairs whose head is `ratio` times the base, but for 0.3 % of noise."""
    base, head, again = np.exp(scale * NOISE[:, :pairs])
    return PairValues(base, ratio * head, noise * again)


def only(metric: Metric, found: PairValues, looks: InterimPlan | None = None, **more: bool) -> MetricDecision:
    (decision,) = decide({metric: found}, looks or InterimPlan(20), DEFAULTS, **more)
    return decision


@pytest.mark.parametrize(("ratio", "change"), [
    (1.0, PerformanceChange.NoChange),
    (1.1, PerformanceChange.Degradation),
    (1 / 1.1, PerformanceChange.Optimization),
    (1.01, PerformanceChange.MaybeDegradation),
    (1.5, PerformanceChange.SevereDegradation),
    (1 / 1.5, PerformanceChange.SevereOptimization),
])  # fmt: skip
def test_the_interval_decides(ratio: float, change: PerformanceChange) -> None:
    scale = 3.0 if change is PerformanceChange.MaybeDegradation else 1.0
    decision = only(WALL, values(ratio, scale=scale))
    assert decision.verdict.change is change, decision.verdict.reason
    assert decision.verdict.low < decision.verdict.high
    assert decision.settled  # a change that may not matter, too, where the interval is narrow


def test_too_much_noise_is_no_answer() -> None:
    decision = only(WALL, values(1.0, scale=100.0))
    assert decision.verdict.change is PerformanceChange.Unknown
    assert not decision.settled
    assert decision.verdict.difference.detectable > 1.2


def test_a_base_that_differs_from_itself_is_no_answer() -> None:
    decision = only(WALL, values(1.5, noise=1.3))
    assert decision.verdict.change is PerformanceChange.Unknown
    assert "the base differs from itself (1." in decision.verdict.reason


def test_runs_that_took_nothing_have_no_ratio() -> None:
    found = PairValues(np.zeros(20), np.ones(20), np.ones(20))
    decision = only(CPU, found)
    assert decision.verdict.change is PerformanceChange.Degradation
    assert decision.verdict.difference.delta == (1.0, 1.0, 1.0), "there is no ratio to 0, but a difference"


def test_few_pairs_have_no_interval() -> None:
    decision = only(WALL, values(2.0, pairs=4), ends=True)
    assert decision.verdict.change is PerformanceChange.Unknown
    assert not decision.settled


def test_counts_decide_after_three_pairs() -> None:
    def counts(base: Sequence[float], head: Sequence[float]) -> MetricDecision:
        return only(COUNT, PairValues(np.array(base), np.array(head), np.array(base)))

    assert counts([1000.0] * 3, [1000.0] * 3).verdict.change is PerformanceChange.NoChange
    assert counts([1000.0] * 3, [1001.0] * 3).verdict.change is PerformanceChange.Degradation
    assert counts([1000.0] * 3, [1500.0] * 3).verdict.change is PerformanceChange.SevereDegradation
    assert counts([1e6, 1e6 + 20, 1e6 + 10], [1e6 + 5, 1e6, 1e6]).verdict.change is PerformanceChange.NoChange
    nearly = counts([1e6, 1e6 + 20, 1e6 + 10], [1.005e6, 1.005e6 + 9, 1.005e6])
    assert nearly.verdict.change is PerformanceChange.Degradation
    assert nearly.settled
    assert not counts([1000.0, 1300.0, 900.0], [1000.0] * 3).settled  # no count, whatever it calls itself


def test_all_looks_together_spend_the_level() -> None:
    looks = InterimPlan(30)
    levels = [looks.level(0.01, pairs, ends=pairs == 30) for pairs in (10, 15, 20, 25, 30)]
    assert levels == pytest.approx(nominal_levels(0.01, [10, 15, 20, 25, 30], 30))
    assert max(levels) < 0.01
    assert not looks.is_one(12)
    # The time is over: what is left of the level is spent, after one earlier look.
    assert looks.level(0.01, 12, ends=True) == pytest.approx(
        nominal_levels(0.01, [10, 12], 30, ends=True)[-1]
    )
    assert looks.level(0.01, 7, ends=True) == pytest.approx(0.01)
    assert InterimPlan(4).level(0.01, 4, ends=True) == pytest.approx(0.01)


def test_a_long_series_is_looked_at_ever_less_often() -> None:
    looks = InterimPlan(1000)
    assert looks.sizes[:20] == (*range(10, 105, 5), 110)
    assert looks.sizes[-1] == 1000
    steps = np.diff(looks.sizes[18:-1]) / np.array(looks.sizes[18:-2])
    assert np.all((steps > 0.06) & (steps <= 0.1))
    levels = [looks.level(0.01, size, ends=False) for size in looks.sizes]
    assert levels == pytest.approx(nominal_levels(0.01, looks.sizes, 1000))
    # The first hundred are nearly as strict as where there are no more, so that ten pairs may decide.
    assert 1 / 512 < levels[0] < InterimPlan(100).level(0.01, 10, ends=False) < 1.4 * levels[0]
    assert looks.level(0.01, 100, ends=True) > InterimPlan(100).level(0.01, 100, ends=True) / 2


@pytest.mark.slow
def test_the_level_holds_where_nothing_changed() -> None:
    """Of 1000 series without a change, looked at 5 times each, no more than 1 % and chance are wrong."""
    rng = np.random.default_rng(3)
    looks = InterimPlan(30)
    wrong = 0
    tight = Rules(threshold=1e-9)
    for _ in range(1000):
        base, head, noise = np.exp(rng.normal(0, 0.02, (3, 30)))
        for pairs in (10, 15, 20, 25, 30):
            found = PairValues(base[:pairs], head[:pairs], noise[:pairs])
            (decision,) = decide({WALL: found}, looks, tight, ends=pairs == 30)
            if decision.verdict.change in (PerformanceChange.Degradation, PerformanceChange.Optimization):
                wrong += 1
                break
    assert wrong <= 18  # 10 are expected; more than 18 come in less than 1 of 100 such tests


def test_reachable_pairs() -> None:
    assert reachable(100, 60, 1.0) == 60
    assert reachable(100, 1000, 1.0) == 100
    assert reachable(100, 3, 1.0) == 10
    assert reachable(5, 3, 1.0) == 5


@pytest.mark.parametrize(("wall", "cpu", "meaning"), [
    (1.1, 1.0, "waits more"),
    (1.0, 1.1, "more work for the processor"),
    (1 / 1.1, 1.1, "more cores at the same time"),
    (1.1, 1.1, None),
    (1.0, 1.0, None),
])  # fmt: skip
def test_two_clocks_that_disagree(wall: float, cpu: float, meaning: str | None) -> None:
    decisions = decide({WALL: values(wall), CPU: values(cpu)}, InterimPlan(20), DEFAULTS)
    told = list(disagreements(decisions))
    assert (meaning in told[0]) if meaning else (told == [])


def test_instructions_are_a_second_clock() -> None:
    counts = PairValues(np.full(3, 1e6), np.full(3, 1.2e6), np.full(3, 1e6))
    decisions = [only(COUNT, counts), only(CPU, values(1.0))]
    assert list(disagreements(decisions)) == [
        "it executes more instructions in the same time: what was added is cheap here"
    ]


def test_more_of_a_throughput_is_better() -> None:
    rate = Metric("server", "mixed", "req/s", "req/s", False, larger_is_better=True)
    change = change_of(only(rate, values(0.9)))
    assert change.result is PerformanceChange.Degradation
    assert (change.location, change.rule[-21:]) == ("server [req/s]", " more of it is better")
    assert change_of(only(rate, values(1.1))).result is PerformanceChange.Optimization
    assert change_of(only(rate, values(1.0))).result is PerformanceChange.NoChange
