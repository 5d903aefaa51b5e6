"""What `perun changes` tells: versions, and the steps of series that each of them brought."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.core.wording import listed
from perun.history.acknowledged import Acknowledgement, Acknowledgements
from perun.history.check.report import may_fail
from perun.measurement.estimate import Kind
from perun.measurement.series import SeriesName
from perun.models.change_points import DETECTORS
from perun.plugin.api import MinorVersion
from perun.profile.changes import PerformanceChange
from perun.profile.head import Configuration

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SHORT: Final = 7
"""Digits of a checksum."""
Conditions = dict[tuple[Configuration, str], tuple[tuple[str, str], ...]]
"""By configuration and class of machine, the name and the value of what is known of the machine."""


class SeriesKey(NamedTuple):
    """A series of the history: the series of that name of all profiles of one configuration.

    :param machine: the class of machines that it was measured on; times of others are another series.
    :param location: what of the profile: a function, a command with its clock, a site of allocation.
    :param exact: whether it is counted rather than timed.
    """

    configuration: Configuration
    machine: str
    location: str
    type: str
    subtype: str
    unit: str
    exact: bool
    larger_is_better: bool

    @property
    def kind(self) -> Kind:
        """What may change the numbers beside the program."""
        return SeriesName(*self[2:]).kind


class Segment(NamedTuple):
    """The level of a series between two changes.

    :param value: the median. :param low: and :param high: its interval at 95 %.
    :param points: how many versions it is known of. :param samples: how many measurements of them.
    """

    value: float
    low: float
    high: float
    points: int
    samples: int


class ChangePoint(NamedTuple):
    """A change of the level of one series.

    :param ratio: new / old, with :param low: and :param high: its interval; NaN where the old value is not
        above 0. It is that of the two versions where these alone are a definite change, as `perun check`
        tells it, else that of the levels. :param values: the old and the new value that it is of.
    :param verdict: the word for it, with :param reason: why it is that one.
    :param decides: whether it is definite: what is not was seen too rarely, or may be noise.
    :param leads: whether the series stands for what was measured; else it is of a part of it.
    :param votes: the detectors that see it, of those of :mod:`perun.models.change_points`.
    :param reverted_by: the version whose step takes this one back, empty if there is none; :param reverts:
        the version whose step this one takes back.
    :param moved_with: locations whose steps of the same version cancel this one: the cost moved between them.
    :param conditions: names of conditions of the machine that changed with it: it may be these, and no
        commit.
    """

    series: SeriesKey
    before: Segment
    after: Segment
    ratio: float
    low: float
    high: float
    values: tuple[float, float]
    verdict: PerformanceChange
    reason: str
    decides: bool
    leads: bool
    votes: tuple[str, ...] = ()
    reverted_by: str = ""
    reverts: str = ""
    moved_with: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()

    @property
    def is_degradation(self) -> bool:
        """Whether it became worse."""
        return (self.values[1] > self.values[0]) != self.series.larger_is_better

    @property
    def remark(self) -> str:
        """`5 of 5 detectors, taken back by 4baf672`; may be empty."""
        parts = [f"{len(self.votes)} of {len(DETECTORS)} detectors"] if self.votes else []
        if self.moved_with:
            way = "from" if self.values[1] > self.values[0] else "to"
            parts.append(f"moved {way} {listed(self.moved_with, 2)}")
        if self.reverted_by:
            parts.append(f"taken back by {self.reverted_by[:_SHORT]}")
        if self.reverts:
            parts.append(f"takes back {self.reverts[:_SHORT]}")
        return ", ".join(parts)

    @property
    def size(self) -> float:
        """How large it is: the logarithm of the ratio without its sign; infinite to and from 0."""
        return abs(math.log(self.ratio)) if 0 < self.ratio < math.inf else math.inf


class Drift(NamedTuple):
    """A series that moved little by little, by no single version.

    :param ratio: the level of the newest versions by that of the oldest ones, of :param points: versions
        from :param since: on.
    """

    series: SeriesKey
    ratio: float
    points: int
    since: MinorVersion
    leads: bool


class SeriesEnd(NamedTuple):
    """A series that is not measured any more, though its configuration is, or one that is new.

    :param last: its last level, or the first one of a new series.
    """

    series: SeriesKey
    last: float
    appeared: bool


class VersionChanges(NamedTuple):
    """What changed at one point of the history.

    :param version: the first measured version of the new level. :param since: the last measured one before
        it.
    :param possible: the versions along first parents that may have brought it, `version` last: more than one
        where versions between the two were not measured. :param steps: the definite ones.
    :param doubtful: those that are not, of series that stand for what was measured.
    """

    version: MinorVersion
    since: MinorVersion
    possible: tuple[MinorVersion, ...]
    steps: tuple[ChangePoint, ...]
    gone: tuple[SeriesEnd, ...] = ()
    doubtful: tuple[ChangePoint, ...] = ()

    def entry_of(self, step: ChangePoint, acknowledged: Acknowledgements) -> Acknowledgement | None:
        """What acknowledges one of its steps; only what may fail needs it."""
        if not may_fail(step.verdict):
            return None
        return acknowledged.covers_any([one.checksum for one in self.possible], step.series.location)


class History(NamedTuple):
    """What the versions along first parents measured, the oldest first.

    :param versions: all of them. :param measured: positions in `versions` of those with profiles, ascending.
    :param cells: arrays of what :class:`perun.history.changes.history.Cell` has, with a row for each key
        and a column for each measured version; NaN where it was not measured. :param leading: the keys
        that stand for what was measured: the headlines of profiles, or all of what has none.
    :param conditions: of each column, by configuration and machine, what is known of the machine then.
    :param damaged: what cannot be read.
    """

    versions: list[MinorVersion]
    measured: list[int]
    keys: list[SeriesKey]
    cells: tuple[NDArray[Any], ...]
    leading: frozenset[SeriesKey]
    conditions: list[Conditions]
    damaged: list[str]

    @property
    def values(self) -> NDArray[np.float64]:
        """The values, shape (keys, measured)."""
        return self.cells[0]


class Changes(NamedTuple):
    """What was found, the oldest change first.

    :param series: how many series were looked at; :param short: how many of them have one version only.
    :param says: whether anything can be said of one that stands for what was measured.
    """

    found: list[VersionChanges]
    history: History
    series: int
    short: int
    drifts: tuple[Drift, ...] = ()
    says: bool = True
