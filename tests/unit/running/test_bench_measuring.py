"""When `perun bench` has measured enough, and what it finds odd: given runs, and a clock that is told."""

import itertools
import os
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from perun.core.process.execution import RunSample
from perun.running.bench import bench, measuring
from perun.running.bench.measuring import CommandRuns, Measurement, Runner, measure, precision_of
from perun.running.bench.plan import BenchOptions, plan

ALIKE = (1.0, 1.001, 0.999)
"""Times of which the middle is known to 2 % at once."""
UNLIKE = (1.0, 3.0)


class Given:
    """A runner whose commands take the times that are given, again and again; `now` is the clock."""

    def __init__(self, times: Iterable[float] = ALIKE, per_run: float = 1.0) -> None:
        self.now = 0.0
        self.ran: list[str] = []
        self.cleaned: list[str] = []
        self._times = itertools.cycle(times)
        self._per_run = per_run
        self.before: Callable[[int], None] = lambda number: None

    def measure(self, benchmark: Any) -> RunSample:
        self.before(len(self.ran))
        self.ran.append(benchmark.title)
        self.now += self._per_run
        return RunSample(next(self._times), 0.5, 0.1, 0)

    def clean_up(self, benchmark: Any) -> None:
        self.cleaned.append(benchmark.title)


def measured_by(runner: Given, *commands: str, **options: Any) -> Measurement:
    given = BenchOptions(commands or ("a",), **options)
    found = plan(given)
    return measure(found, runner, given, random.Random(1), lambda *told: None, lambda: runner.now)  # type: ignore[arg-type]


def counts(found: Measurement) -> list[int]:
    return [len(one.samples) for one in found.series]


def test_it_ends_when_the_value_is_known() -> None:
    runner = Given()
    assert counts(measured_by(runner, budget=1000)) == [10]
    assert runner.ran == ["a"] * 11  # warmed up once
    assert runner.cleaned == ["a"]


def test_it_goes_on_where_runs_are_unlike() -> None:
    (series,) = measured_by(Given(UNLIKE), budget=1e9).series
    assert series.value is not None
    assert (precision_of(series.value) or 1) <= 0.02
    assert len(series.samples) > 1000
    assert len(measured_by(Given(UNLIKE), budget=1e9, precision=0.1).series[0].samples) < len(series.samples)


def test_the_budget_ends_it_but_not_before_the_least_runs() -> None:
    assert counts(measured_by(Given(UNLIKE), budget=20)) == [20]
    assert counts(measured_by(Given(UNLIKE, per_run=60))) == [3]
    assert counts(measured_by(Given(UNLIKE, per_run=60), min_runs=7)) == [7]
    # Without one each command has ten seconds.
    assert sum(counts(measured_by(Given(UNLIKE), "a", "b", "c"))) == pytest.approx(27, abs=3)


def test_numbers_of_runs() -> None:
    assert counts(measured_by(Given(), runs=2)) == [2]
    assert counts(measured_by(Given(per_run=1000), runs=30)) == [30]
    assert counts(measured_by(Given(UNLIKE), max_runs=5, budget=1e9)) == [5]
    assert counts(measured_by(Given(), min_runs=25, budget=1e9)) == [25]


def test_a_command_that_is_known_leaves_the_others() -> None:
    runner = Given()
    runner.measure = lambda one, real=runner.measure: (  # type: ignore[method-assign]
        real(one) if one.title == "a" else real(one)._replace(real=2.0 + random.Random(runner.now).random())
    )
    alike, unlike = counts(measured_by(runner, "a", "b", budget=1e6))
    assert alike == 10 < unlike


def test_an_interruption_keeps_what_was_measured() -> None:
    runner = Given()

    def interrupt(number: int) -> None:
        if number == 5:
            raise KeyboardInterrupt

    runner.before = interrupt
    found = measured_by(runner, budget=1000)
    assert counts(found) == [4]
    assert isinstance(found.interruption, KeyboardInterrupt)
    assert found.series[0].value is not None and found.series[0].value.size == 4
    assert runner.cleaned == ["a"]


def test_more_commands_than_are_kept_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "KEPT", 2)
    given = BenchOptions(("sh -c 'echo {n} >> ran'",), (("n", tuple("abcde")),), runs=3, warmup=0)
    scratch, before = tmp_path / "scratch", Path.cwd()
    scratch.mkdir()
    rng = random.Random(1)
    with Runner(tmp_path, dict(os.environ), scratch, rng, False) as runner:
        found = measure(plan(given), runner, given, rng, lambda *told: None)
    assert counts(found) == [3] * 5
    assert sorted((tmp_path / "ran").read_text().split()) == sorted("abcde" * 3)
    assert Path.cwd() == before


def noted(times: Iterable[float], status: int = 0, **options: Any) -> tuple[str, ...]:
    given = BenchOptions(("a",), runs=100, **options)
    series = CommandRuns(plan(given)[0], [RunSample(one, 0.1, 0.1, status) for one in times])
    series.look(given.precision)
    return bench.notes_on(series, Measurement([series], 10.0, 10.0), given)


def test_usual_runs_have_no_notes() -> None:
    assert noted([1.0, 1.01, 0.99, 1.02, 0.98, 1.05, 1.0]) == ()
    assert noted([1.0, 9.0, 1.0]) == ()  # too few to tell


def test_a_slow_first_run_is_told() -> None:
    (note,) = noted([2.0, 1.01, 0.99, 1.02, 0.98, 1.0])
    assert note == "the first run took 2 s, the others about 1 s: --warmup 2 leaves it out"
    assert "--prepare" in noted([2.0, 1.01, 0.99, 1.02, 0.98, 1.0], prepare="sync")[0]


def test_other_slow_runs_are_told() -> None:
    (note,) = noted([1.0, 1.01, 3.0, 1.02, 0.98, 1.0, 2.5])
    assert note.startswith("2 of 7 runs took much longer than the others, up to 3 s")


def test_failures_are_told() -> None:
    assert noted(ALIKE, status=256) == ("3 of 3 runs failed: the first of them exited with status 1",)


def test_an_uncertain_value_is_told() -> None:
    found = measured_by(Given(UNLIKE), budget=20)
    (note,) = bench.notes_on(found.series[0], found, BenchOptions(("a",), budget=20))
    limit = "20 s were over after 20 runs; more time: --budget"
    assert note == f"the time is known to ±34 %, not to ±2 %: {limit}"
