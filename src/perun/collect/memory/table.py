"""The rows of one or more recorded processes in one table, with the sites in place of call stacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perun.collect.memory.analysis import Ints, Rows
from perun.collect.memory.places import Site
from perun.collect.memory.symbols import Frame

SUMS: Final = ("amount", "events", "peak", "leaked", "leaked_blocks", "temporary", "lifetime")
"""Columns of a table that are summed up where rows are put together."""


@dataclass(frozen=True)
class Table:
    """What happened at sites, columns of shape (rows,), sorted by process, site, subtype and snapshot.

    :ivar sites: what the numbers in `site` mean; the others are as in :class:`Rows`.
    """

    sites: Sequence[Site]
    process: Ints
    site: Ints
    subtype: Ints
    snapshot: Ints
    address: Ints
    sums: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.site)

    def column(self, name: str) -> Ints:
        """One of :data:`SUMS`."""
        values: Ints = self.sums[SUMS.index(name)]
        return values

    def where(self, kept: NDArray[np.bool_]) -> Table:
        """The rows that are marked."""
        return Table(
            self.sites,
            self.process[kept],
            self.site[kept],
            self.subtype[kept],
            self.snapshot[kept],
            self.address[kept],
            self.sums[:, kept],
        )

    def with_sites(self, change: Callable[[int, Site], Site]) -> Table:
        """The table with every site changed; those that become equal are one."""
        known: dict[Site, int] = {}
        numbers = np.array(
            [known.setdefault(change(number, site), len(known)) for number, site in enumerate(self.sites)],
            np.int64,
        )
        return _grouped(
            list(known),
            self.process,
            numbers[self.site] if len(self.site) else self.site,
            self.subtype,
            self.snapshot,
            self.address,
            self.sums,
        )

    def coarser(self) -> Table:
        """The table with snapshots of twice the length."""
        return _grouped(
            self.sites, self.process, self.site, self.subtype, self.snapshot >> 1, self.address, self.sums
        )

    def groups(self) -> Iterable[slice]:
        """The rows that agree in all but the snapshot."""
        keys = np.stack([self.process, self.site, self.subtype])
        return _runs(keys)


def table_of(processes: Sequence[tuple[Rows, Sequence[Site | None], int]]) -> Table:
    """The rows of the processes with the sites of their stacks; a stack without a site is left out.

    What the C library holds to the end does not count as leaked.

    :param processes: for each its rows, the sites of its stacks, and how often to double its snapshots.
    """
    known: dict[Site, int] = {}
    columns = []
    for number, (rows, sites, doubled) in enumerate(processes):
        of_stack = np.array(
            [-1 if site is None else known.setdefault(site, len(known)) for site in sites], np.int64
        )
        site = of_stack[rows.stack] if len(of_stack) else rows.stack
        kept = site >= 0
        held = np.array([place is not None and place.held for place in sites], np.bool_)[rows.stack]
        rows = rows._replace(
            leaked=np.where(held, 0, rows.leaked), leaked_blocks=np.where(held, 0, rows.leaked_blocks)
        )
        columns.append(
            (
                np.full(int(kept.sum()), number, np.int64),
                site[kept],
                rows.subtype[kept],
                rows.snapshot[kept] >> doubled,
                rows.address[kept],
                np.stack([getattr(rows, name)[kept] for name in SUMS]),
            )
        )
    if not columns:
        empty = np.empty(0, np.int64)
        return Table([], empty, empty, empty, empty, empty, np.empty((len(SUMS), 0), np.int64))
    joined = [np.concatenate(parts, axis=-1) for parts in zip(*columns, strict=True)]
    process, site, subtype, snapshot, address, sums = joined
    return _grouped(list(known), process, site, subtype, snapshot, address, sums)


def _grouped(
    sites: Sequence[Site],
    process: Ints,
    site: Ints,
    subtype: Ints,
    snapshot: Ints,
    address: Ints,
    sums: NDArray[np.int64],
) -> Table:
    order = np.lexsort((snapshot, subtype, site, process))
    keys = np.stack([process, site, subtype, snapshot])[:, order]
    starts = np.array([run.start for run in _runs(keys)], np.int64)
    if not len(starts):
        return Table(sites, process, site, subtype, snapshot, address, sums)
    first = order[starts]  # the order is stable
    return Table(
        sites,
        process[first],
        site[first],
        subtype[first],
        snapshot[first],
        address[first],
        np.add.reduceat(sums[:, order], starts, axis=1),
    )


def _runs(keys: NDArray[np.int64]) -> list[slice]:
    """Columns of `keys`, of shape (n, rows), that are equal to the one before."""
    size = keys.shape[1]
    if not size:
        return []
    changes = np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(axis=0)) + 1
    edges = [0, *changes.tolist(), size]
    return [slice(begin, end) for begin, end in pairwise(edges)]


# -- fitting a table into a file -----------------------------------------------------------------------------

OTHERS: Final = Frame("others", "unreachable", 0)
"""The site of what is too little to be told one by one."""
_OF_A_GROUP: Final = 560  # bytes of JSON, indented as in a job file, without trace and columns
_OF_A_FRAME: Final = 105
_OF_A_ROW: Final = 62


def fitted(table: Table, size: int, *, coarser: bool, shorter: bool) -> tuple[Table, int, int]:
    """The table made small enough for about `size` bytes of JSON: times coarsened, and sites shortened.

    Half of the room is for rows: snapshots become longer until they fit in. The rest is for traces: from
    the least important sites on, those are cut down to the place itself; and then such places put together.

    :param coarser: whether snapshots may become longer; :param shorter: whether traces may become shorter.
    :returns: the table, how often the length of a snapshot was doubled, and the number of sites that are not
        told in full.
    """
    doubled = 0
    while coarser and len(table) * _OF_A_ROW > size // 2 and int(table.snapshot.max()) > 0:
        table, doubled = table.coarser(), doubled + 1
    if not shorter or not len(table):
        return table, doubled, 0
    groups = np.bincount([int(table.site[run.start]) for run in table.groups()], minlength=len(table.sites))
    weights = np.zeros(len(table.sites), np.int64)
    for name in ("amount", "peak", "leaked"):
        np.add.at(weights, table.site, table.column(name))
    order = np.argsort(-weights, kind="stable").tolist()
    used = len(table) * _OF_A_ROW
    full, places, short = set[int](), set[Frame](), 0
    for number in order:
        site, of_each = table.sites[number], int(groups[number]) * _OF_A_GROUP
        cost = of_each + int(groups[number]) * sum(map(_length, site.trace))
        if used + cost <= size * 3 // 4:
            used += cost
            full.add(number)
            continue
        short += 1
        cost = of_each + int(groups[number]) * _length(site.uid)
        if site.uid not in places and used + cost <= size:
            used += cost
            places.add(site.uid)

    def change(number: int, site: Site) -> Site:
        if number in full:
            return site
        uid = site.uid if site.uid in places else OTHERS
        return Site(uid, (uid,))  # what is held was told from leaks before

    return (table.with_sites(change) if short else table), doubled, short


def _length(frame: Frame) -> int:
    return _OF_A_FRAME + len(frame.function) + len(frame.source)
