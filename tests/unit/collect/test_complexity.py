"""The reader of recorded calls: what a writer of the format has written, and the same damaged."""

import struct
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.collect._calls.events import UNKNOWN, Calls
from perun.collect._calls.sizes import Size, Term
from perun.collect._common.recordings import DamagedRecording
from perun.collect.complexity.records import (
    EXIT,
    SIZE,
    UNSAMPLED,
    UNSAMPLED_COUNT,
    UNSAMPLED_TICKS,
    FunctionAddress,
    Gaps,
    ProcessRecording,
    processes,
)
from perun.collect.complexity.selection import (
    FRAME,
    FileSelection,
    Operand,
    Operation,
    SizeProgram,
    SizeStep,
    TableFunction,
    encoded,
    steps_of,
)

TICKS = (1_000, 3_000, 2_001_000)
CLOCK = (500_000, 501_000, 1_500_000)
"""A tick is half a nanosecond."""
EVENTS_AT, WINDOW = 4096, 8192
ONE, OTHER = 0, 1
"""The functions that are defined."""
Row = tuple[int, ...]


def event(number: int, value: int = 0) -> int:
    return number | value % (1 << 47) << 17


def write(
    folder: Path, moved: Sequence[int], kept: Sequence[int], *, ended: int = 1, lost: int = 0, error: int = 0
) -> None:
    """The files of a process with one thread and two functions."""
    head = struct.pack("=8sIIIIII3Q3QII", b"PERUNCXP", 0x01020304, 2, 77, 1, 1, ended, *TICKS, *CLOCK, 2, 0)
    functions = struct.pack("=QIIQII", 0x1000, 0, 0, 0x2000, 1, 0)
    (folder / "77.0.process").write_bytes(head.ljust(4096, b"\0") + functions)
    (folder / "77.0.modules").write_text("0 /bin/one\n1 /lib/with space\n")
    base = 0x7F0000000000
    following = (base, base + 8 * len(kept), base + WINDOW)
    head = struct.pack("=8sIIIIII", b"PERUNCXC", 0x01020304, 2, 77, 78, error, 0)
    head += struct.pack("=6Q", EVENTS_AT, EVENTS_AT + WINDOW, 8 * len(moved), *following)
    data = head.ljust(128, b"\0") + struct.pack("=4Q", 3, 2, 1, lost)
    window = struct.pack(f"={len(kept)}Q", *kept).ljust(WINDOW, b"\0")
    data = data.ljust(EVENTS_AT, b"\0") + window + struct.pack(f"={len(moved)}Q", *moved)
    (folder / "77.0-0.calls").write_bytes(data)


def read(folder: Path) -> tuple[list[Row], Gaps]:
    """Of each call the function, thread, start, duration, exclusive time, size, caller and order."""
    (process,) = processes(folder)
    calls = Calls.joined(list(process.calls(CLOCK[0])))
    return list(zip(*(column.tolist() for column in calls), strict=True)), process.gaps


def sample(folder: Path) -> None:
    """A call within another one that has not ended; the size is among the events that were moved."""
    moved = [event(ONE, 20), event(OTHER, 100), event(SIZE, 7)]
    write(folder, moved, [event(EXIT, 150), event(ONE, 200), event(EXIT, 260), event(OTHER, 1000)])


def test_calls(tmp_path: Path) -> None:
    sample(tmp_path)
    (process,) = processes(tmp_path)
    assert process.places == [FunctionAddress("/bin/one", 0x1000), FunctionAddress("/lib/with space", 0x2000)]
    assert (process.pid, process.has_ended, process.started) == (77, True, CLOCK[0])
    rows, gaps = read(tmp_path)
    assert rows == [
        (1, 78, 50, 25, 25, 7, 0, 1),
        (0, 78, 100, 30, 30, -1, 0, 2),
        # What had not ended ends with the process: the outer call contains the inner one.
        (0, 78, 10, 999_990, 435, -1, UNKNOWN, 0),
        (1, 78, 500, 999_500, 999_500, -1, 0, 3),
    ]
    assert gaps == Gaps(missed=3, open=2, skipped=2, too_deep=1)
    assert gaps.plus(Gaps(1, 1, 1, 1, 1, 28)) == Gaps(4, 3, 3, 2, 1, 28)


@pytest.mark.parametrize("cut", range(8))
def test_calls_that_were_left_out(tmp_path: Path, cut: int) -> None:
    words = [event(ONE, 0), event(UNSAMPLED_COUNT, 5), event(UNSAMPLED_TICKS, 30)]
    words += [event(OTHER, 40), event(UNSAMPLED)]
    words += [event(ONE, 50), event(SIZE, 9), event(EXIT, 60), event(EXIT, 80), event(EXIT, 100)]
    write(tmp_path, words[:cut], words[cut:])
    rows, _ = read(tmp_path)
    # Their time is in nobody's exclusive time, and they count among the calls.
    assert sorted(rows) == [(0, 78, 0, 50, 15, -1, UNKNOWN, 0), (0, 78, 25, 5, 5, 9, 1, 7)]


def test_ticks_that_went_round(tmp_path: Path) -> None:
    far = (1 << 47) - 100
    write(
        tmp_path, [event(ONE, far // 2), event(OTHER, far), event(EXIT, far + 200)], [event(EXIT, far + 300)]
    )
    rows, _ = read(tmp_path)
    assert sorted((row[2], row[3]) for row in rows) == [(far // 4, far // 4 + 150), (far // 2, 100)]
    # Something that interrupted the runtime may be told before what happened first.
    write(tmp_path, [event(ONE, 10)], [event(OTHER, 8), event(EXIT, 12), event(EXIT, 20)])
    assert sorted((row[2:5] for row in read(tmp_path)[0]), reverse=True) == [(5, 5, 3), (4, 2, 2)]


@pytest.mark.parametrize("piece", [1, 2, 3, 1000])
def test_pieces_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    words, tick = [event(ONE, 0)], 0
    for number in range(200):
        words += [event(OTHER, tick := tick + 2), event(SIZE, number), event(EXIT, tick := tick + 4)]
    write(tmp_path, [*words, event(EXIT, tick + 2)], [])
    monkeypatch.setattr("perun.collect.complexity.records.PIECE", piece)
    rows = sorted(read(tmp_path)[0], key=lambda row: row[7])
    assert rows[0] == (0, 78, 0, 601, 201, -1, UNKNOWN, 0)
    assert rows[1:] == [(1, 78, 1 + 3 * call, 2, 2, call, 0, call + 1) for call in range(200)]


def test_calls_whose_ends_could_not_be_written_are_lost(tmp_path: Path) -> None:
    write(tmp_path, [event(ONE, 0), event(OTHER, 1)], [event(EXIT, 5), event(OTHER, 6)], lost=4, error=28)
    rows, gaps = read(tmp_path)
    assert [row[0] for row in rows] == [OTHER]
    assert gaps == Gaps(missed=3, open=0, skipped=2, too_deep=1, lost=6, error=28)


def test_what_was_moved_twice_counts_once(tmp_path: Path) -> None:
    """A process may be killed after it moved its events and before it noted that."""
    words = [event(ONE if number % 2 == 0 else EXIT, number) for number in range(WINDOW // 8)]
    write(tmp_path, words, words)
    assert len(read(tmp_path)[0]) == WINDOW // 16
    words[-1] = event(EXIT, WINDOW)
    write(tmp_path, words, [*words[:-1], event(EXIT, WINDOW + 1)])
    assert len(read(tmp_path)[0]) == WINDOW // 8


@pytest.mark.parametrize(("words", "reason"), [
    ([event(EXIT, 5)], "more calls end than begin"),
    ([event(ONE, 1), event(EXIT, 2), event(EXIT, 3)], "more calls end than begin"),
    ([event(2, 5), event(EXIT, 6)], "not defined"),
    ([event(UNSAMPLED - 1), event(EXIT, 6)], "not defined"),
    ([event(SIZE, 5)], "size does not follow the entry"),
    ([event(ONE, 5), event(EXIT, 6), event(SIZE, 5)], "size does not follow the entry"),
    ([event(ONE, 5), event(EXIT, 6), event(UNSAMPLED)], "does not follow the entry of that call"),
    ([event(ONE, 5), event(UNSAMPLED_TICKS, 6), event(EXIT, 7)], "does not follow the entry of that"),
    ([event(UNSAMPLED_COUNT, 5), event(ONE, 6), event(EXIT, 7)], "left out are missing"),
])  # fmt: skip
def test_invalid_events(tmp_path: Path, words: list[int], reason: str) -> None:
    write(tmp_path, [], words)
    with pytest.raises(DamagedRecording, match=reason):
        read(tmp_path)


@pytest.mark.parametrize(("name", "at", "change", "reason"), [
    ("77.0.process", 0, b"X", "does not begin with PERUNCXP"),
    ("77.0.process", 8, b"\1", "byte order"),
    ("77.0.process", 12, b"\1", "version 1"),
    ("77.0.process", 80, b"\xff\xff\xff", "functions, more than"),
    ("77.0.process", 80, b"\3", "definitions"),
    ("77.0.process", 79, b"\xff", "clock"),
    ("77.0-0.calls", 0, b"X", "does not begin with PERUNCXC"),
    ("77.0-0.calls", 12, b"\1", "version 1"),
    ("77.0-0.calls", 48, b"\1", "positions of its events"),
    ("77.0-0.calls", 64, b"\xff\xff", "positions of its events"),
    ("77.0-0.calls", EVENTS_AT + 9, b"\xff", "not defined"),
])  # fmt: skip
def test_damage(tmp_path: Path, name: str, at: int, change: bytes, reason: str) -> None:
    sample(tmp_path)
    path = tmp_path / name
    data = bytearray(path.read_bytes())
    data[at : at + len(change)] = change
    path.write_bytes(data)
    with pytest.raises(DamagedRecording, match=reason):
        for process in processes(tmp_path):
            list(process.calls(0))


def test_too_short(tmp_path: Path) -> None:
    (tmp_path / "1.0.process").write_bytes(b"PERUNCXP")
    with pytest.raises(DamagedRecording, match="too short"):
        processes(tmp_path)


@given(
    st.sampled_from(["77.0.process", "77.0-0.calls", "77.0.modules"]),
    st.one_of(st.integers(0, 200), st.integers(4096, 4160), st.integers(0, 12_400)),
    st.binary(max_size=9),
)
def test_any_damage(name: str, at: int, change: bytes) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        sample(folder)
        path = folder / name
        data = bytearray(path.read_bytes())
        data[at : at + len(change)] = change
        path.write_bytes(data)
        try:
            calls = [calls for one in processes(folder) for calls in one.calls(CLOCK[0])]
        except DamagedRecording:
            return
        assert all(int(one.duration.min()) >= 0 for one in calls if len(one))


def test_process_without_calls(tmp_path: Path) -> None:
    sample(tmp_path)
    (tmp_path / "77.0-0.calls").unlink()
    assert not list(ProcessRecording(tmp_path / "77.0.process").calls(0))


# -- What the runtime is told: the layout of the table, and steps that read sizes --------------------


def test_layout() -> None:
    program = SizeProgram(0x10, 0x11, 0x12, Operand.MEMORY, FRAME, -24, (SizeStep(Operation.LOAD, 4),), True)
    functions = [TableFunction(0x30, 5), TableFunction(0x10, 3, False, 10)]
    table = encoded([FileSelection("/a"), FileSelection("/bc", functions, [program])], only_listed=True)
    assert struct.unpack_from("=8s8I", table) == (b"PERUNCXT", 0x01020304, 2, 2, 2, 1, 1, 1, 5)
    assert struct.unpack_from("=12I", table, 40) == (0, 2, 0, 0, 0, 0, 2, 3, 2, 0, 1, 0)
    assert struct.unpack_from("=QQIIQQII", table, 88) == (0x10, 3, 0, 10, 0x30, 5, 1, 1)
    assert struct.unpack_from("=QQQqIIII", table, 136) == (0x10, 0x11, 0x12, -24, 257, 255, 1, 0)
    assert struct.unpack_from("=Qq", table, 184) == (1, 4) and table[200:] == b"/a/bc"


def run(size: Size, value: int, memory: Mapping[int, int]) -> int:
    """What the runtime makes of the steps."""
    stack = [value]
    for operation, number in steps_of(size):
        last = stack.pop()
        if operation == Operation.COPY:
            stack += [last, last]
        elif operation in (Operation.SWAP, Operation.SUM):
            before = stack.pop()
            stack += [last, before] if operation == Operation.SWAP else [before + last]
        else:
            stack.append(after(operation, number, last, memory))
    (result,) = stack
    return result


def after(operation: Operation, number: int, last: int, memory: Mapping[int, int]) -> int:
    if operation == Operation.ADD:
        return last + number
    if operation == Operation.DIVIDE:
        return last // number
    if operation == Operation.MULTIPLY:
        return last * number
    if operation == Operation.MASK:
        return last & number
    if operation == Operation.EXTEND:
        return (last + (1 << 8 * number - 1)) % (1 << 8 * number) - (1 << 8 * number - 1)
    assert operation in (Operation.LOAD, Operation.LOAD_INT)
    return memory[last]


@pytest.mark.parametrize(("size", "expected"), [
    (Size(0, 0, (Term(1, (8,), 4, False),)), 30),
    (Size(0, 0, (Term(1, (0, 16), 8, False),)), 70),
    # The end minus the start, by the size of an element.
    (Size(0, 0, (Term(1, (24,), 8, False), Term(-1, (32,), 8, False)), 0, 4), 25),
    (Size(0, 0, (Term(1, (8,), 4, False), Term(2, (24,), 8, False), Term(-1, (32,), 8, False)), 5), 235),
    (Size(0, 0, (Term(1, (), 2, False),)), 1000),
    (Size(0, 0, (Term(1, (), 1, True),)), -24),
])  # fmt: skip
def test_steps(size: Size, expected: int) -> None:
    memory = {1008: 30, 1000: 2000, 2016: 70, 1024: 200, 1032: 100}
    if len(size.terms) == 3:
        memory[1032] = 200
    assert run(size, 1000, memory) == expected


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=6), st.integers(-9, 9))
def test_sums(factors: list[int], constant: int) -> None:
    terms = tuple(Term(factor, (8 * number,), 8, False) for number, factor in enumerate(factors))
    memory = {1000 + 8 * number: 10**number for number in range(len(factors))}
    expected = sum(factor * 10**number for number, factor in enumerate(factors)) + constant
    assert run(Size(0, 0, terms, constant), 1000, memory) == expected
