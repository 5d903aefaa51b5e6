"""How long an input may run at first, and when those that were stopped then get more time.

Where the cost of a program explodes, most mutations of a slow input take longer than anybody waits. Each of
them run until it is a hang would take all the time there is, so they are stopped early and wait; what is
slow but ends is found between these and their parents (:mod:`perun.fuzz.halving`). Until a hang is known,
the input that is likeliest to be one is at once run for the whole time.
"""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

from perun.fuzz.halving import LONGER, Halving
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


class Trial(NamedTuple):
    """An input that runs again, or a part of one. :param seconds: that it is given; :param halving: what it
    is for, None to see whether it is a hang."""

    mutation: Mutation
    seconds: float
    halving: Halving | None = None


class Patience:
    """The limits of a campaign.

    :param hang: seconds after which a run is a hang. :param slowest: seconds of the slowest seed.
    """

    def __init__(self, hang: float, slowest: float) -> None:
        self.limit = min(hang, max(START, _LONGER * slowest))
        self.lost = 0.0
        self._hang = hang
        self._floor = min(hang, max(_LEAST, _LONGER * slowest))
        self._waiting: list[Halving] = []
        self._spent: dict[int, float] = {}
        self._chosen: Halving | None = None
        self._judged_at = 0.0
        self._lost_then = 0.0
        self._likeliest: tuple[float, int, Mutation] | None = None
        self._hangs_sought = 0.0

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
        room = _ROOM - sum(len(one.mutation.data) for one in waiting)
        while len(waiting) > 1 and (len(waiting) > _WAITING or room < 0):
            dropped = min((one for one in waiting if one is not self._chosen), key=lambda one: one.seconds)
            waiting.remove(dropped)
            room += len(dropped.mutation.data)

    def learned(self, trial: Trial, ended: bool, seconds: float) -> None:
        """How a trial ended: by itself, or not, after so long."""
        if trial.halving is None:
            return
        level = trial.halving.level
        self._spent[level] = self._spent.get(level, 0.0) + seconds
        if ended:
            trial.halving.ended(seconds)
        else:
            trial.halving.stopped()
            self._note_hang(trial.mutation, seconds)

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

    def next_hang(self, seconds: float) -> Trial | None:
        """The input that is likeliest to be a hang, for the time until it is one; None if there is no input,
        or no time for it.

        :param seconds: of the campaign so far.
        """
        if self._likeliest is None or self._hangs_sought + self._hang > _FOR_A_HANG * seconds:
            return None
        found, self._likeliest = self._likeliest[2], None
        self._hangs_sought += self._hang
        return Trial(found, self._hang)

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
