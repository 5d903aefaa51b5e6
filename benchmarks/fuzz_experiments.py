"""The experiments of the manual's section 10.1, from ten seeds of the random numbers each: the table of
docs/fuzzing.md.

    python benchmarks/fuzz_experiments.py [--busy TIMES] [--jobs N] [--seeds 0,1,2] [PROGRAM-SIZE...]

A search ends where the ratio of the manual and a hang are reached, or after 110 s; it takes two cores. Where
other programs take these as well, `--busy 4` makes all limits four times as long, that of a hang included.
The CPU time of all processes is told beside the seconds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "fuzzing"))

import experiments

SECONDS: Final = 110.0
CORES: Final = 2
HANG: Final = 10.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class Row(NamedTuple):
    """What one search has found: the ratio, when it was reached, and whether there was a hang."""

    number: int
    ratio: float
    hangs: int
    seconds: float
    cpu: float
    executions: int
    reached: bool


def cpu_seconds() -> float:
    """Of this process, its descendants, and those of them that have ended and were waited for."""
    spent: dict[int, int] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                fields = (folder / "stat").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            values = fields.rpartition(")")[2].split()
            children[int(values[1])].append(int(folder.name))
            spent[int(folder.name)] = sum(map(int, values[11:15]))
    waiting, total = [os.getpid()], 0
    while waiting:
        pid = waiting.pop()
        total += spent.get(pid, 0)
        waiting += children[pid]
    return total / _TICKS


def measure(
    case: experiments.Case, program: Path, number: int, *, jobs: int = CORES, busy: float = 1.0
) -> Row:
    """One search."""
    with tempfile.TemporaryDirectory() as folder:
        started, cpu = time.monotonic(), cpu_seconds()
        campaign, end = experiments.begin(
            case, program, Path(folder), number, seconds=busy * SECONDS, jobs=jobs, hang=busy * HANG
        )
        try:
            experiments.search(case, campaign)
            spent = cpu_seconds() - cpu
        finally:
            end()
        found = campaign.found
        seconds = time.monotonic() - started
        reached = experiments.is_reached(case, campaign)
        return Row(number, found.best, len(found.hangs), seconds, spent, campaign.executions, reached)


def table(rows: dict[experiments.Case, list[Row]]) -> Iterator[str]:
    """The rows of the table, as Markdown."""
    yield "| expression | bytes at most | manual | Perun: worst, median, best search | reached | s |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for case, found in rows.items():
        ratios = [row.ratio for row in found]
        hang = ", and a hang" if case.hangs else ""
        shown = ", ".join(f"{one:,.3g}" if one < 100 else f"{one:,.0f}" for one in
                          (min(ratios), statistics.median(ratios), max(ratios)))  # fmt: skip
        reached = sum(row.reached for row in found)
        seconds = [row.seconds for row in found]
        times = f"{statistics.median(seconds):.0f}, at most {max(seconds):.0f}"
        manual = f"{case.ratio:,.3g}" if case.ratio < 100 else f"{case.ratio:,.0f}"
        names = f"| {case.program} | {case.size:,} | {manual}{hang}"
        yield f"{names} | {shown} | {reached} of {len(found)} | {times} |"


def main() -> None:
    """Search, a line for each; at the end the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--busy", type=float, default=1.0)
    parser.add_argument("--jobs", type=int, default=CORES)
    parser.add_argument("--seeds", default="0,1,2,3,4,5,6,7,8,9")
    parser.add_argument("cases", nargs="*")
    given = parser.parse_args()
    cases = {f"{case.program}-{case.size}": case for case in (*experiments.SMALL, *experiments.LARGE)}
    rows: dict[experiments.Case, list[Row]] = {}
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "search.cpp"), Path(folder, "search")
        source.write_text(experiments.SOURCE)
        subprocess.run(["g++", *experiments.COMPILED, "-o", program, source], check=True)
        for name in given.cases or cases:
            for number in map(int, given.seeds.split(",")):
                row = measure(cases[name], program, number, jobs=given.jobs, busy=given.busy)
                rows.setdefault(cases[name], []).append(row)
                print(f"{name} seed {number}: {row.ratio:,.1f}x, {row.hangs} hangs, {row.seconds:.1f} s, "
                      f"{row.cpu:.1f} s CPU, {row.executions:,} executions"
                      f"{'' if row.reached else ' NOT REACHED'}", flush=True)  # fmt: skip
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
