"""Which version a bisection looks at next."""

from __future__ import annotations

import itertools
import math

from perun.running.bisect.judging import Bounds, bounds, middle


def searched(count: int, first: int, broken: set[int]) -> tuple[Bounds, int]:
    """Where the search ends whose positions from `first` on are bad, and how many it looks at."""
    is_bad, skipped, looks = {0: False, count - 1: True}, set(), 0
    found = bounds(is_bad, skipped)
    while (place := middle(found)) is not None:
        assert found.low < place < found.high
        looks += 1
        if place in broken:
            skipped.add(place)
        else:
            is_bad[place] = place >= first
        found = bounds(is_bad, skipped)
    return found, looks


def test_each_place_is_found_by_as_few_looks_as_halving_needs():
    for count in (2, 3, 4, 17, 64, 100):
        for first in range(1, count):
            found, looks = searched(count, first, set())
            assert (found.low, found.high) == (first - 1, first)
            assert looks <= math.ceil(math.log2(count))


def test_the_range_is_that_which_cannot_be_narrowed():
    """Of all sets of positions that cannot be looked at, in short histories."""
    count = 7
    for size in range(count - 1):
        for broken in map(set, itertools.combinations(range(1, count - 1), size)):
            for first in range(1, count):
                found, _ = searched(count, first, broken)
                good = max(place for place in range(first) if place not in broken)
                bad = min(place for place in range(first, count) if place not in broken)
                assert (found.low, found.high, found.open) == (good, bad, ())


def test_a_long_row_that_does_not_build_is_left_quickly():
    found, looks = searched(1001, 100, set(range(400, 600)))
    assert (found.low, found.high) == (99, 100)
    assert looks <= 15


def test_the_newest_of_several_changes_is_searched():
    assert bounds({0: False, 3: True, 6: False, 9: True}, set()) == Bounds(6, 9, (7, 8))
