"""What one run with the memory recorder gave, for the tests of every machine that it is built for."""

import os
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from perun.collect.memory.analysis import AllocationEvents
from perun.collect.memory.events import KINDS
from perun.collect.memory.records import MemoryRecording

PROGRAMS = Path(__file__).with_name("programs")
Frame = tuple[str, int]


class Recorded(NamedTuple):
    """A run with the recorder: how it ended, what it printed, and what was recorded of one process."""

    status: int
    out: bytes
    errors: bytes
    recording: MemoryRecording
    events: AllocationEvents
    file: Path

    @property
    def subtypes(self) -> list[str]:
        names = [
            KINDS.get(kind, "") for kind in self.events.subtypes.tolist()
        ]  # none of a realloc that failed
        return [names[site] for site in self.events.site.tolist()]

    @property
    def allocated(self) -> list[tuple[str, int]]:
        """Subtype and bytes of each allocation, in their order."""
        sizes, releases = self.events.size.tolist(), self.events.releases.tolist()
        return [
            (subtype, size)
            for subtype, size, release in zip(self.subtypes, sizes, releases, strict=True)
            if not release
        ]

    @property
    def live(self) -> dict[int, int]:
        """Bytes of what was not released, by address."""
        live: dict[int, int] = {}
        columns = (self.events.address, self.events.size, self.events.releases)
        for address, size, release in zip(*(column.tolist() for column in columns), strict=True):
            if release:
                live.pop(address, None)
            else:
                live[address] = size
        return live

    @property
    def stacks(self) -> list[tuple[Frame, ...]]:
        """The stack of each event: file and offset of each frame, outermost first."""
        known = [self.frames(number) for number in range(len(self.recording.stacks))]
        of_site = [known[number] for number in self.events.stacks.tolist()]
        return [of_site[site] for site in self.events.site.tolist()]

    def frames(self, number: int) -> tuple[Frame, ...]:
        stack = self.recording.stacks[number]
        modules = self.recording.modules[: stack.modules]
        addresses = struct.unpack(f"={len(stack.addresses) // 8}Q", stack.addresses)
        return tuple(_frame(address - 1, modules) for address in addresses)


def _frame(address: int, modules: Sequence[NamedTuple]) -> Frame:
    for start, end, offset, path in reversed(modules):
        if start <= address < end:
            return os.path.basename(path), address - start + offset
    return "", address


def read(file: Path, done: subprocess.CompletedProcess[bytes]) -> Recorded:
    recording = MemoryRecording(file)
    pieces = list(recording.pieces())
    return Recorded(
        done.returncode, done.stdout, done.stderr, recording, AllocationEvents.joined(pieces), file
    )
