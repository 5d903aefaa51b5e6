"""Threads beside the one that waits for a command: they leave Ctrl-C and other requests to end to it."""

from __future__ import annotations

import signal
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
