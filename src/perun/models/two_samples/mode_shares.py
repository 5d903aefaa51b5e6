"""Two modes: whether a difference is one of the modes themselves, or of how often each is taken.

Only medians and shares are needed, so that numpy is not loaded here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perun.models.two_samples.ratio import Ratio


def merely_shares(ratio: Ratio, limit: float) -> bool:
    """Whether the difference may be that one of two modes is taken more often, and nothing else.

    So it is where both samples have the same modes, one of them perhaps only one of the two, the shares
    differ by more than chance, and not all modes moved by more than the limit. Modes are the same that are
    nearer to each other than a quarter of their distance.

    :param limit: a ratio above 1.
    """
    found = [modes for modes in ratio.modes if modes]
    if not found or not _shares_differ(ratio):
        return False
    distance = min(math.log(modes.high / modes.low) for modes in found) / 4
    both = zip(ratio.modes, ratio.medians, strict=True)
    (low, high), (new_low, new_high) = (modes[:2] if modes else (median, median) for modes, median in both)
    moves = [abs(math.log(new_low / low)), abs(math.log(new_high / high))]
    same = max(moves) < distance if len(found) == 2 else min(moves) < distance
    return same and min(_directed(new_low / low, ratio), _directed(new_high / high, ratio)) <= limit


def _shares_differ(ratio: Ratio) -> bool:
    """Whether the shares of the slower mode differ by more than two standard errors, or one sample has only
    one mode."""
    old, new = ratio.modes
    if old is None or new is None:
        return True
    variance = sum(
        modes.share * (1 - modes.share) / size for modes, size in zip((old, new), ratio.sizes, strict=True)
    )
    return abs(new.share - old.share) > 2 * math.sqrt(variance)


def _directed(move: float, ratio: Ratio) -> float:
    """The move of a mode as a ratio above 1 where it goes in the direction of the whole."""
    return move if ratio.estimate > 1 else 1 / move
