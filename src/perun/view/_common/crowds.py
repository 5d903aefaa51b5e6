"""Many different values as few: more bars, lines or points than a person can look at are put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from perun.view._common.aggregate import aggregate
from perun.view._common.numbers import readable
from perun.view._common.values import Categories, Resources

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Codes = NDArray[np.intp]

_NICE: Final = (1, 2, 2.5, 5, 10)


class Few(NamedTuple):
    """Values, or groups of values, few enough to be shown.

    :param codes: for each resource its place, shape (resources,); -1 for none.
    :param names: what is shown for each place.
    :param at: of numbers, where each place is on an axis, shape (places,); None of texts.
    :param note: what was put together, as a clause; empty where nothing was.
    """

    codes: Codes
    names: tuple[str, ...]
    at: Floats | None
    note: str = ""


def few(found: Categories, key: str, sizes: Floats, limit: int) -> Few:
    """Numbers in ascending order, texts the largest first; beyond the `limit` they are put together.

    Numbers become intervals of equal width, the smallest texts become one place.

    :param key: for the note.
    :param sizes: how large each value is, shape (values,); NaN is the smallest.
    """
    import numpy as np

    if found.numeric:
        return _intervals(found, key, limit) if len(found.values) > limit else _all_numbers(found)
    order = np.argsort(-np.nan_to_num(sizes, nan=-np.inf), kind="stable")
    place = np.empty(len(order) + 1, np.intp)
    place[order] = np.arange(len(order))
    place[-1] = -1  # for code -1
    names = [found.names[one] for one in order]
    if len(names) <= limit:
        return Few(place[found.codes], tuple(names), None)
    kept = limit - 1
    place[:-1] = np.minimum(place[:-1], kept)
    rest = len(names) - kept
    note = f"the {kept:,} largest of {len(names):,} values of {key!r} by themselves"
    return Few(place[found.codes], (*names[:kept], f"({rest:,} others)"), None, note)


def few_of(resources: Resources, key: str, option: str, function: str, values: Floats, limit: int) -> Few:
    """A key of the resources by :func:`few`, its values being as large as the function of theirs.

    :param option: where the key was given. :param values: of each resource, shape (resources,).
    :raises UsageError: where no resource has the key.
    """
    found = resources.categories(key, option)
    return few(found, key, aggregate(function, found.codes, values, len(found.values)), limit)


def one_place(size: int) -> Few:
    """All resources in the same place, which has no name."""
    import numpy as np

    return Few(np.zeros(size, np.intp), ("",), None)


def crossed(function: str, rows: Few, columns: Few, values: Floats) -> Floats:
    """A function of the values that fall together, shape (places of rows, places of columns).

    NaN where there is nothing to tell.

    :param values: of each resource, shape (resources,).
    """
    import numpy as np

    width = len(columns.names)
    both = np.where((rows.codes < 0) | (columns.codes < 0), -1, rows.codes * width + columns.codes)
    return aggregate(function, both, values, len(rows.names) * width).reshape(-1, width)


def _all_numbers(found: Categories) -> Few:
    import numpy as np

    names = tuple(_exact(value) for value in found.values)
    return Few(found.codes, names, np.array(found.values, np.float64))


def _intervals(found: Categories, key: str, limit: int) -> Few:
    import numpy as np

    values = np.array(found.values, np.float64)
    whole = all(value.is_integer() for value in found.values)
    width = _nice_width(values[0], values[-1], limit, whole)
    first = np.floor(values[0] / width)
    own = (np.floor(values / width) - first).astype(np.intp)
    occupied, places = np.unique(own, return_inverse=True)
    starts = (occupied + first) * width
    names = tuple(_interval(start, width, whole) for start in starts.tolist())
    codes = np.append(places, -1)[found.codes]
    note = f"{len(values):,} values of {key!r} in intervals of {readable(width)}"
    return Few(codes, names, starts + width / 2, note)


def _nice_width(low: float, high: float, limit: int, whole: bool) -> float:
    """A round width, `whole` where it must be, with which at most `limit` intervals cover everything."""
    import math

    least = (high / limit - low / limit) * (1 + 1e-9)
    power = 10.0 ** math.floor(math.log10(least))
    for step in _NICE:
        width = step * power
        if whole and not width.is_integer():
            continue
        if math.floor(high / width) - math.floor(low / width) < limit:
            return width
    return max(20 * power, 1.0) if whole else 20 * power


def _interval(start: float, width: float, whole: bool) -> str:
    if whole:
        return f"{start:,.0f} to {start + width - 1:,.0f}" if width > 1 else f"{start:,.0f}"
    return f"{readable(start, digits=4)} to {readable(start + width, digits=4)}"


def _exact(value: float) -> str:
    return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e15 else readable(value, digits=6)
