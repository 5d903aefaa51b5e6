"""A remote in an object store: `s3://bucket/prefix`, `gs://bucket/prefix`, `az://account/container/prefix`.

What is asked of a store is that a piece can be written on the condition that there is none, or that it has
a certain version: S3 (since 2024), those that speak its language (MinIO, R2, Ceph ...), Google Cloud Storage
and Azure do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlsplit

from perun.errors import UsageError
from perun.remote import aws
from perun.remote.cloud_errors import is_behind_the_end, named, was_cut
from perun.remote.contract import MAX_HEAD, MAX_PIECE, Listed, MissingPiece, Remote, checked, is_key

if TYPE_CHECKING:
    from obstore import UpdateVersion
    from obstore.store import AzureStore, ClientConfig, GCSStore, RetryConfig, S3Store

    Store = AzureStore | GCSStore | S3Store

T = TypeVar("T")

SCHEMES: Final = ("s3", "gs", "az")
_RETRIES: Final = 5
_ATTEMPTS: Final = 4
"""How often a piece is put, or fetched, where the line is cut in the middle of it."""
_PAUSE: Final = 0.2
"""Seconds before the second attempt, doubled before each further one."""
_CONNECTING: Final = "10 s"
_SILENCE: Final = "60 s"
"""How long is waited for what is fetched to go on."""
_PATIENCE: Final = 120
"""Seconds that a request may take, beside what its bytes take at :data:`_SLOWEST`."""
_SLOWEST: Final = 16 << 10
"""Bytes per second of the slowest line that a piece still gets through."""
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")


class Address(NamedTuple):
    """The parts of a URL. `account` is that of Azure; `endpoint` and `region` are those of S3, or empty."""

    scheme: str
    account: str
    bucket: str
    prefix: str
    endpoint: str = ""
    region: str = ""


def parsed(url: str) -> Address:
    """The parts of the URL of an object store.

    :raises UsageError: if it names no bucket, has a part that it cannot have, or an endpoint without TLS.
    """
    parts = urlsplit(url)
    account, folders = "", [parts.netloc, *(one for one in parts.path.split("/") if one)]
    if parts.scheme == "az":
        account, *folders = folders
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    allowed = {"endpoint", "region"} if parts.scheme == "s3" else set()
    if unknown := sorted(options.keys() - allowed):
        hint = "s3:// takes ?endpoint=URL and &region=NAME" if allowed else "leave it out"
        raise UsageError(f"{url!r}: a remote of this kind has no option {unknown[0]!r}", hint)
    if "@" in parts.netloc or parts.fragment or not folders or not all(folders) or ".." in folders:
        example = (
            "az://account/container/folder" if parts.scheme == "az" else f"{parts.scheme}://bucket/folder"
        )
        raise UsageError(f"{url!r} is no URL of a remote", f"e.g. {example}")
    address = Address(parts.scheme, account, folders[0], "/".join(folders[1:]), **options)
    if address.endpoint:
        _check_endpoint(address.endpoint)
    return address


def _check_endpoint(endpoint: str) -> None:
    parts = urlsplit(endpoint)
    if parts.username is not None or parts.password is not None:
        raise UsageError("the endpoint of the remote has a password in it", "leave it out")
    if not parts.hostname or parts.scheme not in ("http", "https"):
        raise UsageError(f"{endpoint!r} is no endpoint", "e.g. https://minio.example.org:9000")
    if parts.scheme == "http" and parts.hostname not in _LOCAL:
        raise UsageError(
            f"the endpoint {endpoint} has no TLS: whoever is on the way could read and change what is sent",
            "name it with https://",
        )


class CloudRemote(Remote):
    """Each piece is an object, whose name begins with the prefix of the URL.

    :param environ: the environment of the user, in which credentials may be, or where files with them are.
    :raises ModuleNotFoundError: if obstore is not installed.
    :raises PluginError: if the credentials need what is not installed.
    :raises UsageError: if the URL cannot be that of a remote, or the files of credentials cannot be read.
    """

    def __init__(self, url: str, environ: Mapping[str, str]) -> None:
        import obstore
        from obstore import exceptions

        self._url = url
        self._library = obstore
        self._exists = (exceptions.AlreadyExistsError, exceptions.PreconditionError)
        self._address = parsed(url)
        self._credentials = aws.found(environ) if self._address.scheme == "s3" else {}
        self._stores: dict[tuple[int, int], Store] = {}

    @property
    def url(self) -> str:
        """As the interface describes it."""
        return self._url

    def put(self, key: str, data: bytes) -> bool:
        """As the interface describes it. Where the line is cut it is tried again; if the first attempt has
        arrived after all, the piece counts as one that was there."""
        return self._again(checked(key), "written", lambda: self._create(key, data, _RETRIES))

    def get(self, key: str, limit: int = MAX_PIECE) -> bytes:
        """As the interface describes it."""
        return self._again(checked(key), "read", lambda: self._got(key, limit)[0])

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """As the interface describes it."""
        checked(key)

        def get() -> bytes:
            return bytes(self._library.get_range(self._store(), key, start=start, length=max(length, 1)))

        try:
            return self._again(key, "read", get)[:length]
        except _BehindTheEnd:
            return b""

    def list(self, prefix: str) -> Iterator[Listed]:
        """As the interface describes it; what else somebody put there is passed over."""

        def found() -> list[Listed]:
            pages = self._library.list(self._store(), prefix, chunk_size=1000)
            return [Listed(one["path"], one["size"]) for page in pages for one in page if is_key(one["path"])]

        yield from sorted(self._again(prefix, "listed", found))

    def replace(self, key: str, data: bytes, expected: bytes | None) -> bool:
        """As the interface describes it. What changes it is sent once only, so that the answer is sure."""
        checked(key)
        if expected is None:
            return self._again(key, "written", lambda: self._create(key, data, 0), attempts=1)
        while True:
            try:
                now, version = self._again(key, "read", lambda: self._got(key, MAX_HEAD))
            except MissingPiece:
                return False
            if now != expected:
                return False
            write = partial(self._library.put, self._store(len(data), 0), key, data, mode=version)
            # Where it changed since, it is read again: to what it was, that is to say.
            with suppress(_Changed):
                self._again(key, "written", write, attempts=1)
                return True

    def delete(self, key: str) -> None:
        """As the interface describes it."""
        with suppress(MissingPiece):
            self._again(checked(key), "removed", lambda: self._library.delete(self._store(), key))

    def _create(self, key: str, data: bytes, retries: int) -> bool:
        while True:
            try:
                self._library.put(self._store(len(data), retries), key, data, mode="create")
                return True
            except self._exists:
                # Some stores answer so, too, where another request for the name was under way, and failed.
                with suppress(FileNotFoundError):
                    self._library.head(self._store(), key)
                    return False

    def _got(self, key: str, limit: int) -> tuple[bytes, UpdateVersion]:
        """The content, and what stands for this version of it."""
        found = self._library.get(self._store(), key)
        meta = found.meta
        if meta["size"] > limit:
            raise self.too_large(key, limit)
        version: UpdateVersion = {}
        for name in ("e_tag", "version"):
            if meta[name] is not None:
                version[name] = meta[name]
        return bytes(found.bytes()), version

    def _store(self, sent: int = 0, retries: int = _RETRIES) -> Store:
        """The store, for requests that send so many bytes."""
        seconds = 0
        if sent:
            seconds = _PATIENCE
            while seconds * _SLOWEST < sent:
                seconds *= 2
        found = self._stores.get((seconds, retries))
        if found is None:
            found = _made(self._address, self._credentials, seconds, retries)
            self._stores[seconds, retries] = found
        return found

    def _again(self, key: str, done: str, work: Callable[[], T], attempts: int = _ATTEMPTS) -> T:
        """What `work` gives; it is repeated where the line is cut.

        :param done: what becomes of the piece, for messages.
        :raises _Changed: if a condition does not hold. :raises _BehindTheEnd: if a range begins there.
        :raises RemoteError: for all else, and MissingPiece where there is none.
        """
        from obstore.exceptions import BaseError

        for attempt in range(attempts):
            try:
                return work()
            except self._exists:
                raise _Changed from None
            except (BaseError, OSError) as problem:
                if is_behind_the_end(problem):
                    raise _BehindTheEnd from None
                if attempt + 1 == attempts or not was_cut(problem):
                    raise named(self, self._address.bucket, key, done, problem) from None
                time.sleep(_PAUSE * 2**attempt)
        raise AssertionError("the last attempt returns or raises")


class _BehindTheEnd(Exception):
    """There is nothing of the piece in the range."""


class _Changed(Exception):
    """The piece is not the one any more that it was written in the place of."""


def _made(address: Address, credentials: Mapping[str, Any], seconds: int, retries: int) -> Store:
    """The store of an address.

    :param seconds: how long a request may take. If 0, as long as something comes.
    """
    from obstore.store import AzureStore, GCSStore, S3Store

    client: ClientConfig = {"connect_timeout": _CONNECTING, "timeout": f"{seconds} s"}
    if not seconds:
        client |= {"timeout": "1 d", "read_timeout": _SILENCE}
    retry: RetryConfig = {"max_retries": retries, "retry_timeout": timedelta(seconds=60)}
    prefix = address.prefix or None
    if address.scheme == "gs":
        return GCSStore(address.bucket, prefix=prefix, client_options=client, retry_config=retry)
    if address.scheme == "az":
        return AzureStore(
            address.bucket,
            prefix=prefix,
            account_name=address.account,
            client_options=client,
            retry_config=retry,
        )
    options = {"disable_bulk_delete": True, **credentials}
    if address.endpoint:
        options["endpoint"] = address.endpoint
        if urlsplit(address.endpoint).scheme == "http":  # of this machine, as `parsed` has seen to
            client["allow_http"] = True
    if address.region:
        options["region"] = address.region
    return S3Store(address.bucket, prefix=prefix, client_options=client, retry_config=retry, **options)
