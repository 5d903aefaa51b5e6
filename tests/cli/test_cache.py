"""Whatever the cache has lost, every command answers the same."""

from __future__ import annotations

import itertools
import json
import random
import sqlite3
from contextlib import closing
from zlib import crc32

import msgspec
import pytest

from perun.store.cache import FILE, Cache

COMMANDS = (
    ("status", "--json"), ("status",), ("log", "--json"), ("log", "--short"), ("log",), ("trend", "--json"),
    ("changes", "--json", "--all"), ("check", "head"), ("log", "--short", "--changes-only"),
)  # fmt: skip
TABLES = ("facts", "series", "names", "columns", "summaries", "found", "steps")


def answers(perun):
    # `log` and `status` show the steps that `changes` has found, so it comes first.
    perun("changes")
    done = [perun(*command, check=False) for command in COMMANDS]
    return [(one.code, one.out, one.err) for one in done]


@pytest.fixture
def asked(perun, measured, monkeypatch):
    """The answers of all commands with the whole cache, and its file."""
    monkeypatch.chdir(measured.path)
    answers(perun)
    return answers(perun), measured.path / ".perun" / "cache" / FILE


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))])
def test_whatever_entries_are_missing_or_damaged_the_answers_are_the_same(perun, asked, seed):
    expected, path = asked
    chance = random.Random(seed)
    driver = sqlite3.connect(path)
    for table in TABLES:
        keys = [key for (key,) in driver.execute(f"SELECT key FROM {table}")]
        for key in chance.sample(keys, chance.randint(0, len(keys))):
            if chance.random() < 0.5:
                driver.execute(f"DELETE FROM {table} WHERE key = ?", (key,))
            else:
                driver.execute(f"UPDATE {table} SET sum = sum + 1 WHERE key = ?", (key,))
    driver.commit()
    driver.close()
    assert answers(perun) == expected
    perun("fsck", "--repair")
    assert perun("fsck", "--json").json["findings"] == []
    assert answers(perun) == expected


def otherwise(value, place):
    """The value with what a walk through its leaves meets at that place of another type; None beyond it."""
    leaves = itertools.count()

    def turned(one):
        if isinstance(one, dict):
            return {key: turned(own) for key, own in one.items()}
        if isinstance(one, list):
            return [turned(own) for own in one]
        if next(leaves) != place:
            return one
        return [one] if isinstance(one, str) else "text"

    found = turned(value)
    return found if next(leaves) > place else None


def test_entries_that_have_other_types_are_made_again(perun, asked):
    expected, path = asked
    chance = random.Random(1)
    with closing(sqlite3.connect(path)) as driver, driver:
        for table in TABLES:
            packed = table not in ("facts", "summaries", "steps")
            read = msgspec.msgpack.decode if packed else json.loads
            write = msgspec.msgpack.encode if packed else msgspec.json.encode
            for key, data in list(driver.execute(f"SELECT key, data FROM {table}")):
                value = read(data)
                places = [place for place in range(50) if otherwise(value, place) is not None]
                made = write(otherwise(value, chance.choice(places)))
                sum_ = crc32(made, crc32(key.encode()))
                driver.execute(f"UPDATE {table} SET data = ?, sum = ? WHERE key = ?", (made, sum_, key))
    assert answers(perun) == expected


@pytest.mark.parametrize("state", ["missing", "truncated", "damaged", "of the future", "a folder"])
def test_whatever_the_file_is_the_answers_are_the_same(perun, asked, state):
    expected, path = asked
    content = path.read_bytes()
    if state == "of the future":
        driver = sqlite3.connect(path)
        driver.execute("PRAGMA user_version = 1000")
        driver.close()
    else:
        path.unlink()
    if state == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif state == "damaged":
        damaged = bytearray(content)
        for place in random.Random(1).sample(range(len(content)), len(content) // 500):
            damaged[place] ^= 0x55
        path.write_bytes(damaged)
    elif state == "a folder":
        path.mkdir()
    found = answers(perun)
    if state != "a folder":
        assert found == expected
        assert Cache(path).damage() == ""
        return
    # Where none can be made, what only `changes` could have kept is missing.
    own = COMMANDS.index(("changes", "--json", "--all"))
    assert found[own] == expected[own]
    assert "it is not a regular file" in perun("-v", "log", "--short").err
    assert "it is not a regular file" not in perun("log", "--short").err
