"""What a ratio with its interval means: the table of labels, as functions without state.

With L and U the bounds of the interval of the ratio and tau the threshold, a growth is

- severe where L > 1.25, and another metric or another measurement confirms it;
- a degradation where L > 1 + tau;
- maybe one where only L > 1, or only the bound of the weaker interval is, or where the program has two
  modes of which it merely takes the slower one more often;

and a decrease is the mirror image. Nothing changed where the whole interval lies within [1 / (1 + tau),
1 + tau]: that is a finding, not the lack of one. Everything else is unknown, and said so.

All that holds of pairs. Samples that were measured apart, one after the other, differ by what the machine did
meanwhile: the same work may take twice as long for seconds. There only what is beyond that is definite, and
what the table would call definite is a maybe.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from perun.models.two_samples.mode_shares import merely_shares
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.wording import counted

if TYPE_CHECKING:
    from perun.models.two_samples.ratio import Ratio

MAX_USEFUL: Final = 300
"""Measurements beyond which nobody is told to make so many."""


@dataclass(frozen=True)
class Thresholds:
    """Where the labels begin.

    :ivar threshold: share up to which a growth does not matter (tau); a decrease to 1 / (1 + tau) as well.
    :ivar severe: share from which on a growth is severe.
    :ivar confidence: of the interval that decides. :ivar weaker: of the one that decides on a maybe.
    :ivar apart: share up to which a growth is not definite where the samples are not pairs.
    :ivar exact: share up to which a growth of what is counted does not matter.
    """

    threshold: float = 0.02
    severe: float = 0.25
    confidence: float = 0.99
    weaker: float = 0.95
    apart: float = 1.0
    exact: float = 0.0


DEFAULTS: Final = Thresholds()
MORE_IS_BETTER: Final = "more of it is better"
"""What the rule of a mirrored label says."""
NOT_CONFIRMED: Final = "nothing else confirms that it is severe"
REPEATABLE: Final = 1e-4
"""Share of a whole up to which counts of one program may differ from run to run: the number of a process has
more digits, a timestamp is written differently."""


class Verdict(NamedTuple):
    """The label of a ratio.

    :param rule: a sentence that says which rule decided; of what is unknown, what would decide it.
    """

    change: PerformanceChange
    rule: str
    ratio: Ratio


def mirrored(change: PerformanceChange) -> PerformanceChange:
    """The label of a growth or decrease of what is better the larger it is: degradations and optimizations
    change places."""
    one, other = "Degradation", "Optimization"
    name = change.name
    swapped = name.replace(one, other) if one in name else name.replace(other, one)
    return PerformanceChange[swapped]


def mirror(info: DegradationInfo) -> DegradationInfo:
    """The same change with the :func:`mirrored` labels, of its parts as well."""
    turned = copy(info)
    turned.result = mirrored(info.result)
    parts = info.partial_intervals
    turned.partial_intervals = [(mirrored(kind), rate, start, end) for kind, rate, start, end in parts]
    turned.rule = "; ".join(filter(None, (info.rule, MORE_IS_BETTER)))
    return turned


class _Labels(NamedTuple):
    """The labels of one direction, and the words for it."""

    maybe: PerformanceChange
    definite: PerformanceChange
    severe: PerformanceChange
    side: str


_GROWTH: Final = _Labels(
    PerformanceChange.MaybeDegradation,
    PerformanceChange.Degradation,
    PerformanceChange.SevereDegradation,
    "above",
)
_DECREASE: Final = _Labels(
    PerformanceChange.MaybeOptimization,
    PerformanceChange.Optimization,
    PerformanceChange.SevereOptimization,
    "below",
)


def judge(
    ratio: Ratio,
    thresholds: Thresholds = DEFAULTS,
    *,
    weaker: Ratio | None = None,
    confirmed_by: str = "",
) -> Verdict:
    """The label of a ratio by the table of this module.

    A change is definite only if `ratio.p_value`, which may be adjusted for many tests, is small enough
    as well.

    :param weaker: the same ratio with the interval of `thresholds.weaker`.
    :param confirmed_by: the second metric or second measurement that agrees that the change is severe; empty
        where none does.
    """
    limit = 1 + thresholds.threshold
    if ratio.low >= 1 / limit and ratio.high <= limit:
        rule = f"{_interval(ratio)} lies within {1 / limit:.3g} to {limit:.3g}, the threshold"
        return Verdict(PerformanceChange.NoChange, rule, ratio)
    sides = (
        (_GROWTH, ratio.low, weaker.low if weaker else 0.0),
        (_DECREASE, _reciprocal(ratio.high), _reciprocal(weaker.high) if weaker else 0.0),
    )
    for labels, bound, weak_bound in sides:
        if bound > 1:
            return _found(ratio, thresholds, labels, bound, confirmed_by)
        if weak_bound > 1 and weaker is not None:
            rule = f"only {_interval(weaker)} lies {labels.side} 1; {_interval(ratio)} does not"
            return Verdict(labels.maybe, f"{rule}: {_more(ratio, thresholds)}", ratio)
    return Verdict(PerformanceChange.Unknown, _undecided(ratio, thresholds), ratio)


def judge_exact(
    baseline: float,
    target: float,
    sizes: tuple[int, int],
    thresholds: Thresholds = DEFAULTS,
    whole: float = 0.0,
) -> Verdict:
    """The label of what is counted, and was the same in each run of a version: no noise, so no interval.

    A growth of more than `thresholds.exact` is a degradation, one of more than `thresholds.severe` a severe
    one; a decrease mirrors that. Of what is a part of a whole, a difference of at most `thresholds.exact` of
    the whole, or :data:`REPEATABLE`, does not matter either, and one of at most `thresholds.threshold` of it
    is not severe: nobody minds that a function of nine instructions has twelve now.

    :param baseline: and :param target: the counts, not negative. :param sizes: how often each was measured.
    :param whole: what they are a part of; 0 where it is not known.
    """
    from perun.models.two_samples.ratio import Ratio

    quotient = 1.0 if baseline == target else target / baseline if baseline else math.inf
    same = baseline == target
    ratio = Ratio(quotient, quotient, quotient, float(same), 1.0, sizes, False, 1 + thresholds.exact)
    labels = _GROWTH if target > baseline else _DECREASE
    growth = quotient if target > baseline else _reciprocal(quotient)
    if same:
        return Verdict(PerformanceChange.NoChange, "both count the same", ratio)
    if growth <= 1 + thresholds.exact:
        rule = f"the counts differ by no more than the threshold of {100 * thresholds.exact:.3g} %"
        return Verdict(PerformanceChange.NoChange, rule, ratio)
    difference = abs(target - baseline)
    share = max(thresholds.exact, REPEATABLE)
    if difference <= share * whole:
        rule = f"the difference is no more than {share:.3%} of the whole"
        return Verdict(PerformanceChange.NoChange, rule, ratio)
    severe = growth > 1 + thresholds.severe and difference > thresholds.threshold * whole
    change = labels.severe if severe else labels.definite
    return Verdict(change, "this is counted, not timed: every difference beyond the threshold is one", ratio)


def _found(
    ratio: Ratio, thresholds: Thresholds, labels: _Labels, bound: float, confirmed_by: str
) -> Verdict:
    """The label of a ratio whose interval excludes 1.

    :param bound: the one nearest to 1 of the interval, as a ratio above 1.
    """
    limit = 1 + thresholds.threshold
    definite = limit if ratio.paired else max(limit, 1 + thresholds.apart)
    beyond = f"{_interval(ratio)} lies {labels.side} {_of_side(limit, labels):.3g}"
    if bound <= limit:
        rule = f"{_interval(ratio)} lies {labels.side} 1, but not {labels.side} {_of_side(limit, labels):.3g}"
        return Verdict(labels.maybe, f"{rule}: {_more(ratio, thresholds)}", ratio)
    if ratio.p_value > 1 - thresholds.confidence:
        chance = f"with a p-value of {ratio.p_value:.2g}, one of so many differences may be chance"
        rule = f"{beyond}, but {chance}"
        return Verdict(labels.maybe, rule, ratio)
    if merely_shares(ratio, limit):
        rule = f"{beyond}, but there are two modes, of which only the shares changed: {_shares(ratio)}"
        return Verdict(labels.maybe, rule, ratio)
    if bound <= definite:
        rule = (
            f"{beyond}, but not {labels.side} {_of_side(definite, labels):.3g}, and the two were measured "
            "apart, where the machine may make such a difference: perun compare measures them side by side"
        )
        return Verdict(labels.maybe, rule, ratio)
    rule = f"{_interval(ratio)} lies {labels.side} {_of_side(definite, labels):.3g}"
    if bound <= 1 + thresholds.severe:
        return Verdict(labels.definite, rule, ratio)
    severe = f"{_interval(ratio)} lies {labels.side} {_of_side(1 + thresholds.severe, labels):.3g}"
    if not confirmed_by:
        return Verdict(labels.definite, f"{severe}, but {NOT_CONFIRMED}", ratio)
    return Verdict(labels.severe, f"{severe}, and {confirmed_by} confirms it", ratio)


def _shares(ratio: Ratio) -> str:
    old, new = (
        f"{100 * modes.share:.0f} % in the slower one" if modes else "only one" for modes in ratio.modes
    )
    return f"{old} in the baseline, {new} in the target"


def _undecided(ratio: Ratio, thresholds: Thresholds) -> str:
    """Why nothing can be said, and what would change that."""
    reason = f"{_interval(ratio)} is too wide for a threshold of {100 * thresholds.threshold:.3g} %"
    if math.isinf(ratio.high):
        reason = f"{_count(ratio)} are too few for an interval of {100 * ratio.confidence:.4g} %"
    return f"{reason}: {_more(ratio, thresholds)}"


def _more(ratio: Ratio, thresholds: Thresholds) -> str:
    """What widens the interval, and how many measurements more would decide."""
    reasons = []
    if ratio.bimodal:
        reasons.append(f"there are two modes, {_shares(ratio)}; ")
    if ratio.correlation:
        reasons.append(f"a measurement depends on the one before (correlation {ratio.correlation:.2f}); ")
    if ratio.drift:
        reasons.append(f"they drift (rank correlation with their order {ratio.drift:+.2f}); ")
    return "".join(reasons) + _missing(ratio, thresholds)


def _missing(ratio: Ratio, thresholds: Thresholds) -> str:
    missing = more_needed(ratio, thresholds)
    if missing is None:
        return "even many more would hardly decide: measure what takes longer, or on a quieter machine"
    if ratio.paired:
        return f"about {counted(missing, 'more pair')} would decide"
    return f"about {counted(missing, 'more measurement')} of each would decide"


def more_needed(ratio: Ratio, thresholds: Thresholds = DEFAULTS) -> int | None:
    """How many more measurements of each side would decide with the noise of these; None for very many.

    The interval narrows with the square root of their number, and has to come off the nearer limit.
    """
    size = min(ratio.sizes)
    if not (ratio.low > 0 and ratio.high < math.inf):
        fewest = 8 if ratio.paired else 5  # of those an interval of 99 % can be made
        return max(fewest - size, 1)
    half = math.log(ratio.high / ratio.low) / 2
    limit = math.log1p(thresholds.threshold)
    distance = max(abs(abs(math.log(ratio.estimate)) - limit), limit / 2)
    needed = math.ceil(size * (half / distance) ** 2)
    return max(needed - size, 1) if needed <= MAX_USEFUL else None


def _count(ratio: Ratio) -> str:
    if ratio.paired:
        return counted(ratio.sizes[0], "pair")
    return f"{ratio.sizes[0]} and {counted(ratio.sizes[1], 'measurement')}"


def _interval(ratio: Ratio) -> str:
    return f"the {100 * ratio.confidence:.4g} % interval of the ratio, {ratio.low:.4g} to {ratio.high:.4g},"


def _of_side(limit: float, labels: _Labels) -> float:
    return limit if labels is _GROWTH else 1 / limit


def _reciprocal(value: float) -> float:
    return 1 / value if value else math.inf
