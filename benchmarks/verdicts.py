"""Verdicts of `perun compare` where the truth is known, beside hyperfine, Mann-Whitney and Welch.

    python benchmarks/verdicts.py [SCENARIO ...] [--cases N] [--budget SECONDS]

Programs are busy loops of a known length: the same one twice, one made longer by a few percent, and short
ones under a load of four busy processes per processor. Without hyperfine its column is empty.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import simulated
from perun.running.compare.decide import FIRST_LOOK, STEP, InterimPlan
from report import Count, Place

LENGTHS = (0.005, 0.012, 0.030, 0.080, 0.200)
"""Seconds of the five commands that are compared with themselves."""
SLOWED = {1.03: None, 1.05: 5, 1.10: 8}
"""By how much a program is slowed, and how many of ten are to be found."""
SLOWED_LENGTH = 0.030
SHORT = {0.001: 2.7, 0.002: 1.6, 0.003: 2.0, 0.004: 1.3, 0.006: 1.45}
"""Seconds of short commands, and by how much each is slowed."""
BOUND = 0.03
"""The largest change that what stays open may be, and still be told to be none."""
BUSY = 4
"""Busy processes for each processor that are the load."""
EFFECTS = (0.0, 0.01, 0.02, 0.05, 0.10)
SEQUENCES = 400
PAIRS = 100
ALPHA = 0.01
_WORSE = frozenset({"Degradation", "SevereDegradation", "TotalDegradation"})
_BETTER = frozenset({"Optimization", "SevereOptimization", "TotalOptimization"})


class Settings(NamedTuple):
    """How many cases there are of each kind, and the seconds that each comparison may take."""

    unchanged: int = 40
    slowed: int = 10
    short: int = 10
    budget: float = 60.0


FULL = Settings()
BRIEF = Settings(budget=10.0)


class Versions:
    """A repository whose versions are busy loops of known lengths, and one command that runs them."""

    def __init__(self, perun: str, folder: Path) -> None:
        self._perun = perun
        self._folder = folder
        self._program = folder / "work"
        self._commits: dict[int, str] = {}
        folder.mkdir(parents=True)
        source = Path(__file__).with_name("work.c")
        subprocess.run(["cc", "-O1", "-o", str(self._program), str(source)], check=True)
        self._git("init", "-q")
        self._call(["init"])
        self._per_second = self._calibrated()

    def rounds(self, seconds: float) -> int:
        """The rounds of the loop that take so long on a free processor."""
        return max(1, round(seconds * self._per_second))

    def compare(self, base: int, head: int, budget: float) -> tuple[str, int]:
        """What is said of two versions of so many rounds, by wall and CPU time, and of how many pairs.

        It is `worse`, `better`, `both`, `same`, `bounded` where no clock can have changed by more than
        :data:`BOUND`, or `open`.
        """
        versions = self._commit(base), self._commit(head)
        options = ["--always", "--json", "--budget", f"{budget:g}"]
        answer = self._call(["compare", *versions, "-c", "./work", *options])
        comparisons = json.loads(answer)["comparisons"]
        changes = [change for one in comparisons for change in one["changes"]]
        if not changes:
            raise SystemExit(f"nothing was compared: {answer}")
        told = _told([change["result"] for change in changes])
        if told == "open" and all(_is_bounded(change) for change in changes):
            told = "bounded"
        return told, comparisons[0]["session"]["pairs"]

    def check(self, base: int, head: int, rounds: int = 5) -> tuple[str, int]:
        """The same by what a new repository does with two new versions: `run matrix`, then `check head`."""
        if self._call(["config", "get", "cmds"]).find("./work") < 0:
            for key, value in (("cmds", "[./work]"), ("collectors", "[{name: time}]")):
                self._call(["config", "set", key, value])
            self._call(["config", "set", "profiles.register_after_run", "true"])
            self._git("commit", "-q", "--allow-empty", "-m", "start")
        for one in (base, head):
            self._commits.pop(one, None)  # a version that was measured before is not measured anew
            self._commit(one)
        self._call(["run", "matrix", "--since", "HEAD~2", "--rounds", str(rounds)])
        comparisons = json.loads(self._call(["check", "head", "--json"]))["comparisons"]
        return _told([change["result"] for one in comparisons for change in one["changes"]]), rounds

    def hyperfine(self, base: int, head: int, runs: int) -> str:
        """The same by hyperfine, of so many runs of each: whether the means differ beyond their error."""
        answer = self._folder / "hyperfine.json"
        files = [self._folder / f"rounds-{rounds}" for rounds in (base, head)]
        for file, rounds in zip(files, (base, head), strict=True):
            file.write_text(str(rounds))
        command = ["hyperfine", "-N", "--warmup", "3", "--runs", str(runs), "--export-json", str(answer)]
        subprocess.run(
            [*command, *(f"{self._program} {file}" for file in files)], check=True, capture_output=True
        )
        old, new = json.loads(answer.read_text())["results"]
        ratio = new["mean"] / old["mean"]
        # As hyperfine prints it: the relative standard deviations, added as squares.
        error = ratio * ((old["stddev"] / old["mean"]) ** 2 + (new["stddev"] / new["mean"]) ** 2) ** 0.5
        return "worse" if ratio - error > 1 else "better" if ratio + error < 1 else "open"

    def _commit(self, rounds: int) -> str:
        if rounds not in self._commits:
            (self._folder / "rounds").write_text(f"{rounds}\n")
            self._git("add", "-A", ":!rounds-*")
            self._git("commit", "-q", "--allow-empty", "-m", f"{rounds} rounds")
            self._commits[rounds] = self._git("rev-parse", "HEAD").strip()
        return self._commits[rounds]

    def _calibrated(self) -> float:
        """Rounds per second of processor time."""
        rounds = 20_000_000
        (self._folder / "rounds").write_text(str(rounds))
        times = []
        for _ in range(5):
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            subprocess.run([self._program], cwd=self._folder, check=True)
            times.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
        return rounds / statistics.median(times)

    def _git(self, *words: str) -> str:
        who = ["-c", "user.name=benchmark", "-c", "user.email=benchmark@localhost"]
        done = subprocess.run(
            ["git", *who, *words], cwd=self._folder, check=True, capture_output=True, text=True
        )
        return done.stdout

    def _call(self, words: Sequence[str]) -> str:
        done = subprocess.run([self._perun, *words], cwd=self._folder, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"perun {' '.join(words)} ended with {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout


def unchanged(place: Place, settings: Settings = BRIEF) -> Iterator[Count]:
    """Commands of 5 to 200 ms compared with themselves."""
    versions = Versions(place.perun, place.folder / "unchanged")
    tally = _Tally(versions, settings.budget)
    for case in range(settings.unchanged):
        rounds = versions.rounds(LENGTHS[case % len(LENGTHS)])
        tally.case(rounds, rounds)
    name = f"the same program twice, 5 to 200 ms, {settings.budget:g} s each: false alarms at 99 %"
    yield Count(name, tally.definite, settings.unchanged, most=0, others=tally.others("worse", "better"))
    yield Count("the same: said to be unchanged within 2 %", tally.said["same"], settings.unchanged)
    settled = tally.said["same"] + tally.said["bounded"]
    yield Count(f"the same: unchanged, or within {BOUND:.0%}", settled, settings.unchanged)


def slowed(place: Place, settings: Settings = FULL) -> Iterator[Count]:
    """A program of 30 ms made slower by 3, 5 and 10 %."""
    versions = Versions(place.perun, place.folder / "slowed")
    base = versions.rounds(SLOWED_LENGTH)
    for factor, of_ten in SLOWED.items():
        tally = _Tally(versions, settings.budget)
        for _ in range(settings.slowed):
            tally.case(base, round(factor * base))
        name = f"{SLOWED_LENGTH * 1000:.0f} ms slowed by {factor - 1:.0%}, found within {settings.budget:g} s"
        least = None if of_ten is None else of_ten * settings.slowed // 10
        yield Count(name, tally.said["worse"], settings.slowed, least, None, tally.others("worse"))
        wrong = tally.said["better"] + tally.said["both"]
        yield Count("the same: called faster", wrong, settings.slowed, most=0, others=tally.others("better"))


def loaded(place: Place, settings: Settings = BRIEF) -> Iterator[Count]:
    """Commands of 1 to 6 ms, slowed by 1.3 to 2.7 and not at all, while other processes compete."""
    versions = Versions(place.perun, place.folder / "loaded")
    changed, same = (_Tally(versions, settings.budget, beside=False) for _ in range(2))
    yield from _under_load(versions, changed, same, settings, f"{settings.budget:g} s each")


def loaded_default(place: Place, settings: Settings = BRIEF) -> Iterator[Count]:
    """The same commands measured and checked as a new repository does it, one version after the other."""
    versions = Versions(place.perun, place.folder / "loaded-default")
    changed, same = (_Checked(versions, settings.budget, beside=False) for _ in range(2))
    yield from _under_load(versions, changed, same, settings, "run matrix --rounds 5, check head")


def _under_load(
    versions: Versions, changed: _Tally, same: _Tally, settings: Settings, how: str
) -> Iterator[Count]:
    with load(BUSY * (os.cpu_count() or 1)):
        for case in range(settings.short):
            seconds, factor = list(SHORT.items())[case % len(SHORT)]
            base = versions.rounds(seconds)
            changed.case(base, round(factor * base))
            for _ in range(3):
                same.case(base, base)
    name = f"1 to 6 ms slowed 1.3 to 2.7 times, {BUSY} busy processes per processor, {how}"
    yield Count(f"{name}: found", changed.said["worse"], settings.short)
    yield Count("the same: inconclusive", changed.said["open"], settings.short)
    wrong = changed.said["better"] + changed.said["both"] + changed.said["same"]
    yield Count("the same: called faster or unchanged", wrong, settings.short, most=0)
    yield Count("not slowed, under that load: false alarms", same.definite, 3 * settings.short, most=0)


def powers(place: Place | None = None, settings: Settings = FULL) -> Iterator[Count]:
    """Simulated: how often each test sees effects of 0 to 10 % at a level of 1 %.

    These curves are printed. The rows have the false alarms of the sequential test, at all looks together.
    """
    looks = InterimPlan(PAIRS)
    levels = {size: looks.level(ALPHA, size, ends=False) for size in (*range(FIRST_LOOK, PAIRS, STEP), PAIRS)}
    print(f"\nchanges seen at a level of {ALPHA:.0%}, {SEQUENCES} sequences of at most {PAIRS} pairs")
    print(f"{'noise':12}{'test':44}" + "".join(f"{effect:>8.0%}" for effect in EFFECTS))
    for kind, noise in simulated.NOISES.items():
        for name, cells in _curves(noise, levels).items():
            print(f"{kind:12}{name:44}" + "".join(f"{cell:>8}" for cell in cells), flush=True)
    for kind, noise in simulated.NOISES.items():
        count = simulated.alarms(noise, levels, 10_000, seed=5)[-1]
        name = f"simulated A/A, {kind} noise, {len(levels)} looks at 10 to {PAIRS} pairs: false alarms"
        # More come once in a thousand times where the level is exactly 1 %.
        yield Count(name, count, 10_000, most=132)


def _curves(noise: simulated.Noise, levels: Mapping[int, float]) -> dict[str, list[str]]:
    """The share of sequences in which each test sees each effect; of ours the mean number of pairs, too."""
    found: dict[str, list[str]] = defaultdict(list)
    generator = np.random.default_rng(11)
    runs = noise(generator, SEQUENCES, 2 * PAIRS)
    turns, blocks = simulated.in_turns(generator, runs), simulated.in_blocks(runs)
    for effect in EFFECTS:
        shift = float(np.log1p(effect))
        seen = simulated.seen(turns[1] + shift - turns[0], levels)
        sure = seen.any(axis=1)
        pairs = np.where(sure, np.array(list(levels))[seen.argmax(axis=1)], PAIRS)
        found["perun compare, in turns, at any look"].append(f"{sure.mean():.1%}")
        found["  pairs on average until it is sure"].append(f"{pairs.mean():.0f}")
        for layout, (old, new) in (("in turns", turns), ("in blocks", blocks)):
            for name, test in (("Mann-Whitney", simulated.mann_whitney), ("Welch", simulated.welch)):
                share = float((test(old, new + shift) <= ALPHA).mean())
                found[f"{name}, {layout}, all {PAIRS} + {PAIRS} runs"].append(f"{share:.1%}")
    return found


@contextmanager
def load(processes: int) -> Iterator[None]:
    """So many processes that do nothing but use a processor."""
    command = [sys.executable, "-I", "-S", "-c", "while True: pass"]
    busy = [subprocess.Popen(command) for _ in range(processes)]
    try:
        yield
    finally:
        for one in busy:
            one.kill()
        for one in busy:
            one.wait()


def _told(results: Sequence[str]) -> str:
    """What the results of all clocks say together."""
    if _WORSE.intersection(results):
        return "both" if _BETTER.intersection(results) else "worse"
    if _BETTER.intersection(results):
        return "better"
    return "same" if set(results) == {"NoChange"} else "open"


def _is_bounded(change: Mapping[str, Any]) -> bool:
    return change["result"] == "NoChange" or (change["limit"] is not None and change["limit"] <= BOUND)


class _Tally:
    """What was said of the cases of one kind, by `perun compare` and by hyperfine."""

    def __init__(self, versions: Versions, budget: float, *, beside: bool = True) -> None:
        self.said: Counter[str] = Counter()
        self.by_hyperfine: Counter[str] = Counter()
        self._versions = versions
        self._budget = budget
        self._beside = beside and shutil.which("hyperfine") is not None

    def case(self, base: int, head: int) -> None:
        """Compare two versions."""
        answer, pairs = self._answer(base, head)
        self.said[answer] += 1
        print(f"  {base} to {head} rounds of the loop, {pairs} pairs: {answer}", file=sys.stderr, flush=True)
        if self._beside:
            self.by_hyperfine[self._versions.hyperfine(base, head, max(pairs, 10))] += 1

    def _answer(self, base: int, head: int) -> tuple[str, int]:
        return self._versions.compare(base, head, self._budget)

    @property
    def definite(self) -> int:
        """Cases of which a change was said."""
        return self.said["worse"] + self.said["better"] + self.said["both"]

    def others(self, *answers: str) -> str:
        """How many such answers hyperfine gave."""
        count = sum(self.by_hyperfine[answer] for answer in answers)
        return f"hyperfine: {count}" if self._beside else ""


class _Checked(_Tally):
    """What was said by `perun check head`."""

    def _answer(self, base: int, head: int) -> tuple[str, int]:
        return self._versions.check(base, head)


SCENARIOS = {scenario.__name__: scenario for scenario in (unchanged, slowed, loaded, loaded_default, powers)}


def main() -> int:
    """Run the scenarios named; 1 where a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenarios", nargs="*", choices=[[], *SCENARIOS], help="all, where none is named")
    parser.add_argument("--perun", default=str(Path(sys.executable).with_name("perun")))
    parser.add_argument("--cases", type=int, help="comparisons of each kind")
    parser.add_argument("--budget", type=float, help="seconds of each comparison")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="perun-verdicts-") as folder:
        place = Place(os.path.abspath(options.perun), "", Path(folder), 1)
        for name in options.scenarios or SCENARIOS:
            scenario = SCENARIOS[name]
            settings = scenario.__defaults__[-1]
            if options.cases:
                settings = settings._replace(
                    unchanged=options.cases, slowed=options.cases, short=options.cases
                )
            if options.budget:
                settings = settings._replace(budget=options.budget)
            for row in scenario(place, settings):
                print(row.line, flush=True)
                rows.append(row)
    return int(not all(row.met for row in rows))


if __name__ == "__main__":
    sys.exit(main())
