"""A chart as data: what is drawn, with which names and units, whether on a page or in the terminal."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from perun.view._common.numbers import unit_label

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perun.profile.factory import Profile

    Floats = NDArray[np.float64]

Kind = Literal["bars", "line", "area", "step", "points"]
_LONGEST_FACT: Final = 80
_LONG_FOLDER: Final = 6


class Axis(NamedTuple):
    """One axis.

    :param label: what stands at it. :param unit: the unit of its numbers, e.g. `us`.
    :param names: what the positions 0, 1, 2 ... are; empty where the axis has numbers.
    """

    label: str
    unit: str = ""
    names: tuple[str, ...] = ()


class Series(NamedTuple):
    """What belongs together: it has one colour and one entry in the legend.

    :param x: positions, shape (n,). :param y: upper ends, shape (n,).
    :param base: lower ends of bars and areas, shape (n,); 0 where there are none.
    :param value: what each is, where `y` says something else, as it is stacked; shape (n,).
    :param colour: number of the colour. :param width: of bars, in units of x.
    :param note: what is told beside the name: how many points there are, or the formula of a line.
    :param dashed: the line is. :param marked: few points of the line are marked.
    """

    name: str
    kind: Kind
    x: Floats
    y: Floats
    colour: int = 0
    base: Floats | None = None
    value: Floats | None = None
    width: float = 0.8
    note: str = ""
    dashed: bool = False
    marked: bool = False


class Density(NamedTuple):
    """How many points there are in each cell of a grid.

    :param counts: shape (rows, columns), rows from the lowest y. :param x: both ends; :param y: likewise.
    """

    counts: NDArray[np.float32]
    x: tuple[float, float]
    y: tuple[float, float]


class Chart(NamedTuple):
    """A picture.

    :param notes: what a reader has to know, e.g. what was put together; one sentence each.
    :param legend: what the series are, e.g. the key that they are values of.
    :param name: what it is called where there are several to choose from.
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
    """The label of an axis of numbers: `text`, and the unit where there is one."""
    shown = unit_label(unit)
    return f"{text} [{shown}]" if shown else text


def facts(profile: Profile, size: int) -> str:
    """Which profile it is, in a line: what was measured, how, and how much there is of it."""
    what = profile.configuration
    measured = " ".join(part for part in (what.cmd, what.args, what.workload) if part)
    parts = (
        f"{profile.type} profile" if profile.type else "profile",
        f"of {shortened(measured, _LONGEST_FACT)}" if measured else "",
        f"by the collector {what.collector}" if what.collector else "",
    )
    resources = "1 resource" if size == 1 else f"{size:,} resources"
    return " ".join(part for part in parts if part) + f"; {resources}"


def short_names(names: Sequence[str], limit: int) -> list[str]:
    """The names in at most `limit` characters each, without the folder that all files among them are in."""
    files = [name for name in names if "/" in name]
    # Letter by letter, for a uid is more than a path.
    folder = os.path.commonprefix(files).rpartition("/")[0] + "/" if len(files) > 1 else ""  # noqa: RUF071
    if len(folder) < _LONG_FOLDER:
        folder = ""
    return [shortened(name.removeprefix(folder), limit) for name in names]


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters of the text: its start and its end, which tell names apart."""
    if len(text) <= limit:
        return text
    start = (limit - 1) // 2
    return f"{text[:start]}…{text[-(limit - 1 - start) :]}"
