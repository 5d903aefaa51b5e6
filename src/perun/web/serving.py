"""Running the application: on which address, and until when."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import socket
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from perun.core.errors import UsageError
from perun.web.server import Dashboard, RequestGuard, names_of, new_token

if TYPE_CHECKING:
    from perun.web.live import ServerState

LOCAL: Final = "127.0.0.1"
PATIENCE: Final = 10.0
"""Seconds in which a request has to come, from when the server waits for it."""
_WAITING: Final = 128
"""Connections that the system keeps until the server takes them."""
_MOST: Final = 500
"""Connections at once; half of what the process may open if that is less, as answers need files, too."""
_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_AGAIN: Final = 60.0
"""Seconds after which a lack is told again."""


class BoundServer:
    """A server that listens already, so that nobody who is told its address comes too early.

    :param host: whose address it listens on. :param port: 0 for a free one.
    :param token: of who may change something; a new one if it is empty.
    :param reads: whether reading needs it. :param patience: see :data:`PATIENCE`.
    :raises UsageError: if it cannot listen there.
    """

    def __init__(
        self,
        live: ServerState,
        host: str = LOCAL,
        port: int = 0,
        token: str = "",
        *,
        reads: bool = False,
        patience: float = PATIENCE,
    ) -> None:
        self._socket = _listening(host, port)
        self.port: int = self._socket.getsockname()[1]
        self.host = host
        self._once = new_token()
        self.guard = RequestGuard(names_of(host), token or new_token(), reads, self.port)
        self._dashboard = Dashboard(live, self.guard, self._once)
        self._live = live
        config = uvicorn.Config(
            self._dashboard.app, log_level="error", access_log=False, lifespan="off", ws="none",
            loop="asyncio", http=_patient(patience), server_header=False, timeout_graceful_shutdown=1,
            proxy_headers=False, backlog=_WAITING,
        )  # fmt: skip
        self._server = _Server(config, self._dashboard)

    @property
    def address(self) -> str:
        """Where it is, with a slash at the end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/"

    @property
    def with_token(self) -> str:
        """The address that lets a browser change something, as a person types it."""
        kind = "?token=" if self.guard.reads else "#token="
        return f"{self.address}{kind}{self.guard.token}"

    @property
    def opened_once(self) -> str:
        """The same for a browser that is started with it: it holds the first time only, as other users of a
        machine can see the command lines of programs."""
        host = LOCAL if self.host in ("0.0.0.0", "::") else self.host
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}/?once={self._once}"

    def run(self) -> None:
        """Serve until the process is asked to end, or :meth:`end` is called."""
        # The history is read while the server starts.
        threading.Thread(target=self._warm, daemon=True).start()
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        asyncio.get_running_loop().set_exception_handler(_Lacks(self._socket))
        await self._server.serve([self._socket])

    def end(self) -> None:
        """End it, from another thread."""
        self._server.should_exit = True

    def _warm(self) -> None:
        with suppress(Exception):  # whoever asks for a page is told
            self._live.piece("overview")


class _Lacks:
    """Takes what an event loop fails of, and tells that no connection can be taken by one line a minute: the
    loop tells it, and tries again, many times a second, and once more after the socket was closed."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._told = -_AGAIN

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        problem = context.get("exception")
        if isinstance(problem, ValueError) and self._listening.fileno() < 0:
            return
        if not isinstance(problem, OSError) or problem.errno not in _NO_ROOM:
            loop.default_exception_handler(context)
        elif time.monotonic() - self._told >= _AGAIN:
            self._told = time.monotonic()
            print(f"new connections have to wait: {os.strerror(problem.errno)}", file=sys.stderr)


class _Connection(H11Protocol):
    """A connection that is closed where its request does not come in time, or there are too many: who opens
    one and sends nothing, or a byte now and then, must not keep others out."""

    def __init__(self, *given: Any, patience: float, **named: Any) -> None:
        super().__init__(*given, **named)
        self._patience = patience
        self._limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > min(_MOST, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2):
            transport.abort()
        else:
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def _watch(self) -> None:
        """Begin to count the time where the next part of a request is waited for."""
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY) or self.transport.is_closing():
            self._stop()
        elif self._limit is None:
            self._limit = self.loop.call_later(self._patience, self.transport.abort)

    def _stop(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
        self._limit = None


def _patient(patience: float) -> type[asyncio.Protocol]:
    """What makes a connection, as uvicorn takes it."""
    return partial(_Connection, patience=patience)  # type: ignore[return-value]


class _Server(uvicorn.Server):
    """One that closes its streams before it waits for them."""

    def __init__(self, config: uvicorn.Config, dashboard: Dashboard) -> None:
        super().__init__(config)
        self._dashboard = dashboard

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._dashboard.events.end()
        await super().shutdown(sockets)


def _listening(host: str, port: int) -> socket.socket:
    made = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(128)
    except OSError as problem:
        if made is not None:
            made.close()
        reason = os.strerror(problem.errno) if problem.errno and problem.errno > 0 else problem.strerror
        raise UsageError(
            f"cannot listen on {host}, port {port}: {reason}",
            "give another --port, or leave it out for a free one",
        ) from None
    return made
