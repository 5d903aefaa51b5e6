"""Running inputs until the time for it is over, and no longer."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final, Protocol

_HANG: Final = "hang"


class Ran(Protocol):
    """What is needed of a run: how it ended (`ok`, `fault`, `hang`), its count, and its time in seconds."""

    @property
    def outcome(self) -> str: ...  # noqa: D102
    @property
    def total(self) -> int: ...  # noqa: D102
    @property
    def seconds(self) -> float: ...  # noqa: D102


class RunInput(Protocol):
    """Runs the program on an input, as :meth:`perun.fuzz.coverage.api.Coverage.run` does."""

    def __call__(self, data: bytes, timeout: float, until: float = math.inf) -> Ran: ...  # noqa: D102


class OutOfTime(Exception):
    """There is no time left for a run, or it was ended as the time was over: nothing is known of it."""


def until(end: float, run: RunInput, clock: Callable[[], float] = time.monotonic) -> RunInput:
    """`run` with an end, by the clock: from then on it raises :class:`OutOfTime`."""

    def limited(data: bytes, timeout: float, until: float = math.inf) -> Ran:
        left = end - clock()
        if left <= 0:
            raise OutOfTime
        ran = run(data, timeout, min(until, time.monotonic() + left))
        if ran.outcome == _HANG and ran.seconds < timeout:
            raise OutOfTime
        return ran

    return limited
