"""What comes after the search: the best results are minimised, and the growth of their cost is modelled."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from perun import atomic
from perun.fuzz import growth, limited, minimize
from perun.fuzz.limited import OutOfTime, Ran, RunInput
from perun.fuzz.patterns import Pattern
from perun.fuzz.results import FAULT, HANG, MINIMIZED, SLOW, Campaign, Result
from perun.models.result import NoModel
from perun.regular import read_regular

BEST: Final = 10
"""Results that are minimised where nobody says how many."""
SECONDS: Final = 120.0
"""For all of them together, about."""
_OUTCOMES: Final = {SLOW: "ok", FAULT: "fault", HANG: "hang"}
_LEAST: Final = 4.0
"""Seconds for a result: where there are fewer, fewer results are modelled, but these well."""
_SHORTER: Final = 5
"""Part of the time limit after which a smaller input counts as a hang; the smallest one is run to the whole
limit."""
_FOR_MINIMIZING: Final = 0.4
"""Share of the time of a result."""
_MOST_BYTES: Final = 1 << 30


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
    run = limited.until(end, run, clock)
    for number, result in enumerate(chosen):
        left = end - clock()
        if left <= 0 or (number and left < _LEAST / 2):
            break
        said = _prefixed(report, f"result {number + 1} of {len(chosen)}, {result.file}: ")
        share = max(left / (len(chosen) - number), min(_LEAST, left))
        try:
            better = _understood(folder, result, run, max_size, hang_timeout, unit, share, said, clock)
        except OutOfTime:
            break
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


def _understood(
    folder: Path,
    result: Result,
    run: RunInput,
    max_size: int,
    hang_timeout: float,
    unit: str,
    seconds: float,
    report: Callable[[str], None],
    clock: Callable[[], float],
) -> Result:
    """The result with its smaller form and its growth; as it is where it cannot be reproduced.

    :raises OutOfTime: if not even one run is possible.
    """
    data = read_regular(folder / result.file, _MOST_BYTES)
    first = run(data, hang_timeout)
    if first.outcome != _OUTCOMES[result.kind]:
        return replace(result, growth=_unknown("it did not behave so again, so it is left as it is"))

    def step(now: minimize.Progress) -> None:
        report(f"minimising {now.stage}, {now.tests} runs, {len(data):,} to {now.size:,} B")

    keeps = keeps_cost(run, first, hang_timeout)
    smaller = minimize.minimize(data, keeps, seconds=_FOR_MINIMIZING * seconds, report=step, clock=clock)
    small, complete = smaller.data, smaller.complete
    if result.kind == HANG and small != data and not _hangs(run, small, hang_timeout):
        small, complete = data, False
    found = growth.find(
        small,
        run,
        max_size=max_size,
        hang_timeout=hang_timeout,
        unit=unit,
        seconds=(1 - _FOR_MINIMIZING) * seconds,
        report=report,
        clock=clock,
    )
    stages = list(smaller.stages)
    if isinstance(found, NoModel):
        said = _unknown(found.reason)
    else:
        said = found.as_json()
        if result.kind != HANG:
            small, stage = _of_pattern(found.pattern, small, keeps)
            stages.append(stage)
    name = f"{MINIMIZED}/{Path(result.file).name}"
    atomic.write(folder / name, small)
    said["minimizing"] = {
        "before": smaller.before,
        "after": len(small),
        "complete": complete,
        "stages": [stage._asdict() for stage in stages],
    }
    return replace(result, minimized=name, growth=said)


def _of_pattern(pattern: Pattern, data: bytes, keeps: minimize.Keeps) -> tuple[bytes, minimize.Stage]:
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
    return found, minimize.Stage("pattern", tests, len(data) - len(found))


def _hangs(run: RunInput, data: bytes, hang_timeout: float) -> bool:
    """Whether it surely hangs."""
    try:
        return run(data, hang_timeout).outcome == HANG
    except OutOfTime:
        return False


def _unknown(reason: str) -> dict[str, Any]:
    return {"text": "", "reason": reason}


def keeps_cost(
    run: RunInput, reference: Ran, hang_timeout: float, share: float = minimize.SHARE
) -> minimize.Keeps:
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
