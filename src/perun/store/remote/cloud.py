"""A remote in an object store: `s3://bucket/prefix`, `gs://bucket/prefix`, `az://account/container/prefix`.

What is asked of a store is that a piece can be written on the condition that there is none, or that it has
a certain version: S3 (since 2024), those that speak its language (MinIO, R2, Ceph ...), Google Cloud Storage
and Azure do.
"""

from __future__ import annotations

import configparser
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlsplit

from perun.core.errors import PluginError, RemoteError, UsageError
from perun.core.extras import install_command
from perun.store.remote.contract import (
    AGAIN,
    MAX_HEAD,
    MAX_PIECE,
    MissingPiece,
    PieceInfo,
    Refusal,
    Remote,
    checked,
    is_key,
    refusal_in,
)

if TYPE_CHECKING:
    from obstore import UpdateVersion
    from obstore.store import AzureStore, ClientConfig, GCSStore, RetryConfig, S3Store

    Store = AzureStore | GCSStore | S3Store


# What object stores answer, in words of who uses the remote.
#
# The library tells what went wrong by a few classes and a long text: a line, the answer of the server, and
# where in its sources it was. The first line and the code of the answer are what is told here; the rest could
# hold what nobody else should read, such as the signature of a URL.

_CODE: Final = re.compile(r"<Code>(\w{1,60})</Code>")
_SECRET: Final = re.compile(r"\?\S*|//[^/@\s]*@")
_BODY: Final = re.compile(r"\n|:? *[<{]")
"""Where the answer of the server, in XML or JSON, begins in the text."""
_ROOM: Final = 200


_CREDENTIALS: Final = (
    "S3 looks for them in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY and in ~/.aws, Google Cloud in "
    "GOOGLE_APPLICATION_CREDENTIALS, Azure in AZURE_STORAGE_ACCOUNT_KEY"
)
_ANSWERS: Final = (
    Refusal.of(
        r"RequestTimeTooSkewed",
        "the clock of this machine differs too much from that of the server",
        "set the clock: signatures of requests have the time in them",
    ),
    Refusal.of(
        r"NoSuchBucket|ContainerNotFound|bucket does not exist|container does not exist",
        "there is no bucket or container {bucket}",
        "make it with the tools of its provider, or correct the URL: perun remote remove, perun remote add",
    ),
    Refusal.of(
        r"ExpiredToken|TokenRefreshRequired|token.{0,20}expired",
        "the credentials have expired",
        "log in again, as with the tools of the provider",
    ),
    Refusal.of(
        r"InvalidAccessKeyId|SignatureDoesNotMatch|InvalidToken|AuthenticationFailed|InvalidClientTokenId|"
        r"AuthFailure|invalid_grant",
        "the server does not accept the credentials",
        f"see that they are right; {_CREDENTIALS}",
    ),
    Refusal.of(
        r"169\.254\.|metadata\.google|latest/api/token|[Mm]issing credentials|NoCredentials|"
        r"computeMetadata|identity/oauth2",
        "no credentials were found on this machine",
        _CREDENTIALS,
    ),
    Refusal.of(
        r"QuotaExceeded|StorageFull|InsufficientStorage|EntityTooLarge|status: 507|507 Insufficient|"
        r"InsufficientCapacity|AccountOverQuota",
        "{key} cannot be written: the server has no room for it",
        "make room there, and push again: what was sent is not sent again",
    ),
    Refusal.of(
        r"PermanentRedirect|AuthorizationHeaderMalformed|301 Moved|incorrectly configured region|"
        r"IllegalLocationConstraint",
        "the bucket {bucket} is in another region",
        "name it in the URL, e.g. s3://{bucket}/perf?region=eu-central-1, or in AWS_REGION",
    ),
    Refusal.of(
        r"NotImplemented|not support.{0,30}condition",
        "the server cannot write a piece on the condition that there is none, so that writers would "
        "overwrite each other",
        "use one that can: S3, Google Cloud Storage, Azure, MinIO, R2 and Ceph do",
    ),
    Refusal.of(
        r"BadScheme|builder error",
        "the endpoint has no TLS",
        "name it with https:// (AWS_ALLOW_HTTP=true uses it all the same)",
    ),
    Refusal.of(
        r"[Cc]ertificate|UnknownIssuer|InvalidContentType|CorruptMessage|HandshakeFailure",
        "the server has no certificate that this machine trusts",
        "see that the URL is right; a certificate of your own authority belongs to those of the system "
        "(update-ca-certificates)",
    ),
    Refusal.of(
        r"kind: Connect|dns error|Connection refused|[Nn]etwork is unreachable",
        "the server cannot be reached",
        "see that the network is there, and that the URL is right",
    ),
    Refusal.of(
        r"kind: Timeout|operation timed out|TimedOut",
        "the server did not answer in time",
        AGAIN,
    ),
    Refusal.of(
        r"AccessDenied|AuthorizationFailure|AuthorizationPermissionMismatch|InsufficientAccountPermissions|"
        r"403 Forbidden|status: 403|401 Unauthorized|status: 401",
        "you may not do that: {key} cannot be {done}",
        "ask who owns the bucket; `perun pull` needs to list and read only, `perun push` to write, too",
    ),
)


def named(remote: Remote, bucket: str, key: str, done: str, problem: Exception) -> RemoteError:
    """The error that tells what an exception of the library is about.

    :param done: what was to become of the piece: read, written, listed or removed.
    """
    text = str(problem)
    if found := refusal_in(remote, _ANSWERS, text, bucket=bucket, key=key, done=done):
        return found
    if isinstance(problem, FileNotFoundError):
        return remote.missing(key)
    return RemoteError(f"{remote.url}: {key} cannot be {done}: {_said(text)}", AGAIN)


def was_cut(problem: Exception) -> bool:
    """Whether the line was cut during a request, so that another attempt may succeed."""
    text = str(problem)
    return "HttpError" in text and "kind: Connect" not in text and "builder error" not in text


def is_behind_the_end(problem: Exception) -> bool:
    """Whether the range that was asked for begins where the object has ended."""
    return "status: 416" in str(problem)


def _said(text: str) -> str:
    code = _CODE.search(text)
    first = _SECRET.sub("", _BODY.split(text, 1)[0])
    return f"{first[:_ROOM]}{f' ({code[1]})' if code else ''}"


# Credentials of S3 from where the tools of Amazon have them: the environment, `~/.aws`, what boto3 knows.
#
# The library of object stores finds those of the environment, of containers and of machines of Amazon by
# itself. What is read here goes to it alone, and into no message.

_FOUND_BY_LIBRARY: Final = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_SKIP_SIGNATURE",
)
_BY_BOTO3: Final = ("sso_session", "sso_start_url", "role_arn", "credential_process", "login_session")
"""Settings of a profile whose credentials some program, or another server, gives."""
_KEYS: Final = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
}


def found(environ: Mapping[str, str]) -> dict[str, Any]:
    """The options of a store that carry the credentials, and the region, of the user's profile.

    :param environ: says which profile, and where its files are, if not in `~/.aws`.
    :raises UsageError: if the profile that `AWS_PROFILE` names is not there, or the files cannot be read.
    :raises PluginError: if only boto3 knows how to get its credentials, and it is not installed.
    """
    settings = _profile(environ)
    region = {}
    if "region" in settings and not environ.get("AWS_REGION") and not environ.get("AWS_DEFAULT_REGION"):
        region["region"] = settings["region"]
    if any(environ.get(name) for name in _FOUND_BY_LIBRARY):
        return dict(region)
    if "aws_access_key_id" in settings:
        return region | {ours: settings[theirs] for theirs, ours in _KEYS.items() if theirs in settings}
    if any(name in settings for name in _BY_BOTO3):
        return region | {"credential_provider": _of_boto3(environ)}
    return dict(region)


def _profile(environ: Mapping[str, str]) -> dict[str, str]:
    name = environ.get("AWS_PROFILE") or environ.get("AWS_DEFAULT_PROFILE") or "default"
    home = Path(environ.get("HOME") or Path.home(), ".aws")
    config = Path(environ.get("AWS_CONFIG_FILE") or home / "config")
    credentials = Path(environ.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials")
    settings: dict[str, str] = {}
    for path, section in (config, name if name == "default" else f"profile {name}"), (credentials, name):
        read = configparser.RawConfigParser(strict=False)
        try:
            read.read_string(path.read_text("utf-8"), str(path))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, configparser.Error) as problem:
            # The text of a line could be a secret.
            raise UsageError(
                f"{path} cannot be read: {type(problem).__name__}", "see `aws configure`, or correct the file"
            ) from None
        if read.has_section(section):
            settings |= read.items(section)
    if not settings and environ.get("AWS_PROFILE"):
        raise UsageError(
            f"AWS_PROFILE names {name!r}, which neither {config} nor {credentials} has",
            "make it: aws configure --profile NAME, or name another one",
        )
    return settings


def _of_boto3(environ: Mapping[str, str]) -> object:
    try:
        import boto3
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ModuleNotFoundError:
        raise PluginError(
            "the credentials of the profile of AWS come from another server or program, which boto3 asks",
            f"install it: {install_command('s3')} boto3",
        ) from None
    return Boto3CredentialProvider(boto3.Session(profile_name=environ.get("AWS_PROFILE")))


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
        self._credentials = found(environ) if self._address.scheme == "s3" else {}
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

    def list(self, prefix: str) -> Iterator[PieceInfo]:
        """As the interface describes it; what else somebody put there is passed over."""

        def found() -> list[PieceInfo]:
            pages = self._library.list(self._store(), prefix, chunk_size=1000)
            return [
                PieceInfo(one["path"], one["size"]) for page in pages for one in page if is_key(one["path"])
            ]

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
