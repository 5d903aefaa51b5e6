"""What registered profiles measured of each series, in a few numbers a round, so that a history is told
without reading profiles.

That is a cache: one file for each minor version, which can be deleted at any time. Of profiles that it does
not know nothing is known. What the series of a profile are called is kept apart, by the checksum of the
names: most versions of a program have the same functions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun import atomic
from perun.errors import DamagedStore
from perun.measurement.estimate import Readings
from perun.measurement.series import SeriesName
from perun.store import tree

if TYPE_CHECKING:
    from pathlib import Path

FORMAT: Final = 3
_NAMES: Final = "names-"


class ProfileSeries(NamedTuple):
    """What is kept of one profile.

    :param machine: the class of its machine, empty if it does not say.
    :param incomplete: why it is incomplete; empty if it is complete.
    :param conditions: the name and the value of each condition that comparisons look at.
    :param headline: the location of the series that stands for the profile; empty where none does.
    :param names: of the series; the same list for all profiles that have the same ones.
    :param readings: of each of them.
    """

    machine: str
    incomplete: str
    conditions: tuple[tuple[str, str], ...]
    headline: str
    names: Sequence[SeriesName]
    readings: Sequence[Readings]


class _Kept(NamedTuple):
    machine: str
    incomplete: str
    conditions: tuple[tuple[str, str], ...]
    headline: str
    names: str
    readings: tuple[Readings, ...]


class _File(NamedTuple):
    format: int
    profiles: dict[str, _Kept]


class SeriesCache:
    """The series of the profiles of one repository. :ivar root: `.perun/cache/series`.

    It takes no lock: a file is replaced as a whole, and what cannot be written is not kept.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._names: dict[str, tuple[SeriesName, ...] | None] = {}

    def of_version(self, minor: str) -> dict[str, ProfileSeries]:
        """The series by the checksums of the profiles, without what is missing, damaged or of another
        format."""
        read = self._read(f"{minor}.json", _File)
        if read is None or read.format != FORMAT:
            return {}
        found = {}
        for checksum, one in read.profiles.items():
            names = self._names_of(one.names)
            if names is not None and len(names) == len(one.readings):
                found[checksum] = ProfileSeries(
                    one.machine, one.incomplete, one.conditions, one.headline, names, one.readings
                )
        return found

    def keep(self, minor: str, profiles: Mapping[str, ProfileSeries]) -> None:
        """Write the series of all profiles of the version."""
        kept = {}
        for checksum, one in profiles.items():
            names = self._keep_names(one.names)
            kept[checksum] = _Kept(
                one.machine, one.incomplete, one.conditions, one.headline, names, tuple(one.readings)
            )
        self._write(f"{minor}.json", _File(FORMAT, kept))

    def clear(self) -> None:
        """Forget all, and what is made of it."""
        for name in tree.listing(self.root):
            with suppress(FileNotFoundError):
                (self.root / name).unlink()
        self._names.clear()

    def path(self, name: str) -> Path:
        """Where something that is made of the series is kept beside them."""
        return self.root / name

    def _names_of(self, checksum: str) -> tuple[SeriesName, ...] | None:
        if checksum not in self._names:
            self._names[checksum] = self._read(f"{_NAMES}{checksum}.json", tuple[SeriesName, ...])
        return self._names[checksum]

    def _keep_names(self, names: Sequence[SeriesName]) -> str:
        import msgspec

        data = msgspec.json.encode(names)
        checksum = hashlib.sha256(data).hexdigest()[:32]
        if self._names_of(checksum) is None:
            self._names[checksum] = tuple(names)
            self._write(f"{_NAMES}{checksum}.json", names)
        return checksum

    def _read(self, name: str, kind: Any) -> Any:
        import msgspec

        with suppress(DamagedStore, OSError, ValueError):  # msgspec raises kinds of ValueError
            data = tree.read(self.root / name)
            if data:
                return msgspec.json.decode(data, type=kind)
        return None

    def _write(self, name: str, value: Any) -> None:
        import msgspec

        with suppress(OSError):
            self.root.mkdir(parents=True, exist_ok=True)
            atomic.write(self.root / name, msgspec.json.encode(value))
