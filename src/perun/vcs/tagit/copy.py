"""A second working directory beside the user's: the files of a snapshot, written anew for each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from perun.errors import VersionControlError
from perun.regular import read_regular
from perun.vcs._common import folders
from perun.vcs.tagit.files import Tree
from perun.vcs.tagit.moving import write_all
from perun.vcs.tagit.objects import Objects

_MARK: Final = ".tagit"
"""A file, not a folder as in a working directory: it says that the folder may be removed, and by whom."""


class TagitWorkingCopy:
    """Made at the first :meth:`switch`, removed at the end of the `with` block.

    :param root: the user's folder. :param folder: where the copy is made; must not exist, or be empty, or be
        left by a killed run.
    :param tree_of: the files of a version; raises where there is no such version.
    """

    def __init__(self, root: Path, folder: Path, objects: Objects, tree_of: Callable[[str], Tree]) -> None:
        self._root = root
        self._folder = folder
        self._objects = objects
        self._tree_of = tree_of

    def __enter__(self) -> TagitWorkingCopy:
        if self._is_ours():
            folders.remove(self._folder)
        elif self._folder.exists() and any(self._folder.iterdir()):
            raise VersionControlError(
                f"{self._folder} is not empty, and no working copy that Perun made", "move it away"
            )
        return self

    def __exit__(self, *exc: object) -> None:
        folders.remove(self._folder)

    def switch(self, minor_version: str) -> Path:
        """Make it exactly that version, whatever a run has left there; the folder to run in."""
        tree = self._tree_of(minor_version)
        try:
            folders.remove(self._folder)
            self._folder.mkdir(parents=True)
            (self._folder / _MARK).write_text(f"{self._root}\n", encoding="utf-8", errors="surrogateescape")
            write_all(self._folder, tree, self._objects)
        except OSError as problem:
            where = problem.filename or self._folder
            raise VersionControlError(
                f"version {minor_version[:12]} cannot be written: {where}: {problem.strerror}",
                "check permissions and the space on the disk",
            ) from problem
        return self._folder

    def _is_ours(self) -> bool:
        try:
            mark = read_regular(self._folder / _MARK, 1 << 16).decode("utf-8", "surrogateescape")
        except OSError:
            return False
        return mark == f"{self._root}\n"
