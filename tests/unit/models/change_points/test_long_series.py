"""Series that are longer than what detectors look at together."""

from __future__ import annotations

import numpy as np
import pytest

from perun.history.changes.detecting import ENOUGH, searched
from perun.measurement.changes import Track
from perun.models import change_points


def track(values):
    """The points of a series of one measurement each."""
    ones = np.ones(len(values))
    return Track(values, np.full(len(values), np.nan), ones, ones, ones, np.zeros(len(values), int))


def noisy(levels, seed=1):
    """Measurements of these levels: pairs of how many points and their level."""
    chance = np.random.default_rng(seed)
    values = np.concatenate([np.full(count, level) for count, level in levels])
    return values * np.exp(0.01 * chance.standard_normal(len(values)))


def test_a_long_series_shows_what_its_parts_show():
    values = noisy([(1300, 1.0), (700, 1.2), (1500, 0.9), (511, 1.1)])
    found = change_points.change_points(values).changes
    assert [change.place for change in found] == [1300, 2000, 3500]
    assert [change.ratio for change in found] == pytest.approx([1.2, 0.75, 1.222], rel=0.01)


@pytest.mark.parametrize("place", [768, 1024, 1280, 1536, 2047, 2500])
def test_a_change_at_the_border_of_two_parts_is_seen_once(place):
    found = change_points.change_points(noisy([(place, 1.0), (3000 - place, 1.05)])).changes
    assert len(found) == 1
    assert abs(found[0].place - place) <= 1


def test_of_a_long_series_the_end_alone_is_searched_again(monkeypatch):
    values = noisy([(1500, 1.0), (900, 1.3), (60, 1.1)])
    before = searched(track(values[:2400]), exact=False, effect=change_points.EFFECT, before=None)
    assert [change.place for change in before.changes] == [1500]
    seen = []
    search = change_points.change_points

    def watched(own, effect):
        seen.append(len(own))
        return search(own, effect)

    monkeypatch.setattr(change_points, "change_points", watched)
    again = searched(track(values), exact=False, effect=change_points.EFFECT, before=before)
    assert seen == [ENOUGH + 60]
    assert [change.place for change in again.changes] == [1500, 2400]
    assert again.changes[1].ratio == pytest.approx(1.1 / 1.3, rel=0.01)
    assert again.points == len(values)
