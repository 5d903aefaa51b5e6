"""The log of stops: found by interval, whatever their number, in constant memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.errors import ProfileError
from perun.island import stop_log
from perun.island.stop_log import HEADER, Stop, StopLog, StopWriter

STOPS = [Stop(10, 20), Stop(25, 26), Stop(30, 50), Stop(50, 55), Stop(100, 200)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return written(tmp_path / "stops", STOPS)


def written(path: Path, stops: list[Stop]) -> Path:
    with StopWriter(path) as writer:
        for stop in stops:
            writer.append(*stop)
    return path


def test_all_stops_come_back(log: Path) -> None:
    with StopLog(log) as stops:
        assert len(stops) == 5 and list(stops.between(0, 1000)) == STOPS
        starts, ends = stops.columns()
        assert list(map(Stop, starts.tolist(), ends.tolist())) == STOPS


@pytest.mark.parametrize(("interval", "found"), [
    ((0, 10), []),
    ((0, 11), [Stop(10, 11)]),
    ((20, 25), []),
    ((19, 31), [Stop(19, 20), Stop(25, 26), Stop(30, 31)]),
    ((50, 52), [Stop(50, 52)]),
    ((120, 130), [Stop(120, 130)]),
    ((200, 300), []),
    ((15, 15), []),
])  # fmt: skip
def test_the_stops_of_an_interval_are_cut_off_at_its_ends(log: Path, interval, found: list[Stop]) -> None:
    with StopLog(log) as stops:
        assert list(stops.between(*interval)) == found
        assert stops.stopped(*interval) == sum(end - start for start, end in found)


@given(st.lists(st.integers(1, 50), max_size=30), st.integers(0, 900), st.integers(0, 900))
def test_an_interval_finds_what_looking_at_every_nanosecond_finds(lengths, one: int, two: int) -> None:
    start, end = sorted((one, two))
    at, stops = 0, []
    for number, length in enumerate(lengths):
        if number % 2:
            stops.append(Stop(at, at + length))
        at += length
    path = Path(os.environ["PYTEST_TMP"]) / "stops"
    with StopLog(written(path, stops)) as log:
        assert log.stopped(start, end) == sum(
            any(a <= now < b for a, b in stops) for now in range(start, end)
        )
        assert sum(b - a for a, b in log.between(start, end)) == log.stopped(start, end)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_TMP", str(tmp_path))


def test_a_log_without_stops(tmp_path: Path) -> None:
    with StopLog(written(tmp_path / "stops", [])) as stops:
        assert (len(stops), stops.stopped(0, 100), list(stops.between(0, 100))) == (0, 0, [])
        assert [column.tolist() for column in stops.columns()] == [[], []]


def test_an_entry_that_was_cut_off_is_not_read(log: Path) -> None:
    log.write_bytes(log.read_bytes()[:-5])
    with StopLog(log) as stops:
        assert list(stops.between(0, 1000)) == STOPS[:-1]


def test_a_stop_that_overlaps_the_one_before_is_cut_off(tmp_path: Path) -> None:
    path = written(tmp_path / "stops", [Stop(10, 20), Stop(15, 18), Stop(15, 25), Stop(30, 30)])
    with StopLog(path) as stops:
        assert list(stops.between(0, 100)) == [Stop(10, 20), Stop(20, 25)]


def test_a_stop_is_on_disk_soon_though_the_log_is_still_open(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(stop_log, "_DELAY", 0)
    writer = StopWriter(tmp_path / "stops")
    writer.append(10, 20)
    with StopLog(tmp_path / "stops") as stops:
        assert list(stops.between(0, 100)) == [Stop(10, 20)]
    writer.close()


@pytest.mark.parametrize("content", [b"", b"Perun", b"PerunStops\x00\x02" + bytes(20), b"x" * 64])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "stops"
    path.write_bytes(content)
    with pytest.raises(ProfileError, match="not a log of stops that this version reads"):
        StopLog(path)


def test_a_link_or_a_missing_file_is_refused(tmp_path: Path, log: Path) -> None:
    (tmp_path / "link").symlink_to(log)
    for name, said in (("link", "it is a symbolic link"), ("none", "No such file")):
        with pytest.raises(ProfileError, match=said):
            StopLog(tmp_path / name)
    with pytest.raises(OSError):
        StopWriter(tmp_path / "link")


def test_an_entry_has_16_bytes(log: Path) -> None:
    assert len(HEADER) == 16 and log.stat().st_size == 16 + 16 * len(STOPS)


MANY = """
import resource, sys, time
from pathlib import Path
from perun.island.stop_log import StopLog, StopWriter

def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])

path, count = Path(sys.argv[1]), int(sys.argv[2])
middle = 5 * count
with StopWriter(path) as writer:
    for number in range(5000):
        writer.append(number * 10, number * 10 + 5)
    before = peak()
    for number in range(5000, count):
        writer.append(number * 10, number * 10 + 5)
with StopLog(path) as log:
    found = [log.stopped(0, 10 * count), len(list(log.between(middle - 10, middle + 100)))]
    start = time.thread_time()
    for number in range(1000):
        log.stopped(number, 9 * count + number)
        list(log.between(middle + number * 10, middle + 50 + number * 10))
    seconds = time.thread_time() - start
    print(len(log), *found, peak() - before, seconds)
"""


@pytest.mark.parametrize("stops", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_many_stops_take_no_memory_and_are_found_at_once(tmp_path: Path, stops: int) -> None:
    command = [sys.executable, "-c", MANY, str(tmp_path / "stops"), str(stops)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    count, total, found, more, seconds = run.stdout.split()
    assert (int(count), int(total), int(found)) == (stops, 5 * stops, 11)
    assert int(more) <= 1024, "KiB of memory more than for 5,000"
    assert float(seconds) / 2000 < 0.001, "CPU time of a query"
    assert (tmp_path / "stops").stat().st_size == 16 + 16 * stops
