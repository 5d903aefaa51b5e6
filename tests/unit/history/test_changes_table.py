"""The table of what all versions measured: what is read is what was saved, in however many pieces."""

import math
from contextlib import chdir

import numpy as np
import pytest

import measured_history
from perun.history.changes.data import SeriesKey
from perun.history.changes.history import (
    Cell,
    HistoryPoints,
    HistoryTable,
    VersionColumn,
    cells_of,
    load,
    read,
    save,
)
from perun.measurement.noise import WINDOW
from perun.profile.head import Configuration
from perun.store.cache import FILE, Cache


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / FILE)


def key(number):
    return SeriesKey(Configuration("time", "./app", "", str(number), ()), "fast", "run", "time", "real", "s",
                     False, False)  # fmt: skip


def column(number, keys):
    cells = cells_of(
        Cell(1.5 * number + one, *(math.nan if one % 2 else 0.25,) * 2, 5, 2, 1, 2**31 + number)
        for one in keys
    )
    under = {(key(0).configuration, "fast"): (("processor", f"P{number % 2}"), ("kernel", "6"))}
    lacking = (key(9).configuration,) if number == 3 else ()
    leading = (key(0),) if 0 in keys else ()
    return VersionColumn((1000 + number, 70), tuple(map(key, keys)), cells, under, lacking, 2, leading)


def name(number):
    return f"{number:040x}"


def content(table):
    """All that a table says, without what stands for it on the disk."""
    numbers = [np.nan_to_num(one, nan=-1.0).tolist() for one in table.cells]
    told = (table.states, table.conditions, table.incomplete, table.profiles)
    return table.keys, table.headlines, table.place, told, numbers


def test_columns_that_come_one_by_one_are_those_that_come_together(cache):
    # A series comes later, one goes, and a column is measured again.
    columns = [(number, column(number, range(2 + (number > 4)))) for number in range(9)]
    columns.append((2, column(20, [1])))
    one_by_one = HistoryTable()
    for number, one in columns:
        one_by_one.add({name(number): one})
        save(cache, {name(number): one})
    states = {name(number): one.state for number, one in columns}
    together = HistoryTable()
    together.add({name(number): one for number, one in columns})
    read = HistoryTable()
    read.add(load(cache, states))
    assert content(read) == content(together) == content(one_by_one)


def test_a_column_of_another_state_is_not_taken(cache):
    save(cache, {name(1): column(1, [0]), name(2): column(2, [0, 1])})
    assert list(load(cache, {name(2): (1002, 70), name(1): (1001, 71), name(3): (1, 1)})) == [name(2)]


def test_a_column_without_the_names_of_its_series_is_not_taken(cache):
    save(cache, {name(1): column(1, [0])})
    cache.keep_only("names", ())
    assert load(cache, {name(1): (1001, 70)}) == {}


def test_only_the_versions_before_that_are_looked_at_are_read(tmp_path):
    made = measured_history.make(tmp_path / "project", commits=40)
    with chdir(made.path):
        repo = made.open()
        found = read(repo, "HEAD", lambda done, total: None)
        line = iter(made.main[-2::-1])
        points = HistoryPoints(repo, made.main[-1], made.main).before(made.main[-1], found.keys[0], line)
    assert len(points) == WINDOW
    assert len(list(line)) == 39 - WINDOW
