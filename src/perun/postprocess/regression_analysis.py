"""Regression analysis: models of the resources of each uid, depending on another field (manual 5.1.2)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from perun.core.errors import ProfileError
from perun.core.wording import counted
from perun.plugin.api import PostprocessContext
from perun.plugin.params import param
from perun.postprocess._common import measured, names, note_keys, plain, store
from perun.profile.factory import Profile

if TYPE_CHECKING:
    from perun.models.regression.fits import Fit


METHODS: Final = ("full", "iterative", "interval", "initial_guess", "bisection")
MODELS: Final = ("constant", "exponential", "linear", "logarithmic", "power", "quadratic")
_ALL: Final = "all"
_USUAL_KEYS: Final = {"of_key": "amount", "per_key": "structure-unit-size"}
_OPTIONS: Final = ("--of", "--depending-on")
_SHOWN_REASONS: Final = 5


@dataclass(frozen=True)
class RegressionParams:
    """The method, the models to try, and the two fields, which are chosen from the profile by default."""

    method: str = param(
        dataclasses.MISSING,
        short="-m",
        choices=METHODS,
        help="How to find the best models; see above.",
    )
    regression_models: tuple[str, ...] = param(
        (),
        short="-r",
        long="--regression_models",
        alias="--regression-models",
        choices=(_ALL, *MODELS),
        help="Try only this model; may be repeated. By default all are tried.",
    )
    steps: int = param(
        3,
        short="-s",
        minimum=1,
        help="The number of steps of the method iterative, or of parts of the data of interval and "
        "initial_guess.",
    )
    depending_on: str = param(
        "",
        short="-dp",
        metavar="<depending_on>",
        help="The independent field (X) of the models. By default it is chosen from the profile.",
    )
    of: str = param(
        "",
        short="-o",
        alias="--of-key",
        metavar="<of_resource_key>",
        help="The dependent field (Y) of the models. By default it is chosen from the profile.",
    )
    seed: int = param(
        0,
        minimum=0,
        help="The seed of the random order of points in the methods iterative and initial_guess.",
    )

    @property
    def chosen_models(self) -> tuple[str, ...]:
        """The names of the models to try, each once."""
        named = self.regression_models
        return MODELS if not named or _ALL in named else tuple(dict.fromkeys(named))


class RegressionAnalysis:
    """Fits formulas to the resources of each uid: one field as a function of another one.

    What was measured of a uid in several ways, such as real and user time, gets models of its own each.

    For example the amount as a function of the size of a structure. Fields that are not named are chosen from
    the profile, and a note says which.

    The methods:

    \b
    full           all models, fitted to all points
    iterative      the best model of some points gets more points, until another
                   one is better, or until it has all points
    interval       the best model of each of --steps parts of the points
    initial_guess  the best model of the first of --steps parts, fitted to all
    bisection      the best model; and if the halves have other best models,
                   those of the halves, and so on

    The models are constant, linear, logarithmic, quadratic, power and exponential. The coefficient of
    determination R^2 measures how well they fit. If the data have no suitable field, use the clusterizer
    first.
    """

    name: ClassVar[str] = "regression_analysis"
    help: ClassVar[str] = "Fits formulas to the resources of each uid, e.g. time by size."
    Params: ClassVar[type] = RegressionParams

    def process(self, profile: Profile, params: RegressionParams, ctx: PostprocessContext) -> Profile:
        """Add the models of each uid to the `models` of the profile.

        :raises ProfileError: where the profile has not the fields, or no uid has points for a model.
        """
        from perun.models.regression.methods import METHODS as FUNCTIONS
        from perun.models.regression.methods import RegressionOptions
        from perun.profile.series import chosen_keys, series

        fields = chosen_keys(profile, params.of or None, params.depending_on or None, _OPTIONS)
        keys = dict(zip(_USUAL_KEYS, fields, strict=True))
        note_keys(ctx, ("--of", params.of, fields[0]), ("--depending-on", params.depending_on, fields[1]))
        plan = RegressionOptions(params.chosen_models, params.steps, params.seed)
        models: list[dict[str, Any]] = []
        gaps: dict[str, list[str]] = {}
        left_out: dict[str, int] = {}
        groups = list(series(profile, keys["of_key"], keys["per_key"], separate=True))
        for number, group in enumerate(groups):
            ctx.report(f"models of {group.location}", number, len(groups))
            chosen = FUNCTIONS[params.method](group.x, group.y, plan)
            models += [{**measured(group), **_model(params.method, fit, keys)} for fit in chosen.fits]
            for gap in chosen.gaps:
                gaps.setdefault(gap, []).append(group.location)
            if group.left_out:
                left_out[group.location] = group.left_out
        lines = _lines(gaps, left_out)
        if not models:
            raise _no_model(keys, lines)
        for line in lines:
            ctx.note(line)
        store(profile, models)
        return profile


def _model(method: str, fit: Fit, keys: Mapping[str, str]) -> dict[str, Any]:
    model: dict[str, Any] = {
        "model": fit.model,
        "method": method,
        "r_square": fit.r_square,
        "x_start": plain(fit.x_start),
        "x_end": plain(fit.x_end),
        "coeffs": [{"name": f"b{number}", "value": value} for number, value in enumerate(fit.coefficients)],
        "explained": fit.explained,
        "points": fit.points,
    }
    if fit.left_out:
        model["points_left_out"] = fit.left_out
    if keys != _USUAL_KEYS:
        model.update(keys)
    return model


def _lines(gaps: Mapping[str, Sequence[str]], left_out: Mapping[str, int]) -> list[str]:
    lines = [f"{names(uids)}: {gap}" for gap, uids in gaps.items()]
    if left_out:
        count = sum(left_out.values())
        what = f"left out {counted(count, 'resource')} without a number in both fields"
        lines.append(f"{names(list(left_out))}: {what}")
    return lines


def _no_model(keys: Mapping[str, str], lines: Sequence[str]) -> ProfileError:
    reasons = "; ".join(lines[:_SHOWN_REASONS]) + ("; ..." if len(lines) > _SHOWN_REASONS else "")
    return ProfileError(
        f"no uid has a model of {keys['of_key']!r} depending on {keys['per_key']!r}: {reasons}",
        "name other fields with --of and --depending-on, or postprocess the profile by clusterizer first, "
        "and then by regression-analysis --depending-on cluster",
    )


PLUGIN = RegressionAnalysis
SUPPORTED_PROFILES = ["mixed|memory|time"]
