"""The moving average: its window or its decay, and what is noted of it in the profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from perun.models.moving.decay import smoothing_factor
from perun.plugin.api import PostprocessContext
from perun.plugin.params import param
from perun.postprocess._common import params as common
from perun.postprocess._common.fitting import add_models, plain

if TYPE_CHECKING:
    from perun.models.moving.average import MovingAverage as Model
    from perun.models.result import NoModel
    from perun.profile.factory import Profile
    from perun.profile.series import Floats

MOVING_METHODS: Final = ("sma", "smm", "ema")
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
    """The method with its window or its decay, and the two fields; fields not named are looked up.

    :raises ValueError: where a parameter does not belong to the method, or two of them contradict.
    """

    moving_method: str = param(
        "sma",
        choices=MOVING_METHODS,
        help="Simple moving average, simple moving median, or exponential moving average.",
    )
    min_periods: int = param(
        0,
        short="-mp",
        long="--min_periods",
        metavar="<min_periods>",
        minimum=0,
        help="Provides the minimum number of observations in window required to have a value. If the number "
        "of possible observations smaller then result is NaN. If not set, it is the width of the window, and "
        "1 for ema.",
    )
    of_key: str = common.of_key()
    per_key: str = common.per_key()
    window_type: str = param(
        _EVEN_WEIGHTS,
        short="-wt",
        long="--window_type",
        choices=WINDOW_TYPES,
        help="Provides the window type, if not set then all points are evenly weighted.",
    )
    center: bool = param(
        True,
        help="If set to False, the result is set to the right edge of the window, else is result set to the "
        "center of the window.",
    )
    window_width: int = param(
        0,
        short="-ww",
        long="--window_width",
        metavar="<window_width>",
        minimum=0,
        help="Size of the moving window. This is a number of observations used for calculating the "
        "statistic. Each window will be a fixed size. If not set, it is chosen by how well it fits.",
    )
    decay: tuple[str, ...] = param(
        _NO_DECAY,
        short="-d",
        metavar="<decay> <value>",
        help='Exactly one of "com", "span", "halflife", "alpha" and its value, e.g. com 3.',
    )

    def __post_init__(self) -> None:
        smoothing_factor(*self.decay_value)
        if self.moving_method != "ema" and self.decay_value != ("com", 0.0):
            raise ValueError(f"decay is for the moving_method ema, not for {self.moving_method}")
        if self.moving_method == "ema" and (self.window_width or not self.center):
            raise ValueError(
                "the moving_method ema has no window: give a decay in place of its width or center"
            )
        if self.moving_method != "sma" and self.window_type != _EVEN_WEIGHTS:
            raise ValueError(f"window_type is for the moving_method sma, not for {self.moving_method}")
        if 0 < self.window_width < self.min_periods:
            raise ValueError(
                f"min_periods is {self.min_periods}, more than a window of width {self.window_width} can have"
            )

    @property
    def decay_value(self) -> tuple[str, float]:
        """The way to say how quickly old values are forgotten, and its number.

        :raises ValueError: where `decay` is not a name and a number.
        """
        try:
            name, value = " ".join(self.decay).split()
            return name, float(value)
        except ValueError:
            raise ValueError(
                f"decay is a name and a number, e.g. com 3, not {' '.join(self.decay)!r}"
            ) from None


class MovingAverage:
    """Execution of the interleaving of profiled resources by moving average models.

    The points of each uid, in the order of the independent field, are smoothed: each gets the mean or the
    median of those around it. Where no width of the window is given, it starts with a twentieth of the
    interval and shrinks until the coefficient of determination R^2 is 0.88.
    """

    name: ClassVar[str] = "moving_average"
    help: ClassVar[str] = "Execution of the interleaving of profiled resources by moving average models."
    Params: ClassVar[type] = MovingAverageParams
    command: ClassVar[str] = "perun.postprocess.moving_average.command:moving_average"

    def process(self, profile: Profile, params: MovingAverageParams, ctx: PostprocessContext) -> Profile:
        """Add a model of each uid to the `models` of the profile.

        :raises ProfileError: where the profile has not the fields, or no uid has points for a model.
        """

        add_models(
            profile, params.of_key, params.per_key, lambda x, y: _fitted(x, y, params), ctx.note, ctx.report
        )
        return profile


def _fitted(x: Floats, y: Floats, params: MovingAverageParams) -> Mapping[str, Any] | NoModel:
    from perun.models.result import NoModel

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
    from perun.models.moving import average
    from perun.models.moving.rolling import Window

    if params.moving_method == "ema":
        return average.exponential(x, y, *params.decay_value, params.min_periods)
    window = Window(params.center, params.min_periods)
    if params.moving_method == "smm":
        return average.median(x, y, params.window_width, window)
    kind = "" if params.window_type == _EVEN_WEIGHTS else params.window_type
    return average.simple(x, y, params.window_width, window, kind)
