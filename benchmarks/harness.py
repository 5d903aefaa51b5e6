"""Measuring commands against each other: interleaved rounds, so that drift hits all; medians and spread."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import TypeVar

from report import Measured

Prepare = Callable[[], None]
Made = TypeVar("Made")


@dataclass(frozen=True)
class Contestant:
    """A command in a folder; `prepare` is called before each execution, outside the measured time."""

    argv: Sequence[str]
    cwd: Path
    prepare: Prepare | None = None


@dataclass(frozen=True)
class Timing:
    """Seconds: of one execution, or the medians over the rounds, each a :class:`Measured`."""

    wall: float
    cpu: float
    first_output: float


def compete(contestants: Mapping[str, Contestant], rounds: int) -> dict[str, Timing]:
    """Run every contestant once in each round, after one round that is not counted."""
    samples: dict[str, list[Timing]] = {name: [] for name in contestants}
    for number in range(rounds + 1):
        for name, contestant in contestants.items():
            timing = once(contestant)
            if number:
                samples[name].append(timing)
    return {name: _median(timings) for name, timings in samples.items()}


def once(contestant: Contestant) -> Timing:
    """Execute a contestant and read its output to the end; it must succeed."""
    if contestant.prepare:
        contestant.prepare()
    before = getrusage(RUSAGE_CHILDREN)  # os.times counts by hundredths of a second
    # A file takes all that is complained of, however much that is: nobody reads it meanwhile.
    with tempfile.TemporaryFile() as complaints:
        start = time.perf_counter()
        process = subprocess.Popen(
            contestant.argv, cwd=contestant.cwd, stdout=subprocess.PIPE, stderr=complaints
        )
        assert process.stdout
        first = process.stdout.read(1)
        first_output = time.perf_counter() - start
        while process.stdout.read(1 << 16):
            pass
        code = process.wait()
        wall = time.perf_counter() - start
        after = getrusage(RUSAGE_CHILDREN)
        if code:
            complaints.seek(0)
            complaint = complaints.read().decode()
            raise SystemExit(f"{' '.join(contestant.argv)} ended with {code}: {complaint}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Timing(wall, cpu, first_output if first else wall)


def cpu(work: Callable[[], Made], rounds: int) -> tuple[float, Made]:
    """Median CPU time of this process in seconds, and what was made.

    Where there are several rounds, one more goes before that is not counted.
    """
    samples = []
    for _ in range(rounds + (rounds > 1)):
        start = time.process_time()
        made = work()
        samples.append(time.process_time() - start)
    return Measured(samples[-rounds:]), made


def _median(timings: Sequence[Timing]) -> Timing:
    return Timing(
        Measured([timing.wall for timing in timings]),
        Measured([timing.cpu for timing in timings]),
        Measured([timing.first_output for timing in timings]),
    )
