"""Earlier values beside the versions of a walk: those of the nearest ancestors, also where branches merge."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest

from perun.porcelain.earlier import Wanted
from perun.porcelain.log_values import LogValue, WithValues
from perun.profile.head import Configuration
from perun.profile.measured import Measured


class Version(NamedTuple):
    name: str
    parents: tuple[str, ...]
    values: dict[Wanted, Measured]


def wanted(name: str) -> Wanted:
    return Wanted(Configuration("time", name, "", "", ()), "", "real time", "s")


def history(seed: int, count: int) -> list[Version]:
    """Versions with forks and merges, the newest first; some have values of up to three configurations."""
    dice = random.Random(seed)
    made: list[Version] = []
    for number in range(count):
        parents = {number - 1} if number else set()
        if number > 3 and dice.random() < 0.3:
            parents |= {dice.randrange(number)}
        elif number > 3 and dice.random() < 0.2:
            parents = {dice.randrange(number)}
        found = {
            wanted(one): Measured("real time", float(number + 1), "s", None, 1)
            for one in "abc"
            if dice.random() < (0.05, 0.3, 0.8)[seed % 3]
        }
        made.append(Version(f"{number}", tuple(str(one) for one in sorted(parents)), found))
    return made[::-1]


def expected(walk: list[Version], position: int, one: Wanted) -> str | None:
    """The first ancestor in the order of the walk that has it."""
    ancestors = set(walk[position].parents)
    for version in walk[position + 1 :]:
        if version.name in ancestors:
            if one in version.values:
                return version.name
            ancestors |= set(version.parents)
    return None


def joined(walk: list[Version], **options: int) -> list[tuple[Version, tuple[LogValue, ...]]]:
    def version_of(version: Version) -> tuple[str, tuple[str, ...]]:
        return version.name, version.parents

    return list(WithValues(version_of, lambda version: version.values, **options).join(walk))


@pytest.mark.parametrize("seed", range(12))
def test_the_nearest_ancestor_in_any_history(seed: int) -> None:
    walk = history(seed, 80)
    found = joined(walk)
    assert [version for version, _ in found] == walk
    for position, (version, values) in enumerate(found):
        assert [value.measured for value in values] == list(version.values.values())
        for one, value in zip(version.values, values, strict=True):
            earlier = None if value.earlier is None else value.earlier.minor_version
            assert earlier == expected(walk, position, one)
            if value.earlier is not None:
                assert value.earlier.measured.value == int(value.earlier.minor_version) + 1


def test_no_version_waits_for_long() -> None:
    line = [Version(str(number), (str(number - 1),), {}) for number in range(100, 0, -1)]
    line[0] = line[0]._replace(values={wanted("a"): Measured("real time", 1.0, "s", None, 1)})
    line[60] = line[60]._replace(values={wanted("a"): Measured("real time", 2.0, "s", None, 1)})
    assert joined(line)[0][1][0].earlier is not None
    assert joined(line, look_ahead=60)[0][1][0].earlier is not None
    assert joined(line, look_ahead=59)[0][1][0].earlier is None
    assert [version for version, _ in joined(line, look_ahead=59)] == line

    seen: list[str] = []

    def version_of(version: Version) -> tuple[str, tuple[str, ...]]:
        seen.append(version.name)
        return version.name, version.parents

    next(WithValues(version_of, lambda version: version.values, 10).join(iter(line)))
    assert len(seen) == 11
