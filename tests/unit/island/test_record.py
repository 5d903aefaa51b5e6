"""Reading recordings: what a file says, and files that no recorder writes."""

import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import columns_of
from hypothesis import given
from hypothesis import strategies as st

from perun.island import layout
from perun.island.record import DTYPE, DamagedCallRecording, Recording, read

OPEN, WRITE, SLEEP = (layout.NUMBERS[name] for name in ("file.open", "file.write", "time.sleep"))
ABOUT = (layout.MAGIC, layout.VERSION, 7, 1, 0, 1000, 500, 9000, 0, 10, 20, 30, 40)


def chunk(thread: int, number: int, slots: bytes, size: int = 4096, **header: int) -> bytes:
    """A chunk of a thread."""
    values = {"native": 70 + thread, "sampled": 5000, "cpu": 300, "run_queue": 20, "ended": 0, **header}
    head = layout.CHUNK.pack(layout.CHUNK_MAGIC, size, thread, number, *values.values(), 0)
    return (head + slots).ljust(size, b"\0")


def slot(api: int, start: int, end: int, amount: int = 0, number: int = 0, flags: int = 0) -> bytes:
    """A call or a note."""
    return layout.SLOT.pack(start, end, amount, api, flags, number)


def named(note: int, start: int, number: int, **facts: str) -> bytes:
    """A note with text."""
    text = layout.text(facts)
    return slot(note, start, start, len(text), number) + text.ljust(-(-len(text) // 32) * 32, b"\0")


def written(path: Path, *chunks: bytes, about: tuple[Any, ...] = ABOUT) -> Path:
    """The file of a recording."""
    path.write_bytes(layout.HEADER.pack(*about).ljust(layout.HEADER_SIZE, b"\0") + b"".join(chunks))
    return path


def test_all_that_a_file_says(tmp_path: Path) -> None:
    first = (
        named(layout.NOTE_THREAD, 1001, 0xFFFFFFFF, name="MainThread")
        + named(layout.NOTE_OBJECT, 1100, 4, kind="file", name="/a\udcff", mode="w")
        + named(layout.NOTE_OBJECT, 1150, 9, kind="file", name="/a\udcff")
        + slot(OPEN, 1100, 1200, 1, 4)
        + named(layout.NOTE_ISLAND, 1200, 1, name="inner")
        + slot(layout.NOTE_ENTERED, 1250, 1250, 0, 1)
        + slot(WRITE, 1300, 1900, 8, 4)
        + slot(WRITE, 1400, 1500, 3, 9, layout.PHYSICAL | layout.RAISED)
        + slot(layout.NOTE_PHYSICAL, 1300, 1300, 4096, 4)
        + slot(layout.NOTE_EXPECTED, 1300, 1800, 1, 4)
        + slot(layout.NOTE_CLOSED, 2000, 2000, 0, 4)
    )
    second = slot(SLEEP, 3000, 0, 77)
    other = named(layout.NOTE_THREAD, 1600, 0, name="other") + slot(SLEEP, 1700, 1750, 50)
    # The second chunk of the first thread comes before its first one, and a hole is between.
    path = written(
        *(tmp_path / "rec.7", chunk(0, 1, second, sampled=6000, cpu=400), bytes(4096), chunk(0, 0, first)),
        chunk(1, 0, other, ended=4000, run_queue=(1 << 64) - 1),
    )
    found = read(path)
    assert (found.pid, found.parent, found.started, found.ended, found.clock) == (7, 1, 1000, 9000, 500)
    assert (found.io, found.io_end, found.complete, found.notes) == ((10, 20), (30, 40), True, [])
    assert found.islands == ["program", "inner"]
    assert [tuple(one) for one in found.threads] == [
        (0, "MainThread", 70, -1, 1001, -1, 6000, 400, 20, 0),
        (1, "other", 71, 0, 1600, 4000, 5000, 300, -1, 0),
    ]
    assert [tuple(one) for one in found.objects] == [
        (0, "file", "/a\udcff", 1, 1100, 2000, {"mode": "w"}),
        (1, "file", "/a\udcff", 2, 1150, -1, {}),
    ]
    calls = [
        (0, 0, OPEN, 1100, 1200, 0, 1, 0, -1, -1, 0),
        (0, 1, WRITE, 1300, 1900, 0, 8, 4096, 1800, -1, 0),
        (0, 1, WRITE, 1400, 1500, 1, 3, 3, -1, -1, layout.RAISED),
        (1, 0, SLEEP, 1700, 1750, -1, 50, 0, -1, -1, 0),
        (0, 1, SLEEP, 3000, -1, -1, 77, 0, -1, -1, 0),
    ]
    assert [tuple(call) for call in found.calls()] == calls
    assert columns_of(found).dtype == np.dtype(DTYPE)
    assert sorted(columns_of(found).tolist(), key=lambda call: call[3]) == calls


def test_names_of_what_the_parent_opened(tmp_path: Path) -> None:
    written(tmp_path / "rec.7", chunk(0, 0, named(layout.NOTE_OBJECT, 1100, 4, kind="file", name="/a")))
    child = written(
        tmp_path / "rec.8",
        chunk(0, 0, slot(WRITE, 2000, 2100, 8, 4)),
        about=(*ABOUT[:2], 8, 7, *ABOUT[4:]),
    )
    assert [tuple(one)[:4] for one in read(child).objects] == [(0, "file", "/a", 1)]


def test_what_was_lost_is_said(tmp_path: Path) -> None:
    path = written(tmp_path / "rec.7", about=(*ABOUT[:4], 2, *ABOUT[5:8], 3, *ABOUT[9:]))
    assert read(path).notes == ["3 calls could not be recorded: the disk had no room for the recording"]
    assert not read(path).complete


@pytest.mark.parametrize(("content", "reason"), [
    (b"", "it does not begin as one"),
    (b"PERUNISL", "it does not begin as one"),
    (b"PERUNMEM".ljust(4096, b"\0"), "it does not begin as one"),
    (struct.pack("=8sI", b"PERUNISL", 2).ljust(4096, b"\0"), "its version is 2, this Perun reads version 1"),
    (layout.HEADER.pack(*ABOUT).ljust(4096, b"\0") + b"x" * 4096, "what begins at byte 4096 is no chunk"),
    (layout.HEADER.pack(*ABOUT).ljust(4096, b"\0") + chunk(1 << 30, 0, b""), "is of thread 1073741824"),
])  # fmt: skip
def test_what_is_no_recording(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "rec.7"
    path.write_bytes(content)
    with pytest.raises(DamagedCallRecording, match=reason) as refused:
        read(path)
    assert str(path) in refused.value.message
    assert refused.value.hint == "record the program again"


@pytest.mark.parametrize("lacking", [1, 31, 4096 - layout.CHUNK.size, 4096 - layout.CHUNK.size + 1, 4095])
def test_what_was_cut_off_is_said(lacking: int, tmp_path: Path) -> None:
    slots = b"".join(slot(WRITE, 1300 + place * 10, 1305 + place * 10, 8, 4) for place in range(20))
    path = written(tmp_path / "rec.7", chunk(0, 0, slots), chunk(1, 0, slots))
    whole = path.read_bytes()
    assert read(path).notes == []
    path.write_bytes(whole[:-lacking])
    found = read(path)
    assert found.notes == [
        f"the recording was cut off at byte {len(whole) - lacking}; the calls behind it are lost"
    ]
    assert not found.complete and len(list(found.of_thread(0))) == 20


def test_a_header_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "rec.7")
    path.write_bytes(path.read_bytes()[:4000])
    with pytest.raises(DamagedCallRecording, match="it ends at byte 4000, within its header"):
        read(path)


def test_a_text_of_negative_length_hides_no_calls(tmp_path: Path) -> None:
    note = layout.SLOT.pack(1100, 1100, -1, layout.NOTE_OBJECT, 0, 4)
    found = read(written(tmp_path / "rec", chunk(0, 0, note + slot(WRITE, 1300, 1305, 8, 4))))
    assert [call.start for call in found.of_thread(0)] == [1300] == columns_of(found)["start"].tolist()


@given(data=st.data())
def test_damage_is_refused_or_read(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """A file that was changed anywhere, or ends anywhere, makes no other error, and takes no more memory."""
    slots = b"".join(
        [
            named(layout.NOTE_THREAD, 1001, 0, name="MainThread"),
            named(layout.NOTE_OBJECT, 1100, 4, kind="file", name="/a"),
            *(slot(WRITE, 1300 + place * 10, 1305 + place * 10, 8, 4) for place in range(20)),
            slot(layout.NOTE_PHYSICAL, 1300, 1300, 4096, 4),
        ]
    )
    content = bytearray(
        layout.HEADER.pack(*ABOUT).ljust(4096, b"\0") + chunk(0, 0, slots) + chunk(1, 0, slots)
    )
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.one_of(st.integers(0, 100), st.integers(4096, 4096 + 900)))
        content[place] = data.draw(st.sampled_from([0, 1, 0x7F, 0xFF, 0xFE, 0x11]))
    path = tmp_path_factory.getbasetemp() / f"rec.{os.getpid()}-damaged"
    path.write_bytes(content[: data.draw(st.integers(4000, len(content)))])
    try:
        found: Recording = read(path)
    except DamagedCallRecording:
        return
    streamed = [tuple(call) for thread in found.threads for call in found.of_thread(thread.number)]
    assert len(streamed) == len(columns_of(found)) <= 60
