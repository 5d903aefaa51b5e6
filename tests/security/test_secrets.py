"""Passwords and tokens in URLs: they are not stored, and no message shows them."""

import json
from typing import Any

import pytest

from perun.core.wording import without_secrets

TOKEN = "ghp_0123456789abcdef"
URLS = (
    f"git:https://{TOKEN}@host/team/perf.git", f"git:https://me:{TOKEN}@host/team/perf.git",
    f"git:https://me:with@{TOKEN}@host/team/perf.git", f"git:ssh://me:{TOKEN}@host/perf.git",
    f"postgresql://me:{TOKEN}@host/db", f"postgresql://host/db?user=me&password={TOKEN}",
    f"sqlite://{TOKEN}@/srv/perf.db", f"file://{TOKEN}@host/srv/perf", f"s3://{TOKEN}@bucket/perf",
    f"s3://bucket/perf?endpoint=https://{TOKEN}@minio.example.org",
    f"s3://bucket/perf?secret_access_key={TOKEN}", f"gs://{TOKEN}@bucket/perf",
    f"az://{TOKEN}@account/container", f"https://{TOKEN}@host/perf.git"
)  # fmt: skip


@pytest.mark.each_value("url")
@pytest.mark.parametrize("url", URLS)
def test_nothing_stores_or_shows_them(url: str, perun: Any, project: Any) -> None:
    """Not even where somebody has written them into the file by hand."""
    local = project.path / ".perun" / "local.yml"
    before = local.read_bytes()
    remotes = json.dumps([{"name": "team", "url": url}])
    for words in (
        ("remote", "add", "team", url), ("clone-profiles", url), ("init", "--store", url),
        ("config", "set", "remotes", remotes), ("config", "set", "store.url", url),
    ):  # fmt: skip
        refused = perun(*words, check=False)
        assert refused.code != 0, words
        assert TOKEN not in refused.out + refused.err, words
    assert local.read_bytes() == before
    local.write_text(f"remotes: {remotes}\n")
    for words in (
        ("remote", "list"), ("remote", "list", "--json"), ("push",), ("pull",), ("trust",),
        ("trust", "--show"), ("trust", "--revoke"), ("push",), ("remote", "add", "team", "file:///srv"),
        ("remote", "remove", "team"),
    ):  # fmt: skip
        told = perun(*words, check=False)
        assert TOKEN not in told.out + told.err, words
    local.write_text(json.dumps({"store": {"url": url}}))
    for words in (("status",), ("init",), ("trust",), ("status",), ("init", "--store", "sqlite:///other.db")):
        told = perun(*words, check=False)
        assert TOKEN not in told.out + told.err, words


def test_what_git_says_of_its_own_remote_shows_none(perun: Any, project: Any) -> None:
    project.git("remote", "add", "origin", f"https://{TOKEN}@localhost:1/perf.git")
    perun("remote", "add", "team", "git:origin")
    for words in (("pull",), ("push",), ("fetch",)):
        told = perun(*words, check=False)
        assert told.code not in (0, 2), words
        assert TOKEN not in told.out + told.err, words


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("git:https://host/perf.git", None),
        ("git:ssh://git@host/perf.git", None),
        ("postgresql://me@host/db", None),
        ("postgresql+psycopg://me:pw@host/db", "postgresql+psycopg://me:***@host/db"),
        ("see https://a.b/c and mail@host", None),
        ("at https://t@a/b, and https://u:p@c/d", "at https://***@a/b, and https://***:***@c/d"),
        (
            "s3://b/p?endpoint=https://h&access_key=K1&region=eu",
            "s3://b/p?endpoint=https://h&access_key=***&region=eu",
        ),
        ("no url: token=1 a:b@c", None),
    ],
)
def test_only_secrets_are_hidden(text: str, shown: str | None) -> None:
    assert without_secrets(text) == (shown or text)
