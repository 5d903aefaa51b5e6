"""From the slowest input that ends to one that does not, where repeating a part multiplies the cost.

What takes a good part of the limit is no hang, and chance rarely finds what is just as much slower as is
needed. But where one repetition more of some part makes an input slower by a factor, n of them make it slower
by the n-th power: few runs tell the part and its factor, and so how many repetitions take longer than the
limit.
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
"""Times as long as the slowest input that one repetition more may take."""
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


class Climb:
    """The way up from one input.

    :param mutation: what took longest of all that ended. :param lines: that it executes.
    :param seconds: that it takes. :param most: bytes of an input.
    :ivar seconds: of the slowest input that ended. :ivar limit: seconds for what :meth:`next` gave.
    """

    def __init__(self, mutation: Mutation, lines: int, seconds: float, most: int) -> None:
        self.seconds = self.limit = seconds
        self._mutation = mutation._replace(rules=(*mutation.rules, _RULE))
        self._lines = lines
        self._most = most
        self._edit: Edit | None = None
        self._factor = 1.0
        self._times = 0
        self._tried = b""
        self._again = False
        self._failed = 0
        self._seen = {hash(mutation.data)}

    def next(self, hang: float, random: Random) -> Mutation | None:
        """The input to run for :attr:`limit` seconds; None if there is no other one.

        :param hang: seconds after which a run is a hang.
        """
        if self._again:
            self._again, self.limit = False, hang
        elif not (self._jump(hang) or self._probe(hang, random)):
            return None
        return self._mutation._replace(data=self._tried)

    def ended(self, lines: int, seconds: float) -> None:
        """What :meth:`next` gave has ended."""
        self._factor = (lines / max(self._lines, 1)) ** (1 / self._times)
        if lines > self._lines:
            self._mutation = self._mutation._replace(data=self._tried)
            self._lines, self.seconds = lines, max(seconds, self.seconds)
        if self._factor < _RAISES or self._edit is None:
            self._give_up()
        else:
            self._edit, self._failed = self._edit.moved(self._times), 0

    def stopped(self, hang: float) -> None:
        """What :meth:`next` gave was stopped after its limit, or has failed."""
        if self.limit < hang:
            self._again = True  # it is much slower: perhaps slow enough
        else:
            self._give_up()

    def _give_up(self) -> None:
        """Try another part."""
        self._edit = None
        self._failed += 1

    def _jump(self, hang: float) -> bool:
        """Choose as many repetitions of the part that raised the cost as are needed."""
        if self._edit is None:
            return False
        missing = math.log(max(_AIM * hang / max(self.seconds, 1e-3), self._factor))
        self._times = math.ceil(missing / math.log(self._factor))
        self.limit = hang
        if self._is_new(self._edit):
            return True
        self._give_up()
        return False

    def _probe(self, hang: float, random: Random) -> bool:
        """Choose a part, to repeat it once."""
        data = self._mutation.data
        self._times = 1
        self.limit = min(hang, _PROBE * self.seconds)
        while data and self._failed < _TRIES:
            size = random.randint(1, max(1, int(min(len(data), _LONGEST) ** random.random())))
            start = random.randint(0, len(data) - size)
            self._edit = Edit(start, start + size, random.random() < len(data) / self._most / 2)
            if self._is_new(self._edit):
                return True
            self._give_up()
        return False

    def _is_new(self, edit: Edit) -> bool:
        self._tried = edit.apply(self._mutation.data, self._times, self._most)
        key = hash(self._tried)
        if key in self._seen:
            return False
        self._seen.add(key)
        return True
