"""Puts resources with similar amounts into numbered clusters, on which models can depend.

Resources of the same type, subtype and uid are clustered together, by their amounts (manual 5.1.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from perun.plugin.api import PostprocessContext
from perun.plugin.params import param
from perun.postprocess._common import amounts_of, check_amounts, floats, groups_by, set_field, split_by_group
from perun.profile.factory import Profile

if TYPE_CHECKING:
    from perun.models.clusters import Floats, Ints


STRATEGIES: Final = ("sort_order", "sliding_window")
_DEFAULT_SIZE: Final = 0.01


@dataclass(frozen=True)
class ClusterizerParams:
    """The strategy, and for `sliding_window` the window, whose sizes are relative by default."""

    strategy: str = param(
        "sort_order",
        short="-s",
        choices=STRATEGIES,
        help="How to find clusters: sort_order (each resource is one) or sliding_window.",
    )
    window_height: float = param(
        _DEFAULT_SIZE,
        short="-wh",
        minimum=0,
        help="The height of the window: how far amounts of one cluster may be above its first one.",
    )
    relative_window_height: bool = param(
        False,
        short="-rwh",
        help="The height is a multiple of the first amount of the window; the default.",
    )
    fixed_window_height: bool = param(False, short="-fwh", help="The height is a difference of amounts.")
    window_width: float = param(
        _DEFAULT_SIZE,
        short="-ww",
        minimum=0,
        help="The width of the window: how many resources one cluster may have.",
    )
    relative_window_width: bool = param(
        False,
        short="-rww",
        help="The width is a share of all resources that are clustered together; the default.",
    )
    fixed_window_width: bool = param(False, short="-fww", help="The width is a number of resources.")
    weighted_window_width: bool = param(
        False,
        short="-www",
        help="The width is a number of different amounts, each with all its resources.",
    )

    def __post_init__(self) -> None:
        if not (isfinite(self.window_height) and isfinite(self.window_width)):
            raise ValueError("window_width and window_height must be finite numbers")
        if self.relative_window_height and self.fixed_window_height:
            raise ValueError("relative_window_height and fixed_window_height exclude each other")
        if self.relative_window_width + self.fixed_window_width + self.weighted_window_width > 1:
            raise ValueError(
                "relative_window_width, fixed_window_width and weighted_window_width exclude each other"
            )

    @property
    def height_kind(self) -> Literal["absolute", "relative"]:
        """The unit of the height of the window."""
        return "absolute" if self.fixed_window_height else "relative"

    @property
    def width_kind(self) -> Literal["absolute", "relative", "weighted"]:
        """The unit of the width of the window."""
        if self.weighted_window_width:
            return "weighted"
        return "absolute" if self.fixed_window_width else "relative"


class Clusterizer:
    """Puts resources with similar amounts into clusters, for a regression analysis.

    Each resource gets the number of its cluster, from 1, as the field `cluster`. By the strategy sort_order,
    that is its position in the order of amounts. By sliding_window, a window moves over the sorted amounts.

    Its width limits the number of resources in a cluster, its height the range of their amounts: with a
    relative height of 0.1 and a first amount of 100, the amounts from 100 to 110 are one cluster.
    """

    name: ClassVar[str] = "clusterizer"
    help: ClassVar[str] = (
        "Puts resources with similar amounts into numbered clusters, on which models can depend."
    )
    Params: ClassVar[type] = ClusterizerParams

    def process(self, profile: Profile, params: ClusterizerParams, ctx: PostprocessContext) -> Profile:
        """Set `cluster` of each resource; those whose amounts are not finite numbers come last.

        :raises ProfileError: if no resource has an amount that is a finite number.
        """
        import numpy as np

        columns: dict[str, Sequence[int]] = {}
        invalid, total = 0, 0
        for groups in groups_by(profile, ("type", "subtype", "uid")):
            amounts = floats(amounts_of(groups))
            invalid += int(np.count_nonzero(np.isnan(amounts)))
            total += amounts.size
            clusters = _clusters(amounts, params).tolist()
            columns |= {group.key: part for group, part in split_by_group(groups, clusters)}
        check_amounts(ctx, invalid, total, "cluster", "come last")
        set_field(profile, "cluster", columns)
        return profile


def _clusters(amounts: Floats, params: ClusterizerParams) -> Ints:
    from perun.models.clusters import ClusterWindow, sliding_window, sort_order

    if params.strategy == "sort_order":
        return sort_order(amounts)
    window = ClusterWindow(params.window_width, params.width_kind, params.window_height, params.height_kind)
    return sliding_window(amounts, window)


PLUGIN = Clusterizer
SUPPORTED_PROFILES = ["mixed|memory|time"]
