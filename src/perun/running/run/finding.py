"""`perun run matrix --find-changes`: where a long history changed, without measuring all of it.

Some versions are measured first, evenly over the history. Where two neighbours of these differ, the version
in the middle is measured with both in a session of its own, and so on, until the two are parent and child.
What no neighbours show is not found: a change that is taken back between two of the first versions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from perun.history.baseline import BaselineComparison
from perun.measurement.verdict import is_change
from perun.plugin.api import MinorVersion
from perun.repository.jobs import Job
from perun.running.run.rounds import SessionState

FIRST: Final = 9
"""Versions that are measured first."""


class JobChange(NamedTuple):
    """A change of a job.

    :param since: the last version before it that was measured, :param version: the first one after it.
    :param between: how many versions there are between the two, of which none could be measured.
    """

    job: Job
    since: MinorVersion
    version: MinorVersion
    between: int
    judged: BaselineComparison


class _Step(NamedTuple):
    """What a session says of two versions that it measured, by their places: of the newer one of them."""

    first: int
    last: int
    known: list[SessionState]

    @property
    def changes(self) -> list[SessionState]:
        """The jobs that have changed for certain."""
        return [one for one in self.known if _is_change(one)]

    @property
    def is_same(self) -> bool:
        """Whether all jobs were shown to have not changed."""
        verdicts = (one.judged and one.judged.verdict for one in self.known)
        return all(verdict is not None and verdict.decides for verdict in verdicts)


class Search:
    """Which versions are measured next, by what is known of those before.

    :param versions: along first parents, the oldest first.
    :ivar undecided: how many neighbours were not told apart, nor shown to be the same.
    """

    def __init__(self, versions: Sequence[MinorVersion]) -> None:
        self._versions = list(versions)
        self._place = {version.checksum: place for place, version in enumerate(versions)}
        self._tried: set[int] = set()
        self._missing: set[int] = set()
        self._found: list[_Step] = []
        self.undecided = 0
        last, count = len(versions) - 1, min(FIRST, len(versions))
        self._asked = [sorted({round(last * number / max(count - 1, 1)) for number in range(count)})]

    @property
    def measured(self) -> int:
        """How many versions have been measured."""
        return len(self._tried - self._missing)

    @property
    def total(self) -> int:
        """How many versions there are."""
        return len(self._versions)

    def session(self) -> list[MinorVersion]:
        """The versions that are measured together next, newest first; empty at the end of the search."""
        places = sorted({place for own in self._asked for place in own}, reverse=True)
        return [self._versions[place] for place in places]

    def learn(self, known: Iterable[SessionState]) -> None:
        """Take in what the session says; a version of it that it says nothing of could not be measured."""
        by_place: dict[int, list[SessionState]] = {}
        for one in known:
            by_place.setdefault(self._place[one.version.checksum], []).append(one)
        asked, self._asked = self._asked, []
        first = not self._tried
        places = {place for own in asked for place in own}
        self._tried |= places
        self._missing = (self._missing | places) - by_place.keys()
        for own in asked:
            there = [place for place in own if place in by_place]
            steps = [_Step(one, two, by_place[two]) for one, two in pairwise(there)]
            changed = [step for step in steps if step.changes]
            if first:
                self.undecided = sum(not step.changes and not step.is_same for step in steps)
            if not changed and not first and steps:  # as a whole they differ: the half that differs more
                changed = [max(steps, key=lambda step: max(map(_size, step.known)))]
            for step in changed:
                middle = self._middle(step)
                if middle is None:
                    self._found.append(step)
                else:
                    self._asked.append([step.first, middle, step.last])

    def found(self) -> list[JobChange]:
        """The changes, newest first."""
        return [
            JobChange(one.job, self._versions[step.first], self._versions[step.last],
                  step.last - step.first - 1, one.judged)
            for step in sorted(self._found, reverse=True, key=lambda step: step.last)
            for one in step.changes or [max(step.known, key=_size)]
            if one.judged is not None
        ]  # fmt: skip

    def _middle(self, step: _Step) -> int | None:
        """The place nearest to the middle of those that may be measured; None if there is none."""
        middle = (step.first + step.last) // 2
        inside = (place for place in range(step.first + 1, step.last) if place not in self._missing)
        return min(inside, key=lambda place: abs(place - middle), default=None)


def _is_change(one: SessionState) -> bool:
    """Whether the job differs from the version before it in the session for certain."""
    verdict = one.judged and one.judged.verdict
    return verdict is not None and is_change(verdict)


def _size(one: SessionState) -> float:
    """How much it differs, whatever that is worth; 0 where it cannot be told."""
    verdict = one.judged and one.judged.verdict
    ratio = math.nan if verdict is None else verdict.difference.ratio
    return abs(math.log(ratio)) if ratio > 0 else 0.0
