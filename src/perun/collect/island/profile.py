"""Makes the profile of the runs of an island: a resource for what each thread did with each object."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from perun.island.opening import Recorded
    from perun.island.statistics import Usage

MAX_OBJECTS: Final = 2_000
"""Objects, each with its thread and what was done with it, that have a resource of their own in one run."""
OTHERS: Final = "(others)"
"""In place of an object: the objects that used least, of a run that has more."""
NUMBERS: Final = ("calls", "seconds", "ambiguous", "physical")
"""Columns of the resources beside those that all profiles have."""
_TIME: Final = "time"


class Row(NamedTuple):
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


def rows_of(usage: Iterable[Usage], processes: Sequence[str], shown: Callable[[str], str] = str) -> list[Row]:
    """The rows of a run; those of the least objects are put together, so that there are at most
    :data:`MAX_OBJECTS` and one for each thread and kind.

    :param processes: the names of the processes, by which threads are told apart if there are several.
    :param shown: how an object is named.
    """
    found = []
    for one in usage:
        thread = f"{one.thread} in {processes[one.process]}" if len(processes) > 1 else one.thread
        found.append(
            Row(
                one.type, one.subtype, shown(one.object) or thread, thread, one.island, one.unit, one.amount,
                one.calls, one.seconds, one.ambiguous, one.physical,
            )
        )  # fmt: skip
    return _fewer(found)


def _fewer(rows: list[Row]) -> list[Row]:
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


def _summed(rows: Iterable[Row]) -> list[Row]:
    sums: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        numbers = sums.setdefault(row[:6], [0, 0, 0.0, 0.0, 0])
        for place, value in enumerate(row[6:]):
            numbers[place] += value
    return [Row(*key, *numbers) for key, numbers in sums.items()]  # type: ignore[arg-type]


def resources_of(rows: Sequence[Row], order: int) -> list[dict[str, Any]]:
    """The resources of the rows of one run; they name their island where there are several.

    :param order: number of the run, from 1.
    """
    several = len({row.island for row in rows}) > 1
    return [_resource(row, order) | ({"island": row.island} if several else {}) for row in rows]


def _resource(row: Row, order: int) -> dict[str, Any]:
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


def _trace(row: Row) -> list[str]:
    """What a flame graph stacks on each other: the thread, the type, the subtype and the object."""
    parts = [row.thread, row.type, row.subtype, row.uid]
    if row.uid == row.thread:
        parts.pop()
    if row.type == row.subtype:
        del parts[1]
    return parts[::-1]


def times_of(command: str, order: int, opened: Recorded) -> list[dict[str, Any]]:
    """The times of one run, as the time collector notes them: `real` stands for the profile in lists."""
    times = {"real": opened.live, "user": opened.result.user, "sys": opened.result.system}
    return [
        {"type": _TIME, "subtype": subtype, "uid": command, "amount": amount, "order": order}
        for subtype, amount in times.items()
    ]


def units_of(found: Mapping[tuple[str, str], str]) -> dict[str, str]:
    """The units of the header: of each type the most frequent one, and those of subtypes that differ.

    :param found: by type and subtype.
    """
    known: dict[str, dict[str, str]] = defaultdict(dict)
    for (kind, subtype), unit in found.items():
        known[kind][subtype] = unit
    units = {_TIME: "s"}
    for kind, subtypes in sorted(known.items()):
        each = sorted(subtypes.values(), reverse=True)  # where two are as frequent, a real unit
        units[kind] = common = max(dict.fromkeys(each), key=each.count)
        units |= {f"{kind} ({name})": unit for name, unit in sorted(subtypes.items()) if unit != common}
    return units


def facts_of(opened: Recorded) -> dict[str, Any]:
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
