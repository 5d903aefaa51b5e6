"""The kernel regression: which fields are taken, and what is noted of the estimates in the profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from perun.errors import ProfileError
from perun.plugin.api import PostprocessContext
from perun.postprocess.kernel_regression.params import KernelParams

if TYPE_CHECKING:
    from perun.profile.factory import Profile
    from perun.profile.models.kernel_points import Floats, KernelEstimate
    from perun.profile.models.result import NoModel

KINDS: Final = {
    "estimator-settings": "estimator",
    "user-selection": "estimator",
    "method-selection": "estimator",
    "kernel-smoothing": "smoothing",
    "kernel-ridge": "ridge",
}
"""What the field `kernel_mode` of a model says: the kind of estimate that a mode makes."""
_USUAL_OF: Final = "amount"
_NAMED: Final = 5
_EXACT: Final = 2.0**53


class KernelRegression:
    """Execution of the interleaving of profiles resources by kernel models."""

    name: ClassVar[str] = "kernel_regression"
    help: ClassVar[str] = "Execution of the interleaving of profiles resources by kernel models."
    Params: ClassVar[type] = KernelParams
    command: ClassVar[str] = "perun.postprocess.kernel_regression.command:kernel_regression"

    def process(self, profile: Profile, params: KernelParams, ctx: PostprocessContext) -> Profile:
        """Add an estimate for each uid to the `models` of the profile.

        :raises ProfileError: where the profile has not the fields, or no uid has points for an estimate.
        """
        from perun.profile.models.result import NoModel
        from perun.profile.series import chosen_keys, series

        of, per = chosen_keys(profile, params.of_key or None, params.per_key or None)
        _tell_keys(of, per, params, ctx)
        models: list[dict[str, Any]] = []
        notes: dict[str, list[str]] = {}
        groups = list(series(profile, of, per))
        for number, group in enumerate(groups):
            ctx.report(f"estimate of {group.uid}", number, len(groups))
            estimate = _estimate(group.x, group.y, params)
            if group.left_out:
                notes.setdefault("resources without both numbers were left out", []).append(group.uid)
            if isinstance(estimate, NoModel):
                notes.setdefault(f"no model, because {estimate.reason}", []).append(group.uid)
                continue
            if _was_raised(estimate, params):
                text = f"the bandwidth is too low, {estimate.bandwidth:g} was taken"
                notes.setdefault(text, []).append(group.uid)
            models.append(_model(group.uid, of, per, estimate, params))
        lines = [f"{_names(uids)}: {text}" for text, uids in notes.items()]
        if not models:
            reasons = "; ".join(lines[:_NAMED]) + ("; ..." if len(lines) > _NAMED else "")
            raise ProfileError(
                f"no model of {of!r} depending on {per!r} can be made: {reasons}",
                "name other fields with --of-key and --per-key",
            )
        for line in lines:
            ctx.note(line)
        profile["models"] = [*profile.get("models", ()), *models]
        return profile


def _estimate(x: Floats, y: Floats, params: KernelParams) -> KernelEstimate | NoModel:
    from perun.profile.models import kernel
    from perun.profile.models.kernel_ridge import ridge
    from perun.profile.models.kernel_smoothing import Method, smoothing

    regression = cast("kernel.Regression", params.reg_type)
    if params.kernel_mode == "user-selection":
        return kernel.user_selection(x, y, params.bandwidth_value, regression)
    if params.kernel_mode == "method-selection":
        return kernel.method_selection(x, y, cast("kernel.Rule", params.bandwidth_method), regression)
    if params.kernel_mode == "kernel-smoothing":
        bandwidth = params.bandwidth_value or cast("kernel.Rule", params.bandwidth_method)
        method = cast("Method", params.smoothing_method)
        return smoothing(x, y, params.kernel_type, method, bandwidth, params.polynomial_order)
    if params.kernel_mode == "kernel-ridge":
        return ridge(x, y, params.gammas)
    settings = kernel.EstimatorSettings(
        regression,
        cast("kernel.Criterion", params.bandwidth_method),
        params.efficient,
        params.randomize,
        params.n_sub_samples,
        params.n_re_samples,
        params.return_median,
    )
    return kernel.estimator_settings(x, y, settings)


def _was_raised(estimate: KernelEstimate, params: KernelParams) -> bool:
    given = params.kernel_mode == "kernel-smoothing" and params.bandwidth_value
    return bool(given) and estimate.bandwidth > params.bandwidth_value


def _model(uid: str, of: str, per: str, estimate: KernelEstimate, params: KernelParams) -> dict[str, Any]:
    model = {
        "uid": uid,
        "per_key": per,
        "method": "kernel_regression",
        "kernel_mode": KINDS[params.kernel_mode],
        "r_square": estimate.r_square,
        "bandwidth": estimate.bandwidth,
        "x_start": _plain(float(estimate.x[0])),
        "x_end": _plain(float(estimate.x[-1])),
        "kernel_stats": estimate.values.tolist(),
    }
    return model if of == _USUAL_OF else {**model, "of_key": of}


def _tell_keys(of: str, per: str, params: KernelParams, ctx: PostprocessContext) -> None:
    if not params.of_key:
        ctx.note(f"modelling {of!r}; --of-key names another field")
    if not params.per_key:
        ctx.note(f"depending on {per!r}; --per-key names another field")


def _plain(value: float) -> float:
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


def _names(uids: list[str]) -> str:
    named = ", ".join(map(repr, uids[:_NAMED]))
    return named if len(uids) <= _NAMED else f"{named} and {len(uids) - _NAMED} more"
