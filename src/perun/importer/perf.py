"""Importer of perf: what `perf script` prints, and by that the `perf.data` of `perf record`.

The text is read piece by piece, and stacks that were seen before are not taken apart again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from os.path import basename
from typing import ClassVar, Final

from perun.core.process import programs
from perun.importer._common import FileReader, note_cut
from perun.importer._samples import END, FULL, SHAPE, SampleSums, Step, load
from perun.plugin.interchange import MOST_OF_LINE, ImportContext, Imported, ImportFile
from perun.plugin.params import NoParams
from perun.profile.calls import Frame
from perun.profile.sampled import SampledStacks

_SAMPLE: Final = re.compile(
    rb"(?P<comm>\S.*?)\s+(?P<pid>-?\d+)(?:/-?\d+)?\s+(?:\[\d+\]\s+)?(?:[\w.+-]{5,12}\s+)?"
    rb"(?:\d+\.\d+:\s+)?(?:(?P<period>\d{1,19})\s+)?(?P<event>[\w.:/,=@+-]*[A-Za-z][\w.:/,=@+-]*?):(?=\s|$)"
)
_FRAME: Final = re.compile(r"\s*(?:[0-9a-f]{1,16}) (.*) \(([^()]*(?:\([^()]*\))?[^()]*)\)\s*$")
_OFFSET: Final = re.compile(r"\+0x[0-9a-f]+$")
_PLACE: Final = re.compile(r"\s+(\S+):(\d{1,9})\s*$")
_MAGIC: Final = b"PERFILE2"
_CLOCKS: Final = ("cpu-clock", "task-clock")
_MOST_EVENTS: Final = 100
_MOST_KNOWN: Final = 1 << 26
"""Bytes of stacks as text that are kept to know them again."""
_MOST_LINES: Final = 1 << 16
"""Lines of frames that are kept likewise."""
_ODD: Final = -1


class PerfImporter:
    """Reads samples with their periods; a call stack begins with the name of the process.

    Samples of several events are several profiles.
    """

    name: ClassVar[str] = "perf"
    help: ClassVar[str] = "The text of perf script, or a perf.data of perf record."
    Params: ClassVar[type] = NoParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """The mark of perf.data, or a line of a sample and one of a frame below it."""
        if head.startswith(_MAGIC):
            return True
        lines = [line for line in head.split(b"\n", 200)[:200] if line.strip() and line[:1] != b"#"]
        if not lines or not _SAMPLE.match(lines[0]):
            return False
        rest = lines[0][_SAMPLE.match(lines[0]).end() :]  # type: ignore[union-attr]
        frame = rest if rest.strip() else lines[1] if len(lines) > 1 else b""
        return bool(_FRAME.match(frame.decode("utf-8", "replace")))

    def read(self, file: ImportFile, params: NoParams, ctx: ImportContext) -> Iterator[Imported]:
        """A profile of each event."""
        reader = _Reader(file)
        if file.head.startswith(_MAGIC):
            for piece in _printed(file, ctx):
                reader.take(piece)
        else:
            for piece in file.pieces():
                reader.take(piece)
        reader.end()
        if not reader.events:
            raise file.wrong("it has no samples", "make it by: perf script -i perf.data > FILE")
        for event, stacks in reader.events.items():
            note_cut(stacks, file, ctx)
            yield Imported(stacks.profile(f"{self.name}.{event}", reader.program))


def _printed(file: ImportFile, ctx: ImportContext) -> Iterator[bytes]:
    """What `perf script` prints of a recording."""
    if file.path is None:
        raise file.wrong("perf reads recordings from files only", "name the file, or pipe perf script")
    words = ["perf", "script", "--no-inline", "-i", str(file.path)]  # addr2line takes minutes
    try:
        process = FileReader(words, file, ctx, stdout=programs.PIPE, stderr=programs.DEVNULL)
    except OSError:
        raise file.wrong("perf is not installed, which reads it", "apt-get install linux-perf") from None
    with process:
        assert process.stdout is not None
        while piece := process.stdout.read(1 << 20):
            yield piece
        process.finish("perf script")


class _Reader:
    """Takes the text in pieces."""

    def __init__(self, file: ImportFile) -> None:
        self.events: dict[str, SampledStacks] = {}
        self.program = ""
        self._file = file
        self._rest = b""
        self._known: dict[tuple[bytes, bytes, bytes], list[int]] = {}
        self._size = 0
        self._frames: dict[str, dict[bytes, int]] = {}
        library = load()
        self._samples = SampleSums(library, _MOST_KNOWN) if library is not None else None
        self._kinds: dict[tuple[bytes, bytes], int] = {}

    def take(self, piece: bytes) -> None:
        """The samples that the next piece of the text completes."""
        if b"\r" in piece or self._rest[-1:] == b"\r":
            piece, self._rest = (self._rest + piece).replace(b"\r\n", b"\n"), b""
        start = 0
        if self._rest:
            start = piece.find(b"\n\n") + 2
            start = start if start > 1 else len(piece)
            self._rest = self._blocks(self._rest + piece[:start], 0)
        if start < len(piece):
            self._rest = self._blocks(piece, start)
        if len(self._rest) > MOST_OF_LINE:  # a line for each sample, without call stacks
            whole, _, self._rest = self._rest.rpartition(b"\n")
            if not whole:
                raise self._file.wrong(f"a line is longer than {MOST_OF_LINE} bytes")
            self._block(whole)

    def end(self) -> None:
        """All that was read is added up."""
        self.take(b"\n\n")
        self._settle()
        self._samples = None  # the profile is made in the memory that it had
        self._frames.clear()

    def _blocks(self, data: bytes, start: int) -> bytes:
        """Take the blocks from `start` on; what is behind the last whole one is given back."""
        if self._samples is None:
            *blocks, rest = data[start:].split(b"\n\n")
            for block in blocks:
                self._block(block.lstrip(b"\n"))
            return rest
        step = self._samples.step
        step.at = start
        while self._samples.take(data) != END:
            if step.why == SHAPE:
                self._samples.shape(data, self._kind(data[step.at : step.line], step))
            elif step.why == FULL:
                self._settle()
            else:
                self._block(data[step.at : step.end])
                step.at = step.end
        return data[step.at :]

    def _kind(self, line: bytes, step: Step) -> int:
        """A number for the command and the event of lines as this one; -1 where its period is not what it
        seems."""
        found = _SAMPLE.match(line)
        place = (step.period - step.at, step.period_end - step.at)
        place = place if place[0] < place[1] else (-1, -1)
        if found is None or line[found.end() :].strip() or found.span("period") != place:
            return -1
        self.program = self.program or _text(found["comm"])
        return self._kinds.setdefault((found["comm"], found["event"]), len(self._kinds))

    def _block(self, block: bytes) -> None:
        header, _, frames = block.partition(b"\n")
        found = _SAMPLE.match(header)
        if found is not None and frames[:1] in b"\t " and not header[found.end() :].strip():
            self._sample(found, frames)
            return
        lines: list[bytes] = []
        current = None
        for line in block.split(b"\n"):  # comments, or samples without an empty line between them
            found = _SAMPLE.match(line) if line[:1] not in b"\t #" else None
            if found is not None:
                if current is not None:
                    self._sample(current, b"\n".join(lines))
                current, lines = found, [line[found.end() :]]
            elif line.strip() and line[:1] != b"#":
                lines.append(line)
        if current is not None:
            self._sample(current, b"\n".join(lines))

    def _sample(self, found: re.Match[bytes], frames: bytes) -> None:
        comm, period, event = found.group("comm", "period", "event")
        self.program = self.program or _text(comm)
        key = (comm, event, frames)
        sums = self._known.get(key)
        if sums is None:
            self._size += len(frames) + 200
            if self._size > _MOST_KNOWN:
                self._settle()
            sums = self._known[key] = [0, 0]
        sums[0] += int(period) if period is not None else 1
        sums[1] += 1

    def _settle(self) -> None:
        """Add what is known as text to the stacks, and forget the text."""
        for (comm, event, frames), sums in self._known.items():
            self._add(comm, event, frames, *sums)
        self._known.clear()
        self._size = 0
        if self._samples is not None:
            kinds = list(self._kinds)
            for kind, frames, *sums in self._samples.drain():
                self._add(*kinds[kind], frames, *sums)
            self._kinds.clear()

    def _add(self, comm: bytes, event: bytes, text: bytes, *sums: int) -> None:
        name = event.decode("utf-8", "replace").strip(":")
        stacks = self.events.get(name)
        if stacks is None:
            if len(self.events) >= _MOST_EVENTS:
                raise self._file.wrong(f"it has more than {_MOST_EVENTS} events")
            unit = "ns" if name.partition(":")[0] in _CLOCKS else ""
            stacks = self.events[name] = SampledStacks({name: unit, "samples": ""})
        known = self._frames.setdefault(name, {})
        stacks.add(stacks.node_of(_numbers(stacks, known, comm, text)), *sums)


def _numbers(stacks: SampledStacks, known: dict[bytes, int], comm: bytes, text: bytes) -> list[int]:
    """The numbers of the frames, the outermost first.

    :param known: those of lines, of which no more than :data:`_MOST_LINES` are kept; :data:`_ODD` of those
        that say something about others.
    """
    lines = text.split(b"\n")
    found = [*map(known.get, lines)]
    if None in found:
        if len(known) > _MOST_LINES:
            known.clear()
        for line in lines:
            if line not in known:
                frames = [*_frames(line)]
                known[line] = stacks.number(frames[0]) if frames and frames[0].source else _ODD
        found = [*map(known.get, lines)]
    if _ODD in found:
        found = [*map(stacks.number, _frames(text))]
    return [stacks.number(Frame(_text(comm))), *reversed(found)]  # type: ignore[list-item]  # none is missing


def _text(comm: bytes) -> str:
    return comm.decode("utf-8", "replace").strip()


def _frames(text: bytes) -> Iterator[Frame]:
    """The frames, the innermost first; an inlined one has the binary of that which it is inlined in."""
    waiting: list[Frame] = []
    for line in text.decode("utf-8", "replace").split("\n"):
        found = _FRAME.match(line)
        if found is None:
            place = _PLACE.match(line)
            if place is not None and waiting:
                waiting[-1] = waiting[-1]._replace(line=int(place[2]))
            continue
        binary = "" if found[2] in ("[unknown]", "inlined") else basename(found[2])
        waiting.append(Frame(_OFFSET.sub("", found[1]) or "?", binary))
    binary = ""
    for place_, frame in reversed(list(enumerate(waiting))):
        binary = frame.source or binary
        waiting[place_] = frame if frame.source else frame._replace(source=binary)
    yield from waiting


PLUGIN = PerfImporter
