"""The slowest input that still ends, between one that does and one that does not.

Where the cost of a program explodes, most mutations of a slow input take longer than anybody waits, and of
those that end few are slower than their parent: one byte too many is too much, one too few is too little.
Chance finds that byte rarely; halving the difference finds it in a few runs, whatever the difference is.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from perun.fuzz.mutating import Mutation

LONGER: Final = 4.0
"""Times as long as what ends that an input in between may take at first; and how much more time what did not
end gets the next time."""


class Difference(NamedTuple):
    """Two inputs, and how many bytes they have in common at the beginning and at the end."""

    old: bytes
    new: bytes
    head: int
    tail: int

    @property
    def steps(self) -> int:
        """In how many steps the one becomes the other."""
        return max(len(self.old), len(self.new)) - self.head - self.tail

    def at(self, step: int) -> bytes:
        """After so many steps, from the left to the right: 0 is the old input, `steps` the new one."""
        same = self.head + self.tail
        old, new = (self.head + (len(one) - same) * step // self.steps for one in (self.old, self.new))
        return self.new[:new] + self.old[old:]


def difference(old: bytes, new: bytes) -> Difference:
    """Where two inputs differ that are not the same."""
    least = min(len(old), len(new))
    head = _same(old, new, least)
    return Difference(old, new, head, _same(old[::-1], new[::-1], least - head))


def _same(one: bytes, other: bytes, most: int) -> int:
    """How many bytes both begin with, of so many."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class Halving:
    """The search between the parent of a mutation that was stopped and that; where nothing there is slow and
    ends, among the beginnings of the mutation. What did not end gets more time where nothing else is left.

    :param given: seconds after which the mutation was stopped.
    :ivar seconds: of the slowest input that ended. :ivar limit: of the input that :meth:`next` gave.
    :ivar level: how often what did not end got more time.
    """

    def __init__(self, mutation: Mutation, given: float) -> None:
        self.mutation = mutation
        self.seconds = mutation.parent.seconds
        self.limit = given
        differences = difference(mutation.parent.data, mutation.data), difference(b"", mutation.data)
        self._paths = [_Path(one, given) for one in differences]
        self._path = self._paths[0]
        self.level = 0

    def next(self, least: float, most: float) -> Mutation | None:
        """The input to run for :attr:`limit` seconds; None if there is no other one that is worth it.

        :param least: seconds that anything gets, and :param most: seconds after which a run is a hang.
        """
        self.limit = min(most, max(least * LONGER**self.level, LONGER * self.seconds))
        if all(path.high for path in self._paths):
            for path in self._paths:
                if path.choose(self.limit):
                    self._path = path
                    return self.mutation._replace(data=path.difference.at(path.tried))
        return None

    def deepen(self, most: float) -> bool:
        """After :meth:`next` gave None, give all more time; whether that is worth it."""
        self.level += 1
        return self.limit < most and all(path.high for path in self._paths)

    def ended(self, seconds: float) -> None:
        """What :meth:`next` gave took so long."""
        self.seconds = max(self.seconds, seconds)
        self._path.ended()

    def stopped(self) -> None:
        """What :meth:`next` gave was stopped after its limit, or has failed."""
        whole = self._path.tried == self._path.difference.steps
        for path in self._paths if whole else [self._path]:
            path.stopped(path.difference.steps if whole else path.tried, self.limit)


class _Path:
    """What is known of the steps from one input to the other.

    :ivar low: the last one known that ends. :ivar high: those that do not, with the seconds that they were
        given; the first one comes last. :ivar tried: the one that runs.
    """

    def __init__(self, steps: Difference, given: float) -> None:
        self.difference = steps
        self.low = self.tried = 0
        self.high = [(steps.steps, given)]

    def choose(self, limit: float) -> bool:
        """Choose the step in the middle, or the next one if it was given less time than now; whether there is
        one."""
        high, given = self.high[-1]
        self.tried = (self.low + high) // 2 if high - self.low > 1 else high
        return self.tried < high or given < limit

    def ended(self) -> None:
        """What was tried has ended."""
        self.low = self.tried
        self._forget(self.low)

    def stopped(self, step: int, limit: float) -> None:
        """A step did not end in so many seconds."""
        self._forget(step)
        self.high.append((step, limit))

    def _forget(self, step: int) -> None:
        while self.high and self.high[-1][0] <= step:
            self.high.pop()
