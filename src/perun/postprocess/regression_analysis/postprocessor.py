"""The regression analysis: which fields and models are taken, and what is noted of them in the profile."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from perun.errors import ProfileError
from perun.plugin.api import PostprocessContext
from perun.plugin.params import param
from perun.postprocess._common.fitting import names, plain, store

if TYPE_CHECKING:
    from perun.models.regression.fits import Fit
    from perun.profile.factory import Profile

METHODS: Final = ("full", "iterative", "interval", "initial_guess", "bisection")
MODELS: Final = ("constant", "exponential", "linear", "logarithmic", "power", "quadratic")
_ALL: Final = "all"
_USUAL_KEYS: Final = {"of_key": "amount", "per_key": "structure-unit-size"}
_OPTIONS: Final = ("--of", "--depending-on")
_SHOWN_REASONS: Final = 5
_TEXT: Final = """\
Estimates the amount of resources depending on the size of a structure, or any field with numbers depending
on any other. Fields that are not named are looked up in the profile, and told.

The methods:

\b
full           all models, of all points
iterative      the best model of some of the points gets more points, until
               another is better or it has them all
interval       the best model of each of --steps parts
initial_guess  the model that is the best for the first of --steps parts
bisection      the best model; of both halves where theirs are others, and so on

The models are constant, linear, logarithmic, quadratic, power and exponential; the coefficient of
determination R^2 measures how well they fit. Where the data are not suitable, see the clusterizer.
"""


@dataclass(frozen=True)
class RegressionParams:
    """The method, the models that it tries, and the two fields; fields not named are looked up."""

    method: str = param(
        dataclasses.MISSING,
        short="-m",
        choices=METHODS,
        help="Will use the <method> to find the best fitting models for the given profile.",
    )
    regression_models: tuple[str, ...] = param(
        (),
        short="-r",
        long="--regression_models",
        choices=(_ALL, *MODELS),
        help="Restricts the list of regression models used by the specified <method> to fit the data. If "
        "omitted, all regression models will be used in the computation.",
    )
    steps: int = param(
        3,
        short="-s",
        minimum=1,
        help="Restricts the number of steps / data parts used by the iterative, interval and initial guess "
        "methods.",
    )
    depending_on: str = param(
        "",
        short="-dp",
        metavar="<depending_on>",
        help="Sets the key that will be used as a source of independent variable.",
    )
    of: str = param(
        "",
        short="-o",
        metavar="<of_resource_key>",
        help="Sets key for which we are finding the model.",
    )
    seed: int = param(
        0,
        minimum=0,
        help="Another random order of the points for the iterative and initial guess methods.",
    )

    @property
    def chosen_models(self) -> tuple[str, ...]:
        """The names of the models to be tried, each once."""
        named = self.regression_models
        return MODELS if not named or _ALL in named else tuple(dict.fromkeys(named))


class RegressionAnalysis:
    """Makes models of each uid: one field of its resources as a function of another one."""

    name: ClassVar[str] = "regression_analysis"
    help: ClassVar[str] = "Finds fitting regression models to estimate models of profiled resources."
    text: ClassVar[str] = _TEXT
    Params: ClassVar[type] = RegressionParams
    command: ClassVar[str] = "perun.postprocess.regression_analysis.command:regression_analysis"

    def process(self, profile: Profile, params: RegressionParams, ctx: PostprocessContext) -> Profile:
        """Add the models of each uid to the `models` of the profile.

        :raises ProfileError: where the profile has not the fields, or no uid has points for a model.
        """
        from perun.models.regression.methods import METHODS as FUNCTIONS
        from perun.models.regression.methods import Plan
        from perun.profile.series import chosen_keys, series

        taken = chosen_keys(profile, params.of or None, params.depending_on or None, _OPTIONS)
        keys = dict(zip(_USUAL_KEYS, taken, strict=True))
        _tell_keys(keys, params, ctx)
        plan = Plan(params.chosen_models, params.steps, params.seed)
        models: list[dict[str, Any]] = []
        gaps: dict[str, list[str]] = {}
        left_out: dict[str, int] = {}
        groups = list(series(profile, keys["of_key"], keys["per_key"]))
        for number, group in enumerate(groups):
            ctx.report(f"models of {group.uid}", number, len(groups))
            chosen = FUNCTIONS[params.method](group.x, group.y, plan)
            models += [_model(group.uid, params.method, fit, keys) for fit in chosen.fits]
            for gap in chosen.gaps:
                gaps.setdefault(gap, []).append(group.uid)
            if group.left_out:
                left_out[group.uid] = group.left_out
        lines = _lines(gaps, left_out)
        if not models:
            raise _nothing(keys, lines)
        for line in lines:
            ctx.note(line)
        store(profile, models)
        return profile


def _tell_keys(keys: Mapping[str, str], params: RegressionParams, ctx: PostprocessContext) -> None:
    taken = [] if params.of else [f"--of {keys['of_key']!r}"]
    taken += [] if params.depending_on else [f"--depending-on {keys['per_key']!r}"]
    if taken:
        ctx.note("taken from the profile: " + ", ".join(taken))


def _model(uid: str, method: str, fit: Fit, keys: Mapping[str, str]) -> dict[str, Any]:
    model: dict[str, Any] = {
        "uid": uid,
        "model": fit.model,
        "method": method,
        "r_square": fit.r_square,
        "x_start": plain(fit.x_start),
        "x_end": plain(fit.x_end),
        "coeffs": [{"name": f"b{number}", "value": value} for number, value in enumerate(fit.coefficients)],
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
        what = f"{count} of the resources left out, for want of a number in both fields"
        lines.append(f"{names(list(left_out))}: {what}")
    return lines


def _nothing(keys: Mapping[str, str], lines: Sequence[str]) -> ProfileError:
    reasons = "; ".join(lines[:_SHOWN_REASONS]) + ("; ..." if len(lines) > _SHOWN_REASONS else "")
    return ProfileError(
        f"no model of {keys['of_key']!r} depending on {keys['per_key']!r} can be made: {reasons}",
        "name other fields with --of and --depending-on, or postprocess the profile by clusterizer first "
        "and make models depending on 'cluster'",
    )
