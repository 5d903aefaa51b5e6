"""Divides each amount by the largest one of its snapshot and type.

The amounts of one snapshot and type are divided by the largest of them (manual 5.1.1).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from perun.plugin.api import PostprocessContext
from perun.plugin.params import NoParams
from perun.postprocess._common import amounts_of_group, check_amounts, floats, groups_by, set_field
from perun.profile.factory import Profile
from perun.profile.format.columns import PACKED_FROM

if TYPE_CHECKING:
    from perun.profile.series import Floats


class Normalizer:
    """Divides each amount by the largest one of its snapshot and type, which becomes 1.

    So resources of different types and units become comparable.
    """

    name: ClassVar[str] = "normalizer"
    help: ClassVar[str] = "Divides each amount by the largest one of its snapshot and type."
    Params: ClassVar[type] = NoParams

    def process(self, profile: Profile, params: NoParams, ctx: PostprocessContext) -> Profile:
        """Divide each amount by the largest one of its snapshot and type; if that is 0, the amounts become 0.

        Amounts that are not finite numbers do not count and do not change.

        :raises ProfileError: if no resource has an amount that is a finite number.
        """
        columns: dict[str, Sequence[Any]] = {}
        invalid, total = 0, 0
        for groups in groups_by(profile, ("snapshot", "type")):
            # Group by group, twice: all amounts at once may need as much memory as the profile.
            maximum = max((_largest(floats(amounts_of_group(group))) for group in groups), default=-math.inf)
            for group in groups:
                amounts = amounts_of_group(group)
                column, unchanged = _normalized(amounts, floats(amounts), maximum)
                invalid += unchanged
                total += group.size
                if "amount" in group.columns or "amount" in group.constants:
                    columns[group.key] = column
        check_amounts(ctx, invalid, total, "normalize", "do not change")
        set_field(profile, "amount", columns)
        return profile


def _largest(values: Floats) -> float:
    """The largest of the numbers; minus infinity if there is none."""
    import numpy as np

    return float(np.fmax.reduce(values, initial=-math.inf))


def _normalized(amounts: Sequence[Any], values: Floats, maximum: float) -> tuple[Sequence[Any], int]:
    """The amounts of a group divided by the maximum, and the number of those that do not change.

    :param values: the amounts as numbers, shape (n,); NaN for one that is not a finite number.
    """
    import numpy as np

    invalid = np.flatnonzero(np.isnan(values))
    if invalid.size == values.size:
        return amounts, invalid.size
    with np.errstate(over="ignore"):
        shares = values / maximum if maximum else np.where(np.isnan(values), values, 0.0)
    # Only a negative amount can have so much larger a magnitude than the maximum that the quotient overflows.
    largest = np.finfo(np.float64).max
    shares = np.clip(shares, -largest, largest)
    if not invalid.size and len(shares) >= PACKED_FROM:
        return array("d", shares.tobytes()), 0
    normalized = shares.tolist()
    for position in invalid.tolist():
        normalized[position] = amounts[position]
    return normalized, invalid.size


PLUGIN = Normalizer
SUPPORTED_PROFILES = ["mixed|memory|time"]
