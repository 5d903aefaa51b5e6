"""Threads beside the one that waits for a command: they leave Ctrl-C and other requests to end to it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from threading import Thread

INTERRUPTIONS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask for the end."""


def start(thread: Thread) -> None:
    """Start the thread with these signals blocked in it.

    The main thread blocks them for a moment where it starts a command. One that comes then would go to any
    other thread that takes it, and would not end the wait in the main thread: Ctrl-C would do nothing.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTIONS)
    try:
        thread.start()  # a thread has the mask of the one that starts it
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def interruptions_deferred() -> Iterator[None]:
    """Let signals that would end the program take effect only after the block.

    Their handlers are exchanged rather than the signals blocked, as any thread of the program may get one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are handled in the main thread alone
        return
    deferred: list[tuple[int, FrameType | None]] = []
    handlers = {number: handler for number in INTERRUPTIONS if callable(handler := signal.getsignal(number))}
    for number in handlers:
        signal.signal(number, lambda *given: deferred.append(given))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for first, frame in deferred[:1]:
            handlers[signal.Signals(first)](first, frame)
