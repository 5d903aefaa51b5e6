"""Importing what `perf script` prints: CPU time beside the script that folds it, and the older release."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from harness import Contestant, once
from report import Measured, Place, Row

STACKS = 1_000_000
FEWER = 200_000
"""Stacks for the others, which take minutes for all."""
DIFFERENT = 20_000
DEPTH = 20
FUNCTIONS = 3000
PLACES = ("10", "3c", "1a4")
LIBRARIES = (
    "/usr/lib/x86_64-linux-gnu/libc.so.6",
    "/home/user/build/server",
    "[kernel.kallsyms]",
    "/lib/x.so",
)
GOAL = 1.0
"""Seconds for all stacks."""


def imports(place: Place) -> Iterator[Row]:
    """Text as of a recording of a server: 20,000 different stacks, the commonest in most of the samples."""
    folder = place.folder / "imports"
    whole, part = folder / "whole.txt", folder / "part.txt"
    folder.mkdir()
    for command in ("init -q", "-c user.name=a -c user.email=a@b commit -q --allow-empty -m a"):
        subprocess.run(["git", *command.split()], cwd=folder, check=True)
    theirs = place.folder / "imports-peer"
    shutil.copytree(folder, theirs)
    subprocess.run([place.perun, "init"], cwd=folder, check=True, capture_output=True)
    subprocess.run([place.peer, "init"], cwd=theirs, check=True, capture_output=True)
    write(whole, STACKS)
    write(part, FEWER)
    ours = [once(Contestant([place.perun, "import", "perf", str(whole)], folder)).cpu for _ in range(3)]
    name = f"import perf, {STACKS:,} stacks ({whole.stat().st_size >> 20:,} MiB), CPU"
    yield Row(name, Measured(ours), GOAL, "goal", None, is_rival=False)
    less = [once(Contestant([place.perun, "import", "perf", str(part)], folder)).cpu for _ in range(3)]
    name = f"the same, {FEWER:,} stacks, CPU"
    script = shutil.which("stackcollapse-perf.pl")
    if script is None:
        print("skipped: stackcollapse-perf.pl (of FlameGraph) is not on the path")
    else:
        other = once(Contestant([script, str(part)], folder)).cpu
        yield Row(name, Measured(less), other, "stackcollapse-perf.pl", 1.0)
    other = once(Contestant([place.peer, "import", "perf", "script", str(part)], theirs)).cpu
    yield Row(name, Measured(less), other, "0.28.3", 1.0)


def write(path: Path, count: int) -> None:
    """What `perf script` prints of so many samples."""
    chance = random.Random(1)
    stack = [chance.randrange(FUNCTIONS * len(PLACES)) for _ in range(DEPTH)]
    different = set()
    while len(different) < DIFFERENT:
        kept = chance.randrange(2, DEPTH)
        stack = stack[:kept] + [chance.randrange(FUNCTIONS * len(PLACES)) for _ in range(DEPTH - kept)]
        different.add("".join(_line(number) for number in reversed(stack)))
    texts = sorted(different)
    chance.shuffle(texts)
    weights = [1 / (rank + 10) for rank in range(DIFFERENT)]
    with path.open("w") as out:
        for number, text in enumerate(chance.choices(texts, weights, k=count)):
            thread = 4000 + number % 16
            at, period = 1000 + number / 4000, 250_000 + number % 7
            head = f"server {thread:7d}/{thread} [{number % 8:03d}] {at:.6f}: {period:10d} cpu-clock:ppp: "
            out.write(f"{head}\n{text}\n")


def _line(number: int) -> str:
    function, at = number // len(PLACES), PLACES[number % len(PLACES)]
    address = 0x7F00_0000_0000 + 4096 * function + int(at, 16)
    return f"\t{address:16x} function_{function}::call+0x{at} ({LIBRARIES[function % len(LIBRARIES)]})\n"
