"""The git program on the snapshots of a folder, in a git directory that Perun alone sets up."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from perun import atomic
from perun.errors import VersionControlError
from perun.process.git import GitCommand, GitResult, Purpose
from perun.regular import read_regular

_OWN_FILES: Final = {
    "config": """\
# Written by Perun, which undoes every change: a folder from elsewhere must not name programs to run.
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
""",
    "info/attributes": "* -text -eol -ident !filter !diff !merge !working-tree-encoding\n",
}
"""Files of the git directory that decide what git does: every file is kept byte for byte."""

_REDIRECTIONS: Final = ("commondir", "gitdir")
"""Files that name another folder to git; links do so, too."""

_SETTINGS: Final = (
    "core.autocrlf=false",
    "core.fsync=all",  # by default git flushes no loose object and no reference (git 2.36 or newer)
    "core.protectNTFS=false",  # refuses names with a backslash, which is a letter as any other here
    "core.protectHFS=false",
    "gc.auto=6700",
    "gc.autoDetach=false",
)
_NO_OTHER_SETTINGS: Final = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
}
"""Settings of the user and of the machine are for repositories that they know of."""


class TagitCommand(GitCommand):
    """The git program at work in `folder`, on the snapshots in `git_folder`.

    :param folder: a folder whose files are versions, the user's or a copy.
    :param purpose: what git may run; no filter at all either way, as there are none here.
    """

    def __init__(
        self, folder: Path, git_folder: Path, environ: Mapping[str, str], purpose: Purpose
    ) -> None:
        super().__init__(folder, environ, purpose)
        self._git_folder = git_folder
        for setting in _SETTINGS:
            self._prefix += ["-c", setting]
        self._environ |= {"GIT_DIR": str(git_folder), "GIT_WORK_TREE": str(folder), **_NO_OTHER_SETTINGS}

    @property
    def typed(self) -> str:
        """What the user types to act on the snapshots."""
        return shlex.join(["git", f"--git-dir={self._git_folder}", f"--work-tree={self.folder}"])

    @property
    def make_version(self) -> str:
        """What the user does to have a version of changed files."""
        return "make a version of them (perun tag NAME)"

    def failure(self, verb: str, answer: GitResult) -> VersionControlError:
        """The error that tells what git answered, of snapshots instead of a repository of the user's."""
        if "not a git repository" in answer.stderr:
            return VersionControlError(
                f"the snapshots in {self._git_folder} are damaged", "restore that folder from a backup"
            )
        return super().failure(verb, answer)


def secure(git_folder: Path) -> None:
    """Make the files that decide what git does those of Perun, and refuse what would lead git elsewhere.

    :raises VersionControlError: if the folder is not what Perun makes, or cannot be read or written.
    """
    with os.scandir(git_folder) as found:
        entries = list(found)
    for entry in entries:
        if entry.is_symlink() or entry.name in _REDIRECTIONS:
            raise VersionControlError(
                f"{entry.path} would lead git to another folder", "Perun makes no such file: remove it"
            )
    for name, text in _OWN_FILES.items():
        path = git_folder / name
        if _text(path) != text:
            try:
                atomic.write(path, text.encode())
            except OSError as problem:
                raise VersionControlError(
                    f"{path} is not as Perun writes it, and cannot be written: {problem.strerror}",
                    "check its permissions",
                ) from None


def _text(path: Path) -> str | None:
    try:
        return read_regular(path, 1 << 16).decode("utf-8", "replace")
    except OSError:
        return None
