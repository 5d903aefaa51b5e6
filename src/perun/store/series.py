"""The series of registered profiles in a few numbers each, so that a history is drawn without reading
profiles.

That is a cache: one file for each minor version, which can be deleted at any time. Of profiles that it does
not know nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from perun import atomic
from perun.errors import DamagedStore
from perun.profile.summary import Summary
from perun.store import tree

if TYPE_CHECKING:
    from pathlib import Path

FORMAT: Final = 1


class ProfileSeries(NamedTuple):
    """What is kept of one profile.

    :param machine: the class of its machine, empty if it does not say.
    :param incomplete: why it is incomplete; empty if it is complete.
    :param conditions: the name and the value of each condition that comparisons look at.
    """

    machine: str
    incomplete: str
    conditions: tuple[tuple[str, str], ...]
    series: tuple[Summary, ...]


class _File(NamedTuple):
    format: int
    profiles: dict[str, ProfileSeries]


class SeriesCache:
    """The series of the profiles of one repository. :ivar root: `.perun/cache/series`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def of_version(self, minor: str) -> dict[str, ProfileSeries]:
        """The series by the checksums of the profiles; what is missing, damaged or of another format is left
        out."""
        import msgspec

        with suppress(DamagedStore, msgspec.DecodeError, ValueError):
            data = tree.read(self.root / f"{minor}.json")
            if data:
                read = msgspec.json.decode(data, type=_File)
                if read.format == FORMAT:
                    return read.profiles
        return {}

    def keep(self, minor: str, profiles: Mapping[str, ProfileSeries]) -> None:
        """Write the series of all profiles of the version. It takes no lock; what cannot be written is not
        kept."""
        import msgspec

        with suppress(OSError):
            self.root.mkdir(parents=True, exist_ok=True)
            atomic.write(self.root / f"{minor}.json", msgspec.json.encode(_File(FORMAT, dict(profiles))))
