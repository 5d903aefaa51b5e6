"""Remotes of each kind that this machine has."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from servers import BUCKET, git, s3_server

from perun.store.remote.contract import Remote
from perun.store.remote.opening import opened
from postgresql_server import new_schema, served

KINDS = ("file", "sqlite", "postgresql", "s3", "git")
EXPENSIVE = (
    "test_of_several_writers_of_a_name_one_makes_the_piece",
    "test_eight_writers_lose_nothing",
    "test_a_killed_writer_leaves_whole_pieces",
)
"""Tests that are slow where processes connect to PostgreSQL, which takes each a quarter of a second."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if (
            isinstance(item, pytest.Function)
            and item.originalname in EXPENSIVE
            and "[postgresql" in item.name
        ):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of a database of a server of our own, which listens on no network."""
    with served() as url:
        yield url


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The endpoint of a server that speaks S3, with the bucket `team`."""
    with s3_server() as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def new_url(request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
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
            return f"s3://{BUCKET}/{name}/perf?endpoint={endpoint}&region=us-east-1"
        return new_schema(request.getfixturevalue("postgresql"))

    return make


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, new_url: Callable[[str], str]) -> str:
    return new_url(request.param)


@pytest.fixture
def remote(url: str, tmp_path: Path) -> Iterator[Remote]:
    with opened(url, folder=tmp_path, environ=os.environ) as place:
        yield place
