"""Finding change points: the vote of `perun changes` beside ruptures and Apache Otava, and its speed.

The histories are generated (`histories.py`): their steps are known. A step is found by a place at most five
points away. The others run in an environment of their own, as they need other versions of libraries.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import chdir
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harness import cpu
from histories import History, history, matched
from perun.history.changes.data import History as Measured
from perun.history.changes.data import SeriesKey
from perun.history.changes.detecting import detect
from perun.history.changes.history import HistoryPoints
from perun.history.changes.remembered import ChangesCache
from perun.measurement.difference import Rules
from perun.models import change_points
from perun.plugin.api import MinorVersion
from perun.profile.head import Configuration
from perun.repository.init import init
from perun.repository.repository import open_repository
from report import Count, Place, Row
from repositories import history as repository

FIRST, HISTORIES, POINTS = 1000, 400, 300
PEERS = Path("build/history-peers/bin/python").absolute()
"""The Python that has ruptures and Apache Otava; made by `make bench`."""
SERIES, LONG = 1000, 1000


class Score(NamedTuple):
    """How well places agree with the steps: shares of those told, of the steps, and their harmonic mean."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        return 2 * self.precision * self.recall / max(self.precision + self.recall, 1e-9)

    @property
    def text(self) -> str:
        return f"precision {self.precision:.3f}, recall {self.recall:.3f}, F1 {self.f1:.3f}"


def score(made: Sequence[History], found: Sequence[Sequence[int]]) -> Score:
    """The score of what was found in all histories."""
    hits = told = steps = 0
    for one, places in zip(made, found, strict=True):
        true = [place for place, _ in one.steps]
        hits += matched(list(places), true)
        told += len(places)
        steps += len(true)
    return Score(hits / max(told, 1), hits / max(steps, 1))


def vote(place: Place) -> Iterator[Row | Count]:
    """400 histories of 300 points: F1 and CPU time of each program; quiet histories that are flagged."""
    made = [history(seed, POINTS) for seed in range(FIRST, FIRST + HISTORIES)]
    change_points.change_points(made[0].values)  # what is imported at the first use

    def search() -> list[list[int]]:
        return [[one.place for one in change_points.change_points(one.values).changes] for one in made]

    seconds, found = cpu(search, 1)
    ours = score(made, found)
    numbers = [str(number) for number in (FIRST, HISTORIES, POINTS)]
    script = str(Path(__file__).with_name("changes_peers.py"))
    done = subprocess.run([str(PEERS), script, *numbers], stdout=subprocess.PIPE, check=True)
    what = f"change points in {HISTORIES} histories of {POINTS} points"
    for name, answer in json.loads(done.stdout).items():
        theirs = score(made, answer["places"])
        title = f"{what}, 1 - F1 in thousandths: ours {ours.text}; {name} {theirs.text}"
        yield Row(title, 1000 * (1 - ours.f1), 1000 * (1 - theirs.f1), name, 1.0, "")
        each = f"{what}, CPU for each"
        yield Row(each, seconds / HISTORIES, answer["seconds"] / HISTORIES, name, None)
    told, steps = sum(map(len, found)), sum(len(one.steps) for one in made)
    hits = round(ours.precision * told)
    yield Count(f"{what}: places that are steps", hits, told, least=int(np.ceil(0.95 * told)))
    yield Count(f"{what}: steps that are found", hits, steps, least=int(np.ceil(0.85 * steps)))
    quiet = [places for one, places in zip(made, found, strict=True) if not one.steps]
    flagged = sum(map(bool, quiet))
    yield Count(f"{what}: those without steps that are flagged", flagged, len(quiet), most=len(quiet) // 20)


def many(place: Place) -> Iterator[Row]:
    """1,000 series of 1,000 versions: CPU time of the first search, and of that after one more commit."""
    folder = place.folder / "many-series"
    repository(folder, 1)
    with chdir(folder):
        init(folder, os.environ)
        repo = open_repository(folder, os.environ)
    rows = np.array([history(seed, LONG + 1).values for seed in range(FIRST, FIRST + SERIES)])
    seconds = []
    for count in (LONG, LONG + 1):
        measured = _measured(rows[:, :count])
        start = time.process_time()
        rules = Rules()
        remembered, points = ChangesCache(repo, change_points.EFFECT, rules), HistoryPoints(repo, "HEAD", ())
        detect(measured, change_points.EFFECT, rules, remembered, points, lambda done, total: None)
        seconds.append(time.process_time() - start)
    what = f"change points of {SERIES:,} series of {LONG:,} versions, CPU"
    yield Row(what, seconds[0], 60.0, "a minute", 1.0, is_rival=False)
    yield Row(f"{what}, after one more version", seconds[1], 1.0, "a second", 1.0, is_rival=False)


def _measured(values: np.ndarray) -> Measured:
    """A history of so many series and versions."""
    configuration = Configuration("time", "./app", "", "", ())
    keys = [
        SeriesKey(configuration, "", f"f{number}", "mixed", "", "ms", False, False)
        for number in range(len(values))
    ]
    versions = [
        MinorVersion("2026-01-01 00:00:00", "A", "a@example.org", f"{number:040x}", "", ())
        for number in range(values.shape[1])
    ]
    half, ones = np.full(values.shape, np.nan), np.ones(values.shape, int)
    cells = (values, half, half, ones, ones, ones, np.zeros(values.shape, np.uint32))
    return Measured(versions, list(range(len(versions))), keys, cells, frozenset(), [{}] * len(versions), [])
