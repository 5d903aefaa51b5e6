"""The experiments of the manual's section 10.1, from ten seeds of the random numbers each: the table of
docs/fuzzing.md.

    python benchmarks/fuzz_experiments.py [--jobs N] [--seeds 0,1,2] [PROGRAM-SIZE...]

A search ends where the ratio of the manual and a hang are reached, or after 220 s of the processor, of all
processes together: two minutes of two cores. Seconds of the processor are what counts, as other programs may
take the cores as well: a hang is an input on which the program, run alone, computes for more than 10 s.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "fuzzing"))

import experiments

JOBS: Final = 2


class Row(NamedTuple):
    """What one search has found: the ratio, whether there was a hang, and what it took."""

    number: int
    ratio: float
    hangs: int
    seconds: float
    cpu: float
    executions: int
    reached: bool


def measure(case: experiments.Case, program: Path, number: int, *, jobs: int = JOBS) -> Row:
    """One search."""
    with tempfile.TemporaryDirectory() as folder:
        started, before = time.monotonic(), experiments.cpu_seconds()
        campaign, end = experiments.begin(case, program, Path(folder), number, jobs=jobs)
        try:
            reached, _ = experiments.search(case, campaign, program, Path(folder))
        finally:
            end()
        found, spent = campaign.found, experiments.cpu_seconds() - before
        seconds = time.monotonic() - started
        return Row(number, found.best, len(found.hangs), seconds, spent, campaign.executions, reached)


def table(rows: dict[experiments.Case, list[Row]]) -> Iterator[str]:
    """The rows of the table, as Markdown."""
    yield "| expression | bytes at most | manual | Perun: worst, median, best | reached | s of CPU time |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for case, found in rows.items():
        ratios = [row.ratio for row in found]
        hang = ", and a hang" if case.hangs else ""
        shown = ", ".join(f"{one:,.3g}" if one < 100 else f"{one:,.0f}" for one in
                          (min(ratios), statistics.median(ratios), max(ratios)))  # fmt: skip
        reached = sum(row.reached for row in found)
        seconds = [row.cpu for row in found]
        times = f"{statistics.median(seconds):.0f}, at most {max(seconds):.0f}"
        manual = f"{case.ratio:,.3g}" if case.ratio < 100 else f"{case.ratio:,.0f}"
        names = f"| {case.program} | {case.size:,} | {manual}{hang}"
        yield f"{names} | {shown} | {reached} of {len(found)} | {times} |"


def main() -> None:
    """Search, a line for each; at the end the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=JOBS)
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
                row = measure(cases[name], program, number, jobs=given.jobs)
                rows.setdefault(cases[name], []).append(row)
                hang = "a hang" if row.hangs else "no hang"
                print(f"{name} seed {number}: {row.ratio:,.1f}x, {hang}, {row.seconds:.1f} s, "
                      f"{row.cpu:.1f} s CPU, {row.executions:,} executions"
                      f"{'' if row.reached else ' NOT REACHED'}", flush=True)  # fmt: skip
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
