"""Resources aggregated over two keys: the table of numbers behind bars and flow (manual 6.1.1 and 6.1.3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from perun.core.errors import UsageError
from perun.profile.amounts import readable
from perun.profile.factory import Profile
from perun.view._common import (
    Axis,
    Chart,
    Codes,
    Floats,
    can_be_listed,
    name_of,
    np,
    profile_summary,
    quantity,
    title_of,
    word_of,
)
from perun.view._common.values import Categories, Resources

FUNCTIONS: Final = (
    *("sum", "count", "mean", "avg", "average", "median", "med", "min", "max"),
    *("nunique", "std", "var"),
)
"""Names of the functions; some have several."""

_FUNCTION_ALIASES: Final = {"avg": "mean", "average": "mean", "med": "median"}


def canonical(function: str) -> str:
    """The main name of a function that has several: `mean` for `avg`."""
    return _FUNCTION_ALIASES.get(function, function)


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
    largest = np.finfo(np.float64).max
    with np.errstate(all="ignore"):
        return np.clip(np.nan_to_num(running(values, axis=axis), nan=0.0), -largest, largest)


def _sum(groups: Codes, values: Floats, counts: Floats) -> Floats:
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
    result = np.full(len(counts), np.inf)
    np.minimum.at(result, groups, values)
    return result


def _max(groups: Codes, values: Floats, counts: Floats) -> Floats:
    return -_min(groups, -values, counts)


def _median(groups: Codes, values: Floats, counts: Floats) -> Floats:
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


# Bins: many different values of a key put together, so that a chart stays readable.
#
# Numbers become intervals of equal width, as in a histogram. Of texts, the largest keep a bin each and all
# others share one.

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
    return Bins(np.zeros(size, np.intp), ("",), None)


def _own_bins(found: Categories) -> Bins:
    names = tuple(_exact(value) for value in found.values)
    return Bins(found.codes, names, np.array(found.values, np.float64))


def _intervals(found: Categories, key: str, limit: int) -> Bins:
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


_OF_FUNCTION: Final[Mapping[str, str]] = {
    "sum": "total {}",
    "count": "number of values of {}",
    "mean": "mean {}",
    "median": "median {}",
    "min": "minimum {}",
    "max": "maximum {}",
    "nunique": "number of different values of {}",
    "std": "standard deviation of the {}",
    "var": "variance of the {}",
}
_SAME_OF_ONE: Final = ("sum", "mean", "median", "min", "max")
"""Functions that give a value itself where it is the only one."""


def aggregated(function: str, what: str, *, single: bool) -> str:
    """The function of a quantity: `mean time`.

    :param single: whether each value of the chart is made of one number only, so that most functions do
        nothing.
    """
    name = canonical(function)
    return what if single and name in _SAME_OF_ONE else _OF_FUNCTION[name].format(what)


class ResourceKey(NamedTuple):
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


def pivot_of(
    resources: Resources, function: str, of: str, columns: ResourceKey, rows: ResourceKey | None
) -> Pivot:
    """The function of the key `of`, for each pair of bins of the other two keys.

    :param function: one of :data:`perun.view._common.pivot.FUNCTIONS`.
    :param rows: None for one row that holds all resources.
    :raises UsageError: if no resource has one of the keys, or `of` holds no number and the function needs
        one.
    """
    values = resources.operands(of, "--of", function)

    def bins(key: ResourceKey) -> Bins:
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
    # One code for both bins, so that the whole table is a single aggregation.
    width = len(columns.names)
    pairs = np.where((rows.codes < 0) | (columns.codes < 0), -1, rows.codes * width + columns.codes)
    return aggregate(function, pairs, values, len(rows.names) * width).reshape(-1, width)


def spread_note(found: Pivot) -> str:
    """The sentence about the whiskers of means and the number of values behind each; empty without them."""
    known = found.counts[found.counts > 0]
    if found.spread is None or np.isnan(found.spread).all():
        return ""
    return f"± and whiskers are the standard deviation; n = {extent([int(known.min()), int(known.max())])}"


def extent(counts: Sequence[int]) -> str:
    """The smallest and the largest number, or the only one: `3 to 1,000`."""
    least, most = min(counts), max(counts)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def categorical(
    profile: Profile, params: Any, what: str, y: Axis, keys: tuple[str, str], columns: Bins, rows: Bins
) -> Chart:
    """A chart without its series, which has a place for each bin of a key along the x axis.

    :param params: those of the view, which may have a title and labels. :param what: what is shown.
    :param y: the other axis. :param keys: those of the places and of the series; the latter may be empty.
    """
    per, by = keys
    listed = rows.names if by else columns.names if columns.centers is None else ()
    along = "" if not by and can_be_listed(listed) else word_of(per)
    return Chart(
        title=params.graph_title or title_of(profile, what, along, listed, word_of(by)),
        notes=(),
        x=Axis(params.x_axis_label or word_of(per), names=columns.names),
        y=y._replace(label=params.y_axis_label or y.label),
        series=(),
        legend=word_of(by),
    )


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
    return resources.is_varied(CLOCK) and {"real", "user", "sys"}.issuperset(
        resources.categories(CLOCK, "").names
    )
