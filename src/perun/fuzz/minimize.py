"""The smallest form of an input that is still as slow: delta debugging on lines, words and bytes.

The parts of an input are left out in groups, large ones first, and what is left is kept where the program is
as slow with it. Only complements are tried: that one part alone is enough hardly happens, and the tests for
it cost as many runs again. At last characters are made alike (`kx7` becomes `aa0`), so that what the cost
depends on can be read.

Sources: A. Zeller and R. Hildebrandt, Simplifying and Isolating Failure-Inducing Input, IEEE TSE 28(2), 2002
(ddmin); R. Hodován and Á. Kiss, Practical Improvements to the Minimizing Delta Debugging Algorithm, ICSOFT-EA
2016 (subsets may be omitted; from the end to the start).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from perun.fuzz.limited import OutOfTime

Keeps = Callable[[bytes], bool]
"""Whether an input is as slow as the one that is minimised; OutOfTime where there is no time to tell."""

SHARE: Final = 0.9
"""Of the cost that a smaller input must have at least."""
TESTS: Final = 2000
"""Runs of the program that minimising one input takes at most."""
_PART_OF_STAGE: Final = 0.5
"""Of the runs and the time that are left, for one stage: a later one may remove more."""
_WORDS: Final = re.compile(rb"\w+|\s+|[^\w\s]", re.ASCII)
_ALIKE: Final = ((b"a", re.compile(rb"[b-z]")), (b"A", re.compile(rb"[B-Z]")), (b"0", re.compile(rb"[1-9]")))
"""What characters are replaced by, where that keeps the cost."""


class Stage(NamedTuple):
    """One stage: its name, the runs that it took, and the bytes that it removed (or made alike)."""

    name: str
    tests: int
    changed: int


class Minimized(NamedTuple):
    """The smaller input.

    :param data: it is as slow. :param before: bytes at the beginning. :param stages: in their order.
    :param complete: False where the limit of runs or of time ended it: leaving out more may be possible.
    """

    data: bytes
    before: int
    stages: tuple[Stage, ...]
    complete: bool

    @property
    def tests(self) -> int:
        """Runs of the program in all."""
        return sum(stage.tests for stage in self.stages)


class Progress(NamedTuple):
    """Where minimising is: the stage, runs so far, and the size by now in bytes."""

    stage: str
    tests: int
    size: int


def minimize(
    data: bytes,
    keeps: Keeps,
    *,
    tests: int = TESTS,
    seconds: float = 60.0,
    report: Callable[[Progress], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Minimized:
    """Make an input smaller while `keeps` is true for it; what it is for `data` is not asked.

    :param tests: calls of `keeps` at most; :param seconds: time at most. The larger savings come first.
    :param report: told after each call.
    """
    work = _Work(data, keeps, tests, clock() + seconds, report, clock)
    stages = []
    for name, stage in _STAGES.items():
        before, used = work.data, work.used
        work.begin(name)
        stage(work)
        changed = len(before) - len(work.data) or sum(a != b for a, b in zip(before, work.data, strict=True))
        stages.append(Stage(name, work.used - used, changed))
    return Minimized(work.data, len(data), tuple(stages), not work.was_limited)


class _Limited(Exception):
    """The runs or the time of a stage are used up."""


class _Work:
    """The input by now, and what has been used of the limits."""

    def __init__(
        self,
        data: bytes,
        keeps: Keeps,
        tests: int,
        until: float,
        report: Callable[[Progress], None] | None,
        clock: Callable[[], float],
    ) -> None:
        self.data = data
        self.used = 0
        self.was_limited = False
        self._keeps, self._report, self._clock = keeps, report, clock
        self._tests, self._until = tests, until
        self._stage = ""
        self._stage_tests, self._stage_until = 0, 0.0
        self._known: set[int] = set()

    def begin(self, stage: str) -> None:
        """Begin a stage, which gets its part of the limits."""
        now = self._clock()
        part = 1.0 if stage == _LAST else _PART_OF_STAGE
        self._stage = stage
        self._stage_tests = self.used + int((self._tests - self.used) * part)
        self._stage_until = now + (self._until - now) * part

    def accept(self, candidate: bytes) -> bool:
        """Whether the candidate is as slow; it is the input from now on then.

        :raises _Limited: if the limits of the stage are reached.
        """
        if candidate == self.data:
            return True
        key = hash(candidate)
        if key in self._known:
            return False
        if self.used >= self._stage_tests or self._clock() >= self._stage_until:
            self.was_limited = True
            raise _Limited
        self.used += 1
        try:
            kept = self._keeps(candidate)
        except OutOfTime:
            self.was_limited = True
            raise _Limited from None
        if kept:
            self.data = candidate
        else:
            self._known.add(key)
        if self._report:
            self._report(Progress(self._stage, self.used, len(self.data)))
        return kept


def _leave_out(work: _Work, split: Callable[[bytes], Sequence[bytes]]) -> None:
    """Leave out parts, in groups of half of them, a quarter ... at last one by one until nothing can go."""
    parts = list(split(work.data))
    size = max(1, len(parts) // 2)
    try:
        while parts:
            removed, end = False, len(parts)
            while end > 0:
                start = max(0, end - size)
                rest = parts[:start] + parts[end:]
                if work.accept(b"".join(rest)):
                    parts, removed = rest, True
                end = start
            if size == 1 and not removed:
                return
            size = max(1, size // 2)
    except _Limited:
        return


def _make_alike(work: _Work) -> None:
    """Replace letters and digits by one of each kind: all of a kind, those of one character, then groups."""
    try:
        for one, others in _ALIKE:
            if work.accept(others.sub(one, work.data)):
                continue
            for other in sorted(set(others.findall(work.data))):
                work.accept(work.data.replace(other, one))
            _replace_groups(work, one, others)
    except _Limited:
        return


def _replace_groups(work: _Work, one: bytes, others: re.Pattern[bytes]) -> None:
    places = [match.start() for match in others.finditer(work.data)]
    size = len(places) // 2
    while size:
        for start in range(0, len(places), size):
            candidate = bytearray(work.data)
            for place in places[start : start + size]:
                candidate[place : place + 1] = one
            work.accept(bytes(candidate))
        size //= 2


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def _words(data: bytes) -> list[bytes]:
    return _WORDS.findall(data)


def _bytes(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


_STAGES: Final[dict[str, Callable[[_Work], None]]] = {
    "lines": lambda work: _leave_out(work, _lines),
    "words": lambda work: _leave_out(work, _words),
    "bytes": lambda work: _leave_out(work, _bytes),
    "characters": _make_alike,
}
_LAST: Final = "characters"
