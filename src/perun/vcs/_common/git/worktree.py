"""A second working directory beside the user's, through `git worktree`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from perun.atomic import process_mark
from perun.errors import VersionControlError
from perun.leftovers import is_left_over
from perun.process.git import GitCommand
from perun.vcs._common import folders

_NOTED: Final = ("gitdir", "commondir", "HEAD")
"""What git writes of each linked working tree; if one is missing or empty, it lists none of the trees."""

_SECONDS_TO_NOTE: Final = 600.0
"""After so long nobody is still writing these, which takes milliseconds."""


class GitWorkingCopy:
    """One linked working tree of a repository, always detached; the user's tree, index and branches stay.

    Made at the first :meth:`switch`, removed at the end of the `with` block. Hooks do not run; filters
    (LFS, line ends) do, so who makes one has made sure that the user trusts the repository. A sparse checkout
    of the user's is sparse here too. Submodules are left empty.

    :param root: folder of the user's; if it is below the top of the repository, so is what
        :meth:`switch` returns.
    :param folder: where the working tree is made; must not exist, or be empty, or be left by a killed run.
    :param command: git at work in a folder, which may run its filters.
    """

    def __init__(self, root: Path, folder: Path, command: Callable[[Path], GitCommand]) -> None:
        self._repository = command(root)
        self._folder = Path(os.path.realpath(folder))
        self._git = command(self._folder)
        self._made = False

    def __enter__(self) -> GitWorkingCopy:
        self._prefix = self._repository.ask("rev-parse", "--show-prefix")
        self._remove_unfinished()
        self._clean_up_after_killed_run()
        return self

    def __exit__(self, *exc: object) -> None:
        self._remove()

    def switch(self, minor_version: str) -> Path:
        """Make it exactly that version, whatever a run has left there: no file of another one is measured.

        :return: the folder to run in.
        :raises VersionControlError: if git cannot check it out, or the version has no such folder.
        """
        self._repository.ask("cat-file", "-e", f"{minor_version}^{{commit}}")
        if not self._made:
            self._make(minor_version)
        try:
            self._reset_to(minor_version)
        except VersionControlError:
            # The run has left write-protected folders, a lock, or no repository at all: start afresh.
            self._remove()
            self._make(minor_version)
            self._reset_to(minor_version)
        place = self._folder / self._prefix
        if not place.is_dir():
            raise VersionControlError(f"version {minor_version[:12]} has no folder {self._prefix!r}")
        return place

    def _make(self, minor_version: str) -> None:
        self._made = True
        # Forced twice: git may still list the folder of a killed run, even as locked.
        options = ("--quiet", "--force", "--force", "--detach", "--no-checkout")
        self._repository.alter("worktree", "add", *options, str(self._folder), minor_version)

    def _reset_to(self, minor_version: str) -> None:
        # Named outright: were `.git` gone, git would look for a repository above, and reset the user's.
        here = {"GIT_DIR": str(self._folder / ".git"), "GIT_WORK_TREE": str(self._folder)}
        answer = self._git.attempt("checkout", "--quiet", "--force", "--detach", minor_version, env=here)
        if answer.code or answer.left_files:
            raise self._git.failure("checkout", answer)
        self._git.ask("clean", "-ffdxq", env=here)

    def _remove(self) -> None:
        if not self._made:
            return
        options = ("--force", "--force")
        removed = self._repository.attempt("worktree", "remove", *options, str(self._folder), shield=True)
        if removed.code:
            folders.remove(self._folder)
            self._repository.alter("worktree", "prune")
        self._made = False

    def _remove_unfinished(self) -> None:
        """Remove what `git worktree add` noted of one of ours before it was killed, or the disk was full.

        With such a half of a note git lists, makes and removes no working tree at all.
        """
        for notes in (self._folder_of_git() / "worktrees").glob("*"):
            is_own = notes.name.startswith(f"worktree-{process_mark()}")
            if (is_own or is_left_over(notes, _SECONDS_TO_NOTE)) and not all(
                _has_content(notes / name) for name in _NOTED
            ):
                folders.remove(notes)

    def _folder_of_git(self) -> Path:
        return (self._repository.folder / self._repository.ask("rev-parse", "--git-common-dir")).resolve()

    def _clean_up_after_killed_run(self) -> None:
        if self._is_ours():
            self._made = True
            self._remove()
        elif self._folder.exists() and any(self._folder.iterdir()):
            raise VersionControlError(
                f"{self._folder} is not empty, and no working copy that Perun made", "move it away"
            )

    def _is_ours(self) -> bool:
        """Whether git lists the folder as linked working tree; one on a branch is the user's, not ours."""
        listed = self._repository.ask("worktree", "list", "--porcelain")
        for entry in listed.split("\n\n")[1:]:
            lines = entry.split("\n")
            if lines[0] == f"worktree {self._folder}":
                return "detached" in lines
        return False


def _has_content(file: Path) -> bool:
    try:
        return file.stat().st_size > 0
    except OSError:
        return False


def main_working_tree(folder: Path, environ: Mapping[str, str]) -> tuple[Path, Path] | None:
    """The main working tree of the repository, and the linked one that holds `folder`; None in the main one.

    :raises VersionControlError: if the folder is in no git repository.
    """
    git = GitCommand(folder, environ)
    common = (folder / git.ask("rev-parse", "--git-common-dir")).resolve()
    if Path(git.ask("rev-parse", "--absolute-git-dir")).resolve() == common:
        return None
    main = git.ask("worktree", "list", "--porcelain").partition("\n")[0].removeprefix("worktree ")
    return Path(main), Path(git.ask("rev-parse", "--show-toplevel"))
