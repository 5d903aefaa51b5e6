"""The clusterizer: which resources are clustered together, by which strategy, and what they get."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from perun.errors import ProfileError
from perun.plugin.api import PostprocessContext
from perun.plugin.params import param

if TYPE_CHECKING:
    from perun.models.clusters import Floats, Ints
    from perun.profile.factory import Profile

STRATEGIES: Final = ("sort_order", "sliding_window")
_DEFAULT_SIZE: Final = 0.01


@dataclass(frozen=True)
class ClusterizerParams:
    """The strategy, and the window of `sliding_window`: both its sizes are relative unless told otherwise."""

    strategy: str = param(
        "sort_order",
        short="-s",
        choices=STRATEGIES,
        help="Specifies the clustering strategy, that will be applied for the profile.",
    )
    window_height: float = param(
        _DEFAULT_SIZE,
        short="-wh",
        minimum=0,
        help="Specifies the height of the window (either fixed or proportional).",
    )
    relative_window_height: bool = param(
        False,
        short="-rwh",
        help="Specifies that the height of the window is relative to the point (the default).",
    )
    fixed_window_height: bool = param(
        False, short="-fwh", help="Specifies that the height of the window is absolute to the point."
    )
    window_width: float = param(
        _DEFAULT_SIZE,
        short="-ww",
        minimum=0,
        help="Specifies the width of the window, i.e. how many values will be taken by window.",
    )
    relative_window_width: bool = param(
        False,
        short="-rww",
        help="Specifies that the width is a share of the resources clustered together (the default).",
    )
    fixed_window_width: bool = param(
        False, short="-fww", help="Specifies that the width is a fixed number of resources."
    )
    weighted_window_width: bool = param(
        False,
        short="-www",
        help="Specifies that the width is weighted: a number of different amounts, each taken with all its "
        "occurrences.",
    )

    def __post_init__(self) -> None:
        if not (isfinite(self.window_height) and isfinite(self.window_width)):
            raise ValueError("the width and the height of the window must be finite")
        if self.relative_window_height and self.fixed_window_height:
            raise ValueError("the height of the window is either relative or fixed, not both")
        if self.relative_window_width + self.fixed_window_width + self.weighted_window_width > 1:
            raise ValueError("the width of the window is either relative, fixed or weighted")

    @property
    def height_kind(self) -> Literal["absolute", "relative"]:
        """What the height of the window is measured by."""
        return "absolute" if self.fixed_window_height else "relative"

    @property
    def width_kind(self) -> Literal["absolute", "relative", "weighted"]:
        """What the width of the window is counted in."""
        if self.weighted_window_width:
            return "weighted"
        return "absolute" if self.fixed_window_width else "relative"


class Clusterizer:
    """Clusters each resource to an appropriate cluster, for a regression analysis.

    Each resource gets the number of its cluster, from 1, as the field `cluster`. The clusters are either
    computed w.r.t. the sort order of the resource amounts, or are computed according to the sliding window.

    The sliding window can be further adjusted by its width (how many near values will fit to a cluster)
    and its height (how big of an interval of amounts will be considered for one cluster): with a relative
    height of 0.1 and a first amount of 100, the amounts from 100 to 110 are one cluster.
    """

    name: ClassVar[str] = "clusterizer"
    help: ClassVar[str] = (
        "Clusters each resource to an appropriate cluster in order to be postprocessable by regression "
        "analysis."
    )
    Params: ClassVar[type] = ClusterizerParams

    def process(self, profile: Profile, params: ClusterizerParams, ctx: PostprocessContext) -> Profile:
        """Set `cluster` on every resource; one whose amount is no finite number comes last.

        :raises ProfileError: where no resource has an amount that is a finite number.
        """
        import numpy as np

        from perun.postprocess._common.amounts import amounts_of, dealt, floats, put, together

        columns: dict[str, Sequence[int]] = {}
        odd, total = 0, 0
        for groups in together(profile, ("type", "subtype", "uid")):
            amounts = floats(amounts_of(groups))
            odd += int(np.count_nonzero(np.isnan(amounts)))
            total += amounts.size
            clusters = _clusters(amounts, params).tolist()
            columns |= {group.key: part for group, part in dealt(groups, clusters)}
        if odd == total:
            raise ProfileError(
                "no resource has an amount to cluster by", "collect a profile whose resources have numbers"
            )
        if odd:
            ctx.note(f"{odd} of {total} amounts are no finite numbers; they are clustered last")
        put(profile, "cluster", columns)
        return profile


def _clusters(amounts: Floats, params: ClusterizerParams) -> Ints:
    from perun.models.clusters import Window, sliding_window, sort_order

    if params.strategy == "sort_order":
        return sort_order(amounts)
    window = Window(params.window_width, params.width_kind, params.window_height, params.height_kind)
    return sliding_window(amounts, window)
