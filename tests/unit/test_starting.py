"""What part of the tests each process of a run begins with."""

from __future__ import annotations

import pytest

from starting import beginning


@pytest.mark.parametrize(
    ("sizes", "positions"),
    [([1, 1, 1, 1, 1, 1], [0, 2, 4]), ([6, 1, 1, 1], [0, 0, 1]), ([1, 1, 1, 6], [0, 3, 3]), ([], [0, 0, 0])],
)
def test_each_of_three_processes_begins_after_a_third_of_the_bytes(sizes, positions):
    assert [beginning(sizes, number / 3) for number in range(3)] == positions
