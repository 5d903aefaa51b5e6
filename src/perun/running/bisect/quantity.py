"""The one number that is compared: a clock of the program, or what a collector records of it or a place."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.core.errors import PluginError, ProfileError, UsageError
from perun.core.wording import listed
from perun.history.changes.data import History, SeriesKey
from perun.measurement.series import Metric, measurements
from perun.models.growth.comparison import doubling
from perun.plugin.api import MinorVersion
from perun.profile.amounts import is_time
from perun.profile.uid import flatten
from perun.repository.repository import Repository
from perun.running.bisect.data import PER_DOUBLING
from perun.running.compare.instruments import (
    FREE,
    PEAK,
    BudgetSpent,
    CollectorInstrument,
    CollectorMetric,
    Reading,
    clock,
    is_printed,
    summed,
    wanted,
)
from perun.running.compare.plan import CompareCase

if TYPE_CHECKING:
    from perun.profile.factory import Profile


DEFAULT: Final = "cpu"
AT_A_LOCATION: Final = "instructions"
GROWTH: Final = "growth"
"""The metric, or the part of one after a colon, that is the order of growth."""
_OF_CALLS: Final = ("complexity", "trace")
"""The collectors that record sizes of calls, those of the job matrix first."""
_OF_THE_WHOLE: Final = ("exclusive", "peak", "cpu", "real", "total", "")
_OF_A_LOCATION: Final = ("total", "exclusive", "allocated", "peak", "")
_SHOWN: Final = 5


class NoSuchLocation(ProfileError):
    """A version has no such function or place, or nothing that could be told of it."""


class Quantity(NamedTuple):
    """What is measured.

    :param metric: as `perun compare` has it. :param location: a place that the collector records; empty for
        the whole program. :param recorded: who records it; None of what each run tells.
    :param sizes: workloads over which it grows, where its order of growth is wanted.
    """

    case: CompareCase
    metric: str
    location: str
    recorded: CollectorMetric | None
    sizes: tuple[str, ...] = ()

    @property
    def is_growth(self) -> bool:
        """Whether it is an order of growth."""
        return self.metric.rpartition(":")[2] == GROWTH

    def __str__(self) -> str:
        where = f" of {self.location}" if self.location else ""
        sizes = f" over {listed(self.sizes, 9)}" if self.sizes else ""
        return f"{self.metric}{where}: {self.case.job}{sizes}"


def quantity(
    repo: Repository, case: CompareCase, metric: str, location: str, sizes: tuple[str, ...] = ()
) -> Quantity:
    """What the metric of that name is.

    :raises UsageError: where nothing gives it, a clock is to be that of a location, or there are sizes of
        what is no order of growth.
    """
    name = metric or (AT_A_LOCATION if location else DEFAULT)
    if name.rpartition(":")[2] == GROWTH:
        return _growth(repo, case, name, location, sizes)
    if sizes:
        raise UsageError(
            f"--sizes: {name} is measured with the workload of the command",
            f"leave it out; or for an order of growth: --metric {name.partition(':')[0]}:{GROWTH}"
            if name not in FREE
            else f"leave it out; or for an order of growth: --metric {AT_A_LOCATION}:{GROWTH}",
        )
    if name in FREE and location:
        raise UsageError(
            f"--location {location}: {name} is measured of whole runs",
            "name what a collector records of functions: --metric instructions, memory or trace",
        )
    found = wanted(repo, (name,), case)
    return Quantity(case, name, location, None if name in FREE else found.recorded[0])


def _growth(
    repo: Repository, case: CompareCase, name: str, location: str, sizes: tuple[str, ...]
) -> Quantity:
    """The order of growth, over workloads or by the sizes of calls."""
    collector = name.removesuffix(GROWTH).removesuffix(":")
    if collector in FREE:
        raise UsageError(
            f"--metric {name}: {collector} is measured of whole runs, which have no sizes",
            f"name what a collector counts: --metric {AT_A_LOCATION}:{GROWTH} --sizes 50,100,200,400,800",
        )
    if not (location or sizes):
        raise UsageError(
            f"--metric {name}: the sizes of calls are those of a function",
            "name it: --location FUNCTION; or let the workload grow: --sizes 50,100,200,400,800",
        )
    if not collector and sizes:
        collector = AT_A_LOCATION
    elif not collector:
        names = [unit.name for unit in case.collectors]
        collector = next((one for one in _OF_CALLS if one in names), _OF_CALLS[-1])
    found = wanted(repo, (collector,), case)
    return Quantity(case, f"{collector}:{GROWTH}", location, found.recorded[0], sizes)


class SingleNumber:
    """Measures runs by a collector, and takes the one number out of each profile.

    :param metric: of the location, where it is known; then a profile without it counted nothing there.
    """

    def __init__(self, inner: CollectorInstrument, wanted: Quantity, metric: Metric | None = None) -> None:
        self.name = inner.name
        self._metric = metric
        self._inner = inner
        self._wanted = wanted

    def measure(self, folder: Path, seconds: float, core: int | None = None) -> Reading:
        """Collect one profile.

        :raises NoSuchLocation: where it has nothing of the location.
        """
        reading = self._inner.measure(folder, seconds, core)
        assert reading.profile is not None and self._wanted.recorded is not None
        if not self._wanted.location:
            metric = chosen(reading.values, "")
            assert metric is not None
            return reading._replace(values={_counted(metric): reading.values[metric]})
        collector = str(reading.profile["collector_info"]["name"])
        found = {
            series.metric: float(series.values.mean() if is_printed(series.metric) else series.values.sum())
            for series in measurements(reading.profile).values()
            if self._wanted.recorded.matches(series.metric, collector)
        }
        metric = chosen(found, self._wanted.location)
        known = self._metric
        if known is not None and known.exact and (metric is None or _counted(metric) != known):
            return reading._replace(values={known: 0.0})
        if metric is None:
            raise _missing(self._wanted, found)
        return reading._replace(values={_counted(metric): found[metric]})


def _counted(metric: Metric) -> Metric:
    """The metric as one that may be counted: what is no time, such as a number that the program prints, is if
    a few runs say the same."""
    return metric if metric.type == "time" or is_time(metric.unit) else metric._replace(exact=True)


def chosen(metrics: Iterable[Metric], location: str) -> Metric | None:
    """The metric of the location that is compared; None where there is none.

    Of several, exclusive costs are preferred to those with all callees, and sums to means.
    """
    order = _OF_A_LOCATION if location else _OF_THE_WHOLE
    at = [one for one in metrics if not location or _is_at(one, location)]
    ranked = [one for one in at if summed("", one) is not None]

    def rank(one: Metric) -> tuple[bool, int]:
        place = order.index(one.subtype) if one.subtype in order else len(order)
        return one.location != location, place

    return min(ranked, key=rank, default=None)


def _is_at(metric: Metric, location: str) -> bool:
    """Whether it is of the place; its uid may go on after a colon, as `sort:peak` does."""
    return location in (metric.location, metric.uid) or location in metric.uid.split(":")


def _missing(wanted: Quantity, there: Collection[Metric]) -> NoSuchLocation:
    return missing(wanted, {one.uid for one in there})


def missing(wanted: Quantity, there: Collection[str]) -> NoSuchLocation:
    """The error where a profile has these uids, and not the location."""
    names = sorted(there)
    near = difflib.get_close_matches(wanted.location, names, _SHOWN) or names
    return NoSuchLocation(
        f"--location {wanted.location}: {wanted.metric} of {wanted.case.job} has nothing of it",
        f"there are: {listed(near, _SHOWN)}" if near else "nothing at all was recorded",
    )


def stored_values(read: History, wanted: Quantity, machine: str) -> tuple[dict[str, float], Metric | None]:
    """What is stored of the quantity: its value by the checksum of the version, and what it is, None where
    nothing is stored.

    :param machine: the class of this machine: times of others say nothing here.
    """
    if wanted.is_growth:
        return {}, None
    rows: dict[Metric, list[int]] = {}
    for number, key in enumerate(read.keys):
        metric = _metric_of(key, wanted, machine)
        if metric is not None:
            rows.setdefault(metric, []).append(number)
    metric = chosen(rows, wanted.location)
    if metric is None:
        return {}, None
    exact = all(read.keys[number].exact for number in rows[metric])
    return by_version(read, rows[metric]), metric._replace(exact=exact)


def _metric_of(key: SeriesKey, wanted: Quantity, machine: str) -> Metric | None:
    """What the stored series is a part of; None where it has nothing to do with the quantity."""
    job, own = wanted.case.job, key.configuration
    if (own.cmd, own.args, own.workload) != (job.cmd, job.args, job.workload) or own.postprocessors:
        return None
    if key.machine not in ("", machine):
        return None
    uid = key.location.removesuffix(f" [{key.subtype}]")
    metric = Metric(uid, key.type, key.subtype, key.unit, key.exact, key.larger_is_better)
    if wanted.recorded is None:
        like = clock(job.cmd, wanted.metric)
        collector = PEAK if wanted.metric == PEAK else "time"
        same = (metric.type, metric.subtype) == (like.type, like.subtype)
        return like if same and own.collector.replace("_", "-") == collector else None
    units = {unit.name.replace("-", "_") for unit in wanted.recorded.units}
    if own.collector not in units or not wanted.recorded.matches(metric, own.collector):
        return None
    return metric if wanted.location else summed(job.cmd, metric)


def by_version(read: History, rows: list[int]) -> dict[str, float]:
    """The sums of these rows by the checksum of the version."""
    import numpy as np

    values = read.values[rows]
    known = [bool(column.any()) for column in np.isfinite(values).T]
    sums: list[float] = np.nansum(values, axis=0).tolist()
    places = zip(read.measured, sums, known, strict=True)
    return {read.versions[place].checksum: value for place, value, is_known in places if is_known}


# The order of growth of a function as one number: of the sizes of its calls, or of several workloads.

_NO_SIZE: Final = "call-order"
"""The `size-source` of calls whose size is not known."""


def metric_of(location: str, exact: bool) -> Metric:
    """What the number is of."""
    return Metric(location, GROWTH, "", PER_DOUBLING, exact)


class CallsOrder:
    """By the sizes and the times of the calls of one run, as `trace` and `complexity` record them."""

    def __init__(self, inner: CollectorInstrument, wanted: Quantity) -> None:
        self.name = inner.name
        self._inner = inner
        self._wanted = wanted

    def measure(self, folder: Path, seconds: float, core: int | None = None) -> Reading:
        """Collect one profile.

        :raises NoSuchLocation: where it has no calls of the location, or these tell no order of growth.
        """
        reading = self._inner.measure(folder, seconds, core)
        assert reading.profile is not None
        location = self._wanted.location
        sizes, costs = _calls(reading.profile, self._wanted)
        value = _told(self._wanted, sizes, costs, exact=False)
        return reading._replace(values={metric_of(location, False): value})


class WorkloadsOrder:
    """By what is counted with workloads of growing sizes; a run of each is one reading.

    What is recorded is not kept: the profiles are of other workloads than those that are asked for.
    """

    def __init__(
        self, repo: Repository, wanted: Quantity, version_of: Callable[[Path], MinorVersion]
    ) -> None:
        assert wanted.recorded is not None
        self.name = wanted.recorded.name
        self._wanted = wanted
        self._instruments = []
        for size in wanted.sizes:
            job = replace(wanted.case.job, workload=size, generated=None)
            case = wanted.case._replace(job=job)
            collected = CollectorInstrument(repo, case, wanted.recorded, version_of)
            self._instruments.append((float(size), SingleNumber(collected, wanted._replace(case=case))))

    def measure(self, folder: Path, seconds: float, core: int | None = None) -> Reading:
        """Count it with each workload. :param seconds: 0 where there is no limit.

        :raises UsageError: where it is timed, not counted.
        :raises BudgetSpent: where the time is over before all sizes are measured.
        """
        deadline = time.monotonic() + seconds
        costs: list[float] = []
        for _, instrument in self._instruments:
            if seconds and time.monotonic() >= deadline:
                raise BudgetSpent
            ((metric, value),) = instrument.measure(folder, seconds, core).values.items()
            if not metric.exact:
                raise UsageError(
                    f"--sizes: {self.name} measures times, which say little of single runs",
                    "name what is counted, as --metric instructions:growth; or leave out --sizes, and take "
                    "the sizes of the calls: --metric trace:growth or complexity:growth",
                )
            costs.append(value)
        value = _told(self._wanted, [size for size, _ in self._instruments], costs, exact=True)
        return Reading({metric_of(self._wanted.location or self._wanted.case.job.cmd, True): value})


def _told(wanted: Quantity, sizes: Sequence[float], costs: Sequence[float], *, exact: bool) -> float:
    value = doubling(sizes, costs, exact=exact)
    if isinstance(value, float):
        return value
    where = f"of {wanted.location} " if wanted.location else ""
    raise NoSuchLocation(
        f"--metric {wanted.metric}: the order of growth {where}cannot be told: {value.reason}",
        "give workloads of growing sizes: --metric instructions:growth --sizes 50,100,200,400,800",
    )


def _calls(profile: Profile, wanted: Quantity) -> tuple[list[float], list[float]]:
    """The sizes of the calls of a function, and their times.

    :raises NoSuchLocation: where there are none.
    :raises PluginError: where what is recorded has no sizes at all.
    """
    location = wanted.location
    sizes: list[float] = []
    costs: list[float] = []
    names: set[str] = set()
    has_sizes = has_calls = False
    for group in profile.groups():
        uid = str(flatten(group.constants.get("uid", "")))
        names.add(uid)
        is_sized = "structure-unit-size" in group.columns and group.constants.get("size-source") != _NO_SIZE
        has_sizes = has_sizes or is_sized
        if not _is_named(uid, location):
            continue
        has_calls = True
        if is_sized and "amount" in group.columns:
            sizes += map(float, group.columns["structure-unit-size"])
            costs += map(float, group.columns["amount"])
    if not has_calls:
        raise missing(wanted, names)
    if not sizes:
        what = f"the sizes that {location} works on" if has_sizes else "any sizes"
        raise PluginError(
            f"the calls are recorded without {what}, so that no order of growth can be told",
            f"name the size in the job matrix, as params: {{size: ['{location}=n']}} of the collector; or "
            "count over workloads: --metric instructions:growth --sizes 50,100,200,400,800",
        )
    return sizes, costs


def _is_named(uid: str, location: str) -> bool:
    """Whether the uid is the location, with or without its source and its parameters."""
    return location in (uid, uid.partition("(")[0], uid.rpartition(":")[2])
