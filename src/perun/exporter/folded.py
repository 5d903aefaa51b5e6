"""Exporter of folded stacks, a line for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from perun.exporter._common import Note, stack_values
from perun.plugin.params import param
from perun.profile.factory import Profile
from perun.profile.stacks import folded


@dataclass(frozen=True)
class FoldedFileParams:
    """Which number is written, and what tells frames apart."""

    of: str = param("amount", help="The number of the resources.")
    lines: bool = param(False, help="Write frames as `name (source:line)`.")


class FoldedExporter:
    """Writes `outermost;...;innermost amount`."""

    name: ClassVar[str] = "folded"
    help: ClassVar[str] = "Folded stacks, for flamegraph.pl, inferno and others."
    suffix: ClassVar[str] = ".folded"
    Params: ClassVar[type] = FoldedFileParams

    def write(self, profile: Profile, params: FoldedFileParams, note: Note) -> Iterator[bytes]:
        """The lines, sorted."""
        found = stack_values(profile, params.of, note)
        yield folded({stack: one for stack, (one,) in found.amounts.items()}, params.lines).encode()


PLUGIN = FoldedExporter
