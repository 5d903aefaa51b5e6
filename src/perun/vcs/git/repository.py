"""Git as the version control system of a project."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from perun import atomic
from perun.errors import VersionControlError
from perun.plugin.api import MajorVersion, MinorVersion, SavedState, Vcs, WorkingCopy
from perun.regular import read_regular
from perun.vcs.git import history
from perun.vcs.git.command import GitCommand, Purpose
from perun.vcs.git.history import is_checksum

_MAX_EXCLUDES: Final = 16 << 20
_OBJECT_TYPES: Final = ("commit", "tree", "blob", "tag")


class Git(Vcs):
    """A git repository, through the `git` program (2.30 or newer); see :class:`perun.plugin.api.Vcs`.

    A minor version is a commit, named by its full SHA-1 or SHA-256; a major version is a local branch.
    It works the same in a linked working tree, a bare or shallow repository, and inside a hook of git.

    What reads history runs nothing that the repository names. What looks at, or changes, files of a working
    tree runs its filters: `is_dirty`, `prepare_save`, `finish_save`, `set_aside`, `restore_state`, `resume`,
    `checkout` and `working_copy`. Who calls these has made sure that the user trusts the repository.
    """

    type: ClassVar[str] = "git"

    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        super().__init__(root, environ)
        self._git = GitCommand(root, environ, named=True)
        self._tree = GitCommand(root, environ, Purpose.WORK, named=True)

    def init(self, params: Mapping[str, Any]) -> bool:
        """`git init` with the given options: `{"bare": True, "separate-git-dir": path}`.

        A relative path is relative to `root`, which is made where it is missing.
        """
        options = [_option(str(key), value) for key, value in params.items() if value not in (False, None)]
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise VersionControlError(f"cannot make the folder {self.root}: {problem.strerror}") from None
        self._tree.alter("init", "--quiet", *options)
        return True

    def walk_minor_versions(self, head: str) -> Iterator[MinorVersion]:
        """All ancestors of `head` with their whole messages; a shallow clone ends where it was cut."""
        return history.walk(self._git, self._checksum(head), history.MESSAGE, ordered=False)

    def walk_subjects(self, head: str, *, ordered: bool = False) -> Iterator[MinorVersion]:
        """As :meth:`walk_minor_versions`, `desc` being the subject as git defines it: the first paragraph."""
        return history.walk(self._git, self._checksum(head), history.SUBJECT, ordered)

    def walk_major_versions(self) -> Iterator[MajorVersion]:
        """The local branches by name."""
        listed = self._git.ask("for-each-ref", "--format=%(objectname) %(refname:strip=2)", "refs/heads/")
        for line in listed.splitlines():
            checksum, _, name = line.partition(" ")
            yield MajorVersion(_printable(name), checksum)

    def get_minor_head(self) -> str:
        """Checksum of HEAD."""
        return history.head_checksum(self._git)

    def get_head_major_version(self) -> str:
        """Name of the current branch, also before its first commit; where HEAD is detached, its checksum."""
        answer = self._git.attempt("symbolic-ref", "--quiet", "HEAD")
        if answer.code:
            return self.get_minor_head()
        return _printable(answer.text.removeprefix("refs/heads/"))

    def get_minor_version_info(self, minor_version: str) -> MinorVersion:
        """The commit, with its whole message."""
        return history.one(self._git, self._checksum(minor_version))

    def check_minor_version_validity(self, minor_version: str) -> None:
        """Raise unless it is the full lower-case checksum of a commit that is here."""
        if not is_checksum(minor_version):
            raise VersionControlError(
                f"{minor_version!r} is not the full checksum of a minor version", "see perun log"
            )
        if self.massage_parameter(minor_version) != minor_version:
            raise VersionControlError(f"{minor_version!r} is not a minor version", "see perun log")

    def massage_parameter(self, parameter: str, parameter_type: str | None = None) -> str:
        """The checksum of what `git rev-parse` finds under that spelling; a tag stands for its commit.

        :param parameter_type: another kind of object to look for: tree, blob or tag.
        """
        kind = parameter_type if parameter_type in _OBJECT_TYPES else "commit"
        # `:/text` takes all that follows as the text to search for in messages.
        spelling = parameter if parameter.startswith(":/") else f"{parameter}^{{{kind}}}"
        answer = self._git.attempt("rev-parse", "--verify", "--end-of-options", spelling)
        if is_checksum(answer.text):
            return answer.text
        if answer.code and "Needed a single revision" not in answer.complaint:
            raise self._git.failure("rev-parse", answer)
        if parameter in ("HEAD", "@"):
            self.get_minor_head()
        reason = "" if "ambiguous" not in answer.complaint else f"\n{answer.complaint}"
        raise VersionControlError(f"git knows no {kind} {parameter!r}{reason}", "see perun log or git branch")

    def is_dirty(self) -> bool:
        """Whether tracked files, or commits of submodules, differ from HEAD in the index or the folder."""
        answer = self._tree.attempt(
            "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=untracked", "--no-renames"
        )
        if answer.code and "must be run in a work tree" in answer.complaint:
            return False  # a bare repository
        if answer.code:
            raise self._tree.failure("status", answer)
        return bool(answer.output)

    def prepare_save(self) -> SavedState:
        """First half of :meth:`save_state`: a stash entry of the changes; nothing else is touched yet.

        Write what it returns down somewhere safe: then :meth:`resume` mends a killed run.
        """
        from perun.vcs.git import inplace

        return inplace.prepare(self._tree)

    def finish_save(self, saved: SavedState) -> None:
        """Second half of :meth:`save_state`: take the changes out of the folder; HEAD stays where it was."""
        from perun.vcs.git import inplace

        inplace.clear(self._tree, saved)

    def save_state(self) -> tuple[bool, str]:
        """Put uncommitted changes to tracked files, staged or not, into an entry of `git stash`.

        :raises VersionControlError: in the middle of a merge, rebase or the like, with conflicts, with
            files of `git add -N`, and where an untracked file is in the way; nothing has changed then.
        """
        saved = self.prepare_save()
        self.finish_save(saved)
        return saved.saved, saved.state

    def set_aside(self, label: str) -> str:
        """Put uncommitted changes that a run has made to tracked files into a stash entry of that label.

        :return: its checksum; empty where there were none.
        """
        from perun.vcs.git import inplace

        return inplace.set_aside(self._tree, label)

    def restore_state(self, saved: bool, state: str) -> None:
        """As :meth:`resume`, the changes being those of the newest entry that Perun made for `state`."""
        from perun.vcs.git import inplace

        inplace.restore(self._tree, saved, state)

    def resume(self, saved: SavedState) -> None:
        """Go back to the branch or checksum of `saved` and bring back the changes, the index as it was.

        Changes that a run has made to tracked files are kept in a stash entry of their own. It may be
        called in another process than the one that saved, wherever that or an earlier call was cut off.

        :raises VersionControlError: where files are in the way; tells the entry and the commands to type.
        """
        from perun.vcs.git import inplace

        inplace.restore(self._tree, saved.saved, saved.state, saved.stash)

    def checkout(self, minor_version: str) -> None:
        """Check the commit out in the user's folder, with HEAD detached.

        :raises VersionControlError: names the files, ignored ones included, that would be overwritten.
        """
        from perun.vcs.git import inplace

        inplace.checkout(self._tree, self._checksum(minor_version))

    def missing_history(self) -> str:
        """Tells of a shallow clone."""
        if self._git.ask("rev-parse", "--is-shallow-repository") != "true":
            return ""
        return "this is a shallow clone, get the rest with: git fetch --unshallow"

    def working_copy(self, folder: Path) -> WorkingCopy:
        """A linked working tree at `folder`; see :class:`perun.vcs.git.worktree.GitWorkingCopy`."""
        from perun.vcs.git.worktree import GitWorkingCopy

        return GitWorkingCopy(self.root, folder, self.environ)

    def _checksum(self, minor_version: str) -> str:
        # HEAD needs no translation, which is one process of git less for `status` and `log`.
        if minor_version == "HEAD" or is_checksum(minor_version):
            return minor_version
        return self.massage_parameter(minor_version)

    @staticmethod
    def main_working_tree(folder: Path, environ: Mapping[str, str]) -> tuple[Path, Path] | None:
        """See :func:`perun.vcs.git.worktree.main_working_tree`."""
        from perun.vcs.git.worktree import main_working_tree

        return main_working_tree(folder, environ)

    @staticmethod
    def tracks(folder: Path, environ: Mapping[str, str]) -> bool:
        """Whether git has any file in `folder`; it has none outside of a repository.

        :raises VersionControlError: where git cannot tell.
        """
        git = GitCommand(folder, environ)
        answer = git.attempt("ls-files", "--cached", "-z", "--", ".")
        if answer.code and "not a git repository" not in answer.complaint:
            raise git.failure("ls-files", answer)
        return bool(answer.output)

    @staticmethod
    def safe_folders(environ: Mapping[str, str]) -> list[str]:
        """What the user lists as `safe.directory`: repositories of other users that he lets git use."""
        # Git itself heeds no such setting of a repository; from `/` it sees none.
        answer = GitCommand(Path("/"), environ).attempt("config", "--null", "--get-all", "safe.directory")
        found: list[str] = []
        for folder in answer.output.decode("utf-8", "surrogateescape").split("\0")[:-1]:
            found = [*found, folder] if folder else []  # an empty one takes back what was said before
        return found

    def exclude(self, folder: Path) -> None:
        """Keep an untracked folder inside the repository out of `git status`, for this copy of it alone.

        Where git ignores it already, or it lies outside, nothing is written.
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


def _printable(name: str) -> str:
    """A name of a branch, without the surrogates that stand for bytes that are not UTF-8."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
