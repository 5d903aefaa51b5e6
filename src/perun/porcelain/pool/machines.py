"""How fast the machines of pools have been, as this repository knows it: `.perun/cache/machines.json`."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Final

from perun import atomic
from perun.errors import DamagedStore
from perun.porcelain.pool.calibration import Calibration, drift
from perun.porcelain.repository import PERUN_FOLDER, Repository
from perun.store import tree

MAX_MACHINES: Final = 1000
"""Machines that are known; those that were calibrated the longest ago go first."""


class KnownMachines:
    """The first calibration of each machine, which later ones are compared with: of a machine that was busy
    then, the first one while it is not."""

    def __init__(self, repo: Repository) -> None:
        self._path = repo.root / PERUN_FOLDER / "cache" / "machines.json"
        self._lock = repo.store.lock

    def drift(self, machine: str, machine_class: str, found: Calibration) -> float:
        """By how many percent it is slower than at first; of a machine that is not known, 0, and it is noted.
        """
        reference = self._reference(machine, machine_class, found)
        if reference is None:
            self.note(machine, machine_class, found)
            return 0.0
        return drift(found.seconds, reference)

    def _reference(self, machine: str, machine_class: str, found: Calibration) -> float | None:
        noted = self._read().get(machine)
        if not isinstance(noted, dict) or noted.get("class") != machine_class:
            return None  # it is not known, or is another machine by now
        if noted.get("busy") and not found.busy:
            return None
        seconds = noted.get("seconds")
        return float(seconds) if isinstance(seconds, (int, float)) and seconds > 0 else None

    def note(self, machine: str, machine_class: str, found: Calibration) -> None:
        """Take this calibration for the one that later ones are compared with."""
        with self._lock():
            content = self._read()
            content.pop(machine, None)
            seconds = round(found.seconds, 6)
            content[machine] = {"class": machine_class, "seconds": seconds, "busy": bool(found.busy)}
            kept = dict(list(content.items())[-MAX_MACHINES:])
            with suppress(OSError):  # without it only a drift is not seen
                atomic.write(self._path, json.dumps(kept, indent=1).encode())

    def _read(self) -> dict[str, Any]:
        with suppress(DamagedStore, ValueError, RecursionError):
            content = json.loads(tree.read(self._path) or b"{}")
            if isinstance(content, dict):
                return content
        return {}
