"""Histories of 60 versions with known changes, as sessions measure them: noise within and between these."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from perun.history.changes.data import History, SeriesKey, VersionChanges
from perun.history.changes.detecting import detect
from perun.history.changes.finding import by_version
from perun.history.changes.history import Cell, cell, cells_of
from perun.measurement.difference import Rules
from perun.measurement.estimate import Kind, Point, Round, Sample, point_of, sample_of
from perun.measurement.noise import WINDOW
from perun.models import change_points
from perun.plugin.api import MinorVersion
from perun.profile.head import Configuration

VERSIONS, RUNS, NOISE = 60, 5, 0.01
KEY = SeriesKey(
    Configuration("time", "./app", "", "", ()), "m", "./app [real]", "time", "real", "s", False, False
)


class Kept:
    """Points in memory, for the code that reads those of a repository."""

    merged: frozenset[str] = frozenset()

    def __init__(self, points: list[Point]) -> None:
        self._points = {name(number): one for number, one in enumerate(points)}

    def at(self, version, key):
        return self._points.get(version)

    def before(self, version, key, line):
        return [self._points[other] for other in line][:WINDOW]


class NothingKept:
    """No earlier search."""

    def of(self, name, track):
        return None

    before = of

    def keep(self, name, found):
        pass

    def save(self):
        pass


def name(number: int) -> str:
    return f"{number:040x}"


def points(levels, seed: int, *, sessions: int = 1, noise: float = NOISE) -> list[Point]:
    """A point for each level, of so many sessions of RUNS runs."""
    chance = np.random.default_rng(seed)
    found = []
    for level in levels:
        profiles = []
        for _ in range(sessions):
            own = level * np.exp(noise * (chance.standard_normal() + chance.standard_normal(RUNS)))
            sample = sample_of(own.tolist())
            assert sample is not None
            profiles.append((Round("", 0, {"": sample}),))
        found.append(point_of(profiles, Kind.TIMED))
    return found


def counts(values) -> list[Point]:
    """Points of what repeats exactly."""
    return [
        Point((Round("#0", 0, {"": Sample(3, float(one), 0.0, one > 0)}),), Kind.COUNTED) for one in values
    ]


class Told(NamedTuple):
    changes: list[VersionChanges]
    drifts: int

    def definite(self) -> list[int]:
        return [int(one.version.checksum, 16) for one in self.changes if one.steps]

    def every(self) -> list[int]:
        return [int(one.version.checksum, 16) for one in self.changes]


def told(
    own: list[Point], *, exact: bool = False, type: str = "time", effect: float = change_points.EFFECT,
    remembered: Any = None,
) -> Told:  # fmt: skip
    """What is told of a history of one series, of which nothing was found before where that is None."""
    key = KEY._replace(exact=exact, type="instructions" if exact else type, location="main")
    columns = cells_of(map(cell, own))
    cells = tuple(columns[field][np.newaxis] for field in Cell._fields)
    versions = [
        MinorVersion("2026-01-01 00:00:00", "A", "a@example.org", name(number), "", ())
        for number in range(len(own))
    ]
    under = [{(key.configuration, key.machine): tuple(("speed", it) for it in one.speeds)} for one in own]
    history = History(versions, list(range(len(own))), [key], cells, frozenset({key}), under, [])
    found = detect(history, effect, Rules(), remembered or NothingKept(), Kept(own), lambda done, total: None)
    return Told(by_version(history, found.steps), len(found.drifts))
