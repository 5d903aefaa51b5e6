"""Importer of heaptrack's recordings (`heaptrack.PROGRAM.PID.zst` or `.gz`), of the file versions 1 to 3.

A line is a letter and numbers in base 16: `s` a text, `i` an instruction with its functions, `t` a call
stack, `a` an allocation of a size at a stack, and `+` and `-` one more and one fewer of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from os.path import basename
from typing import ClassVar, Final

from perun.importer._common import note_cut
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import NoParams
from perun.profile.calls import Frame
from perun.profile.sampled import SampledStacks

_VALUES: Final = {"peak": "B", "allocated": "B", "allocations": "", "leaked": "B"}
_MOST: Final = 1 << 24


class HeaptrackImporter:
    """Reads what each call stack allocated, how often, and what was left at the peak and at the end."""

    name: ClassVar[str] = "heaptrack"
    help: ClassVar[str] = "A recording of heaptrack (.zst, .gz)."
    Params: ClassVar[type] = NoParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """The version, and the command."""
        lines = head.split(b"\n", 4)
        return head[:2] == b"v " and len(lines) > 2 and any(line[:2] == b"X " for line in lines[1:4])

    def read(self, file: ImportFile, params: NoParams, ctx: ImportContext) -> Iterator[Imported]:
        """One profile."""
        reader = _Reader()
        for line in file.lines():
            reader.take(line)
        reader.finish()
        note_cut(reader.stacks, file, ctx)
        yield Imported(reader.stacks.profile(self.name, reader.program))


class _Reader:
    """Takes the lines one after the other.

    What is in use at the peak is kept by what changed since: of a stack whose use changes, the use at the
    last peak is noted once.
    """

    def __init__(self) -> None:
        self.stacks = SampledStacks(_VALUES)
        self.program = ""
        self._version = 1
        self._strings = [""]
        self._instructions: list[list[Frame]] = [[]]
        self._nodes = [-1]
        self._sites: list[tuple[int, int]] = []
        self._used: dict[int, int] = {}
        self._at_peak: dict[int, int] = {}
        self._now = self._peak = 0

    def take(self, line: str) -> None:
        """One line."""
        kind, _, rest = line.partition(" ")
        if kind == "+":
            node, size = self._sites[int(rest, 16)]
            self.stacks.add(node, 0, size, 1, 0)
            self._change(node, size)
        elif kind == "-":
            node, size = self._sites[int(rest, 16)]
            self._change(node, -size)
        elif kind == "a":
            size, trace = (int(word, 16) for word in rest.split()[:2])
            self._sites.append((self._nodes[trace], size))
        elif kind == "t":
            instruction, parent = (int(word, 16) for word in rest.split()[:2])
            node = self._nodes[parent]
            for frame in self._instructions[instruction]:
                node = self.stacks.below(node, frame)
            self._nodes.append(node)
        elif kind == "i":
            self._instructions.append(self._frames([int(word, 16) for word in rest.split()]))
        elif kind == "s":
            self._strings.append(rest.partition(" ")[2] if self._version > 2 else rest)
        elif kind == "v":
            numbers = rest.split()
            self._version = int(numbers[1], 16) if len(numbers) > 1 else 1
        elif kind == "X":
            self.program = rest
        if max(len(self._strings), len(self._nodes), len(self._sites)) > _MOST:
            raise ValueError("it has too many call stacks")

    def _change(self, node: int, size: int) -> None:
        used = self._used.get(node, 0)
        self._at_peak.setdefault(node, used)
        self._used[node] = used + size
        self._now += size
        if self._now > self._peak:
            self._peak = self._now
            self._settle()

    def _settle(self) -> None:
        """All is as it is now at the peak: what was noted of before is of no use."""
        self._at_peak.clear()

    def finish(self) -> None:
        """What was in use at the peak, and at the end."""
        for node, used in self._used.items():
            self.stacks.add(node, self._at_peak.get(node, used), 0, 0, used)

    def _frames(self, numbers: list[int]) -> list[Frame]:
        """The frames of an instruction, the outermost first: address, module, and function, file and line of
        the code there, followed by those that it is inlined in."""
        module = basename(self._strings[numbers[1]]) if len(numbers) > 1 else ""
        found = []
        for at in range(2, len(numbers), 3):
            source = self._strings[numbers[at + 1]] if at + 1 < len(numbers) else ""
            line = numbers[at + 2] if at + 2 < len(numbers) else 0
            found.append(Frame(self._strings[numbers[at]] or "?", source or module, min(line, 1 << 30)))
        return found[::-1] or [Frame(f"0x{numbers[0]:x}", module)]


PLUGIN = HeaptrackImporter
