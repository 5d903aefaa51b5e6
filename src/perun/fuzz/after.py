"""What comes after the search: the best results are minimised, and the growth of their cost is modelled."""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.core import atomic
from perun.core.regular import read_regular
from perun.fuzz import executing, growth
from perun.fuzz.executing import OutOfTime, RunInput, RunOutcome
from perun.fuzz.patterns import InputPattern
from perun.fuzz.results import FAULT, HANG, MINIMIZED, SLOW, Campaign, Result
from perun.models.record import NoModel

# The smallest form of an input that is still as slow: delta debugging on lines, words and bytes.
#
# The parts of an input are left out in groups, large ones first, and what is left is kept where the program
# is as slow with it. Only complements are tried: that one part alone is enough hardly happens, and the tests
# for it cost as many runs again. At last characters are made alike (`kx7` becomes `aa0`), so that what the
# cost depends on can be read.
#
# Sources: A. Zeller and R. Hildebrandt, Simplifying and Isolating Failure-Inducing Input, IEEE TSE 28(2),
# 2002 (ddmin); R. Hodován and Á. Kiss, Practical Improvements to the Minimizing Delta Debugging Algorithm,
# ICSOFT-EA 2016 (subsets may be omitted; from the end to the start).

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


class MinimizedInput(NamedTuple):
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


class MinimizationProgress(NamedTuple):
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
    report: Callable[[MinimizationProgress], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> MinimizedInput:
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
    return MinimizedInput(work.data, len(data), tuple(stages), not work.was_limited)


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
        report: Callable[[MinimizationProgress], None] | None,
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
            self._report(MinimizationProgress(self._stage, self.used, len(self.data)))
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


BEST: Final = 10
"""Results that are minimised where nobody says how many."""
SECONDS: Final = 120.0
"""For all of them together, about."""
_OUTCOMES: Final = {SLOW: "ok", FAULT: "fault", HANG: "hang"}
_PARTS: Final = 3
"""Part of the time that is left for one result, the best first: what is said of it is what is read first."""
_LEAST: Final = 4.0
"""Seconds for a result: where there are fewer, fewer results are modelled, but these well."""
_SHORTER: Final = 5
"""Part of the time limit after which a smaller input counts as a hang; the smallest one is run to the whole
limit."""
_FOR_MINIMIZING: Final = 0.4
"""Share of the time of a result."""
_MOST_BYTES: Final = 1 << 30
_QUICK: Final = 0.1
"""Seconds of an input that is explained by itself."""
_ENOUGH: Final = 100.0
"""Times the cost of the seeds is an input that shows what slower ones are slow by."""
_FOR_QUICK: Final = 0.5
"""Share of the time to find that out."""


def understand(
    folder: Path,
    campaign: Campaign,
    run: RunInput,
    *,
    best: int = BEST,
    max_size: int,
    hang_timeout: float,
    unit: str = "executed lines",
    seconds: float = SECONDS,
    report: Callable[[str], None] | None = None,
    keep: Callable[[Campaign], object] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Campaign:
    """Minimise the best results of a campaign and say how their cost grows.

    :param folder: of the results; the smaller inputs go to `minimized` in it.
    :param run: runs the program on an input. :param best: how many results; 0 for none.
    :param max_size: bytes up to which inputs grow. :param unit: what the count of a run
        counts. :param seconds: in all; the best come first, and what an earlier part of the campaign has
        understood is left as it is.
    :param report: told one line of progress. :param keep: gets the campaign after each result, so that an
        interruption loses one of them at most.
    :return: the campaign, in which results have `minimized` and `growth`.
    :raises OSError: if a file cannot be read or written.
    """
    chosen = [one for one in _best(campaign, best) if not one.minimized]
    end = clock() + seconds
    run = executing.until(end, run, clock)
    work = _Understanding(folder, run, max_size, hang_timeout, unit, clock)
    quick: dict[str, growth.CostGrowth | None] = {}
    for number, result in enumerate(chosen):
        left = end - clock()
        if left <= 0 or (number and left < _LEAST / 2):
            break
        said = _prefixed(report, f"result {number + 1} of {len(chosen)}, {result.file}: ")
        share = max(left / min(len(chosen) - number, _PARTS), min(_LEAST, left))
        known = None
        try:
            lighter = _lighter(campaign, result)
            if lighter is not None and lighter.file not in quick:
                quick[lighter.file] = work.quick_growth(lighter, _FOR_QUICK * (end - clock()), said)
            known = quick[lighter.file] if lighter is not None else None
            share = min(share, max(end - clock(), 0.0))
            better = work.of_pattern(result, known) if known is not None else None
            better = better or work.understood(result, share, said, known)
        except OutOfTime:
            if known is None:
                break
            better = work.unchanged(result, known)
        results = tuple(better if one.file == result.file else one for one in campaign.results)
        campaign = replace(campaign, results=results)
        if keep:
            keep(campaign)
    return campaign


def _best(campaign: Campaign, most: int) -> Iterator[Result]:
    """The best of each kind in turns: slow, hang, fault, slow, hang ...; near relatives of these last."""
    queues = [_relatives_last(campaign.of_kind(kind)) for kind in (SLOW, HANG, FAULT)]
    while most > 0 and any(queues):
        for queue in filter(None, queues):
            if most > 0:
                yield queue.pop(0)
                most -= 1


def _relatives_last(results: Sequence[Result]) -> list[Result]:
    """One of each family first: those that came from the same input by a few more rules say the same."""
    first: list[Result] = []
    others: list[Result] = []
    for result in results:
        (others if any(_are_related(result, one) for one in first) else first).append(result)
    return first + others


def _are_related(one: Result, other: Result) -> bool:
    """Whether they have the same seed and most of their rules, from the beginning."""
    pairs = zip(one.rules, other.rules, strict=False)
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return one.seed == other.seed and common > max(len(one.rules), len(other.rules)) / 2


def _prefixed(report: Callable[[str], None] | None, start: str) -> Callable[[str], None]:
    return (lambda text: report(start + text)) if report else (lambda text: None)


def _lighter(campaign: Campaign, result: Result) -> Result | None:
    """The smallest input of the same seed that says as much in less time; None for a quick result.

    Each run of an input that takes seconds, or hangs, costs what hundreds of runs of that one do.
    """
    if result.kind == FAULT or (result.kind == SLOW and result.seconds <= _QUICK):
        return None
    found = [
        one
        for one in campaign.of_kind(SLOW)
        if one.seed == result.seed and one.seconds <= _QUICK and (one.ratio or 0.0) >= _ENOUGH
    ]
    return min(found, key=lambda one: one.size, default=None)


class _Understanding(NamedTuple):
    """What :func:`understand` knows for all results."""

    folder: Path
    run: RunInput
    max_size: int
    hang_timeout: float
    unit: str
    clock: Callable[[], float]

    def quick_growth(
        self, result: Result, seconds: float, report: Callable[[str], None]
    ) -> growth.CostGrowth | None:
        """The growth that the smallest part of a quick result shows, as slow as :data:`_ENOUGH` seeds; None
        if there is no order.

        :raises OutOfTime: as :meth:`understood`."""
        data = self._data(result)
        first = self.run(data, self.hang_timeout)
        least = min(first.total, _ENOUGH * (result.lines or 0) / (result.ratio or 1.0))

        def keeps(smaller: bytes) -> bool:
            ran = self.run(smaller, _QUICK)
            return ran.outcome == "ok" and ran.total >= least

        small = minimize(data, keeps, seconds=_FOR_MINIMIZING * seconds, clock=self.clock).data
        found = self._growth(small, _ENOUGH, (1 - _FOR_MINIMIZING) * seconds, report)
        return found if isinstance(found, growth.CostGrowth) and found.orders[0].name else None

    def of_pattern(self, result: Result, found: growth.CostGrowth) -> Result | None:
        """The result with a pattern that is known as its smallest form, where that is smaller and as slow."""
        data = self._data(result)
        if result.kind == HANG:
            small = found.pattern.input(found.ends_at) if found.ends == HANG else data
            stage = Stage("pattern", 0, len(data) - len(small))
        else:
            first = self.run(data, self.hang_timeout)
            if first.outcome != "ok":
                return None
            small, stage = _of_pattern(found.pattern, data, keeps_cost(self.run, first, self.hang_timeout))
        return self._written(result, data, small, (stage,), found) if len(small) < len(data) else None

    def understood(
        self,
        result: Result,
        seconds: float,
        report: Callable[[str], None],
        known: growth.CostGrowth | None,
    ) -> Result:
        """The result with its smaller form and its growth; as it is where it cannot be reproduced.

        :param known: the growth, if it is known. :raises OutOfTime: if not even one run is possible.
        """
        data = self._data(result)
        first = self.run(data, self.hang_timeout)
        if first.outcome != _OUTCOMES[result.kind]:
            return replace(result, growth=_unknown("it did not behave so again, so it is left as it is"))

        def step(now: MinimizationProgress) -> None:
            report(f"minimising {now.stage}, {now.tests} runs, {len(data):,} to {now.size:,} B")

        keeps = keeps_cost(self.run, first, self.hang_timeout)
        smaller = minimize(data, keeps, seconds=_FOR_MINIMIZING * seconds, report=step, clock=self.clock)
        small, complete = smaller.data, smaller.complete
        if result.kind == HANG and small != data and not _hangs(self.run, small, self.hang_timeout):
            small, complete = data, False
        ratio = result.ratio or (math.inf if result.kind == HANG else 1.0)
        found = known or self._growth(small, ratio, (1 - _FOR_MINIMIZING) * seconds, report)
        stages = list(smaller.stages)
        if isinstance(found, growth.CostGrowth) and result.kind != HANG:
            small, stage = _of_pattern(found.pattern, small, keeps)
            stages.append(stage)
        return self._written(result, data, small, stages, found, complete=complete)

    def unchanged(self, result: Result, found: growth.CostGrowth) -> Result:
        """The result with its growth, where there is no time for a smaller form."""
        data = self._data(result)
        return self._written(result, data, data, (), found, complete=False)

    def _data(self, result: Result) -> bytes:
        return read_regular(self.folder / result.file, _MOST_BYTES)

    def _growth(
        self, data: bytes, ratio: float, seconds: float, report: Callable[[str], None]
    ) -> growth.CostGrowth | NoModel:
        return growth.find(
            data, self.run, max_size=self.max_size, hang_timeout=self.hang_timeout, ratio=ratio,
            unit=self.unit, seconds=seconds, report=report, clock=self.clock,
        )  # fmt: skip

    def _written(
        self,
        result: Result,
        data: bytes,
        small: bytes,
        stages: Sequence[Stage],
        found: growth.CostGrowth | NoModel,
        *,
        complete: bool = True,
    ) -> Result:
        said = _unknown(found.reason) if isinstance(found, NoModel) else found.as_json()
        name = f"{MINIMIZED}/{Path(result.file).name}"
        atomic.write(self.folder / name, small)
        said["minimizing"] = {
            "before": len(data),
            "after": len(small),
            "complete": complete,
            "stages": [stage._asdict() for stage in stages],
        }
        return replace(result, minimized=name, growth=said)


def _of_pattern(pattern: InputPattern, data: bytes, keeps: Keeps) -> tuple[bytes, Stage]:
    """The pattern alone, as often as it takes to be as slow as the input, where that is smaller.

    Leaving out parts cannot find it where all of them cost something, and others would cost more in their
    place.
    """
    few, enough, tests = 0, pattern.largest(len(data) - 1), 0
    found, times = data, enough
    with contextlib.suppress(OutOfTime):
        while times > few:
            made = pattern.input(times)
            tests += 1
            if len(made) < len(found) and keeps(made):
                found, enough = made, times
            elif times == enough:
                break  # not even as many as there is room for
            else:
                few = times
            times = (few + enough) // 2
    return found, Stage("pattern", tests, len(data) - len(found))


def _hangs(run: RunInput, data: bytes, hang_timeout: float) -> bool:
    """Whether it surely hangs."""
    try:
        return run(data, hang_timeout).outcome == HANG
    except OutOfTime:
        return False


def _unknown(reason: str) -> dict[str, Any]:
    return {"text": "", "reason": reason}


def keeps_cost(run: RunInput, reference: RunOutcome, hang_timeout: float, share: float = SHARE) -> Keeps:
    """Whether an input is as slow as the one of the run `reference`: its cost is at least that share; a fault
    remains the same fault (its exit code, where the run tells one), a hang remains a hang.

    What counts as a hang is over after a fifth of the limit, as hundreds of them are run.
    """
    timeout = hang_timeout / _SHORTER if reference.outcome == HANG else hang_timeout
    code = getattr(reference, "code", None)

    def keeps(data: bytes) -> bool:
        ran = run(data, timeout)
        if ran.outcome != reference.outcome:
            return False
        if ran.outcome == "ok":
            return ran.total >= share * reference.total
        return ran.outcome == HANG or getattr(ran, "code", None) == code

    return keeps
