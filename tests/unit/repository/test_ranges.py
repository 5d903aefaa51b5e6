"""Ranges of versions."""

import pytest

from perun.core.errors import UsageError
from perun.repository.lookup import ends_of


@pytest.mark.parametrize(
    ("text", "ends"),
    [("v1..v2", ("v1", "v2")), ("v1..", ("v1", "")), ("..v2", ("", "v2")), ("..", ("", "")), ("v1.2", None)],
)
def test_a_range_has_two_ends(text, ends):
    assert ends_of(text) == ends


def test_three_dots_are_refused():
    with pytest.raises(UsageError, match=r"v1\.\.\.v2: three dots name no two versions") as raised:
        ends_of("v1...v2")
    assert raised.value.hint == "write v1..v2"
