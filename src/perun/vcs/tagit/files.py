"""What lies in a folder: the files that a snapshot takes, and what one of them holds."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from perun.errors import VersionControlError
from perun.vcs.tagit import objects

IGNORE_FILE: Final = ".tagitignore"
UNFINISHED: Final = ".tagit-tmp-"
"""Start of the name of a file that is being written; one that is left was cut off, and may be removed."""
_NEVER: Final = frozenset({".tagit", ".svs", ".perun", ".git", ".hg", ".svn", "__pycache__"})
_FILE, _PROGRAM, _LINK, OTHER = "file", "program", "link", "other"


class Entry(NamedTuple):
    """One file: its kind (`file`, `program` or `link`), the checksum of what it holds, its size in bytes.

    What is none of these, a folder for one, is `other`, and never in a snapshot.
    """

    kind: str
    checksum: str
    size: int


Tree = Mapping[str, Entry]
"""Files of a snapshot by their paths below the root, with slashes."""


class Ignored:
    """The patterns of `.tagitignore`: one a line, of the shell; `#` begins a comment.

    A pattern without a slash is that of a name anywhere, one with a slash inside that of a path below the
    root; a slash at the end means folders only.

    :raises VersionControlError: where a line begins with `!`, which is not supported.
    """

    def __init__(self, root: Path) -> None:
        self._patterns = list(_patterns(root / IGNORE_FILE))

    def __call__(self, path: str, is_folder: bool) -> bool:
        """Whether the path below the root is left out, with all that is in it."""
        name = path.rpartition("/")[2]
        return (
            name in _NEVER
            or name.startswith(UNFINISHED)
            or any(
                (is_folder or not folders_only) and match(path if whole else name) is not None
                for match, whole, folders_only in self._patterns
            )
        )


def _patterns(file: Path) -> Iterator[tuple[Callable[[str], object], bool, bool]]:
    import fnmatch

    try:
        text = file.read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return
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


def scan(root: Path) -> Iterator[str]:
    """The paths of all files below `root` that are not ignored, folder by folder, sorted."""
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


def look(root: Path, path: str, expected: Entry | None = None) -> Entry | None:
    """What is at `path` now; None where nothing is, or a folder above it is none.

    :param expected: a file of another kind or size than this one is not read; its checksum is empty then.
    """
    file = root / path
    if any(not _is_folder(root / above) for above in parents(path)):
        return None
    try:
        status = file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    kind = _kind(status.st_mode)
    if kind == OTHER:
        return Entry(OTHER, "", 0)
    if expected is not None and (kind, status.st_size) != (expected.kind, expected.size):
        return Entry(kind, "", status.st_size)
    if kind == _LINK:
        return Entry(kind, link_checksum(file), status.st_size)
    return Entry(kind, objects.checksum_of(file), status.st_size)


def keep(root: Path, path: str, store: objects.Objects) -> Entry:
    """Put what is at `path` into the store; as :func:`look`."""
    file = root / path
    kind = _kind(file.lstat().st_mode)
    if kind == _LINK:
        target = os.fsencode(os.readlink(file))
        return Entry(kind, store.put(target), len(target))
    checksum = store.put_file(file)
    return Entry(kind, checksum, file.stat().st_size)


def write(file: Path, entry: Entry, store: objects.Objects) -> None:
    """Make `file` what the entry says; the folder it lies in is there. It is never seen half done."""
    temporary = file.with_name(f"{UNFINISHED}{os.getpid()}-{os.urandom(6).hex()}")
    try:
        if entry.kind == _LINK:
            os.symlink(os.fsdecode(store.get(entry.checksum)), temporary)
        else:
            mode = 0o777 if entry.kind == _PROGRAM else 0o666
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as out:
                store.copy_to(entry.checksum, out)
        os.replace(temporary, file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def parents(path: str) -> Iterator[str]:
    """The folders above a path below the root, the outermost first."""
    parts = path.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts)))


def link_checksum(file: Path) -> str:
    """The checksum of a symbolic link: that of its target's name."""
    import hashlib

    return hashlib.sha256(os.fsencode(os.readlink(file))).hexdigest()


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)  # not through a link: that leads elsewhere
    except OSError:
        return False


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return _LINK
    if not stat.S_ISREG(mode):
        return OTHER
    return _PROGRAM if mode & stat.S_IXUSR else _FILE
