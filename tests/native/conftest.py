"""Real programs, compiled once, run with the recorder and without."""

from __future__ import annotations

import os
import struct
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from perun.collect.memory.analysis import Events
from perun.collect.memory.kinds import KINDS
from perun.collect.memory.records import Recording

PROGRAMS = Path(__file__).with_name("programs")
Frame = tuple[str, int]


class Recorded(NamedTuple):
    """A run with the recorder: how it ended, what it printed, and what was recorded of one process."""

    status: int
    out: bytes
    errors: bytes
    recording: Recording
    events: Events
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
    recording = Recording(file)
    pieces = list(recording.pieces())
    return Recorded(done.returncode, done.stdout, done.stderr, recording, Events.joined(pieces), file)


Run = Callable[..., Recorded]


@pytest.fixture
def record(memory_recorder: Path, tmp_path: Path) -> Run:
    """Run a command with the recorder: `record("./list", "argument", unwind="fp", follow=True)`."""
    runs: Counter[str] = Counter()

    def run(
        *command: str | Path,
        unwind: str = "auto",
        follow: bool = False,
        cwd: Path | None = None,
        stdin: bytes = b"",
        library: Path | None = None,
        **environ: str,
    ) -> Recorded:
        runs["run"] += 1
        file = tmp_path / f"recorded{runs['run']}"
        settings = {
            "LD_PRELOAD": str(library or memory_recorder),
            "PERUN_MEMORY_FILE": str(file),
            "PERUN_MEMORY_UNWIND": unwind,
            **({"PERUN_MEMORY_FOLLOW": "1"} if follow else {}),
        }
        done = subprocess.run(
            list(command),
            env={**os.environ, **settings, **environ},
            cwd=cwd,
            input=stdin,
            capture_output=True,
            timeout=120,
            check=False,
        )
        return read(file, done)

    return run


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compile one of the programs: `program("list.c", "-fno-omit-frame-pointer")`; once for all tests."""
    folder = tmp_path_factory.mktemp("programs")
    made: dict[tuple[str, ...], Path] = {}

    def compiled(source: str, *options: str) -> Path:
        key = (source, *options)
        if key not in made:
            path = made[key] = folder / f"{Path(source).stem}-{len(made)}"
            compiler = ["c++", "-std=c++17"] if source.endswith(".cpp") else ["cc", "-std=gnu11"]
            subprocess.run(
                [
                    *compiler,
                    "-O2",
                    "-g",
                    "-fno-builtin",
                    "-pthread",
                    *options,
                    "-o",
                    path,
                    PROGRAMS / source,
                    "-ldl",
                ],
                check=True,
                capture_output=True,
            )
        return made[key]

    return compiled
