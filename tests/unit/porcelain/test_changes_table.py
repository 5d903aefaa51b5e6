"""The table of what all versions measured: what is read is what was saved, in however many pieces."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from perun.porcelain.changes import table as module
from perun.porcelain.changes.data import SeriesKey
from perun.porcelain.changes.table import Cell, Column, Table
from perun.profile.head import Configuration

FILES = ("table", "table-new.json")


@pytest.fixture
def repo(tmp_path):
    """What a table knows of a repository: where its files are."""
    series = SimpleNamespace(path=lambda name: tmp_path / name)
    return SimpleNamespace(store=SimpleNamespace(series=series), folder=tmp_path)


def key(number):
    return SeriesKey(Configuration("time", "./app", "", str(number), ()), "fast", "run", "time", "real", "s",
                     False, False)  # fmt: skip


def column(number, keys):
    cells = {
        key(one): Cell(1.5 * number + one, *(math.nan if one % 2 else 0.25,) * 2, 5, 2, 1, 2**31 + number)
        for one in keys
    }
    under = {(key(0).configuration, "fast"): (("processor", f"P{number % 2}"), ("kernel", "6"))}
    lacking = (key(9).configuration,) if number == 3 else ()
    return Column((1000 + number, 70), cells, under, lacking, 2, (key(0),) if 0 in keys else ())


def name(number):
    return f"{number:040x}"


def content(table):
    """All that a table says, without what stands for it on the disk."""
    numbers = [np.nan_to_num(one, nan=-1.0).tolist() for one in table.cells]
    told = (table.states, table.conditions, table.incomplete, table.profiles)
    return table.keys, table.headlines, table.place, told, numbers


def test_columns_that_come_one_by_one_are_those_that_come_together(repo, monkeypatch):
    monkeypatch.setattr(module, "MOST_NEW", 3)
    # A series comes later, one goes, and a column is measured again.
    columns = [(number, column(number, range(2 + (number > 4)))) for number in range(9)]
    columns.append((2, column(20, [1])))
    together = Table()
    for number, one in columns:
        together.add({name(number): one})
        table = Table.load(repo)
        table.add({name(number): one})
        table.save(repo)
        assert content(Table.load(repo)) == content(together)
    assert all((repo.folder / one).exists() for one in FILES)


@pytest.mark.parametrize("spoil", [
    lambda data: b"", lambda data: data[:-1], lambda data: data + b"\0", lambda data: b"[]" + data,
    lambda data: data.replace(b'"format": 5', b'"format": 4').replace(b"[5,", b"[4,", 1),
])  # fmt: skip
@pytest.mark.parametrize("file", FILES)
def test_what_is_no_table_is_nothing(repo, file, spoil):
    table = Table()
    table.add({name(1): column(1, [0, 1])})
    table.save(repo)
    table.add({name(2): column(2, [0, 2])})
    table.save(repo)
    path = repo.folder / file
    path.write_bytes(spoil(path.read_bytes()))
    found = Table.load(repo)
    assert list(found.place) == ([] if file == FILES[0] else [name(1)])
    if found.place:
        assert found.values.shape == (2, 1)
        assert found.keys == [key(0), key(1)]


def test_new_columns_of_another_table_are_not_taken(repo):
    first = Table()
    first.add({name(1): column(1, [0])})
    first.save(repo)
    first.add({name(2): column(2, [0])})
    first.save(repo)
    second = Table()
    second.add({name(3): column(3, [1])})
    second.save(repo)
    assert list(Table.load(repo).place) == [name(3)]
