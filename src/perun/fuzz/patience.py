"""How long an input may run at first, and when those that were stopped then get more time.

Where the cost of a program explodes, most mutations of a slow input take longer than anybody waits. Each of
them run until it is a hang would take all the time there is, so they are stopped early and wait; what is
slow but ends is found between these and their parents (:mod:`perun.fuzz.climbing`). Until a hang is known, it
is looked for from the slowest input upwards (:mod:`perun.fuzz.climbing`), and what is likeliest to be one of
those that were stopped is run for the whole time.
"""

from __future__ import annotations

import math
from random import Random
from typing import Final, NamedTuple

from perun.fuzz.climbing import LONGER, Base, Climb, Halving
from perun.fuzz.mutating import Mutation

START: Final = 1.0
"""Seconds at first: as long as nothing takes longer, nothing depends on the clock."""
_LEAST: Final = 0.05
_LONGER: Final = 20
"""Times that the slowest seed takes, which are given at least."""
_MUCH: Final = 0.3
_LITTLE: Final = 0.05
"""Shares of the time that go to inputs which are stopped: between these the limit stays."""
_WAITING: Final = 64
_ROOM: Final = 64 * 1024 * 1024
"""Inputs that wait, and their bytes; of more, that is dropped whose parent takes least."""
_SLOWEST: Final = 0.5
"""Share of times that the one is chosen of which the slowest input is known that ends; else any."""
_ENOUGH: Final = 0.5
"""Share of the limit of a hang: what takes longer is slow enough."""
_AGAIN: Final = 0.4
"""Share of the time for inputs that run again."""
_FOR_A_HANG: Final = 0.3
"""Share of the time to find the first hang."""
_SLOW: Final = 0.1
"""Share of the limit of a hang, and at most :data:`START`: what takes longer may be brought to it."""
_SLOWER: Final = 2.0
"""Times as slow as before is the slowest input where all the ways up are tried again."""
_CHEAP: Final = 0.02
"""Share of the limit of a hang that an input may take from which the way up begins."""
_RUNG: Final = 4
"""Times the executed lines of the rung below."""
_LARGEST_BASE: Final = _ROOM // 64
"""Bytes of an input from which a way up begins: there is one of each rung, and a larger one hardly hangs as a
part of it is repeated a few times."""


class Trial(NamedTuple):
    """An input that runs again, or another one made of it. :param seconds: that it is given; :param search:
    what it is for, None to see whether it is a hang."""

    mutation: Mutation
    seconds: float
    search: Halving | Climb | None = None


class Patience:
    """The limits of a campaign.

    :param hang: seconds after which a run is a hang. :param slowest: seconds of the slowest seed.
    :param size: bytes of an input at most.
    """

    def __init__(self, hang: float, slowest: float, size: int) -> None:
        self.limit = min(hang, max(START, _LONGER * slowest))
        self.lost = 0.0
        self._hang = hang
        self._size = size
        self._floor = min(hang, max(_LEAST, _LONGER * slowest))
        self._waiting: list[Halving] = []
        self._spent: dict[int, float] = {}
        self._chosen: Halving | None = None
        self._judged_at = 0.0
        self._lost_then = 0.0
        self._likeliest: tuple[float, int, Mutation] | None = None
        self._hangs_sought = 0.0
        self._slowest = 0.0
        self._rungs: dict[int, Base] = {}
        self._tried: set[int] = set()
        self._tried_at = 0.0
        self._climb: Climb | None = None
        self._next_step: Trial | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def of(self, parent: float) -> float:
        """Seconds for an input at first, whose parent takes so long."""
        return min(self._hang, max(self.limit, LONGER * parent))

    def stopped(self, mutation: Mutation, seconds: float) -> None:
        """A mutation was stopped after so long."""
        self.lost += seconds
        self._note_hang(mutation, seconds)
        waiting = self._waiting
        waiting.append(Halving(mutation, seconds))
        room = _ROOM - sum(_size(one.mutation) for one in waiting)
        while len(waiting) > 1 and (len(waiting) > _WAITING or room < 0):
            dropped = min((one for one in waiting if one is not self._chosen), key=lambda one: one.seconds)
            waiting.remove(dropped)
            room += _size(dropped.mutation)

    def ended(self, mutation: Mutation, lines: int, seconds: float) -> None:
        """A mutation has executed so many lines in so long."""
        self._slowest = max(seconds, self._slowest)
        if len(mutation.data) > _LARGEST_BASE:
            return
        rung = int(math.log(lines or 1, _RUNG))
        known = self._rungs.get(rung)
        if known is None or len(mutation.data) < len(known.mutation.data):
            self._rungs[rung] = Base(mutation, lines, seconds)

    def learned(self, trial: Trial, lines: int | None, seconds: float) -> None:
        """How a trial ended after so long: with so many executed lines, or None where it was stopped."""
        search = trial.search
        if isinstance(search, Climb):
            self._hangs_sought += seconds
            if lines is None:
                search.stopped(self._hang)
            else:
                search.ended(lines, seconds)
        elif search is not None:
            self._spent[search.level] = self._spent.get(search.level, 0.0) + seconds
            if lines is None:
                search.stopped()
                self._note_hang(trial.mutation, seconds)
            else:
                search.ended(seconds)

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

    def next_hang(self, seconds: float, random: Random) -> Trial | None:
        """The next step on the way up to a hang, or the input that is likeliest to be one; None if there is
        none, or no time for it.

        :param seconds: of the campaign so far.
        """
        left = _FOR_A_HANG * seconds - self._hangs_sought
        if self._next_step is None:
            self._next_step = self._step(random)
        step = self._next_step
        if step is not None:
            if step.seconds > left:
                return None
            self._next_step = None
            return step
        if self._likeliest is None or self._hang > left:
            return None
        found, self._likeliest = self._likeliest[2], None
        self._hangs_sought += self._hang
        return Trial(found, self._hang)

    def _step(self, random: Random) -> Trial | None:
        """The next one on the way up from an input that has ended."""
        if self._likeliest is None and self._slowest < min(START, _SLOW * self._hang):
            return None
        if self._slowest > _SLOWER * self._tried_at:
            self._tried_at = self._slowest
            self._tried.clear()
        while True:
            if self._climb is None or self._climb.is_over:
                base = self._next_base()
                if base is None:
                    return None
                self._climb = Climb(base, _CHEAP * self._hang, self._size)
            tried = self._climb.next(self._hang, random)
            if tried is not None:
                return Trial(tried, self._climb.limit, self._climb)

    def _next_base(self) -> Base | None:
        """The slowest that takes little, of those from which no way up was tried; else the fastest one that
        takes more. Of each rung the smallest input is known, which leaves most room."""
        untried = [(base.seconds, rung) for rung, base in self._rungs.items() if rung not in self._tried]
        cheap = [one for one in untried if one[0] <= _CHEAP * self._hang]
        if not untried:
            return None
        _, rung = max(cheap) if cheap else min(untried)
        self._tried.add(rung)
        return self._rungs[rung]

    def next(self, seconds: float, random: Random) -> Trial | None:
        """The input that runs again, or a part of one; None if there is none, or no time for it.

        :param seconds: of the campaign so far.
        """
        while self._waiting and sum(self._spent.values()) <= _AGAIN * seconds:
            halving = self._chosen or self._choose(random)
            mutation = None
            if halving.seconds < _ENOUGH * self._hang:
                mutation = halving.next(self.limit, self._hang)
            if mutation is not None:
                self._chosen = halving
                return Trial(mutation, halving.limit, halving)
            self._chosen = None
            if halving.seconds >= _ENOUGH * self._hang or not halving.deepen(self._hang):
                self._waiting.remove(halving)
        return None

    def _choose(self, random: Random) -> Halving:
        """One of those that wait. Each level gets about as much time as the others."""
        level = min({one.level for one in self._waiting}, key=lambda one: (self._spent.get(one, 0.0), one))
        fitting = [one for one in self._waiting if one.level == level]
        if random.random() < _SLOWEST:
            return max(fitting, key=lambda one: one.seconds)
        return random.choice(fitting)

    def _note_hang(self, mutation: Mutation, seconds: float) -> None:
        """What took longer than others were given, and of these the longest, is likeliest to be a hang."""
        size = len(mutation.data)
        if self._likeliest is None or (seconds, size) > self._likeliest[:2]:
            self._likeliest = seconds, size, mutation


def _size(mutation: Mutation) -> int:
    """Bytes that it takes with its parent."""
    return len(mutation.data) + mutation.parent.size
