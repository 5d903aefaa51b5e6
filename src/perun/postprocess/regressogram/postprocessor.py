"""The regressogram: how many buckets it has, and what is noted of it in the profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from perun.plugin.api import PostprocessContext
from perun.plugin.params import param
from perun.postprocess._common import params as common
from perun.postprocess._common.fitting import add_models

if TYPE_CHECKING:
    from perun.models.result import NoModel
    from perun.profile.factory import Profile
    from perun.profile.series import Floats

BUCKET_METHODS: Final = ("auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges")
STATISTICS: Final = ("mean", "median")
_GIVEN: Final = "user"


@dataclass(frozen=True)
class RegressogramParams:
    """The buckets, the value in each of them, and the two fields; fields not named are looked up."""

    bucket_number: int = param(
        0,
        short="-bn",
        long="--bucket_number",
        metavar="<bucket_number>",
        minimum=0,
        help="Restricts the number of buckets to which will be placed the values of the selected "
        "statistics. If 0, the <bucket_method> estimates it.",
    )
    bucket_method: str = param(
        "doane",
        short="-bm",
        long="--bucket_method",
        choices=BUCKET_METHODS,
        help="Specifies the method to estimate the optimal number of buckets.",
    )
    statistic_function: str = param(
        "mean",
        short="-sf",
        long="--statistic_function",
        choices=STATISTICS,
        help="Will use the <statistic_function> to compute the values for points within each bucket of "
        "regressogram.",
    )
    of_key: str = common.of_key()
    per_key: str = common.per_key()


class Regressogram:
    """Execution of the interleaving of profiled resources by regressogram models.

    The x-axis is divided into buckets of equal width; the value in each of them is the mean or the median of
    its points, 0 where it has none. The coefficient of determination R^2 measures how well that fits, which
    depends above all on the number of buckets. It is given, or estimated by a method:

    \b
    sqrt     square root of the number of points, simple
    rice     by the number of points only, commonly too many
    sturges  by the number of points only, too few where many of them are not
             normally distributed
    doane    sturges improved for points that are not normally distributed
    scott    by number and variability of the points
    fd       by number and variability of the points, resilient to outliers
    stone    by leave-one-out cross-validation of the squared error
    auto     sturges or fd, whichever gives more buckets
    """

    name: ClassVar[str] = "regressogram"
    help: ClassVar[str] = "Execution of the interleaving of profiled resources by regressogram models."
    Params: ClassVar[type] = RegressogramParams

    def process(self, profile: Profile, params: RegressogramParams, ctx: PostprocessContext) -> Profile:
        """Add a model of each uid to the `models` of the profile.

        :raises ProfileError: where the profile has not the fields, or no uid has points for a model.
        """

        add_models(
            profile, params.of_key, params.per_key, lambda x, y: _fitted(x, y, params), ctx.note, ctx.report
        )
        return profile


def _fitted(x: Floats, y: Floats, params: RegressogramParams) -> Mapping[str, Any] | NoModel:
    from perun.models.regressogram import regressogram
    from perun.models.result import NoModel

    buckets = params.bucket_number or params.bucket_method
    model = regressogram(x, y, buckets, params.statistic_function)
    if isinstance(model, NoModel):
        return model
    return {
        "model": Regressogram.name,
        "method": Regressogram.name,
        "bucket_method": _GIVEN if params.bucket_number else params.bucket_method,
        "statistic_function": params.statistic_function,
        "bucket_stats": model.stats.tolist(),
        "x_start": model.x_start,
        "x_end": model.x_end,
        "r_square": model.r_square,
    }
