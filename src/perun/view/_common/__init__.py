"""A chart as data, independent of where it is drawn: on a page or in the terminal."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeVar

from perun.core.errors import UsageError
from perun.core.wording import counted
from perun.profile.amounts import is_size, is_time, unit_label
from perun.profile.arrays import Codes as Codes
from perun.profile.arrays import Floats as Floats
from perun.profile.arrays import np as np
from perun.profile.factory import Profile

if TYPE_CHECKING:
    from numpy.typing import NDArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

Kind = Literal["bars", "line", "area", "step", "points", "box"]
_LONGEST_COMMAND_OF_TITLE: Final = 80
_SHORTEST_FOLDER: Final = 6
"""A common folder with fewer characters is not worth leaving out."""


class Axis(NamedTuple):
    """One axis.

    :param label: the text beside it. :param unit: the unit of its numbers, e.g. `us`.
    :param names: the categories at the positions 0, 1, 2 ...; empty for an axis of numbers.
    :param log: whether it is logarithmic.
    """

    label: str
    unit: str = ""
    names: tuple[str, ...] = ()
    log: bool = False


class Box(NamedTuple):
    """How values are distributed.

    :param low: the end of the lower whisker. :param first: the first quartile, and so on up to
    :param high: the end of the upper whisker. :param outliers: values beyond the whiskers.
    """

    low: float
    first: float
    median: float
    third: float
    high: float
    outliers: tuple[float, ...] = ()


class ChartSeries(NamedTuple):
    """Data that share a colour and an entry in the legend.

    :param x: positions, shape (n,). :param y: upper ends, shape (n,).
    :param base: lower ends of bars and areas, shape (n,); None for 0.
    :param value: the values themselves, shape (n,), where `y` is the end of a stack; None where `y` is the
        value.
    :param colour: number of the colour in the palette; -1 for the neutral colour of a sum.
    :param width: width of bars, in units of x; of each one where they differ, shape (n,).
    :param note: a remark beside the name: the number of points, or the formula of a line.
    :param dashed: whether the line is dashed. :param marked: whether its points have markers if they are few.
    :param spread: standard deviation of the values that each `y` is the mean of, shape (n,), NaN if it is not
        known; None if `y` is no mean. :param counts: how many these values are, shape (n,).
    :param labels: of bars on an axis of numbers, what each stands for. :param boxes: of each x, the box.
    """

    name: str
    kind: Kind
    x: Floats
    y: Floats
    colour: int = 0
    base: Floats | None = None
    value: Floats | None = None
    width: float | Floats = 0.8
    note: str = ""
    dashed: bool = False
    marked: bool = False
    spread: Floats | None = None
    counts: Floats | None = None
    labels: tuple[str, ...] = ()
    boxes: tuple[Box, ...] = ()


class Density(NamedTuple):
    """The number of points in each cell of a grid (a two-dimensional histogram).

    :param counts: shape (rows, columns), the first row at the lowest y.
    :param x: lower and upper end of the grid; :param y: likewise.
    """

    counts: NDArray[np.float32]
    x: tuple[float, float]
    y: tuple[float, float]


class Chart(NamedTuple):
    """One chart.

    :param notes: what a reader has to know, e.g. which values share a bin; one sentence each.
    :param legend: title of the legend, e.g. the key whose values the series are.
    :param name: its name in the list where a reader chooses among several charts.
    """

    title: str
    notes: tuple[str, ...]
    x: Axis
    y: Axis
    series: tuple[ChartSeries, ...]
    density: Density | None = None
    legend: str = ""
    name: str = ""


def axis_label(text: str, unit: str) -> str:
    """The label of an axis of numbers: `text`, and the unit if there is one."""
    shown = unit_label(unit)
    return f"{text} [{shown}]" if shown else text


def command_line(profile: Profile) -> str:
    """The command that was measured, with its arguments and its workload; empty if the profile has none."""
    what = profile.configuration
    return " ".join(part for part in (what.cmd, what.args, what.workload) if part)


def profile_summary(profile: Profile, size: int) -> str:
    """One line about the profile: its type, command, collector and number of resources, `size`."""
    command, collector = command_line(profile), profile.configuration.collector
    parts = (
        f"{profile.type} profile" if profile.type else "profile",
        f"of {shortened(command, _LONGEST_COMMAND_OF_TITLE)}" if command else "",
        f"by the collector {collector}" if collector else "",
    )
    return " ".join(part for part in parts if part) + f"; {counted(size, 'resource')}"


def short_names(names: Sequence[str], limit: int) -> list[str]:
    """The names in at most `limit` characters each, without the folder that all paths among them share."""
    files = [name for name in names if "/" in name]
    # Compared letter by letter, as a uid has more in it than a path.
    folder = os.path.commonprefix(files).rpartition("/")[0] + "/" if len(files) > 1 else ""  # noqa: RUF071
    if len(folder) < _SHORTEST_FOLDER:
        folder = ""
    return [shortened(name.removeprefix(folder), limit) for name in names]


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters of the text: its start and its end, where names differ most."""
    if len(text) <= limit:
        return text
    start = (limit - 1) // 2
    return f"{text[:start]}…{text[-(limit - 1 - start) :]}"


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


# The scale of an axis: linear, or logarithmic where the range of the values asks for it.

SCALES: Final = ("auto", "linear", "log")
_RATIO: Final = 1000.0
"""A linear axis of this range shows its smallest values within a pixel."""
_LOW_SHARE: Final = 0.1
"""On a linear axis, most values of a skewed distribution lie below this share of the largest one."""


def is_logarithmic(chosen: str, values: Sequence[Floats], option: str) -> bool:
    """Whether the axis of the values is logarithmic.

    By `auto` it is where all values are above 0, the largest is more than 1,000 times the smallest, and the
    median is below a tenth of the largest: numbers evenly spaced from 1 to 10,000 keep a linear axis.

    :param chosen: one of :data:`SCALES`. :param values: what the axis shows, shape (n,) each; NaN is
        left out.
    :param option: the option that chose it, for the message.
    :raises UsageError: if a logarithmic axis is chosen and cannot show some value.
    """
    if chosen == "linear":
        return False
    known = np.concatenate([*values, np.empty(0)])
    known = known[~np.isnan(known)]
    least = float(known.min()) if known.size else 0.0
    if chosen == "log":
        if least <= 0:
            raise UsageError(
                f"{option} log: a logarithmic axis has no place for {least:g}", f"leave out {option} log"
            )
        return True
    if least <= 0:
        return False
    largest = float(known.max())
    return largest / least > _RATIO and float(np.median(known)) < largest * _LOW_SHARE


def note_of(axis: str, chosen: str, *, log: bool) -> str:
    """The note of a chart whose axis is logarithmic without having been chosen so; empty of any other.

    :param axis: `x` or `y`. :param chosen: its scale, one of :data:`SCALES`.
    """
    if not log or chosen != "auto":
        return ""
    change = f"--{axis}-scale linear changes that"
    return f"the {axis} axis is logarithmic, as its values differ so much ({change})"


def decade_below(value: float) -> float:
    """The largest power of ten that is smaller than the value, which is above 0: where bars start."""
    power = math.ceil(math.log10(value)) - 1
    return max(10.0**power, 5e-324) if power > -323 else 5e-324


# Ends of an axis, and where values lie between them, safe for the largest floats.

Span = tuple[float, float]
"""The lower and the upper end of an axis, in its unit."""

LARGEST: Final = sys.float_info.max
_Values = TypeVar("_Values", "float", "Floats")


def widened(low: float, high: float, margin: float) -> Span:
    """The span, made wider where it is too narrow to divide by.

    :param margin: by how much both ends move, as a share of their size.
    """
    if high / 2 > low / 2:
        return low, high
    room = abs(low) * margin or 0.5
    return max(low - room, -LARGEST), min(high + room, LARGEST)


def share_of(values: _Values, span: Span) -> _Values:
    """Where the values lie: 0 at the lower end of the span, 1 at the upper one, linear beyond."""
    # The halves keep the difference of very large numbers finite.
    low, high = span[0] / 2, span[1] / 2
    return (values / 2 - low) / (high - low)
