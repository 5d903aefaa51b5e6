"""Words that messages have in common."""

from __future__ import annotations

import pytest

from perun.core.wording import ago, counted


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 calls"), (1, "1 call"), (2, "2 calls"), (1234567, "1,234,567 calls"), (1.0, "1 call")],
)
def test_a_noun_follows_its_number_in_singular_or_plural(number: float, text: str) -> None:
    assert counted(number, "call") == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "just now"),
        (-30, "just now"),
        (59.9, "59 s ago"),
        (60, "1 min ago"),
        (3599, "59 min ago"),
        (5 * 3600, "5 h ago"),
        (86400, "1 day ago"),
        (6.9 * 86400, "6 days ago"),
        (20 * 86400, "2 weeks ago"),
        (31 * 86400, "1 month ago"),
        (800 * 86400, "2 years ago"),
        (-7200, "in 2 h"),
    ],
)
def test_ages(seconds: float, text: str) -> None:
    assert ago(seconds) == text
