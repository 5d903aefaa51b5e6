"""Pieces of the whole project: overview, grid, coverage."""

from __future__ import annotations

from msgspec import Struct

from perun.porcelain.web.data.common import Numbers, Ref
from perun.porcelain.web.data.series import Change, Series


class Tag(Struct, frozen=True):
    """The tag that a verdict is since."""

    name: str
    at: int
    date: int


class Verdict(Struct, frozen=True):
    """What became of the project. :ivar kind: `worse`, `better`, `same` or `unknown`.

    :ivar worse: (and better, same, unknown) numbers of series; :ivar acknowledged: of those that got worse.
    """

    kind: str
    sentence: str
    details: str
    tag: Tag | None
    worse: int
    better: int
    same: int
    unknown: int
    acknowledged: int


class Row(Struct, frozen=True):
    """A row of a heat map: the values of a series on one machine."""

    series: str
    title: str
    unit: str
    larger_is_better: bool
    machine: int | None
    value: Numbers
    command: str


class Heat(Struct, frozen=True):
    """The newest measured versions, and what of them is drawn."""

    commits: list[Ref]
    rows: list[Row]


class Multiple(Struct, frozen=True):
    """A small picture of a series. :ivar spark_at: positions of the places of its spark."""

    series: Series
    spark: Numbers
    spark_at: list[int]
    state: str


class Overview(Struct, frozen=True):
    """The piece `overview`."""

    verdict: Verdict
    changes: list[Change]
    total: int
    heat: Heat
    multiples: list[Multiple]
    schema: str = "perun.web.overview/1"


class Grid(Struct, frozen=True):
    """The piece `grid`. :ivar at: the position of the first version of each column."""

    at: list[int]
    rows: list[Row]
    more: int
    schema: str = "perun.web.grid/1"


class Covered(Struct, frozen=True):
    """A configuration. :ivar cells: a character for each version of the main line: `1` measured, `.` not, `i`
    incomplete, `d` damaged."""

    title: str
    collector: str
    command: str
    workload: str
    machine: int | None
    cells: str


class Missing(Struct, frozen=True):
    """How many versions a configuration was not measured in. :ivar command: what measures them."""

    title: str
    machine: int | None
    count: int
    command: str


class Fuzzed(Struct, frozen=True):
    """A workload that `perun fuzz --keep` keeps. :ivar size: bytes.

    :ivar titles: of the configurations that are measured with it. :ivar measured: in how many versions of the
        main line, at most.
    """

    name: str
    size: int
    date: int
    titles: list[str]
    measured: int


class Coverage(Struct, frozen=True):
    """The piece `coverage`. :ivar at: positions of the versions of the main line, as differences."""

    rows: list[Covered]
    at: list[int]
    missing: list[Missing]
    fuzzed: list[Fuzzed]
    schema: str = "perun.web.coverage/1"
