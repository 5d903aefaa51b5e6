"""What an input is worth, and from which coverage on it is interesting (manual 9.6 and 9.7)."""

from __future__ import annotations

from typing import Final

from perun.profile.changes import PerformanceChange

_STEP: Final = 1.1
"""Factor by which the threshold adapts; the manual names none."""
_LOWEST: Final = 1.01
"""Below, an input would be interesting that executes no more lines than the seeds."""
_DEGRADATIONS: Final = frozenset(
    {
        PerformanceChange.TotalDegradation,
        PerformanceChange.SevereDegradation,
        PerformanceChange.Degradation,
    }
)


def score(icov: float, pcr: float) -> float:
    """The fitness of an input: `icov * (1 + pcr)`.

    :param icov: its executed lines to those of the seeds. :param pcr: share of degradations among the changes
        that were found.
    """
    return icov * (1 + pcr)


def change_rate(changes: list[PerformanceChange]) -> float:
    """The share of degradations among changes (`pcr`); 0 where there are none. Possible ones do not count."""
    return sum(one in _DEGRADATIONS for one in changes) / len(changes) if changes else 0.0


class Threshold:
    """The multiple of the lines of the seeds that an interesting input exceeds.

    It adapts: where many inputs exceed it, it rises, where none does, it falls.

    :param rate: `--coverage-increase-rate`.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def is_exceeded(self, lines: int, base: int) -> bool:
        """Whether so many lines are more than the threshold."""
        return lines > self.rate * base

    def adapt(self, found: int, wanted: int, best: float) -> None:
        """After a phase of gathering: `found` interesting inputs of `wanted`.

        :param best: the best ratio so far; beyond it nothing would be found any more.
        """
        if found >= wanted:
            self.rate = min(self.rate * _STEP, max(best, self.rate))
        elif not found:
            self.rate = max(self.rate / _STEP, min(_LOWEST, self.rate))
