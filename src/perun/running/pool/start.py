"""A worker on a machine that is reached by ssh: `python -m perun.running.pool.start`, told by its input.

It ends when its input does: when the client has ended, or the connection.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from typing import Any

from perun import __version__
from perun.core.extras import install_command
from perun.running.pool.engine import NOWHERE, QUIET, RESOURCE
from perun.running.pool.folders import folder
from perun.running.pool.ssh import READY
from perun.running.pool.worker import dask_release


def main() -> int:
    """Serve until the input ends."""
    told = json.loads(sys.stdin.readline())
    try:
        import dask
        import distributed
    except ImportError:
        sys.stderr.write(f"dask.distributed is not installed; install it: {install_command('pool')}\n")
        return 9
    here = {"Perun": __version__, "dask.distributed": dask_release()}
    for name, release in told["releases"].items():
        if here.get(name) != release:
            sys.stderr.write(f"this machine has {name} {here.get(name)}, and the client {release}; ")
            sys.stderr.write("install the same release here\n")
            return 9
    threading.Thread(target=_end_with_input, daemon=True).start()
    with dask.config.set(QUIET):
        asyncio.run(_serve(distributed, told))
    return 0


def _end_with_input() -> None:
    while sys.stdin.readline():
        pass
    os._exit(0)  # jobs go on by themselves, and keep their results


async def _serve(distributed: Any, told: dict[str, Any]) -> None:
    security = distributed.Security(
        require_encryption=True,
        tls_ca_file=told["ca"],
        tls_worker_cert=told["cert"],
        tls_worker_key=told["key"],
    )
    worker = distributed.Worker(
        told["scheduler"],
        nthreads=1,
        resources={RESOURCE: 1},
        host="127.0.0.1",
        port=told["port"],
        protocol="tls",
        contact_address=told["contact"],
        dashboard_address=NOWHERE,
        security=security,
        memory_limit=0,
        death_timeout=told["patience"],
        local_directory=str(folder(os.environ, "dask")),
        silence_logs=50,
    )
    async with worker:
        sys.stdout.write(f"{READY}\n")
        sys.stdout.flush()
        await worker.finished()


if __name__ == "__main__":
    sys.exit(main())
