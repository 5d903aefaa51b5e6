"""The steps that `perun changes` found, by version, for lists that must come at once; a cache.

Nothing heavy is imported here: `perun status` and `perun log` read it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from perun import atomic
from perun.regular import read_regular

FORMAT: Final = 3
_FILE: Final = "cache/series/by-version.json"
_LARGEST: Final = 64 << 20
"""Bytes of the file, at most: more would keep `perun log` waiting."""


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
    def load(cls, root: Path) -> KnownSteps:
        """What is kept below the folder `.perun`; nothing where that is missing or cannot be read."""
        found: dict[str, list[KnownStep]] = {}
        # What is no such file fails in one of many ways, and is made anew by `perun changes`.
        with suppress(OSError, ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError):
            data = json.loads(read_regular(root / _FILE, _LARGEST))
            if data["format"] == FORMAT:
                for steps in data["versions"].values():
                    for one in steps:
                        step = KnownStep(*one)._replace(possible=tuple(one[10]))
                        _checked(step)
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


def keep(root: Path, looked_at: Iterable[str], steps: Mapping[str, Sequence[KnownStep]]) -> None:
    """Keep the steps by the first version of the new level; where it cannot be written, they are not kept.

    :param looked_at: checksums of the versions that were searched: what was known of others stays.
    """
    path = root / _FILE
    known = b""
    kept: dict[str, Sequence[KnownStep]] = {}
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
        known = read_regular(path, _LARGEST)
        data = json.loads(known)
        if data["format"] == FORMAT:
            old = set(looked_at)
            kept = {version: list(own) for version, own in data["versions"].items() if version not in old}
    text = json.dumps({"format": FORMAT, "versions": {**kept, **steps}}).encode()
    if text != known:
        with suppress(OSError):
            atomic.write(path, text)


def _checked(step: KnownStep) -> None:
    """Raise TypeError where what was read is no step."""
    texts = (
        step.location, step.command, step.unit, step.verdict, step.taken_back, step.takes_back, *step.possible
    )  # fmt: skip
    numbers = (step.ratio, step.low, step.high, step.before, step.after)
    if not step.possible or not all(isinstance(text, str) for text in texts):
        raise TypeError
    if not all(isinstance(number, (int, float)) for number in numbers):
        raise TypeError
