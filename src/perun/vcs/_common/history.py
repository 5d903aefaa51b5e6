"""What git says of HEAD, of versions, and of what two commits differ by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from perun.core.errors import VersionControlError
from perun.core.process.git import GitCommand
from perun.plugin.versions import FileDiff, MinorVersion

# Reading what HEAD is, and versions from `git log`: six fields for each, every field ended by NUL.

SUBJECT: Final = "%s"
MESSAGE: Final = "%B"

_FIELDS: Final = len(MinorVersion._fields)
_LOG_OPTIONS: Final = ("--no-ext-diff", "--no-textconv", "--date=format-local:%Y-%m-%d %H:%M:%S")
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


def walk(git: GitCommand, heads: Sequence[str], description: str, ordered: bool) -> Iterator[MinorVersion]:
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
    return ("log", "-z", f"--format=%cd%x00%an%x00%ae%x00%H%x00{description}%x00%P", *_LOG_OPTIONS)


# What two commits differ by, file by file.

CONTEXT: Final = 3
"""Lines around each change."""
MOST: Final = 32 << 20
"""Bytes of patches that are read; the files of what is beyond them have none."""
_DIFF_OPTIONS: Final = (
    "--no-ext-diff",
    "--no-textconv",
    "--diff-algorithm=default",
    "--ignore-submodules=none",
)
"""What settings that have names of the user's would change: of drivers, and of single submodules."""


def between(git: GitCommand, first: str, second: str) -> list[FileDiff]:
    """The files in which the second commit differs from the first.

    :raises VersionControlError: if one of them is unknown.
    """
    patches = iter(_patches(git, first, second))
    return [
        FileDiff(old, new, "\n".join(next(patches, "") for _ in range(count)))
        for old, new, count in _names(
            git.ask("diff", *_DIFF_OPTIONS, "--name-status", "-z", first, second, "--")
        )
    ]


def _names(answer: str) -> Iterator[tuple[str, str, int]]:
    """The old and the new path of each file, and how many patches it has."""
    words = iter(answer.split("\0"))
    for status in words:
        if not status:
            return
        path = next(words)
        if status[0] in "RC":
            yield path, next(words), 1
        else:  # where a file becomes a link, one is deleted and one is new
            yield ("" if status == "A" else path), ("" if status == "D" else path), 2 if status == "T" else 1


def _patches(git: GitCommand, first: str, second: str) -> list[str]:
    """The hunks of each file in the order of the names; those of the last one may lack their end."""
    pieces: list[bytes] = []
    size = 0
    for piece in git.stream("diff", *_DIFF_OPTIONS, f"--unified={CONTEXT}", "--patch", first, second, "--"):
        pieces.append(piece)
        size += len(piece)
        if size > MOST:
            break
    # Only heads of files begin a line so: all others begin with a mark.
    parts = (b"\n" + b"".join(pieces)).split(b"\ndiff --git ")[1:]
    return ["".join(map(_text, part.partition(b"\n@@")[1:])).lstrip("\n") for part in parts]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
