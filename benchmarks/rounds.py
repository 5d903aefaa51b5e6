"""`perun run matrix` over twelve versions whose differences are known, in rounds; beside Welch's test, as the
script of hyperfine makes it, and the Mann-Whitney test of benchstat, on the same samples.

    python benchmarks/rounds.py [--sessions N] [--budget SECONDS] [--loads N ...] [--programs NAME ...]
        [--write docs/benchmarks.md]

Each version is a busy loop in C, a loop in Python or a program that writes files, whose length is a number in
a file; the numbers of neighbours differ by 0, 3, 5, 10 or -10 %.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from scipy import stats

from perun.repository.repository import open_repository
from report import Count, Place, renewed, table
from verdicts import load

VERSIONS: Final = 12
STEPS: Final = (0, 0, 0, 0, 3, 5, 5, 10, -10)
"""Percent by which a version takes longer than the one before; a random one of these."""
ALPHA: Final = 0.05
"""Level of the tests of hyperfine's script and of benchstat."""
SECONDS: Final = 0.02
"""Of the first version, by a free processor."""
LOADS: Final = (0, 4)
"""Busy loops beside."""
PROGRAMS: Final = {
    "C": """#include <stdio.h>
#include <stdlib.h>
int main(void) {
  long length = 0;
  FILE *file = fopen("length", "r");
  if (!file || fscanf(file, "%ld", &length) != 1) return 1;
  volatile unsigned long sum = 0;
  for (long i = 0; i < length * 1000; i++) sum += i;
}
""",
    "Python": """total = 0
for number in range(100 * int(open("length").read())):
    total += number
""",
    "files": """#include <stdio.h>
#include <unistd.h>
int main(void) {
  long length = 0;
  FILE *file = fopen("length", "r");
  if (!file || fscanf(file, "%ld", &length) != 1) return 1;
  for (long i = 0; i < length; i++) {
    FILE *out = fopen("out", "w");
    for (int line = 0; line < 64; line++) fprintf(out, "%ld\\n", i);
    fclose(out);
    unlink("out");
  }
}
""",
}
_CHANGED: Final = ("Degradation", "Optimization", "SevereDegradation", "SevereOptimization")


class Settings(NamedTuple):
    """Sessions of each program and load, and seconds for each version."""

    sessions: int = 2
    budget: float = 10.0
    loads: Sequence[int] = LOADS
    programs: Sequence[str] = tuple(PROGRAMS)


class History:
    """A repository with a program in versions of other lengths."""

    def __init__(self, perun: str, folder: Path, kind: str) -> None:
        self._perun = perun
        self._folder = folder
        folder.mkdir(parents=True)
        source = folder / ("program.py" if kind == "Python" else "program.c")
        source.write_text(PROGRAMS[kind])
        (folder / ".gitignore").write_text("program\n")
        build = [] if kind == "Python" else ["cc -O1 -o program program.c"]
        self._command = [sys.executable, "program.py"] if kind == "Python" else ["./program"]
        self._git("init", "-q")
        self._git("config", "user.email", "a@localhost")
        self._git("config", "user.name", "a")
        self.call("init")
        self.call("config", "set", "cmds", json.dumps([" ".join(self._command)]))
        self.call("config", "set", "collectors", "[time]")
        self.call("config", "set", "execute.pre_run", json.dumps(build))
        self.call("config", "set", "profiles.register_after_run", "true")
        for one in build:
            subprocess.run(one.split(), cwd=folder, check=True)
        self._length, self._start = self._calibrated()
        self._git("add", "-A")
        self._git("commit", "-q", "-m", "Begin")

    def add(self, steps: Sequence[int]) -> list[str]:
        """Versions that take so many percent longer than the one before; the first as long as it is."""
        factor, found = 1.0, []
        for number, step in enumerate((0, *steps)):
            factor *= 1 + step / 100
            length = round((self._length + self._start) * factor - self._start)
            (self._folder / "length").write_text(f"{length}\n")
            (self._folder / "number").write_text(f"{time.time_ns()} {number}\n")
            self._git("add", "-A")
            self._git("commit", "-q", "-m", f"{step:+} %")
            found.append(self._git("rev-parse", "HEAD"))
        return found

    def call(self, *words: str) -> str:
        """What the command answers."""
        environ = {**os.environ, "PERUN_TRUST": "1"}
        done = subprocess.run([self._perun, *words], cwd=self._folder, env=environ, capture_output=True)
        if done.returncode:
            raise RuntimeError(f"perun {' '.join(words)}: {done.stderr.decode()}")
        return done.stdout.decode()

    def samples(self, version: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        """All wall times of the version, in seconds."""
        store = open_repository(self._folder, os.environ).store
        profiles = [store.objects.get(one.checksum) for one in store.indexes.read(version)]
        resources = [one for profile in profiles for _, one in profile.all_resources()]
        return np.array([float(one["amount"]) for one in resources if one.get("subtype") == "real"])

    def _calibrated(self) -> tuple[int, float]:
        """The number that takes :data:`SECONDS`, and how large it would be in the time of the start alone."""
        start, length = self._taken(1), 100
        while (took := self._taken(length) - start) < SECONDS:
            length *= 2
        return max(1, round(length * SECONDS / took)), length * start / took

    def _taken(self, length: int) -> float:
        """Seconds that the program takes, the least of some runs."""
        (self._folder / "length").write_text(f"{length}\n")
        took = []
        for _ in range(5):
            begun = time.monotonic()
            subprocess.run(self._command, cwd=self._folder, check=True)
            took.append(time.monotonic() - begun)
        return min(took)

    def _git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self._folder, check=True, capture_output=True, text=True)
        return done.stdout.strip()


def rounds(place: Place, settings: Settings | None = None) -> Iterator[Count]:
    """What is said of neighbours of which the truth is known, by each method."""
    settings = settings or Settings()
    rng = random.Random(39)
    histories = {
        kind: History(place.perun, place.folder / f"rounds-{kind}", kind) for kind in settings.programs
    }
    for loops in settings.loads:
        beside = f"beside {loops} busy loops" if loops else "no busy loops"
        for kind, history in histories.items():
            said: Counter[tuple[str, int, str]] = Counter()
            seconds = 0.0
            for _ in range(settings.sessions):
                steps = [rng.choice(STEPS) for _ in range(VERSIONS - 1)]
                versions = history.add(steps)
                begun = time.monotonic()
                with load(loops):
                    told = history.call(
                        "run",
                        "matrix",
                        "--since",
                        f"HEAD~{VERSIONS}",
                        "--budget",
                        str(settings.budget),
                        "--no-share",  # versions without a step are the pairs that must not differ
                        "--json",
                    )
                seconds += time.monotonic() - begun
                said.update(_answers(json.loads(told), history, versions, steps))
            name = f"{kind}, {beside}, {seconds / settings.sessions / VERSIONS:.1f} s a version"
            yield from _counts(name, said)


def _answers(
    told: dict[str, Any], history: History, versions: Sequence[str], steps: Sequence[int]
) -> Iterator[tuple[str, int, str]]:
    """By method and true step, what was said of each pair of neighbours."""
    verdicts = {one["minor_version"]: one["difference"] for one in told["results"]}
    for before, version, step in zip(versions, versions[1:], steps, strict=False):
        found = verdicts[version]
        word = found["verdict"] if found else "Unknown"
        yield "perun", step, _said(word in _CHANGED, bool(found) and found["ratio"] > 1, step)
        if word == "NoChange" or (found and found.get("limit")):
            yield "bounded", step, "right" if not step else "wrong"
        old, new = history.samples(before), history.samples(version)
        slower = float(np.median(new)) > float(np.median(old))
        welch = stats.ttest_ind(old, new, equal_var=False).pvalue
        yield "hyperfine, Welch", step, _said(welch < ALPHA, slower, step)
        ranks = stats.mannwhitneyu(old, new).pvalue
        yield "benchstat, Mann-Whitney", step, _said(ranks < ALPHA, slower, step)


def _said(changed: bool, slower: bool, step: int) -> str:
    if not changed:
        return "nothing"
    return "right" if step and slower == (step > 0) else "wrong"


def _counts(name: str, said: Counter[tuple[str, int, str]]) -> Iterator[Count]:
    def count(method: str, word: str, wanted: Sequence[int]) -> int:
        return sum(said[method, step, word] for step in wanted)

    others = ("hyperfine, Welch", "benchstat, Mann-Whitney")
    for steps, word, what in (
        ((0,), "wrong", "unchanged, called changed"),
        ((3,), "right", "3 % found"),
        ((5,), "right", "5 % found"),
        ((10, -10), "right", "10 % found"),
        ((3, 5, 10, -10), "wrong", "changed, wrong sign"),
    ):
        of = sum(count("perun", one, steps) for one in ("right", "wrong", "nothing"))
        if of:
            beside = ", ".join(f"{one}: {count(one, word, steps)}" for one in others)
            most = 0 if word == "wrong" else None
            yield Count(f"{name}: {what}", count("perun", word, steps), of, most=most, others=beside)
    of = sum(count("perun", one, (0,)) for one in ("right", "wrong", "nothing"))
    yield Count(f"{name}: unchanged, no change or a bound is told", count("bounded", "right", (0,)), of)


def main() -> None:
    """Measure, and print the table or write it down."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--sessions", type=int, default=Settings().sessions)
    options.add_argument("--budget", type=float, default=Settings().budget)
    options.add_argument("--loads", type=int, nargs="+", default=LOADS)
    options.add_argument("--programs", nargs="+", choices=PROGRAMS, default=tuple(PROGRAMS))
    options.add_argument("--write", type=Path)
    given = options.parse_args()
    perun = str(Path(sys.executable).with_name("perun"))
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(given.sessions, given.budget, given.loads, given.programs)
        counts = []
        for one in rounds(Place(perun, "", Path(folder), 1), settings):
            print(one.line, flush=True)
            counts.append(one)
    if given.write:
        head = (
            f"{datetime.date.today()}, by `python benchmarks/rounds.py --sessions {given.sessions} --budget "
            f"{given.budget:g}`: {__doc__.split(chr(10) * 2)[-1].strip()}\n\n"
        )
        section = {"rounds": f"{head}{table(counts)}\n"}
        given.write.write_text(renewed(given.write.read_text("utf-8"), section), "utf-8")


if __name__ == "__main__":
    main()
