"""A PostgreSQL server of the tests' own, and schemas in it, each as good as an empty database."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))


@contextmanager
def served() -> Iterator[str]:
    """Run a server that listens on no network; the URL of a database of it.

    Its folder is none of pytest's: each run of that takes the right to enter them from all others.
    """
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'psycopg[binary]'")
    if not SERVERS:
        pytest.skip("PostgreSQL is not installed: tools/install_tools.sh servers")
    with tempfile.TemporaryDirectory(prefix="perun-postgresql-", ignore_cleanup_errors=True) as name:
        yield from _served(Path(name), SERVERS[-1].parent)


def _served(folder: Path, tools: Path) -> Iterator[str]:
    # The server refuses to run as root.
    nobody = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
    as_user = nobody if os.geteuid() == 0 else []
    if as_user:
        shutil.chown(folder, "nobody")
    user = "nobody" if as_user else getpass.getuser()
    data = ["-D", str(folder / "data")]
    made = [str(tools / "initdb"), "--no-sync", "--auth=trust", f"--username={user}", *data]
    subprocess.run([*as_user, *made], check=True, stdout=subprocess.DEVNULL, cwd=folder, timeout=400)
    settings = ("listen_addresses=", f"unix_socket_directories={folder}", "fsync=off", "max_connections=200")
    options = [part for one in settings for part in ("-c", one)]
    # It ends at once when the tests do, however they end.
    serve = ["setpriv", "--pdeathsig=QUIT", *as_user[1:], str(tools / "postgres"), *data, *options]
    url = f"postgresql:///postgres?host={folder}&user={user}"
    with (
        open(folder / "log", "wb") as log,
        subprocess.Popen(serve, stdout=log, stderr=log, cwd=folder) as server,
    ):
        try:
            while not _answers(url):
                assert server.poll() is None, (folder / "log").read_text()
            yield url
        finally:
            server.send_signal(signal.SIGQUIT)


def new_schema(url: str) -> str:
    """The URL of a new schema of the database, in which there is nothing yet."""
    import psycopg

    name = "t" + os.urandom(6).hex()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{url}&options=-csearch_path%3D{name}"


def _answers(url: str) -> bool:
    import psycopg

    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        time.sleep(0.05)
        return False
    return True
