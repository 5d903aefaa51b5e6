"""The repeated measurements of a profile: of each uid and metric, the values in the order of measuring.

What is compared here are whole series, never their means. So the clocks of a command stay apart, and what it
used of the processor, `user` and `sys` of the same run together, is a series of its own: the kernel divides
the time of a process among the two by samples of its own clock, but knows their sum exactly.

A profile of several workloads is a family: each of its series is read as one of each workload.

numpy is imported here, so this module is only loaded by what computes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.measurement.estimate import Kind, Point, Readings, Round, Sample, sample_of
from perun.profile import session as sessions
from perun.profile.amounts import common_unit, is_size, larger_is_better, units
from perun.profile.format.columns import is_packed
from perun.profile.format.grouping import ResourceGroup
from perun.profile.sampled import SAMPLED, WHOLE
from perun.profile.session import RUN
from perun.profile.uid import PLAIN_SUBTYPES, flatten, location, shown_subtype

if TYPE_CHECKING:
    from perun.profile.factory import Profile

Floats = NDArray[np.float64]

CPU: Final = "cpu"
CALLS: Final = "calls"
TOTAL: Final = "total"
INCLUSIVE: Final = "inclusive"
PARTS_OF_CPU: Final = ("user", "sys")
INSTRUCTIONS: Final = "instructions"
EXACT: Final = frozenset({"memory", INSTRUCTIONS, CALLS})
"""Types and subtypes of what is counted rather than timed: a run like the last one counts the same."""
_SUMS_OF_MEMORY: Final = frozenset({"allocated", "allocations", "peak", "leaked", "temporary", "lost"})
_RELEASES: Final = frozenset({"free", "delete", "delete[]"})
_OF_CALLS: Final = "mixed"
_ORDER: Final = ("order", "call-order", "timestamp")
_SIZES: Final = ("structure-unit-size", "workload")
_TIMED: Final = ("time", "mixed")
MOST: Final = 5000
"""Series that are kept of one profile: the largest ones."""


class Metric(NamedTuple):
    """What was measured.

    :param uid: flattened. :param type: and :param subtype: of the resources; the subtype `cpu` is derived
        from `user` and `sys`, and `calls` and `total` from the calls of a function.
    :param unit: of the values, else "".
    :param exact: whether it is counted, such as bytes, instructions or calls.
    :param larger_is_better: whether a growth is an improvement, as of a throughput.
    """

    uid: str
    type: str
    subtype: str
    unit: str
    exact: bool
    larger_is_better: bool = False

    @property
    def location(self) -> str:
        """The uid, and in brackets what of it was measured where there may be more than one thing:
        `./prog [cpu]`, `main [calls]`."""
        return location(self.uid, self.shown_subtype)

    @property
    def shown_subtype(self) -> str:
        """The subtype; empty where the uid says it all."""
        return shown_subtype(self.uid, self.type, self.subtype)

    @property
    def kind(self) -> Kind:
        """What may change the numbers beside the program."""
        if self.exact:
            return Kind.CALLS if self.subtype == CALLS else Kind.COUNTED
        if self.type == "time" and self.subtype in (CPU, *PARTS_OF_CPU):
            return Kind.PROCESSOR
        if self.type == SAMPLED and not is_size(self.unit):  # samples of a clock, counted or weighed
            return Kind.TIMED if self.uid.partition(" [")[0].endswith(f":{WHOLE}") else Kind.SAMPLED
        return Kind.TIMED if self.type in _TIMED else Kind.PRINTED

    @property
    def is_part(self) -> bool:
        """Whether it is what samples say of one function by itself, without what it calls."""
        return self.kind is Kind.SAMPLED and not self.uid.endswith(f":{INCLUSIVE}")

    @property
    def name(self) -> SeriesName:
        """What lists and histories call it."""
        return SeriesName(
            self.location, self.type, self.subtype, self.unit, self.exact, self.larger_is_better
        )


class SeriesName(NamedTuple):
    """What a series of a profile measures.

    :param location: `./prog [cpu]`, as :attr:`Metric.location`.
    :param type: and :param subtype: of the resources. :param unit: of the numbers, else "".
    :param exact: whether it is counted. :param larger_is_better: whether a growth is an improvement.
    """

    location: str
    type: str
    subtype: str
    unit: str
    exact: bool
    larger_is_better: bool

    @property
    def kind(self) -> Kind:
        """As :attr:`Metric.kind`."""
        return Metric(*self[:-1]).kind

    @property
    def is_part(self) -> bool:
        """As :attr:`Metric.is_part`."""
        return Metric(*self[:-1]).is_part


class Series(NamedTuple):
    """The values of one metric.

    :param values: shape (n,), finite, in the order of measuring.
    :param sizes: of the input that each value belongs to, shape (n,), numbers or texts; None if all have
        the same or none.
    :param of_one_run: whether all of them were measured within one run of the program, as the calls of a
        function are: another run may differ from it as a whole.
    :param absent: what a profile has of it that does not have the series, None if it has nothing.
    :param whole: what the values are a part of, as instructions of a function are of those of the program;
        None if that is not known.
    :param runs: the number of the pooled profile that each value is of, ascending, shape (n,); None if the
        profile is not pooled.
    """

    metric: Metric
    values: Floats
    of_one_run: bool = False
    absent: float | None = None
    sizes: NDArray[Any] | None = None
    whole: float | None = None
    runs: Floats | None = None


def measurements(profile: Profile) -> dict[str, Series]:
    """The series of the profile by :attr:`Metric.location`, in the order of the profile.

    Of a command, `real`, `user`, `sys` and `cpu` are series. Of a function whose calls were recorded, the
    times of its calls are one, their sum (`total`) and their number (`calls`) two more, of one value. Of
    memory those sums are taken that the profile has of the program and its functions; else, what was
    allocated at a place is summed up. The instructions and samples of a function are summed up over its call
    stacks.

    All values are in the :func:`~perun.profile.amounts.common_unit` of theirs, so that a program that prints
    `KB/s` once and `MB/s` another time has one series.
    """
    unit_of = units(profile)
    more_is_better = larger_is_better(profile)
    gathered: dict[Metric, _Values] = {}
    summed_up = any(group.constants.get("subtype") in _SUMS_OF_MEMORY for group in profile.groups())
    for uid, group in _groups(profile):
        kind, subtype = (str(group.constants.get(name, "")) for name in ("type", "subtype"))
        if kind == "memory" and not _is_wanted(subtype, summed_up):
            continue
        if kind == "memory" and not summed_up:
            subtype = "allocated"
        unit = unit_of(kind, subtype)
        factor, common = common_unit(unit)
        better = bool(more_is_better & {uid, kind, subtype, unit})
        if subtype == unit:  # a collector that knows nothing else to tell its values by
            subtype = common
        unit = common
        metric = Metric(uid, kind, subtype, unit, bool(EXACT & {kind, subtype}), better)
        gathered.setdefault(metric, _Values()).add(group, factor)
    return {series.metric.location: series for series in _series(gathered, summed_up=summed_up)}


class _Values:
    """The values of a metric, and where each stands in the order of measuring; read once all are added.

    Most are of one group in that order already: nothing is sorted then.
    """

    def __init__(self) -> None:
        self.absent: float | None = None
        self._values: list[Floats] = []
        self._order: list[Floats] = []
        self._sizes: list[NDArray[Any] | None] = []
        self._runs: list[Floats] = []
        self._is_pooled = False

    def add(self, group: ResourceGroup, factor: float) -> None:
        """The amounts of one more group, times `factor`."""
        values = _numbers(group, "amount") * factor
        name = next((name for name in _ORDER if name in group.columns), None)
        start = sum(map(len, self._values))
        order = np.arange(start, start + len(values), dtype=float) if name is None else _numbers(group, name)
        self._is_pooled |= RUN in group.columns
        runs = _numbers(group, RUN) if RUN in group.columns else np.zeros(values.size)
        name = next((name for name in _SIZES if name in group.columns or name in group.constants), None)
        sizes = None if name is None else _sizes(group, name)
        good = np.isfinite(values)
        if np.count_nonzero(good) < good.size:
            values, order, runs = values[good], order[good], runs[good]
            sizes = None if sizes is None else sizes[good]
        self._values.append(values)
        self._order.append(order)
        self._runs.append(runs)
        self._sizes.append(sizes)
        if group.constants.get("absent") == 0:
            self.absent = 0.0

    @cached_property
    def order(self) -> Floats:
        """The places in the order of measuring, those of one pooled profile after the other, shape (n,)."""
        return self._in_order(self._order)

    @cached_property
    def runs(self) -> Floats:
        """The number of the pooled profile that each of the values is of, ascending, shape (n,)."""
        return np.sort(_joined(self._runs))

    @cached_property
    def values(self) -> Floats:
        """The values in that order, shape (n,)."""
        return self._in_order(self._values)

    @property
    def sizes(self) -> NDArray[Any] | None:
        """The size of each of the values; None if all are alike."""
        if all(sizes is None for sizes in self._sizes):
            return None
        given = [
            np.zeros(values.size) if sizes is None else sizes
            for sizes, values in zip(self._sizes, self._values, strict=True)
        ]
        if len({sizes.dtype.kind for sizes in given}) > 1:  # some have none
            return None
        sizes: NDArray[Any] = self._in_order(given)
        return sizes if sizes.size and (sizes != sizes[0]).any() else None

    def _in_order(self, parts: list[NDArray[Any]]) -> NDArray[Any]:
        joined = _joined(parts)
        return joined if self._ranked is None else joined[self._ranked]

    @cached_property
    def _ranked(self) -> NDArray[np.intp] | None:
        """The places of the values in the order of measuring; None if they are in it."""
        order = _joined(self._order)
        if not self._is_pooled and np.count_nonzero(order[1:] >= order[:-1]) == order.size - 1:
            return None
        return np.lexsort((order, _joined(self._runs)))


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _series(gathered: Mapping[Metric, _Values], *, summed_up: bool) -> Iterator[Series]:
    """The series, and those that are derived from them."""
    own = [metric for metric in gathered if (metric.type, metric.subtype) == (INSTRUCTIONS, "exclusive")]
    instructions = sum(float(_sums(gathered[one].values, gathered[one].runs).mean()) for one in own)
    for metric, found in gathered.items():
        values = found.values
        if not values.size:
            continue
        if metric.type == INSTRUCTIONS:
            yield Series(metric, _sums(values, found.runs), absent=found.absent, whole=instructions)
            continue
        if metric.type == SAMPLED or (metric.type == "memory" and not summed_up):
            yield Series(metric, _sums(values, found.runs), absent=found.absent)
            continue
        of_calls = metric.type == _OF_CALLS and metric.subtype in PLAIN_SUBTYPES
        of_calls = of_calls and not metric.larger_is_better  # what a program prints of itself
        pooled = found.runs if found.runs[-1] else None
        yield Series(metric, values, of_calls, found.absent, found.sizes, runs=pooled)
        if of_calls:
            yield Series(metric._replace(subtype=TOTAL), _sums(values, found.runs))
            calls = metric._replace(subtype=CALLS, unit="", exact=True)
            yield Series(calls, _sums(np.ones(values.size), found.runs))
        if metric.type == "time" and metric.subtype == "sys":
            yield from _cpu(metric, found, gathered.get(metric._replace(subtype="user")))


def _cpu(metric: Metric, system: _Values, user: _Values | None) -> Iterator[Series]:
    """The sum of the user and the system time of each run, if both are known of the same runs."""
    if user is not None and np.array_equal(system.order, user.order):
        with np.errstate(over="ignore"):
            sums = user.values + system.values
        if np.isfinite(sums).all():
            pooled = system.runs if system.runs[-1] else None
            yield Series(metric._replace(subtype=CPU), sums, sizes=system.sizes, runs=pooled)


def _sums(values: Floats, runs: Floats) -> Floats:
    """The sum of each run, shape (runs,); the largest float where it is beyond all of them.

    :param runs: the number of the run of each value, ascending, shape (n,).
    """
    starts = np.flatnonzero(np.diff(runs, prepend=-1.0))
    with np.errstate(over="ignore"):
        totals: Floats = np.nan_to_num(np.add.reduceat(values, starts))
    return totals


def _is_wanted(subtype: str, summed_up: bool) -> bool:
    return subtype in _SUMS_OF_MEMORY if summed_up else subtype not in _RELEASES


def _groups(profile: Profile) -> Iterator[tuple[str, ResourceGroup]]:
    for group in profile.groups():
        if group.size and ("amount" in group.columns or "amount" in group.constants):
            yield str(flatten(group.constants.get("uid", ""))), group


def _numbers(group: ResourceGroup, name: str) -> Floats:
    """The values of the field, shape (n,); NaN if one is no number."""
    column: Any = group.columns.get(name)
    if column is None:
        column = [group.constants.get(name)] * group.size
    if is_packed(column):
        return np.frombuffer(column, column.typecode).astype(np.float64)
    if set(map(type, column)) != {float}:
        column = [_number(value) for value in column]
    return np.array(column, np.float64)


def _sizes(group: ResourceGroup, name: str) -> NDArray[Any]:
    """The size of the input of each resource, shape (n,); 0 if it has none."""
    if name not in group.columns and isinstance(group.constants[name], str):
        return np.full(group.size, group.constants[name])
    return np.nan_to_num(_numbers(group, name))


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def readings(profile: Profile, measured: Mapping[str, Series] | None = None) -> dict[SeriesName, Readings]:
    """What the profile measured of each series, in its order; of very many series the :data:`MOST` largest.

    Times of single calls are left out: their sum and their number are series of their own.

    :param measured: its :func:`measurements`, where they are known.
    """
    found = {
        series.metric.name: readings_of(profile, series)
        for series in (measurements(profile) if measured is None else measured).values()
        if not series.of_one_run
    }
    if len(found) > MOST:
        sizes = {name: abs(Point(one.rounds, name.kind).value) for name, one in found.items()}
        least = sorted(sizes.values(), reverse=True)[MOST]
        found = {name: one for name, one in found.items() if sizes[name] > least}
    return found


def read_of(found: Mapping[SeriesName, Readings], name: SeriesName) -> Readings | None:
    """What a profile measured of a series: of a function in which no sample was, 0 in each round.

    :param found: of the profile, as of :func:`readings`.
    """
    if name in found or name.kind is not Kind.SAMPLED:
        return found.get(name)
    other = next((one for own, one in found.items() if own[1:4] == name[1:4]), None)
    return None if other is None else without_samples(other)


def without_samples(of: Readings) -> Readings:
    """0 in each of the rounds."""
    none = {"": Sample(1, 0.0, None, positive=False)}
    return Readings(tuple(one._replace(samples=none) for one in of.rounds), of.levels, of.whole)


def readings_of(profile: Profile, series: Series) -> Readings:
    """What the profile measured of one of its series.

    In a session whose rounds are runs, the k-th run is its k-th round; else the profile is one round.
    Profiles that were pooled are rounds each.
    """
    session = sessions.session_of(profile)
    calls = series.metric.kind is Kind.CALLS
    rounds: dict[tuple[str, int, str], dict[str, Sample]] = {}
    for visit, workload, values in _parts(profile, series, session):
        sample = sample_of(values)
        if sample is not None:
            # The number of calls in one run varies by nothing that is known.
            rounds.setdefault(visit, {})[workload] = sample._replace(spread=0.0) if calls else sample
    own = tuple(Round(id_, number, one, of) for (id_, number, of), one in rounds.items())
    whole = series.whole or 0.0
    if session is None:
        return Readings(own, whole=whole)
    return Readings(own, session.levels, whole, session.noise_of(series.metric.location))


def _parts(
    profile: Profile, series: Series, session: sessions.Session | None
) -> Iterator[tuple[sessions.Visit, str, list[float]]]:
    """The values by visit and by workload."""
    values = series.values.tolist()
    labels = ["" if series.sizes is None else _label(one) for one in
              (series.sizes.tolist() if series.sizes is not None else values)]  # fmt: skip
    if series.runs is not None:
        numbers = series.runs.astype(int).tolist()
    elif session is not None and session.runs_are_rounds:
        numbers = _counted(labels)
    else:
        numbers = [0] * len(values)
    found: dict[tuple[int, str], list[float]] = {}
    for number, label, value in zip(numbers, labels, values, strict=True):
        found.setdefault((number, label), []).append(value)
    pooled = sessions.pooled(profile)
    for (number, label), own in found.items():
        of_pool = pooled[number] if number < len(pooled) else None
        if of_pool is not None:
            yield of_pool, label, own
        elif session is not None and series.runs is None:
            round_ = number if session.runs_are_rounds else session.round
            yield sessions.Visit(session.id, round_, session.measured), label, own
        else:
            yield sessions.Visit(f"#{number}" if series.runs is not None else "", 0), label, own


def _counted(labels: list[str]) -> list[int]:
    """How many of the labels before each are the same."""
    seen: dict[str, int] = {}
    numbers = []
    for label in labels:
        numbers.append(seen.get(label, 0))
        seen[label] = numbers[-1] + 1
    return numbers


def _label(size: object) -> str:
    return f"{size:g}" if isinstance(size, float) else str(size)
