"""The inputs that the user gives: `--input-sample` and `--workloads-filter` (manual 9.3)."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.core.errors import JobFailed, UsageError
from perun.core.process.command import outcome
from perun.core.wording import listed, plural
from perun.fuzz.corpus import CorpusMember, Counts
from perun.fuzz.executing import Executor, InputTask, RunObservation

MAX_BYTES: Final = 64 * 1024 * 1024
"""Largest seed: each mutation is as large, and thousands are made."""


class SeedFile(NamedTuple):
    """An input. :param path: as the user names it, or as it was found in a folder that he names."""

    path: Path
    data: bytes


class SeedFiles(NamedTuple):
    """The inputs in the order of the user, each content once, and what he should know of those left out."""

    seeds: tuple[SeedFile, ...]
    notes: tuple[str, ...]


def read(samples: Sequence[str], cwd: Path, pattern: str = "") -> SeedFiles:
    """Read all files, and those of folders at any depth, in the order of their names.

    :param cwd: what relative paths are relative to. :param pattern: a regular expression that is to be found
        in the path of each file; empty for all.
    :raises UsageError: where a path does not exist, the expression is wrong, or no input is left.
    """
    chosen = _compiled(pattern)
    found: dict[bytes, SeedFile] = {}
    left_out: dict[str, list[str]] = {}
    filtered = 0
    for path in _files(samples, cwd):
        if chosen.search(os.fsdecode(path)) is None:
            filtered += 1
            continue
        try:
            data = _content(cwd / path)
        except OSError as problem:
            left_out.setdefault(problem.strerror or str(problem), []).append(str(path))
            continue
        if not data:
            left_out.setdefault("it is empty", []).append(str(path))
        elif data in found:
            left_out.setdefault(f"it is the same as {found[data].path}", []).append(str(path))
        else:
            found[data] = SeedFile(path, data)
    notes = tuple(_note(why, paths) for why, paths in left_out.items())
    if not found:
        raise _nothing(samples, pattern, filtered, notes)
    return SeedFiles(tuple(found.values()), notes)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as problem:
        place = "" if problem.pos is None else f" at character {problem.pos + 1}"
        raise UsageError(
            f"--workloads-filter {pattern!r} is no regular expression: {problem.msg}{place}",
            "e.g. --workloads-filter '[.]xml$'",
        ) from None


def _files(samples: Sequence[str], cwd: Path) -> Iterator[Path]:
    for sample in samples:
        path = Path(sample)
        if (cwd / path).is_dir():
            for folder, folders, names in os.walk(cwd / path):
                folders.sort()
                yield from (path / Path(folder, name).relative_to(cwd / path) for name in sorted(names))
        elif (cwd / path).exists():
            yield path
        else:
            raise UsageError(f"--input-sample {sample} does not exist", "give a file, or a folder of files")


def _content(path: Path) -> bytes:
    """:raises OSError: if it cannot be read, is no regular file, or is too large."""
    if not path.is_file():
        raise OSError(0, "it is no regular file")
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise OSError(0, f"it has more than {MAX_BYTES} bytes")
    return data


def _note(why: str, paths: Sequence[str]) -> str:
    return f"no seed: {listed(paths)}: {why}"


def _nothing(samples: Sequence[str], pattern: str, filtered: int, notes: Sequence[str]) -> UsageError:
    named = ", ".join(samples)
    if notes:
        return UsageError(f"--input-sample {named} has no usable seed\n" + "\n".join(notes), "give others")
    if filtered:
        return UsageError(
            f"--workloads-filter {pattern!r} fits none of {plural(filtered, 'file')} in {named}",
            "it is searched in the path of each file",
        )
    return UsageError(f"--input-sample {named} holds no file", "give a file that the program reads")


# How a campaign searches.


@dataclass(frozen=True)
class SearchSettings:
    """How to search.

    :ivar seconds: of searching, those of earlier parts of the campaign included. :ivar executions: at most,
        or None. :ivar hang: seconds after which a run is a hang. :ivar limit: bytes of a mutation.
    :ivar gathering: executions between two tests (`--exec-limit`), and :ivar interesting: inputs that are
        enough for one. :ivar rate: the first threshold. :ivar strategy: of mutations per rule.
    :ivar tests_between: measure between phases of gathering, and let that guide the search; else at the end.
    :ivar coverage: False for `--skip-coverage-testing`. :ivar ignore_failure: of the program on seeds.
    """

    seconds: float
    limit: int
    hang: float = 10.0
    executions: int | None = None
    gathering: int = 100
    interesting: int = 20
    rate: float = 1.5
    strategy: str = "mixed"
    tests_between: bool = True
    coverage: bool = True
    ignore_failure: bool = False


# Trying the seeds before anything is searched (manual 9.5), and refusing what cannot be fuzzed.

_UNSTEADY: Final = 1e-3
"""Share by which the executed lines of the same input may differ without being said."""
_NO_TIME: Final = "had not ended when the time was over"


class TriedSeed(NamedTuple):
    """A seed that can be used, and its counts."""

    member: CorpusMember
    edges: NDArray[np.intp]
    counts: Counts


class SeedTrials(NamedTuple):
    """The seeds that can be used, what the user should know, and how many runs it took."""

    seeds: tuple[TriedSeed, ...]
    notes: tuple[str, ...]
    executions: int


def try_seeds(
    seeds: Sequence[SeedFile], executor: Executor, settings: SearchSettings, until: float = math.inf
) -> SeedTrials:
    """Run each seed twice: the second time tells whether the program does the same again.

    :param until: when there is no time any more, as in :class:`~perun.fuzz.executing.InputTask`.
    :raises JobFailed: where the program ends well with none of them, or executes nothing that is counted.
    """
    if not settings.coverage:
        return SeedTrials(tuple(_untried(seed) for seed in seeds), (), 0)
    tasks = [InputTask(number, seed.data, settings.hang, until) for number, seed in enumerate(seeds)]
    usable: list[TriedSeed] = []
    refused: dict[str, list[str]] = {}
    failing: dict[int, list[str]] = {}
    for seed, one in zip(seeds, executor.run(tasks), strict=True):
        if one.outcome != "ok":
            refused.setdefault(_ending(one, settings.hang), []).append(str(seed.path))
            continue
        if one.code and not settings.ignore_failure:
            failing.setdefault(one.code, []).append(str(seed.path))
        member = CorpusMember(
            0, str(seed.path), seed.data, "", str(seed.path), (), one.total, 1.0, one.seconds
        )
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
    tasks = [InputTask(n, one.member.data, settings.hang, until) for n, one in enumerate(usable)]
    notes += filter(None, [_unsteady(usable, list(executor.run(tasks)))])
    return SeedTrials(tuple(usable), tuple(notes), len(seeds) + len(usable))


def _untried(seed: SeedFile) -> TriedSeed:
    nothing = np.zeros(0, np.int64)
    member = CorpusMember(0, str(seed.path), seed.data, "", str(seed.path), (), icov=1.0)
    return TriedSeed(member, nothing, nothing)


def _ending(observed: RunObservation, hang: float) -> str:
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


def _unsteady(seeds: Sequence[TriedSeed], again: Sequence[RunObservation]) -> str:
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
