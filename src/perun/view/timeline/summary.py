"""What an island used, and where its time went, as text for the terminal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from perun.profile.amounts import readable
from perun.profile.island import Usage
from perun.view._common.screen import printable
from perun.wording import counted

_THREADS: Final = 8
_KINDS: Final = 8
_OBJECTS: Final = 20
_WIDTH: Final = 24
"""Rows of each table, and the width of a kind."""


class _Sum(NamedTuple):
    """What several resources add up to; of several runs, the mean of a run."""

    seconds: float
    calls: float
    amount: float
    unit: str


def summary(usage: Iterable[Usage]) -> Iterator[str]:
    """The lines: where the time of all threads and of each went, and what was used of each object."""
    rows = list(usage)
    runs = max((row.order for row in rows), default=1)
    threads: dict[str, list[Usage]] = defaultdict(list)
    for row in rows:
        threads[row.thread].append(row)
    yield "Where the time went" + (f", mean of {counted(runs, 'run')}" if runs > 1 else "")
    if len(threads) > 1:
        yield from _of_thread(f"all {counted(len(threads), 'thread')}", rows, runs)
    order = sorted(threads.items(), key=lambda item: -sum(row.seconds for row in item[1]))
    for name, own in order[:_THREADS]:
        yield from _of_thread(name, own, runs)
    yield from _rest(len(order) - _THREADS, "thread")
    objects = _sums([row for row in rows if row.uid != row.thread], ("type", "subtype", "uid"), runs)
    if not objects:
        return
    yield ""
    yield "What was used"
    yield f"  {'time':>9}  {'calls':>8}  {'amount':>9}  {'kind':<{_WIDTH}} object"
    largest = sorted(objects.items(), key=lambda item: (-item[1].seconds, -item[1].amount, item[0]))
    for (kind, subtype, uid), found in largest[:_OBJECTS]:
        amount = readable(found.amount, found.unit)
        yield (
            f"  {readable(found.seconds, 's'):>9}  {found.calls:>8,.10g}  {amount:>9}"
            f"  {_kind(kind, subtype):<{_WIDTH}} {printable(uid)}"
        )
    yield from _rest(len(largest) - _OBJECTS, "object")


def _of_thread(name: str, rows: Sequence[Usage], runs: int) -> Iterator[str]:
    kinds = _sums(rows, ("type", "subtype"), runs)
    live = sum(one.seconds for one in kinds.values())
    yield f"  {printable(name)}: {readable(live, 's')}"
    largest = sorted(
        ((key, one) for key, one in kinds.items() if one.seconds), key=lambda item: -item[1].seconds
    )
    for key, found in largest[:_KINDS]:
        yield f"    {found.seconds / live:>6.1%}  {readable(found.seconds, 's'):>9}  {_kind(*key)}"
    yield from _rest(len(largest) - _KINDS, "kind")


def _rest(count: int, noun: str) -> Iterator[str]:
    if count > 0:
        yield f"  and {counted(count, noun)} more"


def _sums(rows: Iterable[Usage], keys: Sequence[str], runs: int) -> dict[tuple[str, ...], _Sum]:
    found: dict[tuple[str, ...], _Sum] = {}
    for row in rows:
        key = tuple(getattr(row, name) for name in keys)
        before = found.get(key, _Sum(0.0, 0.0, 0.0, row.unit))
        found[key] = _Sum(
            before.seconds + row.seconds / runs,
            before.calls + row.calls / runs,
            before.amount + row.amount / runs,
            row.unit,
        )
    return found


def _kind(kind: str, subtype: str) -> str:
    return kind if kind == subtype else f"{kind} {subtype}"
