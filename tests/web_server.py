"""A server of the dashboard that listens, and requests to it as a browser or a stranger would send them."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from measured_history import SLOWER, Measured
from perun.web.live import ServerState
from perun.web.serving import BoundServer


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Server:
    """One that runs in a thread."""

    def __init__(self, serving: BoundServer) -> None:
        self.serving = serving
        self._thread = threading.Thread(target=serving.run)
        self._thread.start()

    def ask(self, path: str, method: str = "GET", body: Any = None, **headers: str) -> Answer:
        """A request; `_` in the name of a header is a dash."""
        connection = http.client.HTTPConnection("127.0.0.1", self.serving.port, timeout=60)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.putrequest(method, path, skip_host="Host" in given, skip_accept_encoding=True)
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        if body is not None:
            connection.putheader("Content-Length", str(len(data)))
        for name, value in given.items():
            connection.putheader(name, value)
        connection.endheaders(data)
        answer = connection.getresponse()
        found = Answer(
            answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        )
        connection.close()
        return found

    def end(self) -> None:
        self.serving.end()
        self._thread.join(30)
        assert not self._thread.is_alive()


Serve = Callable[..., Server]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a server: `serve(measured, reads=True)`."""
    made: list[Server] = []

    def start(measured: Measured, **options: Any) -> Server:
        made.append(Server(BoundServer(ServerState(measured.open()), **options)))
        return made[-1]

    yield start
    for one in made:
        one.end()


@pytest.fixture(scope="module")
def server(measured_template: Measured) -> Iterator[Server]:
    """One of a repository that nobody changes."""
    started = Server(BoundServer(ServerState(measured_template.open())))
    yield started
    started.end()


SAME = {"Sec_Fetch_Site": "same-origin"}


def acknowledgement(made, **more):
    return {"version": made.main[SLOWER], "location": "./app*", "because": "correct now", **more}


def allowed(server, **more):
    """The headers of a page of the server itself that has its token."""
    origin = server.serving.address.rstrip("/")
    return {"Origin": origin, "Authorization": f"Bearer {server.serving.guard.token}", **SAME, **more}
