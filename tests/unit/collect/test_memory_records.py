"""The reader of recorded allocations: what a writer of the format has written, cut short, and damaged."""

import random
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.collect._common.recordings import DamagedRecording
from perun.collect.memory import native
from perun.collect.memory.analysis import AllocationEvents, Analysis
from perun.collect.memory.places import StackTraces
from perun.collect.memory.profile import ProcessReplay, Shape, resources
from perun.collect.memory.records import ExitState, MemoryRecording
from perun.core.errors import ProfileError
from perun.native.symboliser import Symboliser

HEADER, CHUNK, TAIL = "=8s8I3Q2I56x", "=4s11I3Q7sBI12x", "=8s7I4x8I4Q24x"
START = 1_000_000
"""Ticks at the beginning; each is a nanosecond, though the clock shows another time."""
STACK = [0x401000, 0x402000, 0x7F0000001000]


class Event(NamedTuple):
    kind: int
    address: int
    amount: int
    stack: int
    thread: int
    ticks: int


def planes(values: Iterable[int], width: int) -> bytes:
    values = list(values)
    return b"".join(bytes(value >> 8 * plane & 0xFF for value in values) for plane in range(width))


def width_of(values: Iterable[int]) -> int:
    return -(-max((value.bit_length() for value in values), default=0) // 8)


def definition(kind: int, number: int, words: Sequence[int], shared: int = 0, cut: bool = False) -> list[int]:
    return [number | shared << 32 | cut << 47 | len(words) << 48 | kind << 60, *words]


def split(words: Sequence[int]) -> tuple[list[int], list[int]]:
    """First words of definitions, and what follows them."""
    first, others, position = [], [], 0
    while position < len(words):
        end = position + 1 + (words[position] >> 48 & 0xFFF)
        first.append(words[position])
        others += words[position + 1 : end]
        position = end
    return first, others


def module(start: int, end: int, offset: int, path: str) -> list[int]:
    data = path.encode()
    padded = data + bytes(-len(data) % 8)
    return definition(3, len(data), [start, end, offset, *struct.unpack(f"={len(padded) // 8}Q", padded)])


DEFINITIONS = [
    *module(0x400000, 0x500000, 0, "/bin/program"),
    *definition(1, 0, STACK),
    *definition(1, 0, [0x403000], shared=1),
    *definition(1, 0, [], shared=2, cut=True),
    *definition(2, 0, [4711]),
    *definition(2, 1, [4712]),
]


class Writer:
    """Writes a recording in chunks, as the recorder would, and its tail."""

    def __init__(self, path: Path, shift: int = 0) -> None:
        self.path = path
        self.shift = shift
        self.number = 0
        path.write_bytes(
            struct.pack(
                HEADER, b"PERUNMEM", 0x01020304, 2, 128, 77, 76, 2, 3, shift, START, 5 * START, 0, 8, 4096
            )
        )

    def append(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)

    def text(self, text: str) -> None:
        self.append(chunk(2, 0, text.encode()))

    def events(
        self, events: Sequence[Event], words: Sequence[int] = (), now: int = 0,
        changes: Mapping[str, Any] | None = None
    ) -> None:  # fmt: skip
        self.append(events_chunk(events, words, self.number, now, self.shift, changes or {}))
        self.number += 1

    def tail(
        self, events: Sequence[Event] = (), words: Sequence[int] = (), state: int = 1,
        number: int | None = None, now: int = 0, error: int = 0, skipped: int = 0, lost: int = 0,
        other: tuple[int, Sequence[Event], Sequence[int]] = (0xFFFFFFFF, (), ())
    ) -> None:  # fmt: skip
        """One half has what is given, for chunk `number`; the other is `other`: a chunk, events, words."""
        halves = [(self.number if number is None else number, events, words), other]
        room = [max(len(half[place]) for half in halves) + 5 for place in (1, 2)]
        head: list[Any] = [b"PERUNTAI", 0x01020304, 2, 77, state, error, room[1], room[0]]
        at = 128
        for half, (chunk, _, own_words) in enumerate(halves):
            events_at = 128 + 16 * room[1] + 32 * room[0] * half
            head += [chunk, len(own_words), at, events_at]
            at += 8 * room[1]
        data = struct.pack(TAIL, *head, skipped, lost, START + now, 5 * START + now)
        for _, _, own_words in halves:
            data += struct.pack(f"={room[1]}Q", *own_words, *[0] * (room[1] - len(own_words)))
        for chunk, own_events, _ in halves:
            places = [packed_event(event, chunk) for event in own_events]
            # A place that a thread has taken and not filled, and one that has an event of an earlier chunk.
            middle = len(places) // 2
            places[middle:middle] = [packed_event(None, 0), packed_event(STALE, chunk - 1)]
            data += b"".join(places) + bytes(32 * (room[0] - len(places)))
        self.path.with_name(self.path.name + ".tail").write_bytes(data)


STALE = Event(1, 4096, 4096, 0, 0, 0)


def packed_event(event: Event | None, chunk: int) -> bytes:
    """An event as it is in a tail; none has no mark."""
    kind, address, amount, stack, thread, ticks = event or Event(0, 1, 1, 0, 0, 0)
    mark = 0x80 | chunk & 0x7F if event else 0
    given = 0 if kind >= 32 else amount
    return struct.pack("=QQQIHBB", address, given, START + ticks, stack, thread, kind, mark)


def chunk(kind: int, number: int, content: bytes, *fields: Any) -> bytes:
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    packed = deflate.compress(content) + deflate.flush()
    fields = fields or (0, 0, 0, 0, 0, 0, 0, 0, 0, bytes(7), 0, 0)
    head = struct.pack(CHUNK, b"PMCK", 0, kind, number, len(packed), len(content), *fields)
    crc = zlib.crc32(head[8:] + packed)
    return head[:4] + struct.pack("=I", crc) + head[8:] + packed


def events_chunk(
    events: Sequence[Event], words: Sequence[int], number: int, now: int, shift: int,
    changes: Mapping[str, Any]
) -> bytes:  # fmt: skip
    sites = list(dict.fromkeys((event.kind, event.stack) for event in events))
    site = [sites.index((event.kind, event.stack)) for event in events]
    amounts = [
        event.amount
        for place in range(len(sites))
        for event, at in zip(events, site, strict=True)
        if at == place and event.kind < 32
    ]
    last: dict[int, int] = {}
    ago = []
    for position, event in enumerate(events):
        ago.append(position - last[event.address] if event.address in last else 0)
        last[event.address] = position
    back, fresh, before = [], [], 0
    for position in sorted(range(len(events)), key=lambda place: events[place].kind >= 32):
        back.append(ago[position])
        if not ago[position]:
            step = events[position].address - before
            fresh.append(2 * step if step >= 0 else -2 * step - 1)
            before = events[position].address
    thread = min((event.thread for event in events), default=0)
    ticks = [(START + event.ticks) >> shift for event in events]
    steps = [after - earlier for earlier, after in zip([*ticks[:1], *ticks], ticks, strict=False)]
    columns = [
        [stack for _, stack in sites], site, amounts, back, fresh,
        [event.thread - thread for event in events], steps
    ]  # fmt: skip
    width = bytes(map(width_of, columns))
    heads, others = split(words)
    content = planes(heads, 8) + struct.pack(f"={len(others)}Q", *others) + bytes(kind for kind, _ in sites)
    content += b"".join(planes(column, wide) for column, wide in zip(columns, width, strict=True))
    now = now or max((event.ticks for event in events), default=0)
    first = START + events[0].ticks if events else 0
    fields = {
        "words": len(words), "events": len(events), "sites": len(sites), "amounts": len(amounts),
        "fresh": len(fresh), "thread": thread, "first": first, "ticks": START + now,
        "monotonic": 5 * START + now, "width": width, "shift": 0, "definitions": len(heads),
    } | dict(changes)  # fmt: skip
    return chunk(1, number, content, *fields.values())


def read(path: Path) -> tuple[MemoryRecording, list[Event]]:
    recording = MemoryRecording(path, native.load())
    events = AllocationEvents.joined(list(recording.pieces()))
    other = packed([STACK[0], 0x403000])
    ids = {(b"", False): 0, (packed(STACK), False): 1, (other, False): 2, (other, True): 3}
    stacks = [ids[stack.addresses, stack.cut] for stack in recording.stacks]
    numbers = [stacks[number] for number in events.stacks.tolist()]
    rows = zip(
        events.subtypes[events.site].tolist(), events.address.tolist(), events.size.tolist(),
        [numbers[site] for site in events.site.tolist()], events.thread.tolist(), events.time.tolist(),
        strict=True
    )  # fmt: skip
    return recording, [Event(*row) for row in rows]


def packed(addresses: Sequence[int]) -> bytes:
    return struct.pack(f"={len(addresses)}Q", *addresses)


EVENTS = st.lists(
    st.builds(
        Event, st.sampled_from([1, 2, 4, 9, 10, 11, 32, 33, 34]),
        st.one_of(st.integers(1, 6).map(lambda place: place << 4), st.integers(1, 2**47)),
        st.one_of(st.just(0), st.integers(0, 300), st.integers(0, 2**62)), st.integers(0, 3),
        st.integers(0, 1), st.integers(0, 10**6)
    ),
    min_size=1, max_size=30
).map(lambda events: sorted(events, key=lambda event: event.ticks))  # fmt: skip


def plain(events: Sequence[Event]) -> list[Event]:
    return [event._replace(amount=0) if event.kind >= 32 else event for event in events]


@pytest.fixture(scope="module", params=["numpy", "native"], autouse=True)
def implementation(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both ways to decode chunks: all that is said here holds for each of them."""
    library = native.load() if request.param == "native" else None
    if request.param == "native" and library is None:
        pytest.skip(f"{native.LIBRARY} was not built")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "load", lambda: library)
        yield request.param


def analysed(path: Path) -> tuple[MemoryRecording, Analysis | native.NativeAnalysis]:
    """The recording and its replay, once all its events are read."""
    library = native.load()
    recording = MemoryRecording(path, library)
    analysis = native.NativeAnalysis(library, 1000, 10) if library else Analysis(1000, 10)
    for events in recording.pieces():
        analysis.add(events)
    return recording, analysis


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recordings")


@given(chunks=st.lists(EVENTS, max_size=3), rest=st.one_of(st.none(), EVENTS))
def test_reads_what_was_written(folder: Path, chunks: list[list[Event]], rest: list[Event] | None) -> None:
    later = 0
    writer = Writer(folder / "any")
    writer.text("exe /bin/program\narg ./program\narg -x y\nnote something\n")
    written: list[Event] = []
    words: Sequence[int] = DEFINITIONS
    for events in chunks:
        moved = [event._replace(ticks=event.ticks + later) for event in events]
        writer.events(moved, words)
        written += moved
        later, words = moved[-1].ticks, ()
    moved = [event._replace(ticks=event.ticks + later) for event in rest or ()]
    writer.tail(moved, words, now=moved[-1].ticks if moved else later)
    recording, found = read(writer.path)
    assert found == plain(written + moved) and recording.exe == "/bin/program"
    assert recording.args == ["./program", "-x y"] and recording.notes == ["something"]
    assert (recording.pid, recording.parent, recording.unwinder, recording.wanted) == (
        77, 76, "libunwind", "tables"
    )  # fmt: skip
    assert recording.end.state is ExitState.EXITED
    assert recording.threads == {0: 4711, 1: 4712}
    assert [one.path for one in recording.modules] == ["/bin/program"]
    assert recording.duration == (moved or written or [Event(0, 0, 0, 0, 0, 0)])[-1].ticks


def test_stacks_share_frames_and_know_their_modules(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "file")
    again = [*module(0x400000, 0x410000, 64, "/lib/other.so"), *definition(1, 0, STACK)]
    event = Event(1, 16, 1, 1, 0, 0)
    writer.events([event], DEFINITIONS)
    writer.events([event._replace(stack=4)], again)
    recording = MemoryRecording(writer.path, native.load())
    assert len(list(recording.pieces())) == 2
    assert [(stack.modules, stack.cut) for stack in recording.stacks[1:]] == [
        (1, False), (1, False), (1, True), (2, False)
    ]  # fmt: skip
    assert recording.stacks[1].addresses == recording.stacks[4].addresses == packed(STACK)
    assert recording.stacks[3].addresses == packed([STACK[0], 0x403000])


def test_without_low_bits_of_the_ticks(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "file", shift=4)
    writer.events([Event(1, 16, 1, 0, 0, ticks) for ticks in (0, 160, 3200)], now=4000)
    assert [event.ticks // 16 for event in read(writer.path)[1]] == [0, 10, 200]


def test_what_a_killed_program_leaves(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "file")
    first, second, third = (
        [Event(1, address, 8, 0, 0, 10 * number)] for number, address in enumerate((16, 32, 48))
    )
    writer.events(first)
    whole = writer.path.stat().st_size
    writer.events(second)
    data = writer.path.read_bytes()
    writer.tail(third, state=0, now=5)
    recording, events = read(writer.path)
    assert events == plain(first + second + third)
    assert recording.end.state is ExitState.RUNNING
    for size in range(whole, len(data)):  # killed while it wrote the second chunk
        writer.path.write_bytes(data[:size])
        writer.tail(second, state=0, number=1)
        assert read(writer.path)[1] == plain(first + second)
    writer.path.write_bytes(data)  # killed before it noted that the chunk is written
    assert read(writer.path)[1] == plain(first + second)
    writer.path.with_name("file.tail").unlink()
    assert read(writer.path)[1] == plain(first + second)


@pytest.mark.parametrize("written", [1, 2])
def test_a_program_killed_while_a_full_half_is_packed(tmp_path: Path, written: int) -> None:
    writer = Writer(tmp_path / "file")
    chunks = [[Event(1, 16 * (number + 1), 8, number + 1, 0, 10 * number)] for number in range(3)]
    words = [definition(1, 0, [0x401000 + number]) for number in range(3)]
    for number in range(written):
        writer.events(chunks[number], words[number])
    for one, two in ((1, 2), (2, 1)):
        other = (two, chunks[two], words[two])
        writer.tail(chunks[one], words[one], state=0, number=one, now=5, other=other)
        recording = MemoryRecording(writer.path, native.load())
        pieces = list(recording.pieces())
        assert [address for piece in pieces for address in piece.address.tolist()] == [16, 32, 48]
        stacks = [stack for piece in pieces for stack in piece.stacks[piece.site].tolist()]
        addresses = [recording.stacks[stack].addresses for stack in stacks]
        assert addresses == [packed([0x401000 + number]) for number in range(3)]


def test_clocks_of_threads_do_not_go_back(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "file")
    writer.tail([Event(1, 16, 8, 0, 0, 30), Event(1, 32, 8, 0, 1, 20), Event(1, 48, 8, 0, 0, 40)], now=50)
    assert [event.ticks for event in read(writer.path)[1]] == [30, 30, 40]


def test_what_could_not_be_written_is_told(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "file")
    writer.events([Event(1, 16, 1, 0, 0, 0)])
    writer.tail(number=5, error=28, skipped=3, lost=9)
    recording, events = read(writer.path)
    assert len(events) == 1 and recording.end[1:] == (28, 3, 9)


@pytest.mark.parametrize("cut", [1, 2, 3, 4])
def test_realloc_that_fails_did_not_happen(tmp_path: Path, cut: int) -> None:
    writer = Writer(tmp_path / "file")
    events = [
        Event(1, 16, 100, 0, 0, 0),
        Event(35, 16, 0, 0, 0, 1),
        Event(1, 32, 7, 0, 1, 2),  # of another thread, in between
        Event(36, 16, 0, 0, 0, 3),
        Event(32, 16, 0, 0, 0, 4),
    ]
    writer.events(events[:cut])
    writer.events(events[cut:])
    writer.tail(now=4)
    totals = analysed(writer.path)[1].totals()
    assert (totals.allocations, totals.releases, totals.unknown_releases, totals.leaked) == (2, 1, 0, 7)
    assert totals.peak == 107


# -- damage ------------------------------------------------------------------------------------------


def changed(offset: int, form: str, value: Any) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        size = struct.calcsize(form)
        return data[:offset] + struct.pack(form, value) + data[offset + size :]

    return change


@pytest.mark.parametrize(("change", "reason"), [
    (lambda data: b"", "too short for its header"),
    (lambda data: data[:100], "too short for its header"),
    (changed(0, "=8s", b"PERUNMAM"), "does not begin with PERUNMEM"),
    (changed(8, "=I", 0x04030201), "another byte order"),
    (changed(12, "=I", 3), "version 3"),
    (changed(16, "=I", 64), "header are out of range"),
    (changed(36, "=I", 64), "header are out of range"),
    (changed(128, "=4s", b"PMCX"), "a chunk does not begin with PMCK"),
    (changed(132, "=I", 1), "checksum of chunk 0"),
    (changed(144, "=I", 2**31), "larger than"),
    (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "checksum of chunk 0"),
    (lambda data: data + b"?" * 96, "a chunk does not begin with PMCK"),
])  # fmt: skip
def test_damage_is_named(tmp_path: Path, change: Callable[[bytes], bytes], reason: str) -> None:
    writer = Writer(tmp_path / "file")
    writer.events([Event(1, 16, 1, 1, 0, 0)], DEFINITIONS)
    writer.path.write_bytes(change(writer.path.read_bytes()))
    with pytest.raises(DamagedRecording, match=reason) as damage:
        read(writer.path)
    assert str(writer.path) in damage.value.message and damage.value.hint
    assert isinstance(damage.value, ProfileError)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DamagedRecording, match="No such file"):
        MemoryRecording(tmp_path / "none")


@pytest.mark.parametrize(("changes", "reason"), [
    ({"events": 2}, "before its last|after its last|not defined|amounts for"),
    ({"events": 2**31}, "a count above"),
    ({"sites": 0}, "not defined|after its last"),
    ({"amounts": 0}, "0 amounts for 1 allocations"),
    ({"fresh": 0}, "0 new addresses|after its last"),
    ({"words": 1}, "do not fill its words"),
    ({"width": bytes([9] * 7)}, "wider than 8 bytes"),
    ({"width": bytes([8] * 7)}, "ends before its last column"),
    ({"shift": 64}, "wider than 8 bytes"),
    ({"first": 2**63}, "clock values are out of range"),
    ({"monotonic": 2**63}, "clock values are out of range"),
])  # fmt: skip
def test_damage_with_a_right_checksum_is_named(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    writer = Writer(tmp_path / "file")
    writer.events([Event(1, 16, 1, 0, 0, 0)], changes=changes)
    with pytest.raises(DamagedRecording, match=reason):
        read(writer.path)


@pytest.mark.parametrize(("events", "words", "reason"), [
    ([Event(1, 16, 1, 5, 0, 0)], (), "call stack 5 is not defined"),
    ([Event(17, 16, 1, 0, 0, 0)], (), "unknown kind 17"),
    ([Event(1, 16, 2**63, 0, 0, 0)], (), "larger than 2\\^63 bytes"),
    ([Event(1, 16, 1, 0, 0, 0)], definition(1, 1, [1], shared=1), "shares more frames"),
    ([Event(1, 16, 1, 0, 0, 0)], definition(9, 1, [1]), "unknown kind 9"),
    ([Event(1, 16, 1, 0, 0, 0)], definition(1, 1, [1, 2])[:-1], "longer than its|not fill its words"),
])  # fmt: skip
def test_nonsense_is_named(tmp_path: Path, events: list[Event], words: Sequence[int], reason: str) -> None:
    for in_tail in (False, True):
        writer = Writer(tmp_path / f"file{in_tail}")
        if in_tail:
            writer.tail(events, words)
        else:
            writer.events(events, words)
        with pytest.raises(DamagedRecording, match=reason):
            read(writer.path)


def test_chunks_in_the_wrong_order(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "file")
    writer.number = 1
    writer.events([Event(1, 16, 1, 0, 0, 0)])
    with pytest.raises(DamagedRecording, match="chunk 1 stands where chunk 0 is expected"):
        read(writer.path)
    writer = Writer(tmp_path / "other")
    writer.tail(number=2)
    with pytest.raises(DamagedRecording, match="chunks 0 to 1 are missing"):
        read(writer.path)


@pytest.fixture(scope="module")
def intact(folder: Path) -> tuple[bytes, bytes]:
    """A recording and its tail, with something of everything."""
    writer = Writer(folder / "intact")
    writer.text("exe /bin/program\nnote something\n")
    chooser = random.Random(1)
    events = [
        Event(
            chooser.choice([1, 3, 10, 32, 35]),
            16 * chooser.randrange(1, 9),
            50,
            chooser.randrange(4),
            0,
            tick,
        )
        for tick in range(60)
    ]
    writer.events(events[:40], DEFINITIONS)
    writer.events(events[40:50])
    writer.tail(events[50:], now=60)
    return writer.path.read_bytes(), writer.path.with_name("intact.tail").read_bytes()


DAMAGE = st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), min_size=1, max_size=4)


def damaged(data: bytes, changes: list[tuple[int, int]], size: int) -> bytes:
    changing = bytearray(data)
    for place, value in changes:
        changing[place % len(changing)] = value
    return bytes(changing[: len(changing) - size])


def with_right_checksums(data: bytes) -> bytes:
    """The damaged data with every chunk's checksum made right, so that what lies behind it is looked at."""
    position, repaired = 128, bytearray(data)
    while position + 96 <= len(repaired):
        (size,) = struct.unpack_from("=I", repaired, position + 16)
        end = position + 96 + size
        if end > len(repaired):
            break
        struct.pack_into("=I", repaired, position + 4, zlib.crc32(repaired[position + 8 : end]))
        position = end
    return bytes(repaired)


def read_or_refused(folder: Path, data: bytes, tail: bytes) -> None:
    path = folder / "damaged"
    path.write_bytes(data)
    path.with_name("damaged.tail").write_bytes(tail)
    try:
        recording, analysis = analysed(path)
        sites = StackTraces(Symboliser(""), Path("/project")).of(recording, whole=True)
        process = ProcessReplay("program", analysis.rows(), analysis.totals(), sites, analysis.interval)
        resources([process], Shape(), "program")
    except DamagedRecording as refusal:
        assert refusal.message


@given(changes=DAMAGE, size=st.integers(0, 200), right=st.booleans(), in_tail=st.booleans())
def test_damage_never_does_more_than_an_error(folder, intact, changes, size: int, right, in_tail) -> None:
    data, tail = intact
    if in_tail:
        read_or_refused(folder, data, damaged(tail, changes, size))
    else:
        broken = damaged(data, changes, size)
        read_or_refused(folder, with_right_checksums(broken) if right else broken, tail)


@given(data=st.data())
def test_damaged_content_never_does_more_than_an_error(folder: Path, intact, data: st.DataObject) -> None:
    """Not the packed bytes are damaged, which hardly ever unpack, but what they unpack to."""
    whole = intact[0]
    position, rebuilt = 128, bytearray(whole[:128])
    while position + 96 <= len(whole):
        magic, _, kind, number, size, _, *fields = struct.unpack_from(CHUNK, whole, position)
        assert magic == b"PMCK"
        content = bytearray(zlib.decompress(whole[position + 96 : position + 96 + size], -15))
        for place, value in data.draw(
            st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), max_size=3)
        ):
            content[place % len(content)] = value
        if data.draw(st.booleans()):
            which = data.draw(st.integers(0, 8))
            fields[which] = data.draw(st.integers(0, 2**32 - 1 if which < 6 else 2**64 - 1))
        rebuilt += chunk(kind, number, bytes(content), *fields)
        position += 96 + size
    read_or_refused(folder, bytes(rebuilt), intact[1])
