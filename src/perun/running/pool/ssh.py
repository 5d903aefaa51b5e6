"""Workers on machines that are reached by ssh: nothing listens to the network, neither here nor there.

The scheduler lives in this process. Each worker is started by the `ssh` of the user, with his keys, agent
and settings, and two tunnels: one from the worker to the scheduler, one from here to the worker. Certificates
that are made for the occasion keep other users of these machines out. A worker ends when its connection does.
"""

from __future__ import annotations

import json
import random
import re
import shlex
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final, NamedTuple

from perun import __version__
from perun.core.errors import RemoteError
from perun.core.process import programs
from perun.running.pool.places import Host
from perun.running.pool.worker import dask_release

_LOCALHOST: Final = "127.0.0.1"
_PORTS: Final = range(20_000, 32_000)
"""Below those that systems hand out by themselves; one is drawn by lot, another if it is taken."""
_TRIES: Final = 4
_TAKEN: Final = re.compile("forward|in use|bind", re.IGNORECASE)
"""What is said where a port that was drawn is taken."""
_OPTIONS: Final = (
    "-T",
    *("-o", "BatchMode=yes"),  # nobody is asked for a password, which would never come
    *("-o", "ConnectTimeout=30"),
    *("-o", "ExitOnForwardFailure=yes"),
    *("-o", "ServerAliveInterval=15"),
    *("-o", "ServerAliveCountMax=4"),
    *("-o", "ClearAllForwardings=no"),
)
READY: Final = "perun-pool-worker"
"""What a worker writes when it has reached the scheduler."""
_LAST_LINES: Final = 5


class WorkerConnection(NamedTuple):
    """The connection to a worker, which keeps it alive."""

    process: programs.Program
    host: Host


@contextmanager
def workers(
    hosts: Sequence[Host], scheduler: int, security: Any, patience: float
) -> Iterator[list[WorkerConnection]]:
    """Workers on the hosts, connected to the scheduler at that port of this machine; they end with the block.

    :param security: the certificates, as dask has them.
    :raises RemoteError: if one cannot be started.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="perun-pool-"))
        started = []
        for number, host in enumerate(hosts):
            one = _started(host, scheduler, security, patience, f"{folder}/{number}")
            started.append(one)
            stack.callback(_end, one)
        yield started


def _started(host: Host, scheduler: int, security: Any, patience: float, log: str) -> WorkerConnection:
    for _ in range(_TRIES):
        reached, listening = random.sample(_PORTS, 2)
        here = _free_port()
        told = {
            "scheduler": f"tls://{_LOCALHOST}:{reached}",
            "port": listening,
            "contact": f"tls://{_LOCALHOST}:{here}",
            "patience": patience,
            "releases": {"Perun": __version__, "dask.distributed": dask_release()},
            "ca": security.tls_ca_file,
            "cert": security.tls_worker_cert,
            "key": security.tls_worker_key,
        }
        tunnels = (
            *("-R", f"{_LOCALHOST}:{reached}:{_LOCALHOST}:{scheduler}"),
            *("-L", f"{_LOCALHOST}:{here}:{_LOCALHOST}:{listening}"),
        )
        remote = f"exec {shlex.quote(host.python)} -P -m perun.running.pool.start"
        with open(log, "w", encoding="utf-8") as errors:
            process = _ssh([*_OPTIONS, *tunnels, "--", host.host, remote], errors)
        one = WorkerConnection(process, host)
        if _is_ready(one, told):
            return one
        _end(one)
        if not _TAKEN.search(_last_lines(log)):
            break
    raise RemoteError(
        f"no worker could be started on {host.host}: {_last_lines(log)}",
        f"try: ssh {host.host} {host.python} -m perun --version",
    )


def _ssh(words: Sequence[str], errors: Any) -> programs.Program:
    try:
        return programs.Program(
            ["ssh", *words],
            stdin=programs.PIPE,
            stdout=programs.PIPE,
            stderr=errors,
            start_new_session=True,  # Ctrl-C is for this process, which ends the workers in its own time
        )
    except FileNotFoundError:
        raise RemoteError("ssh is not installed, or not on PATH", "e.g. apt install openssh-client") from None


def _is_ready(one: WorkerConnection, told: dict[str, Any]) -> bool:
    """Tell the worker what it needs, by a way that nobody else sees; whether it says that it is ready."""
    process = one.process
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(OSError):
        process.stdin.write(f"{json.dumps(told)}\n".encode())
        process.stdin.flush()
        return process.stdout.readline().strip() == READY.encode()
    return False


def _end(one: WorkerConnection) -> None:
    """End the worker: it ends when its input does, and the connection with it."""
    for stream in (one.process.stdin, one.process.stdout):
        with suppress(OSError):
            if stream is not None:
                stream.close()
    with suppress(programs.TimeoutExpired):
        one.process.wait(10)
        return
    one.process.end()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind((_LOCALHOST, 0))
        port: int = found.getsockname()[1]
        return port


def _last_lines(log: str) -> str:
    with open(log, encoding="utf-8", errors="replace") as file:
        return "; ".join(line.strip() for line in file.readlines()[-_LAST_LINES:]) or "it says nothing"
