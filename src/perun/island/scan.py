"""Scans the file of a recording: its chunks, the texts in it, the calls of a thread one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

from perun.core.errors import PerunError
from perun.core.regular import open_regular
from perun.island import layout

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Table = NDArray[np.void]

_LARGEST: Final = 1 << 42
_UNKNOWN: Final = (1 << 64) - 1
_LARGEST_CHUNK: Final = 1 << 24
_MOST_THREADS: Final = 1 << 20
Slot = tuple[int, int, int, int, int, int]
"""Start, end, amount, API, flags, object."""


class DamagedCallRecording(PerunError):
    """The file is no recording of calls, or says impossible things."""

    exit_code = 8


class RecordingHeader(NamedTuple):
    """The header of the file, as `layout.HEADER` says, without magic and version."""

    pid: int
    parent: int
    lost_files: int
    started: int
    clock: int
    ended: int
    lost: int
    read: int
    written: int
    read_end: int
    written_end: int


class RecordingChunk(NamedTuple):
    """A chunk of the file: where it is, and what its header says."""

    offset: int
    size: int
    thread: int
    number: int
    native: int
    sampled: int
    cpu: int
    run_queue: int
    ended: int


class Note(NamedTuple):
    """A note with its text, as it stands in a chunk of this thread."""

    thread: int
    api: int
    start: int
    object: int
    text: bytes


class Scan:
    """The file of one process: what it says apart from its calls.

    :ivar last: the last time that it knows. :ivar cut: the byte at which the file ends within a chunk, or 0.
    :ivar positions: of each object the position in :meth:`objects`, by its number.
    :ivar entered: of each thread when it entered which island.
    :param progress: is told of the bytes of calls whenever some were read, each time that they are.
    :raises DamagedCallRecording: where it is no recording. :raises OSError: where it cannot be read.
    """

    def __init__(self, path: Path, progress: Callable[[int], None] = lambda _: None) -> None:
        self.path = path
        self._progress = progress
        self.last = 0
        self.cut = 0
        self._notes: list[Note] = []
        self._closed: dict[int, int] = {}
        self._used: dict[int, int] = {}
        self._firsts: dict[int, int] = {}
        self.chunks: dict[int, list[RecordingChunk]] = {}
        self.entered: dict[int, list[tuple[int, int]]] = {}
        with self._opened() as file:
            self.head = self._head(file)
            for chunk in self._chunks(file):
                self.chunks.setdefault(chunk.thread, []).append(chunk)
            for chunks in self.chunks.values():
                chunks.sort(key=lambda chunk: chunk.number)
            for number, chunks in self.chunks.items():
                for chunk in chunks:
                    self._learn(number, chunk, self.array(file, chunk))
        self._texts = self._objects_by_number()
        self.positions = {number: place for place, number in enumerate(sorted(self._texts))}

    def damaged(self, reason: str) -> DamagedCallRecording:
        """The error for this file."""
        return DamagedCallRecording(
            f"{self.path}: the recording of calls is damaged: {reason}", "record the program again"
        )

    def islands(self) -> list[str]:
        """Names of the islands by their numbers."""
        names = ["program"]
        for note in self._notes:
            if note.api == layout.NOTE_ISLAND and 0 < note.object < 1 << 20:
                names += ["?"] * (note.object + 1 - len(names))
                names[note.object] = layout.facts(note.text).get("name", "?")
        return names

    def threads(self) -> list[Thread]:
        """The threads by their numbers."""
        named = {note.thread: note for note in self._notes if note.api == layout.NOTE_THREAD}
        threads = []
        for number in range(max(self.chunks, default=-1) + 1):
            chunks = self.chunks.get(number, [])
            note, first = named.get(number), self._firsts.get(number, self.head.started)
            last = chunks[-1] if chunks else RecordingChunk(0, 0, number, 0, -1, 0, 0, _UNKNOWN, 0)
            known = bool(last.sampled)
            threads.append(
                Thread(
                    number=number,
                    name=layout.facts(note.text).get("name", "") if note else "",
                    native=last.native,
                    parent=note.object if note and note.object in self.chunks else -1,
                    created=note.start if note else first,
                    destroyed=last.ended or -1,
                    sampled=last.sampled if known else -1,
                    cpu=last.cpu if known else -1,
                    run_queue=last.run_queue if known and last.run_queue != _UNKNOWN else -1,
                    island=self._island(chunks),
                )
            )
        return threads

    def objects(self) -> list[Object]:
        """The objects by their numbers; what the parent of a forked process opened has the parent's names."""
        serials: dict[tuple[str, str], int] = {}
        objects = []
        for place, (_, (opened, closed, facts)) in enumerate(sorted(self._texts.items())):
            rest = dict(facts)
            kind, name = rest.pop("kind", "?"), rest.pop("name", "?")
            serial = serials[kind, name] = serials.get((kind, name), 0) + 1
            objects.append(Object(place, kind, name, serial, opened, closed, rest))
        return objects

    def slots(self, thread: int) -> Iterator[Slot]:
        """The slots of a thread that are calls or notes without text, in the order of their places."""
        chunks = self.chunks.get(thread, [])
        with self._opened() as file:
            for chunk in chunks:
                skipped = 0
                for slot in layout.SLOT.iter_unpack(self._body(file, chunk)):
                    if skipped:
                        skipped -= 1
                    elif not slot[0]:
                        break
                    elif slot[3] in TEXTS:
                        skipped = -(-max(slot[2], 0) // layout.SLOT.size)
                    else:
                        yield slot

    def array(self, file: BinaryIO, chunk: RecordingChunk) -> NDArray[np.void]:
        """All slots of a chunk that were taken, those of texts too (dtype: `SLOT`)."""
        import numpy as np

        data = np.frombuffer(self._body(file, chunk), SLOT)
        free = np.flatnonzero(data["start"] == 0)
        free = free[~is_text(data)[free]] if len(free) else free
        return data[: free[0]] if len(free) else data

    def slot_blocks(self, thread: int) -> Iterator[Table]:
        """The slots of a thread without texts (dtype: `SLOT`), some :data:`BLOCK` at a time.

        :raises DamagedCallRecording: where the file changed meanwhile.
        """
        kept: list[Table] = []
        with self._opened() as file:
            for chunk in self.chunks.get(thread, []):
                slots = self.array(file, chunk)
                kept.append(chosen(slots, ~is_text(slots)))
                if sum(map(len, kept)) >= BLOCK:
                    yield together(kept)
                    kept = []
        if kept:
            yield together(kept)

    def _opened(self) -> BinaryIO:
        return open_regular(self.path, _LARGEST)

    def _head(self, file: BinaryIO) -> RecordingHeader:
        data = file.read(layout.HEADER_SIZE)
        if len(data) < layout.HEADER.size or data[:8] != layout.MAGIC:
            raise self.damaged("it does not begin as one")
        _, version, *rest = layout.HEADER.unpack(data[: layout.HEADER.size])
        if version != layout.VERSION:
            raise self.damaged(f"its version is {version}, this Perun reads version {layout.VERSION}")
        if len(data) < layout.HEADER_SIZE:
            raise self.damaged(f"it ends at byte {len(data)}, within its header")
        return RecordingHeader(*rest)

    def _chunks(self, file: BinaryIO) -> Iterator[RecordingChunk]:
        end = file.seek(0, 2)
        offset = layout.HEADER_SIZE
        while offset + layout.CHUNK.size <= end:
            file.seek(offset)
            magic, size, *rest, _ = layout.CHUNK.unpack(file.read(layout.CHUNK.size))
            if not magic:
                # The process was killed before this chunk was begun; another thread may have one behind it.
                offset += layout.CHUNK_ALIGNMENT
                continue
            if magic != layout.CHUNK_MAGIC or not layout.CHUNK.size <= size <= _LARGEST_CHUNK:
                raise self.damaged(f"what begins at byte {offset} is no chunk")
            chunk = RecordingChunk(offset, size, *rest)
            if chunk.thread >= _MOST_THREADS:
                raise self.damaged(f"the chunk at byte {offset} is of thread {chunk.thread}")
            yield chunk
            offset += size
            self.cut = end if offset > end else 0
        file.seek(offset)
        if file.read(1).strip(b"\0"):  # a part of the header of a chunk
            self.cut = end

    def _body(self, file: BinaryIO, chunk: RecordingChunk) -> bytes:
        file.seek(chunk.offset + layout.CHUNK.size)
        data = file.read(chunk.size - layout.CHUNK.size)
        self._progress(len(data))
        return data[: len(data) - len(data) % layout.SLOT.size]

    def _learn(self, thread: int, chunk: RecordingChunk, slots: NDArray[np.void]) -> None:
        import numpy as np

        if not len(slots):
            return
        text = is_text(slots)
        plain = chosen(slots, ~text)
        if len(plain):
            self._firsts.setdefault(thread, int(plain["start"][0]))
            self.last = max(self.last, int(plain["start"].max()), chunk.sampled, chunk.ended)
            ends = plain["end"][plain["api"] < layout.FIRST_NOTE]
            self.last = max(self.last, int(ends.max()) if len(ends) else 0)
        places = np.flatnonzero((slots["api"] >= layout.FIRST_NOTE) & ~text)
        data, width = slots.tobytes() if len(places) else b"", layout.SLOT.size
        for place, note in zip(places.tolist(), slots.take(places).tolist(), strict=True):
            start, _, amount, api, _, number = note
            if api in TEXTS:
                begin = (place + 1) * width
                self._notes.append(Note(thread, api, start, number, data[begin : begin + max(amount, 0)]))
            elif api == layout.NOTE_CLOSED:
                self._closed.setdefault(number, start)
            elif api == layout.NOTE_ENTERED:
                self.entered.setdefault(thread, []).append((start, number))
        for number in np.unique(plain["object"][plain["api"] < layout.FIRST_NOTE]).tolist():
            self._used.setdefault(number, int(plain["start"][0]))

    def _island(self, chunks: list[RecordingChunk]) -> int:
        """The island in which a thread begins: what it enters before its first call."""
        if not chunks:
            return 0
        with self._opened() as file:
            for slot in layout.SLOT.iter_unpack(self._body(file, chunks[0])[: 64 * layout.SLOT.size]):
                if slot[3] == layout.NOTE_ENTERED:
                    return int(slot[5])
                if slot[0] and 0 < slot[3] < layout.FIRST_NOTE:
                    break
        return 0

    def _objects_by_number(self) -> dict[int, tuple[int, int, dict[str, str]]]:
        found: dict[int, tuple[int, int, dict[str, str]]] = {}
        for note in self._notes:
            if note.api == layout.NOTE_OBJECT:
                opened, _, facts = found.get(note.object, (note.start, -1, {}))
                closed = self._closed.get(note.object, -1)
                found[note.object] = opened, closed, {**facts, **layout.facts(note.text)}
        missing = [number for number in self._used if number and number not in found]
        for number, (facts) in self._inherited(missing).items():
            found[number] = self.head.started, self._closed.get(number, -1), facts
        return found

    def _inherited(self, missing: list[int]) -> dict[int, dict[str, str]]:
        """What the recording of the parent says of objects that were open when this process was forked."""
        names: dict[int, dict[str, str]] = {number: {} for number in missing}
        path = self.path.with_name(f"rec.{self.head.parent}")
        if not missing or path == self.path or not path.exists():
            return names
        known = Scan(path)._texts
        return {number: known[number][2] if number in known else {} for number in missing}


def folded(slots: Iterator[Slot], thread: int, positions: dict[int, int], island: int) -> Iterator[Call]:
    """Calls of what the notes say about them.

    Notes follow directly on the end of their call; so it is complete when a slot begins that is later than
    that.
    """
    waiting: deque[list[Any]] = deque()
    for start, end, amount, api, flags, number in slots:
        if api >= layout.FIRST_NOTE:
            if api == layout.NOTE_ENTERED:
                island = number
                continue
            for call in reversed(waiting):
                if call[3] == start:
                    if api == layout.NOTE_PHYSICAL:
                        call[7] += amount
                    elif api == layout.NOTE_EXPECTED:
                        call[8] = max(call[8], end)
                    elif api == layout.NOTE_ARRIVED:
                        call[9] = max(call[9], min(end, call[4]))
                    break
            continue
        while waiting and (waiting[0][4] == -1 or waiting[0][4] <= start):
            yield Call(*waiting.popleft())
        if not 0 < api < len(layout.APIS):
            continue
        physical = amount if flags & layout.PHYSICAL else 0
        place = positions.get(number, -1) if number else -1
        waiting.append(
            [thread, island, api, start, end or -1, place, amount, physical, -1, -1, flags & ~layout.PHYSICAL]
        )
    for call in waiting:
        yield Call(*call)


# Slots as numpy arrays.

SLOT: Final = [
    *(("start", "u8"), ("end", "u8"), ("amount", "i8"), ("api", "u2"), ("flags", "u2"), ("object", "u4"))
]
"""As `layout.SLOT`, for numpy."""
BLOCK: Final = 1 << 15
"""Slots that are worked on at a time: few enough for little memory, enough for numpy."""
TEXTS: Final = (layout.NOTE_OBJECT, layout.NOTE_THREAD, layout.NOTE_ISLAND)
"""Notes behind which slots of text follow."""


def together(tables: list[Table]) -> Table:
    """The tables as one. Field by field, as numpy copies them, takes twenty times as long."""
    import numpy as np

    kind = tables[0].dtype
    return np.concatenate([table.view(f"V{kind.itemsize}") for table in tables]).view(kind)


def chosen(table: Table, which: NDArray[np.bool_]) -> Table:
    """Those rows of a table; see :func:`together`."""
    import numpy as np

    return table if which.all() else table.take(np.flatnonzero(which))


def is_text(slots: Table) -> NDArray[np.bool_]:
    """Which slots hold text that belongs to the note before it."""
    import numpy as np

    text = np.zeros(len(slots), np.bool_)
    end = 0
    notes = np.flatnonzero(slots["api"] >= layout.NOTE_OBJECT)
    columns = (column.tolist() for column in (notes, slots["api"][notes], slots["amount"][notes]))
    for place, api, amount in zip(*columns, strict=True):
        if place >= end and api in TEXTS:
            end = place + 1 - (-max(amount, 0) // layout.SLOT.size)
            text[place + 1 : end] = True
    return text


# What a recording is made of. Times are nanoseconds of CLOCK_MONOTONIC; what is not known is -1.


class Thread(NamedTuple):
    """A thread of the process; its number is the position in `Recording.threads`.

    :ivar native: its number in the system.
    :ivar parent: number of the thread that started it.
    :ivar destroyed: when it ended; -1 where it lived as long as the process.
    :ivar sampled: when the next two were read: at its end, or at most 0.1 s before its last recorded call.
    :ivar cpu: ns that it ran.
    :ivar run_queue: ns that it was ready to run and had no CPU.
    :ivar island: number of the island that it started in.
    """

    number: int
    name: str
    native: int
    parent: int
    created: int
    destroyed: int
    sampled: int
    cpu: int
    run_queue: int
    island: int


class Object(NamedTuple):
    """A file or socket; its number is the position in `Recording.objects`.

    :ivar kind: file, pipe, terminal, device; tcp, udp, unix, net.
    :ivar name: absolute path, `<stdout>`; HOST:PORT of the peer, or of the own end where the peer connected.
    :ivar serial: 1 for the first object of this kind and name in the process, then 2, ...
    :ivar closed: -1 where it was open at the end.
    :ivar facts: what else is known: mode, encoding, local and remote address.
    """

    number: int
    kind: str
    name: str
    serial: int
    opened: int
    closed: int
    facts: dict[str, str]


class Call(NamedTuple):
    """A call that a thread made.

    :ivar api: position in `layout.APIS`.
    :ivar end: -1 where it had not returned when the process ended.
    :ivar object: position in `Recording.objects`.
    :ivar amount: as the program counts: characters of text files, bytes, ns of sleeps, 1 for counts.
    :ivar physical: bytes that the process exchanged with the system in it; buffers make it less or more than
        the amount.
    :ivar expected: the earliest end that the limits allow.
    :ivar arrived: when the data for which a TCP `recv` waited arrived.
    :ivar flags: of `layout`: RAISED, CONCURRENT.
    """

    thread: int
    island: int
    api: int
    start: int
    end: int
    object: int
    amount: int
    physical: int
    expected: int
    arrived: int
    flags: int
