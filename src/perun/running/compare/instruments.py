"""Single runs of a command, timed one by one, and the profile that the time collector would make of them.

What measures commands in turns, `perun compare`, `perun bench` and `perun doctor noise`, times its runs here.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from perun.core.errors import JobFailed, PluginError, UsageError
from perun.core.process import programs
from perun.core.process.command import failed, find_executable, last_lines
from perun.core.process.execution import Execution, RunSample, input_of, opened
from perun.core.process.layout import Layout, padding
from perun.measurement.estimate import Kind
from perun.measurement.headline import headline
from perun.measurement.many import place_of
from perun.measurement.series import CPU, INCLUSIVE, Metric, measurements
from perun.plugin.api import MinorVersion, Run, silent
from perun.profile.sampled import SAMPLED
from perun.repository.jobs import Job, PluginConfig, make_unit
from perun.repository.repository import Repository
from perun.running.compare.plan import CompareCase
from perun.running.run import collecting
from perun.running.run.pre_run import environment

if TYPE_CHECKING:
    from perun.profile.factory import Profile


class TimedRun(NamedTuple):
    """One run, and the last lines of its standard error where it failed."""

    sample: RunSample
    errors: Sequence[str] = ()


class TimedRuns:
    """Runs one command, each time in an environment of random size; a context manager, as `Execution` is.

    :param run: the command, its folder and its environment. :param scratch: a folder for what the runs need.
    :param seconds: after which a run is stopped; 0 for never. :param core: the processor it is kept on.
    :param engine: the words of what starts it and records it. :param end_group: kill what it leaves running.
    :param while_it_can_run: see :class:`Execution`.
    """

    def __init__(
        self,
        run: Run,
        scratch: Path,
        rng: random.Random,
        seconds: float = 0.0,
        core: int | None = None,
        engine: Sequence[str] = (),
        *,
        end_group: bool = False,
        while_it_can_run: bool = False,
    ) -> None:
        self._rng = rng
        self._execution = Execution(
            run, scratch, seconds, engine=engine, core=core, end_group=end_group,
            while_it_can_run=while_it_can_run,
        )  # fmt: skip

    def __enter__(self) -> TimedRuns:
        self._execution.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._execution.__exit__(*exc)

    def record(self) -> TimedRun:
        """Run it once; that it failed or was stopped is in the sample.

        :raises JobFailed: if it cannot be started.
        """
        self._execution.set_variable(*padding(self._rng))
        sample = self._execution.record()
        if sample.interruption is not None:
            raise sample.interruption
        failed = sample.status and not sample.early
        return TimedRun(sample, self._execution.last_errors() if failed else ())


def time_profile(
    repo: Repository, job: Job, samples: Sequence[RunSample], machine_state: Mapping[str, Any], **params: Any
) -> Profile:
    """The profile of the time collector of runs that were timed, in their order.

    :param params: what differs of the parameters of that collector, beside the number of runs.
    """
    collector = repo.registry.get("collect", "time")
    given = collector.Params(repeat=len(samples), **params)
    made: Profile = collector.make_profile(Run(job.cmd, job.args, job.workload), samples, given)
    with_params = replace(job, collector=replace(job.collector, params=given))
    return collecting.complete(made, with_params, machine_state)


# What is measured by which name: the clocks of a run, its peak memory, and whatever a collector records.

CLOCKS: Final = {"wall": "real", "cpu": "cpu", "user": "user", "sys": "sys"}
"""The clocks of a run by the names that the user gives them: the subtype of the resources."""
PEAK: Final = "peak-memory"
FREE: Final = (*CLOCKS, PEAK)
"""What each run tells without a collector."""
_NOT_SUMMED: Final = frozenset({"inclusive"})
"""Subtypes that count the same event for each caller."""
_OF_FUNCTIONS: Final = frozenset({"memory", "instructions", "mixed"})
"""Types that are recorded function by function: here the program is compared as a whole."""


class CollectorMetric(NamedTuple):
    """A metric that a collector records: its name, or its type and subtype as `memory:peak`.

    :param units: the collectors that may record it, the likeliest first.
    """

    name: str
    units: tuple[PluginConfig, ...]

    def matches(self, metric: Metric, collector: str) -> bool:
        """Whether the name means this metric of the collector."""
        kind, _, subtype = self.name.partition(":")
        if metric.type == SAMPLED and kind in (metric.type, collector):
            return self._means(metric, subtype if subtype not in ("", CPU) else "*")
        if subtype:
            return metric.subtype == subtype and kind in (metric.type, collector, metric.uid)
        return kind in (metric.type, metric.subtype, metric.uid, collector)

    def _means(self, metric: Metric, pattern: str) -> bool:
        """Whether the pattern means a function; without what it calls, but where it says `inclusive`."""
        if metric.subtype != CPU or metric.kind is not Kind.SAMPLED:
            return pattern == metric.subtype
        if metric.is_part == pattern.endswith(f":{INCLUSIVE}"):
            return False
        return any(
            one == pattern or fnmatchcase(one, pattern) for one in (metric.uid, place_of(metric.uid)[1])
        )


class MetricSpec(NamedTuple):
    """What is measured of one configuration: clocks and peak in the same runs, the rest in others."""

    free: tuple[str, ...]
    recorded: tuple[CollectorMetric, ...]


def wanted(repo: Repository, names: Sequence[str], case: CompareCase) -> MetricSpec:
    """Who measures the metrics of these names.

    :raises UsageError: where a name is no clock, no collector, and the matrix has no collector that might
        record it.
    """
    free = tuple(dict.fromkeys(name for name in names if name in FREE))
    others = dict.fromkeys(name for name in names if name not in FREE)
    return MetricSpec(
        free, tuple(CollectorMetric(name, tuple(_units(repo, name, case.collectors))) for name in others)
    )


def _units(repo: Repository, name: str, configured: Sequence[PluginConfig]) -> Iterable[PluginConfig]:
    """The collector of that name, as it is configured where it is; else all those of the matrix."""
    kind = name.partition(":")[0].replace("-", "_")
    own = [unit for unit in configured if unit.name.replace("-", "_") == kind]
    if own:
        return own
    try:
        return [make_unit(repo, "collect", kind, {}, "--metric")]
    except PluginError:
        others = [unit for unit in configured if unit.name != "time"]
    if not others:
        raise UsageError(
            f"--metric {name}: it is none of {', '.join(FREE)} and no collector, and the job matrix has no "
            "collector that may record it",
            "name a collector, e.g. --metric memory:peak, or add one: perun config edit",
        ) from None
    return others


def clock(cmd: str, name: str) -> Metric:
    """The metric of one of :data:`FREE`, as a profile of the time collector has it."""
    if name == PEAK:
        return Metric(cmd, "memory", "peak", "B", False)
    return Metric(cmd, "time", CLOCKS[name], "s", False)


def summed(cmd: str, metric: Metric) -> Metric | None:
    """The metric that the values of this one add up to; None where they are no part of any sum."""
    if metric.subtype in _NOT_SUMMED:
        return None
    return metric._replace(uid=cmd) if metric.type in _OF_FUNCTIONS and not is_printed(metric) else metric


def is_printed(metric: Metric) -> bool:
    """Whether the program prints it in a unit of its own, as requests per second: it is no part of a sum."""
    return metric.larger_is_better or (metric.type == "mixed" and metric.subtype not in ("", "time delta"))


# One run of one side: what it took, as numbers.

FIRST_WORDS: Final = "correct the command, or what execute.pre_run builds of this version"


class Reading(NamedTuple):
    """What one run gave: a value for each metric, and the profile, where a collector made one."""

    values: Mapping[Metric, float]
    sample: RunSample | None = None
    profile: Profile | None = None


class BudgetSpent(BaseException):
    """A run would have taken longer than the time that is left: no failure of what ran it, a plugin too."""


class SideFailed(Exception):
    """One of two programs that ran at the same time failed: its number, and how."""

    def __init__(self, number: int, problem: JobFailed) -> None:
        super().__init__(problem.message)
        self.number = number
        self.problem = problem


class Instrument(Protocol):
    """Measures one run in the folder of a side, within so many seconds.

    It raises :class:`BudgetSpent` where the run takes longer, and
    :class:`~perun.core.errors.JobFailed` where it fails.
    """

    name: str

    def measure(self, folder: Path, seconds: float, core: int | None) -> Reading:
        """Measure one run, on the processor `core` where that is given."""
        ...


class Clocks:
    """The clocks of whole runs, and their peak memory where that is wanted.

    :param names: of :data:`~perun.running.compare.instruments.FREE`.
    :param scratch: an empty folder.
    """

    name = "time"

    def __init__(
        self, repo: Repository, case: CompareCase, names: tuple[str, ...], scratch: Path, rng: random.Random
    ) -> None:
        self._run = Run(case.job.cmd, case.job.args, case.workload, environ=environment(repo))
        self._scratch = scratch
        self._layout = Layout(rng)
        self._metrics = {name: clock(case.job.cmd, name) for name in names}
        self._result = scratch / "usage"

    def measure(self, folder: Path, seconds: float, core: int | None = None) -> Reading:
        """Run the command once, in an environment of random size."""
        run, result = self._run._replace(cwd=folder), self._result
        argv = run.command().argv
        program = find_executable(argv[0], folder, run.environ)
        self._layout.place_anew(program, folder, self._scratch)
        engine: list[str] = []
        if PEAK in self._metrics:
            engine = programs.engine(program, argv, result)
            result.unlink(missing_ok=True)
        timed = self._timed(run, seconds, engine, core)
        if timed.sample.status:
            raise failed(run, timed.sample.status, timed.errors, FIRST_WORDS)
        return self._of_usage(self._used(result)) if engine else self._reading(timed.sample)

    def measure_both(
        self, folders: Sequence[Path], seconds: float, cores: Sequence[int]
    ) -> tuple[Reading, Reading]:
        """Run the command in two folders at the same time, each on its processor, in the same environment.

        :raises BudgetSpent: where they take longer. :raises SideFailed: where one of them fails.
        """
        sides = [self._side(*one) for one in enumerate(zip(folders, cores, strict=True))]
        run = self._run._replace(cwd=folders[0])
        timed = self._timed(run, seconds, programs.duet(sides, run.command().argv))
        if timed.sample.status:
            raise self._failure(run, sides, timed.sample.status)
        first, second = (self._of_usage(self._used(side.result)) for side in sides)
        return first, second

    def _side(self, number: int, where: tuple[Path, int]) -> programs.DuetSide:
        folder, core = where
        command = self._run._replace(cwd=folder).command()
        program = find_executable(command.argv[0], folder, self._run.environ)
        self._layout.place_anew(program, folder, self._scratch)
        result, errors = (self._scratch / f"{name}-{number}" for name in ("usage", "stderr"))
        result.unlink(missing_ok=True)
        stdin = input_of(command, folder, self._scratch)
        return programs.DuetSide(core, folder, stdin, errors, result, program)

    def _failure(self, run: Run, sides: Sequence[programs.DuetSide], status: int) -> Exception:
        """The error of the side that failed first: the other one was killed, and has no result then."""
        for number, side in enumerate(sides):
            with suppress(ValueError):
                if code := programs.read(side.result).status:
                    with opened(side.errors, os.O_RDONLY | os.O_CREAT) as errors:
                        lines = last_lines(errors)
                    return SideFailed(number, failed(run._replace(cwd=side.folder), code, lines, FIRST_WORDS))
        return failed(run, status, (), "measure in turns, without --duet")

    def _timed(self, run: Run, seconds: float, engine: Sequence[str], core: int | None = None) -> TimedRun:
        with TimedRuns(run, self._scratch, self._layout.rng, seconds, core, engine) as runs:
            timed = runs.record()
        if timed.sample.early:
            raise BudgetSpent
        return timed

    def _used(self, result: Path) -> programs.ResourceUsage:
        try:
            return programs.read(result)
        except ValueError:
            raise JobFailed(
                f"the launcher of {str(self._run)!r} reported no times",
                "measure without --metric peak-memory and --duet",
            ) from None

    def _of_usage(self, usage: programs.ResourceUsage) -> Reading:
        return self._reading(RunSample(usage.real, usage.user, usage.system, 0), float(usage.peak))

    def _reading(self, sample: RunSample, peak: float = 0.0) -> Reading:
        used = {"wall": sample.real, "cpu": sample.user + sample.system, "user": sample.user,
                "sys": sample.system, PEAK: peak}  # fmt: skip
        return Reading({metric: used[name] for name, metric in self._metrics.items()}, sample)


def quiet(unit: PluginConfig) -> PluginConfig:
    """The collector with the output of the program suppressed, where it would go to the terminal: there it
    would stand between the lines of the answer."""
    params = unit.params
    if getattr(params, "output_handling", "") != "default":
        return unit
    return replace(unit, params=replace(params, output_handling="suppress"))


class CollectorInstrument:
    """What a collector records of a run; each run is a profile.

    The first collector of those that may record the metric that does is the one that is used.
    """

    def __init__(
        self,
        repo: Repository,
        case: CompareCase,
        wanted: CollectorMetric,
        version_of: Callable[[Path], MinorVersion],
    ) -> None:
        self.name = wanted.name
        self._repo = repo
        self._case = case
        self._wanted = wanted
        self._version_of = version_of
        self._unit: PluginConfig | None = wanted.units[0] if len(wanted.units) == 1 else None
        self._runs, self._is_met = 0, False

    @property
    def frequency(self) -> float:
        """Samples for each second of CPU time; 0 where nothing is sampled."""
        return float(getattr(self._unit.params, "frequency", 0)) if self._unit else 0.0

    def measure(self, folder: Path, seconds: float, core: int | None = None) -> Reading:
        """Collect one profile."""
        seen: list[str] = []
        for unit in (self._unit,) if self._unit else self._wanted.units:
            job = replace(self._case.job, collector=quiet(unit))
            version = self._version_of(folder)
            profile = collecting.collect(self._repo, job, version, folder, silent, seen.append)
            values = self._values(profile, unit.name)
            if values:
                self._unit = unit
                return Reading(values, None, profile)
            seen += [f"{one.metric.location} ({unit.name})" for one in measurements(profile).values()]
        recorded = ", ".join(seen[:_SHOWN]) or "nothing"
        raise PluginError(
            f"--metric {self._wanted.name}: no collector gives it for {self._case.job}, but {recorded}",
            "name what is recorded, as TYPE or TYPE:SUBTYPE",
        )

    def _values(self, profile: Profile, collector: str) -> dict[Metric, float]:
        sums: dict[Metric, float] = {}
        found = headline(profile)
        whole = "" if found is None else found.location
        for series in measurements(profile).values():
            metric = summed(self._case.job.cmd, series.metric)
            is_whole = series.metric.type == SAMPLED and series.metric.location == whole
            if metric is not None and (is_whole or self._wanted.matches(series.metric, collector)):
                value = series.values.mean() if is_printed(metric) else series.values.sum()
                sums[metric] = sums.get(metric, 0.0) + float(value)
        # A function that one version lacks has no sample there.
        self._runs += 1
        self._is_met |= any(one.type != SAMPLED or one.location != whole for one in sums)
        return sums if self._is_met or self._runs < _SIDES else {}


_SIDES: Final = 2
_SHOWN: Final = 12
"""Metrics that an error lists at most."""
