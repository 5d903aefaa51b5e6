"""What every kind of remote keeps to."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from perun.core import atomic
from perun.core.errors import RemoteError, UsageError
from perun.store.remote.contract import MissingPiece, PieceInfo, Remote
from perun.store.remote.opening import opened

WRITERS = Path(__file__).with_name("writers.py")


def test_pieces_are_as_they_were_put(remote: Remote) -> None:
    content = bytes(range(256)) * 300
    assert remote.put("packs/aa", content) and remote.get("packs/aa") == content
    assert remote.get_range("packs/aa", 256, 3) == b"\0\1\2"
    assert remote.get_range("packs/aa", len(content) - 2, 100) == b"\xfe\xff"


def test_a_piece_that_exists_is_left_alone(remote: Remote) -> None:
    assert remote.put("packs/aa", b"first") and not remote.put("packs/aa", b"second")
    assert remote.get("packs/aa") == b"first"


def test_an_empty_remote_has_nothing(remote: Remote) -> None:
    assert list(remote.list("packs/")) == []
    for get in (lambda: remote.get("packs/aa"), lambda: remote.get_range("packs/aa", 0, 1)):
        with pytest.raises(MissingPiece, match="packs/aa"):
            get()
    remote.delete("packs/aa")


def test_pieces_are_listed_by_name(remote: Remote) -> None:
    for name in ("packs/b", "packs/a", "registers/c", "packs/a.b", "packs/a_b"):
        remote.put(name, name.encode())
    assert list(remote.list("packs/")) == [
        PieceInfo("packs/a", 7), PieceInfo("packs/a.b", 9), PieceInfo("packs/a_b", 9), PieceInfo("packs/b", 7)
    ]  # fmt: skip


@pytest.mark.parametrize("made_before", [False, True])
def test_the_language_of_a_database_orders_nothing(postgresql: str, made_before: bool, monkeypatch) -> None:
    """In English `_` comes before `-`; `made_before`: by a release that did not say how to order."""
    import psycopg

    name = "t" + os.urandom(6).hex()
    url = postgresql.replace("/postgres?", f"/{name}?")
    with psycopg.connect(postgresql, autocommit=True) as connection:
        form = "TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'"
        language = "LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"
        connection.execute(f"CREATE DATABASE {name} {form} {language}".encode())
    with psycopg.connect(url, autocommit=True) as connection:
        (order,) = connection.execute("SELECT 'a-b' < 'a_b'").fetchone() or ()
        assert not order
        if made_before:
            columns = "key VARCHAR(600) PRIMARY KEY, data BYTEA NOT NULL"
            connection.execute(f"CREATE TABLE perun_pieces ({columns})".encode())
    monkeypatch.setattr("perun.store.remote.sql._AT_ONCE", 2)
    names = [f"packs/{one}" for one in ("ab", "a-c", "a.b", "a_b", "a", "a1", "b-a", "ba", "a-b")]
    with opened(url) as remote:
        for one in names:
            remote.put(one, b"x")
        assert [one.key for one in remote.list("packs/")] == sorted(names)


def test_long_lists_are_whole(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perun.store.remote.sql._AT_ONCE", 10)
    names = [f"registers/{number:05}" for number in range(25)]
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda name: remote.put(name, b"x"), names))
    assert [key for key, _size in remote.list("registers/")] == names


def test_what_is_deleted_is_gone(remote: Remote) -> None:
    remote.put("packs/aa", b"x")
    remote.put("packs/ab", b"x")
    remote.delete("packs/aa")
    assert [key for key, _size in remote.list("packs/")] == ["packs/ab"]
    assert remote.put("packs/aa", b"again")


def test_a_head_changes_only_from_what_is_expected(remote: Remote) -> None:
    assert not remote.replace("heads/gc", b"2", expected=b"1")
    assert remote.replace("heads/gc", b"1", expected=None)
    assert not remote.replace("heads/gc", b"2", expected=None)
    assert not remote.replace("heads/gc", b"3", expected=b"2")
    assert remote.replace("heads/gc", b"2", expected=b"1") and remote.get("heads/gc") == b"2"


def test_too_large_pieces_are_refused(remote: Remote) -> None:
    remote.put("packs/aa", b"12345")
    assert remote.get("packs/aa", limit=5) == b"12345"
    with pytest.raises(RemoteError, match="more than 4 bytes"):
        remote.get("packs/aa", limit=4)


def test_several_pieces_are_fetched_in_their_order(remote: Remote) -> None:
    names = [f"registers/{number}" for number in (5, 3, 4, 1)]
    for name in names:
        remote.put(name, name.encode())
    assert list(remote.get_many(names)) == [(name, name.encode()) for name in names]
    assert list(remote.get_many([])) == []
    with pytest.raises(MissingPiece, match="registers/2"):
        list(remote.get_many([*names, "registers/2"]))


def test_ranges_end_where_the_piece_does(remote: Remote) -> None:
    remote.put("packs/aa", b"12345")
    assert remote.get_range("packs/aa", 5, 1) == b"" and remote.get_range("packs/aa", 100, 10) == b""
    assert remote.get_range("packs/aa", 2, 0) == b"" and remote.get_range("packs/aa", 0, 5) == b"12345"


NO_NAMES = ["../aa", "packs/../../aa", "/aa", "packs//a", "Packs/a", "packs/", "a\nb", ".lock", ""]


def test_names_never_lead_elsewhere(remote: Remote) -> None:
    for key in NO_NAMES:
        for use in (remote.get, remote.delete, lambda key: remote.put(key, b"x")):
            with pytest.raises(ValueError, match="no name of a piece"):
                use(key)


def at_once(url: str, folder: Path, work: str, writers: int, times: int) -> str:
    """What so many processes print that use the remote at once; `writers.py` says what each does."""
    command = [sys.executable, str(WRITERS), work, url, str(folder), str(writers), str(times)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=600).stdout


@pytest.mark.parametrize("times", [2, pytest.param(12, marks=pytest.mark.slow)])
def test_of_several_writers_one_changes_a_head(url: str, remote: Remote, tmp_path: Path, times: int) -> None:
    at_once(url, tmp_path, "count_up", 4, times)
    assert remote.get("heads/count") == b"%d" % (4 * times)


def test_of_several_writers_of_a_name_one_makes_the_piece(url: str, remote: Remote, tmp_path: Path) -> None:
    made = dict(line.split() for line in at_once(url, tmp_path, "put_same", 6, 5).splitlines())
    assert sorted(made) == list("01234")
    for number, writer in made.items():
        assert remote.get(f"packs/{number}") == writer.encode() * 1000


@pytest.mark.parametrize("times", [4, pytest.param(50, marks=pytest.mark.slow)])
def test_eight_writers_lose_nothing(url: str, remote: Remote, tmp_path: Path, times: int) -> None:
    at_once(url, tmp_path, "put", 8, times)
    assert [size for _key, size in remote.list("registers/")] == 8 * times * [1000]


@pytest.mark.parametrize("before", [1, *(pytest.param(pieces, marks=pytest.mark.slow) for pieces in (2, 7))])
def test_a_killed_writer_leaves_whole_pieces(url: str, remote: Remote, tmp_path: Path, before: int) -> None:
    """It is killed during one of its pieces: after `before` of them, at once."""
    command = [sys.executable, str(WRITERS), "put_until_killed", url, str(tmp_path), "1", "1000000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as writer:
        assert writer.stdout is not None
        for _ in range(before):
            writer.stdout.readline()
        os.killpg(writer.pid, signal.SIGKILL)
    found = [key for key, _size in remote.list("packs/")]
    assert len(found) >= before
    for key in found:
        number = int(key.removeprefix("packs/"))
        assert remote.get(key) == b"%07d" % number * 30_000
    assert remote.put(f"packs/{len(found)}", b"x")


def test_a_folder_that_is_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RemoteError, match="file: packs/aa cannot be written"):
        opened(f"file://{tmp_path}/file").put("packs/aa", b"x")


def test_what_a_killed_process_left_in_a_folder_is_removed(tmp_path: Path) -> None:
    remote = opened(f"file://{tmp_path}/not/there/yet")
    assert remote.replace("heads/gc", b"1", None)
    remote.put("packs/aa", b"x")
    left = tmp_path / f"not/there/yet/packs/{atomic.TEMPORARY_PREFIX}{2**22 + 1}-{atomic.system()}-{'0' * 12}"
    own = left.with_name(atomic.temporary_name())
    for path in (left, own):
        path.write_bytes(b"unfinished")
    remote.sweep()
    assert {path.name for path in left.parent.iterdir()} == {"aa", own.name}


def test_links_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    remote = opened(f"file://{tmp_path}/remote")
    remote.put("packs/aa", b"x")
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "remote/packs/bb").symlink_to(tmp_path / "secret")
    assert [key for key, _size in remote.list("packs/")] == ["packs/aa"]
    with pytest.raises(RemoteError, match="symbolic link"):
        remote.get("packs/bb")


@pytest.mark.parametrize("url, said", [
    ("postgresql://me:secret@host/db", "has a password"),
    ("postgresql://host/db?password=secret", "has a password"),
    ("ftp://host/db", "no URL of a remote"),
    ("/srv/perf", "no URL of a remote"),
    ("file://", "no URL of a remote"),
    ("file://otherhost/srv", "no URL of a remote"),
    ("http://[", "no URL"),
    ("s3://", "no URL of a remote"),
    ("s3://key:secret@bucket/perf", "has a password"),
    ("s3://key@bucket/perf", "has a password or a token"),
    ("s3://bucket/../other", "no URL of a remote"),
    ("s3://bucket/perf?secret_access_key=secret", "has a password"),
    ("s3://bucket/perf?profile=team", "no option 'profile'"),
    ("gs://bucket/perf?region=eu", "no option 'region'"),
    ("s3://bucket/perf?endpoint=minio.example.org", "is no endpoint"),
    ("s3://bucket/perf?endpoint=https://me:secret@minio.example.org", "has a password"),
    ("s3://bucket/perf?endpoint=http://minio.example.org:9000", "has no TLS"),
    ("az://account", "no URL of a remote"),
    ("git:", "no URL of a remote"),
    ("git:--upload-pack=touch", "no URL of a remote"),
    ("git:ext::sh -c true", "no URL of a remote"),
    ("git:http://host/perf.git", "no URL of a remote"),
    ("git:https://me:secret@host/perf.git", "has a password"),
])  # fmt: skip
def test_what_is_no_url_of_a_remote(url: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as error:
        opened(url)
    assert "secret" not in error.value.message + error.value.hint


def test_a_database_that_is_not_there_is_named_without_a_traceback(tmp_path: Path) -> None:
    said = r"nowhere/x\.db: packs/aa cannot be written: unable to open database file"
    with pytest.raises(RemoteError, match=said), opened(f"sqlite:///{tmp_path}/nowhere/x.db") as remote:
        remote.put("packs/aa", b"x")


def test_what_is_no_database_is_named(tmp_path: Path, new_url: Callable[[str], str]) -> None:
    (tmp_path / "remote.db").write_bytes(b"no database" * 100)
    with pytest.raises(RemoteError, match="not a database"), opened(new_url("sqlite")) as remote:
        list(remote.list("packs/"))
