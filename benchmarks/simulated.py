"""Run times of programs as random numbers of known kinds, and what tests say of them: many sequences at once.

A run time is exp(noise); all that is tested are logarithms. A sequence is what one comparison measures: runs
one after the other, of which neighbours are a pair whose order is random.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from perun.models import student
from perun.models.two_samples import rank_tests

Floats = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int, int], Floats]


def normal(generator: np.random.Generator, sequences: int, runs: int) -> Floats:
    """Independent, symmetric: 5 %."""
    return generator.normal(0, 0.05, (sequences, runs))


def lognormal(generator: np.random.Generator, sequences: int, runs: int) -> Floats:
    """Independent, with a long tail of slow runs, also in the logarithm."""
    return 0.1 * generator.lognormal(0, 0.5, (sequences, runs))


def bimodal(generator: np.random.Generator, sequences: int, runs: int) -> Floats:
    """Three of ten runs take a third longer."""
    slow = np.where(generator.random((sequences, runs)) < 0.3, 0.3, 0.0)
    return slow + generator.normal(0, 0.02, (sequences, runs))


def correlated(generator: np.random.Generator, sequences: int, runs: int) -> Floats:
    """Each run is like the one before it (autoregressive, 0.9): a machine that is slow for a while."""
    steps = generator.normal(0, 0.022, (runs, sequences))
    values = np.empty_like(steps)
    last = generator.normal(0, 0.05, sequences)
    for run in range(runs):
        last = values[run] = 0.9 * last + steps[run]
    return values.T


NOISES: Mapping[str, Noise] = {
    "normal": normal,
    "lognormal": lognormal,
    "bimodal": bimodal,
    "correlated": correlated,
}


def in_turns(generator: np.random.Generator, runs: Floats) -> tuple[Floats, Floats]:
    """Neighbours as pairs, the order of each at random: baseline and target, shape (sequences, runs / 2)."""
    first, second = runs[:, 0::2], runs[:, 1::2]
    swapped = generator.random(first.shape) < 0.5
    return np.where(swapped, second, first), np.where(swapped, first, second)


def in_blocks(runs: Floats) -> tuple[Floats, Floats]:
    """All runs of the baseline first, then all of the target."""
    half = runs.shape[1] // 2
    return runs[:, :half], runs[:, half:]


def seen(differences: Floats, levels: Mapping[int, float]) -> NDArray[np.bool_]:
    """Whether the signed ranks see a difference at each look, shape (sequences, looks).

    :param differences: of pairs, shape (sequences, pairs). :param levels: that of each look by its pairs.
    """
    found = np.empty((len(differences), len(levels)), bool)
    for look, (pairs, level) in enumerate(levels.items()):
        part = differences[:, :pairs]
        ranks = np.argsort(np.argsort(np.abs(part), axis=1), axis=1) + 1
        positive = np.where(part > 0, ranks, 0).sum(axis=1)
        extreme = np.minimum(positive, pairs * (pairs + 1) // 2 - positive)
        found[:, look] = extreme <= rank_tests.signed_rank_critical_value(pairs, level)
    return found


def mann_whitney(baseline: Floats, target: Floats) -> Floats:
    """The p-value of each sequence, by the test that benchstat makes; shapes (sequences, n)."""
    return rank_tests.compare(baseline, target, 0.5, [1.0] * len(baseline)).p_values


def welch(baseline: Floats, target: Floats) -> Floats:
    """The p-value of each sequence by the t test of Welch."""
    count = baseline.shape[1]
    errors = [side.var(axis=1, ddof=1) / count for side in (baseline, target)]
    total = errors[0] + errors[1]
    freedom = total**2 * (count - 1) / (errors[0] ** 2 + errors[1] ** 2)
    t = (target.mean(axis=1) - baseline.mean(axis=1)) / np.sqrt(total)
    return np.array([student.p_value(one, nu) for one, nu in zip(t.tolist(), freedom.tolist(), strict=True)])


def alarms(noise: Noise, levels: Mapping[int, float], sequences: int, seed: int) -> Sequence[int]:
    """How many of so many sequences without any change were called one up to each look."""
    generator = np.random.default_rng(seed)
    baseline, target = in_turns(generator, noise(generator, sequences, 2 * max(levels)))
    return np.logical_or.accumulate(seen(target - baseline, levels), axis=1).sum(axis=0).tolist()
