"""Git as the version control system of a project."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from perun import atomic
from perun.errors import VersionControlError
from perun.vcs._common.git.repository import GitVcs


class Git(GitVcs):
    """A git repository, as its user made it; see :class:`perun.plugin.api.Vcs`.

    It works the same in a linked working tree, a bare or shallow repository, and inside a hook of git.
    """

    type: ClassVar[str] = "git"

    def init(self, params: Mapping[str, Any]) -> bool:
        """`git init` with the given options: `{"bare": True, "separate-git-dir": path}`.

        A relative path is relative to `root`, which is made where it is missing.
        """
        options = [_option(str(key), value) for key, value in params.items() if value not in (False, None)]
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise VersionControlError(f"cannot make the folder {self.root}: {problem.strerror}") from None
        self._git.alter("init", "--quiet", *options)
        return True

    def missing_history(self) -> str:
        """Tells of a shallow clone."""
        if self._git.ask("rev-parse", "--is-shallow-repository") != "true":
            return ""
        return "this is a shallow clone, get the rest with: git fetch --unshallow"

    @staticmethod
    def main_working_tree(folder: Path, environ: Mapping[str, str]) -> tuple[Path, Path] | None:
        """See :func:`perun.vcs._common.git.worktree.main_working_tree`."""
        from perun.vcs._common.git.worktree import main_working_tree

        return main_working_tree(folder, environ)

    def exclude(self, folder: Path) -> None:
        """Keep an untracked folder inside the repository out of `git status`, for this copy of it alone.

        Where git ignores it already, or it lies outside, nothing is written.
        """
        if self._git.attempt("check-ignore", "--quiet", f"{folder}/").code != 1:
            return
        top = Path(self._git.ask("rev-parse", "--show-toplevel"))
        path = self.root / self._git.ask("rev-parse", "--git-path", "info/exclude")
        pattern = re.sub(r"([\\*?\[# ])", r"\\\1", str(folder.resolve().relative_to(top.resolve())))
        before = path.read_text(encoding="utf-8", errors="surrogateescape") if path.exists() else ""
        separator = "" if not before or before.endswith("\n") else "\n"
        text = f"{before}{separator}/{pattern}/\n"
        atomic.write(path, text.encode("utf-8", "surrogateescape"))

    def hooks_folder(self) -> Path:
        """Where git looks for hooks; see :func:`perun.vcs.git.hooks.folder`."""
        from perun.vcs.git import hooks

        return hooks.folder(self._git)

    def shares_hooks(self) -> bool:
        """Whether other repositories run the same hooks; see :func:`perun.vcs.git.hooks.are_shared`."""
        from perun.vcs.git import hooks

        return hooks.are_shared(self._git)

    def is_rebasing(self) -> bool:
        """Whether commits are made by a rebase that is not finished."""
        from perun.vcs.git import hooks

        return hooks.is_rebasing(self._git)


def _option(key: str, value: Any) -> str:
    name = key.strip().lstrip("-").replace("_", "-")
    if not (name[:1].isalpha() and name.isascii() and name.replace("-", "").isalnum()):
        raise VersionControlError(f"{key!r} cannot be an option of git init", "see git help init")
    dashed = f"-{name}" if len(name) == 1 else f"--{name}"
    if value is True:
        return dashed
    return f"{dashed}{value}" if len(name) == 1 else f"{dashed}={value}"
