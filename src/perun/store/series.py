"""The series of registered profiles in a few numbers each, so that a history is drawn without reading
profiles.

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
from perun.measurement.summary import Name, Summary
from perun.store import tree

if TYPE_CHECKING:
    from pathlib import Path

FORMAT: Final = 1
_NAMES: Final = "names-"


class ProfileSeries(NamedTuple):
    """What is kept of one profile.

    :param machine: the class of its machine, empty if it does not say.
    :param incomplete: why it is incomplete; empty if it is complete.
    :param conditions: the name and the value of each condition that comparisons look at.
    :param names: of the series; the same list for all profiles that have the same ones.
    :param summaries: of each of them.
    """

    machine: str
    incomplete: str
    conditions: tuple[tuple[str, str], ...]
    names: Sequence[Name]
    summaries: Sequence[Summary]


class _Kept(NamedTuple):
    machine: str
    incomplete: str
    conditions: tuple[tuple[str, str], ...]
    names: str
    summaries: tuple[Summary, ...]


class _File(NamedTuple):
    format: int
    profiles: dict[str, _Kept]


class SeriesCache:
    """The series of the profiles of one repository. :ivar root: `.perun/cache/series`.

    It takes no lock: a file is replaced as a whole, and what cannot be written is not kept.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._names: dict[str, tuple[Name, ...] | None] = {}

    def of_version(self, minor: str) -> dict[str, ProfileSeries]:
        """The series by the checksums of the profiles, without what is missing, damaged or of another
        format."""
        read = self._read(f"{minor}.json", _File)
        if read is None or read.format != FORMAT:
            return {}
        found = {}
        for checksum, one in read.profiles.items():
            names = self._names_of(one.names)
            if names is not None and len(names) == len(one.summaries):
                found[checksum] = ProfileSeries(
                    one.machine, one.incomplete, one.conditions, names, one.summaries
                )
        return found

    def keep(self, minor: str, profiles: Mapping[str, ProfileSeries]) -> None:
        """Write the series of all profiles of the version."""
        kept = {}
        for checksum, one in profiles.items():
            names = self._keep_names(one.names)
            kept[checksum] = _Kept(
                one.machine, one.incomplete, one.conditions, names, tuple(one.summaries)
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

    def _names_of(self, checksum: str) -> tuple[Name, ...] | None:
        if checksum not in self._names:
            self._names[checksum] = self._read(f"{_NAMES}{checksum}.json", tuple[Name, ...])
        return self._names[checksum]

    def _keep_names(self, names: Sequence[Name]) -> str:
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
