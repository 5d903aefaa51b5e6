"""Exporter of speedscope JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import ClassVar

import perun
from perun.exporter._common import Note, StackParams, program_of, stack_values
from perun.profile.factory import Profile
from perun.profile.stacks import speedscope


class SpeedscopeExporter:
    """Writes each call stack as a sample with a weight."""

    name: ClassVar[str] = "speedscope"
    help: ClassVar[str] = "speedscope JSON, for https://www.speedscope.app."
    suffix: ClassVar[str] = ".speedscope.json"
    Params: ClassVar[type] = StackParams

    def write(self, profile: Profile, params: StackParams, note: Note) -> Iterator[bytes]:
        """The document."""
        found = stack_values(profile, params.of or "amount", note)
        ((name, unit),) = found.units.items()
        stacks = {stack: one for stack, (one,) in found.amounts.items()}
        document = speedscope(
            stacks, name=program_of(profile) or name, unit=unit, exporter=f"perun {perun.__version__}"
        )
        yield json.dumps(document, separators=(",", ":")).encode()


PLUGIN = SpeedscopeExporter
