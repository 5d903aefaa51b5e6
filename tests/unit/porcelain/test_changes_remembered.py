"""Which series are searched again after new versions."""

from __future__ import annotations

import numpy as np
import pytest

from perun.models.change_points import voting
from perun.porcelain.changes.detecting import searched
from perun.porcelain.changes.remembered import NEW, STEADY, Remembered
from perun.porcelain.init import init
from perun.porcelain.repository import open_repository

OLD = 300


@pytest.fixture
def remembered(tmp_path):
    """What is remembered of a series with one level of 300 points, and the series with a hundred more."""
    init(tmp_path, {}, vcs_type="svs")
    values = np.exp(0.01 * np.random.default_rng(3).standard_normal(OLD + 100))
    made = Remembered(open_repository(tmp_path, {}), voting.EFFECT)
    made.keep("series", searched(values[:OLD], voting.EFFECT, None))
    return made, values


def test_a_level_that_stays_is_searched_again_after_many_points_alone(remembered):
    made, values = remembered
    searches = [new for new in range(1, 100) if made.of("series", values[: OLD + new]) is None]
    assert STEADY[0] < searches[0] <= STEADY[1]
    assert searches == list(range(searches[0], 100))


@pytest.mark.parametrize("new", [NEW // 2, 3 * NEW])
@pytest.mark.parametrize("ratio", [1.05, 0.95])
def test_a_level_that_was_left_for_a_moment_is_searched_again(remembered, new, ratio):
    made, values = remembered
    assert made.of("series", values[: OLD + new]) is not None
    values[OLD + new // 2 - 2 : OLD + new // 2 + 2] *= ratio
    end = OLD + new if new > NEW else OLD + new // 2 + 2  # where a few are new, they are looked at at the end
    assert made.of("series", values[:end]) is None


def test_a_young_level_is_searched_again_after_a_few_points(remembered):
    made, values = remembered
    values[OLD - 50 :] *= 1.2
    made.keep("series", searched(values[:OLD], voting.EFFECT, None))
    assert made.of("series", values[: OLD + 2]) is not None
    assert made.of("series", values[: OLD + NEW + 1]) is None


def test_only_the_end_of_a_long_series_is_searched_and_its_spikes_are_counted():
    values = np.exp(0.01 * np.random.default_rng(5).standard_normal(2000))
    values[[100, 1000, 1700, 1950]] *= 2
    before = searched(values[:1900], voting.EFFECT, None)
    assert before.spikes == 3
    assert searched(values, voting.EFFECT, before).spikes == 4
