"""The files of a folder that a snapshot takes."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from perun.errors import VersionControlError
from perun.regular import read_regular

IGNORE_FILE: Final = ".tagitignore"
_MAX_BYTES: Final = 1 << 20
"""Bytes of a file of patterns."""
_ALWAYS_IGNORED: Final = frozenset({".tagit", ".svs", ".perun", ".git", ".hg", ".svn", "__pycache__"})


class Ignored:
    """The patterns of `.tagitignore`: one a line, of the shell; `#` begins a comment.

    A pattern without a slash is that of a name anywhere, one with a slash inside that of a path below the
    root; a slash at the end means folders only.

    :raises VersionControlError: if a line begins with `!`, which is not supported.
    """

    def __init__(self, root: Path) -> None:
        self._patterns = list(_patterns(root / IGNORE_FILE))

    def __call__(self, path: str, is_folder: bool) -> bool:
        """Whether the path below the root is left out, with all that is in it."""
        name = path.rpartition("/")[2]
        # Git takes no `.GIT` either, for the sake of file systems that do not tell letters apart by case.
        return (
            name in _ALWAYS_IGNORED
            or name.lower() == ".git"
            or any(
                (is_folder or not folders_only) and match(path if whole else name) is not None
                for match, whole, folders_only in self._patterns
            )
        )


def scan(root: Path) -> Iterator[str]:
    """The paths of all files and symbolic links below `root` that are not ignored, folder by folder, sorted.

    Sockets, pipes and devices are left out: no snapshot could hold them.
    """
    ignored = Ignored(root)
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        with os.scandir(root / folder) as listed:
            found = sorted(listed, key=lambda one: one.name)
        for one in found:
            path = f"{folder}{one.name}"
            is_folder = one.is_dir(follow_symlinks=False)
            if ignored(path, is_folder):
                continue
            if is_folder:
                waiting.append(f"{path}/")
            elif one.is_symlink() or one.is_file(follow_symlinks=False):
                yield path


def _patterns(file: Path) -> Iterator[tuple[Callable[[str], object], bool, bool]]:
    try:
        text = read_regular(file, _MAX_BYTES).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return
    except OSError as problem:
        raise VersionControlError(
            f"{file} cannot be read: {problem.strerror}", "make it a file with a pattern a line, or remove it"
        ) from None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("!"):
            raise VersionControlError(
                f"{file}, line {number}: a pattern cannot begin with '!'", "list what is to be left out only"
            )
        pattern = line.rstrip("/")
        whole = "/" in pattern
        yield re.compile(fnmatch.translate(pattern.lstrip("/"))).match, whole, line.endswith("/")
