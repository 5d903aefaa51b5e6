"""Values, differences and words as text and as JSON."""

from __future__ import annotations

import json
import math

import pytest

from perun.measurement import present
from perun.measurement.difference import Rules
from perun.measurement.estimate import Estimate, Kind, Point, Round, Sample, estimate
from perun.measurement.verdict import Verdict, compare
from perun.profile.amounts import readable_spread
from perun.profile.changes import PerformanceChange as Change


def point(*medians: float, spread: float | None = 0.001, kind: Kind = Kind.TIMED) -> Point:
    """A round of five measurements each; of counts each of one."""
    rounds = [
        Round("s", n, {"": Sample(1 if kind is Kind.COUNTED else 5, one, spread, one > 0)})
        for n, one in enumerate(medians)
    ]
    return Point(tuple(rounds), kind)


def verdict(old: Point, new: Point, **rules: float) -> Verdict:
    found = compare(old, new, rules=Rules(**rules))
    assert found is not None
    return found


def counts(old: float, new: float) -> Verdict:
    return verdict(*(point(one, spread=None, kind=Kind.COUNTED) for one in (old, new)))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Estimate(0.208, 0.205, 0.211, 10), "208 ms ± 3 (n = 10)"),
        (Estimate(0.208, 0.208, 0.208, 10), "208 ms (n = 10)"),
        (Estimate(0.208, None, None, 1), "208 ms"),
        (Estimate(0.208, None, None, 2), "208 ms (n = 2)"),
        (Estimate(0.208, 0.001, 44.0, 2), "208 ms ± >100 % (n = 2)"),
        (Estimate(0.208, 0.0, math.inf, 2), "208 ms ± >100 % (n = 2)"),
        (Estimate(0.0, 0.0, 0.0, 3), "0 s (n = 3)"),
        (Estimate(-1.0, -3.0, 1.0, 3), "-1.00 s ± 2.00 (n = 3)"),
        # A spread that is not seen beside the value is none.
        (Estimate(1e3, 1e3 - 1e-9, 1e3 + 1e-9, 4), "1,000 s (n = 4)"),
    ],
)
def test_a_value_with_half_the_width_of_its_interval(value: Estimate, text: str) -> None:
    assert present.value(value, "s") == text
    assert present.value(value, "s", counted=False) == text.partition(" (n")[0]


@pytest.mark.parametrize(
    ("value", "spread", "unit", "text"),
    [
        (0.208, 0.003, "s", "208 ms ± 3"),
        (1.5 * 2**20, 0.02 * 2**20, "B", "1.50 MiB ± 0.02"),
        (0.0, 1e295, "s", "0 s ± 1×10²⁹⁵ s"),
        (1e305, 0.0, "KiB", "1.02×10³⁰⁸ B ± 0 B"),
        (1.7e308, 1.7e308, "KiB", "∞ B ± ∞ B"),
    ],
)
def test_a_value_and_its_spread(value: float, spread: float, unit: str, text: str) -> None:
    assert readable_spread(value, spread, unit) == text


def test_a_difference_with_the_interval_that_decided() -> None:
    grown = verdict(point(1.0, 1.001, 0.999, 1.0), point(1.2, 1.201, 1.199, 1.2))
    text = present.difference(grown, "s")
    low, high = (f"{100 * (bound - 1):+.1f}" for bound in (grown.low, grown.high))
    assert text == f"+20.0 % [{low}, {high}]"
    assert present.difference(grown, "s", interval=False) == "+20.0 %"
    assert present.difference(None, "s") == ""


def test_counts_have_no_interval() -> None:
    assert present.difference(counts(100.0, 100.0), "") == "0.0 %"
    assert present.difference(counts(100.0, 150.0), "") == "+50.0 %"


def test_to_and_from_zero_it_is_a_difference_in_the_unit() -> None:
    assert present.difference(counts(0.0, 2048.0), "B") == "+2 KiB"
    assert present.difference(counts(2048.0, 0.0), "B") == "-100 %"
    found = verdict(point(0.0, 0.0, 0.0), point(0.003, 0.0031, 0.0029))
    assert present.difference(found, "s").startswith("+3 ms [+")
    assert present.difference(counts(0.0, 0.0), "B") == "0.0 %"
    assert present.step((0.0, 0.0), math.nan, math.nan, math.nan, "B") == "0 B"
    assert present.step((0.0, 5.0), math.nan, math.nan, math.nan, "B") == "+5 B"


TOO_FEW = verdict(point(1.0, spread=None), point(2.0, spread=None))
SEVERE = verdict(point(1.0, 1.001, 0.999, 1.0), point(2.0, 2.001, 1.999, 2.0))
FASTER = verdict(point(1.2, 1.201, 1.199, 1.2), point(1.0, 1.001, 0.999, 1.0))
SAME = verdict(point(1.0, 1.001, 0.999, 1.0), point(1.0, 1.001, 0.999, 1.0))
MAYBE = verdict(
    point(1.0, 1.02, 0.98, 1.0), point(1.03, 1.045, 1.02, 1.04), confidence=0.999, maybe_confidence=0.8
)


@pytest.mark.parametrize(
    ("found", "change", "mark", "style", "word"),
    [
        (TOO_FEW, Change.Unknown, "", "", "Unknown"),
        (SAME, Change.NoChange, "", "", "No Change"),
        (MAYBE, Change.MaybeDegradation, "?", "dim", "Maybe Degradation by the 80 % interval"),
        (FASTER, Change.Optimization, "!", "green", "Optimization"),
        (SEVERE, Change.SevereDegradation, "!!", "bold red", "Severe Degradation"),
    ],
)
def test_marks_colours_and_words(found: Verdict, change: Change, mark: str, style: str, word: str) -> None:
    assert found.change is change
    assert (present.mark(found), present.style(found), present.word(found)) == (mark, style, word)
    definite = mark in ("!", "!!")
    assert present.mark(found, confirmed=False) == ("!?" if definite else mark)
    assert present.style(found, confirmed=False) == ("yellow" if definite else style)
    assert present.word(found, confirmed=False) == word + ", unconfirmed" * definite


def test_what_is_not_compared_has_no_mark() -> None:
    assert (present.mark(None), present.style(None)) == ("", "")


def test_every_mark_is_explained_and_every_word_named() -> None:
    assert set(present.MARKS) == {"!!", "!", "!?", "?", "="}
    assert present.NAMES[Change.NotInBaseline] == "Not in Baseline"
    assert present.NAMES.keys() == set(Change)


def test_json_has_full_precision_and_no_infinities() -> None:
    one = estimate(point(0.1 + 0.2, 0.31, 0.29))
    assert present.value_data(one, "s") == {
        "value": one.value, "low": one.low, "high": one.high, "n": 15, "unit": "s"
    }  # fmt: skip
    wide = present.value_data(Estimate(1.0, 0.0, math.inf, 2), "s")
    assert (wide["low"], wide["high"]) == (0.0, None)
    assert present.verdict_data(SEVERE) == {
        "ratio": SEVERE.difference.ratio, "ratio_low": SEVERE.low, "ratio_high": SEVERE.high,
        "verdict": "SevereDegradation", "reason": SEVERE.reason, "decides": True, "limit": None,
    }  # fmt: skip
    few, zero = present.verdict_data(TOO_FEW), present.verdict_data(counts(0.0, 5.0))
    assert (few["ratio"], few["ratio_high"], few["decides"]) == (2.0, None, False)
    assert (zero["ratio"], zero["ratio_low"], zero["verdict"]) == (None, None, "SevereDegradation")
    json.dumps([wide, few, zero], allow_nan=False)
