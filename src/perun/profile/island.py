"""Island profiles: what each thread of a program used, object by object, and where its time went.

A resource stands for the calls of one thread that did one thing with one object: the 100 writes of
`MainThread` to one file. Its `amount` is in the unit of its kind, and its `seconds` are what these calls took
of the life of the thread; those of all resources of a thread add up to its life. The region `timeline` has
the single calls, or runs of like ones, and the region `island` the facts of the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.core.errors import ProfileError
from perun.profile.amounts import units
from perun.profile.sampled import SAMPLED
from perun.profile.uid import flatten

if TYPE_CHECKING:
    from perun.profile.format.core import Profile

TYPE: Final = "island"
"""The type of such a profile."""
TIMELINE: Final = "timeline"
"""The region with the calls in the order of time."""
COLUMNS: Final = ("thread", "api", "object", "start", "duration", "busy", "amount", "calls")
"""What the region says of each entry; see :class:`TimelineEntry`."""
NO_OBJECT: Final = -1
SEVERAL: Final = -2
"""In place of the number of an object: the calls of an entry are on several."""
_LARGEST: Final = 2**62
_NO_TIMELINE: Final = "collect one with: perun collect -c ./program sample"


class TimelineThread(NamedTuple):
    """A thread of the timeline.

    :param process: position of its process among the processes, from 0.
    :param created: and :param destroyed: nanoseconds since the start of the run.
    """

    name: str
    process: int
    created: int
    destroyed: int


class ApiFunction(NamedTuple):
    """A function that was recorded: the type and subtype of the resources that its calls are in, and the
    unit of their amounts."""

    name: str
    type: str
    subtype: str
    unit: str


class TimelineEntry(NamedTuple):
    """A call, or a run of calls of one thread to one function on one object.

    :param thread: and :param api: positions in the lists of the timeline. :param object: likewise, or
        :data:`NO_OBJECT`, or :data:`SEVERAL`.
    :param start: nanoseconds since the start of the run. :param duration: nanoseconds from the start of the
        first to the end of the last call. :param busy: nanoseconds that the calls took themselves.
    :param amount: the sum of their amounts. :param calls: how many there are.
    """

    thread: int
    api: int
    object: int
    start: int
    duration: int
    busy: int
    amount: int
    calls: int


class Timeline(NamedTuple):
    """What happened when, in one run.

    :param end: nanoseconds from the start to the end of the run.
    :param processes: their names. :param objects: likewise.
    :param columns: by name of :data:`COLUMNS`, one whole number for each entry, in the order of threads and
        starts.
    :param stops: when the program was stopped: start and duration in nanoseconds.
    :param calls: how many calls the entries stand for.
    """

    end: int
    processes: Sequence[str]
    threads: Sequence[TimelineThread]
    apis: Sequence[ApiFunction]
    objects: Sequence[str]
    columns: Mapping[str, Sequence[int]]
    stops: Sequence[tuple[int, int]]
    calls: int

    def entries(self) -> Iterator[TimelineEntry]:
        """The entries one by one."""
        return map(TimelineEntry._make, zip(*(self.columns[name] for name in COLUMNS), strict=True))

    @property
    def noun(self) -> str:
        """What it counts: samples, where threads were sampled, or calls."""
        return "sample" if self.apis and self.apis[0].type == SAMPLED else "call"

    def usage(self) -> Iterator[ObjectUsage]:
        """What the entries of each thread, function and object add up to; amounts of time in seconds."""
        sums: dict[tuple[int, int, int], list[int]] = {}
        for one in self.entries():
            found = sums.setdefault((one.thread, one.api, one.object), [0, 0, 0])
            for place, number in enumerate((one.amount, one.calls, one.busy)):
                found[place] += number
        for (thread, number, object), (amount, calls, busy) in sums.items():
            api, name = self.apis[number], self.objects[object] if object >= 0 else ""
            scale, unit = (1e9, "s") if api.unit == "ns" else (1, api.unit)
            lane = self.threads[thread].name
            yield ObjectUsage(api.type, api.subtype, name, lane, 1, amount / scale, unit, calls, busy / 1e9)

    def as_region(self) -> dict[str, Any]:
        """The region of a profile; :func:`timeline_of` reads it."""
        return {
            "end": self.end,
            "processes": list(self.processes),
            "threads": [list(thread) for thread in self.threads],
            "apis": [list(api) for api in self.apis],
            "objects": list(self.objects),
            "stops": [list(stop) for stop in self.stops],
            "calls": self.calls,
            "columns": {name: list(self.columns[name]) for name in COLUMNS},
        }


def timeline_of(profile: Mapping[str, Any]) -> Timeline:
    """The timeline of a profile.

    :raises ProfileError: if it has none, or one that cannot be read.
    """
    region = profile.get(TIMELINE)
    if region is None:
        raise ProfileError("the profile has no timeline", _NO_TIMELINE)
    try:
        return _timeline(region)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise ProfileError(f"the timeline of the profile is damaged: {problem}", _NO_TIMELINE) from None


def _timeline(region: Mapping[str, Any]) -> Timeline:
    found = Timeline(
        _whole(region["end"]),
        [str(name) for name in region["processes"]],
        [TimelineThread(str(name), *_whole_numbers(rest)) for name, *rest in region["threads"]],
        [ApiFunction(*map(str, values)) for values in region["apis"]],
        [str(name) for name in region["objects"]],
        {name: _whole_numbers(region["columns"][name]) for name in COLUMNS},
        [(_whole(start), _whole(duration)) for start, duration in region["stops"]],
        _whole(region["calls"]),
    )
    if len({len(column) for column in found.columns.values()}) > 1:
        raise ValueError("its columns are of unequal length")
    known = {"thread": (found.threads, 0), "api": (found.apis, 0), "object": (found.objects, SEVERAL)}
    for name, (values, least) in known.items():
        column = found.columns[name]
        if column and not (least <= min(column) and max(column) < len(values)):
            raise ValueError(f"the column {name} names what is not there")
    if any(not 0 <= thread.process < len(found.processes) for thread in found.threads):
        raise ValueError("a thread is of no process")
    return found


def _whole_numbers(column: Any) -> list[int]:
    if not isinstance(column, list):
        raise TypeError("a column is no list")
    return [_whole(value) for value in column]


def _whole(value: Any) -> int:
    if type(value) is not int or abs(value) > _LARGEST:
        raise ValueError("something else than a whole number of 62 bits is among its numbers")
    return value


def is_usage(constants: Mapping[str, Any]) -> bool:
    """Whether the resources of a group tell what a thread used; others tell the times of the command."""
    return "thread" in constants


class ObjectUsage(NamedTuple):
    """What one thread did with one object in one run.

    :param order: number of the run, from 1. :param unit: of the amount, else "".
    """

    type: str
    subtype: str
    uid: str
    thread: str
    order: int
    amount: float
    unit: str
    calls: float
    seconds: float


def usage_of(profile: Profile) -> Iterator[ObjectUsage]:
    """The resources of the profile that tell what threads used; numbers that are missing are 0.

    Those of a profile of samples are of call stacks: its timeline tells the functions of each thread.

    :raises ProfileError: as :func:`timeline_of`, for a profile of samples.
    """
    if profile["header"].get("type") == SAMPLED:
        yield from timeline_of(profile).usage()
        return
    unit_of = units(profile)
    for group in profile.groups():
        constants = group.constants
        if not is_usage(constants):
            continue
        kind, subtype = str(constants.get("type", "")), str(constants.get("subtype", ""))
        uid, thread = str(flatten(constants.get("uid", ""))), str(flatten(constants["thread"]))
        unit = unit_of(kind, subtype)
        numbers = [_column(group, name, default) for name, default in _NUMBERS]
        for order, amount, calls, seconds in zip(*numbers, strict=True):
            yield ObjectUsage(kind, subtype, uid, thread, int(order), amount, unit, calls, seconds)


_NUMBERS: Final = (("order", 1.0), ("amount", 0.0), ("calls", 0.0), ("seconds", 0.0))


def _column(group: Any, name: str, default: float) -> list[float]:
    values = group.columns.get(name)
    if values is None:
        values = [group.constants.get(name, default)] * group.size
    return [float(value) if isinstance(value, (int, float)) else default for value in values]
