"""Long output through the user's pager, line by line as it is made (manual 3.2.8, 3.2.9 and chapter 12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TYPE_CHECKING, BinaryIO, TextIO, cast

from perun.core.errors import UsageError

if TYPE_CHECKING:
    from perun.core.process.programs import Program


@contextmanager
def paged(enabled: bool, environ: Mapping[str, str], stream: TextIO) -> Iterator[TextIO]:
    """A file to write to: the input of a pager that shows it on `stream`, or `stream` itself.

    The pager is `PERUN_PAGER`, else `PAGER`, else `less`. There is none if `stream` is no capable
    terminal, if the pager is `cat` or empty, or if it cannot be started. A user who leaves the
    pager early ends the block quietly; what else the block raises is passed on after the pager has ended.

    :raises UsageError: if the command of the pager has an unclosed quote.
    """
    started = _start(environ, stream) if enabled and stream.isatty() else None
    if started is None:
        yield stream
        return
    pager, pipe = started
    try:
        yield pipe
    except BrokenPipeError:
        if not _reader_is_gone(pipe):
            raise
    finally:
        _finish(pager, pipe)


def _start(environ: Mapping[str, str], stream: TextIO) -> tuple[Program, TextIO] | None:
    command = _command(environ)
    if command in ([], ["cat"]) or environ.get("TERM") == "dumb":
        return None
    from perun.core.process.programs import PIPE, Program

    stream.flush()
    # Leave at once what fits on one screen, keep colours, and leave the text on the terminal at the end.
    defaults = {"LESS": "FRX", "LV": "-c"}
    try:
        environ = {**defaults, **environ}
        pager = Program(command, stdin=PIPE, stdout=stream, environ=environ, foreground=True, outlives=True)
    except OSError:
        return None  # missing or not executable: the output matters more than the comfort
    # Every line is there as soon as it is known.
    pipe = cast(BinaryIO, pager.stdin)
    return pager, TextIOWrapper(pipe, stream.encoding, stream.errors, line_buffering=True)


def _command(environ: Mapping[str, str]) -> list[str]:
    variable = "PERUN_PAGER" if "PERUN_PAGER" in environ else "PAGER"
    text = environ.get(variable, "less")
    import shlex

    try:
        return shlex.split(text)
    except ValueError as problem:
        raise UsageError(
            f"the pager {text!r} of {variable} cannot be split: {problem}", "correct it, or use --no-pager"
        ) from None


def _reader_is_gone(pipe: TextIO) -> bool:
    """Whether this pipe is the broken one, and not another that the block wrote to."""
    import select

    poll = select.poll()
    poll.register(pipe, select.POLLERR)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _finish(pager: Program, pipe: TextIO) -> None:
    """Give the pager the rest of the output and wait until the user leaves it."""
    while True:
        try:
            pipe.close()
            break
        except BrokenPipeError:
            break
        except KeyboardInterrupt:
            continue
    while pager.returncode is None:
        try:
            pager.wait()
        except KeyboardInterrupt:
            # Ctrl-C in a pager stops a search or a wait for more, not Perun; the terminal is the pager's.
            continue
