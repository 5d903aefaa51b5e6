"""Runs of several commands in turns, until the time of each is known well enough or the time is over."""

from __future__ import annotations

import contextlib
import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from perun.core.errors import JobFailed, Terminated
from perun.core.process.command import failed
from perun.core.process.execution import Execution, RunSample
from perun.core.process.programs import Speed
from perun.measurement.estimate import Estimate, Point, Round, estimate, sample_of
from perun.plugin.api import Run
from perun.running.bench.plan import FIRST_LOOK, SECONDS, Benchmark, BenchOptions
from perun.running.compare.instruments import TimedRuns

GROWTH: Final = 0.05
"""A series is looked at again when it has grown by this share, so that thousands of runs cost no time."""
KEPT: Final = 50
"""Commands that are kept prepared at most."""
REPORTS: Final = 0.1
"""Seconds between two reports at least."""
FAILING: Final = "correct the command, or measure it anyway with --ignore-failure (-i)"


@dataclass
class CommandRuns:
    """The runs of one command, in the order of measuring.

    :ivar value: what they say, as of the last look. :ivar ready: whether that is precise enough.
    """

    benchmark: Benchmark
    samples: list[RunSample] = field(default_factory=list)
    value: Estimate | None = None
    ready: bool = False
    _next_look: int = 1

    def add(self, sample: RunSample, precision: float) -> None:
        """Another run."""
        self.samples.append(sample)
        count = len(self.samples)
        if count >= self._next_look:
            self.look(precision)
            self._next_look = count + max(1, int(GROWTH * count))

    def look(self, precision: float) -> None:
        """See what all runs say."""
        if self.samples:
            self.value = estimate(self.point)
            reached = precision_of(self.value)
            self.ready = reached is not None and reached <= precision

    @property
    def point(self) -> Point:
        """All runs as one round, as the stored profile is read; there is one at least."""
        return _point([[one.real for one in self.samples]])

    @property
    def rounds(self) -> Point:
        """The k-th run as one of the k-th round, which all commands share."""
        return _point([[one.real] for one in self.samples])


def _point(rounds: Sequence[Sequence[float]]) -> Point:
    samples = [sample_of(values) for values in rounds]
    return Point(tuple(Round("", number, {"": one}) for number, one in enumerate(samples) if one))


def precision_of(value: Estimate) -> float | None:
    """Half the width of the interval as a share of the value; None of a single run."""
    half = value.half_width
    return None if half is None or not value.value else half / abs(value.value)


Progress = Callable[[CommandRuns, Sequence[CommandRuns], float], None]
"""Gets the series that has grown, all of them, and the seconds that are left of the budget."""


@dataclass(frozen=True)
class Measurement:
    """What was measured; `interruption` is the exception that ended it before its end.

    :ivar seconds: how long it took. :ivar budget: how long it might have taken.
    :ivar speed: how fast the machine was meanwhile.
    """

    series: list[CommandRuns]
    seconds: float
    budget: float
    interruption: BaseException | None = None
    speed: Speed = field(default_factory=Speed)


class Runner:
    """Runs commands one at a time, with what goes before and after each; a context manager.

    What a command needs is prepared once and kept for all its runs: the less Perun does between two of them,
    the sooner a busy machine lets the next one run.

    :param folder: where all commands run. :param scratch: an empty folder.
    """

    def __init__(
        self, folder: Path, environ: dict[str, str], scratch: Path, rng: random.Random, ignore_failure: bool
    ) -> None:
        self._folder = folder
        self._environ = environ
        self._scratch = scratch
        self._rng = rng
        self._ignores = ignore_failure
        self._prepared: dict[int, TimedRuns] = {}
        self._resources = contextlib.ExitStack()

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *exc: object) -> None:
        self._resources.close()

    def measure(self, benchmark: Benchmark) -> RunSample:
        """One run of it.

        :raises JobFailed: where it fails and that is not ignored, or what goes before or after it fails.
        """
        self._run_hook("--prepare", benchmark.prepare)
        sample, errors = self._runs_of(benchmark).record()
        self._run_hook("--conclude", benchmark.conclude)
        if sample.status and not self._ignores:
            raise failed(benchmark.run, sample.status, errors, FAILING)
        return sample

    def clean_up(self, benchmark: Benchmark) -> None:
        """What follows the last run of it."""
        self._run_hook("--cleanup", benchmark.cleanup)

    def _runs_of(self, benchmark: Benchmark) -> TimedRuns:
        key = id(benchmark)
        if key not in self._prepared:
            if len(self._prepared) == KEPT:  # each keeps files open
                self._resources.close()
                self._prepared.clear()
            scratch = self._scratch / str(len(self._prepared))
            scratch.mkdir(exist_ok=True)
            run = benchmark.run._replace(cwd=self._folder, environ=self._environ)
            self._prepared[key] = self._resources.enter_context(TimedRuns(run, scratch, self._rng))
        return self._prepared[key]

    def _run_hook(self, option: str, command: str) -> None:
        if not command:
            return
        run = Run(command, cwd=self._folder, environ=self._environ)
        try:
            with Execution(run, self._scratch) as execution:
                sample = execution.run()
                if sample.status:
                    hint = f"correct the command of {option}"
                    raise failed(run, sample.status, execution.last_errors(), hint)
        except JobFailed as problem:
            raise JobFailed(f"{option}: {problem.message}", problem.hint) from None


def measure(
    benchmarks: Sequence[Benchmark],
    runner: Runner,
    options: BenchOptions,
    rng: random.Random,
    progress: Progress,
    clock: Callable[[], float] = time.monotonic,
) -> Measurement:
    """Measure the commands in rounds, each once in a round and in random order, so that what disturbs the
    machine for a while disturbs all of them alike.

    A command is out as soon as its runs are as many as asked for, or its time is precise enough: the rule of
    Y. S. Chow and H. Robbins, On the asymptotic theory of fixed-width sequential confidence intervals for the
    mean, Annals of Mathematical Statistics 36 (1965). An interruption ends it, and what was measured is
    returned. Whatever ends it, what follows the last run of a command runs for each of them.

    :raises JobFailed: as :meth:`Runner.measure`; the first failure of several.
    """
    budget = SECONDS * len(benchmarks) if options.budget is None else options.budget
    series = [CommandRuns(one) for one in benchmarks]
    start = clock()
    interruption: BaseException | None = None
    failures: list[JobFailed] = []
    speed = Speed()
    try:
        _run_rounds(series, runner, options, rng, progress, clock, start + budget, speed)
    except (KeyboardInterrupt, Terminated) as problem:
        interruption = problem
    except JobFailed as problem:
        failures.append(problem)  # what fails later may only follow from it
    finally:
        for benchmark in benchmarks:
            try:
                runner.clean_up(benchmark)
            except JobFailed as problem:
                failures.append(problem)
    if failures:
        raise failures[0]
    for one in series:
        one.look(options.precision)
    return Measurement(series, clock() - start, budget, interruption, speed)


def _run_rounds(
    series: Sequence[CommandRuns],
    runner: Runner,
    options: BenchOptions,
    rng: random.Random,
    progress: Progress,
    clock: Callable[[], float],
    end: float,
    speed: Speed,
) -> None:
    """Run each command once in a round until all are done; `end` is when the budget is spent."""
    reported = -math.inf
    for _ in range(options.warmup):
        for one in _shuffled(series, rng):
            runner.measure(one.benchmark)
    while unfinished := [one for one in series if not _is_done(one, options, clock() > end)]:
        speed.visit()
        for one in _shuffled(unfinished, rng):
            one.add(runner.measure(one.benchmark), options.precision)
            now = clock()
            if now - reported >= REPORTS:
                reported = now
                progress(one, series, end - now)


def runs_left(one: CommandRuns, options: BenchOptions) -> float:
    """About how many runs a series lacks, if its runs go on varying as they do."""
    count = len(one.samples)
    if options.runs is not None:
        return options.runs - count
    reached = one.value and precision_of(one.value)
    wanted = FIRST_LOOK if not reached else count * (reached / options.precision) ** 2
    most = options.max_runs or float("inf")
    return max(0.0, min(max(wanted, FIRST_LOOK, options.min_runs), most) - count)


def _is_done(one: CommandRuns, options: BenchOptions, late: bool) -> bool:
    count = len(one.samples)
    if options.runs is not None:
        return count >= options.runs
    if options.max_runs is not None and count >= options.max_runs:
        return True
    if count < options.min_runs:
        return False
    return late or (count >= FIRST_LOOK and one.ready)


def _shuffled(series: Sequence[CommandRuns], rng: random.Random) -> list[CommandRuns]:
    return rng.sample(series, len(series))
