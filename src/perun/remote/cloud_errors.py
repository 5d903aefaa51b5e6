"""What object stores answer, in words of who uses the remote.

The library tells what went wrong by a few classes and a long text: a line, the answer of the server, and
where in its sources it was. The first line and the code of the answer are what is told here; the rest could
hold what nobody else should read, such as the signature of a URL.
"""

from __future__ import annotations

import re
from typing import Final

from perun.errors import RemoteError
from perun.remote.contract import Remote
from perun.remote.refusals import AGAIN, Refusal, told

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
    if found := told(remote, _ANSWERS, text, bucket=bucket, key=key, done=done):
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
