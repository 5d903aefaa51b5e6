"""Inputs that take more room than there is in memory."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from in_process import campaign, events_of

from perun.fuzz.corpus import Member, Storage, Stored
from perun.fuzz.findings import read


def member(number, data):
    return Member(number, str(number), data, "", "seed", ())


def files_in(folder):
    """Those that this process has open."""
    links = [os.readlink(one) for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
    return [link for link in links if link.startswith(str(folder))]


def in_memory(members):
    return sum(one.size for one in members if isinstance(one.content, bytes))


def test_so_many_bytes_are_in_memory_at_most_and_all_can_be_read(tmp_path):
    storage = Storage(tmp_path, room=1000)
    data = [bytes([number % 256]) * (number % 300) for number in range(500)]
    members = [member(number, one) for number, one in enumerate(data)]
    for number, one in enumerate(members):
        storage.add(one)
        storage.add(one)  # as a fault that was slow before
        assert in_memory(members[: number + 1]) <= 1000
    assert in_memory(members) > 600
    assert [one.data for one in members] == data
    assert [one.size for one in members] == [len(one) for one in data]
    assert not list(tmp_path.iterdir())


def test_what_is_larger_than_all_room_is_not_kept_in_memory(tmp_path):
    storage = Storage(tmp_path, room=1000)
    one = member(1, b"x" * 5000)
    storage.add(one)
    assert isinstance(one.content, Stored)
    assert one.data == b"x" * 5000


def test_nothing_is_left_open(tmp_path):
    storage = Storage(tmp_path, room=0)
    storage.add(member(1, b"data"))
    assert len(files_in(tmp_path)) == 1
    del storage
    assert not files_in(tmp_path)


def test_a_campaign_finds_the_same_with_hardly_any_memory(tmp_path, monkeypatch):
    whole = campaign(tmp_path / "whole")
    events_of(whole)
    monkeypatch.setattr("perun.fuzz.findings.Storage", lambda folder: Storage(folder, room=500))
    small = campaign(tmp_path / "small")
    events_of(small)
    assert in_memory(small.found.corpus) <= 500 < in_memory(whole.found.corpus)
    assert [one.data for one in small.found.corpus] == [one.data for one in whole.found.corpus]
    again = campaign(tmp_path / "small", executions=700)
    again.restore(islice(read(tmp_path / "small"), 1, None))
    assert in_memory(again.found.corpus) <= 500
    assert [one.data for one in again.found.corpus] == [one.data for one in whole.found.corpus]
    list(again.search())
    assert again.executions == 700
