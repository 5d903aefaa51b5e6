"""The steps that `perun changes` found, by version, for lists that must come at once; a cache.

Nothing heavy is imported here: `perun status` and `perun log` read it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from perun.profile.changes import PerformanceChange
from perun.store.cache import NUMBER, Cache, of_types


class KnownStep(NamedTuple):
    """A definite change of the level of one series.

    :param command: what was measured, and by which collector. :param ratio: new / old, with :param low: and
        :param high: its interval; they are the ratio of what is counted, and NaN where the old value is not
        above 0. :param before: and :param after: the values that it is of.
    :param verdict: the word for it, as `Degradation`. :param leads: whether the series stands for what was
        measured; else it is of a part of it.
    :param possible: the checksums of the versions that may have brought it, the first measured one last.
    :param taken_back: the version whose step takes it back; :param takes_back: the one that it takes back.
    """

    location: str
    command: str
    ratio: float
    low: float
    high: float
    before: float
    after: float
    unit: str
    verdict: str
    leads: bool
    possible: tuple[str, ...]
    taken_back: str = ""
    takes_back: str = ""

    @property
    def degradation(self) -> bool:
        """Whether it became worse."""
        return self.verdict.endswith("Degradation")


class KnownSteps:
    """The steps of each version. :param steps: by each checksum of `possible` of them."""

    def __init__(self, steps: Mapping[str, Sequence[KnownStep]]) -> None:
        self._steps = steps

    @classmethod
    def load(cls, cache: Cache) -> KnownSteps:
        """What is kept, each step by every version that may have brought it."""
        found: dict[str, list[KnownStep]] = {}
        for steps in cache.all("steps", _read).values():
            for step in steps:
                for version in step.possible:
                    found.setdefault(version, []).append(step)
        return cls(found)

    def __bool__(self) -> bool:
        return bool(self._steps)

    def of_version(self, version: str) -> list[KnownStep]:
        """The steps that the version may have brought."""
        return list(self._steps.get(version, ()))

    def at(self, version: str) -> list[KnownStep]:
        """The steps whose new level was measured at that version first."""
        return [step for step in self._steps.get(version, ()) if step.possible[-1] == version]


def keep(cache: Cache, looked_at: Iterable[str], steps: Mapping[str, Sequence[KnownStep]]) -> None:
    """Keep the steps by the first version of the new level.

    :param looked_at: checksums of the versions that were searched: what was known of others stays.
    """
    known = cache.all("steps", bytes)
    new = {version: json.dumps(own).encode() for version, own in steps.items()}
    gone = known.keys() & set(looked_at) - new.keys()
    cache.put("steps", {version: data for version, data in new.items() if data != known.get(version)}, gone)


def _read(data: bytes) -> list[KnownStep]:
    steps = [KnownStep(*one) for one in json.loads(data)]
    for one in steps:
        of_types(one, _TYPES)
        of_types(one.possible, [str] * max(len(one.possible), 1))
        PerformanceChange[one.verdict]
    return [one._replace(possible=tuple(one.possible)) for one in steps]


_TYPES: Final[Sequence[type | tuple[type, ...]]] = (str, str, *[NUMBER] * 5, str, str, bool, list, str, str)
