"""What one reads where an object store refuses, or cannot be reached."""

import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import pytest

from perun.core.errors import RemoteError
from perun.store.remote.cloud import named
from perun.store.remote.contract import Remote
from perun.store.remote.opening import opened
from perun.store.remote.sql import SqlRemote
from perun.store.remote.sql import named as named_by_sql

SECRET = "secret-of-tests"


class Refusing(BaseHTTPRequestHandler):
    """Answers every request with the error that the test has chosen, as S3 does."""

    status, code = 500, ""

    def log_message(self, *_args: object) -> None:
        pass

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = f"<Error><Code>{self.code}</Code><Message>{SECRET}?sig=abc</Message></Error>".encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = answer


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed: pip install obstore")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key-of-tests")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


@pytest.fixture
def refusing() -> Iterator[Callable[[int, str], str]]:
    """Start a server that refuses; gives its endpoint."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()

    def choose(status: int, code: str) -> str:
        server.RequestHandlerClass = type("Chosen", (Refusing,), {"status": status, "code": code})
        return f"http://127.0.0.1:{server.server_port}"

    yield choose
    server.shutdown()
    thread.join()
    server.server_close()


def at(endpoint: str, bucket: str = "team") -> Remote:
    return opened(f"s3://{bucket}/perf?endpoint={endpoint}&region=us-east-1", environ=os.environ)


@pytest.mark.parametrize("status, code, said", [
    (403, "InvalidAccessKeyId", "the server does not accept the credentials"),
    (403, "SignatureDoesNotMatch", "the server does not accept the credentials"),
    (400, "ExpiredToken", "the credentials have expired"),
    (403, "RequestTimeTooSkewed", "the clock of this machine differs too much"),
    (403, "AccessDenied", "packs/aa cannot be written"),
    (403, "QuotaExceeded", "the server has no room for it"),
    (301, "PermanentRedirect", "the bucket team is in another region"),
    (404, "NoSuchBucket", "there is no bucket or container team"),
    (418, "Teapot", "packs/aa cannot be written: .*Teapot"),
])  # fmt: skip
def test_what_the_server_refuses_is_named(refusing, status: int, code: str, said: str) -> None:
    remote = at(refusing(status, code))
    for use in (
        lambda: remote.put("packs/aa", b"x"),
        lambda: remote.replace("packs/aa", b"x", None),
    ):
        with pytest.raises(RemoteError, match=said) as error:
            use()
        shown = error.value.message + error.value.hint
        assert SECRET not in shown and "sig=" not in shown and "\n" not in shown
        assert error.value.message.startswith(remote.url) and error.value.hint


def test_what_may_not_be_read_is_named(refusing: Callable[[int, str], str]) -> None:
    remote = at(refusing(403, "AccessDenied"))
    for use in (
        lambda: remote.get("packs/aa"),
        lambda: remote.get_range("packs/aa", 0, 1),
        lambda: remote.replace("packs/aa", b"x", b"y"),
    ):
        with pytest.raises(RemoteError, match="you may not do that: packs/aa cannot be read"):
            use()
    with pytest.raises(RemoteError, match="packs/ cannot be listed"):
        list(remote.list("packs/"))


def test_a_bucket_that_is_not_there_is_no_empty_remote(s3: str) -> None:
    remote = at(s3, "missing")
    for use in (
        lambda: list(remote.list("packs/")),
        lambda: remote.get("packs/aa"),
        lambda: remote.put("packs/aa", b"x"),
        lambda: remote.replace("heads/gc", b"x", b"y"),
    ):
        with pytest.raises(RemoteError, match="there is no bucket or container missing"):
            use()


def test_a_server_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perun.store.remote.cloud._RETRIES", 0)
    with pytest.raises(RemoteError, match="the server cannot be reached"):
        list(at("http://127.0.0.1:9").list("packs/"))


def test_a_server_without_a_trusted_certificate_is_refused(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It speaks no TLS at all, while the URL asks for it."""
    monkeypatch.setattr("perun.store.remote.cloud._RETRIES", 0)
    with pytest.raises(RemoteError, match="no certificate that this machine trusts"):
        list(at(s3.replace("http://", "https://")).list("packs/"))


def test_missing_credentials_are_named(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perun.store.remote.cloud._RETRIES", 0)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    # The service that machines of Amazon ask.
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(RemoteError, match="no credentials were found") as error:
        list(at(s3).list("packs/"))
    assert "AWS_ACCESS_KEY_ID" in error.value.hint


@pytest.mark.parametrize("body", ["<Error><Message>secret</Message></Error>", '{"error": "secret"}'])
def test_the_answer_of_a_server_is_never_told(body: str) -> None:
    """However short what is before it is."""
    remote = opened("s3://team/perf?region=us-east-1")
    problem = Exception(f"Error performing PUT: Server returned status code: 418 I'm a teapot: {body}")
    told = named(remote, "team", "packs/aa", "written", problem)
    assert "418 I'm a teapot" in told.message and "secret" not in told.message + told.hint


# -- What one reads where a database refuses, or cannot be reached -----------------------------------


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
def test_what_postgresql_refuses_is_named(new_url, change: Callable[[str], str], said: str) -> None:
    with (
        opened(change(new_url("postgresql"))) as remote,
        pytest.raises(RemoteError, match=said) as error,
    ):
        remote.put("packs/aa", b"x")
    assert error.value.hint and "INSERT" not in error.value.message


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


@pytest.mark.parametrize("text, said", [
    ("failed: FATAL:  password authentication failed for user pw", "does not accept the credentials"),
    ("connection failed: fe_sendauth: no password supplied", "does not accept the credentials"),
    ("could not extend file base/5/16404: No space left on device", "packs/aa .* the disk of the"),
    ("attempt to write a readonly database", "packs/aa cannot be written: you may not"),
    ("permission denied for table perun_pieces", "packs/aa cannot be written: you may not"),
    ("database is locked", "others have used the database"),
    ("something else\nINSERT INTO perun_pieces", "packs/aa cannot be written: something else$"),
])  # fmt: skip
def test_what_drivers_say_is_told_in_words_of_the_user(tmp_path: object, text: str, said: str) -> None:
    with opened(f"sqlite:///{tmp_path}/x.db") as remote, pytest.raises(RemoteError, match=said):
        raise named_by_sql(remote, "packs/aa", "written", Exception(text))
