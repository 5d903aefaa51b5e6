"""What a list of profiles says of each beyond its index: its machine, why it is incomplete, what it measured.

That is kept in the cache, so that a list need not read the profiles.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.measurement.estimate import Headline, Kind, Round, Sample
from perun.store.cache import NUMBER, Cache, of_types

if TYPE_CHECKING:
    from perun.profile.factory import Profile
    from perun.profile.helpers import ProfileInfo

READ_BY_LISTS = 1 << 20
"""Size in bytes up to which a list reads a profile that is not known; `fsck --repair` reads larger ones."""


class Fact(NamedTuple):
    """What is known of one profile: the class of its machine, empty if it does not say, why it is
    incomplete, empty if it is complete, the series that stands for it, if there is one, of a pending profile
    the minor version that it is of, and of a command that the processor limits its processor time."""

    machine: str = ""
    incomplete: str = ""
    headline: Headline | None = None
    origin: str = ""
    processor: Headline | None = None


class Facts:
    """The facts of the profiles of one repository, by :func:`key_of`."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def of(self, keys: Iterable[str]) -> dict[str, Fact]:
        """The facts that are known."""
        return self._cache.get("facts", keys, _read)

    def keep(self, facts: Mapping[str, Fact]) -> None:
        """Note the facts, where that can be done."""
        encoded = {
            key: json.dumps(fact, default=attrgetter("value")).encode() for key, fact in facts.items()
        }
        self._cache.put("facts", encoded)


def key_of(info: ProfileInfo) -> str:
    """What a profile is known by: its checksum, or as a pending one that of :func:`pending_key`."""
    return info.checksum or pending_key(info.source, info.time)


def pending_key(name: str, time: int) -> str:
    """What a pending profile is known by: its name, and its time in seconds since 1970."""
    return f"{time} {name}"


def fact_of(profile: Profile) -> Fact:
    """What is known of the profile."""
    from perun.machine import class_of
    from perun.measurement.headline import headline, processor
    from perun.profile.incomplete import text_of

    described = profile.get("machine")
    machine = class_of(described) if isinstance(described, dict) else ""
    origin = str(profile.get("origin") or "")
    return Fact(machine, text_of(profile), headline(profile), origin, processor(profile))


def _read(data: bytes) -> Fact:
    machine, incomplete, headline, origin, processor = json.loads(data)
    of_types((machine, incomplete, origin), (str, str, str))
    read, limits = (None if one is None else _headline(*one) for one in (headline, processor))
    return Fact(machine, incomplete, read, origin, limits)


def _headline(
    metric: str, location: str, unit: str, better: bool, kind: str, rounds: list[Any],
    levels: tuple[float, float] | None, whole: float, noise: tuple[float, float] | None,
    conditions: list[tuple[str, str]],
) -> Headline:  # fmt: skip
    of_types((metric, location, unit, better, whole), (str, str, str, bool, NUMBER))
    for pair in (levels, noise):
        of_types(pair or (), (NUMBER, NUMBER) if pair else ())
    read = tuple(
        Round(session, number, {name: Sample(*sample) for name, sample in samples.items()})
        for session, number, samples in rounds
    )
    for one in read:
        of_types(one[:2], (str, int))
        for sample in one.samples.values():
            of_types(sample, _SAMPLE)
    for condition in conditions:
        of_types(condition, (str, str))
    return Headline(
        metric, location, unit, better, Kind(kind), read, levels and (levels[0], levels[1]), whole,
        noise and (noise[0], noise[1]), tuple((name, value) for name, value in conditions),
    )  # fmt: skip


_SAMPLE: Final = (int, NUMBER, (*NUMBER, type(None)), bool)
