"""What the user of `perun compare` asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from perun.errors import UsageError
from perun.measurement.difference import DEFAULTS, Rules

ORDERS: Final = ("random", "abba")
"""The order of the runs of a pair: random, or mirrored from pair to pair."""
MAX_PAIRS: Final = 100
SECONDS: Final = 60.0
"""Budget of each configuration, where the user gives none for all of them together."""
MAX_BUILDS: Final = 16


@dataclass(frozen=True)
class CompareOptions:
    """How to compare.

    :ivar base: revision; where None, the merge base with the main branch. :ivar head: revision; where None,
        the working directory as it is.
    :ivar cmd: the command to measure; where empty, the job matrix says what is measured. :ivar args: and
        :ivar workload: belong to it.
    :ivar metrics: names of what is measured; see :mod:`perun.porcelain.compare.metrics`.
    :ivar builds: how often each side is built. :ivar order: one of :data:`ORDERS`.
    :ivar budget: seconds for measuring everything; None for :data:`SECONDS` for each configuration.
    :ivar most_pairs: pairs at which each series ends. :ivar pin: keep the program on one core.
    :ivar always: measure programs that are identical, too. :ivar seed: of generators of workloads.
    """

    base: str | None = None
    head: str | None = None
    cmd: str = ""
    args: str = ""
    workload: str = ""
    metrics: tuple[str, ...] = ("wall", "cpu")
    rules: Rules = DEFAULTS
    builds: int = 1
    order: str = "random"
    budget: float | None = None
    most_pairs: int = MAX_PAIRS
    pin: bool = True
    always: bool = False
    seed: int | None = None


def share(text: str, option: str) -> float:
    """The share that a text like `2%` or `0.02` names.

    :param option: to name where it names none.
    :raises UsageError: where it is no number above 0 and below 1.
    """
    number, percent, rest = text.strip().partition("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if rest.strip() or not 0 < value < 1:
        raise UsageError(f"{option}: {text!r} is no share between 0 and 100 %", "write it as e.g. 2% or 0.02")
    return value
