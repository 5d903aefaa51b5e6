"""Exporter of Chrome's Trace Event Format: each call with its times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import perun
from perun.exporter._common import Note, program_of
from perun.plugin.params import NoParams
from perun.profile.amounts import units
from perun.profile.factory import Profile
from perun.profile.stacks import chrome_trace


class ChromeExporter:
    """Writes the calls of profiles that have their times."""

    name: ClassVar[str] = "chrome"
    help: ClassVar[str] = "Chrome's Trace Event Format (JSON), for Perfetto and chrome://tracing."
    suffix: ClassVar[str] = ".json"
    Params: ClassVar[type] = NoParams

    def write(self, profile: Profile, params: NoParams, note: Note) -> Iterator[bytes]:
        """The document, piece by piece."""
        unit_of = units(profile)
        timed = (one for one in profile.groups() if "timestamp" in {**one.constants, **one.columns})
        kinds = {(one.constants.get("type"), one.constants.get("subtype")) for one in timed}
        unit = next((unit_of(*kind) for kind in kinds), "us")
        name = program_of(profile) or "a profile"
        for piece in chrome_trace(profile, name=name, unit=unit, exporter=f"perun {perun.__version__}"):
            yield piece.encode()


PLUGIN = ChromeExporter
