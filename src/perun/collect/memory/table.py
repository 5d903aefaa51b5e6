"""The rows of one or more recorded processes in one table, with the sites in place of call stacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perun.collect._common.columns import Bools, Columns, Ints
from perun.collect.memory.analysis import Rows
from perun.collect.memory.places import Site
from perun.collect.memory.symbols import Frame

SUMS: Final = ("amount", "events", "peak", "leaked", "leaked_blocks", "temporary", "lifetime")
"""Columns that are added up where rows are merged."""


@dataclass(frozen=True, eq=False)
class SiteRows(Columns):
    """What happened at each site: the columns of :class:`Rows`, with numbers of a process and a site.

    Rows are sorted by process, site, subtype and snapshot.
    """

    process: Ints
    site: Ints
    subtype: Ints
    snapshot: Ints
    address: Ints
    amount: Ints
    events: Ints
    peak: Ints
    leaked: Ints
    leaked_blocks: Ints
    temporary: Ints
    lifetime: Ints


@dataclass(frozen=True)
class Table:
    """Rows, and the sites that the numbers in their column `site` are positions in."""

    sites: Sequence[Site]
    rows: SiteRows

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, kept: Bools) -> Table:
        """The rows that the mask selects; all sites stay."""
        return Table(self.sites, self.rows.where(kept))

    def with_sites(self, change: Callable[[int, Site], Site]) -> Table:
        """The table with every site changed; those that become equal are one."""
        known: dict[Site, int] = {}
        numbers = np.array(
            [known.setdefault(change(number, site), len(known)) for number, site in enumerate(self.sites)],
            np.int64,
        )
        return Table(list(known), _grouped(self.rows.replace(site=numbers[self.rows.site])))

    def coarser(self) -> Table:
        """The table with snapshots of twice the length."""
        return Table(self.sites, _grouped(self.rows.replace(snapshot=self.rows.snapshot >> 1)))

    def groups(self) -> Iterable[slice]:
        """The rows that agree in all but the snapshot."""
        keys = np.stack([self.rows.process, self.rows.site, self.rows.subtype])
        return _runs(keys)


def table_of(processes: Sequence[tuple[Rows, Sequence[Site | None], int]]) -> Table:
    """The rows of the processes with the sites of their stacks; a stack without a site is left out.

    Memory that the C library keeps until the end does not count as leaked.

    :param processes: for each its rows, the sites of its stacks, and how often to double its snapshots.
    """
    known: dict[Site, int] = {}
    parts = []
    for number, (rows, sites, doubled) in enumerate(processes):
        of_stack = np.array(
            [-1 if site is None else known.setdefault(site, len(known)) for site in sites], np.int64
        )
        site = of_stack[rows.stack] if len(of_stack) else rows.stack
        kept = site >= 0
        held = np.array([place is not None and place.kept_by_libc for place in sites], np.bool_)[rows.stack]
        rows = rows.replace(
            leaked=np.where(held, 0, rows.leaked), leaked_blocks=np.where(held, 0, rows.leaked_blocks)
        )
        found = SiteRows(
            np.full(len(rows), number, np.int64),
            site,
            rows.subtype,
            rows.snapshot >> doubled,
            rows.address,
            *(getattr(rows, name) for name in SUMS),
        )
        parts.append(found.where(kept))
    return Table(list(known), _grouped(SiteRows.joined(parts)))


def _grouped(rows: SiteRows) -> SiteRows:
    """One row for each process, site, subtype and snapshot: the first address, and the sums of the rest."""
    order = np.lexsort((rows.snapshot, rows.subtype, rows.site, rows.process))
    keys = np.stack([rows.process, rows.site, rows.subtype, rows.snapshot])[:, order]
    starts = np.array([run.start for run in _runs(keys)], np.int64)
    if not len(starts):
        return rows
    sums = {name: np.add.reduceat(getattr(rows, name)[order], starts) for name in SUMS}
    # The sorting is stable, so that the first of equal rows is the one that came first.
    return rows.where(order[starts]).replace(**sums)


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
"""The site that sums up sites too small to be listed one by one."""
_OF_A_GROUP: Final = 560  # bytes of JSON, indented as in a job file, without trace and columns
_OF_A_FRAME: Final = 105
_OF_A_ROW: Final = 62


def fitted(table: Table, size: int, *, coarser: bool, shorter: bool) -> tuple[Table, int, int]:
    """Shrink the table to about `size` bytes of JSON, by longer snapshots and shorter traces.

    Half of the size is for rows: the snapshot length is doubled until they fit. The rest is for traces: the
    least important sites lose their trace first, then all but their sum.

    :param coarser: whether snapshots may become longer; :param shorter: whether traces may become shorter.
    :returns: the table, how often the length of a snapshot was doubled, and the number of sites whose
        trace was shortened.
    """
    doubled = 0
    while coarser and len(table) * _OF_A_ROW > size // 2 and int(table.rows.snapshot.max()) > 0:
        table, doubled = table.coarser(), doubled + 1
    if not shorter or not len(table):
        return table, doubled, 0
    group_sites = [int(table.rows.site[run.start]) for run in table.groups()]
    groups = np.bincount(group_sites, minlength=len(table.sites))
    weights = np.zeros(len(table.sites), np.int64)
    for name in ("amount", "peak", "leaked"):
        np.add.at(weights, table.rows.site, getattr(table.rows, name))
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
        return Site(uid, (uid,))  # memory kept by the C library was subtracted from leaks before

    return (table.with_sites(change) if short else table), doubled, short


def _length(frame: Frame) -> int:
    return _OF_A_FRAME + len(frame.function) + len(frame.source)
