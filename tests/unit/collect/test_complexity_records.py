"""The reader of recorded calls: what a writer of the format has written, and the same damaged."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.collect._calls.events import UNKNOWN, Calls
from perun.collect.complexity.records import DamagedRecording, Gaps, Place, Process, processes

NOBODY = 0x3FFFF
TICKS = (1_000, 3_000, 2_001_000)
CLOCK = (500_000, 501_000, 1_500_000)
"""A tick is half a nanosecond."""
FRAMES_AT, CALLS_AT, WINDOW = 4096, 8192, 4096


def call(
    start: int, duration: int, exclusive: int, function: int, caller: int, size: int, order: int
) -> bytes:
    return struct.pack(
        "=QQQQ",
        start | (order & 0xFFFF) << 48,
        duration | function << 46,
        exclusive | caller << 46,
        size & (1 << 48) - 1 | order >> 16 << 48,
    )


def frame(start: int, inner: int, size: int, function: int, caller: int, order: int) -> bytes:
    return struct.pack("=QQQQqIIIIQ", start + TICKS[0], inner, 0, 0, size, function, caller, 1, order, 0)


def write(
    folder: Path, moved: Sequence[bytes], kept: Sequence[bytes], frames: Sequence[bytes], ended: int = 1
) -> None:
    """The files of a process with one thread and two functions."""
    head = struct.pack("=8sIIIIII3Q3QII", b"PERUNCXP", 0x01020304, 1, 77, 1, 1, ended, *TICKS, *CLOCK, 2, 0)
    functions = struct.pack("=QIIQII", 0x1000, 0, 0, 0x2000, 1, 0)
    (folder / "77.0.process").write_bytes(head.ljust(4096, b"\0") + functions)
    (folder / "77.0.modules").write_text("0 /bin/one\n1 /lib/with space\n")
    base = 0x7F0000000000
    addresses = (base, base + 64 * len(frames), base + 4096)
    following = (base, base + 32 * len(kept), base + WINDOW)
    counts = (3, 2, 1, 0)
    fields = (FRAMES_AT, CALLS_AT, CALLS_AT + WINDOW, *addresses, *following, 32 * len(moved), *counts)
    head = struct.pack("=8sIIII14QIIQQ", b"PERUNCXC", 0x01020304, 1, 77, 78, *fields, 0, 0, 0, 0)
    data = head.ljust(4096, b"\0") + b"".join([b"\0" * 64, *frames]).ljust(4096, b"\0")
    (folder / "77.0-0.calls").write_bytes(data + b"".join(kept).ljust(WINDOW, b"\0") + b"".join(moved))


def sample(folder: Path) -> None:
    write(
        folder,
        [call(100, 50, 40, 1, 0, 7, 1)],
        [call(200, 60, 60, 0, NOBODY, -1, 0x1FFFF)],
        [frame(0, 50, -1, 0, NOBODY, 0), frame(1000, 200, 9, 1, 0, 2)],
    )


def test_calls(tmp_path: Path) -> None:
    sample(tmp_path)
    (process,) = processes(tmp_path)
    assert process.places == [Place("/bin/one", 0x1000), Place("/lib/with space", 0x2000)]
    assert (process.pid, process.has_ended, process.started) == (77, True, CLOCK[0])
    calls = Calls.joined(list(process.calls(CLOCK[0] - 10)))
    rows = list(zip(*(column.tolist() for column in calls), strict=True))
    assert rows == [
        (1, 78, 60, 25, 20, 7, 0, 1),
        (0, 78, 110, 30, 30, -1, UNKNOWN, 0x1FFFF),
        # What had not ended ends with the process: the outer call contains the inner one.
        (0, 78, 10, 1_000_000, 475, -1, UNKNOWN, 0),
        (1, 78, 510, 999_500, 999_400, 9, 0, 2),
    ]
    assert process.gaps == Gaps(missed=3, open=2, skipped=2, too_deep=1)
    assert process.gaps.plus(Gaps(1, 1, 1, 1, 1, 28)) == Gaps(4, 3, 3, 2, 1, 28)


@pytest.mark.parametrize(
    ("name", "at", "change", "reason"),
    [
        ("77.0.process", 0, b"X", "does not begin as one"),
        ("77.0.process", 8, b"\1", "byte order"),
        ("77.0.process", 12, b"\2", "version 2"),
        ("77.0.process", 80, b"\xff\xff\xff", "more functions"),
        ("77.0.process", 80, b"\3", "definitions"),
        ("77.0.process", 79, b"\xff", "clock"),
        ("77.0-0.calls", 0, b"X", "does not begin as one"),
        ("77.0-0.calls", 72, b"\1", "counts"),
        ("77.0-0.calls", 96, b"\xff\xff", "counts"),
        ("77.0-0.calls", CALLS_AT + 14, b"\xff\xff", "not defined"),
    ],
)
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
    st.integers(0, 8300),
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
        assert all(int(one.duration.min()) >= 0 for one in calls if one.total)


def test_process_without_calls(tmp_path: Path) -> None:
    sample(tmp_path)
    (tmp_path / "77.0-0.calls").unlink()
    assert not list(Process(tmp_path / "77.0.process").calls(0))
