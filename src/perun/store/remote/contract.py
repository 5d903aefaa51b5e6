"""What each kind of remote offers: pieces of bytes by name, of which only heads ever change."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, Final, NamedTuple, Self

from perun.core.errors import RemoteError

_KEY: Final = re.compile(r"(?!.*\.\.)[a-z0-9][a-z0-9._-]{0,127}(/[a-z0-9][a-z0-9._-]{0,127}){0,3}")
MAX_HEAD: Final = 1 << 20
"""Bytes that a head has at most."""
MAX_PIECE: Final = 1 << 31
"""Bytes of the largest piece that is read: the limit of a single profile, and some room."""


class MissingPiece(RemoteError):
    """The remote has no piece of this name."""


class PieceInfo(NamedTuple):
    """A piece of a remote: its name, and its size in bytes."""

    key: str
    size: int


class Remote(ABC):
    """A set of named pieces of bytes. Every method may be called by several threads at once.

    What is put is there wholly or not at all, whatever becomes of the process that puts it, and whoever lists
    or gets afterwards, from any machine, sees it. Errors are `RemoteError`s that name the remote.
    """

    parallel: ClassVar[int] = 8
    """How many pieces are sent or fetched at once."""

    @property
    @abstractmethod
    def url(self) -> str:
        """Where it is, without anything secret."""

    @abstractmethod
    def put(self, key: str, data: bytes) -> bool:
        """Make the piece, and tell whether it is new: one that exists is left as it is."""

    @abstractmethod
    def get(self, key: str, limit: int = MAX_PIECE) -> bytes:
        """The whole piece.

        :raises MissingPiece: if there is none.
        :raises RemoteError: if it has more than `limit` bytes, none of which are kept.
        """

    def get_many(self, keys: Sequence[str], limit: int = MAX_PIECE) -> Iterator[tuple[str, bytes]]:
        """The pieces, in this order, each with its name; several are fetched at once.

        :raises MissingPiece: if one is missing; those before it were yielded.
        """
        with ThreadPoolExecutor(self.parallel) as pool:
            found = [pool.submit(self.get, key, limit) for key in keys]
            try:
                for key, data in zip(keys, found, strict=True):
                    yield key, data.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    @abstractmethod
    def get_range(self, key: str, start: int, length: int) -> bytes:
        """`length` bytes of the piece from `start` (from 0) on; fewer where it ends before."""

    @abstractmethod
    def list(self, prefix: str) -> Iterator[PieceInfo]:
        """The pieces whose names begin with the prefix, which ends with `/`, ordered by name."""

    @abstractmethod
    def replace(self, key: str, data: bytes, expected: bytes | None) -> bool:
        """Make `data` the content of a head if that is `expected` now (None: if there is none), and tell
        whether.

        Of several that expect the same, one succeeds.

        :raises RemoteError: also where the answer was lost on the line, so that nobody knows whether it did.
        """

    @abstractmethod
    def delete(self, key: str) -> None:
        """Remove the piece; nothing happens where there is none."""

    def sweep(self) -> None:  # noqa: B027 - most leave nothing
        """Remove what killed processes left unfinished, as far as certainly nobody goes on with it."""

    def close(self) -> None:  # noqa: B027 - most need none
        """Give back connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def too_large(self, key: str, limit: int) -> RemoteError:
        """The error for a piece that is larger than what is accepted."""
        return RemoteError(
            f"{self.url}: {key} has more than {limit} bytes, the most that is accepted",
            "set profiles.max_size higher if the profiles of this remote are that large",
        )

    def missing(self, key: str) -> MissingPiece:
        """The error for a piece that is not there."""
        return MissingPiece(f"{self.url}: there is no {key}", "restore it from a copy of the remote")


def checked(key: str) -> str:
    """The name, if a piece can have it.

    :raises ValueError: if it cannot: names come from Perun, or are checked where they come from a remote.
    """
    if not is_key(key):
        raise ValueError(f"no name of a piece: {key!r}")
    return key


def is_key(key: str) -> bool:
    """Whether a piece can have this name:

    parts of small letters, digits, `.`, `-` and `_`, none of them `..`.
    """
    return _KEY.fullmatch(key) is not None


# What holds a remote refuses, told in words of who uses it: tables of what is known of each kind.

AGAIN: Final = "try again: what was sent or fetched is not sent or fetched again"
"""The hint where nothing better is known."""


class Refusal(NamedTuple):
    """What is told where a pattern is found in an answer; names in braces are replaced."""

    pattern: re.Pattern[str]
    message: str
    hint: str

    @classmethod
    def of(cls, pattern: str, message: str, hint: str) -> Refusal:
        """The refusal with the pattern compiled."""
        return cls(re.compile(pattern), message, hint)


def refusal_in(remote: Remote, known: Iterable[Refusal], text: str, **values: str) -> RemoteError | None:
    """The error of the first refusal whose pattern is in the text of an answer; None if there is none.

    :param values: what is put in place of the names.
    """
    for one in known:
        if one.pattern.search(text):
            message = one.message.format(**values)
            return RemoteError(f"{remote.url}: {message}", one.hint.format(**values))
    return None
