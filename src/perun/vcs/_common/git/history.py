"""Reading what HEAD is, and versions from `git log`: six fields for each, every field ended by NUL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from perun.errors import VersionControlError
from perun.plugin.api import MinorVersion
from perun.process.git import GitCommand

SUBJECT: Final = "%s"
MESSAGE: Final = "%B"

_FIELDS: Final = len(MinorVersion._fields)
_OPTIONS: Final = ("--no-ext-diff", "--no-textconv", "--date=format-local:%Y-%m-%d %H:%M:%S")
_UTC: Final = {"TZ": "UTC"}


def is_checksum(name: str) -> bool:
    """Whether it is a full name of an object, in a repository of SHA-1 or of SHA-256."""
    return len(name) in (40, 64) and not name.strip("0123456789abcdef")


def head_checksum(git: GitCommand) -> str:
    """The checksum of HEAD.

    :raises VersionControlError: if there is no commit yet.
    """
    answer = git.attempt("rev-parse", "--verify", "HEAD^{commit}")
    if answer.code == 0:
        return answer.text
    if git.attempt("rev-parse", "--verify", "--quiet", "HEAD").code == 1:
        raise VersionControlError(
            f"the git repository in {git.folder} has no commits yet", "make the first commit: git commit"
        )
    raise git.failure("rev-parse", answer)


def walk(
    git: GitCommand, heads: Sequence[str], description: str, ordered: bool
) -> Iterator[MinorVersion]:
    """The commits `heads`, of which there is one at least, and all their ancestors, newest first.

    :param description: :data:`SUBJECT` or :data:`MESSAGE`.
    :param ordered: children before parents whatever their dates. Git must see the whole history before it
        knows that order, unless a commit-graph file tells it (`git commit-graph write --reachable`).
    """
    order = ("--date-order",) if ordered else ()
    return parse(git.stream(*_log(description), *order, "--end-of-options", *heads, "--", env=_UTC))


def one(git: GitCommand, checksum: str) -> MinorVersion:
    """The version of that checksum, with its whole message."""
    pieces = git.stream(*_log(MESSAGE), "--no-walk", "--end-of-options", checksum, "--", env=_UTC)
    (version,) = parse(pieces)
    return version


def parse(pieces: Iterable[bytes]) -> Iterator[MinorVersion]:
    """Versions out of the pieces of an output, each as soon as it is complete.

    Bytes that are not UTF-8 become U+FFFD; git has converted what says which encoding it is in.
    """
    unfinished: list[bytes] = []
    fields: list[str] = []
    for piece in pieces:
        end = piece.rfind(b"\0")
        if end < 0:
            unfinished.append(piece)
            continue
        unfinished.append(piece[:end])
        fields += b"".join(unfinished).decode("utf-8", "replace").split("\0")
        unfinished = [piece[end + 1 :]]
        complete = len(fields) - len(fields) % _FIELDS
        # Column by column: this loop is what `perun log` costs on a long history.
        dates, authors, emails, checksums, texts, parents = (
            fields[column:complete:_FIELDS] for column in range(_FIELDS)
        )
        descriptions = [text.strip("\n") for text in texts]
        yield from map(
            MinorVersion, dates, authors, emails, checksums, descriptions, map(tuple, map(str.split, parents))
        )
        del fields[:complete]


def _log(description: str) -> tuple[str, ...]:
    return ("log", "-z", f"--format=%cd%x00%an%x00%ae%x00%H%x00{description}%x00%P", *_OPTIONS)
