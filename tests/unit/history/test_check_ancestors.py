"""The order in which ancestors are looked at: the same, whether straight lines are jumped over or not."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from perun.history.check.check import History
from perun.plugin.api import MinorVersion


def versions(seed: int, count: int) -> list[MinorVersion]:
    """A history with long lines, forks and merges, the newest first; now and then a parent is not there."""
    rng = random.Random(seed)
    made: list[MinorVersion] = []
    for number in range(count):
        parents = {f"{number - 1}"} if number else set()
        if number > 3 and rng.random() < 0.15:
            parents |= {f"{rng.randrange(number)}" for _ in range(rng.choice((1, 1, 2)))}
        elif number > 3 and rng.random() < 0.1:
            parents = {f"{rng.randrange(number)}"}
        elif rng.random() < 0.02:
            parents = {"beyond"}
        made.append(MinorVersion("", "", "", f"{number}", "", tuple(sorted(parents))))
    return made[::-1]


def repository(walk: list[MinorVersion]) -> Any:
    return SimpleNamespace(vcs=SimpleNamespace(walk_subjects=lambda head, ordered: iter(walk)))


@pytest.mark.parametrize("seed", range(12))
def test_jumps_change_no_order(seed: int) -> None:
    walk = versions(seed, 60)
    rng = random.Random(seed)
    among = {one.checksum for one in walk if rng.random() < (0.05, 0.3, 0.8)[seed % 3]}
    head = walk[0].checksum
    plain = History(repository(walk), head, ordered=True)
    jumping = History(repository(walk), head, ordered=True, among=among)
    for version, same in zip(plain, jumping, strict=True):
        assert version == same
        expected = [one for one in plain.ancestors(version.checksum) if one.checksum in among]
        assert list(jumping.ancestors(version.checksum)) == expected
