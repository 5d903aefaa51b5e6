"""How many mutations a rule makes in one iteration: the four ways of `--mutations-per-rule` (manual 9.7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

LIMIT: Final = 100
"""Mutations of a rule in one iteration at most (FLPR in the manual)."""
_LEAST: Final = 0.1
"""Probability of a rule that has brought little: it may bring something later."""

Strategy = Callable[[int, int, Random], int]
"""Gets the successes of the rule, those of all rules and the dice; the number of mutations."""


def unitary(successes: int, total: int, random: Random) -> int:
    """One, whatever the rule has brought."""
    return 1


def proportional(successes: int, total: int, random: Random) -> int:
    """One more than the rule has had successes."""
    return min(successes + 1, LIMIT)


def probabilistic(successes: int, total: int, random: Random) -> int:
    """One or none, by the share of the rule in all successes."""
    return int(random.random() <= _probability(successes, total))


def mixed(successes: int, total: int, random: Random) -> int:
    """As many as :func:`proportional` or none, by the share of the rule in all successes."""
    return proportional(successes, total, random) * probabilistic(successes, total, random)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    one.__name__: one for one in (unitary, proportional, probabilistic, mixed)
}
DEFAULT: Final = "mixed"


def _probability(successes: int, total: int) -> float:
    return max(successes / total, _LEAST) if total else 1.0
