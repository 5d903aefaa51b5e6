"""The command `kernel-regression` of `perun postprocessby`, with a sub-command for each mode (manual 3.4)."""

from __future__ import annotations

from typing import Any, Final

import click

from perun.postprocess.kernel_regression.params import (
    BANDWIDTH_METHODS,
    KERNELS,
    REGRESSIONS,
    SMALLEST,
    SMOOTHINGS,
    KernelParams,
)
from perun.postprocess.kernel_regression.postprocessor import KernelRegression

_KEYS: Final = "perun.postprocess.kernel_regression.keys"
_BANDWIDTHS: Final = click.FloatRange(min=SMALLEST)
_NUMBER: Final = click.IntRange(min=1)
_SEE_MANUAL: Final = "For more information about these types you can visit Perun Documentation."


class _Modes(click.Group):
    """A group whose commands may be spelled with underscores, too, as the names of the plugins may."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        return super().get_command(ctx, cmd_name.replace("_", "-"))


@click.group("kernel-regression", cls=_Modes)
@click.option(
    "-of",
    "--of-key",
    metavar="<of_resource_key>",
    default="",
    help="Sets key for which we are finding the model (y-coordinates).",
)
@click.option(
    "-per",
    "--per-key",
    metavar="<per_resource_key>",
    default="",
    help="Sets the key that will be used as a source variable (x-coordinates).",
)
@click.pass_context
def kernel_regression(context: click.Context, /, of_key: str, per_key: str) -> None:
    """Execution of the interleaving of profiles resources by *kernel* models.

    Kernel regression finds a relation between <per-key> (X) and <of-key> (Y) without assuming any formula for
    it: each point of the estimate is made of the points around it, which a kernel weights by their distance,
    in units of the bandwidth. The modes differ in how they choose the bandwidth.
    """
    context.meta[_KEYS] = {"of_key": of_key, "per_key": per_key}


_regression = click.option(
    "-rt",
    "--reg-type",
    type=click.Choice(REGRESSIONS),
    default=REGRESSIONS[0],
    show_default=True,
    help='Provides the type for regression estimator. Supported types are: "lc": local-constant '
    f'(Nadaraya-Watson) and "ll": local-linear estimator. {_SEE_MANUAL}',
)


@kernel_regression.command("estimator-settings")
@_regression
@click.option(
    "-bw",
    "--bandwidth-method",
    type=click.Choice(BANDWIDTH_METHODS["estimator-settings"]),
    default="cv_ls",
    show_default=True,
    help='Provides the method for bandwidth selection. Supported values are: "cv_ls": least-squares cross '
    'validation and "aic": AIC Hurvich bandwidth estimation.',
)
@click.option(
    "--efficient/--uniformly",
    default=False,
    help="If efficient, is executing the efficient bandwidth estimation - by taking smaller sub-samples and "
    "estimating the scaling factor of each sub-sample. If uniformly (default), all data is used at the same "
    "time.",
)
@click.option(
    "--randomize/--no-randomize",
    default=False,
    help="The bandwidth estimation is performed by taking <n_res> random re-samples of size <n-sub-samples> "
    "from the full sample. If not (default), it is performed by slicing the full sample in sub-samples of "
    "<n-sub-samples> size, so that all samples are used once.",
)
@click.option(
    "-nsub",
    "--n-sub-samples",
    type=_NUMBER,
    default=50,
    show_default=True,
    help="Size of the sub-samples.",
)
@click.option(
    "-nres",
    "--n-re-samples",
    type=_NUMBER,
    default=25,
    show_default=True,
    help="The number of random re-samples used to bandwidth estimation. It has effect only with --randomize.",
)
@click.option(
    "--return-median/--return-mean",
    default=False,
    help="The estimator uses the median of all scaling factors for each sub-sample to estimate bandwidth of "
    "the full sample. If not (default), the estimator uses the mean.",
)
@click.pass_context
def estimator_settings(context: click.Context, /, **options: Any) -> None:
    """Nadaraya-Watson kernel regression with specific settings for estimate.

    The bandwidth is the one that minimises the error of leaving one point out, or Hurvich's AIC.
    """
    _run(context, options)


@kernel_regression.command("user-selection")
@_regression
@click.option(
    "-bv",
    "--bandwidth-value",
    type=_BANDWIDTHS,
    required=True,
    help="The float value of <bandwidth> defined by user, which will be used at kernel regression.",
)
@click.pass_context
def user_selection(context: click.Context, /, **options: Any) -> None:
    """Nadaraya-Watson kernel regression with user bandwidth."""
    _run(context, options)


_rule = click.option(
    "-bm",
    "--bandwidth-method",
    type=click.Choice(BANDWIDTH_METHODS["method-selection"]),
    default="scott",
    show_default=True,
    help="Provides the helper method to determine the kernel bandwidth. The <bandwidth_method> will be used "
    "to compute the bandwidth, which will be used at kernel regression. Is ignored where the bandwidth is "
    "given as <bandwidth-value>.",
)


@kernel_regression.command("method-selection")
@_regression
@_rule
@click.pass_context
def method_selection(context: click.Context, /, **options: Any) -> None:
    """Nadaraya-Watson kernel regression with supporting bandwidth selection method.

    With A = min(standard deviation, interquartile range / 1.349) of X, Scott's rule is 1.059 A n^(-1/5), and
    Silverman's is 0.9 A n^(-1/5).
    """
    _run(context, options)


@kernel_regression.command("kernel-smoothing")
@click.option(
    "-kt",
    "--kernel-type",
    type=click.Choice(KERNELS),
    default=KERNELS[0],
    show_default=True,
    help="Provides the set of kernels to execute the `kernel-smoothing` with kernel selected by the user. "
    "For exact definitions of these kernels and more information about it, you can visit the Perun "
    "Documentation.",
)
@click.option(
    "-sm",
    "--smoothing-method",
    type=click.Choice(SMOOTHINGS),
    default=SMOOTHINGS[0],
    show_default=True,
    help="Provides kernel smoothing methods to executing non-parametric regressions: `local-polynomial` "
    "perform a local-polynomial regression in N-D using a user-provided kernel; `local-linear` perform a "
    "local-linear regression using a gaussian (normal) kernel; and `spatial-average` perform a "
    "Nadaraya-Watson regression on the data (so called local-constant regression) using a user-provided "
    "kernel.",
)
@_rule
@click.option(
    "-bv",
    "--bandwidth-value",
    type=_BANDWIDTHS,
    help="The float value of <bandwidth> defined by user, which will be used at kernel regression. If is "
    "entered in the combination with <bandwidth-method>, then method will be ignored.",
)
@click.option(
    "-q",
    "--polynomial-order",
    type=_NUMBER,
    default=3,
    show_default=True,
    help="Provides order of the polynomial to fit. Is accepted only by `local-polynomial` "
    "<smoothing-method>, another methods ignoring it.",
)
@click.pass_context
def kernel_smoothing(context: click.Context, /, bandwidth_value: float | None, **options: Any) -> None:
    """Kernel regression with different types of kernel and regression methods."""
    _run(context, {**options, "bandwidth_value": bandwidth_value or 0.0})


@kernel_regression.command("kernel-ridge")
@click.option(
    "-gr",
    "--gamma-range",
    type=float,
    nargs=2,
    default=(1e-5, 1e-4),
    show_default=True,
    help="Provides the range for automatic bandwidth selection of the kernel via leave-one-out "
    "cross-validation. One value from these range will be selected with minimizing the mean-squared error of "
    "leave-one-out cross-validation. The first value will be taken as the lower bound of the range and "
    "cannot be greater than the second value, which is not tried itself.",
)
@click.option(
    "-gs",
    "--gamma-step",
    type=_BANDWIDTHS,
    default=1e-5,
    show_default=True,
    help="Provides the size of the step, with which will be executed the iteration over the given "
    "<gamma-range>. Cannot be greater than length of <gamma-range>, else will be set to value of the lower "
    "bound of the <gamma_range>.",
)
@click.pass_context
def kernel_ridge(context: click.Context, /, gamma_range: tuple[float, float], **options: Any) -> None:
    """Nadaraya-Watson kernel regression with automatic bandwidth selection.

    The kernel is exp(-gamma (x - y)^2), and gamma the one of the range that is best in leave-one-out.
    """
    _run(context, {**options, "gamma_range": tuple(map(repr, gamma_range))})


def _run(context: click.Context, options: dict[str, Any]) -> None:
    mode = context.info_name or ""
    try:
        params = KernelParams(kernel_mode=mode, **context.meta[_KEYS], **options)
    except ValueError as problem:
        raise click.UsageError(str(problem)) from None
    context.obj.run_postprocessor(context.obj.profile, KernelRegression.name, params)
