"""Bins: many different values of a key put together, so that a chart stays readable.

Numbers become intervals of equal width, as in a histogram. Of texts, the largest keep a bin each and all
others share one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.profile.amounts import readable
from perun.view._common.aggregate import aggregate
from perun.view._common.values import Categories, Resources
from perun.view._common.words import name_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Codes = NDArray[np.intp]

_ROUND_WIDTHS: Final = (1, 2, 2.5, 5, 10)


class Bins(NamedTuple):
    """The bins of a key, and which resource is in which.

    :param codes: the bin of each resource, shape (resources,); -1 for none.
    :param names: the label of each bin.
    :param centers: of numbers, the position of each bin on an axis, shape (bins,); None for texts.
    :param note: which values share bins, as a clause; empty where each value has a bin of its own.
    """

    codes: Codes
    names: tuple[str, ...]
    centers: Floats | None
    note: str = ""


def binned(found: Categories, key: str, sizes: Floats, limit: int) -> Bins:
    """At most `limit` bins: numbers in ascending order, texts the largest first.

    :param key: for the note.
    :param sizes: how large each value is, shape (values,); NaN is the smallest.
    """
    import numpy as np

    if found.numeric:
        return _intervals(found, key, limit) if len(found.values) > limit else _own_bins(found)
    order = np.argsort(-np.nan_to_num(sizes, nan=-np.inf), kind="stable")
    ranks = np.empty(len(order) + 1, np.intp)
    ranks[order] = np.arange(len(order))
    ranks[-1] = -1  # so that code -1, which picks the last element, stays -1
    names = [name_of(found.names[one]) for one in order]
    if len(names) <= limit:
        return Bins(ranks[found.codes], tuple(names), None)
    kept = limit - 1
    ranks[:-1] = np.minimum(ranks[:-1], kept)
    rest = len(names) - kept
    note = f"the chart shows the {kept:,} largest of {len(names):,} values of {key!r}, and the rest as others"
    return Bins(ranks[found.codes], (*names[:kept], f"({rest:,} others)"), None, note)


def bins_of(resources: Resources, key: str, option: str, function: str, values: Floats, limit: int) -> Bins:
    """The bins of a key; a value is as large as the function of the resources that have it.

    :param option: the option that names the key, for messages.
    :param values: what is aggregated, of each resource, shape (resources,).
    :raises UsageError: if no resource has the key.
    """
    found = resources.categories(key, option)
    return binned(found, key, aggregate(function, found.codes, values, len(found.values)), limit)


def single_bin(size: int) -> Bins:
    """One bin without a label that holds all `size` resources."""
    import numpy as np

    return Bins(np.zeros(size, np.intp), ("",), None)


def _own_bins(found: Categories) -> Bins:
    import numpy as np

    names = tuple(_exact(value) for value in found.values)
    return Bins(found.codes, names, np.array(found.values, np.float64))


def _intervals(found: Categories, key: str, limit: int) -> Bins:
    import numpy as np

    values = np.array(found.values, np.float64)
    whole = all(value.is_integer() for value in found.values)
    width = _round_width(values[0], values[-1], limit, whole)
    first = np.floor(values[0] / width)
    positions = (np.floor(values / width) - first).astype(np.intp)
    occupied, bins = np.unique(positions, return_inverse=True)  # an interval without values has no bin
    starts = (occupied + first) * width
    names = tuple(_interval(start, width, whole) for start in starts.tolist())
    codes = np.append(bins, -1)[found.codes]
    note = f"the chart groups {len(values):,} values of {key!r} into intervals of {readable(width)}"
    return Bins(codes, names, starts + width / 2, note)


def _round_width(low: float, high: float, limit: int, whole: bool) -> float:
    """The smallest round width with which at most `limit` intervals cover the values.

    :param whole: whether the width must be a whole number.
    """
    # Divided before subtracting: the difference of the largest floats is infinite. The factor keeps a width
    # that fits exactly from being missed by rounding.
    least = (high / limit - low / limit) * (1 + 1e-9)
    power = 10.0 ** math.floor(math.log10(least))
    for step in _ROUND_WIDTHS:
        width = step * power
        if whole and not width.is_integer():
            continue
        # Intervals start at multiples of the width, so that one more may be needed than the extent says.
        if math.floor(high / width) - math.floor(low / width) < limit:
            return width
    return max(20 * power, 1.0) if whole else 20 * power


def _interval(start: float, width: float, whole: bool) -> str:
    if whole:
        return f"{start:,.0f} to {start + width - 1:,.0f}" if width > 1 else f"{start:,.0f}"
    return f"{readable(start, digits=4)} to {readable(start + width, digits=4)}"


def _exact(value: float) -> str:
    return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e15 else readable(value, digits=6)
