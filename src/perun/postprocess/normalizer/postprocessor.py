"""The normalizer: amount / maximum, for each snapshot and type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from perun.errors import ProfileError
from perun.plugin.api import PostprocessContext
from perun.plugin.params import NoParams

if TYPE_CHECKING:
    from perun.profile.factory import Profile


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
        from perun.postprocess._common.amounts import amounts_of, dealt, put, together

        columns: dict[str, Sequence[Any]] = {}
        odd, total = 0, 0
        for groups in together(profile, ("snapshot", "type")):
            normalized, left = _normalized(amounts_of(groups))
            odd += left
            total += len(normalized)
            columns |= {
                group.key: part
                for group, part in dealt(groups, normalized)
                if "amount" in group.columns or "amount" in group.constants
            }
        if odd == total:
            raise ProfileError(
                "no resource has an amount to normalize", "collect a profile whose resources have numbers"
            )
        if odd:
            ctx.note(f"{odd} of {total} amounts are no finite numbers; they stay as they are")
        put(profile, "amount", columns)
        return profile


def _normalized(amounts: list[Any]) -> tuple[list[Any], int]:
    """The amounts divided by their maximum, and how many of them stay as they are."""
    import numpy as np

    from perun.postprocess._common.amounts import floats

    values = floats(amounts)
    odd = np.flatnonzero(np.isnan(values))
    if odd.size == values.size:
        return amounts, odd.size
    maximum = np.nanmax(values)
    with np.errstate(over="ignore"):
        shares = values / maximum if maximum else np.where(np.isnan(values), values, 0.0)
    # Only a negative amount can be so much larger than the maximum that the share is beyond all floats.
    largest = np.finfo(np.float64).max
    normalized = np.clip(shares, -largest, largest).tolist()
    for position in odd.tolist():
        normalized[position] = amounts[position]
    return normalized, odd.size
