"""`perun trend`: how the value of each configuration developed over the versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from perun.core.errors import DamagedStore, ProfileNotFound
from perun.core.wording import listed
from perun.history.baseline import (
    BaselineComparison,
    HeadlineSeries,
    KnownSummaries,
    SeriesValue,
    rules_of,
    values_of_version,
)
from perun.history.log import ChangeConfirmation, LogValue, LogValues, nowhere
from perun.measurement.difference import Rules
from perun.measurement.noise import learn
from perun.measurement.verdict import compare, confirmed
from perun.plugin.api import MinorVersion
from perun.profile.head import Configuration
from perun.profile.uid import location
from perun.repository import walking
from perun.repository.repository import Repository


class TrendPoint(NamedTuple):
    """The value of one version, beside the version before."""

    version: MinorVersion
    judged: BaselineComparison


class TrendSeries(NamedTuple):
    """The values of one configuration, metric and class of machine, the oldest first; one at least.

    :param overall: the last point beside the first one; without a verdict where they are the same.
    """

    key: HeadlineSeries
    points: list[TrendPoint]
    overall: BaselineComparison


class Trend(NamedTuple):
    """What `perun trend` tells.

    :param series: in the order in which the newest version has them, then the older ones.
    :param versions: how many versions were looked at. :param measured: how many of them have points.
    :param damaged: what cannot be read, one message for each version.
    :param unread: how many profiles were not read, as they are too many or too large.
    """

    series: list[TrendSeries]
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

    :param pattern: which series, as :func:`rank`, by collector, command, arguments and workload.
    :param limit: the newest versions with points; all if None.
    :param since: a version, which is left out with its ancestors, or a date, `2026-11-22`, which is not.
    :param metric: what the name of the metric contains.
    :raises ProfileNotFound: if there are values, and none that is asked for.
    :raises VersionControlError: if there is no such version.
    """
    known = KnownSummaries(repo)
    found: dict[HeadlineSeries, list[tuple[MinorVersion, LogValue]]] = {}
    others: set[str] = set()
    troubles: dict[str, str] = {}

    def values_of(version: MinorVersion) -> Mapping[HeadlineSeries, SeriesValue]:
        try:
            there = repo.store.indexes.has(version.checksum)
            return values_of_version(repo, version.checksum, known) if there else {}
        except DamagedStore as problem:
            troubles[version.checksum] = problem.message
            return {}

    head = repo.version(revision)
    newer = nowhere if revision is None else ChangeConfirmation(repo)
    every = LogValues(_version_of, values_of, rules_of(repo), newer=newer)
    joined = every.join(repo.vcs.walk_subjects(head))
    values = {}
    visited: list[str] = []
    measured = 0
    for version in walking.since(repo, walking.first_parents(repo, head), since):
        if limit is not None and measured >= limit:
            break
        visited.append(version.checksum)
        while version.checksum not in values:
            one, own = next(joined)
            values[one.checksum] = own
        chosen = [one for one in values[version.checksum] if _rank(one.wanted, pattern, metric)]
        for value in values.pop(version.checksum):
            if value not in chosen:
                others.add(f"{text_of(value.wanted.configuration)} ({value.wanted.metric})")
        for value in chosen:
            found.setdefault(value.wanted, []).append((version, value))
        measured += bool(chosen)
    damaged = [troubles[checksum] for checksum in visited if checksum in troubles]
    if others and not found:
        asked = [f"{pattern!r}"] * bool(pattern) + [f"the metric {metric!r}"] * bool(metric)
        there = listed(sorted(others), 5)
        raise ProfileNotFound(f"no series matches {' and '.join(asked)}", f"there are: {there}")
    rules = rules_of(repo)
    ranks = {key: _rank(key, pattern, metric) for key in found}
    best = max(ranks.values(), default=0)
    found = {key: points for key, points in found.items() if ranks[key] == best}
    series = [_series(key, points[::-1], rules) for key, points in found.items()]
    return Trend(series, len(visited), measured, damaged, known.unread)


def text_of(configuration: Configuration) -> str:
    """`./app --fast input.txt`: command, arguments and workload."""
    return " ".join(filter(None, (configuration.cmd, configuration.args, configuration.workload)))


def rank(names: Sequence[str], pattern: str) -> int:
    """How well a pattern says which series is meant, 0 where it does not: as one of the names itself, as a
    part of one, by words of the first in their order (a file without its folder), or with `*`, `?` or `[` as
    what a part of it matches."""
    if pattern in names:
        return 4
    if any(pattern in name for name in names):
        return 3
    left = iter(names[0].split())
    if all(any(one in (word, word.rpartition("/")[2]) for word in left) for one in pattern.split()):
        return 2
    return int(fnmatchcase(names[0], f"*{pattern}*"))


def _rank(one: HeadlineSeries, pattern: str, metric: str) -> int:
    if metric.lower() not in one.metric.lower():
        return 0
    text, collector = text_of(one.configuration), one.configuration.collector
    clock = location(one.configuration.cmd, one.metric.removesuffix(" time"))
    return rank((f"{collector} {text}", text, f"{text} ({collector})", clock), pattern)


def _version_of(version: MinorVersion) -> tuple[str, tuple[str, ...]]:
    return version.checksum, version.parents


def _series(
    key: HeadlineSeries, values: Sequence[tuple[MinorVersion, LogValue]], rules: Rules
) -> TrendSeries:
    """The series of values, the oldest first, and the last one beside the first."""
    points = [TrendPoint(version, value.judged) for version, value in values]
    (first, _), (_, last) = values[0], values[-1]
    overall = BaselineComparison(last.judged.value)
    if len(points) > 1 and points[0].judged.value.metric == overall.value.metric:
        base, target = points[0].judged.value, last.judged.value
        line = [one.point for _, one in last.line]
        noise = learn(line[::-1])
        better = target.larger_is_better
        verdict = compare(base.point, target.point, noise, rules, larger_is_better=better)
        sure = verdict is None or confirmed(verdict, base.point, target.point, line)
        overall = BaselineComparison(target, verdict, first.checksum, sure)
    return TrendSeries(key, points, overall)
