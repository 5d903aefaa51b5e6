"""Which series are searched again after new versions."""

from __future__ import annotations

import numpy as np
import pytest

from perun.history.changes.detecting import searched
from perun.history.changes.remembered import NEW, STEADY, Remembered, digest
from perun.measurement.changes import Track
from perun.measurement.difference import Rules
from perun.models import change_points
from perun.repository.init import init
from perun.repository.repository import open_repository

OLD = 300


def track(values):
    """The points of a series of one measurement each."""
    ones = np.ones(len(values))
    return Track(values, np.full(len(values), np.nan), ones, ones, ones, np.zeros(len(values), int))


def found(values):
    """What is kept of these values once they are searched."""
    own = track(values)
    return searched(own, exact=False, effect=change_points.EFFECT, before=None)._replace(digest=digest(own))


@pytest.fixture
def remembered(tmp_path):
    """What is remembered of a series with one level of 300 points, and the series with a hundred more."""
    init(tmp_path, {}, vcs_type="svs")
    values = np.exp(0.01 * np.random.default_rng(3).standard_normal(OLD + 100))
    made = Remembered(open_repository(tmp_path, {}), change_points.EFFECT, Rules())
    made.keep("series", found(values[:OLD]))
    return made, values


def test_a_level_that_stays_is_searched_again_after_many_points_alone(remembered):
    made, values = remembered
    searches = [new for new in range(1, 100) if made.of("series", track(values[: OLD + new])) is None]
    assert STEADY[0] < searches[0] <= STEADY[1]
    assert searches == list(range(searches[0], 100))


@pytest.mark.parametrize("new", [NEW // 2, 3 * NEW])
@pytest.mark.parametrize("ratio", [1.05, 0.95])
def test_a_level_that_was_left_for_a_moment_is_searched_again(remembered, new, ratio):
    made, values = remembered
    assert made.of("series", track(values[: OLD + new])) is not None
    values[OLD + new // 2 - 2 : OLD + new // 2 + 2] *= ratio
    end = OLD + new if new > NEW else OLD + new // 2 + 2  # where a few are new, they are looked at at the end
    assert made.of("series", track(values[:end])) is None


def test_a_young_level_is_searched_again_after_a_few_points(remembered):
    made, values = remembered
    values[OLD - 50 :] *= 1.2
    made.keep("series", found(values[:OLD]))
    assert made.of("series", track(values[: OLD + 2])) is not None
    assert made.of("series", track(values[: OLD + NEW + 1])) is None
