"""Pieces of series: lists of them, their points and changes."""

from __future__ import annotations

from msgspec import Struct

from perun.porcelain.web.data.common import Number, Numbers, Ref


class Series(Struct, frozen=True):
    """A series in a list. :ivar spark: at most 40 medians along the main line.

    :ivar machine: that of the newest value. :ivar interval: of the newest value.
    """

    id: str
    title: str
    location: str
    command: str
    collector: str
    metric: str
    unit: str
    exact: bool
    larger_is_better: bool
    latest: Number
    latest_at: int | None
    interval: list[Number] | None
    changes: int
    spark: Numbers


class SeriesList(Struct, frozen=True):
    """The piece `series`: all of them, the most important ones first. :ivar more: how many are left out."""

    series: list[Series]
    more: int
    schema: str = "perun.web.series/1"


class Configuration(Struct, frozen=True):
    """What was measured and how."""

    collector: str
    cmd: str
    args: str
    workload: str
    postprocessors: list[str]


class Line(Struct, frozen=True):
    """The points of a series on one machine and one branch.

    :ivar at: the first position, then differences. :ivar half: half the width of each interval at 95 %, in
    1/10000 of the value. :ivar n: samples; one number where all have the same.
    """

    machine: int | None
    branch: int
    at: list[int]
    value: Numbers
    half: list[int | None] | None
    n: list[int] | int


class Level(Struct, frozen=True):
    """The level of a series between two changes. :ivar versions: that it is known of."""

    value: Number
    interval: list[Number]
    versions: int


class Acknowledged(Struct, frozen=True):
    """What acknowledges a change."""

    until: str | None
    because: str | None


class Around(Struct, frozen=True):
    """The values around a change. :ivar change: the place of the first one after it."""

    value: Numbers
    change: int


class Change(Struct, frozen=True):
    """A change of the level of one series.

    :ivar version: the first measured one of the new level, :ivar since: the last one of the old.
    :ivar possible: how many versions may have brought it. :ivar result: as `perun check` calls it.
    :ivar report: whether there is a piece `compare/SINCE..VERSION` of it.
    """

    version: Ref
    since: Ref
    possible: int
    series: str
    title: str
    location: str
    command: str
    machine: int | None
    unit: str
    exact: bool
    degradation: bool
    result: str
    ratio: Number
    interval: list[Number]
    before: Level
    after: Level
    acknowledged: Acknowledged | None
    taken_back: str
    takes_back: str
    moved_with: list[str]
    conditions: list[str]
    remark: str
    report: bool
    spark: Around | None


class ChangeList(Struct, frozen=True):
    """The piece `changes`: the newest first. :ivar total: of them, of which the newest ones are here."""

    changes: list[Change]
    total: int
    schema: str = "perun.web.changes/1"


class SeriesPage(Struct, frozen=True):
    """The piece `series/ID`. :ivar lines: their points from position `tail` on; those before are in `chunks`,
    the pieces `series/ID/K`. :ivar related: ids of series of the same command."""

    series: Series
    configuration: Configuration
    lines: list[Line]
    tail: int
    chunks: list[int]
    changes: list[Change]
    related: list[str]
    schema: str = "perun.web.series_page/1"


class Points(Struct, frozen=True):
    """The piece `series/ID/K`."""

    lines: list[Line]
    schema: str = "perun.web.points/1"
