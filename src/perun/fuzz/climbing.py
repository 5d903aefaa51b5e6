"""From an input that ends to one that does not, where repeating a part multiplies the cost.

What takes a good part of the limit is no hang, and chance rarely finds what is just as much slower as is
needed. But where one repetition more of some part makes an input slower by a factor, n of them make it slower
by the n-th power: few runs tell the part and its factor, and so how many repetitions take longer than the
limit. Which part it is shows an input as well that takes little, and there each try takes little, too: from
the slowest one few tries would take all the time there is.
"""

from __future__ import annotations

import math
from random import Random
from typing import Final, NamedTuple

from perun.fuzz.mutating import Mutation

_RAISES: Final = 1.1
"""Factor of the executed lines from which on a part is repeated more: ten times is 2.6 times as slow."""
_AIM: Final = 2.0
"""Times the limit that are aimed at: the factor is not the same everywhere."""
_PROBE: Final = 8.0
"""Times as long as the input that one repetition more may take."""
_TRIES: Final = 40
"""Parts in a row none of which raises the cost."""
_LONGEST: Final = 64
"""Bytes of a part."""
_RULE: Final = "S.1"
"""The rule that does the same by chance."""


class Edit(NamedTuple):
    """A part of an input that is repeated behind itself: in front of what follows it, or over that.

    :param start: where it begins, and :param end: ends. :param over: whether it replaces what follows.
    """

    start: int
    end: int
    over: bool

    def apply(self, data: bytes, times: int, most: int) -> bytes:
        """The input with so many repetitions more, and at most so many bytes."""
        added = data[self.start : self.end] * times
        rest = data[self.end + (len(added) if self.over else 0) :]
        return (data[: self.end] + added + rest)[:most]

    def moved(self, times: int) -> Edit:
        """The last of so many repetitions, so that it does not replace these."""
        way = times * (self.end - self.start) if self.over else 0
        return self._replace(start=self.start + way, end=self.end + way)


class Base(NamedTuple):
    """An input that has ended. :param lines: that it executes. :param seconds: that it takes."""

    mutation: Mutation
    lines: int
    seconds: float


class Climb:
    """The way up from one input.

    :param base: where it begins. :param cheap: seconds that an input may take from which parts are tried; the
        base itself may take longer. :param most: bytes of an input.
    :ivar limit: seconds for what :meth:`next` gave. :ivar is_over: whether all was tried.
    """

    def __init__(self, base: Base, cheap: float, most: int) -> None:
        self.limit = base.seconds
        self.is_over = False
        rules = (*base.mutation.rules, _RULE)
        self._base = self._now = base._replace(mutation=base.mutation._replace(rules=rules))
        self._cheap = max(cheap, base.seconds)
        self._most = most
        self._edit: Edit | None = None
        self._factor = 1.0
        self._times = 0
        self._tried = b""
        self._failed = 0
        self._seen = {(hash(base.mutation.data), False)}

    def next(self, hang: float, random: Random) -> Mutation | None:
        """The input to run for :attr:`limit` seconds; None if there is no other one.

        :param hang: seconds after which a run is a hang.
        """
        self.is_over = not (self._jump(hang) or self._probe(hang, random))
        return None if self.is_over else self._now.mutation._replace(data=self._tried)

    def ended(self, lines: int, seconds: float) -> None:
        """What :meth:`next` gave has ended."""
        self._factor = (lines / max(self._now.lines, 1)) ** (1 / self._times)
        if self._factor < _RAISES or self._edit is None:
            self._give_up()
            return
        self._now = Base(self._now.mutation._replace(data=self._tried), lines, seconds)
        if seconds <= self._cheap:
            self._base = self._now
        self._edit, self._failed = self._edit.moved(self._times), 0

    def stopped(self, hang: float) -> None:
        """What :meth:`next` gave was stopped after its limit, or has failed."""
        if self.limit < hang:
            self._factor = _PROBE  # or more: perhaps it is slow enough
        else:
            self._give_up()

    def _give_up(self) -> None:
        """Try another part, where that takes little."""
        self._edit = None
        self._now = self._base
        self._failed += 1

    def _jump(self, hang: float) -> bool:
        """Choose as many repetitions of the part that raised the cost as are needed."""
        if self._edit is None:
            return False
        missing = math.log(max(_AIM * hang / max(self._now.seconds, 1e-3), self._factor))
        self._times = math.ceil(missing / math.log(self._factor))
        self.limit = hang
        if self._is_new(self._edit, hang=True):
            return True
        self._give_up()
        return False

    def _probe(self, hang: float, random: Random) -> bool:
        """Choose a part, to repeat it once."""
        data = self._now.mutation.data
        self._times = 1
        self.limit = min(hang, _PROBE * self._now.seconds)
        while data and self._failed < _TRIES:
            size = random.randint(1, max(1, int(min(len(data), _LONGEST) ** random.random())))
            start = random.randint(0, len(data) - size)
            self._edit = Edit(start, start + size, random.random() < len(data) / self._most / 2)
            if self._is_new(self._edit):
                return True
            self._give_up()
        return False

    def _is_new(self, edit: Edit, *, hang: bool = False) -> bool:
        self._tried = edit.apply(self._now.mutation.data, self._times, self._most)
        key = hash(self._tried), hang
        if key in self._seen:
            return False
        self._seen.add(key)
        return True


# The slowest input that still ends, between one that does and one that does not.
#
# Where the cost of a program explodes, most mutations of a slow input take longer than anybody waits, and of
# those that end few are slower than their parent: one byte too many is too much, one too few is too little.
# Chance finds that byte rarely; halving the difference finds it in a few runs, whatever the difference is.

LONGER: Final = 4.0
"""Times as long as what ends that an input in between may take at first; and how much more time what did not
end gets the next time."""


class InputDifference(NamedTuple):
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


def difference(old: bytes, new: bytes) -> InputDifference:
    """Where two inputs differ that are not the same."""
    least = min(len(old), len(new))
    head = _same(old, new, least)
    return InputDifference(old, new, head, _same(old[::-1], new[::-1], least - head))


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

    def __init__(self, steps: InputDifference, given: float) -> None:
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
