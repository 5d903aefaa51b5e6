"""Integral Comparison: the areas under the models of baseline and target (manual 3.2.13)."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING, ClassVar, Final

from perun.check._common.model_changes import IntegralParams
from perun.plugin.api import CheckContext
from perun.profile.changes import DegradationInfo

if TYPE_CHECKING:
    from perun.check._common.model_pairs import KindPair
    from perun.check._common.noise import Runs
    from perun.profile.factory import Profile

_TYPE: Final = "integral"


class IntegralComparison:
    """Reports every uid that has models, also the unchanged ones.

    The rate of a change is (target - baseline) / |baseline| of the integrals over the x that both models have
    in common, its relative rate the same in percent. Growth is judged by that rate: up to 0.10 is no change,
    up to 0.25 maybe one. A decrease is judged as the growth that it undoes, by the difference relative to
    the smaller integral: a maybe starts below a rate of -0.0909 (-1/11), what is certain below -0.2. So
    exchanging baseline and target mirrors every verdict.

    Where the worse model of a pair has an `r_square` below 0.15, a change is Unknown. Unknown are as well
    models without a common x, and integrals of which one is 0. The models are chosen by `--models-type`.
    """

    name: ClassVar[str] = "integral_comparison"
    short: ClassVar[str] = "INT"
    help: ClassVar[str] = "Compares the areas under the models of each uid: 25 % more is a degradation."
    Params: ClassVar[type] = IntegralParams

    def compare(
        self, baseline: Profile, target: Profile, params: IntegralParams, ctx: CheckContext
    ) -> Iterator[DegradationInfo]:
        """Changes of type `integral`, uids in the order of their names.

        Where `--models-type` has several models of a uid compared, the type names the model besides.

        :raises ProfileError: where a profile has no models of the wanted kind.
        """
        from perun.check._common.model_pairs import DEFAULT, kind_pairs
        from perun.check._common.noise import Runs

        runs = Runs(baseline, target, params.apart)
        for pair in kind_pairs(baseline, target, ctx.models_type or DEFAULT):
            yield pair.without_comparison(_TYPE) if pair.unpaired else _compared(pair, params, runs)


def _compared(pair: KindPair, params: IntegralParams, runs: Runs) -> DegradationInfo:
    from perun.check._common.differences import judged
    from perun.check._common.model_pairs import parts
    from perun.check._common.points import RelativeLimits, balance, relative_error, verdict
    from perun.models.curves import integral

    common = parts(pair.baseline, pair.target)
    before = sum(integral(part.baseline, part.start, part.end) for part in common)
    after = sum(integral(part.target, part.start, part.end) for part in common)
    if not (common and isfinite(before) and isfinite(after)):
        return pair.without_comparison(_TYPE)
    limits = RelativeLimits(params.no_change, params.maybe)
    change = verdict(float(balance(before, after)), limits)
    measured = runs.measured(pair.uid, common, sums=True)
    change, rule = judged(change, common, params.r_square, measured, limits)
    rate = float(relative_error(before, after))
    length = sum(part.end - part.start for part in common)
    means = before / length, after / length
    info = pair.change(_TYPE, change, means, rate if isfinite(rate) else 0.0, common)
    info.rule = rule
    return info


PLUGIN = IntegralComparison
