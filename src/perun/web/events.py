"""What pages are told while they are open: that something was stored, and how far a measurement is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import msgspec
from starlette.concurrency import run_in_threadpool

from perun.core.errors import PerunError
from perun.web.data.versions import running
from perun.web.live import Live

EVERY: Final = 1.0
"""Seconds between two looks at the store, while somebody listens."""
ALIVE: Final = 15
"""Looks after which something is sent, so that a connection that is gone is noticed."""


class Events:
    """The listeners of one server, who share one look at the store a second."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._listeners: set[asyncio.Queue[bytes]] = set()
        self._task: asyncio.Task[None] | None = None
        self._looks = asyncio.Event()
        self._ended = False

    def look(self) -> None:
        """Look at the store at once."""
        self._looks.set()

    def end(self) -> None:
        """Close all streams: the server ends."""
        self._ended = True
        for queue in self._listeners:
            queue.put_nowait(b"")
        if self._task is not None:
            self._task.cancel()

    async def stream(self) -> AsyncIterator[bytes]:
        """The events of one listener, as the browser's `EventSource` reads them."""
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._listeners.add(queue)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())
        try:
            yield b"retry: 2000\n\n"
            while not self._ended and (event := await queue.get()):
                yield event
        finally:
            self._listeners.discard(queue)

    async def _watch(self) -> None:
        """Look until nobody listens any more."""
        known: str | None = None
        working: object = None
        silent = 0
        while self._listeners and not self._ended:
            self._looks.clear()
            silent += 1
            try:
                state = await run_in_threadpool(self._live.refresh)
                now = await run_in_threadpool(running, self._live.repo)
            except PerunError:
                state, now = known or "", None  # it is being written, or whoever asks for a piece is told
            if state != known and known is not None:
                silent = self._tell("store", {"state": state})
            if now != working:
                silent = self._tell("progress", now)
            known, working = state, now
            if silent >= ALIVE:
                silent = self._send(b": nothing new\n\n")
            try:
                await asyncio.wait_for(self._looks.wait(), EVERY)
            except TimeoutError:
                continue

    def _tell(self, event: str, data: object) -> int:
        return self._send(f"event: {event}\ndata: {msgspec.json.encode(data).decode()}\n\n".encode())

    def _send(self, message: bytes) -> int:
        for queue in self._listeners:
            queue.put_nowait(message)
        return 0
