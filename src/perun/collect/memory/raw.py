"""Single events as columns, for `--raw`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from perun.collect._common.columns import Ints
from perun.collect.memory.analysis import SingleEvents, Totals
from perun.collect.memory.places import Site


class EventGroup(NamedTuple):
    """The events of one process, one site and one subtype in the order of time; columns of shape (events,).

    `order` counts from 1. `peak` and `leaked` are the bytes that were live at the peak and at the end.
    `temporary` is 0 or 1; `timestamp` and `lifetime` are nanoseconds.
    """

    site: Site
    subtype: int
    order: Ints
    amount: Ints
    address: Ints
    thread: Ints
    timestamp: Ints
    peak: Ints
    leaked: Ints
    temporary: Ints
    lifetime: Ints


def event_groups(each: SingleEvents, sites: Sequence[Site | None], totals: Totals) -> Iterator[EventGroup]:
    """The events grouped by site and subtype, without those whose stack has no site.

    :param sites: of each stack its site, None for one that is not shown.
    """
    numbers: dict[Site, int] = {}
    of_stack = [-1 if site is None else numbers.setdefault(site, len(numbers)) for site in sites]
    known = list(numbers)
    events = each.events
    kind = (np.array(of_stack, np.int64)[events.stacks] << 8) | events.subtypes
    kinds = kind[events.site]
    order = np.argsort(kinds, kind="stable")
    order = order[np.searchsorted(kinds[order], 0) :]
    starts = np.flatnonzero(np.diff(kinds[order], prepend=-1))
    for where in np.split(order, starts[1:]) if len(order) else ():
        code = int(kinds[where[0]])
        size, begin = events.size[where], events.time[where]
        ended_by = each.ended_by[where]
        lives_on = (ended_by < 0) & ~events.releases[where]
        at_peak = (where <= totals.peak_event) & (lives_on | (ended_by > totals.peak_event))
        end = np.where(lives_on, totals.last_time, events.time[ended_by])
        yield EventGroup(
            known[code >> 8],
            code & 0xFF,
            where + 1,
            size,
            events.address[where],
            events.thread[where],
            begin,
            np.where(at_peak, size, 0),
            np.where(lives_on & (not known[code >> 8].kept_by_libc), size, 0),
            each.temporary[where].astype(np.int64),
            np.where(events.releases[where], 0, end - begin),
        )
