"""Remotes of each kind that this machine has."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perun.remote.contract import Remote
from perun.remote.opening import opened

KINDS = ("file", "sqlite", "postgresql", "s3", "git")
HERE = Path(__file__).parent
EXPENSIVE = (
    "test_of_several_writers_of_a_name_one_makes_the_piece",
    "test_eight_writers_lose_nothing",
    "test_a_killed_writer_leaves_whole_pieces",
)
"""Tests that are slow where processes connect to PostgreSQL, which takes each a quarter of a second."""
SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if (
            isinstance(item, pytest.Function)
            and item.originalname in EXPENSIVE
            and "[postgresql" in item.name
        ):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a database of a server of our own, which listens on no network."""
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
    user = "nobody" if as_user else getpass.getuser()
    made = [
        str(tools / "initdb"),
        "--no-sync",
        "--auth=trust",
        f"--username={user}",
        "-D",
        str(folder / "data"),
    ]
    subprocess.run([*as_user, *made], check=True, stdout=subprocess.DEVNULL, cwd=folder, timeout=400)
    settings = ("listen_addresses=", f"unix_socket_directories={folder}", "fsync=off", "max_connections=200")
    options = [part for one in settings for part in ("-c", one)]
    # It ends at once when the tests do, however they end.
    serve = ["setpriv", "--pdeathsig=QUIT", *as_user[1:], str(tools / "postgres"), "-D", str(folder / "data")]
    url = f"postgresql:///postgres?host={folder}&user={user}"
    with (
        open(folder / "log", "wb") as log,
        subprocess.Popen([*serve, *options], stdout=log, stderr=log, cwd=folder) as server,
    ):
        try:
            while not _answers(url):
                assert server.poll() is None, (folder / "log").read_text()
            yield url
        finally:
            server.send_signal(signal.SIGQUIT)


def _answers(url: str) -> bool:
    import psycopg

    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        time.sleep(0.05)
        return False
    return True


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The endpoint of a server that speaks S3, with the bucket `team`."""
    pytest.importorskip("obstore", reason="obstore is not installed: pip install obstore")
    for name in ("moto", "flask", "flask_cors"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install 'moto[s3]' flask flask-cors")
    command = [sys.executable, str(HERE / "s3_server.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}"


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


@pytest.fixture
def new_url(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], str]:
    """Make a URL of an empty remote of a kind."""

    def make(kind: str) -> str:
        name = "t" + os.urandom(6).hex()
        if kind == "file":
            return f"file://{tmp_path / 'remote'}"
        if kind == "sqlite":
            return f"sqlite:///{tmp_path / 'remote.db'}"
        if kind == "git":
            git("init", "--quiet", "--bare", str(tmp_path / "server.git"))
            # No process of it outlives a push.
            git("-C", str(tmp_path / "server.git"), "config", "receive.autogc", "false")
            git("init", "--quiet", str(tmp_path))
            git("-C", str(tmp_path), "remote", "add", "origin", "server.git")
            return "git:origin"
        if kind == "s3":
            endpoint = request.getfixturevalue("s3")
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-of-tests")
            monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-tests")
            return f"s3://team/{name}/perf?endpoint={endpoint}&region=us-east-1"
        import psycopg

        url: str = request.getfixturevalue("postgresql")
        # A schema of its own is as good as a database, and made in a hundredth of the time.
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{url}&options=-csearch_path%3D{name}"

    return make


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, new_url: Callable[[str], str]) -> str:
    return new_url(request.param)


@pytest.fixture
def remote(url: str, tmp_path: Path) -> Iterator[Remote]:
    with opened(url, folder=tmp_path, environ=os.environ) as place:
        yield place
