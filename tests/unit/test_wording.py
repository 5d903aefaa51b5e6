"""Words that messages have in common."""

from __future__ import annotations

import pytest

from perun.wording import counted


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 calls"), (1, "1 call"), (2, "2 calls"), (1234567, "1,234,567 calls"), (1.0, "1 call")],
)
def test_a_noun_follows_its_number_in_singular_or_plural(number: float, text: str) -> None:
    assert counted(number, "call") == text
