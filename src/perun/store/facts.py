"""What a list of profiles says of each beyond its index: its machine, why it is incomplete, what it measured.

That is a cache, so that a list need not read the profiles: it can be deleted at any time, and of profiles
that it does not know neither is known. One small file holds the pending profiles, and one for each minor
version those registered there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from perun import atomic
from perun.errors import DamagedStore
from perun.measurement.estimate import Headline, Kind, Round, Sample
from perun.store import tree
from perun.store.files import ON_DISK, Files

if TYPE_CHECKING:
    from pathlib import Path

    from perun.profile.factory import Profile

_FORMAT = 6
_PENDING = "pending"
_DIGITS = 20
_LARGEST = 1e150
"""Beyond it no number of a headline is: its square has to be a float."""
_OF_OTHER_FORM = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
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
    """The facts of the profiles of one repository.

    :ivar root: `.perun/cache/facts`, on the disk.
    :param lock: the lock of the repository, taken by what writes.
    :param files: those of the store, of the pending profiles.
    """

    def __init__(
        self, root: Path, lock: Callable[[], AbstractContextManager[None]], files: Files = ON_DISK
    ) -> None:
        self.root = root
        self._files = files
        self._lock = lock

    def of_pending(self) -> dict[tuple[str, int], Fact]:
        """The facts by the name and the time of pending profiles."""
        found = {}
        for key, fact in self._read(_PENDING).items():
            time, _, name = key.partition(" ")
            if time.isdecimal() and len(time) < _DIGITS:
                found[name, int(time)] = fact
        return found

    def of_version(self, minor: str) -> dict[str, Fact]:
        """The facts by the checksums of the profiles registered in the minor version."""
        return self._read(minor)

    def damaged(self) -> list[Path]:
        """The files of the cache that cannot be read."""
        names = sorted(name for name in tree.listing(self.root) if name.endswith(".json"))
        return [self.root / name for name in names if self._parsed(name.removesuffix(".json")) is None]

    def note_pending(self, path: Path, profile: Profile) -> None:
        """Keep the facts of the pending profile."""
        with suppress(OSError), self._lock():
            there = set(tree.listing(path.parent, self._files)) - {path.name}  # a file has one time
            known = self._read(_PENDING)
            kept = {key: one for key, one in known.items() if key.partition(" ")[2] in there}
            kept[_key(path.name, self._files.state(path).st_mtime_ns // 10**9)] = fact_of(profile)
            self._write(_PENDING, kept)

    def note_registered(self, minor: str, profiles: Mapping[str, Profile]) -> None:
        """Keep the facts of the profiles, by their checksums; by who holds the lock."""
        new = {checksum: fact_of(profile) for checksum, profile in profiles.items()}
        with suppress(OSError):
            known = self._read(minor)
            if any(known.get(checksum) != fact for checksum, fact in new.items()):
                self._write(minor, known | new)

    def add_pending(self, facts: Mapping[tuple[str, int], Fact]) -> None:
        """Note facts by the name and the time of pending profiles.

        For who only lists them: it takes no lock, and what cannot be written is not noted. Of two processes
        one may lose what the other noted, which is then read from the profiles again.
        """
        if not facts:
            return
        with suppress(OSError):
            new = {_key(name, time): fact for (name, time), fact in facts.items()}
            self._write(_PENDING, self._read(_PENDING) | new)

    def add_registered(self, minor: str, facts: Mapping[str, Fact]) -> None:
        """Note facts by the checksums of profiles registered in the minor version, as :meth:`add_pending`."""
        if not facts:
            return
        with suppress(OSError):
            self._write(minor, self._read(minor) | dict(facts))

    def _read(self, name: str) -> dict[str, Fact]:
        return self._parsed(name) or {}

    def _parsed(self, name: str) -> dict[str, Fact] | None:
        """What the file holds; None if it is missing, of another format or damaged."""
        with suppress(DamagedStore, RecursionError, *_OF_OTHER_FORM):
            data = tree.read(self.root / f"{name}.json")
            noted = json.loads(data) if data else None
            if isinstance(noted, dict) and noted.get("format") == _FORMAT:
                return {key: _read_fact(*values) for key, values in noted["facts"].items()}
        return None

    def _write(self, name: str, facts: Mapping[str, Fact]) -> None:
        text = json.dumps({"format": _FORMAT, "facts": facts}, default=attrgetter("value"))
        atomic.write(self.root / f"{name}.json", text.encode())


def _key(name: str, time: int) -> str:
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


def _read_fact(
    machine: object,
    incomplete: object,
    headline: list[Any] | None,
    origin: object,
    processor: list[Any] | None,
) -> Fact:
    """The fact as it was written.

    :raises ValueError: if it is not one; other errors of what reads a list, too.
    """
    texts = (machine, incomplete, origin)
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a fact of another form")
    read, limits = (None if one is None else _read_headline(*one) for one in (headline, processor))
    return Fact(machine, incomplete, read, origin, limits)  # type: ignore[arg-type]


def _read_headline(
    metric: str, location: str, unit: str, better: bool, kind: str, rounds: list[Any],
    levels: list[float] | None, whole: float, noise: list[float] | None,
) -> Headline:  # fmt: skip
    read = tuple(
        Round(session, number, {name: Sample(*sample) for name, sample in samples.items()})
        for session, number, samples in rounds
    )
    texts = all(isinstance(text, str) for text in (metric, location, unit, *(one.session for one in read)))
    numbers = [one.number for one in read]
    if not (texts and read and isinstance(better, bool) and all(isinstance(one, int) for one in numbers)):
        raise ValueError("a headline of another form")
    if not all(one.samples and all(map(_is_sample, one.samples.values())) for one in read):
        raise ValueError("samples of another form")
    spent = None if levels is None else (float(levels[0]), float(levels[1]))
    apart = None if noise is None else (float(noise[0]), float(noise[1]))
    return Headline(metric, location, unit, better, Kind(kind), read, spent, float(whole), apart)


def _is_sample(one: Sample) -> bool:
    spread = 0.0 if one.spread is None else one.spread
    return (
        isinstance(one.size, int)
        and 0 < one.size < _LARGEST
        and isinstance(one.median, (int, float))
        and abs(one.median) < _LARGEST
        and isinstance(spread, (int, float))
        and 0 <= spread < _LARGEST
        and isinstance(one.positive, bool)
        and (one.median > 0 or not one.positive)
    )
