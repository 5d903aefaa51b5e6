"""The runs of one pair: base, head, and the base once more, in an order that favours none of them."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping
from typing import Final

from perun.errors import PerunError
from perun.porcelain.compare.instruments import Instrument, Reading
from perun.porcelain.compare.plan import Plan
from perun.porcelain.compare.sides import Folders

BASE: Final = "base"
HEAD: Final = "head"
NOISE: Final = "noise"
ARMS: Final = (BASE, HEAD, NOISE)
LEAST: Final = 0.001
"""Seconds that a run is given at least: 0 would be without a limit."""
PARALLEL: Final = 1.2
"""Time of processors over that of the wall clock from which on a program uses several cores at once."""

Seconds = Callable[[], float]
"""Tells how much of the budget is left."""


class PairRunner:
    """Measures pairs by one instrument.

    :param order: `random`, or `abba`: each pair mirrors the one before.
    :param cores: the processors on which a program may be kept, one drawn for each pair; none where it may
        use all.
    """

    def __init__(
        self,
        instrument: Instrument,
        plan: Plan,
        folders: Folders,
        order: str,
        cores: tuple[int, ...],
        dice: random.Random,
    ) -> None:
        self._instrument = instrument
        self._names: dict[str, str] = {side.name: str(side) for side in plan.sides}
        self._folders = folders
        self._mirrors = order == "abba"
        self._cores = cores
        self._dice = dice

    @property
    def is_pinned(self) -> bool:
        """Whether each pair runs on one core."""
        return bool(self._cores)

    def warm_up(self, left: Seconds) -> list[Reading]:
        """Run each build of each side once, unmeasured. Where one uses several cores at once, no run is kept
        on one core from then on.

        :param left: the seconds that are left.
        :raises BudgetSpent: where a run takes longer.
        :raises PerunError: names the side whose command fails.
        """
        readings = [
            self._run(side, build, left, None)
            for side in (BASE, HEAD)
            for build in range(len(self._folders[side]))
        ]
        if any(_is_parallel(reading) for reading in readings):
            self._cores = ()
        return readings

    def measure(self, number: int, left: Seconds) -> Mapping[str, Reading]:
        """The readings of the arms of a pair.

        :param number: of the pair, from 0. :param left: the seconds that are left.
        :raises BudgetSpent: where one takes longer. :raises PerunError: as :meth:`warm_up`.
        """
        core = self._dice.choice(self._cores) if self._cores else None
        arms = list(ARMS)
        if not self._mirrors:
            self._dice.shuffle(arms)
        elif number % 2:
            arms.reverse()
        return {arm: self._run(arm, self._build(arm, number), left, core) for arm in arms}

    def _build(self, arm: str, number: int) -> int:
        """Which build of its side an arm takes: each meets each of the other side, and the noise another one
        than the base, as far as there are several."""
        builds = len(self._folders[HEAD])
        if arm == HEAD:
            return (number + number // builds) % builds
        return (number + (arm == NOISE)) % builds

    def _run(self, arm: str, build: int, left: Seconds, core: int | None) -> Reading:
        side = HEAD if arm == HEAD else BASE
        try:
            return self._instrument.measure(self._folders[side][build], max(left(), LEAST), core)
        except PerunError as problem:
            raise type(problem)(f"{self._names[side]}: {problem.message}", problem.hint) from None


def usable_cores(pin: bool) -> tuple[int, ...]:
    """The processors on which a program may be kept: none where there is but one, or the user wants none."""
    try:
        cores = tuple(sorted(os.sched_getaffinity(0)))
    except (AttributeError, OSError):
        return ()
    return cores if pin and len(cores) > 1 else ()


def _is_parallel(reading: Reading) -> bool:
    sample = reading.sample
    return sample is not None and sample.user + sample.system > PARALLEL * sample.real
