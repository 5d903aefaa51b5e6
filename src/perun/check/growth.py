"""Growth: whether a function of a size has another order of growth, or another factor of the same one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from perun.check._common.points import MedianError, Runs
from perun.core.errors import ProfileError
from perun.measurement.difference import Rules, of_ratio
from perun.measurement.series import EXACT
from perun.measurement.verdict import Verdict, judge
from perun.models.growth.comparison import (
    APART,
    Curve,
    GrowthComparison,
    NotComparable,
    Quotient,
    compare,
    widened,
)
from perun.models.growth.forms import CONSTANT, Centres, centres
from perun.models.two_samples.ratio import Ratio
from perun.models.two_samples.sequential import benjamini_hochberg
from perun.plugin.api import CheckContext
from perun.plugin.params import param
from perun.profile import session
from perun.profile.amounts import readable, units
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile
from perun.profile.series import series, subtype_of
from perun.profile.uid import flatten, location

SIZES: Final = ("structure-unit-size", "workload")
"""Fields that are sizes, where none is named: the first that has numbers."""


class SizedPoints(NamedTuple):
    """The points of one location. `unit`: of the values; `exact`: whether they are counted, not timed."""

    points: Centres
    unit: str
    exact: bool


def sized(profile: Profile, of_key: str, per_key: str, what: str) -> dict[str, SizedPoints]:
    """The locations that were measured over sizes, and those without any size as ones without points.

    :param per_key: empty for one of :data:`SIZES`. :param what: which profile it is, for the error.
    :raises ProfileError: where there are resources, but not one with a value and a size.
    """
    known = dict(_known(profile))
    if not known:
        return {}
    problem: ProfileError | None = None
    for per in (per_key,) if per_key else SIZES:
        try:
            found = list(series(profile, of_key, per, separate=True))
        except ProfileError as error:
            problem = problem or error
            continue
        nothing = "", False
        return {
            one.location: SizedPoints(centres(one.x, one.y), *known.get(one.location, nothing))
            for one in found
        }
    assert problem is not None
    raise ProfileError(
        f"the {what} profile has no sizes: {problem.message}",
        "measure with a workload generator, or by 'perun collect complexity' or 'perun collect trace' with a "
        "size of each function; or name the field with degradation.growth.per_key",
    )


def _known(profile: Profile) -> Iterator[tuple[str, tuple[str, bool]]]:
    """Unit and exactness of each location."""
    unit_of = units(profile)
    for group in profile.groups():
        if not group.size:
            continue
        kind, subtype = group.constants.get("type"), group.constants.get("subtype")
        uid = group.columns.get("uid")
        names = {str(flatten(value)) for value in (uid or [group.constants.get("uid", "")])}
        for name in names:
            place = location(name, subtype_of(name, group))
            yield place, (unit_of(kind, subtype), bool(EXACT & {str(kind), str(subtype)}))


_ABSENT: Final = "-"
_NO_SIZES: Final = "no sizes"
EXACT_EVIDENCE: Final = 1000.0
"""What stands for the difference of AICc where counts leave no doubt."""
_MOST: Final = math.log(2)
"""Logarithm of the ratio that a machine makes of two runs at most, as of HLR."""
_NOTICEABLE: Final = 1.02
"""Growth at the largest size below which a change of what grows with the size is not felt."""


@dataclass(frozen=True)
class GrowthParams:
    """What is compared, and which changes matter."""

    of_key: str = param("amount", metavar="<key>", help="The field that depends on the size.")
    per_key: str = param(
        "",
        metavar="<key>",
        help="The field with the size; structure-unit-size, else workload, where none is given.",
    )
    threshold: float = param(
        0.1, metavar="<share>", minimum=0, help="Up to this much more, or less to undo it, does not matter."
    )
    confidence: float = param(
        0.99, metavar="<share>", minimum=0.5, help="Confidence of the intervals, below 1."
    )

    def __post_init__(self) -> None:
        if not 0.5 <= self.confidence < 1:
            raise ValueError(f"confidence must be at least 0.5 and below 1, not {self.confidence:g}")


class GrowthCheck:
    """Reports every uid that was measured over sizes, also the unchanged ones.

    * Type `order`: the order of growth is surely another one. The rate is the difference of the exponents of
      y = c0 + c1 n^b, a higher one is a Severe Degradation. Where the best forms surely differ, but the
      exponents do not by 0.2, it is a Maybe.
    * Type `factor`: the same order, but what grows with the size is more; the rate is the ratio of c1.
    * Type `level`: the curves differ, but what of them does is not clear; the rate is their ratio in the
      middle of the sizes.

    Factors and levels get the labels of :mod:`perun.measurement.verdict`: definite where the noise between
    the runs is known, or where the change is beyond what a machine may do between two measurements. It is
    known where both versions were measured side by side, or several times, or with other functions; see
    :mod:`perun.check._common.points`. The p-values are adjusted for the number of uids (Benjamini and
    Hochberg).
    """

    name: ClassVar[str] = "growth"
    short: ClassVar[str] = "GROW"
    help: ClassVar[str] = "Compares how functions grow with a size: another order, or another factor."
    Params: ClassVar[type] = GrowthParams

    def compare(
        self, baseline: Profile, target: Profile, params: GrowthParams, ctx: CheckContext
    ) -> Iterator[DegradationInfo]:
        """One change for each uid, in the order of their names, see :mod:`perun.models.growth.comparison`.

        :raises ProfileError: where a profile has resources, but none with a size.
        """
        old = sized(baseline, params.of_key, params.per_key, "baseline")
        new = sized(target, params.of_key, params.per_key, "target")
        pairs = [_Pair(uid, old.get(uid), new.get(uid)) for uid in sorted(old.keys() | new.keys())]
        alpha = 1 - params.confidence
        errors = _errors(baseline, target, params)
        found = [pair.compared(alpha, errors(pair.uid)) for pair in pairs]
        tested = [one for one in found if isinstance(one, GrowthComparison)]
        adjusted = iter(benjamini_hochberg([_p_value(one) for one in tested]).tolist())
        side_by_side = session.are_pairs(baseline, target)
        for pair, one in zip(pairs, found, strict=True):
            if isinstance(one, GrowthComparison):
                is_known = side_by_side or errors(pair.uid).value < math.inf
                yield _Judge(pair, one, next(adjusted), params, is_known).change()
            elif one is not None:
                yield one


def _errors(baseline: Profile, target: Profile, params: GrowthParams) -> Callable[[str], MedianError]:
    """A function of a location that gives the error of its log ratio by the runs of the two versions."""
    runs, of = Runs(baseline, target), params.of_key
    known = [key for key in SIZES if all(source.every(of, key) for source in runs.sources)]
    per = params.per_key or (known or SIZES)[0]
    return lambda uid: runs.between(uid, of, per)


class _Pair(NamedTuple):
    """One uid; None where a profile has not got it."""

    uid: str
    baseline: SizedPoints | None
    target: SizedPoints | None

    @property
    def exact(self) -> bool:
        """Whether the values are counted, not timed."""
        return self.target is not None and self.target.exact

    def compared(self, alpha: float, error: MedianError) -> GrowthComparison | DegradationInfo | None:
        """The comparison, or why there is none; None where there is nothing to say.

        :param error: of the log ratio, by the runs.
        """
        old, new = self.baseline, self.target
        if old is None or new is None:
            change = PerformanceChange.NotInBaseline if old is None else PerformanceChange.NotInTarget
            return DegradationInfo(change, self.uid, _values(old), _values(new))
        if not (old.points.measurements or new.points.measurements):
            return None
        found = compare(old.points, new.points, alpha, exact=old.exact and new.exact)
        if isinstance(found, NotComparable):
            return DegradationInfo(
                PerformanceChange.Unknown, self.uid, _values(old), _values(new), rule=found.reason
            )
        if self.exact or math.isinf(error.value):
            return found
        return widened(found, *error, most=_MOST, alpha=alpha)


class _Judge(NamedTuple):
    """What a comparison is reported as.

    :param p_value: adjusted for the number of comparisons.
    :param noise_is_known: whether the bounds hold the noise between the runs; otherwise what machines make of
        runs is not definite.
    """

    pair: _Pair
    found: GrowthComparison
    p_value: float
    params: GrowthParams
    noise_is_known: bool

    def change(self) -> DegradationInfo:
        """The most important thing that changed."""
        found = self.found
        if found.order.changed and self.p_value <= 1 - self.params.confidence:
            return self._order(_Labels.surely(found.order.difference.estimate > 0), self._surely())
        factor, level = self._verdict(found.factor), self._verdict(found.level)
        if _differs(factor):
            return self._ratio("factor", self._felt(factor))
        if _differs(level):
            return self._ratio("level", level)
        if found.order.doubtful:
            return self._order(_Labels.maybe(self._grows_faster()), self._perhaps())
        return self._ratio("level", self._unchanged(level))

    def _order(self, change: PerformanceChange, rule: str) -> DegradationInfo:
        order = self.found.order
        difference = order.difference
        return DegradationInfo(
            change,
            self.pair.uid,
            self._text(order.baseline),
            self._text(order.target),
            "order",
            difference.estimate,
            ct="aicc",
            cr=min(order.evidence, EXACT_EVIDENCE),
            interval=(difference.low, difference.high),
            p_value=self.p_value,
            sizes=self._sizes,
            rule=rule,
        )

    def _surely(self) -> str:
        order, (low, high) = self.found.order, self.found.sizes
        if math.isinf(order.evidence):
            return (
                f"{order.baseline.name} and {order.target.name} tell all counts of sizes {low:g} to {high:g}"
            )
        ends = sorted(map(abs, order.difference[1:3]))
        return (
            f"the exponents differ by {ends[0]:.2f} to {ends[1]:.2f}, more than {APART:g}, and two orders "
            f"explain the sizes {low:g} to {high:g} better than one (AICc {order.evidence:.0f} lower)"
        )

    def _perhaps(self) -> str:
        order = self.found.order
        if math.isinf(order.evidence):
            return (
                f"{order.baseline.name} and {order.target.name} tell the counts, but are close to each other"
            )
        return (
            f"{order.baseline.name} and {order.target.name} explain the sizes better than one form (AICc "
            f"{order.evidence:.0f} lower), but the exponents do not surely differ by {APART:g}: measure more "
            "sizes, over a wider range"
        )

    def _grows_faster(self) -> bool:
        order = self.found.order
        return order.difference.estimate > 0 or order.baseline.form == CONSTANT

    def _verdict(self, quotient: Quotient) -> Verdict:
        is_known = self.noise_is_known or self.pair.exact
        rules = Rules(threshold=self.params.threshold, severe=math.inf, confidence=self.params.confidence)
        ratio = Ratio(
            quotient.estimate,
            quotient.low,
            quotient.high,
            max(quotient.p_value, self.p_value),
            self.params.confidence,
            self._sizes,
            False,
            _detectable(quotient),
        )
        return judge(of_ratio(ratio, beside=0.0 if is_known else _MOST), rules)

    def _felt(self, verdict: Verdict) -> Verdict:
        """At most a maybe where the largest size takes about the same time."""
        ends = self.found.largest.estimate
        if abs(verdict.change.value) < 2 or max(ends, 1 / ends if ends else math.inf) >= _NOTICEABLE:
            return verdict
        reason = f"{verdict.reason}; but the largest size as a whole takes {ends:.3f} times the baseline only"
        return verdict._replace(change=_Labels.maybe(verdict.change.value < 0), reason=reason)

    def _unchanged(self, level: Verdict) -> Verdict:
        """No Change only where that is known at the largest size as well as in the middle."""
        largest = self._verdict(self.found.largest)
        return largest if level.change is PerformanceChange.NoChange else level

    def _ratio(self, kind: str, verdict: Verdict) -> DegradationInfo:
        found = verdict.difference
        reason = self.found.order.reason
        return DegradationInfo(
            verdict.change,
            self.pair.uid,
            self._text(self.found.baseline),
            self._text(self.found.target),
            kind,
            found.ratio,
            interval=(verdict.low, verdict.high),
            p_value=found.p_value,
            sizes=self._sizes,
            detectable=found.detectable,
            rule=verdict.reason + (f"; {reason}" if reason else ""),
        )

    def _text(self, curve: Curve) -> str:
        return _formula(curve, self.pair.baseline.unit if self.pair.baseline else "")

    @property
    def _sizes(self) -> tuple[int, int]:
        old, new = self.pair.baseline, self.pair.target
        return (old.points.measurements if old else 0, new.points.measurements if new else 0)


class _Labels:
    """The labels of changes of order."""

    @staticmethod
    def surely(worse: bool) -> PerformanceChange:
        """Of another order."""
        return PerformanceChange.SevereDegradation if worse else PerformanceChange.SevereOptimization

    @staticmethod
    def maybe(worse: bool) -> PerformanceChange:
        """Of perhaps another one."""
        return PerformanceChange.MaybeDegradation if worse else PerformanceChange.MaybeOptimization


def _p_value(found: GrowthComparison) -> float:
    """That of the order where it changed; else of the better one of two tests, of factor and level."""
    if found.order.changed:
        return found.order.difference.p_value
    return min(1.0, 2 * min(found.factor.p_value, found.level.p_value))


def _differs(verdict: Verdict) -> bool:
    """Whether it is a change, be it a doubtful one."""
    return verdict.change not in (PerformanceChange.NoChange, PerformanceChange.Unknown)


def _detectable(quotient: Quotient) -> float:
    """The growth that an interval as wide as this would have excluded with a probability of 80 %."""
    if not 0 < quotient.low <= quotient.high < math.inf:
        return math.inf
    half = math.log(quotient.high / quotient.low) / 2
    # The half width is some 2.6 standard errors, of which 0.84 more give the power.
    return math.exp(min(half * (1 + 0.84 / 2.58), 700.0))


def _values(one: SizedPoints | None) -> str:
    if one is None:
        return _ABSENT
    if not one.points.measurements:
        return _NO_SIZES
    return f"{one.points.measurements} values of sizes {one.points.x[0]:g} to {one.points.x[-1]:g}"


def _formula(curve: Curve, unit: str) -> str:
    """`12.5 µs + 2 µs * n log n`, or `12.5 µs` of what is level."""
    start = readable(curve.line.c0, unit)
    if curve.form == CONSTANT:
        return start
    falling = curve.exponent is not None and curve.exponent < 0
    if curve.linear:
        start += f" {'-' if curve.linear < 0 else '+'} {readable(abs(curve.linear), unit)} * n"
    return f"{start} {'-' if falling else '+'} {readable(curve.line.c1, unit)} * {curve.name}"


PLUGIN = GrowthCheck
