"""Parts of one whole that are judged together, as the functions of a program by samples of its CPU time.

Of many some differ by chance, so their p-values are adjusted for how many there are (Benjamini-Hochberg).
What is too small for any verdict is no part of that. How precise samples can be is known before there are
any: :meth:`Plan.samples_needed`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import NormalDist, median
from typing import Final, NamedTuple

from perun.core.wording import listed, plural
from perun.measurement.difference import POWER, Rules
from perun.measurement.estimate import Point
from perun.measurement.verdict import Verdict, is_change, judge, severity
from perun.models.student import quantile
from perun.models.two_samples.sequential import benjamini_hochberg
from perun.profile.amounts import percent, readable
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.uid import moved_to

LEAST_SHARE: Final = 0.005
"""The share of the whole below which a part is not judged: it has a sample in 200."""
CANCELS: Final = 0.25
"""The largest rest of a cost that moved, as a share of what moved."""
MOVED: Final = "moved"
"""Type of what is told of cost that went from some parts to others; the rule is the sentence."""
SHARE, EFFECT = 0.1, 0.1
"""The function, by its share of the time, and its change, of which a plan tells what they need."""
_RANKS: Final = 3 / math.pi
"""Efficiency of signed ranks relative to means, where differences are normal."""
_SHOWN: Final = 3
_SLACK: Final = 1.05
_FEWEST: Final = 10
"""Pairs at the first look."""
_OF_FILE: Final = re.compile(r"[^:]+:(?!:)")


def corrected(verdicts: Sequence[Verdict], rules: Rules) -> list[Verdict]:
    """The verdicts on many series; of changes that may be chance among so many a maybe is left."""
    adjusted, _ = among([one.difference.p_value for one in verdicts], 1 - rules.confidence)
    return [
        judge(one.difference._replace(p_value=chance), rules)
        if is_change(one) and chance > 1 - rules.confidence
        else one
        for one, chance in zip(verdicts, adjusted, strict=True)
    ]


def among(p_values: Sequence[float], alpha: float) -> tuple[list[float], float]:
    """The p-values adjusted for how many there are (Benjamini-Hochberg), and the share of `alpha` that each
    has to keep to: of those that exceed it once more.

    :raises ValueError: if a p-value is not from 0 to 1.
    """
    if not p_values:
        return [], 1.0
    adjusted = benjamini_hochberg(p_values).tolist()
    return adjusted, max(sum(one <= alpha for one in adjusted), 1) / len(adjusted)


def sum_of(point: Point) -> float:
    """That of what its rounds have measured."""
    return math.fsum(sample.median for one in point.rounds for sample in one.samples.values())


def share_of(part: Sequence[float], whole: Sequence[float]) -> float:
    """The larger share that a part has of the whole, of baseline and target. :param part: the sum of each."""
    return max((own / all_ for own, all_ in zip(part, whole, strict=True) if all_ > 0), default=0.0)


def renamed(old: Collection[str], new: Collection[str]) -> dict[str, str]:
    """By the location of a function in the target, the one in the baseline, where its file was renamed."""
    places = [{place_of(one): one for one in own} for own in (old, new)]
    return {places[1][now]: places[0][place] for place, now in moved_to(*places).items()}


def place_of(location: str) -> tuple[str, str]:
    """The source and the name of a function, by its location: `("list.c", "search")`."""
    found = _OF_FILE.match(location)
    return (found[0], location[found.end() :]) if found else ("", location)


def without_moved(found: Sequence[DegradationInfo], whole: str) -> list[DegradationInfo]:
    """What was found of parts, with one line in place of the changes of those whose cost went to others,
    where the whole has not changed.

    :param whole: its location, which is among them.
    """
    of_whole = next((one for one in found if one.location == whole), None)
    changed = {
        one.location: one.values[1] - one.values[0]
        for one in found
        if one is not of_whole and one.values is not None and abs(severity(one.result)) > 1
    }
    if of_whole is None or abs(severity(of_whole.result)) > 1 or not cancels(changed.values()):
        return list(found)
    lost, won = (
        sorted(
            (name for name, own in changed.items() if own * sign > 0), key=lambda name: -abs(changed[name])
        )
        for sign in (-1, 1)
    )
    amount = readable(math.fsum(changed[name] for name in won), of_whole.unit)
    line = DegradationInfo(
        PerformanceChange.NoChange, f"{listed(lost, _SHOWN)} -> {listed(won, _SHOWN)}", amount, amount, MOVED,
        rule=f"{amount} of each run moved from {listed(lost, _SHOWN)} to {listed(won, _SHOWN)}; the whole is "
        "the same",
    )  # fmt: skip
    return [*(one for one in found if one.location not in changed), line]


def cancels(deltas: Iterable[float]) -> bool:
    """Whether differences of several parts are about 0 together."""
    known = list(deltas)
    return len(known) > 1 and abs(math.fsum(known)) <= CANCELS * math.fsum(map(abs, known)) / 2


class Plan(NamedTuple):
    """How certain a verdict on one of several parts has to be.

    :param level: error probability of the look that decides. :param parts: how many are judged.
    :param threshold: as of :class:`~perun.measurement.difference.Rules`. :param pairs: of runs, of few of
        which the scatter is not well known, as Student's quantiles say.
    """

    level: float = 0.01
    parts: int = 1
    threshold: float = 0.0
    pairs: int = 1000

    def _limits(self) -> tuple[tuple[float, float], ...]:
        """What the logarithm of a ratio has to exceed, and by how many standard errors, to be found with
        :data:`~perun.measurement.difference.POWER`: the interval lies beyond the threshold, and the p-value
        is small enough for the first of so many."""
        # Of several parts both have to be, and either is missed in half of the cases that are left.
        found = NormalDist().inv_cdf(POWER if self.parts == 1 else (1 + POWER) / 2)
        freedom = max(self.pairs - 1, 1)
        return (
            (math.log1p(self.threshold), quantile(self.level, freedom) + found),
            (0.0, quantile(self.level / self.parts, freedom) + found),
        )

    def smallest(self, error: float) -> float:
        """The smallest growth that is found, as a share. :param error: of the logarithm of the ratio."""
        most = max(limit + factor * error for limit, factor in self._limits())
        return math.expm1(most) if most < 100 else math.inf

    def samples_needed(self, share: float = SHARE, effect: float = EFFECT) -> int:
        """How many samples of each side find that a function with this share of the CPU time takes more.

        Of n samples n p are in a function with the share p, with the variance n p (1 - p). Its CPU time is
        that share times the CPU time of the run, which is known. So the logarithm of the ratio of two
        versions has the variance (1 - p) / (n p) + (1 - q) / (n p (1 + e)), if the function, and with it the
        run, takes more by the effect e, and q = p (1 + e) / (1 + p e) is its new share. It is found with the
        probability 1 - beta where log(1 + e) is z(1 - alpha / 2) + z(1 - beta) standard errors beyond the
        threshold. Signed ranks need pi / 3 times as many as means.

        With alpha = 1 %, 80 %, p = e = 10 % and no threshold these are 23,000, 46 s at 499 Hz.

        :param effect: as a share, beyond the threshold.
        """
        return math.ceil(
            max(
                (factor / (math.log1p(effect) - limit)) ** 2 * _variance(share, effect)
                for limit, factor in self._limits()
            )
        )

    def told(self, cpu: float, wall: float, frequency: float, budget: float) -> str:
        """What a budget is enough for, before anything is measured.

        :param cpu: seconds of CPU time of a run. :param wall: that a pair takes.
        """
        pairs = max(math.ceil(self.samples_needed() / frequency / cpu), _FEWEST)
        needed = self._replace(pairs=pairs).samples_needed()
        pairs = max(math.ceil(needed / frequency / cpu), _FEWEST)
        there = max(int(budget / wall), 1)
        error = math.sqrt(_variance(SHARE, 0.0) / (there * cpu * frequency))
        enough = self._replace(pairs=there).smallest(error) if there >= _FEWEST else math.inf
        rest = f"is enough for {_percent(enough)}" if enough < math.inf else "is enough for none"
        what = f"a function with {_percent(SHARE)} of the time that takes {_percent(EFFECT)} more"
        return (
            f"{what} is found with a probability of {_percent(POWER)} after "
            f"{readable(needed / frequency, 's')} of CPU time of each side ({needed:,} samples at "
            f"{frequency:g} Hz): {plural(pairs, 'pair')}, --budget {math.ceil(pairs * wall * _SLACK)}; the "
            f"budget of {readable(budget, 's')} {rest}"
        )

    def told_after(self, shares: Mapping[float, float]) -> str:
        """The smallest changes that would have been found; empty where nobody knows.

        :param shares: of the parts, and the error of the logarithm of the ratio of each.
        """
        scales = [error / _odds(share) for share, error in shares.items() if 0 < share < 1]
        if not scales or not math.isfinite(median(scales)):
            return ""
        found = [(share, self.smallest(median(scales) * _odds(share))) for share in (0.5, SHARE, 0.01)]
        changes = ", ".join(f"{percent(own)} with {_percent(share)}" for share, own in found)
        return f"smallest change of a function that is found, by its share of the time: {changes}"


def error_of(verdict: Verdict, level: float) -> float:
    """The standard error of the logarithm of a ratio, by the smallest effect that it would have shown."""
    normal = NormalDist()
    factor = normal.inv_cdf(1 - level / 2) + normal.inv_cdf(POWER)
    return math.log(verdict.difference.detectable) / factor


def _variance(share: float, effect: float) -> float:
    """That of the logarithm of the ratio, times the number of samples of each side."""
    after = share * (1 + effect) / (1 + share * effect)
    return ((1 - share) + (1 - after) / (1 + effect)) / share / _RANKS


def _odds(share: float) -> float:
    return math.sqrt((1 - share) / share)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
