"""What the threads of a program used, and where their time went: totals of a recording.

Each row says what one thread used of one thing in one island: a file, a socket, the processor. The seconds of
the rows of a thread sum to its life.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from operator import add
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from perun.island.accounting import Account, CallTimes, IslandEntries, IslandTime, Stops
from perun.island.layout import CONCURRENT, Api
from perun.island.scan import chosen

if TYPE_CHECKING:
    from perun.island.record import Recording, Thread

SECOND: Final = 1_000_000_000
_SHORT: Final = 50_000
"""ns: a call that takes less has not waited for a device or for another process, but computed."""
_NOT_WAITED_FOR: Final = ("file", "device")
"""Kinds of objects that nobody else fills or empties."""
CONSUMPTION: Final = {
    "tcpsend": "netsend", "udpsend": "netsend", "unixsend": "netsend",
    "tcprecv": "netrecv", "udprecv": "netrecv", "unixrecv": "netrecv",
    "filesopened": "fileopen",
}  # fmt: skip
"""Resource to its line in the table of time consumption, where that has another name."""
LINES: Final = (
    "cpu", "netsend", "netrecv", "fileread", "filewrite", "outsockets", "random", "sleep", "stopped",
)  # fmt: skip
"""The lines of the table of time consumption that the document of Island names; others follow them."""
BLOCKED: Final = "blocked"
"""Subtype of time outside of calls in which a thread neither ran nor waited for a processor."""
UNKNOWN: Final = "unknown"
"""Type and subtype of such time of a thread whose clock nobody read, as the program was killed."""
_KINDS: Final = {"user-thread": "cpu", UNKNOWN: UNKNOWN}
Key = TypeVar("Key", bound=Hashable)


class Usage(NamedTuple):
    """What one thread used of one thing.

    `process` is its position in the run. `amount` is what the program asked for, in `unit` (B, s, or "" for a
    count); `physical` are the bytes that went to or came from the system. `seconds` is the time it took,
    without what was stopped; in `ambiguous` of them the process was stopped while the call waited for
    something.
    """

    process: int
    thread: str
    island: str
    type: str
    subtype: str
    object: str
    amount: float
    unit: str
    physical: int
    calls: int
    seconds: float
    ambiguous: float = 0.0
    resource: str = ""


class ThreadTime(NamedTuple):
    """The life of one thread, in ns of CLOCK_MONOTONIC; for how many seconds it was stopped, and by each
    rule.
    """

    process: int
    name: str
    created: int
    destroyed: int
    stopped: float
    ambiguous: float
    by_rule: dict[str, float]


class Consumption(NamedTuple):
    """The table of time consumption of one thread, or of all: seconds of each line that is not 0, and the
    life.
    """

    name: str
    seconds: dict[str, float]
    live: float


def of_process(
    number: int, recording: Recording, ended: int, stops: Stops, rule: str, throttled: int = 0
) -> tuple[list[Usage], list[ThreadTime], Stops]:
    """The rows and the lives of the threads of one process, and its stops as its calls tell them best.

    :param number: its position in the run. :param ended: when it ended, ns. :param stops: when it was
        stopped.
    :param rule: what counts as stopped, one of :data:`perun.island.stop_log.RULES`.
    :param throttled: ns for which the scheduler held its control group back.
    """

    names = unique_names(thread.name for thread in recording.threads)
    if len(stops.starts):
        stops = stops.tightened(_moments(recording))
    waits = {item.number for item in recording.objects if item.kind not in _NOT_WAITED_FOR}
    rows: list[Usage] = []
    lives: list[ThreadTime] = []
    for thread, name in zip(recording.threads, names, strict=True):
        born, died = life_of(thread, ended)
        entered = IslandEntries(thread.island, *recording.entered(thread.number))
        found = Account(recording.apis, (born, died), entered, stops, rule, waits)
        own = _Rows(number, name, recording)
        for block in recording.blocks(thread.number):
            if len(block.calls) and block.calls["flags"][0] & CONCURRENT:
                own.concurrent(block.calls)
            else:
                own.calls(chosen(block.calls, block.done), found.add(block))
        between = found.between()
        own.between(thread, died, between, throttled)
        rows += own.usage()
        outside = sum(one.stopped for one in between.values())
        by_rule = {rule: (stopped + outside) / SECOND for rule, stopped in found.by_rule.items()}
        ambiguous = own.ambiguous / SECOND
        lives.append(ThreadTime(number, name, born, died, by_rule[rule], ambiguous, by_rule))
    return rows, lives, stops


def life_of(thread: Thread, ended: int) -> tuple[int, int]:
    """When the thread began, and ended at the latest with its process; ns."""
    died = thread.destroyed if 0 <= thread.destroyed <= ended else ended
    return min(thread.created, died), died


def unique_names(names: Iterable[str]) -> list[str]:
    """The names, with ` #2`, ` #3` behind those that were there before."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return found


def totals(rows: Iterable[Usage], key: Callable[[Usage], Key]) -> dict[Key, Usage]:
    """The rows with one key added up, in the order in which the keys come; other fields are those of the
    first.
    """
    found: dict[Key, Usage] = {}
    for row in rows:
        before = found.get(name := key(row))
        found[name] = row if before is None else _sum(before, row)
    return found


def consumption(rows: Iterable[Usage]) -> list[Consumption]:
    """Where the time went: of each thread, in their order, and then of all of them together."""
    threads: defaultdict[tuple[int, str], defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    everything: defaultdict[str, float] = defaultdict(float)
    for row in rows:
        if row.seconds:
            for table in (threads[row.process, row.thread], everything):
                table[line_of(row)] += row.seconds
    found = [_consumption(name, table) for (_, name), table in threads.items()]
    return [*found, _consumption("all threads", everything)]


def line_of(row: Usage) -> str:
    """The line of the table of time consumption that the row counts for."""
    if row.type in ("cpu", "stopped"):
        return row.type
    if row.type == "wait" and not row.resource:
        return row.subtype
    return CONSUMPTION.get(row.resource, row.resource or row.type)


def _consumption(name: str, table: dict[str, float]) -> Consumption:
    order = [*(line for line in LINES if line in table), *sorted(table.keys() - set(LINES))]
    return Consumption(name, {line: table[line] for line in order}, sum(table.values()))


def _sum(one: Usage, two: Usage) -> Usage:
    return one._replace(
        amount=one.amount + two.amount,
        physical=one.physical + two.physical,
        calls=one.calls + two.calls,
        seconds=one.seconds + two.seconds,
        ambiguous=one.ambiguous + two.ambiguous,
    )


def _moments(recording: Recording) -> Iterator[Any]:
    """When the process did something: rising times of each block of calls."""
    import numpy as np

    for thread in recording.threads:
        for block in recording.blocks(thread.number):
            calls = block.calls[block.held :]
            ends = calls["end"]
            yield np.sort(np.concatenate((calls["start"], ends[ends >= 0])))


class _Sum(NamedTuple):
    """What the calls of one API on one object add up to, in one island; times in ns."""

    amount: int
    physical: int
    calls: int
    spent: int
    ambiguous: int


class _Rows:
    """Collects the rows of one thread."""

    def __init__(self, process: int, thread: str, recording: Recording) -> None:
        self._process = process
        self._thread = thread
        self._recording = recording
        self._islands = unique_names(recording.islands)
        self._sums: dict[tuple[bool, int, int, int], _Sum] = {}
        self._times: dict[tuple[int, str], Usage] = {}
        self._stopped: Counter[int] = Counter()
        self._short = 0
        self.ambiguous = 0

    def calls(self, calls: Any, times: CallTimes) -> None:
        """What each call used, and took."""
        self._short += int(times.actual[times.actual < _SHORT].sum())
        self.ambiguous += int(times.ambiguous.sum())
        for island in set(calls["island"][times.stopped > 0].tolist()):
            self._stopped[island] += int(times.stopped[calls["island"] == island].sum())
        self._add(False, calls, times.actual - times.stopped, times.ambiguous)

    def concurrent(self, calls: Any) -> None:
        """What was used by calls during which the thread did other things."""
        nothing = 0 * calls["start"]
        self._add(True, calls, nothing, nothing)

    def between(self, thread: Thread, died: int, found: dict[int, IslandTime], throttled: int) -> None:
        """What the thread did in no call: it computed, which its own clock says, or it waited: for a
        processor, for the interpreter's lock, or in what no hook sees. What a thread that was killed did
        after its clock was read last, nobody knows.
        """
        computing = max(0, thread.cpu - self._short) if thread.cpu >= 0 else -1
        outside = {island: one.time - one.stopped for island, one in found.items()}
        total = sum(outside.values())
        user = min(total, max(0, computing))
        held = min(total - user, throttled)
        queue = min(total - user - held, max(0, thread.run_queue))
        unseen = died - thread.sampled if thread.cpu >= 0 else total
        unknown = min(total - user - held - queue, max(0, unseen))
        for island, time in outside.items():
            whole = {"user-thread": user, "runqueue": queue, "throttled": held, UNKNOWN: unknown}
            parts = {subtype: part * time // total if total else 0 for subtype, part in whole.items()}
            rest = BLOCKED if thread.cpu >= 0 else UNKNOWN
            parts[rest] = parts.get(rest, 0) + time - sum(parts.values())
            for subtype, spent in parts.items():
                if spent:
                    self._time(island, _KINDS.get(subtype, "wait"), subtype, spent)
        for island, one in found.items():
            self._stopped[island] += one.stopped
        for island, stopped in sorted(self._stopped.items()):
            if stopped:
                self._time(island, "stopped", "stopped", stopped)

    def usage(self) -> Iterator[Usage]:
        """The rows."""
        found: dict[tuple[int, str, str, int], Usage] = {}
        for (_, island, number, item), one in sorted(self._sums.items()):
            api: Api = self._recording.apis[number]
            row = Usage(
                self._process,
                self._thread,
                self._name(island),
                api.type,
                api.subtype,
                label_of(self._recording, item),
                one.amount / SECOND if api.unit == "s" else float(one.amount),
                api.unit,
                one.physical if api.unit == "B" else 0,
                one.calls,
                one.spent / SECOND,
                one.ambiguous / SECOND,
                api.resource,
            )
            key = (island, api.type, api.subtype, item)
            found[key] = _sum(found[key], row) if key in found else row
        yield from found.values()
        yield from self._times.values()

    def _add(self, concurrent: bool, calls: Any, spent: Any, ambiguous: Any) -> None:
        """Add to the sums of each island, API and object."""
        import numpy as np

        if not len(calls):
            return
        objects = len(self._recording.objects) + 1
        kinds = calls["island"].astype(np.int64) * len(self._recording.apis) + calls["api"]
        keys = kinds * objects + calls["object"] + 1
        order = np.argsort(keys, kind="stable")
        firsts = np.flatnonzero(np.diff(keys[order], prepend=keys[order[0]] - 1))
        amounts, physical = calls["amount"], calls["physical"]
        physical = np.where(physical < 0, amounts, physical)
        columns = (amounts, physical, np.ones_like(amounts), spent, ambiguous)
        sums = np.stack([np.add.reduceat(column[order], firsts) for column in columns], axis=1).tolist()
        first = calls.take(order[firsts])
        parts = zip(*(first[name].tolist() for name in ("island", "api", "object")), sums, strict=True)
        for island, api, item, sum_ in parts:
            key = concurrent, island, api, item
            if before := self._sums.get(key):
                sum_ = map(add, before, sum_)
            self._sums[key] = _Sum(*sum_)

    def _time(self, island: int, type: str, subtype: str, time: int) -> None:
        seconds = time / SECOND
        self._times[island, subtype] = Usage(
            self._process, self._thread, self._name(island), type, subtype, "", seconds, "s", 0, 0, seconds
        )

    def _name(self, island: int) -> str:
        known = 0 <= island < len(self._islands)  # or the recording is damaged
        return self._islands[island] if known else f"island {island}"


def label_of(recording: Recording, number: int) -> str:
    """The name of a file or socket with how many of this name were before it; "" for none."""
    if number < 0:
        return ""
    item = recording.objects[number]
    kind = "" if item.kind == "file" else f"{item.kind} "
    return f"{kind}{item.name}#{item.serial}"
