"""Parameters of the kernel regression: those of all its modes, of which each takes its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from perun.plugin.params import param
from perun.postprocess._common import params as common

MODES: Final = {
    "estimator-settings": """\
Nadaraya-Watson kernel regression with specific settings for estimate.

The bandwidth is the one that minimises the error of leaving one point out, or Hurvich's AIC.""",
    "user-selection": "Nadaraya-Watson kernel regression with user bandwidth.",
    "method-selection": """\
Nadaraya-Watson kernel regression with supporting bandwidth selection method.

With A = min(standard deviation, interquartile range / 1.349) of X, Scott's rule is 1.059 A n^(-1/5), and
Silverman's is 0.9 A n^(-1/5).""",
    "kernel-smoothing": "Kernel regression with different types of kernel and regression methods.",
    "kernel-ridge": """\
Nadaraya-Watson kernel regression with automatic bandwidth selection.

The kernel is exp(-gamma (x - y)^2), and gamma the one of the range that is best in leave-one-out.""",
}
"""Names of the modes in the order of the manual, and what they do."""
_SETTINGS, _BY_USER, _BY_METHOD, _SMOOTHING, _RIDGE = MODES
_CRITERIA: Final = ("cv_ls", "aic")
_RULES: Final = ("scott", "silverman")
BANDWIDTH_METHODS: Final = {_SETTINGS: _CRITERIA, _BY_METHOD: _RULES, _SMOOTHING: _RULES}
"""Bandwidth methods of the modes that have any; the first one is taken where none is given."""
REGRESSIONS: Final = ("ll", "lc")
KERNELS: Final = ("epanechnikov", "tricube", "normal", "epanechnikov4", "normal4")
SMOOTHINGS: Final = ("spatial-average", "local-linear", "local-polynomial")
SMALLEST: Final = 1e-10
_MAX_GAMMAS: Final = 10_000
_ROUNDING: Final = 1e-9
_BANDWIDTH: Final = "The float value of <bandwidth> defined by user, which will be used at kernel regression."
_RULE: Final = {
    "choices": _RULES,
    "default": _RULES[0],
    "help": "Provides the helper method to determine the kernel bandwidth. The <bandwidth_method> will be "
    "used to compute the bandwidth, which will be used at kernel regression. Is ignored where the bandwidth "
    "is given as <bandwidth-value>.",
}


@dataclass(frozen=True)
class KernelParams:
    """Parameters of the five modes; those of the other modes are ignored.

    :raises ValueError: where they do not fit together.
    """

    kernel_mode: str = param(
        _SETTINGS,
        metavar="<kernel_mode>",
        commands=MODES,
        required=True,
        help="The way in which the estimate is made: " + ", ".join(MODES) + ".",
    )
    of_key: str = common.of_key()
    per_key: str = common.per_key()
    reg_type: str = param(
        REGRESSIONS[0],
        short="-rt",
        choices=REGRESSIONS,
        modes=(_SETTINGS, _BY_USER, _BY_METHOD),
        help='Provides the type for regression estimator. Supported types are: "lc": local-constant '
        '(Nadaraya-Watson) and "ll": local-linear estimator. For more information about these types you can '
        "visit Perun Documentation.",
    )
    bandwidth_method: str = param(
        "",
        short="-bm",
        modes={
            _SETTINGS: {
                "short": "-bw",
                "choices": _CRITERIA,
                "default": _CRITERIA[0],
                "help": 'Provides the method for bandwidth selection. Supported values are: "cv_ls": '
                'least-squares cross validation and "aic": AIC Hurvich bandwidth estimation.',
            },
            _BY_METHOD: _RULE,
            _SMOOTHING: _RULE,
        },
        help="Provides the method for bandwidth selection: cv_ls (least-squares cross validation) or aic "
        "(AIC Hurvich bandwidth estimation) in the mode estimator-settings; scott or silverman in the modes "
        "method-selection and kernel-smoothing. By default it is the first one of each.",
    )
    bandwidth_value: float = param(
        0.0,
        short="-bv",
        minimum=SMALLEST,
        modes={
            _BY_USER: {"required": True},
            _SMOOTHING: {
                "help": f"{_BANDWIDTH} If is entered in the combination with <bandwidth-method>, then method "
                "will be ignored."
            },
        },
        help=_BANDWIDTH,
    )
    efficient: bool = param(
        False,
        long="--efficient/--uniformly",
        modes=(_SETTINGS,),
        help="If efficient, is executing the efficient bandwidth estimation - by taking smaller sub-samples "
        "and estimating the scaling factor of each sub-sample. If uniformly (default), all data is used at "
        "the same time.",
    )
    randomize: bool = param(
        False,
        long="--randomize/--no-randomize",
        modes=(_SETTINGS,),
        help="The bandwidth estimation is performed by taking <n_res> random re-samples of size "
        "<n-sub-samples> from the full sample. If not (default), it is performed by slicing the full sample "
        "in sub-samples of <n-sub-samples> size, so that all samples are used once.",
    )
    n_sub_samples: int = param(
        50, short="-nsub", minimum=1, modes=(_SETTINGS,), help="Size of the sub-samples."
    )
    n_re_samples: int = param(
        25,
        short="-nres",
        minimum=1,
        modes=(_SETTINGS,),
        help="The number of random re-samples used to bandwidth estimation. It has effect only with "
        "--randomize.",
    )
    return_median: bool = param(
        False,
        long="--return-median/--return-mean",
        modes=(_SETTINGS,),
        help="The estimator uses the median of all scaling factors for each sub-sample to estimate bandwidth "
        "of the full sample. If not (default), the estimator uses the mean.",
    )
    kernel_type: str = param(
        KERNELS[0],
        short="-kt",
        choices=KERNELS,
        modes=(_SMOOTHING,),
        help="Provides the set of kernels to execute the `kernel-smoothing` with kernel selected by the "
        "user. For exact definitions of these kernels and more information about it, you can visit the "
        "Perun Documentation.",
    )
    smoothing_method: str = param(
        SMOOTHINGS[0],
        short="-sm",
        choices=SMOOTHINGS,
        modes=(_SMOOTHING,),
        help="Provides kernel smoothing methods to executing non-parametric regressions: "
        "`local-polynomial` perform a local-polynomial regression in N-D using a user-provided kernel; "
        "`local-linear` perform a local-linear regression using a gaussian (normal) kernel; and "
        "`spatial-average` perform a Nadaraya-Watson regression on the data (so called local-constant "
        "regression) using a user-provided kernel.",
    )
    polynomial_order: int = param(
        3,
        short="-q",
        minimum=1,
        modes=(_SMOOTHING,),
        help="Provides order of the polynomial to fit. Is accepted only by `local-polynomial` "
        "<smoothing-method>, another methods ignoring it.",
    )
    gamma_range: tuple[str, ...] = param(
        ("1e-05", "0.0001"),
        short="-gr",
        parts=(float, float),
        modes=(_RIDGE,),
        help="Provides the range for automatic bandwidth selection of the kernel via leave-one-out "
        "cross-validation. One value from these range will be selected with minimizing the mean-squared "
        "error of leave-one-out cross-validation. The first value will be taken as the lower bound of the "
        "range and cannot be greater than the second value, which is not tried itself.",
    )
    gamma_step: float = param(
        1e-5,
        short="-gs",
        minimum=SMALLEST,
        modes=(_RIDGE,),
        help="Provides the size of the step, with which will be executed the iteration over the given "
        "<gamma-range>. Cannot be greater than length of <gamma-range>, else will be set to value of the "
        "lower bound of the <gamma_range>.",
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
            raise ValueError(f"bandwidth_value must be a number from {SMALLEST:g} on")
        if mode == _RIDGE:
            _ = self.gammas

    @property
    def gammas(self) -> list[float]:
        """The values that gamma is chosen from: lower bound + k step, below the upper bound, at least one.

        :raises ValueError: where the range is not two numbers above 0 in order, or they are too many.
        """
        low, high = _bounds(self.gamma_range)
        length = high - low
        step = low if self.gamma_step > length else self.gamma_step
        # Rounding shall not make one more of a range that is a whole number of steps long.
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
