"""Histories of measurements with known changes: noise as machines make it, and steps as commits make them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class History(NamedTuple):
    """A series of measurements, shape (n,), and the first points of its new levels with their ratios."""

    values: np.ndarray
    steps: tuple[tuple[int, float], ...]


def history(seed: int, count: int = 300, steps: int | None = None) -> History:
    """A history of `count` points; as many steps as asked for, else none, one or two.

    Steps are of 2 to 50 % up or down, even on a logarithmic scale, at least 20 points apart and from the
    ends. The noise of 0.3 to 3 % is normal or skewed, in half of the series correlated from point to point
    (up to 0.5), in a third of two modes; a third has a slow drift of up to 3 % over the whole; one point in
    fifty is a spike of 5 to 200 %.
    """
    chance = np.random.default_rng(seed)
    number = int(chance.integers(0, 3)) if steps is None else steps
    noise = np.exp(chance.uniform(np.log(0.003), np.log(0.03)))
    skewed = chance.random() >= 0.5
    drawn = chance.gamma(2, 1, count) / np.sqrt(2) - np.sqrt(2) if skewed else chance.standard_normal(count)
    rho = chance.uniform(0, 0.5) if chance.random() < 0.5 else 0.0
    for i in range(1, count):
        drawn[i] = rho * drawn[i - 1] + np.sqrt(1 - rho**2) * drawn[i]
    logs = noise * drawn
    if chance.random() < 1 / 3:
        logs += (chance.random(count) < chance.uniform(0.1, 0.5)) * noise * chance.uniform(2, 4)
    if chance.random() < 1 / 3:
        drift = chance.uniform(-0.03, 0.03)
        time = np.linspace(0, 1, count)
        logs += drift * (time if chance.random() < 0.5 else np.sin(time * np.pi * chance.uniform(0.5, 2)))
    spiked = chance.random(count) < 0.02
    logs[spiked] += np.log1p(np.exp(chance.uniform(np.log(0.05), np.log(2), int(spiked.sum()))))
    made: list[tuple[int, float]] = []
    while len(made) < number:
        place = int(chance.integers(20, count - 20))
        if all(abs(place - other) >= 20 for other, _ in made):
            size = np.log1p(np.exp(chance.uniform(np.log(0.02), np.log(0.5))))
            ratio = float(np.exp(size if chance.random() < 0.5 else -size))
            made.append((place, ratio))
            logs[place:] += np.log(ratio)
    return History(np.exp(chance.uniform(-8, 4) + logs), tuple(sorted(made)))


def matched(found: list[int], steps: list[int], margin: int = 5) -> int:
    """How many of the steps were found, each by a place of its own within the margin."""
    left = sorted(found)
    hits = 0
    for step in sorted(steps):
        near = [place for place in left if abs(place - step) <= margin]
        if near:
            left.remove(min(near, key=lambda place: abs(place - step)))
            hits += 1
    return hits
