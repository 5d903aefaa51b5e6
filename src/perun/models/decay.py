"""How quickly an exponential average forgets old values (manual 5.1.5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple


class Decay(NamedTuple):
    """A parameter of the average: alpha as a function of it, and its valid values, as a test and as text."""

    alpha: Callable[[float], float]
    is_valid: Callable[[float], bool]
    range: str


DECAYS: Final[Mapping[str, Decay]] = {
    "com": Decay(lambda com: 1 / (1 + com), lambda com: com >= 0, "com >= 0"),
    "span": Decay(lambda span: 2 / (span + 1), lambda span: span >= 1, "span >= 1"),
    "halflife": Decay(lambda half: -math.expm1(math.log(0.5) / half), lambda half: half > 0, "halflife > 0"),
    "alpha": Decay(lambda alpha: alpha, lambda alpha: 0 < alpha <= 1, "0 < alpha <= 1"),
}
"""Center of mass, span, half-life, and alpha itself."""


def smoothing_factor(decay: str, value: float) -> float:
    """The weight alpha of a new value, more than 0 and at most 1.

    :param decay: one of :data:`DECAYS`.
    :raises ValueError: if there is no such decay, or it does not take `value`.
    """
    if decay not in DECAYS:
        raise ValueError(f"the decay is one of {', '.join(DECAYS)}, not {decay!r}")
    if not (math.isfinite(value) and DECAYS[decay].is_valid(value)):
        raise ValueError(f"a decay by {decay} needs {DECAYS[decay].range}, not {value:g}")
    return DECAYS[decay].alpha(value)
