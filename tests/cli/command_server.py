"""Runs `perun` in forks of one process that has imported it: a seventh of the time of a new interpreter.

A fork is a process of its own, with its own streams, environment and folder. What it does not show is whether
a module is imported where it is needed, and what Python says of objects that are left at its end:
`pytest --fresh-processes` starts an interpreter for each command.

Started as a program by :class:`Server`. Each order comes with the descriptors of the three streams and of a
pipe, in which the number of the fork is written at its start, and its status at its end.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

OF_PYTHON = ("PYTHON", "LC_", "LANG", "LD_", "OPENBLAS_", "OMP_", "TZDIR")
"""Starts of the names of variables that Python or a library reads only when it starts."""
LATER = ("click._textwrap", "elftools.elf.elffile", "importlib.metadata", "rich.progress", "ruamel.yaml")
"""What many commands import while they run, and what takes longest of that."""
_SIZE = 8


class Server:
    """A process that forks for each command.

    :param environ: its environment; :meth:`suits` tells whether a command may have another one.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = _read_at_start(environ)
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                # Threads of a library do not live on in a fork.
                env={**environ, "OPENBLAS_NUM_THREADS": "1"},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # at Ctrl-C its socket is closed, which ends it
            )

    def suits(self, environ: Mapping[str, str]) -> bool:
        """Whether Python would start in this environment as it has in that of the server."""
        return _read_at_start(environ) == self._environ

    def start(
        self,
        arguments: Sequence[str],
        cwd: str | Path,
        environ: Mapping[str, str],
        streams: tuple[int, int, int],
    ) -> Child:
        """Start the command with these descriptors as its streams."""
        order = {"arguments": arguments, "cwd": str(cwd), "environ": dict(environ), "umask": _umask()}
        data = json.dumps(order).encode()
        reading, writing = os.pipe()
        try:
            with self._lock:
                socket.send_fds(self._socket, [len(data).to_bytes(_SIZE)], [*streams, writing])
                self._socket.sendall(data)
        finally:
            os.close(writing)
        return Child(reading)

    def run(
        self,
        arguments: Sequence[str],
        cwd: str | Path,
        environ: Mapping[str, str],
        input: bytes,
        timeout: float,
    ) -> tuple[int, bytes, bytes]:
        """As `subprocess.run` with pipes for all streams: the exit code, and what was written.

        :raises TimeoutExpired: where it takes longer; it is killed then.
        """
        (stdin, feed), (out, stdout), (err, stderr) = (os.pipe() for _ in range(3))
        child = self.start(arguments, cwd, environ, (stdin, stdout, stderr))
        for descriptor in (stdin, stdout, stderr):
            os.close(descriptor)
        written = _communicate(feed, input, (out, err), child, timeout)
        return child.wait(timeout), *written

    def close(self) -> None:
        """End the process."""
        self._socket.close()
        self._process.wait()


class Child:
    """A command that runs. :param answers: the descriptor of its pipe."""

    def __init__(self, answers: int) -> None:
        self._answers = os.fdopen(answers, "rb", buffering=0)
        self.pid = int(self._answers.readline())

    def wait(self, timeout: float) -> int:
        """Its exit code, as `Popen.wait` gives it.

        :raises TimeoutExpired: where it takes longer; it is killed then.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(self._answers, selectors.EVENT_READ)
            if not selector.select(timeout):
                self.kill(timeout)
        with self._answers:
            return os.waitstatus_to_exitcode(int(self._answers.readline()))

    def kill(self, timeout: float) -> NoReturn:
        """Kill it, for it takes too long."""
        os.kill(self.pid, signal.SIGKILL)
        raise subprocess.TimeoutExpired(f"fork {self.pid}", timeout)


def _read_at_start(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name.startswith(OF_PYTHON)}


def _umask() -> int:
    os.umask(found := os.umask(0))
    return found


def _communicate(
    feed: int, data: bytes, outputs: tuple[int, int], child: Child, timeout: float
) -> tuple[bytes, bytes]:
    """Write the data, and read both outputs to their ends; all descriptors are closed then."""
    found: dict[int, list[bytes]] = {output: [] for output in outputs}
    end = time.monotonic() + timeout
    with selectors.DefaultSelector() as selector:
        os.set_blocking(feed, False)
        selector.register(feed, selectors.EVENT_WRITE)
        for output in outputs:
            selector.register(output, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select(end - time.monotonic()) or child.kill(timeout):
                descriptor = key.fd
                if descriptor == feed:
                    with contextlib.suppress(BrokenPipeError):
                        data = data[os.write(feed, data) :] if data else data
                    if data:
                        continue
                elif piece := os.read(descriptor, 1 << 16):
                    found[descriptor].append(piece)
                    continue
                selector.unregister(descriptor)
                os.close(descriptor)
    out, err = (b"".join(found[output]) for output in outputs)
    return out, err


# -- the process of the server ------------------------------------------------------------------------------


def serve(orders: socket.socket) -> dict[str, Any] | None:
    """Fork for each order. In a fork: the order, with its streams in place; in the server at last None."""
    running: dict[int, int] = {}
    woken, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    with selectors.DefaultSelector() as selector:
        selector.register(woken, selectors.EVENT_READ)
        selector.register(orders, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd == woken:
                    os.read(woken, 1 << 10)
                    _reap(running)
                    continue
                head, streams, _, _ = socket.recv_fds(orders, _SIZE, 4)
                if not head:
                    return None
                order = json.loads(_received(orders, int.from_bytes(head)))
                pid = os.fork()
                if pid:
                    running[pid] = streams[3]
                    os.write(streams[3], b"%d\n" % pid)
                    for stream in streams[:3]:
                        os.close(stream)
                    continue
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for number, stream in enumerate(streams[:3]):
                    os.dup2(stream, number)
                for descriptor in (*streams, woken, wakeup, *running.values()):
                    os.close(descriptor)
                return dict(order)


def _received(orders: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += orders.recv(size - len(data))
    return data


def _reap(running: dict[int, int]) -> None:
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            answers = running.pop(ended[0])
            with contextlib.suppress(BrokenPipeError):
                os.write(answers, b"%d\n" % ended[1])
            os.close(answers)


def become(order: Mapping[str, Any]) -> None:
    """Let this process be one that was started with the order."""
    os.umask(order["umask"])
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environ"])
    time.tzset()
    sys.argv[1:] = order["arguments"]
    sys.stdin, sys.stdout, sys.stderr = (
        io.TextIOWrapper(
            open(number, mode, closefd=False),  # noqa: SIM115
            encoding=stream.encoding,
            errors=stream.errors,
            line_buffering=number == 2 or os.isatty(number),
        )
        for number, mode, stream in ((0, "rb", sys.stdin), (1, "wb", sys.stdout), (2, "wb", sys.stderr))
    )


def load() -> None:
    """Import what commands import, also what they do only where it is needed; a warning is an error."""
    import perun

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for module in pkgutil.walk_packages(perun.__path__, "perun."):
            # Not the programs, nor the libraries that collectors preload.
            if not module.name.endswith(("__main__", "helptext")) and ".lib" not in module.name:
                importlib.import_module(module.name)
        for name in LATER:
            importlib.import_module(name)
    gc.freeze()  # it is never garbage: no fork has to copy pages in order to look for some there


def run_to_the_end() -> NoReturn:
    """Run perun, then end as Python does, but for taking apart what is in memory: that takes longest."""
    code: Any = 1
    try:
        runpy.run_module("perun", run_name="__main__", alter_sys=True)
    except SystemExit as ending:
        code = ending.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    threading._shutdown()  # type: ignore[attr-defined,unused-ignore]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = 120
    os._exit(code)


if __name__ == "__main__":
    load()
    with socket.socket(fileno=int(sys.argv[1])) as socket_of_orders:
        the_order = serve(socket_of_orders)
    if the_order is not None:
        become(the_order)
        run_to_the_end()
