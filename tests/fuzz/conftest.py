"""Gives bytes to readers, in bounded memory and time."""

import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from readers import READERS

from perun.core.errors import PerunError

ROOM = 512 << 20
"""Bytes of address space that a reader may take beside what the tests have already."""
SECONDS = 10
"""Of the processor, for one input; the usual is a thousandth."""


class TooLong(Exception):
    """A reader took more than :data:`SECONDS`."""


@contextmanager
def bounded() -> Iterator[None]:
    """Let what needs more memory or time than it should fail."""

    def end(number: int, frame: FrameType | None) -> None:
        raise TooLong

    before, (soft, hard) = signal.signal(signal.SIGVTALRM, end), resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, hard))
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGVTALRM, before)


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str, bytes], object]:
    """Give the bytes to the reader of that name, in an empty folder."""

    def attempt(name: str, data: bytes) -> object:
        folder = tmp_path / "input"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        with bounded():
            try:
                return READERS[name](data, folder)
            except PerunError as problem:
                problem.message.encode("utf-8", "surrogateescape")  # it can be printed
                return problem

    return attempt
