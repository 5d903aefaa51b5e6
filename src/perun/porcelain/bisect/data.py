"""What `perun bisect` is asked for, and what it answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from perun.plugin.api import MinorVersion
from perun.porcelain.compare.options import MAX_PAIRS

PER_DOUBLING: Final = "x at twice the size"
"""The unit of an order of growth: 2 of n, 4 of n^2; see :func:`perun.models.growth.doubling.doubling`."""
_WHOLE: Final = 0.12
"""How far an exponent may be from a whole number to be written as that."""
SECONDS: Final = 60.0
"""Time for measuring one version, where the user gives none for all of them together."""


@dataclass(frozen=True)
class Asked:
    """What the user asks for.

    :ivar good: a revision before the change, or one that `perun changes` names; None for the newest
        degradation whose commit is not known. :ivar bad: a revision with the change; None for HEAD.
    :ivar cmd: the command to measure; where empty, that of the job matrix. :ivar args: and :ivar workload:
        belong to it.
    :ivar metric: as `perun compare` has it; empty for `cpu`, or `instructions` of a location.
    :ivar location: a function, or another place that the collector records; empty for the whole program.
    :ivar script: a command that says whether a version is good; nothing is measured then.
    :ivar budget: seconds for measuring everything. :ivar most_pairs: for one version.
    :ivar pin: keep the program on one core.
    :ivar sizes: workloads over which an order of growth is told.
    """

    good: str | None = None
    bad: str | None = None
    cmd: str = ""
    args: str = ""
    workload: str = ""
    metric: str = ""
    location: str = ""
    script: str = ""
    budget: float | None = None
    most_pairs: int = MAX_PAIRS
    pin: bool = True
    sizes: tuple[str, ...] = ()


class Like(Enum):
    """What a version is like."""

    GOOD = "good"
    BAD = "bad"
    SKIPPED = "skipped"
    UNDECIDED = "undecided"


class Ratio(NamedTuple):
    """The cost of one version by that of another one.

    :param value: the ratio; infinite where the other one costs nothing. :param low: and :param high: its
        interval at 99 %; both are `value` where it is exact.
    :param costs: of the other one and of this one, medians. :param unit: of those.
    """

    value: float
    low: float
    high: float
    costs: tuple[float, float]
    unit: str = ""

    @property
    def is_exact(self) -> bool:
        """Whether it rests on counts that repeat, and not on chance."""
        return self.low == self.high

    @property
    def is_finite(self) -> bool:
        """Whether the interval has bounds."""
        return self.low > 0 and math.isfinite(self.high)

    @property
    def orders(self) -> tuple[str, str] | None:
        """Both orders of growth, as `n` and `n^2`; None where the costs are none."""
        if self.unit != PER_DOUBLING:
            return None
        before, after = map(_order, self.costs)
        return before, after


def _order(per_doubling: float) -> str:
    """`constant`, `n`, `n^1.4` or `n^2`."""
    power = math.log2(per_doubling)
    whole = round(power)
    if abs(power - whole) <= _WHOLE:
        return "constant" if not whole else "n" if whole == 1 else f"n^{whole}"
    return f"n^{power:.2g}"


class Seen(NamedTuple):
    """What is known of one version.

    :param how: `end`, `stored`, `measured` or `script`.
    :param against: the checksum of the end that it was measured beside; empty if beside none.
    :param why: of one that is skipped or undecided.
    """

    version: MinorVersion
    like: Like
    how: str
    ratio: Ratio | None = None
    against: str = ""
    why: str = ""


class Bisected(NamedTuple):
    """The answer.

    :param first: the first version with the change; None where it may be one of several, or none.
    :param range: the versions that may be the first one, the oldest first; only `first` where that is known;
        empty where the ends do not differ.
    :param parent: the version before them, which is like the good end.
    :param ratio: of the cost of the last of `range` to that of `parent`; of the ends, where these do not
        differ; None of a script.
    :param confirmed: whether `first` differs from `parent`, measured side by side.
    :param what: what was measured, as `instructions of sort of ./app big.txt`.
    :param good: and :param bad: the ends. :param seen: what was found of each version, in the order of time.
    :param measured: versions that were measured or given to the script. :param stored: versions of which what
        is stored decided. :param skipped: versions that cannot be built or run.
    :param merged: whether `first` came by a merge, through which it was searched.
    :param why: what the user should know of the answer; empty if nothing.
    """

    first: MinorVersion | None
    range: tuple[MinorVersion, ...]
    parent: MinorVersion | None
    ratio: Ratio | None
    confirmed: bool
    what: str
    kind: str
    larger_is_better: bool
    good: MinorVersion
    bad: MinorVersion
    seen: tuple[Seen, ...]
    measured: int
    stored: int
    skipped: int
    merged: MinorVersion | None = None
    why: str = ""

    @property
    def is_degradation(self) -> bool | None:
        """Whether the change made it worse; None of a script, and where there is none."""
        if self.ratio is None or not self.range:
            return None
        return (self.ratio.value > 1) != self.larger_is_better
