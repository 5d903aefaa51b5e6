"""The normalizer: amount / maximum, for each snapshot and type."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from perun.errors import ProfileError
from perun.plugin.api import PostprocessContext
from perun.plugin.params import NoParams
from perun.profile.format.columns import PACKED_FROM

if TYPE_CHECKING:
    from perun.profile.factory import Profile
    from perun.profile.series import Floats


class Normalizer:
    """Normalizes performance profile into flat interval.

    Normalizer is a postprocessor, which iterates through all of the snapshots and normalizes the resources
    of same type to interval (0, 1), where 1 corresponds to the maximal value of the given type.
    """

    name: ClassVar[str] = "normalizer"
    help: ClassVar[str] = "Normalizes performance profile into flat interval."
    Params: ClassVar[type] = NoParams

    def process(self, profile: Profile, params: NoParams, ctx: PostprocessContext) -> Profile:
        """Divide each amount by the largest one of its snapshot and type; where that is 0, it becomes 0.

        Amounts that are no finite numbers stay as they are and are no maximum.

        :raises ProfileError: where no resource has an amount that is a finite number.
        """
        from perun.postprocess._common.amounts import amounts_of_group, floats, put, together

        columns: dict[str, Sequence[Any]] = {}
        odd, total = 0, 0
        for groups in together(profile, ("snapshot", "type")):
            # Group by group, twice: together the amounts may be as large as the whole profile.
            maximum = max((_largest(floats(amounts_of_group(group))) for group in groups), default=-math.inf)
            for group in groups:
                amounts = amounts_of_group(group)
                column, left = _normalized(amounts, floats(amounts), maximum)
                odd += left
                total += group.size
                if "amount" in group.columns or "amount" in group.constants:
                    columns[group.key] = column
        if odd == total:
            raise ProfileError(
                "no resource has an amount to normalize", "collect a profile whose resources have numbers"
            )
        if odd:
            ctx.note(f"{odd} of {total} amounts are no finite numbers; they stay as they are")
        put(profile, "amount", columns)
        return profile


def _largest(values: Floats) -> float:
    """The largest of the numbers; less than any where there is none."""
    import numpy as np

    return float(np.fmax.reduce(values, initial=-math.inf))


def _normalized(amounts: Sequence[Any], values: Floats, maximum: float) -> tuple[Sequence[Any], int]:
    """The amounts of a group divided by the maximum, packed where they are all numbers; and how many of them
    stay as they are.

    :param values: the amounts as numbers, NaN where one is none.
    """
    import numpy as np

    odd = np.flatnonzero(np.isnan(values))
    if odd.size == values.size:
        return amounts, odd.size
    with np.errstate(over="ignore"):
        shares = values / maximum if maximum else np.where(np.isnan(values), values, 0.0)
    # Only a negative amount can be so much larger than the maximum that the share is beyond all floats.
    largest = np.finfo(np.float64).max
    shares = np.clip(shares, -largest, largest)
    if not odd.size and len(shares) >= PACKED_FROM:
        return array("d", shares.tobytes()), 0
    normalized = shares.tolist()
    for position in odd.tolist():
        normalized[position] = amounts[position]
    return normalized, odd.size
