"""Which version a bisection looks at next, and the versions that are measured, as the history drawn."""

import itertools
import math
import os
from collections.abc import Callable
from typing import Any

import pytest

from perun.measurement.difference import DEFAULTS
from perun.plugin.api import MinorVersion
from perun.profile.changes import PerformanceChange
from perun.repository.init import init
from perun.repository.jobs import Job, PluginConfig
from perun.repository.repository import Repository, open_repository
from perun.running.bisect.data import CostRatio
from perun.running.bisect.judging import Bounds, CostClassifier, bounds, middle
from perun.running.bisect.measuring import PairComparison
from perun.running.bisect.quantity import quantity
from perun.running.compare.plan import CompareCase
from perun.running.run.schedule import choose, parents_among


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


# -- the versions that are measured --------------------------------------------------------------------------


@pytest.fixture
def merged(git_repository: Callable[..., Any]) -> tuple[Repository, dict[str, MinorVersion]]:
    """A history with a merge, and its versions by their subjects: Merge, Side, Commit 3, 2 and 1."""
    git = git_repository(commits=3)
    git.git("checkout", "-q", "-b", "side", "HEAD~1")
    git.commit("Side")
    git.git("checkout", "-q", "main")
    git.git("merge", "-q", "--no-ff", "-m", "Merge", "side")
    init(git.path, os.environ)
    repo = open_repository(git.path, os.environ)
    return repo, {one.subject: one for one in choose(repo, (), True)}


def drawn(merged: tuple[Repository, dict[str, MinorVersion]], *subjects: str) -> dict[str, list[str]]:
    repo, versions = merged
    names = {version.checksum: subject for subject, version in versions.items()}
    found = parents_among(repo, [versions[subject] for subject in subjects])
    return {names[child]: [names[parent] for parent in parents] for child, parents in found.items()}


def test_all_versions_have_their_parents(merged: tuple[Repository, dict[str, MinorVersion]]) -> None:
    assert drawn(merged, "Merge", "Side", "Commit 3", "Commit 2", "Commit 1") == {
        "Merge": ["Commit 3", "Side"], "Side": ["Commit 2"], "Commit 3": ["Commit 2"],
        "Commit 2": ["Commit 1"], "Commit 1": []
    }  # fmt: skip


def test_what_lies_between_is_passed_over(merged: tuple[Repository, dict[str, MinorVersion]]) -> None:
    assert drawn(merged, "Merge", "Commit 1") == {"Merge": ["Commit 1"], "Commit 1": []}
    assert drawn(merged, "Merge", "Side", "Commit 1") == {
        "Merge": ["Commit 1", "Side"], "Side": ["Commit 1"], "Commit 1": []
    }  # fmt: skip
    assert drawn(merged, "Side", "Commit 3") == {"Side": [], "Commit 3": []}
    assert drawn(merged, "Commit 3") == {"Commit 3": []}


def test_what_is_no_history_is_not_drawn(merged: tuple[Repository, dict[str, MinorVersion]]) -> None:
    assert drawn(merged, "Commit 1", "Merge") == {}
    assert drawn(merged, "Merge", "Commit 1", "Merge") == {}
    assert drawn(merged) == {}


def test_a_clock_needs_no_collector(merged: tuple[Repository, dict[str, MinorVersion]]) -> None:
    assert (
        quantity(
            merged[0], CompareCase(Job("./app", "", "", PluginConfig("time", {})), ()), "wall", ""
        ).recorded
        is None
    )


class Pairs:
    """Answers for pairs of runs."""

    is_counted = is_growth = False
    rules = DEFAULTS

    def __init__(self, *changes: PerformanceChange) -> None:
        self._changes = iter(changes)

    def learn(self, versions: object) -> None:
        """Nothing is recorded."""

    def left(self, steps: int) -> float:
        return 1.0

    def pairs(self, *asked: object) -> PairComparison:
        ratio = CostRatio(1.1, 1.0, 1.2, (1.0, 1.1), "s")
        return PairComparison(ratio, next(self._changes), False, "the rule", False, "time")


@pytest.mark.parametrize(("change", "why"), [
    (PerformanceChange.Degradation, ""),
    (PerformanceChange.NoChange, "not confirmed beside its parent: the rule"),
    (PerformanceChange.Optimization, "not confirmed beside its parent: the rule"),
])  # fmt: skip
def test_a_version_is_confirmed_where_it_differs_as_the_ends(merged, change, why: str) -> None:
    good, bad = merged[1]["Commit 2"], merged[1]["Commit 3"]
    judging = CostClassifier(Pairs(PerformanceChange.Degradation, change), {}, None)
    assert judging.ends(good, bad).why == ""
    assert judging.confirm(good, bad).why == why
