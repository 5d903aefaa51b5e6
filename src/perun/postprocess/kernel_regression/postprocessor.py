"""The kernel regression postprocessor: adds an estimate for each uid to the profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from perun.plugin.api import PostprocessContext
from perun.postprocess._common.fitting import add_models, plain
from perun.postprocess.kernel_regression.params import KernelParams
from perun.wording import counted

if TYPE_CHECKING:
    from perun.models.kernel.points import Floats, KernelEstimate
    from perun.models.result import NoModel
    from perun.profile.factory import Profile

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
        from perun.models.result import NoModel

        raised: list[float] = []

        def fit(x: Floats, y: Floats) -> Mapping[str, Any] | NoModel:
            estimate = _estimate(x, y, params)
            if isinstance(estimate, NoModel):
                return estimate
            if _was_raised(estimate, params):
                raised.append(estimate.bandwidth)
            return _fields(estimate, params)

        add_models(profile, params.of_key, params.per_key, fit, ctx.note, ctx.report)
        if raised:
            ctx.note(
                f"the bandwidth {params.bandwidth_value:g} is too small for {counted(len(raised), 'model')}; "
                f"these have the smallest possible one instead, up to {max(raised):g}"
            )
        return profile


def _estimate(x: Floats, y: Floats, params: KernelParams) -> KernelEstimate | NoModel:
    from perun.models.kernel import gaussian
    from perun.models.kernel.ridge import ridge
    from perun.models.kernel.smoothing import Method, smoothing

    regression = cast("gaussian.Regression", params.reg_type)
    if params.kernel_mode == "user-selection":
        return gaussian.user_selection(x, y, params.bandwidth_value, regression)
    if params.kernel_mode == "method-selection":
        return gaussian.method_selection(x, y, cast("gaussian.Rule", params.bandwidth_method), regression)
    if params.kernel_mode == "kernel-smoothing":
        bandwidth = params.bandwidth_value or cast("gaussian.Rule", params.bandwidth_method)
        method = cast("Method", params.smoothing_method)
        return smoothing(x, y, params.kernel_type, method, bandwidth, params.polynomial_order)
    if params.kernel_mode == "kernel-ridge":
        return ridge(x, y, params.gammas)
    settings = gaussian.EstimatorSettings(
        regression,
        cast("gaussian.Criterion", params.bandwidth_method),
        params.efficient,
        params.randomize,
        params.n_sub_samples,
        params.n_re_samples,
        params.return_median,
    )
    return gaussian.estimator_settings(x, y, settings)


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
