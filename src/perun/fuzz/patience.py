"""How long an input may run at first, and when those that were stopped then get more time.

Where the cost of a program explodes, most mutations of a slow input take longer than anybody waits. Each of
them run until it is a hang would take all the time there is, so they are stopped early and wait; a few of
them are run again, each time for longer, and what is slow but ends is found among these. Until a hang is
known, the one that is likeliest to be one is at once run for the whole time.
"""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

from perun.fuzz.mutating import CUT, Mutation

START: Final = 1.0
"""Seconds at first: as long as nothing takes longer, nothing depends on the clock."""
_LEAST: Final = 0.05
_LONGER: Final = 20
"""Times that the slowest seed takes, which are given at least."""
_MUCH: Final = 0.3
_LITTLE: Final = 0.05
"""Shares of the time that go to inputs which are stopped: between these the limit stays."""
_STEP: Final = 4.0
"""Times as long that an input is given the next time."""
_WAITING: Final = 64
"""Inputs that wait for the same limit; of more the longest is dropped: shorter ones are likelier to end."""
_SHORTEST: Final = 0.5
"""Share of times that the shortest one is tried; else any."""
_OF_PARENT: Final = 4.0
"""Times as long as its parent that an input is given in any case: else nothing slower is found by and by."""
_CUT: Final = 0.5
"""Share of times that only the beginning of it is tried, which is likelier to end."""
_AGAIN: Final = 0.4
"""Share of the time for inputs that run again."""
_FOR_A_HANG: Final = 0.3
"""Share of the time to find the first hang."""


class Waiting(NamedTuple):
    """An input that waits. :param level: how often it was stopped."""

    mutation: Mutation
    level: int


class Patience:
    """The limits of a campaign.

    :param hang: seconds after which a run is a hang. :param slowest: seconds of the slowest seed.
    """

    def __init__(self, hang: float, slowest: float) -> None:
        self.limit = min(hang, max(START, _LONGER * slowest))
        self.lost = 0.0
        self._hang = hang
        self._floor = min(hang, max(_LEAST, _LONGER * slowest))
        self._waiting: dict[int, list[Waiting]] = {}
        self._spent: dict[int, float] = {}
        self._judged_at = 0.0
        self._lost_then = 0.0
        self._likeliest: tuple[float, int, Waiting] | None = None
        self._hangs_sought = 0.0

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def stopped(self, one: Waiting, seconds: float) -> None:
        """An input was stopped after so long."""
        if one.level == 0:
            self.lost += seconds
        else:
            self.spend(one, seconds)
        level = one.level + 1
        one = one._replace(level=level)
        # What took longer than others were given, and of these the longest, is likeliest to be a hang.
        size = len(one.mutation.data)
        if self._likeliest is None or (seconds, size) > self._likeliest[:2]:
            self._likeliest = seconds, size, one
        waiting = self._waiting.setdefault(level, [])
        waiting.append(one)
        waiting.sort(key=lambda other: len(other.mutation.data))
        del waiting[_WAITING:]

    def of(self, parent: float) -> float:
        """Seconds for an input at first, whose parent takes so long."""
        return min(self._hang, max(self.limit, _OF_PARENT * parent))

    def spend(self, one: Waiting, seconds: float) -> None:
        """A run again has taken so long."""
        self._spent[one.level] = self._spent.get(one.level, 0.0) + seconds

    def adapt(self, seconds: float) -> None:
        """Give less at first where too much of the time since the last change goes to what is stopped, and
        more where hardly any does.

        :param seconds: of the campaign so far.
        """
        passed = seconds - self._judged_at
        if passed < 4 * self.limit:
            return
        share = (self.lost - self._lost_then) / passed
        self._judged_at, self._lost_then = seconds, self.lost
        if share > _MUCH:
            self.limit = max(self._floor, self.limit / 2)
        elif share < _LITTLE and self.lost:
            self.limit = min(self._hang, self.limit * 1.5)

    def next_hang(self, seconds: float) -> tuple[Waiting, float] | None:
        """The input that is likeliest to be a hang, and the time until it is one; None if there is no input,
        or no time for it.

        Otherwise it would be found last: each limit before it has its share of the time.

        :param seconds: of the campaign so far.
        """
        if self._likeliest is None or self._hangs_sought + self._hang > _FOR_A_HANG * seconds:
            return None
        found, self._likeliest = self._likeliest[2], None
        self._hangs_sought += self._hang
        waiting = self._waiting.get(found.level, [])
        if found in waiting:
            waiting.remove(found)
        return found._replace(level=0), self._hang

    def next(self, seconds: float, random: Random) -> tuple[Waiting, float] | None:
        """The input that runs again, and for how long; None if there is none, or no time for it.

        Each limit gets about as much time as the others, so that short ones are tried for many inputs.

        :param seconds: of the campaign so far.
        """
        if sum(self._spent.values()) > _AGAIN * seconds:
            return None
        levels = [level for level, waiting in self._waiting.items() if waiting]
        if not levels:
            return None
        level = min(levels, key=lambda one: (self._spent.get(one, 0.0), one))
        waiting = self._waiting[level]
        place = 0 if random.random() < _SHORTEST else random.randrange(len(waiting))
        data = waiting[place].mutation.data
        shorter = CUT.apply(data, random, ()) if random.random() < _CUT else None
        if not shorter:
            return waiting.pop(place), self.time_of(level)
        mutation = waiting[place].mutation
        shortened = mutation._replace(data=shorter, rules=(*mutation.rules, CUT.label))
        return Waiting(shortened, level), self.time_of(level)

    def time_of(self, level: int) -> float:
        """Seconds for what was stopped so often."""
        longer = self.limit * _STEP**level
        return self._hang if longer * _STEP**0.5 > self._hang else longer
