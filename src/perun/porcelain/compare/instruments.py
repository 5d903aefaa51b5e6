"""One run of one side: what it took, as numbers."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from perun.errors import JobFailed, PluginError
from perun.measurement.series import Metric, measurements
from perun.plugin.api import MinorVersion, Run, silent
from perun.porcelain.compare.metrics import PEAK, Recorded, clock, is_printed, summed
from perun.porcelain.compare.plan import Case
from perun.porcelain.repository import Repository
from perun.porcelain.run import collecting
from perun.porcelain.run.jobs import Unit
from perun.porcelain.run.pre_run import environment
from perun.porcelain.timed_runs import TimedRuns
from perun.process import launching
from perun.process.execution import Sample
from perun.process.finding import find_executable
from perun.process.outcome import failed

if TYPE_CHECKING:
    from perun.profile.factory import Profile

FIRST_WORDS: Final = "correct the command, or what execute.pre_run builds of this version"


class Reading(NamedTuple):
    """What one run gave: a value for each metric, and the profile, where a collector made one."""

    values: Mapping[Metric, float]
    sample: Sample | None = None
    profile: Profile | None = None


class BudgetSpent(Exception):
    """A run would have taken longer than the time that is left."""


class Instrument(Protocol):
    """Measures one run in the folder of a side, within so many seconds.

    It raises :class:`BudgetSpent` where the run takes longer, and
    :class:`~perun.errors.JobFailed` where it fails.
    """

    name: str

    def measure(self, folder: Path, seconds: float, core: int | None) -> Reading:
        """Measure one run, on the processor `core` where that is given."""
        ...


class Clocks:
    """The clocks of whole runs, and their peak memory where that is wanted.

    :param names: of :data:`~perun.porcelain.compare.metrics.FREE`.
    :param scratch: an empty folder.
    """

    name = "time"

    def __init__(
        self, repo: Repository, case: Case, names: tuple[str, ...], scratch: Path, dice: random.Random
    ) -> None:
        self._run = Run(case.job.cmd, case.job.args, case.workload, environ=environment(repo))
        self._scratch = scratch
        self._dice = dice
        self._metrics = {name: clock(case.job.cmd, name) for name in names}
        self._result = scratch / "usage"

    def measure(self, folder: Path, seconds: float, core: int | None = None) -> Reading:
        """Run the command once, in an environment of random size."""
        run, result = self._run._replace(cwd=folder), self._result
        engine: list[str] = []
        if PEAK in self._metrics:
            argv = run.command().argv
            engine = launching.engine(find_executable(argv[0], folder, run.environ), argv, result)
            result.unlink(missing_ok=True)
        with TimedRuns(run, self._scratch, self._dice, seconds, core, engine) as runs:
            sample, errors = runs.record()
        if sample.early:
            raise BudgetSpent
        if sample.status:
            raise failed(run, sample.status, errors, FIRST_WORDS)
        peak = 0.0
        if engine:
            try:
                usage = launching.read(result)
            except ValueError:
                raise JobFailed(
                    f"the launcher of {str(run)!r} reported no times", "measure without --metric peak-memory"
                ) from None
            sample, peak = Sample(usage.real, usage.user, usage.system, 0), float(usage.peak)
        used = {"wall": sample.real, "cpu": sample.user + sample.system, "user": sample.user,
                "sys": sample.system, PEAK: peak}  # fmt: skip
        return Reading({metric: used[name] for name, metric in self._metrics.items()}, sample)


def quiet(unit: Unit) -> Unit:
    """The collector with the output of the program suppressed, where it would go to the terminal: there it
    would stand between the lines of the answer."""
    params = unit.params
    if getattr(params, "output_handling", "") != "default":
        return unit
    return replace(unit, params=replace(params, output_handling="suppress"))


class Collected:
    """What a collector records of a run; each run is a profile.

    The first collector of those that may record the metric that does is the one that is used.
    """

    def __init__(
        self, repo: Repository, case: Case, wanted: Recorded, version_of: Callable[[Path], MinorVersion]
    ) -> None:
        self.name = wanted.name
        self._repo = repo
        self._case = case
        self._wanted = wanted
        self._version_of = version_of
        self._unit: Unit | None = wanted.units[0] if len(wanted.units) == 1 else None

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
        for series in measurements(profile).values():
            metric = summed(self._case.job.cmd, series.metric)
            if metric is not None and self._wanted.matches(series.metric, collector):
                value = series.values.mean() if is_printed(metric) else series.values.sum()
                sums[metric] = sums.get(metric, 0.0) + float(value)
        return sums


_SHOWN: Final = 12
"""Metrics that an error lists at most."""
