"""Integral Comparison: the areas under the models of baseline and target (manual 3.2.13)."""

from __future__ import annotations

from math import isfinite
from typing import ClassVar

from perun.check._common.differences import IntegralParams, ModelCheck, judged
from perun.check._common.model_pairs import ModelPair, parts
from perun.check._common.points import Runs, balance, relative_error, verdict
from perun.models.curves import integral
from perun.profile.changes import DegradationInfo


class IntegralComparison(ModelCheck[IntegralParams]):
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

    TYPE: ClassVar[str] = "integral"

    def compared(self, pair: ModelPair, params: IntegralParams, runs: Runs) -> DegradationInfo:
        """The change of the integrals over the parts of x that both models have in common."""
        common = parts(pair.baseline, pair.target)
        before = sum(integral(part.baseline, part.start, part.end) for part in common)
        after = sum(integral(part.target, part.start, part.end) for part in common)
        if not (common and isfinite(before) and isfinite(after)):
            return pair.unknown(self.TYPE)
        change = verdict(float(balance(before, after)), params.limits)
        result = judged(pair, change, common, params, runs, sums=True)
        rate = float(relative_error(before, after))
        rate = rate if isfinite(rate) else 0.0
        length = sum(part.end - part.start for part in common)
        return pair.change(self.TYPE, result, (before / length, after / length), (rate, 100 * rate), common)


PLUGIN = IntegralComparison
