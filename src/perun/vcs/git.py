"""Support for git (manual 13.1)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from perun.core import atomic
from perun.core.errors import VersionControlError
from perun.core.process.git import GitCommand
from perun.core.regular import read_regular
from perun.vcs._common.repository import GitVcs

# Git as the version control system of a project.

_MAX_EXCLUDES: Final = 16 << 20


class Git(GitVcs):
    """A git repository, as its user made it; see :class:`perun.plugin.api.Vcs`.

    It works the same in a linked working tree, a bare or shallow repository, and inside a hook of git.

    What reads history runs nothing that the repository names. What looks at, or changes, files of a working
    tree runs its filters: `is_dirty`, `changed_files`, `prepare_save`, `finish_save`, `set_aside`,
    `restore_state`, `resume`, `checkout` and `working_copy`. Who calls these has made sure that the user
    trusts the repository.
    """

    type: ClassVar[str] = "git"

    def init(self, params: Mapping[str, Any]) -> bool:
        """`git init` with the given options: `{"bare": True, "separate-git-dir": path}`.

        A relative path is relative to `root`, which is made if it is missing.
        """
        options = [_option(str(key), value) for key, value in params.items() if value not in (False, None)]
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise VersionControlError(f"cannot make the folder {self.root}: {problem.strerror}") from None
        self._work_git.alter("init", "--quiet", *options)
        return True

    def missing_history(self) -> str:
        """Tells of a shallow clone."""
        if self._git.ask("rev-parse", "--is-shallow-repository") != "true":
            return ""
        return "this is a shallow clone, get the rest with: git fetch --unshallow"

    def missing_tags(self) -> str:
        """Tells of a shallow clone, which CI makes without tags, and of remotes fetched without them."""
        told = self._git.attempt("config", "--get-regexp", r"^remote\..*\.tagopt$")
        if "--no-tags" in told.text.split():
            return "this clone is set to fetch no tags, get them with: git fetch --tags"
        return self.missing_history()

    @staticmethod
    def main_working_tree(folder: Path, environ: Mapping[str, str]) -> tuple[Path, Path] | None:
        """See :func:`perun.vcs._common.worktree.main_working_tree`."""
        from perun.vcs._common.worktree import main_working_tree

        return main_working_tree(folder, environ)

    @staticmethod
    def tracks(place: Path, environ: Mapping[str, str]) -> bool:
        """Whether git has that file, or any file in that folder; it has none outside of a repository.

        :raises VersionControlError: if git cannot tell.
        """
        folder, name = (place, ".") if place.is_dir() else (place.parent, place.name)
        git = GitCommand(folder, environ)
        answer = git.attempt("--literal-pathspecs", "ls-files", "--cached", "-z", "--", name)
        if answer.code and "not a git repository" not in answer.stderr:
            raise git.failure("ls-files", answer)
        return bool(answer.stdout)

    @staticmethod
    def safe_folders(environ: Mapping[str, str]) -> list[str]:
        """What the user lists as `safe.directory`: repositories of other users that he lets git use."""
        # Git itself heeds no such setting of a repository; from `/` it sees none.
        answer = GitCommand(Path("/"), environ).attempt("config", "--null", "--get-all", "safe.directory")
        found: list[str] = []
        for folder in answer.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]:
            found = [*found, folder] if folder else []  # an empty one takes back what was said before
        return found

    def exclude(self, folder: Path) -> None:
        """Keep an untracked folder inside the repository out of `git status`, for this copy of it alone.

        If git ignores it already, or it is outside of the repository, nothing is written.
        """
        if self._git.attempt("check-ignore", "--quiet", f"{folder}/").code != 1:
            return
        top = Path(self._git.ask("rev-parse", "--show-toplevel"))
        path = self.root / self._git.ask("rev-parse", "--git-path", "info/exclude")
        pattern = re.sub(r"([\\*?\[# ])", r"\\\1", str(folder.resolve().relative_to(top.resolve())))
        before = ""
        if path.exists():
            before = read_regular(path.resolve(), _MAX_EXCLUDES).decode("utf-8", "surrogateescape")
        separator = "" if not before or before.endswith("\n") else "\n"
        text = f"{before}{separator}/{pattern}/\n"
        atomic.write(path, text.encode("utf-8", "surrogateescape"))

    def first_version(self, versions: Sequence[str]) -> str:
        """See :func:`perun.vcs._common.worktree.first_version`."""
        from perun.vcs._common import worktree

        return worktree.first_version(self._git, versions)

    def present(self, versions: Iterable[str]) -> list[str]:
        """See :func:`perun.vcs._common.worktree.present`."""
        from perun.vcs._common import worktree

        return worktree.present(self._git, versions)

    def pack(self, versions: Sequence[str], known: Iterable[str]) -> tuple[bytes, list[list[str]]]:
        """See :func:`perun.vcs._common.worktree.pack`."""
        from perun.vcs._common import worktree

        return worktree.pack(self._git, versions, known)

    def unpack(self, versions: Sequence[str], data: bytes, tags: Iterable[Sequence[str]]) -> None:
        """See :func:`perun.vcs._common.worktree.unpack`."""
        from perun.vcs._common import worktree

        worktree.unpack(self._work_git, versions, data, tags)

    def hooks_folder(self) -> Path:
        """Where git looks for hooks; see :func:`perun.vcs.git.folder`."""

        return folder(self._git)

    def names_hooks_folder(self) -> bool:
        """Whether the repository itself says where; see :func:`perun.vcs.git.names_folder`."""

        return names_folder(self._git)

    def shares_hooks(self) -> bool:
        """Whether other repositories run the same hooks; see :func:`perun.vcs.git.are_shared`."""

        return are_shared(self._git)

    def is_rebasing(self) -> bool:
        """Whether commits are made by a rebase that is not finished."""

        return is_rebasing(self._git)


def _option(key: str, value: Any) -> str:
    name = key.strip().lstrip("-").replace("_", "-")
    if not (name[:1].isalpha() and name.isascii() and name.replace("-", "").isalnum()):
        raise VersionControlError(f"{key!r} cannot be an option of git init", "see git help init")
    dashed = f"-{name}" if len(name) == 1 else f"--{name}"
    if value is True:
        return dashed
    return f"{dashed}{value}" if len(name) == 1 else f"{dashed}={value}"


PLUGIN = Git


# Where git looks for hooks, and what it is in the middle of when it runs one.

_OF_A_REBASE: Final = ("rebase-merge", "rebase-apply")


def folder(git: GitCommand) -> Path:
    """The folder of hooks: `core.hooksPath`, else that of the repository, shared by its working trees."""
    configured = configured_folder(git)
    if configured:
        bare = git.ask("rev-parse", "--is-bare-repository") == "true"
        top = git.ask("rev-parse", "--absolute-git-dir" if bare else "--show-toplevel")
        return Path(os.path.normpath(Path(top, configured)))
    return (git.folder / git.ask("rev-parse", "--git-common-dir") / "hooks").resolve()


def are_shared(git: GitCommand) -> bool:
    """Whether the folder of hooks is outside of this repository, so that others run the same hooks."""
    place = folder(git).resolve()
    own = [git.folder / git.ask("rev-parse", "--git-common-dir")]
    if git.ask("rev-parse", "--is-bare-repository") != "true":
        own.append(Path(git.ask("rev-parse", "--show-toplevel")))
    return not any(place.is_relative_to(one.resolve()) for one in own)


def names_folder(git: GitCommand) -> bool:
    """Whether the repository itself names the folder of hooks, in `.git/config` or what that includes."""
    answer = git.attempt("config", "--null", "--show-scope", "--get-all", "core.hooksPath")
    values = answer.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
    return any(scope in ("local", "worktree") for scope in values[::2])


def configured_folder(git: GitCommand) -> str:
    """The value of `core.hooksPath` of the user or the repository; empty if it is not set."""
    answer = git.attempt("config", "--null", "--type=path", "--get-all", "core.hooksPath")
    values = answer.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
    # The last one is what every call here sets, so that git runs no hooks on behalf of Perun.
    return values[-2] if len(values) > 1 else ""


def is_rebasing(git: GitCommand) -> bool:
    """Whether commits are made by a rebase that is not finished."""
    paths = (git.ask("rev-parse", "--git-path", name) for name in _OF_A_REBASE)
    return any((git.folder / path).exists() for path in paths)
