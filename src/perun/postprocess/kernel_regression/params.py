"""Parameters of the kernel regression: those of all its modes, of which each takes its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from perun.plugin.params import param
from perun.postprocess._common import params as common

MODES: Final = (
    "estimator-settings",
    "user-selection",
    "method-selection",
    "kernel-smoothing",
    "kernel-ridge",
)
"""Names of the modes in the order of the manual."""
BANDWIDTH_METHODS: Final = {
    "estimator-settings": ("cv_ls", "aic"),
    "method-selection": ("scott", "silverman"),
    "kernel-smoothing": ("scott", "silverman"),
}
"""Bandwidth methods of the modes that have any; the first one is taken where none is given."""
REGRESSIONS: Final = ("ll", "lc")
KERNELS: Final = ("epanechnikov", "tricube", "normal", "epanechnikov4", "normal4")
SMOOTHINGS: Final = ("spatial-average", "local-linear", "local-polynomial")
SMALLEST: Final = 1e-10
_MOST_GAMMAS: Final = 10_000
_ROUNDING: Final = 1e-9


@dataclass(frozen=True)
class KernelParams:
    """Parameters of the five modes; those of the other modes are ignored.

    :raises ValueError: where they do not fit together.
    """

    kernel_mode: str = param(
        MODES[0],
        metavar="<kernel_mode>",
        help="The way in which the estimate is made: " + ", ".join(MODES) + ".",
    )
    of_key: str = common.of_key()
    per_key: str = common.per_key()
    reg_type: str = param(
        REGRESSIONS[0],
        short="-rt",
        choices=REGRESSIONS,
        help='Provides the type for regression estimator. Supported types are: "lc": local-constant '
        '(Nadaraya-Watson) and "ll": local-linear estimator.',
    )
    bandwidth_method: str = param(
        "",
        short="-bm",
        help="Provides the method for bandwidth selection: cv_ls (least-squares cross validation) or aic "
        "(AIC Hurvich bandwidth estimation) in the mode estimator-settings; scott or silverman in the modes "
        "method-selection and kernel-smoothing. By default it is the first one of each.",
    )
    bandwidth_value: float = param(
        0.0,
        short="-bv",
        minimum=0,
        help="The float value of bandwidth defined by user, which will be used at kernel regression. With it "
        "the bandwidth method is ignored.",
    )
    efficient: bool = param(
        False,
        help="Executes the efficient bandwidth estimation - by taking smaller sub-samples and estimating the "
        "scaling factor of each sub-sample.",
    )
    randomize: bool = param(
        False,
        help="The bandwidth estimation is performed by taking random re-samples of size n_sub_samples from "
        "the full sample, not by slicing the full sample in sub-samples so that all samples are used once.",
    )
    n_sub_samples: int = param(50, short="-nsub", minimum=1, help="Size of the sub-samples.")
    n_re_samples: int = param(
        25,
        short="-nres",
        minimum=1,
        help="The number of random re-samples used to bandwidth estimation, if they are random.",
    )
    return_median: bool = param(
        False,
        help="The estimator uses the median of all scaling factors for each sub-sample to estimate bandwidth "
        "of the full sample, not the mean.",
    )
    kernel_type: str = param(
        KERNELS[0],
        short="-kt",
        choices=KERNELS,
        help="Provides the set of kernels to execute the kernel-smoothing with kernel selected by the user.",
    )
    smoothing_method: str = param(
        SMOOTHINGS[0],
        short="-sm",
        choices=SMOOTHINGS,
        help="Provides kernel smoothing methods to executing non-parametric regressions.",
    )
    polynomial_order: int = param(
        3, short="-q", minimum=1, help="Provides order of the polynomial to fit by local-polynomial."
    )
    gamma_range: tuple[str, ...] = param(
        ("1e-05", "0.0001"),
        short="-gr",
        help="Two numbers: gamma is chosen from the first one up to, but without, the second one.",
    )
    gamma_step: float = param(
        1e-5,
        short="-gs",
        minimum=SMALLEST,
        help="The size of the step of the iteration over the gamma range. If it is greater than the length "
        "of the range, it is set to the lower bound of the range.",
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
        if mode == "user-selection" and not self.bandwidth_value:
            raise ValueError(f"{mode} needs a bandwidth_value")
        if 0 < self.bandwidth_value < SMALLEST or self.bandwidth_value == float("inf"):
            raise ValueError(f"bandwidth_value must be a number from {SMALLEST:g} on")
        if mode == "kernel-ridge":
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
        if number > _MOST_GAMMAS:
            raise ValueError(f"gamma_range has {number:.0f} steps of {step:g}, more than {_MOST_GAMMAS}")
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
