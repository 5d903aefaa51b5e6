"""The progress bar on a pseudo terminal, with a clock of the test's own."""

import io
import os
import pty
import re
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, TextIO

import pytest

from perun.cli.progress import Progress, progress


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal:
    def __init__(self) -> None:
        self.screen, inner = pty.openpty()
        self.stream: TextIO = open(inner, "w", encoding="utf-8")  # noqa: SIM115 - closed by the fixture

    def raw(self) -> str:
        data = b""
        while select.select([self.screen], [], [], 0.05)[0]:
            data += os.read(self.screen, 65536)
        return data.decode().replace("\r\n", "\n")

    def frames(self) -> list[str]:
        """What was drawn, one after the other, without colours."""
        text = re.sub(r"\x1b\[[0-9;?]*[ml h]", "", self.raw())
        return [frame.strip() for frame in re.split(r"\r|\x1b\[\d*[KA]|\n", text) if frame.strip()]


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("LINES", "24")


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.stream.close()
    os.close(made.screen)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def on(terminal: Terminal, clock: Clock, total: int = 4, **others: Any) -> AbstractContextManager[Progress]:
    others = {"out": terminal.stream, "after": 60.0, **others}
    return progress(total, "measuring", stream=terminal.stream, clock=clock, **others)


def test_quick_work_shows_nothing(terminal: Terminal, clock: Clock) -> None:
    with on(terminal, clock) as bar:
        bar.step("one")
        clock.now += 59.9
        bar.step("two")
    assert terminal.raw() == ""


def test_long_work_shows_steps_activity_and_times(terminal: Terminal, clock: Clock) -> None:
    with on(terminal, clock) as bar:
        bar.step("timing ./list_bench 10000, commit 1a2b3c")
        clock.now += 100
        bar.step("timing ./list_bench 20000, commit 1a2b3c")
    frames = terminal.frames()
    assert frames
    assert frames[-1].startswith("measuring")
    assert frames[-1].endswith("1/4 1:40, 5:00 left timing ./list_bench 20000, commit 1a2b3c")


def test_nothing_is_left_on_the_terminal(terminal: Terminal, clock: Clock) -> None:
    with on(terminal, clock) as bar:
        clock.now += 100
        bar.step("one")
    assert terminal.raw().endswith("\x1b[?25h\r\x1b[1A\x1b[2K")


def test_a_first_step_without_reports_is_shown_too(terminal: Terminal) -> None:
    with progress(2, "measuring", stream=terminal.stream, after=0.05, out=terminal.stream) as bar:
        bar.step("long")
        end = time.monotonic() + 60
        while "long" not in (frames := "".join(terminal.frames())) and time.monotonic() < end:
            pass
    assert "0/2" in frames


def test_reports_of_a_collector_count_within_the_running_step(terminal: Terminal, clock: Clock) -> None:
    with on(terminal, clock, total=2) as bar:
        bar.update("commit 1a2b3c", 1, 2)
        bar.inside("repeat", 1, 2)
        clock.now += 75
        bar.inside("repeat", 1, 2)
    assert terminal.frames()[-1].endswith("1/2 1:15, 0:25 left commit 1a2b3c, repeat 1/2")


def test_one_report_for_both_is_told_apart_by_its_total(terminal: Terminal, clock: Clock) -> None:
    with on(terminal, clock, total=2) as bar:
        clock.now += 75
        bar.update("commit 1a2b3c", 1, 2)
        bar.update("repeat", 5, 10)
        bar.update("saving", 0, 0)
    assert terminal.frames()[-1].endswith("1/2 1:15, 1:15 left commit 1a2b3c, saving")


def test_unknown_total_learns_it_from_the_reports(terminal: Terminal, clock: Clock) -> None:
    with on(terminal, clock, total=0) as bar:
        clock.now += 75
        bar.update("looking", 3, 0)
        bar.update("verifying", 3, 4)
    frames = terminal.frames()
    assert frames[0].endswith("3 1:15 looking")
    assert frames[-1].endswith("3/4 1:15, 0:25 left verifying")


def test_more_steps_than_expected(terminal: Terminal, clock: Clock) -> None:
    with on(terminal, clock, total=1) as bar:
        clock.now += 75
        for name in "abc":
            bar.step(name)
    assert "2/3" in terminal.frames()[-1]


def test_lines_go_above_the_bar(terminal: Terminal, clock: Clock) -> None:
    with on(terminal, clock) as bar:
        bar.write("before")
        clock.now += 100
        bar.step("one")
        bar.write("\x1b[1mstored\x1b[0m " + "x" * 200)
        bar.out.write("piece")
        bar.out.write(" by piece\nrest")
        assert bar.out.isatty()
    raw = terminal.raw()
    assert raw.startswith("before\n")
    assert "\r\x1b[2K\x1b[1mstored\x1b[0m " + "x" * 200 + "\n" in raw
    assert "\r\x1b[2Kpiece by piece\n" in raw
    assert raw.endswith("rest")


def test_lines_for_a_file_do_not_go_to_the_terminal(terminal: Terminal, clock: Clock) -> None:
    out = io.StringIO()
    with on(terminal, clock, out=out) as bar:
        clock.now += 100
        bar.step("one")
        bar.write("stored")
    assert out.getvalue() == "stored\n"
    assert "stored" not in terminal.raw()


def test_colour_flag_removes_colours_only(terminal: Terminal, clock: Clock) -> None:
    for colour in (True, False):
        with on(terminal, clock, colour=colour) as bar:
            clock.now += 100
            bar.step("one")
            clock.now += 100
            bar.step("two")
        raw = terminal.raw()
        assert "1/4" in raw
        assert bool(re.search(r"\x1b\[[0-9;]*m", raw)) is colour


def test_names_cannot_control_the_terminal(terminal: Terminal, clock: Clock) -> None:
    with on(terminal, clock) as bar:
        clock.now += 100
        bar.step("a\x1b]0;title\x07b\n[red]c")
    frame = terminal.frames()[-1]
    assert frame.endswith("a\\x1b]0;title\\x07b\\n[red]c")


@pytest.mark.parametrize("verbose", [True, False])
def test_a_file_gets_lines_only_where_asked(verbose: bool, clock: Clock) -> None:
    stream, out = io.StringIO(), io.StringIO()
    with progress(2, "measuring", stream=stream, out=out, clock=clock, verbose=verbose) as bar:
        for name in "ab":
            bar.step(name)
            clock.now += 100
            bar.inside("repeat", 1, 2)
        bar.write("stored")
    assert stream.getvalue() == ("measuring 0/2 a\nmeasuring 1/2 b\n" if verbose else "")
    assert out.getvalue() == "stored\n"


def test_disabled(terminal: Terminal, clock: Clock) -> None:
    with on(terminal, clock, enabled=False, verbose=True) as bar:
        clock.now += 100
        bar.step("one")
    assert terminal.raw() == ""


def test_an_error_removes_the_bar_and_the_thread(terminal: Terminal, clock: Clock) -> None:
    threads = threading.active_count()
    with pytest.raises(KeyboardInterrupt), on(terminal, clock) as bar:
        clock.now += 100
        bar.step("one")
        raise KeyboardInterrupt
    assert terminal.raw().endswith("\x1b[2K")
    assert threading.active_count() == threads


def test_the_file_for_text_may_be_closed_before_the_progress_is_forgotten(terminal, clock) -> None:
    target = io.StringIO()
    with progress(1, "work", stream=terminal.stream, clock=clock, out=target) as shown:
        shown.write("text")
    shown.out.close()
    assert target.getvalue() == "text\n"  # it belongs to the caller
    target.close()
    shown.out.close()  # as when it is finalized


def test_rich_is_not_imported_before_the_bar_is_shown() -> None:
    code = (
        "import os, pty, sys\n"
        "from perun.cli.progress import progress\n"
        "stream = open(pty.openpty()[1], 'w')\n"
        "with progress(1, 't', stream=stream) as bar: bar.step('a')\n"
        "print('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
