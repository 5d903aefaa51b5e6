"""`perun trend`: how the value of each configuration developed over the versions."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from perun.errors import DamagedStore, ProfileNotFound
from perun.plugin.api import MinorVersion
from perun.porcelain import walking
from perun.porcelain.earlier import Wanted, of_version
from perun.porcelain.known import KnownFacts
from perun.porcelain.repository import Repository
from perun.profile.head import Configuration
from perun.profile.measured import Difference, Measured, difference
from perun.wording import listed

MOST_READ: Final = 1000
"""Profiles that are read for their values because the cache lacks them."""
MOST_BYTES: Final = 32 << 20


class Point(NamedTuple):
    """The value of one version, and its difference from the point before; None for the first one."""

    version: MinorVersion
    measured: Measured
    difference: Difference | None


class Series(NamedTuple):
    """The values of one configuration, metric and class of machine, the oldest first; one at least."""

    key: Wanted
    points: list[Point]

    @property
    def difference(self) -> Difference | None:
        """From the first to the last point; None where they are the same or cannot be compared."""
        if len(self.points) < 2:
            return None
        return difference(self.points[0].measured, self.points[-1].measured)


class Trend(NamedTuple):
    """What `perun trend` tells.

    :param series: in the order in which the newest version has them, then the older ones.
    :param versions: how many versions were looked at. :param measured: how many of them have points.
    :param damaged: what cannot be read, one message for each version.
    :param unread: how many profiles were not read, as they are too many or too large.
    """

    series: list[Series]
    versions: int
    measured: int
    damaged: list[str]
    unread: int


def trend(
    repo: Repository,
    pattern: str = "",
    revision: str | None = None,
    *,
    limit: int | None = None,
    since: str | None = None,
    metric: str = "",
) -> Trend:
    """The values along the first parents of a version, HEAD if None.

    :param pattern: what the text of the configuration (collector, command, arguments and workload) contains;
        with `*`, `?` or `[`, what it matches as a whole or in part.
    :param limit: the newest versions with points; all if None.
    :param since: a version, which is left out with its ancestors, or a date, `2026-11-22`, which is not.
    :param metric: what the name of the metric contains.
    :raises ProfileNotFound: if there are values, and none that is asked for.
    :raises VersionControlError: if there is no such version.
    """
    known = KnownFacts(repo, MOST_READ, MOST_BYTES)
    found: dict[Wanted, list[tuple[MinorVersion, Measured]]] = {}
    others: set[str] = set()
    damaged: list[str] = []
    versions = measured = 0
    for version in walking.since(repo, walking.first_parents(repo, repo.version(revision)), since):
        if limit is not None and measured >= limit:
            break
        versions += 1
        if not repo.store.indexes.has(version.checksum):
            continue
        try:
            values = of_version(repo, version.checksum, known)
        except DamagedStore as problem:
            damaged.append(problem.message)
            continue
        chosen = [one for one in values if _is_chosen(one, pattern, metric)]
        others |= {f"{text_of(one.configuration)} ({one.metric})" for one in values.keys() - set(chosen)}
        for one in chosen:
            found.setdefault(one, []).append((version, values[one]))
        measured += bool(chosen)
    if others and not found:
        asked = [f"{pattern!r}"] * bool(pattern) + [f"the metric {metric!r}"] * bool(metric)
        there = listed(sorted(others), 5)
        raise ProfileNotFound(f"no series matches {' and '.join(asked)}", f"there are: {there}")
    series = [Series(key, _points(reversed(values))) for key, values in found.items()]
    return Trend(series, versions, measured, damaged, known.unread)


def text_of(configuration: Configuration) -> str:
    """`./app --fast input.txt`: command, arguments and workload."""
    return " ".join(filter(None, (configuration.cmd, configuration.args, configuration.workload)))


def matches(text: str, pattern: str) -> bool:
    """Whether the text contains the pattern or, where that has `*`, `?` or `[`, a part of it matches."""
    if any(character in pattern for character in "*?["):
        return fnmatchcase(text, f"*{pattern}*")
    return pattern in text


def _is_chosen(one: Wanted, pattern: str, metric: str) -> bool:
    if metric.lower() not in one.metric.lower():
        return False
    return matches(f"{one.configuration.collector} {text_of(one.configuration)}", pattern)


def _points(values: Iterable[tuple[MinorVersion, Measured]]) -> list[Point]:
    points: list[Point] = []
    for version, measured in values:
        before = difference(points[-1].measured, measured) if points else None
        points.append(Point(version, measured, before))
    return points
