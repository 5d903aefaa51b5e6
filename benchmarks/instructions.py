"""Instruction counts: reading what callgrind recorded, beside its own reader; what counting costs.

`python benchmarks/instructions.py` prints the rows alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from perun.collect.instructions import InstructionsCollector
from perun.collect.instructions.collector import InstructionsParams
from perun.plugin.api import CollectContext, Run
from report import Measured, Place, Row

PROGRAM = "import json, argparse; json.dumps([{str(i): i} for i in range(500)])"
COMMAND = f'/usr/bin/python3 -c "{PROGRAM}"'
READ = "import sys; from pathlib import Path; from perun.collect.instructions.callgrind import read; "
READ += "print(read(Path(sys.argv[1])).total)"
CALLERS = 20
STARTED = (
    "import resource, subprocess, sys\n"
    "subprocess.run(sys.argv[1:], check=True)\n"
    "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
    "print(used.ru_utime + used.ru_stime, used.ru_maxrss, file=sys.stderr)\n"
)


def instructions(place: Place) -> Iterator[Row]:
    """Seconds of CPU and memory to read a recording; seconds to count a program."""
    if shutil.which("callgrind_annotate") is None:
        print("| valgrind is not installed | | | | | |")
        return
    yield from reading(place.folder, max(3, place.rounds // 5))
    yield from counting(place.folder, max(3, place.rounds // 5))


def reading(folder: Path, rounds: int) -> Iterator[Row]:
    file = folder / "recording"
    words = ["valgrind", "--tool=callgrind", f"--separate-callers={CALLERS}", f"--callgrind-out-file={file}"]
    subprocess.run([*words, "/usr/bin/python3", "-c", PROGRAM], check=True, capture_output=True)
    found = {"ours": [used([sys.executable, "-c", READ, str(file)]) for _ in range(rounds)]}
    found["theirs"] = [used(["callgrind_annotate", str(file)]) for _ in range(rounds)]
    size = f"reading {file.stat().st_size / 1e6:.0f} MB of callgrind's"
    for place, (what, unit) in enumerate((("CPU with all imports", "s"), ("memory", "kB"))):
        ours, theirs = (Measured([one[place] for one in found[name]]) for name in ("ours", "theirs"))
        yield Row(f"{size}, {what}", ours, theirs, "callgrind_annotate", 1, unit)


def used(argv: Sequence[str]) -> tuple[float, float]:
    """CPU time in seconds and peak memory in kB of a command.

    A small process starts it, for a new process begins with the peak of the one that it was made from.
    """
    words = [sys.executable, "-I", "-S", "-c", STARTED, *argv]
    done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    cpu, memory = map(float, done.stderr.split()[-2:])
    return cpu, memory


def counting(folder: Path, rounds: int) -> Iterator[Row]:
    run = Run(COMMAND, cwd=folder, environ=dict(os.environ))
    plain = [sum(times_of(run, folder, None)) for _ in range(rounds)]
    for callers in (0, 10):
        counted = [sum(times_of(run, folder, callers)) for _ in range(rounds)]
        name = f"counting instructions of Python, {callers} callers, CPU"
        yield Row(name, Measured(counted), Measured(plain), "the program alone", None, is_rival=False)


def times_of(run: Run, folder: Path, callers: int | None) -> tuple[float, float]:
    """User and system time of all that is started for one run, and of what reads it."""
    before = os.times()
    if callers is None:
        subprocess.run(run.command().argv, check=True, env=dict(run.environ))
    else:
        params = InstructionsParams(engine="callgrind", callers=callers, warmup=0)
        InstructionsCollector().collect(run, params, CollectContext(folder))
    after = os.times()
    return (
        after.user + after.children_user - before.user - before.children_user,
        after.system + after.children_system - before.system - before.children_system,
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        for row in instructions(Place("perun", "", Path(name), 15)):
            print(row.line, flush=True)
