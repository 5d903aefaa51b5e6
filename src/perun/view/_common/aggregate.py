"""Aggregation: one number for each group of values (the functions of manual 6.1.1 and 6.1.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Codes = NDArray[np.intp]

FUNCTIONS: Final = (
    *("sum", "count", "mean", "avg", "average", "median", "med", "min", "max"),
    *("nunique", "std", "var"),
)
"""Names of the functions; some have several."""

_ALIASES: Final = {"avg": "mean", "average": "mean", "med": "median"}
NON_NUMERIC: Final = ("count", "nunique")
"""Functions that also take values that are no numbers."""


def canonical(function: str) -> str:
    """The main name of a function that has several: `mean` for `avg`."""
    return _ALIASES.get(function, function)


def keeps_unit(function: str) -> bool:
    """Whether the result has the unit of the values; that of `count` or `var` has not."""
    return canonical(function) not in ("count", "nunique", "var")


def aggregate(function: str, groups: Codes, values: Floats, size: int) -> Floats:
    """The function of the values of each group, shape (size,); NaN for a group without a result.

    Standard deviation and variance are those of a sample (divided by n - 1), so that one value alone has
    none.

    :param function: one of :data:`FUNCTIONS`.
    :param groups: the group of each value, shape (n,); a negative one leaves the value out.
    :param values: shape (n,); NaN is left out.
    :param size: number of groups.
    """
    import numpy as np

    good = (groups >= 0) & ~np.isnan(values)
    if not good.all():
        groups, values = groups[good], values[good]
    counts = np.bincount(groups, minlength=size).astype(np.float64)
    with np.errstate(all="ignore"):
        result = _FUNCTIONS[canonical(function)](groups, values, counts)
        result[(counts == 0) | ~np.isfinite(result)] = np.nan
    return result


def finite_sums(running: Callable[..., Floats], values: Floats, axis: int) -> Floats:
    """The running sums along an axis, limited to the largest float, as no chart can draw an infinite one.

    :param running: `numpy.cumsum` or `numpy.nancumsum`.
    """
    import numpy as np

    largest = np.finfo(np.float64).max
    with np.errstate(all="ignore"):
        return np.clip(np.nan_to_num(running(values, axis=axis), nan=0.0), -largest, largest)


def _sum(groups: Codes, values: Floats, counts: Floats) -> Floats:
    import numpy as np

    return np.bincount(groups, weights=values, minlength=len(counts)).astype(np.float64)


def _count(groups: Codes, values: Floats, counts: Floats) -> Floats:
    return counts.copy()


def _mean(groups: Codes, values: Floats, counts: Floats) -> Floats:
    return _sum(groups, values, counts) / counts


def _var(groups: Codes, values: Floats, counts: Floats) -> Floats:
    deviations = values - _mean(groups, values, counts)[groups]
    return _sum(groups, deviations * deviations, counts) / (counts - 1)


def _std(groups: Codes, values: Floats, counts: Floats) -> Floats:
    deviation: Floats = _var(groups, values, counts) ** 0.5
    return deviation


def _min(groups: Codes, values: Floats, counts: Floats) -> Floats:
    import numpy as np

    result = np.full(len(counts), np.inf)
    np.minimum.at(result, groups, values)
    return result


def _max(groups: Codes, values: Floats, counts: Floats) -> Floats:
    return -_min(groups, -values, counts)


def _median(groups: Codes, values: Floats, counts: Floats) -> Floats:
    import numpy as np

    ascending = values[np.lexsort((values, groups))]
    ends = np.cumsum(counts).astype(np.intp)
    occupied = counts > 0
    sizes = counts[occupied].astype(np.intp)
    starts = ends[occupied] - sizes
    result = np.full(len(counts), np.nan)
    # Halved before they are added: the sum of two large floats may be infinite.
    result[occupied] = ascending[starts + (sizes - 1) // 2] / 2 + ascending[starts + sizes // 2] / 2
    return result


def _nunique(groups: Codes, values: Floats, counts: Floats) -> Floats:
    import numpy as np

    # In the order of groups and values, a value that differs from the one before is a new one.
    order = np.lexsort((values, groups))
    own, ascending = groups[order], values[order]
    first = np.ones(len(own), bool)
    first[1:] = (own[1:] != own[:-1]) | (ascending[1:] != ascending[:-1])
    return np.bincount(own[first], minlength=len(counts)).astype(np.float64)


_FUNCTIONS: Final[dict[str, Callable[[Codes, Floats, Floats], Floats]]] = {
    "sum": _sum,
    "count": _count,
    "mean": _mean,
    "median": _median,
    "min": _min,
    "max": _max,
    "nunique": _nunique,
    "std": _std,
    "var": _var,
}
