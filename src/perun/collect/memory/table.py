"""The rows of all recorded processes in one table, with sites in place of call stacks."""

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
from perun.collect.memory.reach import Reached
from perun.collect.memory.symbols import Frame

_OF_ROWS: Final = ("amount", "events", "peak", "leaked", "leaked_blocks", "temporary", "lifetime")
REACH: Final = ("definitely_lost", "indirectly_lost", "possibly_lost", "still_reachable")
"""Bytes by how they can be reached at the end, in the order of `STATES`; 0 where that is not known."""
SUMS: Final = (*_OF_ROWS, *REACH)
"""Columns that are added up when rows are merged."""


@dataclass(frozen=True, eq=False)
class SiteRows(Columns):
    """The columns of :class:`Rows`, with the number of a process and of a site in place of the stack.

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
    definitely_lost: Ints
    indirectly_lost: Ints
    possibly_lost: Ints
    still_reachable: Ints


@dataclass(frozen=True)
class Table:
    """Rows, and the sites to which their column `site` refers by position."""

    sites: Sequence[Site]
    rows: SiteRows

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, kept: Bools) -> Table:
        """The rows that a mask selects; all sites stay."""
        return Table(self.sites, self.rows.where(kept))

    def with_sites(self, change: Callable[[int, Site], Site]) -> Table:
        """The table with every site changed; sites that become equal are merged."""
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
        """The rows by group; those of a group differ only in the snapshot."""
        keys = np.stack([self.rows.process, self.rows.site, self.rows.subtype])
        return _runs(keys)


def table_of(processes: Sequence[tuple[Rows, Sequence[Site | None], int, Reached | None]]) -> Table:
    """The rows of the processes by site, without the stacks that have no site.

    Memory that the C library keeps until the end does not count as leaked.

    :param processes: for each its rows, the sites of its stacks, how often to double its snapshots, and how
        its live blocks can be reached, if that is known.
    """
    known: dict[Site, int] = {}
    parts = []
    for number, (rows, sites, doubled, reach) in enumerate(processes):
        of_stack = np.array(
            [-1 if site is None else known.setdefault(site, len(known)) for site in sites], np.int64
        )
        site = of_stack[rows.stack] if len(of_stack) else rows.stack
        kept = site >= 0
        of_libc = np.array([one is not None and one.kept_by_libc for one in sites], np.bool_)[rows.stack]
        rows = rows.replace(
            leaked=np.where(of_libc, 0, rows.leaked), leaked_blocks=np.where(of_libc, 0, rows.leaked_blocks)
        )
        found = SiteRows(
            np.full(len(rows), number, np.int64),
            site,
            rows.subtype,
            rows.snapshot >> doubled,
            rows.address,
            *(getattr(rows, name) for name in _OF_ROWS),
            *(np.where(of_libc, 0, column) for column in _reach(rows, reach)),
        )
        parts.append(found.where(kept))
    return Table(list(known), _grouped(SiteRows.joined(parts)))


def _reach(rows: Rows, reach: Reached | None) -> Ints:
    """Bytes of the live blocks of each row by state, shape (states, rows)."""
    sizes = np.zeros((len(REACH), len(rows)), np.int64)
    if reach is not None:
        sizes[:, np.searchsorted(rows.key, reach.keys)] = reach.sizes
    return sizes


def _grouped(rows: SiteRows) -> SiteRows:
    """One row for each process, site, subtype and snapshot: the first address, and the sums of the others."""
    order = np.lexsort((rows.snapshot, rows.subtype, rows.site, rows.process))
    keys = np.stack([rows.process, rows.site, rows.subtype, rows.snapshot])[:, order]
    starts = np.array([run.start for run in _runs(keys)], np.int64)
    if not len(starts):
        return rows
    sums = {name: np.add.reduceat(getattr(rows, name)[order], starts) for name in SUMS}
    # The sort is stable, so that the address of the first row stays.
    return rows.where(order[starts]).replace(**sums)


def _runs(keys: NDArray[np.int64]) -> list[slice]:
    """Ranges of equal columns of `keys`, of shape (n, rows)."""
    size = keys.shape[1]
    if not size:
        return []
    changes = np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(axis=0)) + 1
    edges = [0, *changes.tolist(), size]
    return [slice(begin, end) for begin, end in pairwise(edges)]


# -- fitting a table into a file -----------------------------------------------------------------------------

OTHERS: Final = Frame("others", "unreachable", 0)
"""The uid of the sum of all sites that are too small to be listed."""
# Bytes of indented JSON: of a group without its trace and columns, of a frame without its names, of a row.
_GROUP_SIZE: Final = 560
_FRAME_SIZE: Final = 105
_ROW_SIZE: Final = 62


def fitted(table: Table, size: int, *, coarser: bool, shorter: bool) -> tuple[Table, int, int]:
    """Shrink the table to about `size` bytes of JSON, by longer snapshots and shorter traces.

    Rows get half of the size: the length of snapshots is doubled until they fit. Traces get the rest: the
    sites with the smallest amounts lose their traces first, and are then merged into one.

    :param coarser: whether snapshots may become longer. :param shorter: whether traces may become shorter.
    :returns: the table, how often the length of snapshots was doubled, and the number of sites whose trace
        was shortened.
    """
    doubled = 0
    while coarser and len(table) * _ROW_SIZE > size // 2 and int(table.rows.snapshot.max()) > 0:
        table, doubled = table.coarser(), doubled + 1
    if not shorter or not len(table):
        return table, doubled, 0
    group_sites = [int(table.rows.site[run.start]) for run in table.groups()]
    groups = np.bincount(group_sites, minlength=len(table.sites))
    weights = np.zeros(len(table.sites), np.int64)
    for name in ("amount", "peak", "leaked"):
        np.add.at(weights, table.rows.site, getattr(table.rows, name))
    order = np.argsort(-weights, kind="stable").tolist()
    used = len(table) * _ROW_SIZE
    full, places, short = set[int](), set[Frame](), 0
    for number in order:
        site, count = table.sites[number], int(groups[number])
        cost = count * (_GROUP_SIZE + sum(map(_frame_size, site.trace)))
        if used + cost <= size * 3 // 4:
            used += cost
            full.add(number)
            continue
        short += 1
        cost = count * (_GROUP_SIZE + _frame_size(site.uid))
        if site.uid not in places and used + cost <= size:
            used += cost
            places.add(site.uid)

    def change(number: int, site: Site) -> Site:
        if number in full:
            return site
        uid = site.uid if site.uid in places else OTHERS
        return Site(uid, (uid,))  # table_of has subtracted the memory kept by the C library already

    return (table.with_sites(change) if short else table), doubled, short


def _frame_size(frame: Frame) -> int:
    return _FRAME_SIZE + len(frame.function) + len(frame.source)
