"""Trying the seeds before anything is searched (manual 9.5), and refusing what cannot be fuzzed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.errors import JobFailed
from perun.fuzz.compass import Counts
from perun.fuzz.corpus import Member
from perun.fuzz.executing import Executor, Observed, Task
from perun.fuzz.seeds import SeedFile
from perun.fuzz.settings import Settings
from perun.process.outcome import outcome
from perun.wording import listed

_UNSTEADY: Final = 1e-3
"""Share by which the executed lines of the same input may differ without being said."""
_NO_TIME: Final = "had not ended when the time was over"


class TriedSeed(NamedTuple):
    """A seed that can be used, and its counts."""

    member: Member
    edges: NDArray[np.intp]
    counts: Counts


class Tried(NamedTuple):
    """The seeds that can be used, what the user should know, and how many runs it took."""

    seeds: tuple[TriedSeed, ...]
    notes: tuple[str, ...]
    executions: int


def try_seeds(
    seeds: Sequence[SeedFile], executor: Executor, settings: Settings, until: float = math.inf
) -> Tried:
    """Run each seed twice: the second time tells whether the program does the same again.

    :param until: when there is no time any more, as in :class:`~perun.fuzz.executing.Task`.
    :raises JobFailed: where the program ends well with none of them, or executes nothing that is counted.
    """
    if not settings.coverage:
        return Tried(tuple(_untried(seed) for seed in seeds), (), 0)
    tasks = [Task(number, seed.data, settings.hang, until) for number, seed in enumerate(seeds)]
    usable: list[TriedSeed] = []
    refused: dict[str, list[str]] = {}
    failing: dict[int, list[str]] = {}
    for seed, one in zip(seeds, executor.run(tasks), strict=True):
        if one.outcome != "ok":
            refused.setdefault(_ending(one, settings.hang), []).append(str(seed.path))
            continue
        if one.code and not settings.ignore_failure:
            failing.setdefault(one.code, []).append(str(seed.path))
        member = Member(0, str(seed.path), seed.data, "", str(seed.path), (), one.total, 1.0, one.seconds)
        usable.append(TriedSeed(member, one.edges, one.counts))
    if not usable:
        raise _all_refused(refused)
    failed = sum(map(len, failing.values()))
    if failed == len(usable):
        ends = "; ".join(f"{listed(paths)}: status {code}" for code, paths in failing.items())
        raise JobFailed(
            f"the program fails on every seed ({ends})",
            "correct the command, or give seeds that it accepts; where it always ends so: --ignore-failure",
        )
    if not any(seed.member.lines for seed in usable):
        raise JobFailed(
            "the program executes no line that is counted, whatever the seed",
            "compile its own sources with the options for coverage, and name their folders with --gcno-path "
            "and --source-path; or measure without: --skip-coverage-testing",
        )
    notes = [f"no seed: {listed(paths)}: the program {ending}" for ending, paths in refused.items()]
    notes += [f"the program ends with status {code} on {listed(paths)}" for code, paths in failing.items()]
    tasks = [Task(n, one.member.data, settings.hang, until) for n, one in enumerate(usable)]
    notes += filter(None, [_unsteady(usable, list(executor.run(tasks)))])
    return Tried(tuple(usable), tuple(notes), len(seeds) + len(usable))


def _untried(seed: SeedFile) -> TriedSeed:
    nothing = np.zeros(0, np.int64)
    member = Member(0, str(seed.path), seed.data, "", str(seed.path), (), icov=1.0)
    return TriedSeed(member, nothing, nothing)


def _ending(observed: Observed, hang: float) -> str:
    if observed.outcome == "fault":
        return outcome(-observed.code)
    if observed.limit < hang:
        return _NO_TIME
    return f"did not end within {hang:g} s"


def _all_refused(refused: dict[str, list[str]]) -> JobFailed:
    ends = "; ".join(f"the program {ending} on {listed(paths)}" for ending, paths in refused.items())
    hint = "correct the command, or give other seeds"
    if _NO_TIME in refused:
        hint = "give more time with --timeout, or fewer and smaller seeds"
    elif any("did not end" in ending for ending in refused):
        hint = "give smaller seeds, or more time with --hang-timeout"
    return JobFailed(f"no seed can be used: {ends}", hint)


def _unsteady(seeds: Sequence[TriedSeed], again: Sequence[Observed]) -> str:
    """What to say where the same input is not executed the same way."""
    pairs = [
        (one.member.lines, other.total)
        for one, other in zip(seeds, again, strict=True)
        if other.outcome == "ok"
    ]
    if not pairs:
        return ""
    worst = max(pairs, key=lambda pair: abs(pair[0] - pair[1]) / max(*pair, 1))
    if abs(worst[0] - worst[1]) <= _UNSTEADY * max(worst):
        return ""
    return (
        f"the program executes another number of lines for the same input ({worst[0]:,} and {worst[1]:,}): "
        "ratios are that uncertain, and --seed repeats nothing exactly"
    )
