"""Whether the fixed loop tells how fast the machine is for other programs.

    python benchmarks/speed.py [--seconds N] [--seed N]

Sessions of six rounds measure the loop and four programs, a third of them while nothing else was started, the
others while one to four programs compete for processors and memory. For each program and clock: how much its
times differ from session to session, as they are and divided by those of the loop; by how much they react to
it; and of how many pairs of a quiet and a loaded session, between which no program has changed, `perun check`
says definitely that it has, where quiet sessions have shown the noise: without the loop, with times divided
by it, and with intervals that allow for it, as they are.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

from perun.core.process import programs
from perun.measurement.comparable import PROCESSOR, WALL, conditions, slower, speed_of
from perun.measurement.estimate import Kind, Point, Round, StandardError, sample_of
from perun.measurement.noise import EFFICIENCY, NORMAL_QUARTILE, Noise
from perun.measurement.verdict import compare, is_change
from perun.profile.factory import Profile

ROUNDS: Final = 6
MAIN: Final = "#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n#include <stdint.h>\n"
SOURCES: Final = {
    "sort": """static int by(const void *a, const void *b) { return *(int *)a - *(int *)b; }
int main(void) { static int v[20000]; unsigned s = 1;
for (int r = 0; r < 25; r++) { for (int i = 0; i < 20000; i++) v[i] = (s = s * 1103515245 + 12345) >> 8;
qsort(v, 20000, sizeof *v, by); } return v[7] & 0; }""",
    "hash": """int main(void) { size_t n = 1 << 22; uint64_t *v = calloc(n, 8), s = 1;
for (int i = 0; i < 1500000; i++) v[((s = s * 6364136223846793005u + 1) >> 20) & (n - 1)] += s;
return v[3] & 0; }""",
    "files": """int main(void) { char name[] = "fXXXXXX"; static char b[65536]; int f = mkstemp(name);
for (int r = 0; r < 6; r++) { for (int i = 0; i < 100; i++) if (write(f, b, sizeof b) < 0) return 1;
lseek(f, 0, SEEK_SET); for (int i = 0; i < 100; i++) if (read(f, b, sizeof b) < 0) return 1;
lseek(f, 0, SEEK_SET); } fdatasync(f); unlink(name); return 0; }""",
    "integers": "int main(void) { volatile unsigned long x = 1; for (;;) x = x * 3 + 1; }",
    "copying": """int main(void) { size_t n = 64 << 20; char *a = malloc(n), *b = malloc(n); memset(a, 1, n);
for (;;) { memcpy(b, a, n); memcpy(a, b, n); } }""",
}
PYTHON: Final = [sys.executable, "-I", "-S", "-c", "d = {}\nfor i in range(250000): d[i % 1000] = i * i"]
LOADS: Final = (
    (),
    (),
    ("integers",),
    ("integers",) * 2,
    ("copying",),
    ("copying",) * 2,
    ("integers", "copying") * 2,
)
HEAD: Final = (
    "| program | clock | sessions differ by | divided by the loop | correlation | reacts by "
    "| false words without the loop | divided | with intervals that allow for it |"
)
CLOCKS: Final = ((Kind.PROCESSOR, PROCESSOR, "processor"), (Kind.TIMED, WALL, "wall"))


class Session(NamedTuple):
    """Of each program its times by clock, and the speed of the machine."""

    load: int
    times: dict[str, tuple[list[float], list[float]]]
    loops: tuple[list[int], list[int]]
    speed: str

    def point(
        self, program: str, kind: Kind, clock: int, factor: float = 1.0, *, known: bool = True
    ) -> Point:
        samples = [sample_of([one * factor]) for one in self.times[program][clock]]
        own = tuple(Round(str(id(self)), number, {"": one}) for number, one in enumerate(samples) if one)
        return Point(own, kind, speeds=(self.speed if known else "",))


def timed(words: list[str]) -> tuple[float, float]:
    """Seconds of the processor and of the wall."""
    start = time.perf_counter()
    child = subprocess.Popen(words)
    _, _, usage = os.wait4(child.pid, 0)
    child.returncode = 0
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - start


def session(words: dict[str, list[str]], chance: random.Random) -> Session:
    load = chance.randrange(len(LOADS))
    others = [subprocess.Popen(words[name]) for name in LOADS[load]]
    times: dict[str, tuple[list[float], list[float]]] = {
        one: ([], []) for one in ("sort", "hash", "files", "python")
    }
    loops: tuple[list[int], list[int]] = ([], [])
    try:
        time.sleep(0.3)
        for _ in range(ROUNDS):
            for name in chance.sample(["", *times], len(times) + 1):
                found = programs.fixed_loop() if not name else None
                used = (found.processor, found.wall) if found else timed(words[name])
                for own, one in zip(times.get(name, loops), used, strict=True):
                    own.append(one)  # type: ignore[arg-type]
    finally:
        for one in others:
            one.kill()
            one.wait()
    speed = {"loop": 1, "processor": loops[0], "wall": loops[1]}
    return Session(load, times, loops, speed_of(conditions(Profile({"machine": {"speed": speed}}))))


def row(program: str, kind: Kind, clock: int, found: list[Session]) -> str:
    """What the sessions say of one program."""
    own, loop = (
        [math.log(statistics.median(values)) for values in columns]
        for columns in ([one.times[program][clock] for one in found], [one.loops[clock] for one in found])
    )
    left = [one - other for one, other in zip(own, loop, strict=True)]
    quiet = [one for one in found if one.load < 2]
    neighbours = itertools.pairwise([one for one, seen in zip(own, found, strict=True) if seen.load < 2])
    usual = sorted(abs(new - old) for old, new in neighbours)
    noise = Noise(
        unpaired=StandardError(usual[len(usual) * 3 // 4] / NORMAL_QUARTILE, EFFICIENCY * len(usual))
    )
    wrong, count = [0, 0, 0], 0
    for old, new in itertools.product(quiet, [one for one in found if one.load >= 2]):
        factor = math.exp(-slower([old.speed], [new.speed], clock))
        pairs = (
            (old.point(program, kind, clock, known=False), new.point(program, kind, clock, known=False)),
            (
                old.point(program, kind, clock, known=False),
                new.point(program, kind, clock, factor, known=False),
            ),
            (old.point(program, kind, clock), new.point(program, kind, clock)),
        )
        for place, pair in enumerate(pairs):
            verdict = compare(*pair, noise)
            wrong[place] += verdict is not None and is_change(verdict)
        count += 1
    shares = " | ".join(f"{100 * one / count:.0f} %" for one in wrong)
    slope = statistics.linear_regression(loop, own).slope
    return (
        f"{100 * statistics.pstdev(own):.1f} % | {100 * statistics.pstdev(left):.1f} % | "
        f"{statistics.correlation(own, loop):.2f} | {slope:.1f} | {shares} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chance, found = random.Random(given.seed), []
    with tempfile.TemporaryDirectory() as folder:
        words = {name: [str(Path(folder, name))] for name in SOURCES} | {"python": PYTHON}
        for name, source in SOURCES.items():
            Path(folder, f"{name}.c").write_text(MAIN + source)
            subprocess.run(["cc", "-O2", "-o", *words[name], f"{folder}/{name}.c"], check=True)
        os.chdir(folder)
        end = time.monotonic() + given.seconds
        while time.monotonic() < end:
            found.append(session(words, chance))
        os.chdir("/")
    quiet = sum(one.load < 2 for one in found)
    rule = "|---" * (HEAD.count("|") - 1)
    print(f"{quiet} quiet and {len(found) - quiet} loaded sessions\n\n{HEAD}\n{rule}|")
    for program in ("sort", "hash", "files", "python"):
        for kind, clock, name in CLOCKS:
            print(f"| {program} | {name} | {row(program, kind, clock, found)}")


if __name__ == "__main__":
    main()
