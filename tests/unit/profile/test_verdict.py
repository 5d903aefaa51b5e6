"""The table of labels: what a ratio with its interval means."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from perun.models.two_samples.ratio import Ratio, of_pairs
from perun.models.two_samples.shape import Modes
from perun.profile.changes import PerformanceChange as Change
from perun.profile.verdict import DEFAULTS, Thresholds, judge, judge_exact, more_needed

PAIRED = Ratio(1.0, 1.0, 1.0, 0.001, 0.99, (20, 20), True, 1.01)


def ratio(low: float, high: float, **fields: object) -> Ratio:
    return PAIRED._replace(estimate=math.sqrt(low * high), low=low, high=high, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("low", "high", "change"),
    [
        (1.30, 1.40, Change.Degradation),
        (1.021, 1.40, Change.Degradation),
        (1.019, 1.40, Change.MaybeDegradation),
        (0.99, 1.015, Change.NoChange),
        (1.001, 1.015, Change.NoChange),
        (0.99, 1.03, Change.Unknown),
        (0.5, 2.0, Change.Unknown),
        (0.7, 0.99, Change.MaybeOptimization),
        (0.7, 0.97, Change.Optimization),
        (0.0, math.inf, Change.Unknown),
    ],
)
def test_the_table(low: float, high: float, change: Change) -> None:
    assert judge(ratio(low, high)).change is change


def test_severe_needs_to_be_confirmed() -> None:
    large = ratio(1.3, 1.4)
    assert judge(large, confirmed_by="cpu").change is Change.SevereDegradation
    assert "confirms" in judge(large).rule
    assert judge(ratio(1.2, 1.4), confirmed_by="cpu").change is Change.Degradation
    assert judge(ratio(0.5, 0.7), confirmed_by="cpu").change is Change.SevereOptimization


def test_the_weaker_interval_alone_is_a_maybe() -> None:
    wide, weak = ratio(0.99, 1.2), ratio(1.01, 1.15, confidence=0.95)
    assert judge(wide).change is Change.Unknown
    assert judge(wide, weaker=weak).change is Change.MaybeDegradation
    assert "95 %" in judge(wide, weaker=weak).rule
    assert judge(ratio(0.99, 1.01), weaker=weak).change is Change.NoChange


def test_one_of_many_tests_is_not_definite() -> None:
    assert judge(ratio(1.3, 1.4, p_value=0.2)).change is Change.MaybeDegradation


def test_samples_measured_apart_need_more_to_be_definite() -> None:
    verdict = judge(ratio(1.5, 1.6, paired=False))
    assert verdict.change is Change.MaybeDegradation
    assert "perun compare" in verdict.rule
    assert judge(ratio(2.1, 2.6, paired=False)).change is Change.Degradation
    assert judge(ratio(0.3, 0.45, paired=False)).change is Change.Optimization
    assert judge(ratio(1.5, 1.6, paired=False), Thresholds(apart=0.1)).change is Change.Degradation


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        (Modes(1.0, 2.0, 0.2), Modes(1.02, 2.01, 0.7), Change.MaybeDegradation),
        (Modes(1.0, 2.0, 0.2), Modes(1.5, 3.0, 0.2), Change.Degradation),
        (Modes(1.0, 2.0, 0.4), Modes(1.1, 2.01, 0.4), Change.Degradation),  # as often as before
        (Modes(1.0, 2.0, 0.2), Modes(1.1, 2.2, 0.7), Change.Degradation),  # both modes are slower
        (Modes(1.0, 2.0, 0.2), Modes(1.1, 2.01, 0.7), Change.MaybeDegradation),
        (None, Modes(1.06, 2.0, 0.5), Change.MaybeDegradation),
        (None, Modes(1.15, 2.0, 0.5), Change.Degradation),
        (Modes(0.8, 1.58, 0.5), None, Change.MaybeDegradation),
        (None, Modes(2.0, 3.0, 0.5), Change.Degradation),
    ],
)
def test_a_shift_of_shares_of_modes_is_a_maybe(
    old: Modes | None, new: Modes | None, change: Change
) -> None:
    assert judge(ratio(1.2, 1.8, modes=(old, new), medians=(1.05, 1.6))).change is change


@given(
    st.floats(0.01, 100),
    st.floats(0, 1),
    st.floats(0, 0.05),
    st.booleans(),
    st.booleans(),
    st.floats(0.001, 0.5),
)
def test_the_label_of_the_inverse_is_the_mirrored_label(
    low: float, width: float, p_value: float, paired: bool, confirmed: bool, threshold: float
) -> None:
    high = low * math.exp(width)
    limit = 1 + threshold
    for edge in (limit, 2.0, 1.25, 1.0):  # at a limit itself, rounding decides
        for bound in (low, high):
            assume(abs(abs(math.log(bound)) - math.log(edge)) > 1e-9)
    one = ratio(low, high, p_value=p_value, paired=paired)
    other = ratio(1 / high, 1 / low, p_value=p_value, paired=paired)
    thresholds = Thresholds(threshold=threshold)
    first, second = (judge(each, thresholds, confirmed_by="cpu" * confirmed) for each in (one, other))
    if first.change is Change.Unknown:
        assert second.change is Change.Unknown
    else:
        assert first.change.value == -second.change.value
    assert first.rule and "\n" not in first.rule
    # Nothing is called unchanged that may have changed by more than the threshold.
    assert (first.change is Change.NoChange) == (low >= 1 / limit and high <= limit)


@pytest.mark.parametrize(
    ("old", "new", "exact", "change"),
    [
        (100, 100, 0, Change.NoChange),
        (1000, 1001, 0, Change.Degradation),
        (1000, 1001, 0.001, Change.NoChange),
        (1000, 999, 0, Change.Optimization),
        (100, 126, 0, Change.SevereDegradation),
        (126, 100, 0, Change.SevereOptimization),
        (0, 8, 0, Change.SevereDegradation),
        (8, 0, 0, Change.SevereOptimization),
        (0, 0, 0, Change.NoChange),
    ],
)
def test_what_is_counted_has_a_threshold_of_its_own(
    old: float, new: float, exact: float, change: Change
) -> None:
    assert judge_exact(old, new, (1, 1), Thresholds(exact=exact)).change is change


@pytest.mark.parametrize(
    ("old", "new", "exact", "change"),
    [
        (9, 20, 0, Change.NoChange),
        (9, 209, 0, Change.Degradation),
        (209, 9, 0, Change.Optimization),
        (0, 209, 0, Change.Degradation),
        (9, 2_009, 0.001, Change.Degradation),
        (9, 1_009, 0.001, Change.NoChange),
        (9, 20_010, 0, Change.SevereDegradation),
        (1_000_000, 1_000_090, 0, Change.NoChange),
        (1_000_000, 1_005_000, 0.001, Change.Degradation),
    ],
)
def test_a_part_of_what_is_counted_matters_as_much_as_it_is_of_the_whole(
    old: float, new: float, exact: float, change: Change
) -> None:
    assert judge_exact(old, new, (1, 1), Thresholds(exact=exact), 1e6).change is change


def test_as_many_pairs_as_are_said_to_be_missing_do_decide() -> None:
    generator = np.random.default_rng(3)

    def measured(pairs: int) -> Ratio:
        base = generator.lognormal(0, 0.3, pairs)
        return of_pairs(base, base * generator.lognormal(0, 0.05, pairs), 0.99)

    decided = 0
    for _ in range(20):
        few = measured(12)
        missing = more_needed(few)
        if judge(few).change is Change.Unknown and missing is not None and missing < 400:
            assert str(missing) in judge(few).rule
            # Twice as many, as the estimate moves as well.
            decided += judge(measured(12 + 2 * missing)).change is Change.NoChange
    assert decided >= 10


def test_too_few_measurements_say_how_many_are_missing() -> None:
    few = of_pairs([1, 2, 3, 4, 5], [2, 3, 4, 5, 6], DEFAULTS.confidence)
    assert judge(few).change is Change.Unknown
    assert "3 more pairs" in judge(few).rule


@pytest.mark.parametrize(
    ("few", "missing"),
    [
        (ratio(0.0, 2.0, sizes=(5, 5)), 3),
        (ratio(0.5, math.inf, sizes=(8, 8)), 1),
        (ratio(0.0, math.inf, sizes=(9, 3), paired=False), 2),
        (ratio(0.96, 1 / 0.96), 65),  # 20 * (ln(1 / 0.96) / ln 1.02)^2 = 84.99
        (ratio(1.02 * 0.98, 1.02 / 0.98), 64),  # at the limit: 20 * (ln(1 / 0.98) / (ln 1.02 / 2))^2 = 83.3
        (ratio(0.96 / 1.1, 1 / 0.96 / 1.1), 1),  # far from the limit
        (ratio(0.96, 1 / 0.96, sizes=(70, 71)), 228),  # 297.5 in all
        (ratio(0.96, 1 / 0.96, sizes=(71, 71)), None),  # 301.7 in all
    ],
)
def test_how_many_measurements_are_missing(few: Ratio, missing: int | None) -> None:
    assert more_needed(few) == missing


def test_what_widens_the_interval_is_said() -> None:
    wide = ratio(0.96, 1 / 0.96)
    assert judge(wide).rule.endswith("is too wide for a threshold of 2 %: about 65 more pairs would decide")
    rule = judge(wide._replace(drift=-0.5, correlation=0.25)).rule
    assert "they drift (rank correlation with their order -0.50); " in rule
    assert "depends on the one before (correlation 0.25); " in rule
    apart = judge(ratio(0.0, math.inf, sizes=(4, 3), paired=False)).rule
    assert apart.startswith("4 and 3 measurements are too few for an interval of 99 %")
    assert apart.endswith("about 2 more measurements of each would decide")


def test_the_threshold_of_what_is_counted_is_said_in_percent() -> None:
    assert "the threshold of 1.5 %" in judge_exact(1000, 1010, (1, 1), Thresholds(exact=0.015)).rule
