"""Parameters that several checks have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from perun.plugin.params import param

APART: Final = "The most that the machine is expected to make of two runs of one program; more is definite."


@dataclass(frozen=True)
class DifferenceParams:
    """What is no change, and what is a certain one: of FAST, LREG and PREG."""

    unchanged: float = param(
        5.0,
        metavar="<percent>",
        minimum=0,
        help="Models whose coefficients and values differ by at most this much have not changed.",
    )
    changed: float = param(
        25.0,
        metavar="<percent>",
        minimum=0,
        help="More than this much more, or as much less as undoes it, is certain; less is a maybe.",
    )
    r_square: float = param(
        0.15, metavar="<r_square>", minimum=0, help="Models that fit worse than this prove no change."
    )
    apart: float = param(100.0, metavar="<percent>", minimum=0, help=APART)


@dataclass(frozen=True)
class IntegralParams:
    """What is no change, what may be one, and which models are good enough: of INT and LOC."""

    no_change: float = param(
        0.10, metavar="<share>", minimum=0, help="Up to this much more, or less to undo it, is no change."
    )
    maybe: float = param(
        0.25, metavar="<share>", minimum=0, help="Up to this much more, or less to undo it, is not certain."
    )
    r_square: float = param(
        0.15, metavar="<r_square>", minimum=0, help="Models that fit worse than this prove no change."
    )
    apart: float = param(1.0, metavar="<share>", minimum=0, help=APART)
