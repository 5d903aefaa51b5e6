"""Ctrl-C ends a search, never the writing of its results."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

Handler = Callable[[int, FrameType | None], Any]

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class OneInterruption:
    """A context manager in which the first signal that ends Perun does what it always does, and no further
    one.

    So what follows the first one, which is writing down what there is, is not interrupted. Outside of the
    main thread it does nothing, as no signal arrives there.
    """

    def __init__(self) -> None:
        self._arrived = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> OneInterruption:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._before[number] = handler
                    signal.signal(number, self._handler(handler))
        return self

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def hold_back(self) -> None:
        """From now on no signal interrupts."""
        self._arrived = True

    def _handler(self, before: Handler) -> Handler:
        def handle(number: int, frame: FrameType | None) -> None:
            if not self._arrived:
                self._arrived = True
                before(number, frame)

        return handle
