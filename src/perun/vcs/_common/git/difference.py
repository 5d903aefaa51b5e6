"""What two commits differ by, file by file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from perun.plugin.api import FileDiff
from perun.process.git import GitCommand

CONTEXT: Final = 3
"""Lines around each change."""
MOST: Final = 32 << 20
"""Bytes of patches that are read; the files of what is beyond them have none."""
_OPTIONS: Final = ("--no-ext-diff", "--no-textconv", "--diff-algorithm=default", "--ignore-submodules=none")
"""What settings that have names of the user's would change: of drivers, and of single submodules."""


def between(git: GitCommand, first: str, second: str) -> list[FileDiff]:
    """The files in which the second commit differs from the first.

    :raises VersionControlError: if one of them is unknown.
    """
    patches = iter(_patches(git, first, second))
    return [
        FileDiff(old, new, "\n".join(next(patches, "") for _ in range(count)))
        for old, new, count in _names(git.ask("diff", *_OPTIONS, "--name-status", "-z", first, second, "--"))
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
    for piece in git.stream("diff", *_OPTIONS, f"--unified={CONTEXT}", "--patch", first, second, "--"):
        pieces.append(piece)
        size += len(piece)
        if size > MOST:
            break
    # Only heads of files begin a line so: all others begin with a mark.
    parts = (b"\n" + b"".join(pieces)).split(b"\ndiff --git ")[1:]
    return ["".join(map(_text, part.partition(b"\n@@")[1:])).lstrip("\n") for part in parts]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
