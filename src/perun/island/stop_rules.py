"""How much of a stop that falls into a call counts as stopped time, and how much as the call's own.

A process that is stopped (SIGSTOP, Ctrl-Z, a debugger) does nothing, but what it waits for goes on: a write
that is held back by a limit of 10 bytes per second, or a sleep, may last no longer for it. Each rule looks at
one call:

- actual: how long it took, from its start to its return;
- expected: how long it takes where nothing stops it, as far as that is known: until the deadline that the
  limit set, the time that a sleep asks for, else 0;
- stops: for how much of it the process was stopped, the sum if there were several stops.

All three are in one unit, and so is the answer, which is never more than `stops`. Outside of calls a stop is
always stopped time: the thread would have computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final


def exact(actual: int, expected: int, stops: int) -> int:
    """The call has its expected time, or what is left without the stops where that is more; the rest is
    stopped.
    """
    return actual - max(min(expected, actual), actual - stops)


def seed(actual: int, expected: int, stops: int) -> int:
    """The rule of the document of Island: the stops count wholly or not at all, by `actual >= expected +
    stops`.
    """
    return stops if actual >= expected + stops else 0


def source2010(actual: int, expected: int, stops: int) -> int:
    """The rule of Island's source of 2010: stops count where they are longer than the call was expected to
    be.
    """
    if stops <= expected:
        return 0
    return actual - min(actual, max(expected, actual - stops))


RULES: Final[dict[str, Callable[[int, int, int], int]]] = {
    "exact": exact,
    "seed": seed,
    "source2010": source2010,
}
"""Name of a rule, as `--stop-rule` takes it, to the rule."""
