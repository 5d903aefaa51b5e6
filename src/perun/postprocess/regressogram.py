"""Regressogram: the resources of each uid as a step function over buckets of equal width (manual 5.1.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from perun.models.record import NoModel
from perun.plugin.api import PostprocessContext
from perun.plugin.params import param
from perun.postprocess import _common as common
from perun.postprocess._common import add_models
from perun.profile.factory import Profile

if TYPE_CHECKING:
    from perun.profile.series import Floats


BUCKET_METHODS: Final = ("auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges")
STATISTICS: Final = ("mean", "median")
_GIVEN: Final = "user"


@dataclass(frozen=True)
class RegressogramParams:
    """The buckets, their values, and the two fields, which are chosen from the profile by default."""

    bucket_number: int = param(
        0,
        short="-bn",
        long="--bucket_number",
        metavar="<bucket_number>",
        minimum=0,
        help="The number of buckets; 0 means that <bucket_method> estimates it.",
    )
    bucket_method: str = param(
        "doane",
        short="-bm",
        long="--bucket_method",
        choices=BUCKET_METHODS,
        help="How to estimate the number of buckets; see above.",
    )
    statistic_function: str = param(
        "mean",
        short="-sf",
        long="--statistic_function",
        choices=STATISTICS,
        help="The value of a bucket: the mean or the median of its points.",
    )
    of_key: str = common.of_key()
    per_key: str = common.per_key()


class Regressogram:
    """Fits a step function to the resources of each uid.

    It divides the X axis into buckets of equal width. The value of a bucket is the mean or the median of its
    points, or 0 without points. The coefficient of determination R^2 measures how well that fits, which
    depends above all on the number of buckets. The methods to estimate it:

    \b
    sqrt     the square root of the number of points
    rice     by the number of points only; often too many
    sturges  by the number of points only; too few for many points that are not
             normally distributed
    doane    sturges, improved for points that are not normally distributed
    scott    by the number and variability of the points
    fd       by the number and variability of the points, robust to outliers
    stone    by leave-one-out cross-validation of the squared error
    auto     sturges or fd, whichever gives more buckets
    """

    name: ClassVar[str] = "regressogram"
    help: ClassVar[str] = "Fits a step function to the resources of each uid."
    Params: ClassVar[type] = RegressogramParams

    def process(self, profile: Profile, params: RegressogramParams, ctx: PostprocessContext) -> Profile:
        """Add a model of each uid to the `models` of the profile.

        :raises ProfileError: where the profile has not the fields, or no uid has points for a model.
        """
        return add_models(profile, params, ctx, lambda x, y: _fitted(x, y, params))


def _fitted(x: Floats, y: Floats, params: RegressogramParams) -> Mapping[str, Any] | NoModel:
    from perun.models.regressogram import regressogram

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


PLUGIN = Regressogram
SUPPORTED_PROFILES = ["mixed|memory|time"]
