"""Threads that leave requests to end to the main thread."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

from perun.core.process import threads


def test_an_interruption_that_the_main_thread_holds_back_waits_for_it():
    """Another thread that took it would leave the main thread waiting."""
    go_on = threading.Event()
    beside = threading.Thread(target=go_on.wait)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    threads.start(beside)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    try:
        status = Path(f"/proc/self/task/{beside.native_id}/status").read_text()
        blocked = int(status.partition("SigBlk:")[2].split()[0], 16)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            assert blocked & 1 << number - 1
        assert not blocked & 1 << signal.SIGCHLD - 1
    finally:
        go_on.set()
        beside.join()
