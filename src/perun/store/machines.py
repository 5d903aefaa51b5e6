"""What class of machine profiles are from, so that a list of profiles can say it without reading them.

That is a cache: it can be deleted at any time, and profiles that it does not know are of an unknown machine.
One small file holds the pending profiles, and one for each minor version those registered there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING

from perun import atomic
from perun.errors import DamagedStore
from perun.store import tree

if TYPE_CHECKING:
    from pathlib import Path

    from perun.profile.factory import Profile

_FORMAT = 1
_PENDING = "pending"


class Machines:
    """The classes of machines of the profiles of one repository.

    :param root: `.perun/cache/machines`. :param lock: the lock of the repository, taken by what writes.
    """

    def __init__(self, root: Path, lock: Callable[[], AbstractContextManager[None]]) -> None:
        self._root = root
        self._lock = lock

    def of_pending(self) -> dict[tuple[str, int], str]:
        """The class by the name and the time of pending profiles."""
        found = {}
        for key, machine in self._read(_PENDING).items():
            time, _, name = key.partition(" ")
            if time.isdecimal():
                found[name, int(time)] = machine
        return found

    def of_version(self, minor: str) -> dict[str, str]:
        """The class by the checksums of the profiles registered in the minor version."""
        return self._read(minor)

    def damaged(self) -> list[Path]:
        """The files of the cache that cannot be read."""
        names = sorted(name for name in tree.listing(self._root) if name.endswith(".json"))
        return [self._root / name for name in names if not self._is_readable(name)]

    def _is_readable(self, name: str) -> bool:
        with suppress(DamagedStore, ValueError, RecursionError):
            noted = json.loads(tree.read(self._root / name) or b"")
            return isinstance(noted, dict) and isinstance(noted.get("machines"), dict)
        return False

    def note_pending(self, path: Path, profile: Profile) -> None:
        """Keep what machine the pending profile is from."""
        machine = _class_of(profile)
        if not machine:
            return
        with suppress(OSError), self._lock():
            there = set(tree.listing(path.parent))
            known = self._read(_PENDING)
            kept = {key: one for key, one in known.items() if key.partition(" ")[2] in there}
            kept[f"{int(path.stat().st_mtime)} {path.name}"] = machine
            self._write(_PENDING, kept)

    def note_registered(self, minor: str, profiles: Mapping[str, Profile]) -> None:
        """Keep what machines the profiles, by their checksums, are from; by who holds the lock."""
        found = {checksum: _class_of(profile) for checksum, profile in profiles.items()}
        new = {checksum: machine for checksum, machine in found.items() if machine}
        with suppress(OSError):
            known = self._read(minor)
            if new.items() - known.items():
                self._write(minor, known | new)

    def _read(self, name: str) -> dict[str, str]:
        with suppress(DamagedStore, ValueError, RecursionError):
            data = tree.read(self._root / f"{name}.json")
            noted = json.loads(data) if data else None
            if isinstance(noted, dict) and noted.get("format") == _FORMAT:
                machines = noted.get("machines")
                if isinstance(machines, dict) and all(isinstance(one, str) for one in machines.values()):
                    return machines
        return {}

    def _write(self, name: str, machines: Mapping[str, str]) -> None:
        text = json.dumps({"format": _FORMAT, "machines": machines})
        atomic.write(self._root / f"{name}.json", text.encode())


def _class_of(profile: Profile) -> str:
    from perun.machine import class_of

    described = profile.get("machine")
    return class_of(described) if isinstance(described, dict) else ""
