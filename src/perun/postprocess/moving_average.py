"""Moving average: the resources of each uid, smoothed along another field (manual 5.1.5).

On the command line `sma`, `smm` and `ema` are sub-commands, of which each has options of its own; in a job
matrix the parameter `moving_method` says which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from perun.models.decay import DECAYS, smoothing_factor
from perun.models.record import NoModel
from perun.plugin.api import PostprocessContext
from perun.plugin.params import param
from perun.postprocess import _common as common
from perun.postprocess._common import add_models, plain
from perun.profile.factory import Profile

if TYPE_CHECKING:
    from perun.models.moving_average import MovingAverage as Model
    from perun.profile.series import Floats


MOVING_METHODS: Final = {
    "sma": """\
Simple Moving Average.

The mean of the points in a window around each point (--center), or of the point and those before it
(--no-center), weighted by the window function that --window_type names. At the ends a window has too few
points, and the value is NaN, unless --min_periods (before the sub-command) allows fewer.""",
    "smm": """\
Simple Moving Median.

The median of the points in a window around each point, without weights.""",
    "ema": """\
Exponential Moving Average.

The mean of each point and all points before it, whose weights decrease exponentially by the factor
1 - alpha. --decay gives alpha as one of

\b
com       center of mass, alpha = 1 / (1 + com), for com >= 0
span      alpha = 2 / (span + 1), for span >= 1
halflife  alpha = 1 - exp(log(0.5) / halflife), for halflife > 0
alpha     itself, 0 < alpha <= 1

By default com is 0, which leaves each point as it is.""",
}
"""The methods, with their help."""
# fmt: off
WINDOW_TYPES: Final = (
    "boxcar", "triang", "blackman", "hamming", "bartlett", "parzen", "bohman", "blackmanharris", "nuttall",
    "barthann", "kaiser",
)
# fmt: on
_EVEN_WEIGHTS: Final = "boxcar"
_NO_DECAY: Final = ("com", "0")


@dataclass(frozen=True)
class MovingAverageParams:
    """The method with its window or its decay, and the two fields, by default chosen from the profile.

    :raises ValueError: if a parameter does not belong to the method, or contradicts another one.
    """

    moving_method: str = param(
        "sma",
        choices=tuple(MOVING_METHODS),
        commands=MOVING_METHODS,
        help="Simple moving average, simple moving median, or exponential moving average.",
    )
    min_periods: int = param(
        0,
        short="-mp",
        long="--min_periods",
        alias="--min-periods",
        metavar="<min_periods>",
        minimum=1,
        help="The least number of points that a window needs; with fewer the value is NaN. By default it is "
        "the width of the window, and 1 for ema.",
    )
    of_key: str = common.of_key()
    per_key: str = common.per_key()
    window_type: str = param(
        _EVEN_WEIGHTS,
        short="-wt",
        long="--window_type",
        alias="--window-type",
        choices=WINDOW_TYPES,
        modes=("sma",),
        help="The window function that weights the points. By default all have equal weights.",
    )
    center: bool = param(
        True,
        long="--center/--no-center",
        modes=("sma", "smm"),
        help="The value of a window belongs to the point at its center (the default), or at its right edge.",
    )
    window_width: int = param(
        0,
        short="-ww",
        long="--window_width",
        alias="--window-width",
        metavar="<window_width>",
        minimum=1,
        modes=("sma", "smm"),
        help="The number of points in a window. By default Perun chooses it by how well the curve fits.",
    )
    decay: tuple[str, ...] = param(
        _NO_DECAY,
        short="-d",
        metavar="<decay> <value>",
        parts=(tuple(DECAYS), float),
        modes=("ema",),
        help="How fast weights decrease: one of com, span, halflife and alpha, and its value, e.g. com 3.",
    )

    def __post_init__(self) -> None:
        smoothing_factor(*self.decay_value)
        if self.moving_method != "ema" and self.decay_value != ("com", 0.0):
            raise ValueError(f"decay is for the moving_method ema, not for {self.moving_method}")
        if self.moving_method == "ema" and (self.window_width or not self.center):
            raise ValueError(
                "the moving_method ema has no window: use decay instead of window_width and center"
            )
        if self.moving_method != "sma" and self.window_type != _EVEN_WEIGHTS:
            raise ValueError(f"window_type is for the moving_method sma, not for {self.moving_method}")
        if 0 < self.window_width < self.min_periods:
            raise ValueError(
                f"min_periods must be at most the window_width {self.window_width}, not {self.min_periods}"
            )

    @property
    def decay_value(self) -> tuple[str, float]:
        """The name and the value of the decay.

        :raises ValueError: if `decay` is not a name and a number.
        """
        try:
            name, value = " ".join(self.decay).split()
            return name, float(value)
        except ValueError:
            raise ValueError(
                f"decay must be a name and a number, e.g. com 3, not {' '.join(self.decay)!r}"
            ) from None


class MovingAverage:
    """Smooths the resources of each uid: each point becomes the mean or the median of the points around it.

    The points are in the order of the independent field. By default, the width of the window begins with a
    twentieth of the interval and shrinks until the coefficient of determination R^2 is at least 0.88.
    """

    name: ClassVar[str] = "moving_average"
    help: ClassVar[str] = "Smooths the resources of each uid by moving means or medians."
    Params: ClassVar[type] = MovingAverageParams

    def process(self, profile: Profile, params: MovingAverageParams, ctx: PostprocessContext) -> Profile:
        """Add a model of each uid to the `models` of the profile.

        :raises ProfileError: where the profile has not the fields, or no uid has points for a model.
        """
        return add_models(profile, params, ctx, lambda x, y: _fitted(x, y, params))


def _fitted(x: Floats, y: Floats, params: MovingAverageParams) -> Mapping[str, Any] | NoModel:
    model = _smoothed(x, y, params)
    if isinstance(model, NoModel):
        return model
    fields: dict[str, Any] = {
        "model": MovingAverage.name,
        "method": MovingAverage.name,
        "moving_method": params.moving_method,
        "window_width": model.width,
        "bucket_stats": model.stats.tolist(),
        "x_start": plain(model.x_start),
        "x_end": plain(model.x_end),
        "r_square": model.r_square,
    }
    return fields | ({"decay": params.decay_value[0]} if params.moving_method == "ema" else {})


def _smoothed(x: Floats, y: Floats, params: MovingAverageParams) -> Model | NoModel:
    from perun.models import moving_average
    from perun.models.moving_average import AverageWindow

    if params.moving_method == "ema":
        return moving_average.exponential(x, y, *params.decay_value, params.min_periods)
    window = AverageWindow(params.center, params.min_periods)
    if params.moving_method == "smm":
        return moving_average.median(x, y, params.window_width, window)
    kind = "" if params.window_type == _EVEN_WEIGHTS else params.window_type
    return moving_average.simple(x, y, params.window_width, window, kind)


PLUGIN = MovingAverage
SUPPORTED_PROFILES = ["mixed|memory|time"]
