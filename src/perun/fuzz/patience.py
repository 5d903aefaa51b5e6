"""How long an input may run at first, and when those that were stopped then get more time.

Where the cost of a program explodes, most mutations of a slow input take longer than anybody waits. Each of
them run until it is a hang would take all the time there is, so they are stopped early and wait; what is
slow but ends is found between these and their parents (:mod:`perun.fuzz.patience`). Until a hang is known, it
is looked for from the slowest input upwards (:mod:`perun.fuzz.patience`), and what is likeliest to be one of
those that were stopped is run for the whole time.
"""

from __future__ import annotations

import math
from random import Random
from typing import Final, NamedTuple

from perun.fuzz.mutating import Mutation

# From an input that ends to one that does not, where repeating a part multiplies the cost.
#
# What takes a good part of the limit is no hang, and chance rarely finds what is just as much slower as is
# needed. But where one repetition more of some part makes an input slower by a factor, n of them make it
# slower by the n-th power: few runs tell the part and its factor, and so how many repetitions take longer
# than the limit. Which part it is shows an input as well that takes little, and there each try takes little,
# too: from the slowest one few tries would take all the time there is.

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


class RepetitionEdit(NamedTuple):
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

    def moved(self, times: int) -> RepetitionEdit:
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
        self._edit: RepetitionEdit | None = None
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
            self._edit = RepetitionEdit(start, start + size, random.random() < len(data) / self._most / 2)
            if self._is_new(self._edit):
                return True
            self._give_up()
        return False

    def _is_new(self, edit: RepetitionEdit, *, hang: bool = False) -> bool:
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


class BisectionClimb:
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


START: Final = 0.1
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


class InputTrial(NamedTuple):
    """An input that runs again, or another one made of it. :param seconds: that it is given; :param search:
    what it is for, None to see whether it is a hang."""

    mutation: Mutation
    seconds: float
    search: BisectionClimb | Climb | None = None


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
        self._waiting: list[BisectionClimb] = []
        self._spent: dict[int, float] = {}
        self._chosen: BisectionClimb | None = None
        self._judged_at = 0.0
        self._lost_then = 0.0
        self._likeliest: tuple[float, int, Mutation] | None = None
        self._hangs_sought = 0.0
        self._slowest = 0.0
        self._rungs: dict[int, Base] = {}
        self._tried: set[int] = set()
        self._tried_at = 0.0
        self._climb: Climb | None = None
        self._next_step: InputTrial | None = None

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
        waiting.append(BisectionClimb(mutation, seconds))
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

    def learned(self, trial: InputTrial, lines: int | None, seconds: float) -> None:
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

    def next_hang(self, seconds: float, random: Random) -> InputTrial | None:
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
        return InputTrial(found, self._hang)

    def _step(self, random: Random) -> InputTrial | None:
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
                return InputTrial(tried, self._climb.limit, self._climb)

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

    def next(self, seconds: float, random: Random) -> InputTrial | None:
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
                return InputTrial(mutation, halving.limit, halving)
            self._chosen = None
            if halving.seconds >= _ENOUGH * self._hang or not halving.deepen(self._hang):
                self._waiting.remove(halving)
        return None

    def _choose(self, random: Random) -> BisectionClimb:
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
