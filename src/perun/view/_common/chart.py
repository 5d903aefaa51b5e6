"""A chart as data, independent of where it is drawn: on a page or in the terminal."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from perun.profile.amounts import unit_label
from perun.wording import counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perun.profile.factory import Profile

    Floats = NDArray[np.float64]

Kind = Literal["bars", "line", "area", "step", "points", "box"]
_LONGEST_COMMAND: Final = 80
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


class Series(NamedTuple):
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
    series: tuple[Series, ...]
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
        f"of {shortened(command, _LONGEST_COMMAND)}" if command else "",
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
