"""What is told of histories whose truth is known: steps are found, and nothing else is."""

from __future__ import annotations

import itertools
import math
import random

import invariants
import pytest
from asking import Store, log

from histories import NOISE, Benchmark, History, Made

LEAST = 1.05
"""The smallest step that has to be found at noise of 1 %."""


def of_truth(seed: int, rounds: int) -> History:
    """Forty versions in as many rounds, with steps of 5 % and more, some of which are taken back."""
    chance = random.Random(seed)
    count = 40
    level, levels = 0.2, []
    places = set(chance.sample(range(8, count - 3, 6), 3))
    for place in range(count):
        if place in places:
            level *= chance.choice((LEAST, 1.08, 1.2, 1 / LEAST, 0.8))
        levels.append(level)
    made, order = [], 0
    for turn in range(rounds):
        for place in chance.sample(range(count), count):
            order += 1
            own = levels[place] * math.exp(NOISE * chance.gauss(0, 1))
            runs = tuple(own * math.exp(NOISE * chance.gauss(0, 1)) for _ in range(5))
            made.append(Made(place, 0, {"": runs}, order, 0, "s", turn))
    parents = tuple((place - 1,) if place else () for place in range(count))
    return History(seed, parents, (Benchmark("time", "./app"),), tuple(made), (tuple(levels),))


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [3, 5])
def test_steps_are_found_and_nothing_else(
    stored: Store, rounds: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found = missed = false = shown = 0
    for seed in range(25):
        history = of_truth(seed, rounds)
        asked = stored(history)
        told = log(asked)
        steps = {asked.checksums.index(key.version): step for key, step in invariants.steps_of(asked).items()}
        (levels,) = history.truth
        true = {place for place, (old, new) in enumerate(itertools.pairwise(levels), 1) if old != new}
        for place in true:
            near = {place - 1, place, place + 1} & steps.keys()
            found, missed = found + bool(near), missed + (not near)
        for place, step in steps.items():
            if step["decides"] and not true & {place - 1, place, place + 1}:
                false += 1
        for key, said in told.items():
            if invariants.definite(said.verdict) and asked.checksums.index(key.version) not in true:
                false += 1
        lines = {line[:7] for line in asked.perun("changes").splitlines()}
        doubtful = [place for place, step in steps.items() if not step["decides"] and place not in true]
        shown += sum(asked.checksums[place][:7] in lines for place in doubtful)
    with capsys.disabled():
        print(f"\n{rounds} rounds: {found} of {found + missed} steps, {false} false, {shown} maybes shown")
    assert found >= 0.95 * (found + missed)
    assert false == shown == 0
