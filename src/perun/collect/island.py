"""Island collector: what a Python program uses, call by call, and where its time went.

:mod:`perun.island` records the program and accounts for its time; this collector makes a profile of that.
"""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np

from perun.collect._common import runs as common
from perun.collect._common.runs import (
    completed,
    new_profile,
    python_program_of,
    require_recorded,
    shortfalls,
    succeeds,
)
from perun.core.errors import CollectorUnavailable, PerunError
from perun.core.process.execution import Execution, RunSample
from perun.island import opening
from perun.island.options import IslandOptions
from perun.island.program_runner import PythonProgram, limits_of, words_of
from perun.island.statistics import label_of
from perun.native.columns import Ints
from perun.plugin.api import CollectContext, Run
from perun.plugin.params import param, to_mapping
from perun.profile.factory import Profile
from perun.profile.island import (
    COLUMNS,
    NO_OBJECT,
    SEVERAL,
    TIMELINE,
    TYPE,
    ApiFunction,
    Timeline,
    TimelineThread,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from perun.island.opening import OpenRecording
    from perun.island.statistics import Usage


# Makes the profile of the runs of an island: a resource for what each thread did with each object.

MAX_OBJECTS: Final = 2_000
"""Objects, each with its thread and what was done with it, that have a resource of their own in one run."""
OTHERS: Final = "(others)"
"""In place of an object: the objects that used least, of a run that has more."""
NUMBERS: Final = ("calls", "seconds", "ambiguous", "physical")
"""Columns of the resources beside those that all profiles have."""
_TIME: Final = "time"


class UsageRow(NamedTuple):
    """What one thread did with one object in one run; the fields of a resource.

    :param uid: the object, or the thread where there is none. :param thread: its name, with that of its
        process where there are several. :param island: the island that it ran in.
    """

    type: str
    subtype: str
    uid: str
    thread: str
    island: str
    unit: str
    amount: float
    calls: int
    seconds: float
    ambiguous: float
    physical: int


def shown_objects(cwd: Path) -> Callable[[str], str]:
    """How objects are named: paths below the folder of the run are relative to it, as each version of a
    project is measured in a folder of its own."""
    folders = tuple(dict.fromkeys(os.path.join(one, "") for one in (str(cwd), os.path.realpath(cwd))))

    def shown(name: str) -> str:
        return next((name[len(folder) :] for folder in folders if name.startswith(folder)), name)

    return shown


def rows_of(
    usage: Iterable[Usage], processes: Sequence[str], shown: Callable[[str], str] = str
) -> list[UsageRow]:
    """The rows of a run; those of the least objects are put together, so that there are at most
    :data:`MAX_OBJECTS` and one for each thread and kind.

    :param processes: the names of the processes, by which threads are told apart if there are several.
    :param shown: how an object is named.
    """
    found = []
    for one in usage:
        thread = f"{one.thread} in {processes[one.process]}" if len(processes) > 1 else one.thread
        found.append(
            UsageRow(
                one.type, one.subtype, shown(one.object) or thread, thread, one.island, one.unit, one.amount,
                one.calls, one.seconds, one.ambiguous, one.physical,
            )
        )  # fmt: skip
    return _fewer(found)


def _fewer(rows: list[UsageRow]) -> list[UsageRow]:
    objects = [row for row in rows if row.uid != row.thread]
    if len(objects) <= MAX_OBJECTS:
        return rows
    of_paths = _summed(
        row._replace(uid=_without_number(row.uid)) if row.uid != row.thread else row for row in rows
    )
    objects = [row for row in of_paths if row.uid != row.thread]
    ranked = sorted(objects, key=lambda row: (row.seconds, row.amount), reverse=True)
    kept = set(ranked[:MAX_OBJECTS])
    return _summed(
        row if row in kept or row.uid == row.thread else row._replace(uid=OTHERS) for row in of_paths
    )


def _without_number(uid: str) -> str:
    """The name of a file or a peer without the number that tells its openings apart."""
    name, sign, number = uid.rpartition("#")
    return name.rstrip() if sign and number.isdecimal() else uid


def _summed(rows: Iterable[UsageRow]) -> list[UsageRow]:
    sums: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        numbers = sums.setdefault(row[:6], [0, 0, 0.0, 0.0, 0])
        for place, value in enumerate(row[6:]):
            numbers[place] += value
    return [UsageRow(*key, *numbers) for key, numbers in sums.items()]  # type: ignore[arg-type]


def resources_of(rows: Sequence[UsageRow], order: int) -> list[dict[str, Any]]:
    """The resources of the rows of one run; they name their island where there are several.

    :param order: number of the run, from 1.
    """
    several = len({row.island for row in rows}) > 1
    return [_resource(row, order) | ({"island": row.island} if several else {}) for row in rows]


def _resource(row: UsageRow, order: int) -> dict[str, Any]:
    resource: dict[str, Any] = {
        "type": row.type,
        "subtype": row.subtype,
        "uid": row.uid,
        "thread": row.thread,
        "amount": row.amount,
        "calls": row.calls,
        "seconds": row.seconds,
        "order": order,
    }
    if order == 1:  # a flame graph shows one run, as the timeline does, and not the sum of all
        resource["trace"] = _trace(row)
    if row.ambiguous:
        resource["ambiguous"] = row.ambiguous
    if row.physical not in (0, row.amount) and row.unit == "B":
        resource["physical"] = row.physical
    return resource


def _trace(row: UsageRow) -> list[str]:
    """What a flame graph stacks on each other: the thread, the type, the subtype and the object."""
    parts = [row.thread, row.type, row.subtype, row.uid]
    if row.uid == row.thread:
        parts.pop()
    if row.type == row.subtype:
        del parts[1]
    return parts[::-1]


def times_of(command: str, order: int, opened: OpenRecording) -> list[dict[str, Any]]:
    """The times of one run, as the time collector notes them: `real` stands for the profile in lists."""
    times = {"real": opened.live, "user": opened.result.user, "sys": opened.result.system}
    return [
        {"type": _TIME, "subtype": subtype, "uid": command, "amount": amount, "order": order}
        for subtype, amount in times.items()
    ]


_SECONDS: Final = {_TIME: "s", "wait": "s", "unknown": "s"}
"""Units of types that a run may have or not, by chance; profiles of one program have the same ones."""


def units_of(found: Mapping[tuple[str, str], str]) -> dict[str, str]:
    """The units of the header: of each type the most frequent one, and those of subtypes that differ.

    :param found: by type and subtype.
    """
    known: dict[str, dict[str, str]] = defaultdict(dict)
    for (kind, subtype), unit in found.items():
        known[kind][subtype] = unit
    units = dict(_SECONDS)
    for kind, subtypes in sorted(known.items()):
        each = sorted(subtypes.values(), reverse=True)  # where two are as frequent, a real unit
        units[kind] = common = _SECONDS.get(kind) or max(dict.fromkeys(each), key=each.count)
        units |= {f"{kind} ({name})": unit for name, unit in sorted(subtypes.items()) if unit != common}
    return units


def facts_of(opened: OpenRecording) -> dict[str, Any]:
    """The region `island` of the profile: what is known of the first run as a whole."""
    result, stopped = opened.result, [end - start for start, end in opened.stops]
    return {
        "live": opened.live,
        "ended": result.ending,
        "processes": opened.processes,
        "threads": len(opened.threads),
        "stops": {"count": len(stopped), "seconds": sum(stopped) / 1e9, "stopped-by-rule": opened.by_rule},
        "unattributed": opened.unattributed._asdict(),
        "held": result.held,
        "throttled": result.throttled / 1e9,
        "notes": opened.notes,
    }


# The island collector: runs a Python program in an island, and makes a profile of what that recorded.

# The parameters of the collector: the options of an island, and what every collector has.

TIMELINE_ENTRIES = 100_000
"""Entries of the timeline of a profile: about 3 MB of JSON, and a page that moves fluently."""


@dataclass(frozen=True)
class IslandParams(IslandOptions):
    """What is recorded, how often, and what the profile keeps of it."""

    timeline_entries: int = param(
        TIMELINE_ENTRIES,
        metavar="<int>",
        minimum=0,
        help="The most entries that the timeline in the profile has. Of more calls, those of one thread to "
        "one function that follow closely are one entry with their number; 0 keeps no timeline.",
    )
    repeat: int = param(
        1,
        short="-r",
        metavar="<int>",
        minimum=1,
        help="Run the command <int> times; from 5 on `perun check` can say how sure it is of times.",
    )
    ignore_failure: bool = common.ignore_failure()
    timeout: float = common.timeout(kept=True)


# The timeline of a run in at most so many entries: calls that follow closely become one entry.

MAX_STOPS: Final = 10_000
"""Stops that a timeline has at most; of more those that are near become one."""
_GAPS: Final[tuple[int, ...]] = tuple(1_000 * 4**step for step in range(26))
"""Nanoseconds that may be between two calls of an entry, one after the other tried; the last is a year and
more."""
_OF_SEVERAL: Final = 1_000_000
"""From this gap on calls are joined whatever their object: a screen has no thousand points for a second."""


class CallColumns(NamedTuple):
    """Calls in the order of threads and, of each, of starts: the columns of a timeline, shape (n,)."""

    thread: Ints
    api: Ints
    object: Ints
    start: Ints
    duration: Ints
    amount: Ints


class TimelineColumns(NamedTuple):
    """Entries in the order of threads and starts: the columns of a timeline, by their names.

    :param gap: nanoseconds; calls of one entry are no farther apart. 0 where each is an entry of its own.
    """

    columns: dict[str, Ints]
    gap: int


def joined(blocks: Iterable[CallColumns], most: int) -> TimelineColumns:
    """The calls as entries: those of one thread to one function on one object that follow closely are one.

    :param blocks: of all calls; those of a thread to a function by starts.
    :param most: how many entries there may be, unless there are more threads and functions.
    """
    few: list[CallColumns] = []
    calls = 0
    on_one, on_any = _Runs(most), _Runs(most)
    for block in blocks:
        calls += len(block.start)
        few = [*few, block] if calls <= most else []
        on_one.add(block)
        on_any.add(block._replace(object=np.full_like(block.object, SEVERAL)))
    if calls <= most:
        return TimelineColumns(_shown([_entries(one, np.arange(len(one.start))) for one in few]), 0)
    for runs in (on_one, on_any):
        entries = runs.entries()
        if runs is on_any or runs.gap < _OF_SEVERAL:
            break
    return TimelineColumns(_shown([entries]), runs.gap)


class _Runs:
    """Calls of one thread to one function on one object that follow closely, as entries.

    :ivar gap: nanoseconds; the least of :data:`_GAPS` with which there are few enough of them.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._gaps: list[int] = list(_GAPS)
        self._parts: list[dict[str, Ints]] = []

    @property
    def gap(self) -> int:
        return self._gaps[0]

    def add(self, calls: CallColumns) -> None:
        """Calls that come after the ones before."""
        if not len(calls.start):
            return
        order = np.argsort(_keys(calls._asdict()), kind="stable")
        calls = CallColumns(*(column[order] for column in calls))
        ends = calls.start + calls.duration
        firsts = np.flatnonzero(self._begins(calls._asdict(), ends))
        lasts = np.append(firsts[1:], len(ends)) - 1
        self._parts.append(_entries(calls, firsts) | {"last": ends[lasts]})
        if sum(len(part["start"]) for part in self._parts) > 2 * self._most:
            self.entries()

    def entries(self) -> dict[str, Ints]:
        """The entries so far. More calls never make fewer of them, so a gap that is too small stays so."""
        while True:
            found = {name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]}
            order = np.argsort(_keys(found), kind="stable")
            found = {name: column[order] for name, column in found.items()}
            firsts = np.flatnonzero(self._begins(found, found["last"]))
            whole = {name: found[name][firsts] for name in ("thread", "api", "object", "start")}
            whole["end"] = np.maximum.reduceat(found["end"], firsts)
            for name in ("busy", "amount", "calls"):
                whole[name] = np.add.reduceat(found[name], firsts)
            whole["last"] = found["last"][np.append(firsts[1:], len(order)) - 1]
            self._parts = [whole]
            if len(firsts) <= self._most or len(self._gaps) == 1:
                return whole
            del self._gaps[0]

    def _begins(self, found: dict[str, Ints], ends: Ints) -> NDArray[np.bool_]:
        """Which begin an entry, of calls or runs that are in the order of their keys."""
        keys = _keys(found)
        far = found["start"][1:] - ends[:-1] > self.gap
        return np.append(True, far | (keys[1:] != keys[:-1]))


def _keys(found: dict[str, Ints]) -> Ints:
    """A number for each thread, function and object."""
    return (found["thread"] << 42) + (found["api"] << 34) + found["object"] - SEVERAL


def _entries(calls: CallColumns, firsts: Ints) -> dict[str, Ints]:
    """The entries that begin at these places of the calls."""
    columns = calls.thread[firsts], calls.api[firsts], calls.object[firsts], calls.start[firsts]
    found = dict(zip(("thread", "api", "object", "start"), columns, strict=True))
    if not len(firsts):
        return found | dict.fromkeys(("end", "busy", "amount", "calls"), firsts)
    found["end"] = np.maximum.reduceat(calls.start + calls.duration, firsts)
    found["busy"] = np.add.reduceat(calls.duration, firsts)
    found["amount"] = np.add.reduceat(calls.amount, firsts)
    return found | {"calls": np.diff(np.append(firsts, len(calls.start)))}


def _shown(parts: Sequence[dict[str, Ints]]) -> dict[str, Ints]:
    """The entries as columns of a timeline."""
    if not parts:
        return {name: np.zeros(0, np.int64) for name in COLUMNS}
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    found["duration"] = found["end"] - found["start"]
    shown = np.lexsort((-found["duration"], found["start"], found["thread"]))
    return {name: found[name][shown] for name in COLUMNS}


def timeline_region(opened: OpenRecording, most: int, shown: Callable[[str], str]) -> dict[str, Any]:
    """The region `timeline` of a profile.

    :param most: about how many entries it has at most. :param shown: how an object is named.
    """
    recorded = _RecordedCalls(opened)
    found = joined(recorded.blocks(), most)
    return Timeline(
        round(opened.live * 1e9),
        opened.processes,
        [TimelineThread(lane.name, lane.process, lane.created, lane.destroyed) for lane in opened.lanes],
        [
            ApiFunction(api.name, api.type, api.subtype, "ns" if api.unit == "s" else api.unit)
            for api in recorded.apis
        ],
        list(map(shown, recorded.objects)),
        {name: column.tolist() for name, column in found.columns.items()},
        _stops(opened.stops),
        recorded.calls,
    ).as_region()


class _RecordedCalls:
    """The calls of a run for its timeline, in blocks.

    :ivar apis: functions and their numbers, :ivar objects: likewise, and :ivar calls: how many there are, of
        the blocks so far.
    """

    def __init__(self, opened: OpenRecording) -> None:
        self._opened = opened
        self._lives = [thread.destroyed for thread in opened.threads]
        self.apis: dict[Any, int] = {}
        self.objects: dict[str, int] = {}
        self.calls = 0

    def blocks(self) -> Iterator[CallColumns]:
        """The calls of each thread by their starts; concurrent ones are a block of their own."""
        thread = 0
        for recording in self._opened.recordings:
            apis, objects = (np.full(len(each) + 1, SEVERAL) for each in (recording.apis, recording.objects))
            objects[-1] = NO_OBJECT
            for number in range(len(recording.threads)):
                for block in recording.blocks(number):
                    table = block.calls[block.held :]
                    for api in np.unique(table["api"][apis[table["api"]] == SEVERAL]).tolist():
                        apis[api] = self.apis.setdefault(recording.apis[api], len(self.apis))
                    for item in np.unique(table["object"][objects[table["object"]] == SEVERAL]).tolist():
                        objects[item] = self.objects.setdefault(label_of(recording, item), len(self.objects))
                    self.calls += len(table)
                    yield self._columns(table, thread, apis, objects)
                thread += 1

    def _columns(self, table: Any, thread: int, apis: Ints, objects: Ints) -> CallColumns:
        begin = table["start"]
        # A call that has not returned lasts as long as its thread.
        end = np.maximum(np.where(table["end"] < 0, self._lives[thread], table["end"]), begin)
        return CallColumns(
            np.full(len(table), thread, np.int64),
            apis[table["api"]],
            objects[table["object"]],
            begin - self._opened.start,
            end - begin,
            table["amount"].astype(np.int64),
        )


def _stops(stops: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Starts and durations; of very many stops those that are near become one."""
    starts, ends = np.array(stops, np.int64).reshape(-1, 2).T
    same = np.zeros_like(starts)
    calls = CallColumns(same, same, same, starts, ends - starts, same)
    columns = joined([calls], MAX_STOPS).columns
    return list(zip(columns["start"].tolist(), columns["duration"].tolist(), strict=True))


COLLECTOR_TYPE: Final = TYPE
COLLECTOR_DEFAULT_UNITS: Final = {
    "time": "s", "cpu": "s", "stopped": "s", "sleep": "s", "disk": "B", "net": "B", "random": "B",
}  # fmt: skip
_SUPPORTS: Final = "import sys; sys.exit(sys.version_info < (3, 9))"
_PASSES: Final = 3
"""How often the calls are gone through: for their names, their times and the timeline."""
_MEBIBYTE: Final = 1 << 20
_OTHERS: Final = "perun collect trace records programs of other languages"


class IslandCollector:
    """Records each call of a Python program to files, sockets, sleeping, locks and others.

    Each resource is what one thread did with one object: how much, in how many calls, and how long. The
    seconds of all resources of a thread add up to its life.
    """

    name: ClassVar[str] = "island"
    help: ClassVar[str] = (
        "Records what a Python program uses, call by call, as of files and sockets, and where its time went."
    )
    Params: ClassVar[type] = IslandParams

    def collect(self, run: Run, params: IslandParams, ctx: CollectContext) -> Profile:
        """Run the command `repeat` times, each in an island of its own.

        :raises UsageError: where the command is no Python program, or a limit is none.
        :raises CollectorUnavailable: where its interpreter is too old.
        :raises JobFailed: where the command cannot be started, or fails (unless the parameters ignore that).
        :raises Interrupted: where the user stops a run; it has the profile of what was recorded by then.
        """
        limits_of(params)  # refuses a wrong one before anything is run
        builder = _Builder(run, params)
        for number in range(1, params.repeat + 1):
            ctx.report(f"recording {run}", number - 1, params.repeat)
            folder = ctx.scratch / "island"
            shutil.rmtree(folder, ignore_errors=True)
            sample = _record(run, params, folder, ctx)
            reading = _Reading(f"reading the calls of {run}", folder, ctx)
            builder.add(_opened(folder, sample, reading), sample)
            reading.done()
            if sample.early:
                break
        ctx.report(f"recording {run}", params.repeat, params.repeat)
        return builder.profile(ctx)


class _Builder:
    """Makes the profile of the runs."""

    def __init__(self, run: Run, params: IslandParams) -> None:
        self._run = run
        self._params = params
        self._shown = shown_objects(run.cwd)
        self._resources: list[dict[str, Any]] = []
        self._units: dict[tuple[str, str], str] = {}
        self._facts: dict[str, Any] = {}
        self._timeline: dict[str, Any] | None = None
        self._samples: list[RunSample] = []

    def add(self, opened: OpenRecording, sample: RunSample) -> None:
        """Take what one run recorded; its timeline only if it is the first."""
        self._samples.append(sample)
        order = len(self._samples)
        rows = rows_of(opened.usage, opened.processes, self._shown)
        self._units |= {(row.type, row.subtype): row.unit for row in rows}
        self._resources += times_of(str(self._run), order, opened)
        self._resources += resources_of(rows, order)
        if order == 1:
            self._facts = facts_of(opened)
            if self._params.timeline_entries:
                self._timeline = timeline_region(opened, self._params.timeline_entries, self._shown)

    def profile(self, ctx: CollectContext) -> Profile:
        """The profile of all runs.

        :raises Interrupted: where the user stopped the last one.
        """
        params = to_mapping(self._params)
        units = units_of(self._units)
        profile = new_profile(self._run, COLLECTOR_TYPE, units, IslandCollector.name, params)
        profile["island"] = {"runs": len(self._samples), **self._facts}
        if self._timeline is not None:
            profile[TIMELINE] = self._timeline
        profile.update_resources(self._resources, columns=NUMBERS)
        for note in self._facts["notes"]:
            ctx.note(note)
        last = self._samples[-1]
        return completed(profile, last, shortfalls(last, self._params.timeout))


def _record(run: Run, params: IslandParams, folder: Path, ctx: CollectContext) -> RunSample:
    """Run the command once, and refuse it if it failed."""
    program = PythonProgram(*python_program_of(run, "the collector island", _OTHERS))
    engine = words_of(program, params, folder)
    once = params.repeat == 1
    with Execution(run, ctx.scratch, params.timeout, engine=engine, single_run=once) as execution:
        sample = execution.record()
        if sample.status and not any(folder.glob(f"{opening.PREFIX}*")):
            _require_support(run, program.python)
        require_recorded(run, sample, execution.last_errors(), ignore_failure=params.ignore_failure)
        return sample


def _require_support(run: Run, python: str) -> None:
    """Refuse an interpreter that cannot load the recorder.

    :raises CollectorUnavailable: where it is none that can.
    """
    if not succeeds(_SUPPORTS, run, python):
        raise CollectorUnavailable(
            f"the collector island needs Python 3.9 or newer, which {python} is not",
            "run the program with a newer Python",
        )


class _Reading:
    """Reports how far the recordings in a folder were read, which are gone through a few times."""

    def __init__(self, activity: str, folder: Path, ctx: CollectContext) -> None:
        self._report = partial(ctx.report, activity)
        sizes = [path.stat().st_size for path in folder.glob(f"{opening.PREFIX}*")]
        self._read, self._all = 0, _PASSES * sum(sizes) // _MEBIBYTE + 1

    def __call__(self, size: int) -> None:
        self._read += size
        self._report(min(self._read // _MEBIBYTE, self._all - 1), self._all)

    def done(self) -> None:
        """All was read."""
        self._report(self._all, self._all)


def _opened(folder: Path, sample: RunSample, progress: Callable[[int], None]) -> OpenRecording:
    """What was recorded.

    :raises JobFailed: where nothing was, but by an interruption, which goes on then.
    """
    try:
        return opening.read(folder, progress=progress)
    except PerunError:
        if sample.interruption is not None:
            raise sample.interruption from None
        raise


PLUGIN = IslandCollector
