"""What one reads where a database refuses, or cannot be reached."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import pytest

from perun.core.errors import RemoteError
from perun.store.remote.opening import opened
from perun.store.remote.sql import SqlRemote, named

READ_ONLY = quote(" -cdefault_transaction_read_only=on")


@pytest.mark.slow
@pytest.mark.parametrize(
    "change, said",
    [
        (lambda url: url.replace("user=", "user=no"), "role .* does not exist"),
        (lambda url: url.replace("/postgres?", "/nosuch?"), "database .nosuch. does not exist"),
        (lambda url: url.replace("?host=", "?host=/nowhere"), "the server cannot be reached"),
        (lambda _: "postgresql://127.0.0.1:9/db", "the server cannot be reached"),
        (lambda url: url + READ_ONLY, "cannot be written: you may not do that there"),
        (lambda url: url.replace("path%3D", "path%3Dno"), "cannot be written: you may not do that there"),
    ],
    ids=["user", "database", "socket", "port", "read-only", "schema"],
)
def test_what_postgresql_refuses_is_named(
    new_url: Callable[[str], str], change: Callable[[str], str], said: str
) -> None:
    with (
        opened(change(new_url("postgresql"))) as remote,
        pytest.raises(RemoteError, match=said) as error,
    ):
        remote.put("packs/aa", b"x")
    assert error.value.hint
    assert "INSERT" not in error.value.message


def test_a_full_database_is_named(tmp_path: object) -> None:
    remote = opened(f"sqlite:///{tmp_path}/x.db")
    assert isinstance(remote, SqlRemote)
    remote.put("packs/aa", b"x")
    with remote, remote._engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count = 10")
        connection.close()  # the pool gives the same connection to the next
        with pytest.raises(RemoteError, match="packs/bb cannot be written: the disk of the database is full"):
            remote.put("packs/bb", b"x" * 100_000)
    with opened(f"sqlite:///{tmp_path}/x.db") as again:
        assert again.get("packs/aa") == b"x"


@pytest.mark.parametrize(
    "text, said",
    [
        ("failed: FATAL:  password authentication failed for user pw", "does not accept the credentials"),
        ("connection failed: fe_sendauth: no password supplied", "does not accept the credentials"),
        ("could not extend file base/5/16404: No space left on device", "packs/aa .* the disk of the"),
        ("attempt to write a readonly database", "packs/aa cannot be written: you may not"),
        ("permission denied for table perun_pieces", "packs/aa cannot be written: you may not"),
        ("database is locked", "others have used the database"),
        ("something else\nINSERT INTO perun_pieces", "packs/aa cannot be written: something else$"),
    ],
)
def test_what_drivers_say_is_told_in_words_of_the_user(tmp_path: object, text: str, said: str) -> None:
    with opened(f"sqlite:///{tmp_path}/x.db") as remote, pytest.raises(RemoteError, match=said):
        raise named(remote, "packs/aa", "written", Exception(text))
