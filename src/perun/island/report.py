"""The report of a recorded run, as text for people and as JSON: what was used, by whom, and where the time
went.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from perun.core.wording import counted
from perun.island import statistics
from perun.island.opening import Recorded
from perun.island.statistics import SECOND, Consumption, Usage
from perun.island.timeline import printable

SCHEMA: Final = "perun.island/1"
_MOST: Final = 40
"""Rows of a table of files, sockets or threads that the text has; the JSON has all."""


def as_json(run: Recorded) -> dict[str, Any]:
    """The report as values for JSON: times in seconds since the start of the run, amounts in their units."""
    result = run.result
    return {
        "schema": SCHEMA,
        "command": result.argv,
        "ended": result.ending,
        "status": None if result.status < 0 else result.status,
        "live": run.live,
        "user": result.user,
        "system": result.system,
        "limits": list(result.limits),
        "burst": result.burst,
        "stop_rule": run.rule,
        "stops": len(run.stops),
        "stopped": run.by_rule,
        "unattributed": run.unattributed._asdict(),
        "processes": run.processes,
        "threads": [
            {
                "process": one.process,
                "name": one.name,
                "created": lane.created / SECOND,
                "destroyed": lane.destroyed / SECOND,
                "stopped": one.by_rule,
                "ambiguous": one.ambiguous,
            }
            for one, lane in zip(run.threads, run.lanes, strict=True)
        ],
        "objects": [
            {
                **one._asdict(),
                "opened": one.opened / SECOND,
                "closed": None if one.closed is None else one.closed / SECOND,
            }
            for one in run.objects
        ],
        "usage": [row._asdict() for row in run.usage],
        "time": [one._asdict() for one in statistics.consumption(run.usage)],
        "notes": run.notes,
    }


def as_text(run: Recorded) -> Iterator[str]:
    """The lines of the report."""
    yield from _summary(run)
    rows = run.usage
    used = [row for row in rows if row.resource]
    yield from _table("Resources", used, lambda row: row.subtype)
    islands = {row.island for row in used}
    if len(islands) > 1:
        yield from _table("Islands", used, lambda row: f"{row.island}  {row.subtype}")
    left_open = {(one.process, one.object) for one in run.objects if one.closed is None}

    def shown(row: Usage) -> str:
        state = "  (open)" if (row.process, row.object) in left_open else ""
        return f"{row.object}  {row.subtype}{state}"

    yield from _table("Files", [row for row in used if row.type == "disk" and row.object], shown)
    yield from _table("Sockets", [row for row in used if row.type == "net" and row.object], shown)
    if len(run.threads) > 1:
        yield from _table("Threads", used, lambda row: f"{_thread(run, row)}  {row.subtype}")
    yield from _times(statistics.consumption(rows))
    for note in run.notes:
        yield f"note: {note}"


def _summary(run: Recorded) -> Iterator[str]:
    result = run.result
    yield f"Island of {printable(' '.join(result.argv))}"
    cpu = f"user {result.user:.3f} s, system {result.system:.3f} s"
    yield f"ended: {result.ending}, after {run.live:.3f} s ({cpu})"
    if result.limits:
        held = f", cpu held by {result.held}" if result.held else ""
        yield f"limits: {', '.join(result.limits)}, burst {result.burst:g} s{held}"
    if run.stops:
        seconds = ", ".join(f"{seconds:.3f} s by the rule {rule}" for rule, seconds in _verdicts(run))
        yield f"stopped: {counted(len(run.stops), 'time')}; of the lives of all threads {seconds}"
        if ambiguous := sum(one.ambiguous for one in run.threads):
            yield f"ambiguous: {ambiguous:.3f} s, in which calls waited while the program was stopped"
    read, written = run.unattributed
    if read >= 0 and written >= 0:
        yield f"unattributed: {_amount(read, 'B')} read, {_amount(written, 'B')} written by no recorded call"


def _verdicts(run: Recorded) -> Iterator[tuple[str, float]]:
    """What each rule counts as stopped; the one that holds here first."""
    yield run.rule, run.by_rule[run.rule]
    yield from ((rule, seconds) for rule, seconds in run.by_rule.items() if rule != run.rule)


def _table(title: str, rows: Sequence[Usage], key: Any) -> Iterator[str]:
    found = sorted(statistics.totals(rows, key).items(), key=lambda pair: -pair[1].seconds)
    if not found:
        return
    yield ""
    yield f"{title:<46} {'calls':>10} {'amount':>14} {'seconds':>12}"
    for name, row in found[:_MOST]:
        amount = _amount(row.amount, row.unit)
        yield f"  {printable(name):<44} {row.calls:>10,} {amount:>14} {row.seconds:>12.6f}"
    if len(found) > _MOST:
        yield f"  and {len(found) - _MOST} more, which --format json lists"


def _thread(run: Recorded, row: Usage) -> str:
    return f"{row.process}: {row.thread}" if len(run.processes) > 1 else row.thread


def _times(tables: Sequence[Consumption]) -> Iterator[str]:
    shown = tables if len(tables) > 2 else tables[-1:]
    yield ""
    yield f"{'Time consumption':<46} {'seconds':>12} {'of live':>9}"
    for table in [*shown[:-1][:_MOST], shown[-1]]:
        yield f"  {printable(table.name)}"
        for line, seconds in [*table.seconds.items(), ("live", table.live)]:
            share = seconds / table.live if table.live else 0.0
            yield f"    {line:<42} {seconds:>12.6f} {share:>9.2%}"


def _amount(amount: float, unit: str) -> str:
    if unit == "s":
        return f"{amount:.6f} s"
    return f"{amount:,.0f} {unit}".rstrip()
