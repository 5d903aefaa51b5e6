"""What a difference means, and what differs: the words over the intervals, and the invariants of both."""

from __future__ import annotations

import gzip
import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]

from perun.measurement import present
from perun.measurement.difference import (
    Basis,
    Difference,
    Rules,
    difference,
    hodges_lehmann,
    more_needed,
    of_counts,
)
from perun.measurement.estimate import (
    Kind,
    Point,
    Round,
    Sample,
    StandardError,
    combined,
    estimate,
    exp,
    median,
    point_of,
    sample_of,
)  # fmt: skip
from perun.measurement.noise import FEWEST, NOTHING, Noise, learn, scale, scales, shared, variance
from perun.measurement.verdict import (  # fmt: skip
    UNDECIDED,
    Verdict,
    along,
    compare,
    judge,
    mirrored,
    severity,
    untold_parts,
)
from perun.profile.changes import PerformanceChange as Change

WORSE = {Change.MaybeDegradation, Change.Degradation, Change.SevereDegradation}
BETTER = {Change.MaybeOptimization, Change.Optimization, Change.SevereOptimization}
DEFINITE = (WORSE | BETTER) - UNDECIDED
Rounds = Sequence[Any]
"""Of each round its values."""


def ratio(low: float, high: float, **fields: Any) -> Difference:
    """A difference of two versions in the same rounds; both intervals are the same where one is given."""
    made = Difference(
        math.sqrt(low * high), low, high, low, high, 0.001, 0.99, Basis.ROUNDS, (1.0, math.sqrt(low * high)),
        (20, 20),
    )  # fmt: skip
    return made._replace(**fields)


def at(rounds: Rounds, session: str = "s", kind: Kind = Kind.TIMED, workload: str = "") -> Point:
    """A version that was measured in these rounds of one session."""
    made = []
    for number, values in enumerate(rounds):
        sample = sample_of(values)
        assert sample is not None
        made.append(Round(session, number, {workload: sample}))
    return Point(tuple(made), kind)


def judged(old: Point, new: Point, noise: Noise = NOTHING, **rules: float) -> Verdict:
    found = compare(old, new, noise, Rules(**rules))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("low", "high", "change"),
    [
        (1.251, 1.40, Change.SevereDegradation),
        (1.249, 1.40, Change.Degradation),
        (1.021, 1.40, Change.Degradation),
        (1.019, 1.40, Change.MaybeDegradation),
        (0.99, 1.015, Change.NoChange),
        (1.001, 1.015, Change.NoChange),
        (0.99, 1.03, Change.Unknown),
        (0.5, 2.0, Change.Unknown),
        (0.7, 0.99, Change.MaybeOptimization),
        (0.7, 0.97, Change.Optimization),
        (0.5, 0.79, Change.SevereOptimization),
        (0.0, math.inf, Change.Unknown),
    ],
)
def test_the_table(low: float, high: float, change: Change) -> None:
    assert judge(ratio(low, high)).change is change


def test_the_weaker_interval_alone_is_a_maybe() -> None:
    wide = ratio(0.99, 1.2)
    assert judge(wide).change is Change.Unknown
    found = judge(wide._replace(weak_low=1.01, weak_high=1.15))
    assert (found.change, found.low, found.high) == (Change.MaybeDegradation, 1.01, 1.15)
    assert "95 %" in found.reason
    assert judge(ratio(0.99, 1.01, weak_low=1.001, weak_high=1.005)).change is Change.NoChange


def test_what_makes_a_maybe_of_a_definite_word() -> None:
    assert judge(ratio(1.3, 1.4, p_value=0.2)).change is Change.MaybeDegradation
    found = judge(ratio(1.3, 1.4, doubt="there are two modes"))
    assert found.change is Change.MaybeDegradation and found.reason.endswith("but there are two modes")
    found = judge(ratio(1.3, 1.4, unknown="the base differs from itself"))
    assert (found.change, found.reason) == (Change.Unknown, "the base differs from itself")


@given(st.floats(0.01, 100), st.floats(0, 1), st.floats(0, 0.05), st.floats(0.001, 0.5))
def test_the_label_of_the_inverse_is_the_mirrored_label(
    low: float, width: float, p_value: float, threshold: float
) -> None:
    high = low * math.exp(width)
    limit = 1 + threshold
    for edge in (limit, 1.25, 1.0):  # at a limit itself, rounding decides
        for bound in (low, high):
            assume(abs(abs(math.log(bound)) - math.log(edge)) > 1e-9)
    one, other = ratio(low, high, p_value=p_value), ratio(1 / high, 1 / low, p_value=p_value)
    first, second = (judge(each, Rules(threshold=threshold)) for each in (one, other))
    assert severity(first.change) == -severity(second.change)
    assert second.change is mirrored(first.change)
    assert first.reason and "\n" not in first.reason
    # Nothing is called unchanged that may have changed by more than the threshold.
    assert (first.change is Change.NoChange) == (low >= 1 / limit and high <= limit)
    assert judge(one, Rules(threshold=threshold), larger_is_better=True).change is second.change


@pytest.mark.parametrize(
    ("old", "new", "exact", "whole", "change"),
    [
        (100, 100, 0, 0, Change.NoChange),
        (1000, 1001, 0, 0, Change.Degradation),
        (1000, 1001, 0.001, 0, Change.NoChange),
        (1000, 999, 0, 0, Change.Optimization),
        (100, 126, 0, 0, Change.SevereDegradation),
        (126, 100, 0, 0, Change.SevereOptimization),
        (0, 8, 0, 0, Change.SevereDegradation),
        (8, 0, 0, 0, Change.SevereOptimization),
        (0, 0, 0, 0, Change.NoChange),
        # What is a part matters as much as it is of the whole.
        (9, 20, 0, 1e6, Change.NoChange),
        (9, 209, 0, 1e6, Change.Degradation),
        (209, 9, 0, 1e6, Change.Optimization),
        (0, 209, 0, 1e6, Change.Degradation),
        (9, 2_009, 0.001, 1e6, Change.Degradation),
        (9, 1_009, 0.001, 1e6, Change.NoChange),
        (9, 20_010, 0, 1e6, Change.SevereDegradation),
        (1_000_000, 1_000_090, 0, 1e6, Change.NoChange),
        (1_000_000, 1_005_000, 0.001, 1e6, Change.Degradation),
    ],
)
def test_what_is_counted_has_a_threshold_of_its_own(
    old: float, new: float, exact: float, whole: float, change: Change
) -> None:
    assert judge(of_counts((old, new), (1, 1)), Rules(exact=exact), whole=whole).change is change


def test_the_threshold_of_what_is_counted_is_said_in_percent() -> None:
    found = judge(of_counts((1000, 1010), (1, 1)), Rules(exact=0.015))
    assert "the threshold of 1.5 %" in found.reason


@given(st.integers(1, 10**12), st.integers(1, 4))
def test_equal_counts_are_no_change_without_any_width(count: int, runs: int) -> None:
    one = at([[float(count)] * runs], kind=Kind.COUNTED)
    found = judged(one, at([[float(count)]], "t", Kind.COUNTED))
    assert found.change is Change.NoChange
    assert (found.difference.ratio, found.low, found.high) == (1, 1, 1)
    assert estimate(one)[:3] == (count, count, count)


def test_zero_is_a_value() -> None:
    nothing, some = at([[0.0] * 5], kind=Kind.COUNTED), at([[8.0] * 5], "t", Kind.COUNTED)
    assert judged(nothing, some).change is Change.SevereDegradation
    assert judged(nothing, nothing).change is Change.NoChange
    times, later = at([[0.0] * 6]), at([[1.0, 1.01, 1.02, 1.0, 0.99, 1.01]], "t")
    for noise in (NOTHING, Noise(numbers=StandardError(0.1, 20))):
        assert judged(times, later, noise).change is Change.Degradation
    assert judged(times, later, Noise(numbers=StandardError(1.0, 20))).change is Change.Unknown
    found = judged(times, later)
    assert found.change is Change.Degradation and math.isnan(found.difference.ratio)
    assert found.difference.delta is not None and found.difference.delta[1] > 0
    assert estimate(times).value == 0
    found = judged(times, times)
    assert (found.change, found.low, found.high) == (Change.NoChange, 1, 1)
    mostly = judged(at([[0.0, 0.0, 0.0, 0.5]]), at([[0.0, 0.0, 0.0, 0.7]], "t"))
    assert mostly.change is Change.Unknown  # a median of 0 is not all that is known


@pytest.mark.parametrize(
    ("few", "missing"),
    [
        (ratio(0.0, 2.0, sizes=(5, 5)), 3),
        (ratio(0.5, math.inf, sizes=(8, 8)), 1),
        (ratio(0.96, 1 / 0.96), 65),  # 20 * (ln(1 / 0.96) / ln 1.02)^2 = 84.99
        (ratio(1.02 * 0.98, 1.02 / 0.98), 64),  # at the limit: 20 * (ln(1 / 0.98) / (ln 1.02 / 2))^2 = 83.3
        (ratio(0.96 / 1.1, 1 / 0.96 / 1.1), 1),  # far from the limit
        (ratio(0.96, 1 / 0.96, sizes=(70, 71)), 228),  # 297.5 in all
        (ratio(0.96, 1 / 0.96, sizes=(71, 71)), None),  # 301.7 in all
    ],
)
def test_how_many_measurements_are_missing(few: Difference, missing: int | None) -> None:
    assert more_needed(few) == missing


def test_rounds_and_sessions_are_counted_where_they_scatter() -> None:
    by_rounds = ratio(0.96, 1 / 0.96, sizes=(50, 50))._replace(rounds=5)
    assert more_needed(by_rounds) == 17  # 5 * (ln(1 / 0.96) / ln 1.02)^2 = 21.2
    assert judge(by_rounds).reason.endswith("about 17 more rounds of both would decide")
    sessions = ratio(0.96, 1 / 0.96, basis=Basis.SESSIONS)._replace(rounds=2)
    assert judge(sessions).reason.endswith("about 7 more sessions of both would decide")
    earlier = judge(ratio(0.96, 1 / 0.96, basis=Basis.HISTORY)).reason
    assert earlier.endswith("perun compare measures them side by side")


@pytest.mark.parametrize(
    ("found", "limit", "word"),
    [
        (ratio(0.99, 1.031), 0.031, "No Change above 3.1 %"),
        (ratio(1 / 1.05, 1.01), 0.05, "No Change above 5.0 %"),
        (ratio(1 / 1.11, 1.01), None, "Unknown"),
        (ratio(0.99, 1.01), None, "No Change"),
        (ratio(1.01, 1.03), None, "Maybe Degradation"),
        (ratio(0.0, math.inf), None, "Unknown"),
        (ratio(0.99, 1.031)._replace(unknown="the machines differ"), None, "Unknown"),
    ],
)
def test_a_narrow_interval_says_what_did_not_change(
    found: Difference, limit: float | None, word: str
) -> None:
    verdict = judge(found)
    assert verdict.limit == (limit and pytest.approx(limit))
    assert present.word(verdict) == word
    assert present.name(verdict.change, limit=verdict.limit) == word


def test_what_would_decide_is_said() -> None:
    wide = judge(ratio(0.96, 1 / 0.96)).reason
    assert wide.endswith(
        "is too wide for a threshold of 2 %: about 65 more measurements of each would decide"
    )
    apart = judge(ratio(0.5, 2.0, basis=Basis.UNKNOWN_NOISE)).reason
    assert apart.endswith("measure in rounds, perun compare does")


values = st.floats(0.5, 2.0)
rounds = st.lists(st.lists(values, min_size=2, max_size=4), min_size=3, max_size=6)


def close(one: Verdict, other: Verdict) -> None:
    assert one.change is other.change
    assert (one.difference.ratio, one.low, one.high) == pytest.approx(
        (other.difference.ratio, other.low, other.high), rel=1e-6
    )


@settings(deadline=None)
@given(rounds, rounds, st.booleans(), st.floats(1e-6, 1e6))
def test_order_unit_and_storing_change_nothing(
    old: list[list[float]], new: list[list[float]], shares: bool, factor: float
) -> None:
    other = "s" if shares else "t"
    first, second = at(old), at(new, other)
    found = judged(first, second)
    back = judged(second, first)
    assert severity(back.change) == -severity(found.change)
    ends = (back.difference.ratio, back.low, back.high)
    assert ends == pytest.approx((1 / found.difference.ratio, 1 / found.high, 1 / found.low), rel=1e-6)
    scaled = [[[factor * one for one in own] for own in side] for side in (old, new)]
    edges = [0.8, 1 / 1.02, 1.0, 1.02, 1.25]
    if all(abs(end - edge) > 1e-6 for end in (found.low, found.high) for edge in edges):
        close(judged(at(scaled[0]), at(scaled[1], other)), found)
    # Rounds of a session that are stored in several profiles, or in another order.
    parts = [[one] for one in first.rounds]
    close(judged(point_of(parts, Kind.TIMED), second), found)
    close(judged(point_of(parts[::-1], Kind.TIMED), second), found)


@settings(deadline=None)
@given(rounds, rounds, st.booleans())
def test_the_printed_interval_never_denies_the_word(
    old: list[list[float]], new: list[list[float]], shares: bool
) -> None:
    found = judged(at(old), at(new, "s" if shares else "t"))
    if found.change in WORSE:
        assert found.low > 1
    if found.change in BETTER:
        assert found.high < 1
    if found.change is Change.NoChange:
        assert 1 / 1.02 <= found.low <= found.high <= 1.02
    if found.change is Change.Unknown:
        assert found.low <= 1 <= found.high
    assert found.low <= found.difference.ratio * (1 + 1e-9) and found.difference.ratio <= found.high * (
        1 + 1e-9
    )


@given(st.lists(values, min_size=1, max_size=12))
def test_the_centre_of_pairs_is_that_of_all_means(numbers: list[float]) -> None:
    means = [(one + other) / 2 for place, one in enumerate(numbers) for other in numbers[place:]]
    assert hodges_lehmann(numbers) == pytest.approx(np.median(means))
    assert median(numbers) == pytest.approx(np.median(numbers))


@given(st.lists(st.floats(0.9, 1.1), min_size=3, max_size=10))
def test_differences_in_rounds_have_the_error_of_their_centre(numbers: list[float]) -> None:
    assume(max(numbers) > min(numbers) * 1.001)
    found = difference(at([[1.0]] * len(numbers)), at([[one] for one in numbers]))
    assert found is not None and found.basis is Basis.ROUNDS
    logs = np.log(numbers)
    error = logs.std(ddof=1) * math.sqrt(math.pi / 3 / len(numbers))
    half = stats.t.ppf(0.995, len(numbers) - 1) * error
    centre = hodges_lehmann(logs.tolist())
    assert (found.low, found.high) == pytest.approx(tuple(np.exp([centre - half, centre + half])), rel=1e-6)
    p_value = 2 * stats.t.sf(abs(centre) / error, len(numbers) - 1)
    assert found.p_value == pytest.approx(p_value, rel=1e-6, abs=1e-12)


def test_an_interval_is_that_of_student() -> None:
    values = [1.0, 1.02, 0.99, 1.01, 1.03, 0.98]
    found = estimate(at([values]))
    logs = np.log(values)
    half = stats.t.ppf(0.975, 5) * logs.std(ddof=1) * math.sqrt(math.pi / 2 / 6)
    assert found.value == pytest.approx(np.median(values))
    assert (found.low, found.high) == pytest.approx((found.value / np.exp(half), found.value * np.exp(half)))
    assert found.low is not None and found.high is not None
    assert found.size == 6 and found.half_width == pytest.approx((found.high - found.low) / 2)
    assert estimate(at([[1.0]]))[:3] == (1.0, None, None)
    assert combined([StandardError(3, 4), StandardError(4, 9)]) == pytest.approx(
        (5, 625 / (81 / 4 + 256 / 9))
    )


def test_one_far_value_moves_neither_value_nor_spread_much() -> None:
    plain, odd = sample_of([1.0, 1.01, 1.02, 1.03, 1.04]), sample_of([1.0, 1.01, 1.02, 1.03, 50.0])
    assert plain is not None and odd is not None and plain.spread is not None and odd.spread is not None
    assert plain.median == odd.median and odd.spread < 3 * plain.spread
    assert sample_of([math.nan, math.inf]) is None
    assert sample_of([2.0]) == Sample(1, 2.0, None) and sample_of([0.0, 0.0]) == Sample(2, 0.0, 0.0, False)


def test_a_family_is_compared_member_by_member() -> None:
    def family(*factors: float) -> Point:
        samples = {str(place): Sample(5, factor * 10**place, 0.001) for place, factor in enumerate(factors)}
        return Point((Round("s", 0, samples), Round("s", 1, samples)))

    found = difference(family(1, 1), family(2, 1))
    assert found is not None and found.ratio == pytest.approx(math.sqrt(2))
    assert estimate(family(1, 4)).value == pytest.approx(math.sqrt(40))
    less = difference(family(1, 1, 1), family(2, 2))  # of the members that both have
    assert less is not None and less.ratio == pytest.approx(2)
    others = at([[1.0]], workload="a"), at([[1.0]], workload="b")
    assert difference(*others) is compare(*others) is None


def test_noise_is_learned_from_neighbours_that_were_measured_apart() -> None:
    chance = np.random.default_rng(1)
    history = [at([np.exp(chance.normal(0, 0.03) + chance.normal(0, 0.001, 5))], str(place))
               for place in range(30)]  # fmt: skip
    found = learn(history)
    assert found.rounds is None and found.unpaired is not None
    assert found.unpaired.size == pytest.approx(0.03 * math.sqrt(2), rel=0.5)
    assert learn(history[:FEWEST]).unpaired is None and learn(history[: FEWEST + 1]).unpaired is not None
    old, new = history[-2:]
    assert judged(old, new).difference.basis is Basis.UNKNOWN_NOISE
    assert judged(old, new, found).difference.basis is Basis.HISTORY
    step = at([[1.5, 1.501, 1.502]], "new")
    assert judged(history[-1], step).change is Change.Unknown
    verdict = along(step, history[::-1])
    assert verdict is not None and verdict.change is Change.SevereDegradation
    assert along(step, []) is None
    assert scale([0.1] * (FEWEST - 1)) is None


def half_apart(old: Point, new: Point, level: float) -> float:
    """Half the interval of what was measured apart: the runs of all rounds are alike."""
    alone = []
    for one in (old, new):
        own = one.samples_of("")
        spreads, logs = [one.spread or 0 for one in own], [math.log(one.median) for one in own]
        between = np.std(logs, ddof=1) if len(own) > 1 else 0
        scatter = math.hypot(np.sqrt(np.mean(np.square(spreads))), between)
        alone.append(StandardError(scatter * math.sqrt(math.pi / 2), one.size - 1))
    sizes = [math.sqrt(one.size) for one in (old, new)]
    together = combined(
        [StandardError(one.size / size, one.freedom) for one, size in zip(alone, sizes, strict=True)]
    )
    return math.hypot(together.half_width(level), max(math.log(2), combined(alone).half_width(level)))


def test_what_is_not_known_of_the_machine_is_as_much_as_single_runs_say() -> None:
    runs = [1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    for old, new in (
        ([runs], [[2 * one for one in runs]]),
        ([runs, runs[:3], runs[2:]], [[2 * one for one in runs]] * 3),
        ([[1.0, 1.2, 1.5], [1.2, 1.3, 1.4]], [[1.7, 1.8, 2.0], [1.4, 1.5, 1.6]]),
        ([[1.0, 1.001, 1.002]], [[2.0, 2.001, 2.002]]),  # these say less than the bound does
    ):
        sides = at(old), at(new, "t")
        found = difference(*sides)
        assert found is not None and found.basis is Basis.UNKNOWN_NOISE
        for ends, level in (((found.low, found.high), 0.99), ((found.weak_low, found.weak_high), 0.95)):
            half = half_apart(*sides, level)
            # Degrees of freedom are rounded down.
            distances = [math.log(end / found.ratio) for end in ends]
            assert distances == pytest.approx([-half, half], rel=0.02)


def test_a_family_measured_once_has_the_noise_of_single_runs() -> None:
    values = [1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    samples = {size: sample_of([scale * one for one in values]) for size, scale in (("1", 1), ("8", 8))}
    known = {size: one for size, one in samples.items() if one is not None}
    old, new = (Point((Round(session, 0, known),)) for session in "st")
    found = difference(old, new)
    alone = combined([StandardError(old.error.size * math.sqrt(6), old.error.freedom)] * 2)
    own = combined([old.error] * 2)
    half = math.hypot(own.half_width(0.99), alone.half_width(0.99))
    assert found is not None and math.log(found.high) == pytest.approx(half, rel=0.02)


def test_two_rounds_say_no_less_than_what_was_measured_apart() -> None:
    """Student's intervals of two rounds are as wide as anything."""
    old, new = [[1.0, 1.01, 1.02], [1.1, 1.09, 1.1]], [[1.05, 1.04, 1.05], [1.0, 1.01, 1.02]]
    both = at(old), at(new)
    found = judged(*both)
    assert found.difference.basis is Basis.FEW_ROUNDS and found.change is Change.Unknown
    assert math.log(found.high / found.difference.ratio) == pytest.approx(half_apart(*both, 0.99), rel=0.02)
    assert "too few rounds" in found.reason and found.reason.endswith("perun run matrix does")
    # What other rounds show is known, whether it is less or more.
    for size in (0.01, 2.0):
        known = judged(*both, Noise(rounds=StandardError(size, 1000)))
        assert known.difference.basis is Basis.ROUNDS
    assert known.high > 20
    # Rounds that agree say more than that.
    assert judged(at([[1.0], [1.1]]), at([[1.001], [1.1]])).difference.basis is Basis.ROUNDS
    assert judged(at(old), at([[20 * one for one in own] for own in new])).change is Change.SevereDegradation


@pytest.mark.parametrize(
    "known", [None, StandardError(0.01, 10), StandardError(0.15, 2), StandardError(1.0, 100)]
)
def test_two_rounds_of_each_version_have_a_bounded_interval(known: StandardError | None) -> None:
    """Those of a session of their own, and one round in each of two sessions."""
    noise = Noise(unpaired=known)
    old, new = [[1.0, 1.01, 1.02], [1.1, 1.09, 1.1]], [[1.05, 1.04, 1.05], [1.5, 1.51, 1.52]]
    one = at(old), at(new, "t")
    several = [point_of([at([own], f"{side}{n}").rounds for n, own in enumerate(part)], Kind.TIMED)
               for side, part in enumerate((old, new))]  # fmt: skip
    for sides in (one, (several[0], several[1])):
        found = judged(*sides, noise)
        learned = 0.0
        if noise.unpaired is not None:
            visits = 1.0 if sides is one else 0.5
            learned = StandardError(
                noise.unpaired.size * math.sqrt(visits), noise.unpaired.freedom
            ).half_width(0.99)
        half = max(half_apart(*sides, 0.99), learned)
        assert math.log(found.high / found.difference.ratio) == pytest.approx(half, rel=0.02)


def test_false_alarms_of_two_rounds_are_rare() -> None:
    chance = np.random.default_rng(22)
    found = []
    for size in (0.01, 0.1, 0.3):
        for _ in range(200):
            logs = chance.normal(0, size, (2, 2, 1)) + chance.normal(0, size, (2, 2, 5))
            old, new = np.exp(logs).tolist()
            found += [judged(at(old), at(new)).change, judged(at(old), at(new, "t")).change]
    assert sum(one in DEFINITE for one in found) <= 0.01 * len(found)


@pytest.fixture(scope="module")
def recorded() -> dict[tuple[str, str, str], list[list[float]]]:
    """Blocks of ten runs by condition, command and clock, of one program each; see
    benchmarks/verdicts_runs.py."""
    path = Path(__file__).parents[2] / "data/verdicts/runs.json.gz"
    return {
        (condition, command, clock): [times[place : place + 10] for place in range(0, len(times), 10)]
        for condition, runs in json.loads(gzip.decompress(path.read_bytes())).items()
        for command, clocks in runs["times"].items()
        for clock, times in clocks.items()
    }


def test_of_recorded_blocks_of_the_same_program_few_are_called_changed(recorded: Any) -> None:
    """A command of half a millisecond waits for a processor for twenty times as long in some blocks."""
    for condition, most in (("quiet", 0), ("loaded", 0.02)):
        found = [
            judged(at([old]), at([new], "t")).change
            for command in ("calls", "true")
            for old, new in itertools.permutations(recorded[condition, command, "real"], 2)
        ]
        assert sum(one in DEFINITE for one in found) <= most * len(found), condition


def test_large_steps_between_recorded_blocks_are_still_found(recorded: Any) -> None:
    """In processor time even beside busy loops, as that hardly scatters."""
    for condition in ("quiet", "loaded"):
        found = [
            judged(at([old]), at([[3 * one for one in new]], "t")).change
            for old, new in itertools.permutations(recorded[condition, "calls", "user"], 2)
        ]
        assert sum(one in DEFINITE for one in found) >= (1 if condition == "quiet" else 0.9) * len(found)


@pytest.mark.parametrize("noise", [0.01, 0.03, 0.05])
def test_a_step_beyond_the_bound_is_found_where_runs_hardly_scatter(noise: float) -> None:
    chance = np.random.default_rng(21)
    found = []
    for _ in range(60):
        old, new = np.exp(chance.normal(0, noise, (2, 10)) + chance.normal(0, noise, (2, 1)))
        found.append(judged(at([old.tolist()]), at([(2.5 * new).tolist()], "t")).change)
    assert sum(one in DEFINITE for one in found) >= 0.95 * len(found)


def test_rounds_of_one_session_are_matched_by_number() -> None:
    old, new = at([[1.0], [2.0], [4.0]]), at([[1.1], [2.2], [4.4]])
    assert shared(old, new)["s"] == pytest.approx([math.log(1.1)] * 3)
    assert shared(old, at([[1.1], [2.2]], "t")) == {}
    assert shared(at([[1.0]]), at([[1.1]])) == {}  # one round is no rounds
    assert shared(at([[0.0], [0.0]]), at([[1.0], [1.0]])) == {}  # nothing is so many times zero
    assert judged(old, new).change is Change.Degradation


def simulated(
    chance: np.random.Generator, versions: int, *, apart: float, heavy: bool = False, step: float = 1.0
) -> list[Point]:
    """A history in five rounds, all of whose versions are visited in each, with 1 % of noise.

    :param apart: noise that all of a round share. :param step: of the last version.
    """
    drawn = chance.standard_t(3, (versions, 5)) / math.sqrt(3) if heavy else chance.normal(size=(versions, 5))
    shift = chance.normal(0, apart, 5)
    return [
        at(np.exp(0.01 * drawn[place] + shift)[:, None] * (step if place == versions - 1 else 1.0))
        for place in range(versions)
    ]


def blocks(chance: np.random.Generator, versions: int) -> list[Point]:
    """A history whose versions were each measured in a session of its own, 3 % apart."""
    return [at([np.exp(chance.normal(0, 0.03) + chance.normal(0, 0.005, 10))], str(place))
            for place in range(versions)]  # fmt: skip


def words(histories: Sequence[list[Point]], first: int = 1) -> list[Change]:
    """Those of each version from the `first` on against the version before."""
    found = [
        along(history[place], history[:place][::-1])
        for history in histories
        for place in range(first, len(history))
    ]
    return [one.change for one in found if one is not None]


@pytest.mark.parametrize("kind", ["rounds", "shared", "heavy", "blocks"])
@pytest.mark.parametrize("count", [10, pytest.param(600, marks=pytest.mark.slow)])
def test_false_alarms_are_rare(kind: str, count: int) -> None:
    chance = np.random.default_rng(7)
    if kind == "blocks":
        found = words([blocks(chance, 30) for _ in range(count)])
    else:
        apart = 0.1 if kind == "shared" else 0.0
        found = words([simulated(chance, 12, apart=apart, heavy=kind == "heavy") for _ in range(count)])
    assert sum(one in DEFINITE for one in found) <= 0.01 * len(found)


@pytest.mark.parametrize("count", [60, pytest.param(2000, marks=pytest.mark.slow)])
def test_steps_of_five_percent_are_found_in_five_rounds(count: int) -> None:
    chance = np.random.default_rng(8)
    histories = [simulated(chance, 12, apart=0.1, step=1.05) for _ in range(count)]
    found = words(histories, first=11)
    assert sum(one in DEFINITE & WORSE for one in found) >= 0.95 * count


@pytest.mark.parametrize("freedom", [1.0, 2.5, 4.0, 7.7, 15.9, 17.6, 30.0, 500.0])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_half_widths_are_those_of_students_distribution(freedom: float, confidence: float) -> None:
    """Of degrees that are rounded down: never narrower, and hardly wider."""
    exact = stats.t.ppf((1 + confidence) / 2, freedom)
    found = StandardError(2.0, freedom).half_width(confidence) / 2
    assert exact * (1 - 1e-9) <= found <= exact * 1.05
    assert found == pytest.approx(stats.t.ppf((1 + confidence) / 2, math.floor(8 * freedom) / 8 if freedom < 16  # noqa: E501
                                              else math.floor(freedom)), rel=1e-8)  # fmt: skip


def test_half_widths_at_the_ends() -> None:
    assert (
        StandardError(0.0, 0.0).half_width(0.95) == 0 and StandardError(1.0, 0.0).half_width(0.95) == math.inf
    )
    few, many = StandardError(1.0, 0.05), StandardError(1.0, 1e7)
    assert few.half_width(0.5) == pytest.approx(stats.t.ppf(0.75, 0.05), rel=1e-6)
    assert many.half_width(0.95) == pytest.approx(stats.norm.ppf(0.975), rel=2e-3)
    assert combined([]) == combined([StandardError(0.0, 0.0)]) == StandardError(0.0, math.inf)
    assert (
        combined([StandardError(1.0, 0.0)])
        == combined([StandardError(math.inf, 1), StandardError(1, 1)])
        == StandardError(math.inf, 0.0)
    )


@given(
    st.lists(st.floats(0.5, 2.0), min_size=3, max_size=9),
    st.lists(st.floats(0.5, 2.0), min_size=3, max_size=9),
)
def test_several_sessions_are_compared_as_welch_does(old: list[float], new: list[float]) -> None:
    """One run in each session: the test of two samples of unequal variance, but of medians."""
    assume(min(np.std(np.log(old)), np.std(np.log(new))) > 0.01)
    sides = [point_of([at([[one]], f"{name}{n}").rounds for n, one in enumerate(own)], Kind.TIMED)
             for name, own in (("a", old), ("b", new))]  # fmt: skip
    found = difference(*sides)
    assert found is not None and found.basis is Basis.SESSIONS
    errors = [np.std(np.log(own), ddof=1) * math.sqrt(math.pi / 2 / len(own)) for own in (old, new)]
    freedom = sum(one**2 for one in errors) ** 2 / sum(
        one**4 / (len(own) - 1) for one, own in zip(errors, (old, new), strict=True)
    )
    assume(abs(8 * freedom - round(8 * freedom)) > 1e-6)  # where rounding decides
    centre = math.log(found.ratio)
    size = math.hypot(*errors)
    assert found.p_value == pytest.approx(2 * stats.t.sf(abs(centre) / size, freedom), rel=1e-5, abs=1e-12)
    rounded = math.floor(8 * freedom) / 8 if freedom < 16 else math.floor(freedom)
    half = stats.t.ppf(0.995, rounded) * size
    assert (found.low, found.high) == pytest.approx(tuple(np.exp([centre - half, centre + half])), rel=1e-6)
    welch = stats.ttest_ind(np.log(new), np.log(old), equal_var=False)
    assert freedom == pytest.approx(welch.df, rel=1e-6)


@pytest.mark.parametrize("shared_rounds", [True, False])
def test_more_data_of_the_same_kind_makes_no_interval_wider(shared_rounds: bool) -> None:
    """Beyond the error of a simulation: the mean width over many histories."""
    chance = np.random.default_rng(11)
    widths = []
    for count in (3, 6, 12, 24):
        own = []
        for _ in range(40):
            both = chance.normal(0, 0.01, (2, count, 2))
            old, new = (
                [Round("s" if shared_rounds else f"{side}{n}", n, {"": sample}) for n, one in enumerate(part)
                 if (sample := sample_of(np.exp(one).tolist())) is not None]
                for side, part in enumerate(both)
            )  # fmt: skip
            found = difference(Point(tuple(old)), Point(tuple(new)))
            assert found is not None
            own.append(math.log(found.high / found.low))
        widths.append(np.mean(own))
    assert all(after <= 1.05 * before for before, after in itertools.pairwise(widths))
    assert widths[-1] < 0.35 * widths[0]


@pytest.mark.parametrize("count", [3, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("apart", [False, True])
def test_false_alarms_of_families_are_rare(count: int, apart: bool) -> None:
    """Four workloads that share the noise of a round, or of a session."""
    chance = np.random.default_rng(9)

    def family(place: int) -> Point:
        made = []
        for number in range(1 if apart else 5):
            noise = chance.normal(0, 0.01, 5)
            samples = {
                str(size): Sample(5, size * math.exp(noise[0] + one), 0.005)
                for size, one in zip((1, 8, 64, 512), noise[1:], strict=True)
            }
            made.append(Round(str(place) if apart else "s", number, samples))
        return Point(tuple(made))

    found = words([[family(place) for place in range(20)] for _ in range(count)])
    assert sum(one in DEFINITE for one in found) <= max(1, 0.01 * len(found))


def test_of_runs_that_hardly_vary_the_bounds_are_those_of_all_runs() -> None:
    counts = {"s": (1e6, 1e6 + 10, 1e6 + 5), "t": (1.1e6, 1.1e6 + 20, 1.1e6)}
    old, new = (at([[one] for one in own], name, Kind.COUNTED) for name, own in counts.items())
    found = judged(old, new)
    assert found.change is Change.Degradation and found.difference.basis is Basis.RUNS
    assert (found.low, found.high) == (1.1e6 / (1e6 + 10), (1.1e6 + 20) / 1e6)
    assert found.difference.detectable == (1e6 + 10) / 1e6 and found.difference.p_value == 0
    same = judged(old, old)
    assert same.change is Change.NoChange and same.difference.p_value == 1
    # Two runs, or runs that vary, are compared by their scatter.
    two = judged(at([[1e6], [1e6 + 10]], "s", Kind.COUNTED), at([[1.1e6], [1.1e6 + 9]], "t", Kind.COUNTED))
    assert two.difference.basis is not Basis.RUNS
    wide = judged(at([[1e6], [1.01e6], [1e6]], "s", Kind.COUNTED), new)
    assert wide.difference.basis is Basis.SESSIONS


def test_one_run_that_counted_calls_is_no_proof() -> None:
    def calls(*counts: float, session: str = "s") -> Point:
        samples = [Sample(1, one, 0.0, one > 0) for one in counts]
        return Point(tuple(Round(session, n, {"": one}) for n, one in enumerate(samples)), Kind.CALLS)

    assert judged(calls(5.0), calls(5.0, session="t")).difference.basis is Basis.COUNTS
    assert judged(calls(5.0), calls(6.0, session="t")).difference.basis is not Basis.COUNTS


def test_what_a_program_prints_counts_once_it_repeats() -> None:
    one, three = (at([[7.0] * runs], kind=Kind.PRINTED) for runs in (2, 3))
    assert not one.repeats and three.repeats
    assert not at([[7.0, 7.0, 8.0]], kind=Kind.PRINTED).repeats
    assert estimate(three)[:3] == (7.0, 7.0, 7.0)
    assert judged(three, at([[8.0] * 3], "t", Kind.PRINTED)).difference.basis is Basis.COUNTS


def test_rounds_that_profiles_do_not_number_follow_each_other() -> None:
    """And those of a session that names its rounds stand where they say."""
    sample = Sample(1, 1.0, None)
    plain = [Round("", 0, {"": sample})]
    assert [(one.session, one.number) for one in point_of([plain, plain], Kind.TIMED).rounds] == [
        ("#0", 0),
        ("#1", 0),
    ]
    twice = [Round("s", n, {"": sample}) for n in (0, 1)]
    assert [one.number for one in point_of([twice, twice], Kind.TIMED).rounds] == [0, 1, 2, 3]
    named = [[Round("s", n, {"": sample})] for n in (4, 2)]
    assert [one.number for one in point_of(named, Kind.TIMED).rounds] == [4, 2]


def test_sessions_of_one_version_tell_the_noise_of_the_machine() -> None:
    chance = np.random.default_rng(12)
    many = point_of([at([np.exp(chance.normal(0, 0.05, 1))], str(n)).rounds for n in range(40)], Kind.TIMED)
    found = learn([many])
    assert found.unpaired is not None and found.unpaired.size == pytest.approx(0.05 * math.sqrt(2), rel=0.4)
    assert learn([]) == NOTHING and learn([at([[1.0, 1.1]])]) == NOTHING


def test_noise_by_rounds_is_what_their_differences_scatter() -> None:
    chance = np.random.default_rng(13)
    history = simulated(chance, 30, apart=0.2)
    found = learn(history)
    assert found.unpaired is None and found.rounds is not None
    assert found.rounds.size == pytest.approx(0.01 * math.sqrt(2), rel=0.2)
    assert found.rounds.freedom == pytest.approx(29 * 4 * 2 / 3)
    kept: Any = {}
    assert learn(history, kept) == found == learn(history, kept) and len(kept) == 29
    assert learn([*history, *history]) == learn([*history[-2:], *history])  # the newest count


def test_a_scale_by_quartiles_has_the_size_of_normal_noise() -> None:
    chance = np.random.default_rng(14)
    found = scale(chance.normal(0, 3.0, 4000).tolist())
    assert found is not None and found.size == pytest.approx(3.0, rel=0.05)
    assert found.freedom == pytest.approx(0.37 * 4000)
    for few in ([0.0, 0.1, 0.1, 0.1, 5.0, 5.0, 6.0, -7.0], [4.0, 4.5, 5.0, 5.0, 5.0, 5.0, 6.0, -7.0]):
        low, high = np.quantile(np.abs(few), [0.25, 0.75])
        own = scale(few)
        assert own is not None
        assert own.size == pytest.approx(max((high + 3 * (high - low)) / 3.652, high / 1.1503))


def test_lasting_changes_are_no_noise() -> None:
    small = [0.01, -0.02, 0.015, 0.02, -0.01, 0.012, 0.018, -0.011, 0.02]
    plain = scale(small)

    def among(*places: int, size: float = 0.3) -> StandardError:
        own = small.copy()
        for place in reversed(places):
            own.insert(place, size if place % 2 else -size)
        found = scale(own)
        assert found is not None
        return found

    assert among(5) == among(1) == among(8) == among(1, 4, 7) == plain
    # What may go back or does so is chance, as what is small.
    for kept in ((0,), (9,), (4, 4), (4, 5)):
        assert among(*kept).freedom == pytest.approx(0.37 * (9 + len(kept)))
    assert among(5, size=0.08).freedom == pytest.approx(0.37 * 10)
    # Of sessions of one version it is known that they are chance.
    others = scale(small[:3], [0.3, 0.3, 0.3])
    assert others is not None and others.size > 0.2 and others.freedom == pytest.approx(0.37 * 6)
    others = scale(small, [0.01, 0.3, 0.02, 0.01])
    assert others is not None and others.freedom == pytest.approx(0.37 * 13)
    assert scale([0.01, 0.3, 0.02, 0.3, 0.01]) is None
    few = scale([0.01, 0.02, 0.3, 0.01, 0.02, 0.3, 0.01])  # of too few others
    assert few is not None and few.freedom == pytest.approx(0.37 * 7)


@given(st.lists(st.floats(-1, 1), max_size=31), st.lists(st.integers(0, 30), max_size=6))
def test_the_scales_of_many_rows_are_those_of_each(values: list[float], places: list[int]) -> None:
    for place in places:
        if place < len(values):
            values[place] *= 30
    row = np.full((2, 31), np.nan)
    row[1, 31 - len(values) :] = np.abs(values)
    sizes, counts = scales(row)
    one = scale(values)
    assert counts[0] == 0 and sizes[0] == 0
    assert (one is None) == (counts[1] < FEWEST)
    assert one is None or (sizes[1], 0.37 * counts[1]) == pytest.approx(tuple(one))


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize(("versions", "steps", "least"), [(16, 4, 0.15), (24, 5, 0.6), (33, 5, 0.9)])
def test_a_change_is_seen_after_several_others(versions: int, steps: int, least: float, heavy: bool) -> None:
    """One of 20 %, where versions were measured apart with a noise of 2 %; and what did not change is not."""
    found = []
    unchanged = []
    for seed in range(40):
        chance = np.random.default_rng(seed)
        noise = chance.standard_t(3, versions) / math.sqrt(3) if heavy else chance.normal(size=versions)
        places = [*chance.choice(np.arange(2, versions - 1), steps, replace=False), versions - 1]
        moves = np.zeros(versions)
        moves[places] = chance.choice([-1, 1], steps + 1) * np.log1p(chance.uniform(0.1, 0.5, steps + 1))
        moves[-1] = math.log(1.2)
        logs = np.cumsum(moves) + 0.02 * noise
        own = [at([np.exp(one + chance.normal(0, 0.01, 5))], str(n)) for n, one in enumerate(logs)]
        for place in range(FEWEST + 1, versions):
            verdict = along(own[place], own[:place][::-1])
            assert verdict is not None
            if place == versions - 1:
                found.append(verdict.change in DEFINITE)
            elif place not in places:
                unchanged.append(verdict.change in DEFINITE)
    assert np.mean(found) >= least and np.mean(unchanged) <= 0.01


def test_rounds_need_not_see_each_workload() -> None:
    one, other = Sample(2, 3.0, 0.1), Sample(3, 12.0, 0.1)
    own = Point((Round("s", 0, {"a": one}), Round("s", 1, {"b": other})))
    assert own.workloads == ("a", "b") and own.samples_of("a") == [one] and own.samples_of("b") == [other]
    assert own.value == pytest.approx(6.0) and own.size == 5 and own.sessions == 1
    assert (own.whole, own.levels, own.noise) == (0.0, None, None)
    assert exp(1000.0) == math.inf and exp(1.0) == math.e


def test_a_spread_counts_no_value_as_farther_out_than_three_deviations() -> None:
    values = [1.0, 1.01, 1.02, 1.03, 1.04, 50.0]
    found = sample_of(values)
    logs = np.log(values) - np.median(np.log(values))
    usual = 3 * 1.4826 * np.median(np.abs(logs))
    assert found is not None and found.spread == pytest.approx(np.clip(logs, -usual, usual).std(ddof=1))
    # Where most are the same value, all count, whether floats tell them apart or not.
    equal, nearly = sample_of([1.0, 0.5, 0.5]), sample_of([1.0, 0.5, 0.5000000000000001])
    assert equal is not None and nearly is not None
    assert nearly.spread == pytest.approx(equal.spread) == pytest.approx(np.log([1, 0.5, 0.5]).std(ddof=1))


@pytest.mark.parametrize(
    "values", [[-1e308, 1e308], [-1.7e308, 0.0, 1.7e308], [-1e-320, 0.0, 1e-320], [0.0, 1e308] * 4]
)
def test_the_spread_of_amounts_at_the_ends_of_floats_is_one(values: list[float]) -> None:
    found = sample_of(values)
    assert found is not None and found.spread is not None and 0 < found.spread < math.inf
    unit = 2.0**1000 if max(values) > 1 else 2.0**-1060
    small = sample_of([value / unit for value in values])
    assert small is not None and small.spread is not None
    assert found.spread == pytest.approx(min(small.spread * unit, 1.7976931348623157e308), rel=1e-3)
    for other in (at([values]), at([values, values[::-1], [values[0]] * 2])):
        told = judged(other, at([values], "t"))
        assert told.change is Change.Unknown and told.reason


def test_the_value_of_several_rounds_is_in_their_middle() -> None:
    for medians, value in (([1.0, 2.0, 5.0], 2.0), ([5.0, 1.0, 2.0], 2.0), ([2.0, 8.0], 4.0)):
        assert at([[one] for one in medians]).value == pytest.approx(value)


def test_a_configuration_sets_what_it_names() -> None:
    own = {"threshold": 0.1, "exact_threshold": 1, "severe": "much", "method": "ratio"}
    assert Rules.of({"hodges_lehmann_ratio": own}) == Rules(threshold=0.1, exact=1.0)
    assert Rules.of({}) == Rules.of({"hodges_lehmann_ratio": None}) == Rules()


def test_what_is_kept_of_neighbours_does_not_grow_beyond_bounds() -> None:
    two = [at([[1.0]], "a"), at([[1.1]], "b")]
    kept: Any = dict.fromkeys((n, -n) for n in range(4096))
    learn(two, kept)
    assert len(kept) == 4097
    learn(two, kept)
    assert len(kept) == 1


def test_beyond_a_thousand_degrees_of_freedom_none_matters() -> None:
    less, thousand, more = (StandardError(1.0, freedom).half_width(0.99) for freedom in (900.0, 1000.0, 1e7))
    assert less > thousand == more


def test_sessions_of_what_was_zero_tell_no_noise_of_ratios() -> None:
    for values in ([0.0, 5.0], [5.0, 6.0]):
        many = point_of([at([[values[n % 2]]], str(n)).rounds for n in range(20)], Kind.TIMED)
        assert (learn([many]).unpaired is None) is (0.0 in values)


def test_a_maybe_by_the_interval_that_decides_has_that_interval() -> None:
    found = judge(ratio(1.01, 1.4, weak_low=1.03, weak_high=1.3))
    assert (found.change, found.low, found.high) == (Change.MaybeDegradation, 1.01, 1.4)
    assert "but not above 1.02" in found.reason
    back = judge(ratio(1 / 1.4, 1 / 1.01, weak_low=1 / 1.3, weak_high=1 / 1.03))
    assert (back.change, back.high) == (Change.MaybeOptimization, 1 / 1.01)


def test_counts_below_one_have_a_ratio() -> None:
    assert of_counts((0.5, 0.75), (1, 1)).delta is None
    assert of_counts((0.0, 0.75), (1, 1)).delta == (0.75, 0.75, 0.75)


@pytest.mark.parametrize(
    ("real", "cpu", "user", "known", "untold"),
    [
        (Change.NoChange, Change.Degradation, Change.Degradation, True, set()),
        (Change.NoChange, Change.Degradation, Change.MaybeDegradation, True, set()),
        (Change.NoChange, Change.Degradation, Change.Optimization, True, {"p [user]"}),
        (Change.Degradation, Change.NoChange, Change.Degradation, True, {"p [user]"}),
        (Change.Degradation, Change.Unknown, Change.Degradation, True, {"p [user]"}),
        (Change.Degradation, Change.Degradation, Change.NoChange, True, {"p [user]"}),
        (
            Change.NoChange,
            None,
            Change.Degradation,
            True,
            {"p [user]"},
        ),  # it was compared, and did not change
        (Change.NoChange, None, Change.Degradation, False, set()),  # nothing is known of it
    ],
)
def test_parts_that_move_without_their_sum_are_not_told(
    real: Change, cpu: Change | None, user: Change, known: bool, untold: set[str]
) -> None:
    words = {"p [real]": real, "p [user]": user, "main": Change.Degradation, "q [sys]": Change.Degradation}
    if cpu is not None:
        words["p [cpu]"] = cpu
    assert untold_parts(words, {*words, *(["p [cpu]"] if known else [])}) == untold


def seen(value: float, speed: float = 0.0, kind: Kind = Kind.PROCESSOR, session: str = "a") -> Point:
    """A version that was measured apart, on a machine that took so many ms for the fixed loop."""
    made = at([[value * (1 + share) for share in (-0.002, -0.001, 0.0, 0.001, 0.002)]], session, kind)
    return made._replace(speeds=(f"1 12 {speed * 1e6:.6g} {speed * 1e6:.6g} 0.01 0.01" if speed else "",))


QUIET = Noise(unpaired=StandardError(0.005, 30.0))


@pytest.mark.parametrize("kind", [Kind.PROCESSOR, Kind.TIMED])
def test_a_machine_that_became_slower_widens_the_interval(kind: Kind) -> None:
    old = seen(1.0, 20.0, kind)
    found = judged(old, seen(1.15, 22.0, kind, "b"), QUIET)
    assert found.change is Change.Unknown and found.low < 1 < found.high
    assert "the machine was 10 % slower for the target" in found.reason
    turned = judged(seen(1.15, 22.0, kind, "b"), old, QUIET)
    assert (turned.low, turned.high) == pytest.approx((1 / found.high, 1 / found.low))
    assert "9 % faster" in turned.reason
    large = judged(old, seen(2.0, 22.0, kind, "b"), QUIET)
    assert large.change is Change.SevereDegradation and "10 % slower" in large.reason
    assert judged(old, seen(1.0, 22.0, kind, "b"), QUIET).change is Change.Unknown


@given(
    st.floats(0.5, 2.0), st.floats(10.0, 40.0), st.floats(10.0, 40.0), st.sampled_from(list(Kind)),
    st.sampled_from([QUIET, NOTHING]),
)  # fmt: skip
def test_no_speed_makes_a_word_more_certain(
    factor: float, before: float, after: float, kind: Kind, noise: Noise
) -> None:
    rules = Rules(unpaired_tolerance=0.02)
    plain, known = (
        difference(seen(1.0, speeds[0], kind), seen(factor, speeds[1], kind, "b"), noise, rules)
        for speeds in ((0.0, 0.0), (before, after))
    )
    assert plain is not None and known is not None
    assert known.low <= plain.low and known.high >= plain.high and known.ratio == plain.ratio
    assert known.weak_low <= plain.weak_low and known.weak_high >= plain.weak_high
    assert known.p_value >= plain.p_value and known.detectable >= plain.detectable


def test_an_equal_an_unknown_or_a_shared_speed_changes_nothing() -> None:
    plain = judged(seen(1.0), seen(1.15, session="b"), QUIET)
    assert plain.change is Change.Degradation
    for before, after in ((20.0, 20.0), (20.0, 20.3), (0.0, 30.0), (20.0, 0.0)):
        assert judged(seen(1.0, before), seen(1.15, after, session="b"), QUIET) == plain
    counts = [seen(value, speed, Kind.COUNTED, str(value)) for value, speed in ((7.0, 20.0), (8.0, 40.0))]
    assert compare(*counts) == compare(*(one._replace(speeds=()) for one in counts))
    rounds = [at([[factor * one] for one in (1.0, 1.01, 1.02, 0.99, 0.98, 1.0)]) for factor in (1.0, 1.2)]
    old, new = (
        one._replace(speeds=seen(1.0, speed).speeds) for one, speed in zip(rounds, (20.0, 40.0), strict=True)
    )
    assert compare(old, new) == compare(*rounds)


@pytest.mark.parametrize(("kind", "narrower"), [("normal", 0.9), ("heavy", 1.2), ("disturbed", 3.0)])
def test_rounds_that_something_disturbed_make_no_wide_interval(kind: str, narrower: float) -> None:
    """Of 40 differences around 0 the interval of 99 % misses it in 1 % of cases at most, and is narrower than
    that of the variance where a few of them are far away."""
    rng = np.random.default_rng(40)
    missed, widths, quantile = 0, [], stats.t.ppf(0.995, 39)
    for _ in range(400):
        values = rng.standard_t(2, 40) if kind == "heavy" else rng.normal(size=40)
        if kind == "disturbed":
            values = np.where(rng.random(40) < 0.1, 20 * values, values)
        half = quantile * np.sqrt(variance(values.tolist()) * np.pi / 3 / 40)
        missed += abs(hodges_lehmann(values.tolist())) > half
        widths.append(quantile * values.std(ddof=1) * np.sqrt(np.pi / 3 / 40) / half)
    assert missed <= 10 and np.median(widths) > narrower


def test_few_differences_and_equal_ones_have_their_variance() -> None:
    few, equal = [0.1, -0.2, 0.3, 0.05], [0.0] * 18 + [1.0, -1.0]
    for values in (few, equal):
        assert variance(values) == pytest.approx(np.var(values, ddof=1))
