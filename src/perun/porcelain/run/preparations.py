"""The record of preparations: versions that `execute.pre_run` failed on, and how long it takes.

It is the file `.perun/cache/preparations.json`, with one part for each list of commands: a version that one
list of commands cannot build may well build with another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from perun import atomic
from perun.errors import DamagedStore
from perun.porcelain.repository import PERUN_FOLDER, Repository
from perun.porcelain.run.pre_run import commands
from perun.store import tree

MAX_VERSIONS = 20
"""Durations that are kept: enough for a typical one, and few enough to follow when a build gets slower."""


class PreparationRecord:
    """What one repository records of the commands that are configured now."""

    def __init__(self, repo: Repository) -> None:
        self._path = repo.root / PERUN_FOLDER / "cache" / "preparations.json"
        self._lock = repo.store.lock
        written = "\0".join(commands(repo))
        self._has_commands = bool(written)
        self._key = tree.sha1(written.encode("utf-8", "surrogateescape")).hex()
        self._known = self._read().get(self._key, {})

    def why_broken(self, version: str) -> str:
        """How preparing the version failed; empty if it is not known to fail."""
        return str(self._part("broken").get(version, ""))

    @property
    def seconds(self) -> float | None:
        """How long preparing a version usually takes; None if that is not known."""
        from statistics import median

        known = [one for one in self._part("seconds").values() if isinstance(one, (int, float))]
        return median(known) if known else None

    def failed(self, version: str, why: str) -> None:
        """Remember that the version cannot be prepared."""
        self._record("broken", version, why)

    def succeeded(self, version: str, seconds: float) -> None:
        """Remember that it can, and how long that took."""
        if self._has_commands:
            self._record("seconds", version, round(seconds, 3), forget="broken")

    def _record(self, part: str, version: str, value: Any, forget: str = "") -> None:
        with self._lock():
            content = self._read()
            self._known = content.setdefault(self._key, {})
            values = {**self._part(part)}
            values.pop(version, None)  # so that it comes last
            values[version] = value
            if part == "seconds":
                values = dict(list(values.items())[-MAX_VERSIONS:])
            self._known[part] = values
            if forget:
                self._known[forget] = {one: why for one, why in self._part(forget).items() if one != version}
            with suppress(OSError):  # without it only time is lost
                atomic.write(self._path, json.dumps(content, indent=1).encode())

    def _part(self, name: str) -> Mapping[str, Any]:
        part = self._known.get(name)
        return part if isinstance(part, dict) else {}

    def _read(self) -> dict[str, Any]:
        with suppress(DamagedStore, ValueError, RecursionError):
            content = json.loads(tree.read(self._path) or b"{}")
            if isinstance(content, dict) and all(isinstance(one, dict) for one in content.values()):
                return content
        return {}
