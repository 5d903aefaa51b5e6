"""What Perun does now and how long it will take, shown on the terminal if the work takes a while."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TextIO, cast

from perun.cli.table import clean

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

REFRESHES = 4
"""Times a second that the bar is drawn: rarely, since it shares the machine with what is measured."""


@contextmanager
def progress(
    total: int,
    title: str,
    *,
    stream: TextIO,
    enabled: bool = True,
    clock: Callable[[], float] = time.monotonic,
    after: float = 1.0,
    verbose: bool = False,
    colour: bool = True,
    out: TextIO | None = None,
) -> Iterator[Progress]:
    """Show the progress of the work in the block.

    :param total: steps in all; 0 if it is not known beforehand.
    :param title: what the whole work is, in a word.
    :param stream: where the bar is drawn, standard error; nothing is drawn where it is no terminal.
    :param enabled: whether anything is shown at all.
    :param clock: seconds, for the elapsed and the remaining time.
    :param after: seconds of work before the bar appears.
    :param verbose: write one line for each step to a `stream` that is no terminal.
    :param colour: whether the bar is coloured.
    :param out: where :meth:`Progress.write` writes; standard output by default.
    """
    out = out or sys.stdout
    if enabled and stream.isatty():
        shown: Progress = _ProgressBar(total, title, stream, out, _BarSettings(clock, after, colour))
    else:
        shown = Progress(total, title, stream if enabled and verbose else None, out)
    try:
        yield shown
    finally:
        shown.close()


class Progress:
    """The steps of the work, made by :func:`progress`; shown at most as a line for each step.

    :param lines: where these lines are written, if at all.

    `out` is a file for text that must not run into the bar: while a bar is there, what is written to it
    appears line by line above the bar.
    """

    def __init__(self, total: int, title: str, lines: TextIO | None, out: TextIO) -> None:
        self.out = out
        self._title = title
        self._lines = lines
        self._given = total
        self._begun = 0
        self._done = 0
        self._total = total
        self._fraction = 0.0
        self._activity = ""
        self._inner = ""

    def step(self, activity: str) -> None:
        """The next step begins, all those before it are done."""
        self._whole(activity, self._begun, max(self._given, self._begun + 1) if self._given else 0)
        self._begun += 1

    def update(self, activity: str, done: int, total: int) -> None:
        """Steps done and in all (0: not known): a report of a plugin or of the whole work.

        Where the number of steps of the whole work is given, a report with another total is of the step
        that runs; if both totals may be the same, give the plugin :meth:`inside` instead.
        """
        if self._given and total != self._given:
            self.inside(activity, done, total)
        else:
            self._whole(activity, done, total)

    def inside(self, activity: str, done: int, total: int) -> None:
        """What the running step does and how far it is: the report of a collector within one of many jobs."""
        count = f" {done}/{total}" if total > 0 else ""
        self._inner = clean(activity, keep="") + count
        self._fraction = min(done / total, 1.0) if total > 0 else 0.0
        self._changed()

    def expect(self, seconds: float | None) -> None:
        """The rest will take so long from now on; None if that can only be told from the steps done."""

    def write(self, text: str) -> None:
        """Print a line to `out`; if a bar is shown, above it."""
        self.out.write(text + "\n")

    def close(self) -> None:
        """The work has ended."""

    def _whole(self, activity: str, done: int, total: int) -> None:
        self._activity, self._inner, self._fraction = clean(activity, keep=""), "", 0.0
        self._done, self._total = done, total
        if self._lines:
            words = (self._title, self._count(), self._activity)
            self._lines.write(" ".join(filter(None, words)) + "\n")
            self._lines.flush()
        self._changed()

    def _changed(self) -> None:
        """Another step, or another part of one."""

    def _count(self) -> str:
        return f"{self._done}/{self._total}" if self._total else str(self._done or "")


class _BarSettings(NamedTuple):
    clock: Callable[[], float]
    after: float
    colour: bool


class _ProgressBar(Progress):
    """Progress with a bar on a terminal, from the moment on that the work has lasted long enough."""

    def __init__(self, total: int, title: str, stream: TextIO, out: TextIO, settings: _BarSettings) -> None:
        super().__init__(total, title, None, cast(TextIO, _OutputAboveBar(self, out)))
        from threading import RLock, Timer

        self._stream = stream
        self._settings = settings
        self._started = settings.clock()
        self._end: float | None = None
        self._bar: RichProgress | None = None
        self._closed = False
        self._lock = RLock()
        # The first step may last for minutes without a report.
        self._timer = Timer(settings.after, self._show)
        self._timer.daemon = True
        self._timer.start()

    @property
    def visible(self) -> bool:
        return self._bar is not None

    def expect(self, seconds: float | None) -> None:
        self._end = None if seconds is None else self._settings.clock() + seconds

    def above(self, lines: str) -> None:
        """Print whole lines above the bar, which must be visible."""
        from rich.text import Text

        with self._lock:
            if self._bar is not None:
                self._bar.console.print(Text.from_ansi(lines), soft_wrap=True)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._timer.cancel()
            if self._bar is not None:
                self._bar.stop()
                self._bar = None
        self._timer.join()  # so that no thread outlives the work; it waits for nothing any more
        self.out.flush()

    def _changed(self) -> None:
        with self._lock:
            if self._bar is not None:
                self._put(self._bar)
            elif self._settings.clock() - self._started >= self._settings.after:
                self._show()

    def _show(self) -> None:
        with self._lock:
            if self._closed or self._bar is not None:
                return
            bar = _rich_bar(self._stream, self._settings, self._times)
            bar.add_task(self._title, count="", activity="")
            self._put(bar)
            self._bar = bar
            bar.start()

    def _put(self, bar: RichProgress) -> None:
        activity = ", ".join(part for part in (self._activity, self._inner) if part)
        bar.update(
            bar.task_ids[0],
            completed=self._position(),
            total=self._total or None,
            count=self._count(),
            activity=activity,
        )

    def _position(self) -> float:
        return min(self._done + self._fraction, self._total)

    def _times(self) -> str:
        """Elapsed time, and the remaining one: as expected, or as far as the steps done tell it."""
        now = self._settings.clock()
        elapsed = now - self._started
        if self._end is not None:
            return f"{duration(elapsed)}, {duration(self._end - now)} left"
        position = self._position()
        if not position:
            return duration(elapsed)
        return f"{duration(elapsed)}, {duration(elapsed * (self._total - position) / position)} left"


class _OutputAboveBar(io.TextIOBase):
    """A terminal that shares the screen with the bar; anything else passes through."""

    def __init__(self, shown: _ProgressBar, out: TextIO) -> None:
        self._shown = shown
        self._out = out
        self._rest = ""

    def write(self, text: str) -> int:
        if self._shown.visible and self._out.isatty():
            self._out.flush()
            lines, end, self._rest = (self._rest + text).rpartition("\n")
            if end:
                self._shown.above(lines)
        else:
            self._out.write(self._rest + text)
            self._rest = ""
        return len(text)

    def flush(self) -> None:
        # An unfinished line waits for its end while the bar is there, which would overwrite it.
        if self._rest and not self._shown.visible:
            self.write("")
        self._out.flush()

    def close(self) -> None:
        """Nothing: the file behind is not ours, and may be closed already when this object is finalized."""

    def isatty(self) -> bool:
        return self._out.isatty()

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._out.encoding


def duration(seconds: float) -> str:
    """Minutes and seconds, with hours in front if there are any: `1:02`, `1:00:02`."""
    minutes, rest = divmod(round(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _rich_bar(stream: TextIO, settings: _BarSettings, times: Callable[[], str]) -> RichProgress:
    # Imported now, not before: most invocations of Perun end long before a bar is wanted.
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, Task, TextColumn
    from rich.progress import Progress as Bar
    from rich.table import Column
    from rich.text import Text

    class Times(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(times())

    activity = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    return Bar(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=12),
        TextColumn("{task.fields[count]}", markup=False),
        Times(table_column=Column(no_wrap=True)),
        TextColumn("{task.fields[activity]}", markup=False, table_column=activity),
        console=Console(file=stream, color_system="auto" if settings.colour else None, highlight=False),
        refresh_per_second=REFRESHES,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        get_time=settings.clock,
        expand=True,
    )
