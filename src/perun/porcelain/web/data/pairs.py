"""Pieces of two versions: how they compare, and why."""

from __future__ import annotations

from msgspec import Struct

from perun.porcelain.web.data.common import Number, Numbers, Ref


class Side(Struct, frozen=True):
    """What one side measured of something. :ivar n: samples."""

    value: Number
    interval: list[Number] | None
    n: int


class Compared(Struct, frozen=True):
    """What of two versions compares. :ivar result: as `perun check` calls it, with its reason."""

    location: str
    metric: str
    unit: str
    exact: bool
    larger_is_better: bool
    series: str | None
    a: Side | None
    b: Side | None
    ratio: Number
    interval: list[Number] | None
    result: str
    reason: str


class Sample(Struct, frozen=True):
    """The single values of both sides."""

    name: str
    unit: str
    a: Numbers
    b: Numbers


class Model(Struct, frozen=True):
    """How the cost of a function grows on both sides, as formulas."""

    name: str
    a: str
    b: str


class Case(Struct, frozen=True):
    """What of one configuration compares. :ivar flame: the address of a differential flame graph."""

    title: str
    rows: list[Compared]
    samples: list[Sample]
    models: list[Model]
    flame: str | None


class Comparison(Struct, frozen=True):
    """The piece `compare/A..B`."""

    a: Ref
    b: Ref
    notes: list[str]
    cases: list[Case]
    schema: str = "perun.web.compare/1"


class Cost(Struct, frozen=True):
    """What a function, or the program, costs by one metric before and after. :ivar share: how much more that
    is, as a part of what the program cost; the interval is that of the ratio."""

    metric: str
    unit: str
    before: Number
    after: Number
    ratio: Number
    interval: list[Number] | None
    share: Number


class DiffLine(Struct, frozen=True):
    """A line of a diff. :ivar mark: `+`, `-` or a blank. :ivar old: and :ivar new: its numbers, 0 where it is
    not there."""

    mark: str
    old: int
    new: int
    text: str


class Diff(Struct, frozen=True):
    """Lines of one place. :ivar more: how many are left out."""

    place: str
    lines: list[DiffLine]
    more: int


class Reason(Struct, frozen=True):
    """A function whose cost changed. :ivar growth: how its cost grows before and after, as formulas."""

    location: str
    sentence: str
    worse: bool
    costs: list[Cost]
    growth: list[str] | None
    diffs: list[Diff]


class Reasons(Struct, frozen=True):
    """What was found of one command. :ivar smaller: functions that changed by less than is told.

    :ivar unseen: what could not be seen, and why.
    """

    title: str
    totals: list[Cost]
    functions: list[Reason]
    more: int
    smaller: int
    unseen: list[str]


class Explained(Struct, frozen=True):
    """The piece `explained/CHECKSUM`: why the version costs what it does, as `perun explain` found it.

    :ivar others: files of the diff that no function of it is in, as text.
    """

    a: Ref
    b: Ref
    notes: list[str]
    cases: list[Reasons]
    others: list[str]
    schema: str = "perun.web.explained/1"
