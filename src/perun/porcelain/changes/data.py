"""What `perun changes` tells: versions, and the steps of series that each of them brought."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from perun.plugin.api import MinorVersion
from perun.profile.head import Configuration

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Conditions = dict[tuple[Configuration, str], tuple[tuple[str, str], ...]]
"""By configuration and class of machine, the name and the value of what is known of the machine."""


class SeriesKey(NamedTuple):
    """What one series measures.

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


class Level(NamedTuple):
    """The level of a series between two changes.

    :param value: the median. :param low: and :param high: its interval at 95 %.
    :param points: how many versions it is known of.
    """

    value: float
    low: float
    high: float
    points: int


class Step(NamedTuple):
    """A change of the level of one series.

    :param ratio: new level / old level, with :param low: and :param high: its interval at 95 %.
    :param votes: the detectors that see it, of those of :mod:`perun.models.change_points`.
    :param taken_back: the version whose step takes this one back, empty if there is none; :param takes_back:
        the version whose step this one takes back.
    :param moved_with: locations whose steps of the same version cancel this one: the cost moved between them.
    :param conditions: names of conditions of the machine that changed with it: it may be these, and no
        commit.
    """

    series: SeriesKey
    before: Level
    after: Level
    ratio: float
    low: float
    high: float
    votes: tuple[str, ...]
    taken_back: str = ""
    takes_back: str = ""
    moved_with: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()

    @property
    def is_degradation(self) -> bool:
        """Whether it became worse."""
        return (self.ratio > 1) != self.series.larger_is_better


class Gone(NamedTuple):
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
        where versions between the two were not measured.
    """

    version: MinorVersion
    since: MinorVersion
    possible: tuple[MinorVersion, ...]
    steps: tuple[Step, ...]
    gone: tuple[Gone, ...] = ()


class History(NamedTuple):
    """What the versions along first parents measured, the oldest first.

    :param versions: all of them. :param measured: positions in `versions` of those with profiles, ascending.
    :param values: a row for each key and a column for each measured version; NaN where it was not measured.
    :param conditions: of each column, by configuration and machine, what is known of the machine then.
    :param damaged: what cannot be read.
    """

    versions: list[MinorVersion]
    measured: list[int]
    keys: list[SeriesKey]
    values: NDArray[np.float64]
    conditions: list[Conditions]
    damaged: list[str]


class Changes(NamedTuple):
    """What was found, the oldest change first.

    :param series: how many series were looked at; :param short: how many of them have too few versions.
    :param spikes: how many points of them are spikes, which are no change.
    """

    found: list[VersionChanges]
    history: History
    series: int
    short: int
    spikes: int
