"""Servers that tests start: one that speaks S3, and a line to it that can be cut."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

HERE = Path(__file__).parent
BUCKET = "team"


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


@contextmanager
def s3_server() -> Iterator[int]:
    """The port of a server that speaks S3, with a bucket."""
    pytest.importorskip("obstore", reason="obstore is not installed: pip install obstore")
    for name in ("moto", "flask", "flask_cors"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install 'moto[s3]' flask flask-cors")
    command = [sys.executable, str(HERE / "s3_server.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield int(server.stdout.readline())


@contextmanager
def git_server(folder: Path) -> Iterator[int]:
    """The port of a server of the git repositories in the folder, that takes pushes from everybody."""
    command = ["git", "daemon", "--inetd", "--export-all", "--enable=receive-pack", f"--base-path={folder}"]
    children: list[subprocess.Popen[bytes]] = []
    listening = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with suppress(OSError):
            while True:
                here, _address = listening.accept()
                with here:
                    quiet = subprocess.DEVNULL
                    child = subprocess.Popen([*command, str(folder)], stdin=here, stdout=here, stderr=quiet)
                children.append(child)

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()
        for child in children:
            child.wait()


class Line:
    """What passes bytes on to a server of this machine, and cuts connections where a test wants it.

    :ivar sent: for each connection to come, after how many bytes to the server it is cut; None: never.
    :ivar received: as `sent`, for bytes from the server; 0: as soon as it answers. Connections beyond the
        lists are not cut.
    :ivar left: how many bytes are passed on in all, to the server; then every connection is cut.
    :ivar slow: pass on a few bytes at a time.
    :ivar passed: bytes that went to the server, and came from it.
    """

    def __init__(self, place: int | str) -> None:
        self.sent: list[int | None] = []
        self.received: list[int | None] = []
        self.left: int | None = None
        self.slow = False
        self.connections = 0
        self.passed = [0, 0]
        self._place = place
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._start(self._accept)

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._cut(*self._sockets)
        for thread in self._threads:
            thread.join()

    def _start(self, work: object, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                here, _address = self._listening.accept()
            except OSError:
                return
            there = self._connected()
            with self._lock:
                self.connections += 1
                limits = [lengths.pop(0) if lengths else None for lengths in (self.sent, self.received)]
            self._sockets += (here, there)
            self._start(self._pass, here, there, limits[0], 0)
            self._start(self._pass, there, here, limits[1], 1)

    def _connected(self) -> socket.socket:
        if isinstance(self._place, int):
            return socket.create_connection(("127.0.0.1", self._place))
        there = socket.socket(socket.AF_UNIX)
        there.connect(self._place)
        return there

    def _pass(self, source: socket.socket, target: socket.socket, limit: int | None, way: int) -> None:
        with suppress(OSError):
            while data := source.recv(512 if self.slow else 1 << 16):
                whole = len(data)
                if limit is not None:
                    data = data[:limit]
                    limit -= len(data)
                with self._lock:
                    if way == 0 and self.left is not None:
                        data = data[: self.left]
                        self.left -= len(data)
                    self.passed[way] += len(data)
                target.sendall(data)
                if len(data) < whole:
                    break
                if self.slow:
                    time.sleep(0.001)
        self._cut(source, target)

    def _cut(self, *sockets: socket.socket) -> None:
        for one in sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


@contextmanager
def line_to(place: int | str) -> Iterator[Line]:
    """A line to a port of this machine, or to a socket in a folder."""
    line = Line(place)
    try:
        yield line
    finally:
        line.close()
