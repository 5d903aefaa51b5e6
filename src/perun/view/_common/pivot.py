"""Resources aggregated over two keys: the table of numbers behind bars and flow (manual 6.1.1 and 6.1.3)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.core.errors import UsageError
from perun.view._common.aggregate import aggregate, aggregated, canonical, is_clocks, keeps_unit, quantity
from perun.view._common.chart import profile_summary
from perun.view._common.values import Bins, bins_of, single_bin

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


# The keys that a chart shows where the user names none: those that tell the resources apart.

BARS: Final = ("snapshots", "workload", "order", "uid")
LINES: Final = ("snapshots", "structure-unit-size", "workload", "order", "call-order")
POINTS: Final = ("structure-unit-size", "workload", "order", "snapshots", "call-order", "timestamp")
BOXES: Final = ("workload", "uid", "subtype")
"""Keys of the x axis, the first choice first."""
SERIES: Final = ("uid", "subtype")
"""Keys whose values get a series each."""
CLOCK: Final = "subtype"


def varied(resources: Resources, candidates: Sequence[str], but: Collection[str] = ()) -> str:
    """The first candidate with different values among the resources; the first that there is if none has.

    :param but: keys that are shown already.
    """
    found = (key for key in candidates if key not in but and resources.is_varied(key))
    return next(found, next(filter(resources.has, candidates), candidates[0]))


def numeric(resources: Resources, candidates: Sequence[str], option: str) -> str:
    """The first candidate that resources have as a number.

    `snapshots`, which every profile has, counts only where there are several.

    :param option: the option that names another key, for the message.
    :raises UsageError: if the resources have none of them as a number.
    """
    for key in candidates:
        if not resources.has(key) or (key == "snapshots" and not resources.is_varied(key)):
            continue
        try:
            resources.numbers(key, "")
        except UsageError:
            continue
        return key
    others = [key for key in resources.numeric_keys() if key != "snapshots"]
    raise UsageError(
        f"the profile has nothing to show the values along: none of {', '.join(candidates)}",
        f"name a key with {option}; keys with numbers: {', '.join(others) or 'none'}",
    )


def clocks(resources: Resources) -> bool:
    """Whether the resources are times of several clocks, which no chart may add up."""
    return resources.has(CLOCK) and is_clocks(resources.categories(CLOCK, "").names)
