"""What was measured of each command, beside the other commands and beside earlier versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from perun.errors import ProfileError
from perun.machine import class_of
from perun.plugin.api import MinorVersion
from perun.porcelain import earlier
from perun.porcelain.bench.measuring import Series
from perun.porcelain.bench.plan import Benchmark
from perun.porcelain.earlier import Earlier, Wanted
from perun.porcelain.repository import Repository
from perun.process.execution import Sample
from perun.profile import measured
from perun.profile.factory import Profile
from perun.profile.head import Head
from perun.profile.measured import Difference, Measured

_READ: Final = 8
"""Profiles of the earlier version that are read, the newest first, to see how they were built."""


@dataclass(frozen=True)
class Result:
    """One command.

    :ivar samples: its runs, in the order of measuring. :ivar precision: half the width of the interval of the
        mean, as a share; None of a single run.
    :ivar ratio: how the mean differs from that of the fastest command; None for that itself, and where there
        is but one.
    :ivar earlier: the value of the same configuration in the nearest version that has one, and
        :ivar difference: how this one differs from it.
    :ivar notes: sentences on what is odd. :ivar profile: the name of the stored profile; empty for none.
    """

    benchmark: Benchmark
    samples: Sequence[Sample]
    measured: Measured
    precision: float | None
    notes: tuple[str, ...] = ()
    ratio: Difference | None = None
    earlier: Earlier | None = None
    difference: Difference | None = None
    profile: str = ""


def of_series(one: Series, notes: tuple[str, ...]) -> Result:
    """The result of a series that has a run at least."""
    assert one.value is not None
    return Result(one.benchmark, one.samples, one.value, measured.precision(one.value), notes)


def with_ratios(results: Sequence[Result]) -> list[Result]:
    """The results with their ratios to the fastest."""
    if len(results) < 2:
        return list(results)
    best = fastest(results)
    return [
        one if one is best else replace(one, ratio=measured.difference(best.measured, one.measured))
        for one in results
    ]


def fastest(results: Sequence[Result]) -> Result:
    """The result of the smallest mean; of one at least."""
    return min(results, key=lambda one: one.measured.value)


def with_earlier(
    repo: Repository,
    version: MinorVersion,
    uncommitted: bool,
    results: Sequence[Result],
    profiles: Sequence[Profile],
) -> list[Result]:
    """The results with what was measured of the same configurations on such a machine before.

    Uncommitted changes are compared with the version that they are made to, where it was measured.

    :param profiles: those of the results, in their order.
    """
    wanted = [_wanted(one, profile) for one, profile in zip(results, profiles, strict=True)]
    found = earlier.nearest(repo, version.checksum, wanted, itself=uncommitted)
    return [
        _beside(repo, one, found[key], key, profile) if key in found else one
        for one, key, profile in zip(results, wanted, profiles, strict=True)
    ]


def _wanted(result: Result, profile: Profile) -> Wanted:
    machine = class_of(profile["machine"])
    return Wanted(Head.of(profile).configuration, machine, result.measured.metric, result.measured.unit)


def _beside(repo: Repository, result: Result, before: Earlier, wanted: Wanted, profile: Profile) -> Result:
    builds = sorted(set(_builds(repo, before, wanted)) - {_build(profile)})
    notes = result.notes
    if builds:
        short, now = before.minor_version[:7], _build(profile)
        notes += (f"{short} was measured otherwise ({builds[0]}; now: {now}), which may be the difference",)
    difference = measured.difference(before.measured, result.measured)
    return replace(result, earlier=before, difference=difference, notes=notes)


def _builds(repo: Repository, before: Earlier, wanted: Wanted) -> Iterator[str]:
    """How the profiles of the earlier value were built, as far as they say and can be read."""
    entries = repo.store.indexes.read(before.minor_version)
    same = [entry for entry in entries if entry.info().configuration == wanted.configuration]
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
