"""What the threads of a program used, and where their time went: totals of a recording.

Each row says what one thread used of one thing in one island: a file, a socket, the processor. The seconds of
the rows of a thread sum to its life.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from perun.island.accounting import Account, IslandEntries, Stops, account
from perun.island.layout import CONCURRENT, Api

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

    import numpy as np

    columns = recording.columns()
    names = unique_names(thread.name for thread in recording.threads)
    bounds = np.searchsorted(columns["thread"], np.arange(len(names) + 1))
    if len(stops.starts):
        stops = stops.tightened(_moments(columns))
    waits = {item.number for item in recording.objects if item.kind not in _NOT_WAITED_FOR}
    rows: list[Usage] = []
    lives: list[ThreadTime] = []
    for thread, name, first, last in zip(recording.threads, names, bounds[:-1], bounds[1:], strict=True):
        calls = columns[first:last]
        born, died = life_of(thread, ended)
        taking = (calls["flags"] & CONCURRENT) == 0
        entered = IslandEntries(thread.island, *recording.entered(thread.number))
        found = account(calls[taking], recording.apis, (born, died), entered, stops, rule, waits)
        own = _Rows(number, name, recording)
        own.calls(calls[taking], found)
        own.concurrent(calls[~taking])
        own.between(thread, died, found, throttled)
        rows += own.usage()
        outside = sum(one.stopped for one in found.between.values())
        by_rule = {rule: (stopped + outside) / SECOND for rule, stopped in found.by_rule.items()}
        ambiguous = int(found.calls.ambiguous.sum()) / SECOND
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


def _moments(columns: Any) -> Any:
    import numpy as np

    ends = columns["end"]
    return np.sort(np.concatenate((columns["start"], ends[ends >= 0])))


class _Rows:
    """Collects the rows of one thread."""

    def __init__(self, process: int, thread: str, recording: Recording) -> None:
        self._process = process
        self._thread = thread
        self._recording = recording
        self._islands = unique_names(recording.islands)
        self._found: dict[tuple[int, str, str, int], Usage] = {}
        self._stopped: Counter[int] = Counter()

    def calls(self, calls: Any, found: Account) -> None:
        """What each call used, and took."""
        times = found.calls
        for rows in self._groups(calls):
            first = calls[rows[0]]
            self._stopped[int(first["island"])] += int(times.stopped[rows].sum())
            spent = int((times.actual - times.stopped)[rows].sum())
            self._add(calls[rows], spent, int(times.ambiguous[rows].sum()))

    def concurrent(self, calls: Any) -> None:
        """What was used by calls during which the thread did other things."""
        for rows in self._groups(calls):
            self._add(calls[rows], 0, 0)

    def between(self, thread: Thread, died: int, found: Account, throttled: int) -> None:
        """What the thread did in no call: it computed, which its own clock says, or it waited: for a
        processor, for the interpreter's lock, or in what no hook sees. What a thread that was killed did
        after its clock was read last, nobody knows.
        """
        actual = found.calls.actual
        computing = max(0, thread.cpu - int(actual[actual < _SHORT].sum())) if thread.cpu >= 0 else -1
        outside = {island: one.time - one.stopped for island, one in found.between.items()}
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
        for island, one in found.between.items():
            self._stopped[island] += one.stopped
        for island, stopped in self._stopped.items():
            if stopped:
                self._time(island, "stopped", "stopped", stopped)

    def usage(self) -> Iterator[Usage]:
        """The rows."""
        yield from self._found.values()

    def _groups(self, calls: Any) -> Iterator[Any]:
        """The positions of the calls of one island, API and object."""

        import numpy as np

        if not len(calls):
            return
        objects = len(self._recording.objects) + 1
        kinds = calls["island"].astype(np.int64) * len(self._recording.apis) + calls["api"]
        keys = kinds * objects + calls["object"] + 1
        order = np.argsort(keys, kind="stable")
        yield from np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)

    def _add(self, calls: Any, spent: int, ambiguous: int) -> None:
        import numpy as np

        island, number, item = (int(calls[0][name]) for name in ("island", "api", "object"))
        api: Api = self._recording.apis[number]
        amounts, physical = calls["amount"], calls["physical"]
        amount = float(amounts.sum())
        through = int(np.where(physical < 0, amounts, physical).sum()) if api.unit == "B" else 0
        row = self._row(island, api.type, api.subtype)._replace(
            object=self._label(item),
            amount=amount / SECOND if api.unit == "s" else amount,
            unit=api.unit,
            physical=through,
            calls=len(calls),
            seconds=spent / SECOND,
            ambiguous=ambiguous / SECOND,
            resource=api.resource,
        )
        key = (island, api.type, api.subtype, item)
        self._found[key] = _sum(self._found[key], row) if key in self._found else row

    def _time(self, island: int, type: str, subtype: str, time: int) -> None:
        row = self._row(island, type, subtype)
        seconds = time / SECOND
        self._found[island, type, subtype, -1] = row._replace(amount=seconds, unit="s", seconds=seconds)

    def _row(self, island: int, type: str, subtype: str) -> Usage:
        known = 0 <= island < len(self._islands)  # or the recording is damaged
        name = self._islands[island] if known else f"island {island}"
        return Usage(self._process, self._thread, name, type, subtype, "", 0.0, "", 0, 0, 0.0)

    def _label(self, number: int) -> str:
        return label_of(self._recording, number)


def label_of(recording: Recording, number: int) -> str:
    """The name of a file or socket with how many of this name were before it; "" for none."""
    if number < 0:
        return ""
    item = recording.objects[number]
    kind = "" if item.kind == "file" else f"{item.kind} "
    return f"{kind}{item.name}#{item.serial}"
