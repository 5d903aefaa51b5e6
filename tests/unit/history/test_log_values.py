"""Values beside those of the ancestors of the versions of a walk, also where branches merge."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest

from perun.history.earlier import Value, Wanted
from perun.history.log import LogValue, WithValues
from perun.measurement.difference import DEFAULTS
from perun.measurement.estimate import Kind, Point, Round, Sample
from perun.measurement.noise import WINDOW
from perun.measurement.verdict import along
from perun.profile.head import Configuration


class Version(NamedTuple):
    name: str
    parents: tuple[str, ...]
    values: dict[Wanted, Value]


def wanted(name: str) -> Wanted:
    return Wanted(Configuration("time", name, "", "", ()), "", "real time", "s")


def measured(amount: float, rounds: int = 1) -> Value:
    """A value of which the last digits are the noise."""
    sample = Sample(5, amount, 0.001)
    point = Point(tuple(Round("", number, {"": sample}) for number in range(rounds)), Kind.TIMED)
    return Value("real time", "s", False, point)


def history(seed: int, count: int) -> list[Version]:
    """Versions with forks and merges, the newest first; some have values of up to three configurations."""
    rng = random.Random(seed)
    made: list[Version] = []
    for number in range(count):
        parents = {number - 1} if number else set()
        if number > 3 and rng.random() < 0.3:
            parents |= {rng.randrange(number)}
        elif number > 3 and rng.random() < 0.2:
            parents = {rng.randrange(number)}
        found = {
            wanted(one): measured(number + 1.0) for one in "abc" if rng.random() < (0.05, 0.3, 0.8)[seed % 3]
        }
        made.append(Version(f"{number}", tuple(str(one) for one in sorted(parents)), found))
    return made[::-1]


def expected(walk: list[Version], position: int, one: Wanted) -> list[str]:
    """The ancestors that have it: those along first parents, then the others in the order of the walk."""
    by_name = {version.name: version for version in walk}
    line, name = [], walk[position].name
    while parents := by_name[name].parents:
        name = parents[0]
        line.append(name)
    ancestors, others = set(walk[position].parents), []
    for version in walk[position + 1 :]:
        if version.name in ancestors:
            ancestors |= set(version.parents)
            if version.name not in line:
                others.append(version.name)
    return [name for name in line + others if one in by_name[name].values][:WINDOW]


def joined(walk: list[Version], **options: int) -> list[tuple[Version, tuple[LogValue, ...]]]:
    def version_of(version: Version) -> tuple[str, tuple[str, ...]]:
        return version.name, version.parents

    return list(WithValues(version_of, lambda version: version.values, DEFAULTS, **options).join(walk))


@pytest.mark.parametrize("seed", range(12))
def test_the_line_of_ancestors_in_any_history(seed: int) -> None:
    walk = history(seed, 80)
    by_name = {version.name: version for version in walk}
    found = joined(walk)
    assert [version for version, _ in found] == walk
    for position, (version, values) in enumerate(found):
        assert [value.judged.value for value in values] == list(version.values.values())
        for one, value in zip(version.values, values, strict=True):
            names = expected(walk, position, one)
            assert [name for name, _ in value.line] == names
            assert value.judged.since == (names[0] if names else "")
            points = [by_name[name].values[one].point for name in names]
            # What is kept of one version for the next changes no verdict.
            assert value.judged.verdict == along(value.judged.value.point, points)


def test_a_change_that_the_next_version_has_too_is_confirmed() -> None:
    series = wanted("a")

    def marks(amounts: list[float]) -> list[bool | None]:
        """Of each version, the newest first, whether its change is confirmed; None where there is none."""
        walk = [
            Version(str(number), (str(number - 1),) if number else (), {series: measured(amount)})
            for number, amount in enumerate(amounts)
        ]
        given = [value.judged for _, (value,) in joined(walk[::-1])]
        changed = [one.verdict is not None and one.verdict.decides for one in given]
        return [one.confirmed if is_one else None for one, is_one in zip(given, changed, strict=True)]

    assert marks([1.0, 1.0, 9.0]) == [False, None, None]
    assert marks([1.0, 1.0, 9.0, 9.0]) == [None, True, None, None]
    assert marks([1.0, 1.0, 9.0, 1.0, 1.0]) == [None, True, False, None, None]
    assert marks([1.0, 9.0, 9.0]) == [None, False, None]  # the version before was seen once


def test_no_version_waits_for_long() -> None:
    line = [Version(str(number), (str(number - 1),), {}) for number in range(100, 0, -1)]
    line[0] = line[0]._replace(values={wanted("a"): measured(1.0)})
    line[60] = line[60]._replace(values={wanted("a"): measured(2.0)})
    assert joined(line)[0][1][0].line
    assert joined(line, look_ahead=60)[0][1][0].line
    assert not joined(line, look_ahead=59)[0][1][0].line
    assert [version for version, _ in joined(line, look_ahead=59)] == line

    seen: list[str] = []

    def version_of(version: Version) -> tuple[str, tuple[str, ...]]:
        seen.append(version.name)
        return version.name, version.parents

    next(WithValues(version_of, lambda version: version.values, DEFAULTS, 10).join(iter(line)))
    assert len(seen) == 11
