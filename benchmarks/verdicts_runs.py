"""Records runs of real commands, for :mod:`verdicts_methods`: quietly, and beside busy loops.

    python benchmarks/verdicts_runs.py tests/data/verdicts/runs.json.gz

The file holds, for each condition, the real, user and system times of repeated runs of two commands, one
after the other as the collector `time` measures them, and the calls of runs of a program that times its own
functions.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from perun.collect.time import TimeCollector, TimeParams
from perun.plugin.api import CollectContext, Run

PROGRAM = Path(__file__).parent.parent / "tests/data/verdicts/calls.c"
TIMED_RUNS = 240
TRACED_RUNS = 16
LOOPS_PER_CORE = 4


def record(path: Path) -> None:
    """Write the file: a minute of measuring."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = folder / "calls"
        subprocess.run(["cc", "-O1", "-o", program, PROGRAM], check=True)
        runs: dict[str, Any] = {}
        for condition, loops in (("quiet", 0), ("loaded", LOOPS_PER_CORE * (os.cpu_count() or 1))):
            with _busy(loops):
                runs[condition] = {
                    "load": os.getloadavg()[0],
                    "times": {"calls": _times(program, folder), "true": _times(Path("/bin/true"), folder)},
                    "calls": [_calls(program) for _ in range(TRACED_RUNS)],
                }
    path.write_bytes(gzip.compress(json.dumps(runs, separators=(",", ":")).encode(), mtime=0))


def _times(program: Path, folder: Path) -> dict[str, list[int]]:
    """Microseconds of each run by clock."""
    profile = TimeCollector().collect(
        Run(str(program)), TimeParams(warmup=3, repeat=TIMED_RUNS), CollectContext(folder)
    )
    return {
        group.constants["subtype"]: [round(1e6 * amount) for amount in group.columns["amount"]]
        for group in profile.groups()
    }


def _calls(program: Path) -> dict[str, list[list[int]]]:
    """Of each function the sizes that it was called with, and the nanoseconds of these calls."""
    found: dict[str, list[list[int]]] = {}
    output = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    for line in output.splitlines():
        name, size, time = line.split()
        sizes, times = found.setdefault(name, [[], []])
        sizes.append(int(size))
        times.append(int(time))
    return found


@contextmanager
def _busy(count: int) -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


if __name__ == "__main__":
    record(Path(sys.argv[1]))
