"""The collector `sample` beside py-spy, austin and cProfile: what the program and the sampler use.

    python benchmarks/sampling.py [ROUNDS]

Each program prints the CPU time that it used itself, so that what a sampler adds to it is told from what the
sampler uses beside it.
"""

from __future__ import annotations

import os
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from perun.collect.sample.collector import SampleParams, refusal, words_of
from perun.collect.sample.records import LAYOUT, SAMPLE, read
from report import Measured, Place, Row, table

RIVALS = Path(__file__).parents[1] / "build" / "samplers" / "bin"
"""Where py-spy and austin are looked for: an environment with py-spy and austin-dist 3.7, as later
releases need glibc 2.38."""
FREQUENCY = 499
LARGE, STACKS = 10_000_000, 20_000
ATTEMPTS = 5
"""On a busy machine austin does not find its program now and then."""
CPU_LIMIT, WALL_LIMIT, OWN_LIMIT = 1.02, 1.03, 0.05
IN_C = r"""
#include <stdio.h>
#include <time.h>
static unsigned numbers[1 << 17];
__attribute__((noinline)) unsigned sorted(unsigned seed) {
    for (int i = 0; i < 1 << 17; i++) numbers[i] = seed = seed * 1103515245 + 12345;
    for (int gap = 1 << 16; gap; gap /= 2)
        for (int i = gap, j; i < 1 << 17; i++) {
            unsigned value = numbers[i];
            for (j = i; j >= gap && numbers[j - gap] > value; j -= gap) numbers[j] = numbers[j - gap];
            numbers[j] = value;
        }
    return seed + numbers[0];
}
__attribute__((noinline)) unsigned deep(int depth, unsigned seed) {
    volatile char room[100];
    room[depth] = (char)seed;
    return depth ? deep(depth - 1, seed) + room[depth] : sorted(seed);
}
int main(void) {
    struct timespec used;
    unsigned seed = 1;
    for (int i = 0; i < 80; i++) seed += deep(50, seed);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    printf("%u %.6f\n", seed, used.tv_sec + used.tv_nsec / 1e9);
}
"""
IN_PYTHON = """
import json, time
def tree(depth):
    return {"depth": depth, "below": [tree(depth - 1), tree(depth - 1)] if depth else []}
def leaves(node):
    return sum(map(leaves, node["below"])) or 1
def work():
    text = json.dumps(tree(9))
    return leaves(json.loads(text)) + sum(i * i for i in range(20000))
for _ in range(250):
    work()
print(time.process_time())
"""


class SampledRun(NamedTuple):
    """Seconds: real time, CPU time of the program, and of the sampler beside it."""

    wall: float
    cpu: float
    own: float


def sampling(place: Place) -> Iterator[Row]:
    """A program in C and one in Python, at 499 Hz."""
    if refusal()[0]:
        return
    folder = place.folder / "sampling"
    folder.mkdir()
    (folder / "in_c.c").write_text(IN_C)
    (folder / "in_python.py").write_text(IN_PYTHON)
    subprocess.run(["cc", "-O2", "-o", folder / "in_c", folder / "in_c.c"], check=True)
    rounds = max(3, place.rounds // 2)
    script = [sys.executable, str(folder / "in_python.py")]
    yield from rows("C", [str(folder / "in_c")], folder, rounds, {})
    yield from rows("Python", script, folder, rounds, rivals(script, folder))
    yield from large(folder / "large")


def large(file: Path) -> Iterator[Row]:
    """A recording of ten million samples, as five and a half hours of one processor are, is read."""
    write_large(file)
    words = [sys.executable, __file__, "--read", str(file)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    seconds, megabytes = map(float, done.stdout.split())
    what = f"{LARGE:,} samples in {STACKS:,} stacks"
    yield Row(f"{what}: CPU to read them", seconds, 30, "bound", 1, is_rival=False)
    yield Row(f"{what}: peak memory", megabytes, 300, "bound", 1, "MB", is_rival=False)


def write_large(file: Path) -> None:
    """Eight threads, each sample in a stack of twenty frames drawn at random."""
    random = np.random.default_rng(1)
    samples = np.zeros(4096, SAMPLE)
    with file.open("wb") as out:
        start, end, period, *others = 0, 0, 2_000_000, *[0] * 15
        out.write(LAYOUT.form.pack(LAYOUT.magic, 0x01020304, LAYOUT.version, start, end, period, *others))
        frames = (3 << 48) + random.integers(1, 2000, (STACKS, 20)).astype(np.uint64)
        for some in np.split(frames, STACKS // 1000):
            data = b"".join(struct.pack("=IIQ", 2, 16 + one.nbytes, 1) + one.tobytes() for one in some)
            out.write(struct.pack("=II", 1, len(data)) + data)
        for number in range(LARGE // len(samples)):
            samples["time"] = (np.arange(len(samples)) + number * len(samples)) * period
            samples["tid"] = 1 + random.integers(0, 8, len(samples))
            samples["stack"] = random.integers(1, STACKS, len(samples))
            samples["pid"], samples["weight"] = 1, period
            out.write(struct.pack("=II", 2, samples.nbytes) + samples.tobytes())


def rivals(script: Sequence[str], folder: Path) -> Mapping[str, list[str]]:
    """The commands of samplers of Python that are installed, and of cProfile."""
    python, program = script
    known = {
        "py-spy": [
            "py-spy",
            "record",
            "-r",
            str(FREQUENCY),
            "-f",
            "raw",
            "-o",
            str(folder / "py-spy"),
            "--",
            *script,
        ],
        "austin": ["austin", "-i", str(1_000_000 // FREQUENCY), "-o", str(folder / "austin"), *script],
    }
    found = {name: [str(RIVALS / words[0]), *words[1:]] for name, words in known.items()}
    there = {name: words for name, words in found.items() if os.access(words[0], os.X_OK)}
    return {**there, "cProfile": [python, "-m", "cProfile", "-o", str(folder / "cProfile"), program]}


def rows(
    language: str, alone: Sequence[str], folder: Path, rounds: int, others: Mapping[str, list[str]]
) -> Iterator[Row]:
    """What each way adds to a program, in interleaved rounds."""
    file = folder / "samples"
    ways = {"alone": list(alone)}
    for stacks in ("copies", "frame-pointers"):
        ways[stacks] = [*words_of(SampleParams(stacks=stacks), file), *alone]
    ways |= others
    runs: dict[str, list[SampledRun]] = {way: [] for way in ways}
    for number in range(rounds + 1):
        for way, words in ways.items():
            file.unlink(missing_ok=True)
            run = once(words, file)
            runs[way] += [run] * bool(number)
    medians = {way: [Measured(column) for column in zip(*found, strict=True)] for way, found in runs.items()}
    for stacks in ("copies", "frame-pointers"):
        wall, cpu, own = medians[stacks]
        what = f"{language}, {stacks}"
        before = medians["alone"]
        yield Row(f"{what}: CPU of the program", cpu, before[1], "alone", CPU_LIMIT, is_rival=False)
        yield Row(f"{what}: real time", wall, before[0], "alone", WALL_LIMIT, is_rival=False)
        yield Row(
            f"{what}: CPU of the sampler", own, OWN_LIMIT * before[1], "5 % of the program", 1, is_rival=False
        )
        for other in others:
            real, used, beside = medians[other]
            yield Row(f"{what}: real time", wall, real, other, 1)
            yield Row(f"{what}: CPU of both", cpu + own, used + beside, other, 1)


def once(words: Sequence[str], file: Path) -> SampledRun:
    """Run a command; what is not of the program is of the sampler."""
    for _ in range(ATTEMPTS):
        before = os.times()
        start = time.perf_counter()
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        wall = time.perf_counter() - start
        after = os.times()
        if not done.returncode:
            break
    else:
        raise SystemExit(f"{' '.join(words)} ended with {done.returncode}: {done.stderr}")
    every = after.children_user + after.children_system - before.children_user - before.children_system
    # py-spy and austin may write to the standard output, too.
    numbers = [
        float(word) for line in done.stdout.splitlines() for word in line.split()[-1:] if is_number(word)
    ]
    own = read(file).own_cpu / 1e9 if file.exists() else max(every - numbers[0], 0)
    return SampledRun(wall, numbers[0], own)


def is_number(word: str) -> bool:
    """Whether it is a number with a fraction."""
    return word.replace(".", "", 1).isdecimal() and "." in word


if __name__ == "__main__" and sys.argv[1:2] == ["--read"]:
    read(Path(sys.argv[2]))
    print(time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
elif __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        given = int(sys.argv[1]) if sys.argv[1:] else 6
        print(table(list(sampling(Place("", "", Path(scratch), given)))))
