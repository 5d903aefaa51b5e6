"""Parameters that several checks have."""

from __future__ import annotations

from dataclasses import dataclass

from perun.plugin.params import param


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
