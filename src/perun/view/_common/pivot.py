"""Resources aggregated over two keys: the table of numbers behind bars and flow (manual 6.1.1 and 6.1.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from perun.view._common.aggregate import aggregate, canonical, keeps_unit
from perun.view._common.binning import Bins, bins_of, single_bin
from perun.view._common.chart import profile_summary
from perun.view._common.words import aggregated, quantity

if TYPE_CHECKING:
    from perun.view._common.chart import Floats
    from perun.view._common.values import Resources


class Key(NamedTuple):
    """A key of the resources as the user gave it.

    :param name: the key, e.g. `uid`. :param option: the option that names it, for messages.
    :param limit: the largest number of bins that a chart can show.
    """

    name: str
    option: str
    limit: int


class Pivot(NamedTuple):
    """The aggregated values of a profile.

    :param rows: the bins of the key of the series. :param columns: the bins along the x axis.
    :param values: shape (rows, columns); NaN where there is nothing to aggregate.
    :param counts: how many resources each value is made of, of the same shape.
    :param spread: of means, the standard deviation of these, of the same shape, NaN for one alone; else None.
    :param what: what the values are, e.g. `mean time`.
    :param unit: the unit of the values; empty where they have none.
    :param column_unit: the unit of the key of the columns.
    :param notes: which profile it is, and which values share a bin.
    """

    rows: Bins
    columns: Bins
    values: Floats
    counts: Floats
    spread: Floats | None
    what: str
    unit: str
    column_unit: str
    notes: tuple[str, ...]


def pivot_of(resources: Resources, function: str, of: str, columns: Key, rows: Key | None) -> Pivot:
    """The function of the key `of`, for each pair of bins of the other two keys.

    :param function: one of :data:`perun.view._common.aggregate.FUNCTIONS`.
    :param rows: None for one row that holds all resources.
    :raises UsageError: if no resource has one of the keys, or `of` holds no number and the function needs
        one.
    """
    values = resources.operands(of, "--of", function)

    def bins(key: Key) -> Bins:
        return bins_of(resources, key.name, key.option, function, values, key.limit)

    across = bins(columns)
    down = bins(rows) if rows else single_bin(resources.size)
    counts = cross_tabulated("count", down, across, values)
    unit = resources.unit(of)
    averaged = canonical(function) == "mean"
    return Pivot(
        rows=down,
        columns=across,
        values=cross_tabulated(function, down, across, values),
        counts=counts,
        spread=cross_tabulated("std", down, across, values) if averaged else None,
        what=aggregated(function, quantity(of, unit), single=not (counts > 1).any()),
        unit=unit if keeps_unit(function) else "",
        column_unit=resources.unit(columns.name),
        notes=tuple(
            filter(None, (profile_summary(resources.profile, resources.size), across.note, down.note))
        ),
    )


def cross_tabulated(function: str, rows: Bins, columns: Bins, values: Floats) -> Floats:
    """The function of the values in each pair of bins, shape (rows, columns); NaN where there are none.

    :param values: of each resource, shape (resources,).
    """
    import numpy as np

    # One code for both bins, so that the whole table is a single aggregation.
    width = len(columns.names)
    pairs = np.where((rows.codes < 0) | (columns.codes < 0), -1, rows.codes * width + columns.codes)
    return aggregate(function, pairs, values, len(rows.names) * width).reshape(-1, width)


def spread_note(found: Pivot) -> str:
    """The sentence about the whiskers of means and the number of values behind each; empty without them."""
    import numpy as np

    known = found.counts[found.counts > 0]
    if found.spread is None or np.isnan(found.spread).all():
        return ""
    least, most = int(known.min()), int(known.max())
    number = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    return f"± and whiskers are the standard deviation; n = {number}"
