"""What a chart shows, in words: its title and the labels of its axes."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from perun.profile.amounts import is_size, is_time
from perun.view._common.aggregate import canonical
from perun.view._common.chart import command_line, shortened

if TYPE_CHECKING:
    from perun.profile.factory import Profile

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
