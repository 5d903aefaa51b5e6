"""Aggregation: one number for each group of values (the functions of manual 6.1.1 and 6.1.3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from perun.profile.amounts import is_size, is_time
from perun.view._common.chart import command_line, shortened

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perun.profile.factory import Profile

    Floats = NDArray[np.float64]
    Codes = NDArray[np.intp]


FUNCTIONS: Final = (
    *("sum", "count", "mean", "avg", "average", "median", "med", "min", "max"),
    *("nunique", "std", "var"),
)
"""Names of the functions; some have several."""

_FUNCTION_ALIASES: Final = {"avg": "mean", "average": "mean", "med": "median"}
NON_NUMERIC: Final = ("count", "nunique")
"""Functions that also take values that are no numbers."""


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


# What a chart shows, in words: its title and the labels of its axes.

_KEYS: Final[Mapping[str, str]] = {
    "order": "run",
    "snapshot": "snapshot",
    "snapshots": "snapshot",
    "structure-unit-size": "size",
}
"""What the values of a key are, where its name does not say it."""
_UNKNOWN_SOURCE: Final = re.compile(r"unreachable:(.+?)(?::0)?((?: \[[^]]*\])?)", re.DOTALL)
_AMOUNT: Final = "amount"
_UNITS: Final[Mapping[str, str]] = {"instr": "instructions"}
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
_MOST_NAMES: Final = 4
_LONGEST_NAMES: Final = 48
_LONGEST_COMMAND: Final = 60


def word_of(key: str) -> str:
    """What the values of a key are: `run` for `order`."""
    return _KEYS.get(key, key.replace("-", " "))


def name_of(uid: str) -> str:
    """What a chart calls a uid or a location: `sort+0x3f` for `unreachable:sort+0x3f:0`.

    Profiles of memory have the source `unreachable` and the line 0 where these are not known (manual 2.3).
    """
    known = _UNKNOWN_SOURCE.fullmatch(uid)
    return f"{known[1]}{known[2]}" if known else uid


def quantity(key: str, unit: str) -> str:
    """What a measured number is, by its unit: `time` for an `amount` of seconds."""
    if key != _AMOUNT:
        return word_of(key)
    return "time" if is_time(unit) else "memory" if is_size(unit) else _UNITS.get(unit, key)


def aggregated(function: str, what: str, *, single: bool) -> str:
    """The function of a quantity: `mean time`.

    :param single: whether each value of the chart is made of one number only, so that most functions do
        nothing.
    """
    name = canonical(function)
    return what if single and name in _SAME_OF_ONE else _OF_FUNCTION[name].format(what)


def title_of(profile: Profile, what: str, per: str, series: Sequence[str], by: str = "") -> str:
    """The title of a chart: `Mean time of ./prog 200 per run: real, user, sys`.

    :param per: in words, what the x axis shows; empty if the names of the series say it.
    :param series: names to list, if they are few and short. :param by: in words, what these are.
    """
    command = shortened(command_line(profile), _LONGEST_COMMAND)
    parts = (sentence(what), f"of {command}" if command else "", f"per {per}" if per else "")
    text = " ".join(filter(None, parts))
    if can_be_listed(series):
        return f"{text}: {', '.join(series)}"
    return f"{text} and {by}" if len(series) > 1 and by and per else text


def can_be_listed(names: Sequence[str]) -> bool:
    """Whether the names are several, but few and short enough for a title."""
    return 1 < len(names) <= _MOST_NAMES and sum(map(len, names)) <= _LONGEST_NAMES


def sentence(text: str) -> str:
    """The text with a capital letter at its start."""
    return text[:1].upper() + text[1:]


def is_clocks(subtypes: Collection[str]) -> bool:
    """Whether the subtypes are clocks of the same runs, whose times overlap and must not be added up."""
    return len(subtypes) > 1 and {"real", "user", "sys"}.issuperset(subtypes)
