"""Remotes of each kind that this machine has."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perun.remote.contract import Remote
from perun.remote.opening import opened

KINDS = ("file", "sqlite", pytest.param("postgresql", marks=pytest.mark.slow))
SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The start of URLs of databases of a server of our own, which listens on no network."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'psycopg[binary]'")
    if not SERVERS:
        pytest.skip("PostgreSQL is not installed: tools/install_tools.sh servers")
    folder = tmp_path_factory.mktemp("postgresql")
    tools = SERVERS[-1].parent
    # The server refuses to run as root.
    nobody = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
    as_user = nobody if os.geteuid() == 0 else []
    if as_user:
        for parent in (folder, *folder.parents[:3]):
            parent.chmod(parent.stat().st_mode | 0o011)
        shutil.chown(folder, "nobody")
    data = folder / "data"
    user = "nobody" if as_user else getpass.getuser()

    def run(*command: str) -> None:
        subprocess.run([*as_user, *command], check=True, capture_output=True, cwd=folder, timeout=400)

    run(str(tools / "initdb"), "--no-sync", "--auth=trust", f"--username={user}", "-D", str(data))
    options = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=off"
    control = [str(tools / "pg_ctl"), "-w", "-t", "300", "-D", str(data)]
    run(*control, "-l", str(folder / "log"), "-o", options, "start")
    try:
        yield f"postgresql:///NAME?host={folder}&user={user}"
    finally:
        run(*control, "-m", "immediate", "stop")


@pytest.fixture
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """Make a URL of an empty remote of a kind."""

    def make(kind: str) -> str:
        if kind == "file":
            return f"file://{tmp_path / 'remote'}"
        if kind == "sqlite":
            return f"sqlite:///{tmp_path / 'remote.db'}"
        import psycopg

        url: str = request.getfixturevalue("postgresql")
        name = "d" + os.urandom(6).hex()
        with psycopg.connect(url.replace("NAME", "postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return url.replace("NAME", name)

    return make


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, new_url: Callable[[str], str]) -> str:
    return new_url(request.param)


@pytest.fixture
def remote(url: str) -> Iterator[Remote]:
    place = opened(url)
    yield place
    place.close()
