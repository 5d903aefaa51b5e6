"""What a difference means, and what differs: the words over the intervals, and the invariants of both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]

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
    Error,
    Kind,
    Point,
    Round,
    Sample,
    combined,
    estimate,
    median,
    point_of,
    sample_of,
)  # fmt: skip
from perun.measurement.noise import FEWEST, NOTHING, Noise, learn, scale, shared
from perun.measurement.verdict import (  # fmt: skip
    UNDECIDED,
    Verdict,
    along,
    compare,
    judge,
    mirrored,
    severity,
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
    times = at([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    found = judged(times, at([[1.0, 1.01, 1.02, 1.0, 0.99, 1.01]], "t"))
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
    assert combined([Error(3, 4), Error(4, 9)]) == pytest.approx((5, 625 / (81 / 4 + 256 / 9)))


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
    assert difference(at([[1.0]], workload="a"), at([[1.0]], workload="b")) is None


def test_noise_is_learned_from_neighbours_that_were_measured_apart() -> None:
    chance = np.random.default_rng(1)
    history = [at([np.exp(chance.normal(0, 0.03) + chance.normal(0, 0.001, 5))], str(place))
               for place in range(30)]  # fmt: skip
    found = learn(history)
    assert found.rounds is None and found.apart is not None
    assert found.apart.size == pytest.approx(0.03 * math.sqrt(2), rel=0.5)
    assert learn(history[:FEWEST]).apart is None and learn(history[: FEWEST + 1]).apart is not None
    old, new = history[-2:]
    assert judged(old, new).difference.basis is Basis.UNKNOWN_NOISE
    assert judged(old, new, found).difference.basis is Basis.HISTORY
    step = at([[1.5, 1.501, 1.502]], "new")
    assert judged(history[-1], step).change is Change.Unknown
    verdict = along(step, history[::-1])
    assert verdict is not None and verdict.change is Change.SevereDegradation
    assert along(step, []) is None
    assert scale([0.1] * (FEWEST - 1)) is None


def test_rounds_of_one_session_are_matched_by_number() -> None:
    old, new = at([[1.0], [2.0], [4.0]]), at([[1.1], [2.2], [4.4]])
    assert shared(old, new)["s"] == pytest.approx([math.log(1.1)] * 3)
    assert shared(old, at([[1.1], [2.2]], "t")) == {}
    assert shared(at([[1.0]]), at([[1.1]])) == {}  # one round is no rounds
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
@pytest.mark.parametrize("count", [20, pytest.param(600, marks=pytest.mark.slow)])
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
