"""Reads what the recorder has written; `native/record.h` owns the format and describes it.

Whatever the files hold, the outcome is a recording or a :class:`DamagedRecording`; only what a program that
was killed leaves behind, a last chunk that is not whole, is no damage.
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

from perun.collect.memory.analysis import Events, Ints
from perun.collect.memory.kinds import FIRST_RELEASE, KINDS, OF_PYTHON, REALLOC_FAILED, REALLOC_RELEASE
from perun.errors import ProfileError

MAGIC: Final = b"PERUNMEM"
TAIL_MAGIC: Final = b"PERUNTAI"
CHUNK_MAGIC: Final = b"PMCK"
VERSION: Final = 2
BYTE_ORDER: Final = 0x01020304
UNWINDERS: Final = {0: "none", 1: "fp", 2: "libunwind", 3: "tables"}
"""How call stacks were found, as the option is spelled."""

_HEADER: Final = struct.Struct("8sIIIIIIIIQQQII56x")
_CHUNK: Final = struct.Struct("4sIIIIIIIIIIIQQQ7sBI12x")
_TAIL: Final = struct.Struct("8sIIIIIII4xIIIIIIIIQQQQ24x")
_EVENTS_CHUNK, _TEXT_CHUNK = 1, 2
_STACK, _THREAD, _MODULE = 1, 2, 3
_MARK, _NO_CHUNK = 0x80, 0xFFFFFFFF
_MOST_EVENTS: Final = 1 << 24
_MOST_BYTES: Final = 1 << 30
_WORD: Final = 8
_HELD_BACK: Final = 1024
_LARGEST_ERROR: Final = 4095  # of Linux
_EVENT: Final = np.dtype(
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


class DamagedRecording(ProfileError):
    """A file of recorded allocations is not what the recorder writes."""


class State(IntEnum):
    """How the recorded process ended, as far as it knew itself."""

    RUNNING = 0
    EXITED = 1
    QUICK_EXITED = 2


class Module(NamedTuple):
    """Executable memory from `start` to `end`: the file `path` from `offset` on; no path is code of a JIT."""

    start: int
    end: int
    offset: int
    path: str


class Stack(NamedTuple):
    """One call stack.

    :param addresses: return addresses, outermost first, as 64-bit words.
    :param modules: number of the definitions of modules that were known by then.
    :param cut: whether it goes on outside of the outermost frame.
    """

    addresses: bytes
    modules: int
    cut: bool


class End(NamedTuple):
    """What the tail of a recording says: how the process ended and what is missing.

    :param error: of the write that failed, after which nothing was recorded; 0 for none.
    :param skipped: events that interrupted the recorder itself; :param lost: events after `error`.
    """

    state: State = State.RUNNING
    error: int = 0
    skipped: int = 0
    lost: int = 0


class Recording:
    """The recording of one process: facts of its beginning; and of the rest once :meth:`pieces` were read.

    :ivar stacks: call stacks; :ivar threads: number of a thread to its number in the kernel.
    :ivar modules: definitions of modules in their order; a later one replaces those that it overlaps.
    :ivar exe: path of the program. :ivar args: its arguments. :ivar notes: what the recorder wants told.
    :ivar end: how it ended. :ivar started: when, in nanoseconds of a clock that all processes share.
    :ivar duration: nanoseconds from the first to the last that is known of it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stacks: list[Stack] = [Stack(b"", 0, False)]
        self.threads: dict[int, int] = {}
        self.modules: list[Module] = []
        self.exe = ""
        self.args: list[str] = []
        self.notes: list[str] = []
        self.end = End()
        self.duration = 0
        self._numbers = {0: 0}  # ids of stacks to positions in `stacks`
        self._known: dict[Stack, int] = {}
        with self._opened(path) as file:
            data = file.read(_HEADER.size)
        if len(data) < _HEADER.size:
            raise self.damaged("it is too short for a header")
        fields = self._unpacked(_HEADER, data, MAGIC)
        (self._header_size, self.pid, self.parent, unwinder, wanted, self._shift, *clocks) = fields
        self._points = [(int(clocks[0]), int(clocks[1]))]
        self.started = int(clocks[1])
        if self._header_size < _HEADER.size or self._shift > 63 or max(self._points[0]) >> 62:
            raise self.damaged("its header makes no sense")
        self.unwinder = UNWINDERS.get(unwinder, str(unwinder))
        self.wanted = UNWINDERS.get(wanted, str(wanted))

    def damaged(self, reason: str) -> DamagedRecording:
        """The error for a file that is wrong."""
        return DamagedRecording(
            f"{self.path}: the recorded allocations are damaged: {reason}", "collect the profile again"
        )

    def pieces(self) -> Iterator[Events]:
        """All events in order, piece by piece. May be gone through once.

        :raises DamagedRecording: where the files are not as the recorder writes them.
        """
        held: Events | None = None
        for events in self._all():
            joined = events if held is None else Events.joined([held, events])
            now, held = _split(joined)
            yield _without_failed(now)
        if held is not None:
            yield _without_failed(held)

    def _all(self) -> Iterator[Events]:
        tail = self._tail()
        number = 0
        with self._opened(self.path) as file:
            file.seek(self._header_size)
            while (chunk := self._chunk(file)) is not None:
                if chunk.kind == _TEXT_CHUNK:
                    self._text(chunk.data)
                elif chunk.kind == _EVENTS_CHUNK:
                    if chunk.number != number:
                        raise self.damaged(f"chunk {chunk.number} follows where {number} is due")
                    number += 1
                    yield self._events(chunk)
        if tail is not None:
            yield from self._rest(*tail, number)

    def _opened(self, path: Path) -> BinaryIO:
        try:
            return open(path, "rb")
        except OSError as problem:
            raise DamagedRecording(
                f"cannot read {path}: {problem.strerror}", "collect the profile again"
            ) from None

    def _unpacked(self, form: struct.Struct, data: bytes, magic: bytes) -> list[Any]:
        found, order, version, *fields = form.unpack(data)
        if found != magic:
            raise self.damaged("it does not begin as one")
        if order != BYTE_ORDER:
            raise self.damaged("it is of a machine with another byte order")
        if version != VERSION:
            raise self.damaged(f"it has version {version} of the format, and {VERSION} is known")
        return fields

    # -- chunks --------------------------------------------------------------------------------------------

    def _chunk(self, file: BinaryIO) -> _Chunk | None:
        """The next chunk; None at the end, or where the last one is cut short."""
        head = file.read(_CHUNK.size)
        if len(head) < _CHUNK.size:
            return None
        magic, crc, kind, number, packed, unpacked, *fields = _CHUNK.unpack(head)
        if magic != CHUNK_MAGIC:
            raise self.damaged("a chunk does not begin as one")
        if packed > _MOST_BYTES or unpacked > _MOST_BYTES:
            raise self.damaged("a chunk is larger than any")
        data = file.read(packed)
        if len(data) < packed:
            return None
        if zlib.crc32(data, zlib.crc32(head[8:])) != crc:
            raise self.damaged(f"the checksum of chunk {number} is wrong")
        inflate = zlib.decompressobj(-15)
        try:
            content = inflate.decompress(data, unpacked + 1)
        except zlib.error as problem:
            raise self.damaged(f"chunk {number}: {problem}") from None
        if len(content) != unpacked or not inflate.eof:
            raise self.damaged(f"chunk {number} does not unpack to the size that it says")
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

    def _events(self, chunk: _Chunk) -> Events:
        if (
            max(chunk.events, chunk.sites, chunk.amounts, chunk.fresh, chunk.words, chunk.definitions)
            > _MOST_EVENTS
        ):
            raise self.damaged(f"chunk {chunk.number} has more events than any")
        if max(chunk.width) > _WORD or chunk.address_shift > 63:
            raise self.damaged(f"chunk {chunk.number} has values that are too wide")
        if chunk.first_ticks >> 62:
            raise self.damaged("its clock makes no sense")
        planes = _Planes(chunk, self)
        self._define(self._words(chunk, planes))
        kinds = np.frombuffer(planes.bytes(chunk.sites), np.uint8).astype(np.int64)
        stacks = self._stack_numbers(planes.values(chunk.sites, 0))
        site = planes.values(chunk.events, 1)
        if chunk.events and (not chunk.sites or int(site.max()) >= chunk.sites):
            raise self.damaged(f"chunk {chunk.number} has an event at no site")
        releases = (kinds >= FIRST_RELEASE)[site]
        size = np.zeros(chunk.events, np.int64)
        allocating = np.flatnonzero(~releases)
        if len(allocating) != chunk.amounts:
            raise self.damaged(
                f"chunk {chunk.number} has {chunk.amounts} amounts for {len(allocating)} events"
            )
        size[allocating[np.argsort(site[allocating], kind="stable")]] = planes.values(chunk.amounts, 2)
        address = self._addresses(chunk, planes, np.argsort(releases, kind="stable"))
        thread = planes.values(chunk.events, 5) + chunk.thread
        ticks = (planes.values(chunk.events, 6).cumsum() + (chunk.first_ticks >> self._shift)) << self._shift
        planes.finish()
        time = self._time(ticks, chunk.ticks, chunk.monotonic)
        return self._checked(Events(stacks, kinds, site, releases, address, size, thread, time))

    def _words(self, chunk: _Chunk, planes: _Planes) -> NDArray[np.uint64]:
        """The words of the definitions of a chunk, each definition as one."""
        first = planes.of_width(chunk.definitions, _WORD)
        following = (first >> 48) & 0xFFF
        if chunk.definitions + int(following.sum()) != chunk.words:
            raise self.damaged("a definition goes on beyond its chunk, or ends in it")
        words = np.empty(chunk.words, np.uint64)
        starts = np.arange(chunk.definitions) + following.cumsum() - following
        words[starts] = first.view(np.uint64)
        others = np.ones(chunk.words, np.bool_)
        others[starts] = False
        data = planes.bytes((chunk.words - chunk.definitions) * _WORD)
        words[others] = np.frombuffer(data, np.uint64)
        return words

    def _addresses(self, chunk: _Chunk, planes: _Planes, order: Ints) -> Ints:
        back = np.empty(chunk.events, np.int64)
        back[order] = planes.values(chunk.events, 3)
        zigzag = planes.values(chunk.fresh, 4).view(np.uint64)
        one = np.uint64(1)
        steps = (zigzag >> one) ^ (np.uint64(0) - (zigzag & one))
        fresh = (steps << np.uint64(chunk.address_shift)).cumsum(dtype=np.uint64)
        is_fresh = back == 0
        if int(is_fresh.sum()) != chunk.fresh:
            raise self.damaged(f"chunk {chunk.number} has {chunk.fresh} addresses too many or too few")
        origin = np.arange(chunk.events) - back
        if chunk.events and (int(origin.min()) < 0 or int(back.min()) < 0):
            raise self.damaged(f"chunk {chunk.number} refers to an event before it")
        # Whoever refers to an event that refers to another one is led on, twice as far each time.
        while not is_fresh[origin].all():
            origin = origin[origin]
        address = np.zeros(chunk.events, np.uint64)
        address[order[is_fresh[order]]] = fresh
        addresses: Ints = address[origin].view(np.int64)
        return addresses

    def _time(self, ticks: Ints, now: int, monotonic: int) -> Ints:
        """Nanoseconds since the beginning; between the last known point and this one time grows evenly."""
        if max(now, monotonic) >> 62:
            raise self.damaged("its clock makes no sense")
        before, then = self._points[-1]
        begin = self._points[0][1]
        span, passed = max(0, now - before), max(0, monotonic - then)
        self._points.append((max(now, before), max(monotonic, then)))
        self.duration = self._points[-1][1] - begin
        share = np.clip((ticks - before).astype(np.float64) / max(1, span), 0.0, 1.0)
        time: Ints = then - begin + np.rint(share * passed).astype(np.int64)
        return time

    def _stack_numbers(self, ids: Ints) -> Ints:
        try:
            return np.array([self._numbers[number] for number in ids.tolist()], np.int64)
        except KeyError as missing:
            raise self.damaged(f"the call stack {missing} is not defined") from None

    def _checked(self, events: Events) -> Events:
        unknown = set(events.subtypes.tolist()) - (KINDS.keys() - OF_PYTHON) - {REALLOC_FAILED}
        if unknown:
            raise self.damaged(f"an event is of the unknown kind {min(unknown)}")
        if events.total and int(events.size.min()) < 0:
            raise self.damaged("an amount is beyond all memory")
        return events

    # -- definitions ---------------------------------------------------------------------------------------

    def _define(self, words: NDArray[np.uint64]) -> None:
        data, values = words.tobytes(), words.tolist()
        position, stack = 0, b""
        while position < len(values):
            head = values[position]
            count, kind, number = head >> 48 & 0xFFF, head >> 60, head & 0xFFFFFFFF  # no number for a stack
            start, end = position + 1, position + 1 + count
            if end > len(values):
                raise self.damaged("a definition goes on beyond its chunk")
            if kind == _STACK:
                shared = (head >> 32 & 0x7FFF) * _WORD
                if shared > len(stack):
                    raise self.damaged("a call stack shares more than there is")
                stack = stack[:shared] + data[start * _WORD : end * _WORD]
                self._numbers[len(self._numbers)] = self._stack(
                    Stack(stack, len(self.modules), bool(head >> 47 & 1))
                )
            elif kind == _THREAD and count == 1:
                self.threads[number] = values[start]
            elif kind == _MODULE and count >= 3:
                path = data[(start + 3) * _WORD : end * _WORD][:number].decode("utf-8", "surrogateescape")
                begin, past, offset = values[start : start + 3]
                self.modules.append(Module(begin, past, offset, path))
            else:
                raise self.damaged(f"a definition is of the unknown kind {kind}")
            position = end

    def _stack(self, stack: Stack) -> int:
        position = self._known.get(stack)
        if position is None:
            position = self._known[stack] = len(self.stacks)
            self.stacks.append(stack)
        return position

    # -- the tail ------------------------------------------------------------------------------------------

    def _tail(self) -> tuple[list[int], bytes] | None:
        path = self.path.with_name(self.path.name + ".tail")
        if not path.exists():
            return None
        with self._opened(path) as file:
            data = file.read(min(_MOST_BYTES, os.fstat(file.fileno()).st_size))
        if len(data) < _TAIL.size:
            raise self.damaged("its tail is too short for a header")
        fields = self._unpacked(_TAIL, data[: _TAIL.size], TAIL_MAGIC)
        return fields, data

    def _rest(self, fields: Sequence[int], data: bytes, number: int) -> Iterator[Events]:
        _, state, error, word_room, event_room, *halves, skipped, lost, ticks, monotonic = fields
        if error > _LARGEST_ERROR:
            raise self.damaged(f"its tail names the unknown error {error}")
        if state not in list(State):
            raise self.damaged(f"its tail says that it ended in the unknown way {state}")
        self.end = End(State(state), error, skipped, lost)
        pieces = [np.empty(0, _EVENT)]
        for chunk, words, words_at, events_at in sorted([tuple(halves[:4]), tuple(halves[4:])]):
            if chunk < number or chunk == _NO_CHUNK:
                continue
            if chunk > number and error:
                break
            if chunk > number:
                raise self.damaged(f"chunks {number} to {chunk - 1} are missing")
            if words > word_room:
                raise self.damaged("its tail has more definitions than it has room for")
            try:
                definitions = np.frombuffer(data, np.uint64, words, words_at)
                events = np.frombuffer(data, _EVENT, event_room, events_at)
            except ValueError:
                raise self.damaged("its tail is cut short") from None
            self._define(definitions)
            pieces.append(events[events["mark"] == (_MARK | chunk % _MARK)])
            number += 1
        yield self._raw(np.concatenate(pieces), ticks, monotonic)
        self.duration = max(self.duration, monotonic - self._points[0][1])

    def _raw(self, events: NDArray[Any], ticks: int, monotonic: int) -> Events:
        kinds, stacks = events["kind"].astype(np.int64), events["stack"].astype(np.int64)
        pairs, site = np.unique((stacks << 8) | kinds, return_inverse=True)
        at = np.maximum.accumulate(events["ticks"].astype(np.int64))
        before, then = self._points[-1]
        if len(at) and int(at[-1]) > ticks:  # killed before it could read the clocks together once more
            rate = self._rate(ticks, monotonic)
            ticks, monotonic = int(at[-1]), then + int((int(at[-1]) - before) * rate)
        releases = kinds >= FIRST_RELEASE
        return self._checked(
            Events(
                self._stack_numbers(pairs >> 8),
                pairs & 0xFF,
                site.astype(np.int64),
                releases,
                events["address"].astype(np.int64),
                np.where(releases, 0, events["amount"].astype(np.int64)),
                events["thread"].astype(np.int64),
                self._time(at, ticks, monotonic),
            )
        )

    def _rate(self, ticks: int, monotonic: int) -> float:
        """Nanoseconds of a tick, from the first point to the last one known."""
        first, last = self._points[0], max(self._points[-1], (ticks, monotonic))
        return (last[1] - first[1]) / (last[0] - first[0]) if last[0] > first[0] else 1.0


class _Chunk(NamedTuple):
    """A chunk with its content unpacked, see `struct record_chunk`."""

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
    """The content of a chunk, taken from its beginning to its end."""

    def __init__(self, chunk: _Chunk, recording: Recording) -> None:
        self._chunk = chunk
        self._recording = recording
        self._position = 0

    def bytes(self, count: int) -> bytes:
        piece = self._chunk.data[self._position : self._position + count]
        if len(piece) != count:
            raise self._recording.damaged(f"chunk {self._chunk.number} is shorter than what it has")
        self._position += count
        return piece

    def values(self, count: int, width_of: int) -> Ints:
        """Numbers of the column that has this place among the widths."""
        return self.of_width(count, self._chunk.width[width_of])

    def of_width(self, count: int, width: int) -> Ints:
        """Numbers whose lowest bytes come first, then their next bytes, and so on."""
        planes = np.frombuffer(self.bytes(count * width), np.uint8).reshape(width, count)
        values = np.zeros(count, np.uint64)
        for shift, plane in enumerate(planes):
            values |= plane.astype(np.uint64) << np.uint64(8 * shift)
        return values.view(np.int64)

    def finish(self) -> None:
        if self._position != len(self._chunk.data):
            raise self._recording.damaged(f"chunk {self._chunk.number} is longer than what it has")


def _split(events: Events) -> tuple[Events, Events | None]:
    """The events without those at the end whose realloc may fail yet, and these, to be looked at later."""
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
    cut = events.total - len(kinds) + begin
    return _taken(events, slice(None, cut)), _taken(events, slice(cut, None))


def _without_failed(events: Events) -> Events:
    """The events without every realloc that failed: neither its release nor that it failed happened."""
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
    return _taken(events, happened)


def _taken(events: Events, which: slice | NDArray[np.bool_]) -> Events:
    columns: dict[str, Any] = {name: getattr(events, name)[which] for name in Events._fields[2:]}
    return events._replace(**columns)
