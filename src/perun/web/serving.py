"""Running the application: on which address, and until when."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import uvicorn

from perun.errors import UsageError
from perun.web.guard import Guard, names_of, new_token
from perun.web.server import Dashboard

if TYPE_CHECKING:
    from perun.web.live import Live

LOCAL: Final = "127.0.0.1"


class Serving:
    """A server that listens already, so that nobody who is told its address comes too early.

    :param host: whose address it listens on. :param port: 0 for a free one.
    :param token: of who may change something; a new one if it is empty.
    :param reads: whether reading needs it.
    :raises UsageError: if it cannot listen there.
    """

    def __init__(
        self, live: Live, host: str = LOCAL, port: int = 0, token: str = "", *, reads: bool = False
    ) -> None:
        self._socket = _listening(host, port)
        self.port: int = self._socket.getsockname()[1]
        self.host = host
        self._once = new_token()
        self.guard = Guard(names_of(host), token or new_token(), reads, self.port)
        self._dashboard = Dashboard(live, self.guard, self._once)
        self._live = live
        config = uvicorn.Config(
            self._dashboard.app, log_level="error", access_log=False, lifespan="off", ws="none",
            loop="asyncio", http="h11", server_header=False, timeout_graceful_shutdown=1, proxy_headers=False,
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
        asyncio.run(self._server.serve([self._socket]))

    def end(self) -> None:
        """End it, from another thread."""
        self._server.should_exit = True

    def _warm(self) -> None:
        with suppress(Exception):  # whoever asks for a page is told
            self._live.piece("overview")


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
