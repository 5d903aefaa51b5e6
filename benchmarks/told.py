"""What `perun check all` and `perun changes` tell of histories whose truth is known, under noise as machines
make it.

    python benchmarks/told.py [--histories N] [--kind KIND ...]

No program runs: what was measured is simulated, and judged by the code that the commands use. Steps are of
5 % at noise of 1 %. Prints a row for each kind of noise: of `check all` the share of unchanged neighbours
that have a definite change, and of steps that are found; of `changes` the share of histories without a step
that have a definite change, and of steps that are told as definite at most one version away. A second table
has what `check all` says of the newest version, slower by 20 %, behind a history with several steps of 10 to
50 %.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from generated_history import told
from perun.measurement.estimate import Kind, Point, Round, point_of, sample_of
from perun.measurement.noise import FEWEST
from perun.measurement.verdict import along, severity

VERSIONS, ROUNDS, RUNS, STEP = 40, 5, 5, 1.05
WITHIN, BETWEEN = 0.01, 0.0083
"""Noise of a run in its round, and of a round: the median of a round is off by 1 % in all."""
Noise = Callable[[np.random.Generator], np.ndarray]
"""The logarithms of the noise, shape (versions, rounds, runs)."""


def plain(chance: np.random.Generator) -> np.ndarray:
    """Normal, within a round and between the rounds of a version."""
    between = chance.normal(0, BETWEEN, (VERSIONS, ROUNDS, 1))
    return between + chance.normal(0, WITHIN, (VERSIONS, ROUNDS, RUNS))


def session(chance: np.random.Generator) -> np.ndarray:
    """The same, and each round as a whole is off by 3 %, as a machine is that has other things to do."""
    return plain(chance) + chance.normal(0, 0.03, (1, ROUNDS, 1))


def heavy(chance: np.random.Generator) -> np.ndarray:
    """Student's distribution of 3 degrees of freedom between rounds, and a tail of slow runs within them."""
    between = BETWEEN * chance.standard_t(3, (VERSIONS, ROUNDS, 1)) / np.sqrt(3)
    return between + WITHIN * chance.exponential(1.0, (VERSIONS, ROUNDS, RUNS))


def drift(chance: np.random.Generator) -> np.ndarray:
    """Within each round the machine becomes slower by 2 % from the first version visited to the last one."""
    order = np.array([chance.permutation(VERSIONS) for _ in range(ROUNDS)]).T / VERSIONS
    return plain(chance) + 0.02 * order[:, :, None]


KINDS: dict[str, Noise] = {"normal": plain, "session": session, "heavy tails": heavy, "drift": drift}


class Shares(NamedTuple):
    """False changes and steps found, of how many each."""

    false: int
    unchanged: int
    found: int
    steps: int

    @property
    def text(self) -> str:
        return (
            f"{self.false} of {self.unchanged} ({self.false / self.unchanged:.2%}), "
            f"{self.found} of {self.steps} ({self.found / self.steps:.1%})"
        )


def history(noise: Noise, seed: int, place: int | None, *, apart: bool) -> list[Point]:
    """A history in rounds that visit each version; or, `apart`, with a session of a version for each round.

    :param place: where the level takes a step; None for nowhere.
    """
    chance = np.random.default_rng(seed)
    values = np.exp(noise(chance))
    if place is not None:
        values[place:] *= STEP
    made = []
    for version, own in enumerate(values):
        samples = [sample for one in own if (sample := sample_of(one.tolist())) is not None]
        if apart:
            profiles = [[Round(f"{version}-{n}", 0, {"": one})] for n, one in enumerate(samples)]
            made.append(point_of(profiles, Kind.TIMED))
        else:
            made.append(Point(tuple(Round("s", n, {"": one}) for n, one in enumerate(samples))))
    return made


def of_kind(noise: Noise, histories: int, *, apart: bool) -> tuple[Shares, Shares]:
    """What both commands tell of so many histories with a step, and of as many without one."""
    false = found = wrong = seen = 0
    for seed in range(histories):
        place = 10 + seed % (VERSIONS - 20)
        stepped, quiet = (history(noise, seed, one, apart=apart) for one in (place, None))
        for own, step in ((stepped, place), (quiet, None)):
            for version in range(1, VERSIONS):
                verdict = along(own[version], own[:version][::-1])
                definite = verdict is not None and verdict.decides and severity(verdict.change) != 0
                found, false = found + (definite and version == step), false + (definite and version != step)
        seen += any(abs(one - place) <= 1 for one in told(stepped).definite())
        wrong += bool(told(quiet).definite())
    unchanged = histories * (2 * (VERSIONS - 1) - 1)
    return Shares(false, unchanged, found, histories), Shares(wrong, histories, seen, histories)


def behind(versions: int, steps: int, histories: int) -> Shares:
    """What `check all` tells of the newest of so many versions, measured apart with a noise of 2 %, and of
    all unchanged ones whose noise is known."""
    false = unchanged = found = 0
    for seed in range(histories):
        chance = np.random.default_rng(seed)
        places = {*chance.choice(np.arange(2, versions - 1), steps, replace=False).tolist(), versions - 1}
        moves = [
            chance.choice([-1, 1]) * np.log1p(chance.uniform(0.1, 0.5)) if place in places else 0.0
            for place in range(versions)
        ]
        moves[-1] = np.log(1.2)
        logs = np.cumsum(moves)[:, None] + chance.normal(0, 0.02, (versions, 1))
        values = np.exp(logs + chance.normal(0, WITHIN, (versions, RUNS)))
        samples = [sample for one in values if (sample := sample_of(one.tolist())) is not None]
        own = [point_of([[Round("", 0, {"": one})]], Kind.TIMED) for one in samples]
        for version in range(FEWEST + 1, versions):
            verdict = along(own[version], own[:version][::-1])
            definite = verdict is not None and verdict.decides and severity(verdict.change) != 0
            found += definite and version == versions - 1
            false += definite and version not in places
            unchanged += version not in places
    return Shares(false, unchanged, found, histories)


def main() -> None:
    """Print the tables of docs/benchmarks.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=200)
    parser.add_argument("--kind", choices=KINDS, nargs="*", default=list(KINDS))
    chosen = parser.parse_args()
    print("| noise | measured | check all: false, found | changes: false, found |")
    print("|---|---|---|---|")
    for kind in chosen.kind:
        for apart in (False, True):
            if apart and kind in ("session", "drift"):
                continue  # a round that nothing else shares is off by more than the step
            both = of_kind(KINDS[kind], chosen.histories, apart=apart)
            where = f"{ROUNDS} sessions each" if apart else f"{ROUNDS} rounds"
            print(f"| {kind} | {where} | {both[0].text} | {both[1].text} |", flush=True)
    print("\n| versions | steps before the newest | check all: false, newest found |\n|---|---|---|")
    for versions, steps in ((12, 3), (16, 4), (24, 5), (33, 3), (33, 5)):
        print(f"| {versions} | {steps} | {behind(versions, steps, chosen.histories).text} |", flush=True)


if __name__ == "__main__":
    main()
