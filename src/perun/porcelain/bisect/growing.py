"""The order of growth of a function as one number: of the sizes of its calls, or of several workloads."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from perun.errors import PluginError, UsageError
from perun.measurement.series import Metric
from perun.models.growth.doubling import doubling
from perun.plugin.api import MinorVersion
from perun.porcelain.bisect.data import PER_DOUBLING
from perun.porcelain.bisect.quantity import GROWTH, NoSuchLocation, OneNumber, Quantity, missing
from perun.porcelain.compare.instruments import BudgetSpent, Collected, Reading
from perun.porcelain.repository import Repository
from perun.profile.uid import flatten

if TYPE_CHECKING:
    from perun.profile.factory import Profile

_NO_SIZE: Final = "call-order"
"""The `size-source` of calls whose size is not known."""


def metric_of(location: str, exact: bool) -> Metric:
    """What the number is of."""
    return Metric(location, GROWTH, "", PER_DOUBLING, exact)


class OfCalls:
    """By the sizes and the times of the calls of one run, as `trace` and `complexity` record them."""

    def __init__(self, inner: Collected, wanted: Quantity) -> None:
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
        value = _told(self._wanted, sizes, costs)
        return reading._replace(values={metric_of(location, False): value})


class OverWorkloads:
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
            collected = Collected(repo, case, wanted.recorded, version_of)
            self._instruments.append((float(size), OneNumber(collected, wanted._replace(case=case))))

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
        value = _told(self._wanted, [size for size, _ in self._instruments], costs)
        return Reading({metric_of(self._wanted.location or self._wanted.case.job.cmd, True): value})


def _told(wanted: Quantity, sizes: Sequence[float], costs: Sequence[float]) -> float:
    value = doubling(sizes, costs)
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
