"""Reads recordings of allocations; `native/record.h` owns the format and describes it.

Whatever the files hold, the result is a recording or a :class:`DamagedRecording`. The last chunk may be
incomplete, because the program was killed.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perun.collect._common.recordings import WORD, HeaderLayout, RecordedFile, Words
from perun.collect.memory import native
from perun.collect.memory.analysis import AllocationEvents
from perun.collect.memory.events import (
    FIRST_RELEASE,
    KINDS,
    OF_PYTHON,
    REALLOC_FAILED,
    REALLOC_RELEASE,
    BlockStates,
)
from perun.core.errors import JobFailed
from perun.native.columns import Ints

CHUNK_MAGIC: Final = b"PMCK"
UNWINDERS: Final = {0: "none", 1: "fp", 2: "libunwind", 3: "tables"}
"""Ways to find call stacks, as `--unwind` spells them."""

HEADER: Final = HeaderLayout(b"PERUNMEM", 2, struct.Struct("8sIIIIIIIIQQQII56x"))
"""`struct record_header`."""
CHUNK: Final = struct.Struct("4sIIIIIIIIIIIQQQ7sBI12x")
"""`struct record_chunk`."""
TAIL: Final = HeaderLayout(b"PERUNTAI", 2, struct.Struct("8sIIIIIII4xIIIIIIIIQQQQ24x"))
"""`struct record_tail`."""
EVENTS_CHUNK, TEXT_CHUNK, REACH_CHUNK = 1, 2, 3
STACK, THREAD, MODULE = 1, 2, 3
MARK, NO_CHUNK = 0x80, 0xFFFFFFFF
ROOM: Final = TAIL.form.size + 2 * ((8 << 14) + (32 << 15)) + 4096
"""Bytes that the recorder needs at its start: the tail, which has a header and twice the words and events of
a chunk, and a page for what its file begins with."""
WHOLE: Final = ".whole"
"""`RECORD_WHOLE`: ending of the file that a process removes where it cannot make its own ones."""
_MAX_EVENTS: Final = 1 << 24
_MAX_BYTES: Final = 1 << 30
_HELD_BACK: Final = 1024
"""Events between a realloc's release and its failure, at most: threads record their events interleaved."""
_MAX_ERROR: Final = 4095  # of Linux
EVENT: Final = np.dtype(
    [
        ("address", "u8"),
        ("amount", "u8"),
        ("ticks", "u8"),
        ("stack", "u4"),
        ("thread", "u2"),
        ("kind", "u1"),
        ("mark", "u1"),
    ]
)


def no_room(folder: Path, missing: str) -> JobFailed:
    """The error where the system refused a recorder room in `folder`, and has room by now.

    :param missing: what was not recorded, with a verb.
    """
    return JobFailed(
        f"{missing} not recorded: there was no room for it in {folder}",
        "check the free disk space, its quotas, and the limits of the program (ulimit), and collect again",
    )


class ExitState(IntEnum):
    """How the process ended, as far as its recorder knows."""

    RUNNING = 0
    EXITED = 1
    QUICK_EXITED = 2


class MappedModule(NamedTuple):
    """Executable memory from `start` to `end`, mapped from `offset` of the file `path`; a JIT has no path."""

    start: int
    end: int
    offset: int
    path: str


class Stack(NamedTuple):
    """One call stack.

    :param addresses: return addresses as 64-bit words, the outermost one first.
    :param modules: number of module definitions before it, in which its addresses are looked up.
    :param cut: whether it lacks its outermost frames, because it is too deep.
    """

    addresses: bytes
    modules: int
    cut: bool


class End(NamedTuple):
    """How the process and the recording ended.

    :param error: errno of the failed write that ended the recording; 0 for none.
    :param skipped: number of events in signal handlers that interrupted the recorder, which are missing.
    :param lost: number of events after `error`, which are missing.
    """

    state: ExitState = ExitState.RUNNING
    error: int = 0
    skipped: int = 0
    lost: int = 0


class MemoryRecording:
    """The recording of one process. All but its header is complete once :meth:`pieces` is exhausted.

    :ivar stacks: call stacks. :ivar threads: index of a thread to its id in the kernel.
    :ivar modules: in the order of definition; a later one replaces those that it overlaps.
    :ivar exe: path of the program. :ivar args: its arguments. :ivar notes: messages of the recorder.
    :ivar reach: what the program can reach at its end; None without that, or where it did not end by itself.
    :ivar started: CLOCK_MONOTONIC at the start in nanoseconds.
    :ivar duration: nanoseconds from the start to the latest known moment.
    """

    def __init__(self, path: Path, library: native.Library | None = None) -> None:
        """:param library: decodes the chunks, unless it is None; numpy does the same."""
        self.path = path
        self._library = library
        self._buffers: native.Buffers | None = None
        self.stacks: list[Stack] = [Stack(b"", 0, False)]
        self.threads: dict[int, int] = {}
        self.modules: list[MappedModule] = []
        self.exe = ""
        self.args: list[str] = []
        self.notes: list[str] = []
        self.end = End()
        self.reach: BlockStates | None = None
        self.duration = 0
        self._numbers = {0: 0}  # ids of stacks to positions in `stacks`
        self._known: dict[Stack, int] = {}
        self._file = RecordedFile(path, "recorded allocations")
        self.damaged = self._file.damaged
        with self._file.open() as file:
            fields = self._file.header(HEADER, file.read(HEADER.form.size))
        (self._header_size, self.pid, self.parent, unwinder, wanted, self._shift, *clocks) = fields
        self._points = [(int(clocks[0]), int(clocks[1]))]
        self.started = int(clocks[1])
        if self._header_size < HEADER.form.size or self._shift > 63 or max(self._points[0]) >> 62:
            raise self.damaged("values of its header are out of range")
        self.unwinder = UNWINDERS.get(unwinder, str(unwinder))
        self.wanted = UNWINDERS.get(wanted, str(wanted))

    def pieces(self, *, reuse: bool = False) -> Iterator[AllocationEvents]:
        """All events in the order of time, in batches; only once.

        :param reuse: the columns of a batch are valid until the next one only, which takes less time.
        :raises DamagedRecording: where the files are not as the recorder writes them.
        """
        held: AllocationEvents | None = None
        self._buffers = native.Buffers() if reuse else None
        for events in self._batches():
            joined = events if held is None else AllocationEvents.joined([held, events])
            done, held = _split(joined)
            if reuse and held is not None:
                held = held.where(np.arange(len(held)))  # a copy, as the columns are about to be reused
            yield _without_failed(done)
        if held is not None:
            yield _without_failed(held)

    def _batches(self) -> Iterator[AllocationEvents]:
        tail = self._tail()
        number = 0
        with self._file.open() as file:
            file.seek(self._header_size)
            while (chunk := self._chunk(file)) is not None:
                if chunk.kind == TEXT_CHUNK:
                    self._text(chunk.data)
                elif chunk.kind == REACH_CHUNK:
                    self._reach(chunk)
                elif chunk.kind == EVENTS_CHUNK:
                    if chunk.number != number:
                        raise self.damaged(f"chunk {chunk.number} stands where chunk {number} is expected")
                    number += 1
                    yield self._events(chunk)
        if tail is not None:
            yield from self._rest(*tail, number)

    # -- chunks --------------------------------------------------------------------------------------------

    def _chunk(self, file: BinaryIO) -> _Chunk | None:
        """The next chunk; None at the end, or where the last one is cut short."""
        head = file.read(CHUNK.size)
        if len(head) < CHUNK.size:
            return None
        magic, crc, kind, number, packed, unpacked, *fields = CHUNK.unpack(head)
        if magic != CHUNK_MAGIC:
            raise self.damaged("a chunk does not begin with PMCK")
        if packed > _MAX_BYTES or unpacked > _MAX_BYTES:
            raise self.damaged(f"chunk {number} is larger than {_MAX_BYTES} bytes")
        if packed > os.fstat(file.fileno()).st_size - file.tell():
            return None  # the chunk is incomplete; read() would reserve memory for all of it
        data = file.read(packed)
        if zlib.crc32(data, zlib.crc32(head[8:])) != crc:
            raise self.damaged(f"the checksum of chunk {number} is wrong")
        inflate = zlib.decompressobj(-15)
        try:
            content = inflate.decompress(data, unpacked + 1)
        except zlib.error as problem:
            raise self.damaged(f"chunk {number}: {problem}") from None
        if len(content) != unpacked or not inflate.eof:
            raise self.damaged(f"chunk {number} does not decompress to the {unpacked} bytes of its header")
        return _Chunk(kind, number, content, *fields)

    def _text(self, data: bytes) -> None:
        for line in data.decode("utf-8", "surrogateescape").splitlines():
            name, _, value = line.partition(" ")
            if name == "exe":
                self.exe = value
            elif name == "arg":
                self.args.append(value)
            elif name == "note":
                self.notes.append(value)

    def _reach(self, chunk: _Chunk) -> None:
        if chunk.events > _MAX_EVENTS or chunk.width[0] > WORD:
            raise self.damaged("what it says of reachable blocks is out of range")
        planes = _Planes(chunk, self)
        values = planes.values(chunk.events, 0)
        planes.finish()
        address, state = (values >> 2).cumsum(), values & 3
        if self.reach is not None:
            address = np.concatenate([self.reach.address, address])
            state = np.concatenate([self.reach.state, state])
        self.reach = BlockStates(address, state, chunk.sites, not chunk.fresh)

    def _events(self, chunk: _Chunk) -> AllocationEvents:
        if (
            max(chunk.events, chunk.sites, chunk.amounts, chunk.fresh, chunk.words, chunk.definitions)
            > _MAX_EVENTS
        ):
            raise self.damaged(f"chunk {chunk.number} has a count above {_MAX_EVENTS}")
        if max(chunk.width) > WORD or chunk.address_shift > 63:
            raise self.damaged(f"chunk {chunk.number} has values wider than 8 bytes")
        if chunk.first_ticks >> 62:
            raise self.damaged("its clock values are out of range")
        planes = _Planes(chunk, self)
        self._define(self._words(chunk, planes))
        clock = self._clock(chunk.ticks, chunk.monotonic)
        if self._library:
            buffers = self._buffers or native.Buffers()
            columns = native.decoded(planes.rest(), chunk, self._shift, clock, self._library, buffers)
            if columns:
                return self._of_known_kinds(
                    AllocationEvents(self._stack_numbers(columns.stack_ids), *columns[1:])
                )
        # It tells what is wrong with a chunk that the library cannot decode.
        kinds = np.frombuffer(planes.bytes(chunk.sites), np.uint8).astype(np.int64)
        stacks = self._stack_numbers(planes.values(chunk.sites, 0))
        site = planes.values(chunk.events, 1)
        if chunk.events and (not chunk.sites or int(site.max()) >= chunk.sites):
            raise self.damaged(f"chunk {chunk.number} has an event at a site that is not defined")
        releases = (kinds >= FIRST_RELEASE)[site]
        size = np.zeros(chunk.events, np.int64)
        allocating = np.flatnonzero(~releases)
        if len(allocating) != chunk.amounts:
            raise self.damaged(
                f"chunk {chunk.number} has {chunk.amounts} amounts for {len(allocating)} allocations"
            )
        size[allocating[np.argsort(site[allocating], kind="stable")]] = planes.values(chunk.amounts, 2)
        address = self._addresses(chunk, planes, np.argsort(releases, kind="stable"))
        thread = planes.values(chunk.events, 5) + chunk.thread
        ticks = (planes.values(chunk.events, 6).cumsum() + (chunk.first_ticks >> self._shift)) << self._shift
        planes.finish()
        return self._checked(
            AllocationEvents(stacks, kinds, site, releases, address, size, thread, _times(ticks, clock))
        )

    def _words(self, chunk: _Chunk, planes: _Planes) -> Words:
        """The words of the definitions of a chunk, in which the first word of each precedes its others.

        The chunk has the first words of all definitions before all others, which compresses better.
        """
        first = planes.of_width(chunk.definitions, WORD)
        following = (first >> 48) & 0xFFF
        if chunk.definitions + int(following.sum()) != chunk.words:
            raise self.damaged(f"the definitions of chunk {chunk.number} do not fill its words")
        words = np.empty(chunk.words, np.uint64)
        starts = np.arange(chunk.definitions) + following.cumsum() - following
        words[starts] = first.view(np.uint64)
        others = np.ones(chunk.words, np.bool_)
        others[starts] = False
        data = planes.bytes((chunk.words - chunk.definitions) * WORD)
        words[others] = np.frombuffer(data, np.uint64)
        return words

    def _addresses(self, chunk: _Chunk, planes: _Planes, order: Ints) -> Ints:
        """The addresses of the events: each is that of an event `back` before it, or a new one.

        New addresses are zigzag-coded differences, in the order of `order`.
        """
        back = np.empty(chunk.events, np.int64)
        back[order] = planes.values(chunk.events, 3)
        zigzag = planes.values(chunk.fresh, 4).view(np.uint64)
        one = np.uint64(1)
        steps = (zigzag >> one) ^ (np.uint64(0) - (zigzag & one))
        fresh = (steps << np.uint64(chunk.address_shift)).cumsum(dtype=np.uint64)
        is_fresh = back == 0
        if int(is_fresh.sum()) != chunk.fresh:
            needed = int(is_fresh.sum())
            raise self.damaged(f"chunk {chunk.number} has {chunk.fresh} new addresses for {needed} events")
        origin = np.arange(chunk.events) - back
        if chunk.events and (int(origin.min()) < 0 or int(back.min()) < 0):
            raise self.damaged(f"chunk {chunk.number} refers to an event of another chunk")
        # Pointer doubling: each round follows every reference twice as far, so that a chain of n events takes
        # log2(n) rounds instead of a loop over events.
        while not is_fresh[origin].all():
            origin = origin[origin]
        address = np.zeros(chunk.events, np.uint64)
        address[order[is_fresh[order]]] = fresh
        addresses: Ints = address[origin].view(np.int64)
        return addresses

    def _clock(self, now: int, monotonic: int) -> native.TickClock:
        """The clock between the last known pair of ticks and nanoseconds, and this one."""
        if max(now, monotonic) >> 62:
            raise self.damaged("its clock values are out of range")
        before, then = self._points[-1]
        begin = self._points[0][1]
        self._points.append((max(now, before), max(monotonic, then)))
        self.duration = self._points[-1][1] - begin
        return native.TickClock(before, max(1, now - before), then - begin, max(0, monotonic - then))

    def _stack_numbers(self, ids: Ints) -> Ints:
        try:
            return np.array([self._numbers[number] for number in ids.tolist()], np.int64)
        except KeyError as missing:
            raise self.damaged(f"the call stack {missing} is not defined") from None

    def _checked(self, events: AllocationEvents) -> AllocationEvents:
        if len(events) and int(events.size.min()) < 0:
            raise self.damaged("an allocation is larger than 2^63 bytes")
        return self._of_known_kinds(events)

    def _of_known_kinds(self, events: AllocationEvents) -> AllocationEvents:
        """The events, whose kinds are checked."""
        unknown = set(events.subtypes.tolist()) - (KINDS.keys() - OF_PYTHON) - {REALLOC_FAILED}
        if unknown:
            raise self.damaged(f"an event has the unknown kind {min(unknown)}")
        return events

    # -- definitions ---------------------------------------------------------------------------------------

    def _define(self, words: Words) -> None:
        data, values = words.tobytes(), words.tolist()
        position, stack = 0, b""
        while position < len(values):
            head = values[position]
            count, kind, number = head >> 48 & 0xFFF, head >> 60, head & 0xFFFFFFFF  # no number for a stack
            start, end = position + 1, position + 1 + count
            if end > len(values):
                raise self.damaged("a definition is longer than its chunk")
            if kind == STACK:
                shared = (head >> 32 & 0x7FFF) * WORD
                if shared > len(stack):
                    raise self.damaged("a call stack shares more frames than the stack before it has")
                stack = stack[:shared] + data[start * WORD : end * WORD]
                self._numbers[len(self._numbers)] = self._stack(
                    Stack(stack, len(self.modules), bool(head >> 47 & 1))
                )
            elif kind == THREAD and count == 1:
                self.threads[number] = values[start]
            elif kind == MODULE and count >= 3:
                path = data[(start + 3) * WORD : end * WORD][:number].decode("utf-8", "surrogateescape")
                begin, past, offset = values[start : start + 3]
                self.modules.append(MappedModule(begin, past, offset, path))
            else:
                raise self.damaged(f"a definition has the unknown kind {kind}")
            position = end

    def _stack(self, stack: Stack) -> int:
        position = self._known.get(stack)
        if position is None:
            position = self._known[stack] = len(self.stacks)
            self.stacks.append(stack)
        return position

    # -- the tail ------------------------------------------------------------------------------------------

    def _tail(self) -> tuple[list[int], bytes] | None:
        tail = self._file._replace(path=self.path.with_name(self.path.name + ".tail"))
        if not tail.path.exists():
            return None
        with tail.open() as file:
            data = file.read(min(_MAX_BYTES, os.fstat(file.fileno()).st_size))
        return tail.header(TAIL, data), data

    def _rest(self, fields: Sequence[int], data: bytes, number: int) -> Iterator[AllocationEvents]:
        _, state, error, word_room, event_room, *halves, skipped, lost, ticks, monotonic = fields
        if error > _MAX_ERROR:
            raise self.damaged(f"its tail has the unknown error number {error}")
        if state not in list(ExitState):
            raise self.damaged(f"its tail has the unknown process state {state}")
        self.end = End(ExitState(state), error, skipped, lost)
        pieces = [np.empty(0, EVENT)]
        for chunk, words, words_at, events_at in sorted([tuple(halves[:4]), tuple(halves[4:])]):
            if chunk < number or chunk == NO_CHUNK:
                continue
            if chunk > number and error:
                break
            if chunk > number:
                raise self.damaged(f"chunks {number} to {chunk - 1} are missing")
            if words > word_room:
                raise self.damaged("its tail has more words of definitions than it has room for")
            try:
                definitions = np.frombuffer(data, np.uint64, words, words_at)
                events = np.frombuffer(data, EVENT, event_room, events_at)
            except ValueError:
                raise self.damaged("its tail is truncated") from None
            self._define(definitions)
            pieces.append(events[events["mark"] == (MARK | chunk % MARK)])
            number += 1
        yield self._raw(np.concatenate(pieces), ticks, monotonic)
        self.duration = max(self.duration, monotonic - self._points[0][1])

    def _raw(self, events: NDArray[Any], ticks: int, monotonic: int) -> AllocationEvents:
        kinds, stacks = events["kind"].astype(np.int64), events["stack"].astype(np.int64)
        pairs, site = np.unique((stacks << 8) | kinds, return_inverse=True)
        at = np.maximum.accumulate(events["ticks"].astype(np.int64))
        before, then = self._points[-1]
        if len(at) and int(at[-1]) > ticks:  # killed before it read both clocks once more
            rate = self._rate(ticks, monotonic)
            ticks, monotonic = int(at[-1]), then + int((int(at[-1]) - before) * rate)
        releases = kinds >= FIRST_RELEASE
        return self._checked(
            AllocationEvents(
                self._stack_numbers(pairs >> 8),
                pairs & 0xFF,
                site.astype(np.int64),
                releases,
                events["address"].astype(np.int64),
                np.where(releases, 0, events["amount"].astype(np.int64)),
                events["thread"].astype(np.int64),
                _times(at, self._clock(ticks, monotonic)),
            )
        )

    def _rate(self, ticks: int, monotonic: int) -> float:
        """Nanoseconds of a tick, from the first to the last known pair of both clocks."""
        first, last = self._points[0], max(self._points[-1], (ticks, monotonic))
        return (last[1] - first[1]) / (last[0] - first[0]) if last[0] > first[0] else 1.0


class _Chunk(NamedTuple):
    """A chunk with its decompressed content; see `struct record_chunk`."""

    kind: int
    number: int
    data: bytes
    words: int
    events: int
    sites: int
    amounts: int
    fresh: int
    thread: int
    first_ticks: int
    ticks: int
    monotonic: int
    width: bytes
    address_shift: int
    definitions: int


class _Planes:
    """Reads the columns of a chunk in their order."""

    def __init__(self, chunk: _Chunk, recording: MemoryRecording) -> None:
        self._chunk = chunk
        self._recording = recording
        self._position = 0

    def bytes(self, count: int) -> bytes:
        piece = self._chunk.data[self._position : self._position + count]
        if len(piece) != count:
            raise self._recording.damaged(f"chunk {self._chunk.number} ends before its last column")
        self._position += count
        return piece

    def rest(self) -> memoryview:
        """All columns that are not read yet."""
        return memoryview(self._chunk.data)[self._position :]

    def values(self, count: int, width_of: int) -> Ints:
        """The values of a column; `width_of` is its position among the widths of the chunk."""
        return self.of_width(count, self._chunk.width[width_of])

    def of_width(self, count: int, width: int) -> Ints:
        """Values that are stored as planes: the lowest bytes of all values, then their next bytes ..."""
        planes = np.frombuffer(self.bytes(count * width), np.uint8).reshape(width, count)
        values = np.zeros(count, np.uint64)
        for shift, plane in enumerate(planes):
            values |= plane.astype(np.uint64) << np.uint64(8 * shift)
        return values.view(np.int64)

    def finish(self) -> None:
        if self._position != len(self._chunk.data):
            raise self._recording.damaged(f"chunk {self._chunk.number} has data after its last column")


def _times(ticks: Ints, clock: native.TickClock) -> Ints:
    """Nanoseconds since the start of events at these ticks."""
    share = np.clip((ticks - clock.before).astype(np.float64) / clock.span, 0.0, 1.0)
    times: Ints = clock.origin + np.rint(share * clock.passed).astype(np.int64)
    return times


def _split(events: AllocationEvents) -> tuple[AllocationEvents, AllocationEvents | None]:
    """Split off the events at the end that belong to a realloc which may still fail."""
    kinds = events.subtypes[events.site[-_HELD_BACK:]]
    threads = events.thread[-_HELD_BACK:]
    begin = len(kinds)
    seen: set[int] = set()
    if REALLOC_RELEASE in kinds:
        for place in range(len(kinds) - 1, -1, -1):
            thread = int(threads[place])
            if thread not in seen and kinds[place] == REALLOC_RELEASE:
                begin = place
            seen.add(thread)
    if begin == len(kinds):
        return events, None
    cut = len(events) - len(kinds) + begin
    return events.where(slice(None, cut)), events.where(slice(cut, None))


def _without_failed(events: AllocationEvents) -> AllocationEvents:
    """The events without failed reallocs: neither the release nor the failure."""
    if REALLOC_FAILED not in events.subtypes:
        return events
    kinds = events.subtypes[events.site]
    failed = np.flatnonzero(kinds == REALLOC_FAILED)
    if not len(failed):
        return events
    happened = kinds != REALLOC_FAILED
    for place in failed.tolist():
        before = np.flatnonzero(
            (kinds[:place] == REALLOC_RELEASE)
            & (events.address[:place] == events.address[place])
            & (events.thread[:place] == events.thread[place])
        )
        if len(before):
            happened[before[-1]] = False
    return events.where(happened)
