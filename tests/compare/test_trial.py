"""Pairs until they decide, with readings that are given and a clock that is told."""

import itertools
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from perun.core import conditions
from perun.core.conditions import ConditionWatch, Moment
from perun.core.errors import JobFailed
from perun.core.process.execution import RunSample
from perun.core.process.programs import FixedLoop, Speed
from perun.measurement.difference import DEFAULTS
from perun.measurement.series import Metric
from perun.plugin.api import MinorVersion
from perun.profile.changes import PerformanceChange
from perun.running.compare import trial as trials
from perun.running.compare.compare import _notes
from perun.running.compare.decide import PairRunner
from perun.running.compare.instruments import BudgetSpent, Reading
from perun.running.compare.plan import ComparePlan, CompareSide
from perun.running.compare.trial import Trial, run

CPU = Metric("./p", "time", "cpu", "s", False)
COUNT = Metric("./p", "instructions", "", "", True)
VERSION = MinorVersion("2024-03-04 09:00:00", "Ada", "ada@example.org", "a" * 40, "One", ())
PLAN = ComparePlan(CompareSide("base", VERSION), CompareSide("head", VERSION._replace(checksum="b" * 40)), ())


class Instrument:
    """Gives what each folder costs, with noise; each run takes a second of the clock, or as it is told."""

    name = "given"

    def __init__(
        self, costs: Mapping[str, float], noise: float = 0.001, metric: Metric = CPU, takes: float = 1
    ) -> None:
        self.costs = costs
        self.runs: list[str] = []
        self.notes: list[str] = []
        self.cores: list[int | None] = []
        self.now = 0.0
        self.sample = RunSample(1.0, 0.5, 0.1, 0)
        self.beside: dict[Metric, float] = {}
        self._noise = noise
        self._takes = takes
        self._metric = metric
        self._rng = random.Random(1)

    def measure(self, folder: Path, seconds: float, core: int | None) -> Reading:
        if seconds < min(self._takes, 1):
            raise BudgetSpent
        self.now += self._takes
        self.runs.append(folder.name)
        self.cores.append(core)
        factor = 1 + self._noise * self._rng.uniform(-1, 1)
        others = {metric: 1 + noise * self._rng.uniform(-1, 1) for metric, noise in self.beside.items()}
        return Reading({self._metric: self.costs[folder.name] * factor, **others}, self.sample)

    def runner(self, order: str = "random", builds: int = 1, cores: tuple[int, ...] = ()) -> PairRunner:
        folders = {side: [Path(f"{side}{n or ''}") for n in range(builds)] for side in ("base", "head")}
        return PairRunner(self, PLAN, folders, order, cores, random.Random(2))

    def trial(self, most: int = 40, budget: float = 1000.0, **runner: object) -> Trial:
        return run(
            "given",
            self.runner(**runner),  # type: ignore[arg-type]
            DEFAULTS,
            most,
            budget,
            lambda *progress: None,
            lambda: self.now,
            self.notes.append,
        )


@pytest.fixture(autouse=True)
def undisturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine does meanwhile."""
    monkeypatch.setattr(trials.conditions, "now", lambda: Moment(0, 0, 0.0, 0.0))


def labels(trial: Trial) -> list[PerformanceChange]:
    return [one.verdict.change for one in trial.decisions]


def test_what_is_clear_takes_ten_pairs() -> None:
    trial = Instrument({"base": 1.0, "head": 1.1}).trial()
    assert labels(trial) == [PerformanceChange.Degradation]
    assert len(trial.pairs) == 10
    assert trial.seconds == 32  # two runs to warm up


def test_what_is_not_clear_takes_more() -> None:
    trial = Instrument({"base": 1.0, "head": 1.03}, noise=0.05).trial()
    assert 10 < len(trial.pairs) <= 40
    assert len(trial.pairs) % 5 == 0


def test_after_many_pairs_one_metric_is_enough() -> None:
    instrument = Instrument({"base": 1.0, "head": 1.1})
    instrument.beside = {CPU._replace(subtype="real"): 0.5}
    trial = instrument.trial(most=200, budget=10_000)
    assert labels(trial) == [PerformanceChange.Degradation, PerformanceChange.Unknown]
    assert len(trial.pairs) == 100
    trial = Instrument({"base": 1.0, "head": 1.0}, noise=0.5).trial(most=200, budget=10_000)
    assert (labels(trial), len(trial.pairs)) == ([PerformanceChange.Unknown], 200)


def test_counts_take_three() -> None:
    trial = Instrument({"base": 1000.0, "head": 1001.0}, noise=0, metric=COUNT).trial()
    assert labels(trial) == [PerformanceChange.Degradation]
    assert len(trial.pairs) == 3


def test_the_end_of_the_pairs_and_of_the_time() -> None:
    noisy = Instrument({"base": 1.0, "head": 1.0}, noise=0.5)
    trial = noisy.trial(most=12)
    assert (len(trial.pairs), trial.reason) == (12, "")
    assert labels(trial) == [PerformanceChange.Unknown]
    assert noisy.notes == []
    noisy = Instrument({"base": 1.0, "head": 1.0}, noise=0.5)
    trial = noisy.trial(budget=22)
    assert len(trial.pairs) == 6  # two runs to warm up, and the next pair would be cut off
    assert trial.reason == "the budget of 22 s is spent"
    assert noisy.notes == [
        "one run takes about 1 s: the budget of 22 s is enough for about 6 pairs of 3 runs, but 10 decide: "
        "--budget 33"
    ]


@pytest.mark.parametrize(
    ("budget", "takes", "runs", "told"),
    [
        (0.5, 1, 0, "so that no pair of 3 runs fits into the budget of 500 ms"),
        (3.5, 1, 0, "one run takes more than 0 s, so that no pair of 3 runs fits into the budget of 3.5 s"),
        (8, 2.5, 1, "one run takes 2.5 s, so that no pair of 3 runs fits into the budget of 8 s"),
        (10.9, 2.5, 4, ""),  # one side to warm up, and a pair
    ],
)
def test_a_budget_for_less_than_a_pair(budget: float, takes: float, runs: int, told: str) -> None:
    """It is not spent to say so."""
    instrument = Instrument({"base": 1.0, "head": 1.0}, takes=takes)
    trial = instrument.trial(budget=budget)
    assert (len(trial.pairs), len(instrument.runs)) == (bool(runs > 3), runs)
    assert told in trial.reason
    assert ("--budget" in trial.advice) == bool(told)


def test_each_pair_has_its_own_order() -> None:
    instrument = Instrument({"base": 1.0, "head": 1.1})
    instrument.trial()
    assert instrument.runs[:2] == ["base", "head"]  # to warm up
    pairs = [tuple(instrument.runs[start : start + 3]) for start in range(2, 32, 3)]
    assert all(sorted(pair) == ["base", "base", "head"] for pair in pairs)
    assert len(set(pairs)) == 3
    mirrored = Instrument({"base": 1.0, "head": 1.1})
    mirrored.trial(order="abba")
    assert mirrored.runs[2:8] == ["base", "head", "base", "base", "head", "base"]


def test_builds_take_turns() -> None:
    instrument = Instrument({"base": 1.0, "base1": 1.0, "head": 1.1, "head1": 1.1})
    trial = instrument.trial(order="abba", builds=2)
    assert instrument.runs[:4] == ["base", "base1", "head", "head1"]
    counts = {name: instrument.runs[4:].count(name) for name in instrument.costs}
    assert counts == {"base": 10, "base1": 10, "head": 5, "head1": 5}
    met = {(pair[0], pair[1]) for pair in zip(instrument.runs[4::6], instrument.runs[5::6], strict=False)}
    assert len(met) == 2
    assert labels(trial) == [PerformanceChange.Degradation]


def test_a_pair_stays_on_one_core() -> None:
    instrument = Instrument({"base": 1.0, "head": 1.1})
    assert instrument.trial(cores=(0, 1)).pinned
    assert instrument.cores[:2] == [None, None]
    pairs = [set(instrument.cores[start : start + 3]) for start in range(2, 32, 3)]
    assert {len(pair) for pair in pairs} == {1}
    assert set.union(*pairs) == {0, 1}


def test_what_uses_several_cores_is_left_on_all() -> None:
    instrument = Instrument({"base": 1.0, "head": 1.1})
    instrument.sample = RunSample(1.0, 1.5, 0.1, 0)
    assert not instrument.trial(cores=(0, 1)).pinned
    assert set(instrument.cores) == {None}


def test_an_interruption_leaves_what_was_measured_undecided() -> None:
    instrument = Instrument({"base": 1.0, "head": 2.0})
    measure = instrument.measure

    def interrupted(folder: Path, seconds: float, core: int | None) -> Reading:
        if instrument.now > 25:
            raise KeyboardInterrupt
        return measure(folder, seconds, core)

    instrument.measure = interrupted  # type: ignore[method-assign]
    trial = instrument.trial(most=100)
    assert isinstance(trial.interruption, KeyboardInterrupt)
    assert labels(trial) == [PerformanceChange.Unknown]
    assert trial.decisions[0].verdict.reason.startswith("interrupted after 8 pairs; by then ")


def test_a_failing_side_is_named() -> None:
    instrument = Instrument({"base": 1.0, "head": 2.0})

    def failing(folder: Path, seconds: float, core: int | None) -> Reading:
        if folder.name == "head":
            raise JobFailed("it broke")
        return Reading({CPU: 1.0})

    instrument.measure = failing  # type: ignore[method-assign]
    with pytest.raises(JobFailed, match=r"^head \(bbbbbbbbbb\): it broke$"):
        instrument.trial()


def test_disturbed_pairs_are_repeated_within_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    instrument = Instrument({"base": 1.0, "head": 1.1})
    # All the time is stolen, from the first pair on.
    monkeypatch.setattr(
        trials.conditions, "now", lambda: Moment(int(100 * instrument.now), int(200 * instrument.now), 0, 0)
    )
    trial = instrument.trial()
    assert len(trial.pairs) == 10
    assert trial.repeated == 5  # three, and one for each four pairs
    assert trial.disturbance == "50 % of the time was stolen by the host"


def test_a_busy_machine_is_no_disturbance_but_a_jump_is() -> None:
    watch = ConditionWatch()
    moments = [Moment(0, 0, 0.9 * second, float(second)) for second in range(8)]
    assert [watch.disturbance(*pair) for pair in itertools.pairwise(moments)] == [""] * 7
    watch = ConditionWatch()
    quiet = [Moment(0, 0, 0.0, float(second)) for second in range(8)]
    for pair in itertools.pairwise(quiet):
        assert watch.disturbance(*pair) == ""
    assert "for 80 % of the time" in watch.disturbance(quiet[-1], Moment(0, 0, 0.8, 8.0))


def test_moments_are_read_from_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu  100 5 50 1000 10 1 2 33 7 0\ncpu0 1 2 3\n")
    (tmp_path / "pressure").mkdir()
    (tmp_path / "pressure/cpu").write_text("some avg10=1.00 avg60=2.00 total=2500000\nfull total=0\n")
    # `now` itself is replaced here; what it is made of is not.
    assert conditions._ticks(tmp_path / "stat") == [100, 5, 50, 1000, 10, 1, 2, 33]
    assert conditions._waiting(tmp_path / "pressure/cpu") == 2.5
    assert conditions._ticks(tmp_path / "no") == [0] * 8
    assert conditions._waiting(tmp_path / "no") == 0.0


def test_a_machine_that_became_slower_meanwhile_is_noted() -> None:
    trial = Instrument({"base": 1.0, "head": 1.1}).trial()
    assert not any("the machine" in note for note in _notes(PLAN, trial, None))
    times = itertools.chain([20_000_000] * 8, [25_000_000] * 8)
    trial.speed = Speed(lambda: FixedLoop(1, 1, 1, next(times), 1))
    clock = itertools.count(0.0, 0.0)
    for _ in range(16):
        trial.speed.visit(lambda: next(clock))
    assert "the machine became 25 % slower during the session" in list(_notes(PLAN, trial, None))
