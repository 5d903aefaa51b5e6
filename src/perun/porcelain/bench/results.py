"""What was measured of each command, beside the other commands and beside earlier versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from perun.errors import ProfileError
from perun.measurement.estimate import Estimate
from perun.measurement.noise import NOTHING
from perun.measurement.verdict import Verdict, compare
from perun.plugin.api import MinorVersion
from perun.porcelain import earlier
from perun.porcelain.bench.measuring import Series, precision_of
from perun.porcelain.bench.plan import Benchmark
from perun.porcelain.earlier import Judged, rules_of
from perun.porcelain.repository import Repository
from perun.process.execution import Sample
from perun.profile.factory import Profile
from perun.profile.head import Head

_READ: Final = 8
"""Profiles of the earlier version that are read, the newest first, to see how they were built."""


@dataclass(frozen=True)
class Result:
    """One command.

    :ivar samples: its runs, in the order of measuring. :ivar value: of these runs. :ivar precision: half the
        width of its interval, as a share; None of a single run.
    :ivar ratio: how it differs from the fastest command, by the rounds that measured both; None for that
        itself, and where there is but one.
    :ivar judged: what the version measured of it, with these runs, beside the version before.
    :ivar notes: sentences on what is odd. :ivar profile: the name of the stored profile; empty for none.
    """

    benchmark: Benchmark
    samples: Sequence[Sample]
    value: Estimate
    precision: float | None
    notes: tuple[str, ...] = ()
    ratio: Verdict | None = None
    judged: Judged | None = None
    profile: str = ""


def of_series(one: Series, notes: tuple[str, ...]) -> Result:
    """The result of a series that has a run at least."""
    assert one.value is not None
    return Result(one.benchmark, one.samples, one.value, precision_of(one.value), notes)


def with_ratios(repo: Repository, results: Sequence[Result], series: Sequence[Series]) -> list[Result]:
    """The results with their ratios to the fastest.

    :param series: those of the results, in their order.
    """
    if len(results) < 2:
        return list(results)
    best = fastest(results)
    base = series[results.index(best)].rounds
    rules = rules_of(repo)
    return [
        one if one is best else replace(one, ratio=compare(base, own.rounds, NOTHING, rules))
        for one, own in zip(results, series, strict=True)
    ]


def fastest(results: Sequence[Result]) -> Result:
    """The result of the smallest time; of one at least."""
    return min(results, key=lambda one: one.value.value)


def with_earlier(
    repo: Repository, version: MinorVersion, uncommitted: bool, result: Result, profile: Profile
) -> Result:
    """The result with what was measured of the same configuration on such a machine before.

    Uncommitted changes are compared with the version that they are made to, where it was measured.
    """
    found = earlier.of_profile(
        repo, version.checksum, profile, registering=not uncommitted, itself=uncommitted
    )
    if found is None or found.verdict is None:
        return replace(result, judged=found)
    builds = sorted(set(_builds(repo, found.since, profile)) - {_build(profile)})
    notes = result.notes
    if builds:
        short, now = found.since[:7], _build(profile)
        notes += (f"{short} was measured otherwise ({builds[0]}; now: {now}), which may be the difference",)
    return replace(result, judged=found, notes=notes)


def _builds(repo: Repository, since: str, profile: Profile) -> Iterator[str]:
    """How the profiles of the earlier value were built, as far as they say and can be read."""
    configuration = Head.of(profile).configuration
    same = [entry for entry in repo.store.indexes.read(since) if entry.info().configuration == configuration]
    for entry in sorted(same, key=lambda one: one.time)[-_READ:]:
        try:
            built = _build(repo.store.objects.get(entry.checksum))
        except ProfileError:
            continue  # `perun fsck` names it
        if built:
            yield built


def _build(profile: Mapping[str, Any]) -> str:
    machine = profile.get("machine")
    return str(machine.get("build") or "") if isinstance(machine, Mapping) else ""
