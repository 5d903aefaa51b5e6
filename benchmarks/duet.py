"""Both sides of a pair at the same time (`perun compare --duet`), beside in turns, as it is without.

    python benchmarks/duet.py [--sessions N] [--seconds S] [--loads N ...] [--write docs/benchmarks.md]

Programs of three kinds are measured against themselves made slower by 3 %, alone and beside busy loops, for
the same seconds in both ways, which take turns. The base against its copy, which each session measures as
well, is what must show no change.
"""

from __future__ import annotations

import argparse
import datetime
import math
import os
import random
import resource
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from perun.models.two_samples.ratio import Ratio, of_pairs
from perun.plugin.api import MinorVersion
from perun.repository.init import init
from perun.repository.repository import Repository, open_repository
from perun.running.compare.decide import Duet, PairRunner, duet_cores, usable_cores
from perun.running.compare.instruments import BudgetSpent, Clocks, Reading
from perun.running.compare.plan import CompareOptions, ComparePlan, CompareSide, cases_of
from perun.running.compare.trial import Trial
from report import Count, Measured, Place, Row, renewed, table
from verdicts import load

KINDS = {"integer": 0.020, "memory": 0.030, "files": 0.005}
"""Seconds of processor time that each program takes."""
LOADS = (0, 2, 4)
"""Busy loops beside."""
SLOWER = 1.03
CONFIDENCE = 0.99
CLOCKS = {"real": "wall clock", "cpu": "processor's clock"}
CHANGED, FOUND, WRONG = (
    "the same program twice, called changed",
    f"slower by {SLOWER - 1:.0%}, found",
    "slower, called faster",
)
TURNS, TOGETHER = "turns", "duet"


class Settings(NamedTuple):
    """Sessions of each program, load and way, and the seconds of each."""

    sessions: int = 8
    seconds: float = 5.0
    loads: Sequence[int] = LOADS


class Session(NamedTuple):
    """What the pairs of one session say, by clock: of the slower program, and of the same one."""

    pairs: int
    seconds: float
    slower: dict[str, Ratio]
    same: dict[str, Ratio]


class Programs:
    """A repository, and working copies of base, head and noise with programs in them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._scratch = folder / "scratch"
        self._scratch.mkdir(parents=True)
        self._rng = random.Random(7)
        source = Path(__file__).with_name("duet.c")
        self.folders = {name: [folder / f"{name}-00"] for name in ("base", "head")} | {
            "noise": [folder / "base-01"]
        }
        for (one,) in self.folders.values():
            one.mkdir()
            subprocess.run(["cc", "-O1", "-o", str(one / "work"), str(source)], check=True)
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        init(folder, os.environ, vcs_type="git")
        self._repo: Repository = open_repository(folder, os.environ)
        version = MinorVersion("2026-01-01 00:00:00", "a", "a@localhost", "a" * 40, "One", ())
        self._plan = ComparePlan(CompareSide("base", version), CompareSide("head", version), ())

    def calibrate(self, kind: str, seconds: float) -> None:
        """Let the base and its copy take so long on a free processor, and the head longer."""
        rounds, (base,) = 1000, self.folders["base"]
        while True:
            (base / "rounds").write_text(str(rounds))
            took = min(self._once(base, kind) for _ in range(5))
            if took > seconds / 2:
                break
            rounds *= 2
        rounds = round(rounds * seconds / took)
        for name, (one,) in self.folders.items():
            (one / "rounds").write_text(str(round(rounds * (SLOWER if name == "head" else 1))))

    def session(self, kind: str, way: str, seconds: float) -> Session:
        """Measure pairs for so long."""
        (case,) = cases_of(self._repo, CompareOptions(cmd="./work", args=kind))
        clocks = Clocks(self._repo, case, ("wall", "cpu"), self._scratch, self._rng)
        duet = Duet(duet_cores(pin=True), clocks.measure_both) if way == TOGETHER else None
        cores = usable_cores(pin=True)
        runner = PairRunner(clocks, self._plan, self.folders, "random", cores, self._rng, duet)
        runner.warm_up(lambda: math.inf)
        begun = time.monotonic()
        pairs: list[Mapping[str, Reading]] = []
        with suppress(BudgetSpent):
            while (left := begun + seconds - time.monotonic()) > 0:
                pairs.append(runner.measure(len(pairs), lambda left=left: left))
        took = time.monotonic() - begun
        slower, same = {}, {}
        for metric, values in Trial("time", pairs).series.items():
            slower[metric.subtype] = of_pairs(values.base, values.head, CONFIDENCE)
            same[metric.subtype] = values.noise_of(CONFIDENCE) or of_pairs(
                values.base, values.noise, CONFIDENCE
            )
        return Session(len(pairs), took, slower, same)

    def _once(self, folder: Path, kind: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(["./work", kind], cwd=folder, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def duet(place: Place, settings: Settings | None = None) -> Iterator[Row | Count]:
    """The widths of the intervals, how many pairs there are, and what is found, in both ways."""
    settings = settings or Settings()
    programs = Programs(place.folder / "duet")
    of_kind: defaultdict[str, defaultdict[str, list[Session]]] = defaultdict(lambda: defaultdict(list))
    for loops in settings.loads:
        beside = f"beside {loops} busy loops" if loops else "no busy loops"
        for kind, seconds in KINDS.items():
            programs.calibrate(kind, seconds)
            own: dict[str, list[Session]] = {TURNS: [], TOGETHER: []}
            with load(loops):
                for number in range(settings.sessions):
                    for way in (TURNS, TOGETHER)[:: -1 if number % 2 else 1]:
                        own[way].append(programs.session(kind, way, settings.seconds))
            yield from _rows(f"{kind}, {seconds * 1000:.0f} ms, {beside}", own, settings)
            for way, found in own.items():
                of_kind[kind][way] += found
    for kind, sessions in of_kind.items():
        yield from _counts(kind, sessions)


def _rows(name: str, sessions: Mapping[str, Sequence[Session]], settings: Settings) -> Iterator[Row]:
    per_second = (Measured([one.pairs / one.seconds for one in sessions[way]]) for way in (TOGETHER, TURNS))
    yield Row(f"{name}, duets: pairs a second", *per_second, "in turns", None, "/s", is_rival=False)
    for clock, told in CLOCKS.items():
        ours, theirs = (
            Measured([_width(one.slower[clock]) for one in sessions[way]]) for way in (TOGETHER, TURNS)
        )
        what = f"the same: half of the 99 % interval by the {told} after {settings.seconds:g} s"
        yield Row(what, ours, theirs, "in turns", None, "%", is_rival=False)


def _width(ratio: Ratio) -> float:
    """Half of the interval, in percent; as much as nothing is known where there is none."""
    return 50 * math.log(ratio.high / ratio.low) if 0 < ratio.low <= ratio.high < math.inf else math.inf


def _counts(kind: str, sessions: Mapping[str, Sequence[Session]]) -> Iterator[Count]:
    said = {way: Counter(_said(own)) for way, own in sessions.items()}
    of = len(sessions[TOGETHER]) * len(CLOCKS)
    for what in (CHANGED, FOUND, WRONG):
        others = f"in turns: {said[TURNS][what]}"
        yield Count(f"{kind}, duets: {what}", said[TOGETHER][what], of, others=others)


def _said(sessions: Sequence[Session]) -> Iterator[str]:
    """What the intervals of these sessions say, right or wrong."""
    for one in sessions:
        for clock in CLOCKS:
            same, slower = one.same[clock], one.slower[clock]
            if not same.low <= 1 <= same.high:
                yield CHANGED
            if slower.low > 1:
                yield FOUND
            if slower.high < 1:
                yield WRONG


def main() -> None:
    """Print the table, and write it where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=Settings().sessions)
    parser.add_argument("--seconds", type=float, default=Settings().seconds)
    parser.add_argument("--loads", type=int, nargs="*", default=LOADS)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    rows, loads = [], [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory(prefix="perun-duet-") as folder:
        place = Place("", "", Path(folder), 1)
        for row in duet(place, Settings(options.sessions, options.seconds, options.loads)):
            print(row.line, flush=True)
            rows.append(row)
            loads.append(os.getloadavg()[0])
    if options.write:
        run = f"{datetime.date.today()}, load of the machine {min(loads):.1f} to {max(loads):.1f}"
        made = {"duet": f"{run}\n\n{table(rows)}\n"}
        options.write.write_text(renewed(options.write.read_text("utf-8"), made), encoding="utf-8")


if __name__ == "__main__":
    main()
