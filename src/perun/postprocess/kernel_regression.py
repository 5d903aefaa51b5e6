"""Kernel regression: smooth curves through the resources of each uid, without a formula (manual 5.1.6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from perun.core.wording import counted
from perun.models.record import NoModel
from perun.plugin.api import PostprocessContext
from perun.plugin.params import param
from perun.postprocess import _common as common
from perun.postprocess._common import add_models, plain
from perun.profile.factory import Profile

if TYPE_CHECKING:
    from perun.models.kernel.estimates import Criterion, Rule
    from perun.models.kernel.local import Floats, KernelEstimate, Regression


MODES: Final = {
    "estimator-settings": """\
Kernel regression whose bandwidth an optimization finds.

The bandwidth minimizes the error of leave-one-out cross-validation, or Hurvich's AIC.""",
    "user-selection": "Kernel regression with the bandwidth --bandwidth-value.",
    "method-selection": """\
Kernel regression whose bandwidth a rule of thumb gives.

With A = min(standard deviation, interquartile range / 1.349) of X, Scott's rule is 1.059 A n^(-1/5), and
Silverman's is 0.9 A n^(-1/5).""",
    "kernel-smoothing": "Kernel smoothing with a choice of kernels and of regressions.",
    "kernel-ridge": """\
Nadaraya-Watson kernel regression with a Gaussian kernel, whose width cross-validation finds.

The kernel is exp(-gamma (x - y)^2). Of the values in --gamma-range, gamma is the one with the least error in
leave-one-out cross-validation.""",
}
"""The modes in the order of the manual, with their help."""
_SETTINGS, _BY_USER, _BY_METHOD, _SMOOTHING, _RIDGE = MODES
_CRITERIA: Final = ("cv_ls", "aic")
_RULES: Final = ("scott", "silverman")
BANDWIDTH_METHODS: Final = {_SETTINGS: _CRITERIA, _BY_METHOD: _RULES, _SMOOTHING: _RULES}
"""Bandwidth methods of the modes that have any; the first one is the default."""
REGRESSIONS: Final = ("ll", "lc")
KERNELS: Final = ("epanechnikov", "tricube", "normal", "epanechnikov4", "normal4")
SMOOTHINGS: Final = ("spatial-average", "local-linear", "local-polynomial")
SMALLEST: Final = 1e-10
_MAX_GAMMAS: Final = 10_000
_ROUNDING: Final = 1e-9
_BANDWIDTH: Final = "The bandwidth, in the unit of X."
_RULE: Final = {
    "choices": _RULES,
    "default": _RULES[0],
    "help": "The rule of thumb for the bandwidth. It has no effect with --bandwidth-value.",
}


@dataclass(frozen=True)
class KernelParams:
    """The parameters of all five modes; those of other modes are ignored.

    :raises ValueError: if a parameter is wrong, or is missing in its mode.
    """

    kernel_mode: str = param(
        _SETTINGS,
        metavar="<kernel_mode>",
        commands=MODES,
        required=True,
        help="How to choose the bandwidth and the kernel: " + ", ".join(MODES) + ".",
    )
    of_key: str = common.of_key()
    per_key: str = common.per_key()
    reg_type: str = param(
        REGRESSIONS[0],
        short="-rt",
        choices=REGRESSIONS,
        modes=(_SETTINGS, _BY_USER, _BY_METHOD),
        help="The estimator: lc (local-constant, Nadaraya-Watson) or ll (local-linear).",
    )
    bandwidth_method: str = param(
        "",
        short="-bm",
        modes={
            _SETTINGS: {
                "short": "-bw",
                "choices": _CRITERIA,
                "default": _CRITERIA[0],
                "help": "What the bandwidth minimizes: cv_ls (the error of least-squares cross-validation) "
                "or aic (Hurvich's AIC).",
            },
            _BY_METHOD: _RULE,
            _SMOOTHING: _RULE,
        },
        help="How to choose the bandwidth: cv_ls (least-squares cross-validation) or aic (Hurvich's AIC) in "
        "the mode estimator-settings; scott or silverman in the modes method-selection and "
        "kernel-smoothing. The first one of each is the default.",
    )
    bandwidth_value: float = param(
        0.0,
        short="-bv",
        minimum=SMALLEST,
        modes={
            _BY_USER: {"required": True},
            _SMOOTHING: {"help": f"{_BANDWIDTH} It takes precedence over --bandwidth-method."},
        },
        help=_BANDWIDTH,
    )
    efficient: bool = param(
        False,
        long="--efficient/--uniformly",
        modes=(_SETTINGS,),
        help="Estimate the bandwidth from sub-samples, which is faster, instead of from all points at once "
        "(the default).",
    )
    randomize: bool = param(
        False,
        long="--randomize/--no-randomize",
        modes=(_SETTINGS,),
        help="Draw the sub-samples at random, instead of slicing the points so that each is used once (the "
        "default). Only with --efficient.",
    )
    n_sub_samples: int = param(
        50, short="-nsub", minimum=1, modes=(_SETTINGS,), help="Number of points of a sub-sample."
    )
    n_re_samples: int = param(
        25,
        short="-nres",
        minimum=1,
        modes=(_SETTINGS,),
        help="Number of random sub-samples. Only with --randomize.",
    )
    return_median: bool = param(
        False,
        long="--return-median/--return-mean",
        modes=(_SETTINGS,),
        help="Use the median of the estimates of the sub-samples, instead of their mean (the default). Only "
        "with --efficient.",
    )
    kernel_type: str = param(
        KERNELS[0],
        short="-kt",
        choices=KERNELS,
        modes=(_SMOOTHING,),
        help="The kernel, which weights points by their distance.",
    )
    smoothing_method: str = param(
        SMOOTHINGS[0],
        short="-sm",
        choices=SMOOTHINGS,
        modes=(_SMOOTHING,),
        help="The regression: spatial-average (local-constant, Nadaraya-Watson), local-linear (always with "
        "the normal kernel) or local-polynomial.",
    )
    polynomial_order: int = param(
        3,
        short="-q",
        minimum=1,
        modes=(_SMOOTHING,),
        help="Degree of the polynomial. Only with --smoothing-method local-polynomial.",
    )
    gamma_range: tuple[str, ...] = param(
        ("1e-05", "0.0001"),
        short="-gr",
        parts=(float, float),
        modes=(_RIDGE,),
        help="The lower and the upper bound of gamma; the upper one is not tried itself.",
    )
    gamma_step: float = param(
        1e-5,
        short="-gs",
        minimum=SMALLEST,
        modes=(_RIDGE,),
        help="The distance between two values of gamma that are tried. If it is larger than the range, the "
        "lower bound takes its place.",
    )

    def __post_init__(self) -> None:
        mode = self.kernel_mode.replace("_", "-")
        if mode not in MODES:
            raise ValueError(f"kernel_mode must be one of {', '.join(MODES)}, not {self.kernel_mode!r}")
        object.__setattr__(self, "kernel_mode", mode)
        methods = BANDWIDTH_METHODS.get(mode)
        if methods:
            method = self.bandwidth_method.replace("-", "_") or methods[0]
            if method not in methods:
                raise ValueError(
                    f"bandwidth_method of {mode} must be one of {', '.join(methods)}, "
                    f"not {self.bandwidth_method!r}"
                )
            object.__setattr__(self, "bandwidth_method", method)
        if mode == _BY_USER and not self.bandwidth_value:
            raise ValueError(f"{mode} needs a bandwidth_value")
        if 0 < self.bandwidth_value < SMALLEST or self.bandwidth_value == float("inf"):
            raise ValueError(f"bandwidth_value must be a finite number of at least {SMALLEST:g}")
        if mode == _RIDGE:
            _ = self.gammas

    @property
    def gammas(self) -> list[float]:
        """The values of gamma to try: lower bound + k step below the upper bound, at least one.

        :raises ValueError: if the range is not two numbers above 0 in order, or has too many steps.
        """
        low, high = _bounds(self.gamma_range)
        length = high - low
        step = low if self.gamma_step > length else self.gamma_step
        # Without the factor, rounding may add a step to a range whose length is a multiple of the step.
        number = length / step * (1 - _ROUNDING)
        if number > _MAX_GAMMAS:
            raise ValueError(f"gamma_range has {number:.0f} steps of {step:g}, more than {_MAX_GAMMAS}")
        return [low + position * step for position in range(int(number) + 1)]


def _bounds(given: tuple[str, ...]) -> tuple[float, float]:
    try:
        low, high = (float(bound) for bound in given)
    except ValueError:
        raise ValueError(f"gamma_range must be two numbers, not {', '.join(map(repr, given))}") from None
    if not 0 < low <= high < float("inf"):
        raise ValueError(
            f"gamma_range must be two numbers above 0, the smaller one first, not {low:g} {high:g}"
        )
    return low, high


KINDS: Final = {
    "estimator-settings": "estimator",
    "user-selection": "estimator",
    "method-selection": "estimator",
    "kernel-smoothing": "smoothing",
    "kernel-ridge": "ridge",
}
"""Mode to the field `kernel_mode` of its models: the kind of estimate."""


class KernelRegression:
    """Fits smooth curves to the resources of each uid, without assuming a formula.

    Kernel regression finds a relation between <per-key> (X) and <of-key> (Y): each point of the estimate is
    an average of the points around it, which a kernel weights by their distance in units of the bandwidth.
    The modes differ in how they choose the bandwidth.
    """

    name: ClassVar[str] = "kernel_regression"
    help: ClassVar[str] = "Fits smooth curves to the resources of each uid, without assuming a formula."
    Params: ClassVar[type] = KernelParams

    def process(self, profile: Profile, params: KernelParams, ctx: PostprocessContext) -> Profile:
        """Add an estimate for each uid to the `models` of the profile.

        :raises ProfileError: where the profile has not the fields, or no uid has points for an estimate.
        """
        raised: list[float] = []

        def fit(x: Floats, y: Floats) -> Mapping[str, Any] | NoModel:
            estimate = _estimate(x, y, params)
            if isinstance(estimate, NoModel):
                return estimate
            if _was_raised(estimate, params):
                raised.append(estimate.bandwidth)
            return _fields(estimate, params)

        add_models(profile, params, ctx, fit)
        if raised:
            ctx.note(
                f"the bandwidth {params.bandwidth_value:g} is too small for {counted(len(raised), 'model')}; "
                f"these have the smallest possible one instead, up to {max(raised):g}"
            )
        return profile


def _estimate(x: Floats, y: Floats, params: KernelParams) -> KernelEstimate | NoModel:
    from perun.models.kernel import estimates
    from perun.models.kernel.estimates import EstimatorSettings, Method, ridge, smoothing

    regression = cast("Regression", params.reg_type)
    if params.kernel_mode == "user-selection":
        return estimates.user_selection(x, y, params.bandwidth_value, regression)
    if params.kernel_mode == "method-selection":
        return estimates.method_selection(x, y, cast("Rule", params.bandwidth_method), regression)
    if params.kernel_mode == "kernel-smoothing":
        bandwidth = params.bandwidth_value or cast("Rule", params.bandwidth_method)
        method = cast("Method", params.smoothing_method)
        return smoothing(x, y, params.kernel_type, method, bandwidth, params.polynomial_order)
    if params.kernel_mode == "kernel-ridge":
        return ridge(x, y, params.gammas)
    settings = EstimatorSettings(
        regression,
        cast("Criterion", params.bandwidth_method),
        params.efficient,
        params.randomize,
        params.n_sub_samples,
        params.n_re_samples,
        params.return_median,
    )
    return estimates.estimator_settings(x, y, settings)


def _was_raised(estimate: KernelEstimate, params: KernelParams) -> bool:
    given = params.kernel_mode == "kernel-smoothing" and params.bandwidth_value
    return bool(given) and estimate.bandwidth > params.bandwidth_value


def _fields(estimate: KernelEstimate, params: KernelParams) -> dict[str, Any]:
    return {
        "model": KernelRegression.name,
        "method": KernelRegression.name,
        "kernel_mode": KINDS[params.kernel_mode],
        "bandwidth": estimate.bandwidth,
        "kernel_stats": estimate.values.tolist(),
        "x_start": plain(float(estimate.x[0])),
        "x_end": plain(float(estimate.x[-1])),
        "r_square": estimate.r_square,
    }


PLUGIN = KernelRegression
SUPPORTED_PROFILES = ["mixed|memory|time"]
