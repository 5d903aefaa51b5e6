"""A version control system whose versions are commits of git."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Final

from perun.core.errors import VersionControlError
from perun.core.process.git import GitCommand, Purpose
from perun.core.regular import read_regular
from perun.plugin.versions import FileDiff, KeptCopy, MajorVersion, MinorVersion, SavedState, Vcs, WorkingCopy
from perun.vcs._common import history
from perun.vcs._common.history import is_checksum

_OBJECT_TYPES: Final = ("commit", "tree", "blob", "tag")
_MAX_SETTINGS: Final = 16 << 20


class GitVcs(Vcs):
    """What all of them can do, through the `git` program (2.30 or newer); see :class:`perun.plugin.api.Vcs`.

    A minor version is a commit, named by its full SHA-1 or SHA-256; a major version is a local branch.
    """

    @cached_property
    def _git(self) -> GitCommand:
        """Reads, and runs nothing that the repository names."""
        return self._command(self.root, Purpose.READ)

    @cached_property
    def _work_git(self) -> GitCommand:
        """Works on files, and runs the filters of the repository."""
        return self._command(self.root, Purpose.WORK)

    def _command(self, folder: Path, purpose: Purpose) -> GitCommand:
        """Git at work in that folder: the user's, or a copy."""
        return GitCommand(folder, self.environ, purpose, named=folder == self.root)

    def walk_minor_versions(self, head: str) -> Iterator[MinorVersion]:
        """All ancestors of `head` with their whole messages; a shallow clone ends where it was cut."""
        return history.walk(self._git, [self._checksum(head)], history.MESSAGE, ordered=False)

    def walk_subjects(self, head: str, *, ordered: bool = False) -> Iterator[MinorVersion]:
        """As :meth:`walk_minor_versions`, `desc` being the subject as git defines it: the first paragraph."""
        return history.walk(self._git, [self._checksum(head)], history.SUBJECT, ordered)

    def walk_together(self, heads: Sequence[str]) -> Iterator[MinorVersion]:
        """The versions by one call of git."""
        return history.walk(self._git, [*map(self._checksum, heads)], history.SUBJECT, ordered=False)

    def walk_major_versions(self) -> Iterator[MajorVersion]:
        """The local branches by name."""
        listed = self._git.ask("for-each-ref", "--format=%(objectname) %(refname:strip=2)", "refs/heads/")
        for line in listed.splitlines():
            checksum, _, name = line.partition(" ")
            yield MajorVersion(_printable(name), checksum)

    def tags(self) -> list[tuple[str, str]]:
        """The tags that name a commit; what an annotated one is of, and not its own object."""
        form = "--format=%(objecttype) %(objectname) %(*objecttype) %(*objectname) %(refname:strip=2)"
        found = []
        for line in self._git.ask("for-each-ref", form, "refs/tags/").splitlines():
            kind, checksum, of, target, name = line.split(" ", 4)
            if "commit" in (kind, of):
                found.append((_printable(name), target if of == "commit" else checksum))
        return found

    def get_minor_head(self) -> str:
        """Checksum of HEAD."""
        return history.head_checksum(self._git)

    def get_head_major_version(self) -> str:
        """Name of the current branch, also before its first commit; if HEAD is detached, its checksum."""
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
        if answer.code and "Needed a single revision" not in answer.stderr:
            raise self._git.failure("rev-parse", answer)
        if parameter in ("HEAD", "@"):
            self.get_minor_head()
        reason = "" if "ambiguous" not in answer.stderr else f"\n{answer.stderr}"
        hint = "; ".join(filter(None, ("see perun log or git branch", self.missing_history())))
        raise VersionControlError(f"git knows no {kind} {parameter!r}{reason}", hint)

    def is_dirty(self) -> bool:
        """Whether tracked files, or commits of submodules, differ from HEAD in the index or the folder."""
        answer = self._work_git.attempt(
            "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=untracked", "--no-renames"
        )
        if answer.code and "must be run in a work tree" in answer.stderr:
            return False  # a bare repository
        if answer.code:
            raise self._work_git.failure("status", answer)
        return bool(answer.stdout)

    def merge_base(self, first: str, second: str) -> str | None:
        """What `git merge-base` finds, the best of them if there are several."""
        answer = self._git.attempt("merge-base", self._checksum(first), self._checksum(second))
        if answer.code > 1 or (answer.code and answer.stderr):
            raise self._git.failure("merge-base", answer)
        return answer.text or None

    def changed_files(self) -> list[str]:
        """What `git status` lists; folders, as submodules and repositories in others are, are left out."""
        return self._changed("--untracked-files=all")

    def uncommitted(self) -> str:
        """What `git stash create` makes."""
        from perun.vcs._common import inplace

        return inplace.create(self._work_git)

    def _changed(self, *options: str) -> list[str]:
        answer = self._work_git.attempt(
            "status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=dirty", *options
        )
        if answer.code and "must be run in a work tree" in answer.stderr:
            return []  # a bare repository
        if answer.code:
            raise self._work_git.failure("status", answer)
        prefix = self._git.ask("rev-parse", "--show-prefix") or "."
        entries = [os.fsdecode(entry) for entry in answer.stdout.split(b"\0") if entry]
        found = [(entry[:2], os.path.relpath(entry[3:], prefix)) for entry in entries if entry[-1] != "/"]
        # Where a folder is in the place of a deleted file, that is one.
        return [path for state, path in found if "D" in state or not _is_folder(self.root / path)]

    def prepare_save(self) -> SavedState:
        """First half of :meth:`save_state`: a stash entry of the changes; nothing else is touched yet.

        Write what it returns down somewhere safe: then :meth:`resume` mends a killed run.
        """
        from perun.vcs._common import inplace

        return inplace.prepare(self._work_git)

    def finish_save(self, saved: SavedState) -> None:
        """Second half of :meth:`save_state`: take the changes out of the folder; HEAD stays where it was."""
        from perun.vcs._common import inplace

        inplace.clear(self._work_git, saved)

    def save_state(self) -> tuple[bool, str]:
        """Put uncommitted changes to tracked files, staged or not, into an entry of `git stash`.

        :raises VersionControlError: in the middle of a merge, rebase or the like, with conflicts, with
            files of `git add -N`, and if an untracked file is in the way; nothing has changed then.
        """
        saved = self.prepare_save()
        self.finish_save(saved)
        return saved.saved, saved.state

    def set_aside(self, label: str) -> str:
        """Put uncommitted changes that a run has made to tracked files into a stash entry of that label.

        :return: its checksum; empty if there were none.
        """
        from perun.vcs._common import inplace

        return inplace.set_aside(self._work_git, label)

    def restore_state(self, saved: bool, state: str) -> None:
        """As :meth:`resume`, the changes being those of the newest entry that Perun made for `state`."""
        from perun.vcs._common import inplace

        inplace.restore(self._work_git, saved, state)

    def resume(self, saved: SavedState) -> None:
        """Go back to the branch or checksum of `saved` and bring back the changes, the index as it was.

        Changes that a run has made to tracked files are kept in a stash entry of their own. It may be
        called in another process than the one that saved, wherever that or an earlier call was cut off.

        :raises VersionControlError: if files are in the way; tells the entry and the commands to type.
        """
        from perun.vcs._common import inplace

        inplace.restore(self._work_git, saved.saved, saved.state, saved.stash)

    def checkout(self, minor_version: str) -> None:
        """Check the commit out in the user's folder, with HEAD detached.

        :raises VersionControlError: names the files, ignored ones included, that would be overwritten.
        """
        from perun.vcs._common import inplace

        inplace.checkout(self._work_git, self._checksum(minor_version))

    def difference(self, first: str, second: str) -> list[FileDiff] | None:
        """What `git diff` tells, renamed files being one."""
        from perun.vcs._common import history

        return history.between(self._git, self._checksum(first), self._checksum(second))

    def source(self, minor_version: str, path: str) -> bytes | None:
        """The content of a file of a commit, as git keeps it."""
        answer = self._git.attempt("cat-file", "blob", f"{self._checksum(minor_version)}:{path}")
        return None if answer.code else answer.stdout

    def files(self, minor_version: str) -> list[str]:
        """The paths of all files of a commit."""
        options = ("-r", "-z", "--full-tree", "--name-only")
        answer = self._git.ask("ls-tree", *options, self._checksum(minor_version))
        return [name for name in answer.split("\0") if name]

    def working_copy(self, folder: Path) -> WorkingCopy:
        """A linked working tree at `folder`; see :class:`~perun.vcs._common.worktree.GitWorkingCopy`."""
        from perun.vcs._common.worktree import GitWorkingCopy

        command = partial(self._command, purpose=Purpose.WORK)
        return GitWorkingCopy(self.root, folder, command)

    def content(self, minor_version: str) -> str:
        """The tree of the commit, and the settings that decide how it is checked out."""
        tree = f"{self._checksum(minor_version)}^{{tree}}"
        files = ("--git-path", "info/sparse-checkout", "--git-path", "info/attributes")
        told = self._git.attempt("rev-parse", "--show-prefix", tree, *files)
        if told.code:  # a partial clone lacks it
            return minor_version
        prefix, tree, *paths = told.text.split("\n")
        parts = [prefix, tree, self._git.attempt("config", "--get-regexp", r"^(core|filter)\.").text]
        for path in paths:
            with suppress(FileNotFoundError):
                parts.append(os.fsdecode(read_regular((self.root / path).resolve(), _MAX_SETTINGS)))
        return "\0".join(parts)

    def kept_copy(self, folder: Path, scratch: Path) -> KeptCopy | None:
        """See :class:`~perun.vcs._common.worktree.GitKeptCopy`."""
        from perun.vcs._common.worktree import GitKeptCopy

        return GitKeptCopy(self.root, folder, scratch, partial(self._command, purpose=Purpose.WORK))

    def _checksum(self, minor_version: str) -> str:
        # HEAD needs no translation, which is one process of git less for `status` and `log`.
        if minor_version == "HEAD" or is_checksum(minor_version):
            return minor_version
        return self.massage_parameter(minor_version)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _printable(name: str) -> str:
    """A name of a branch, without the surrogates that stand for bytes that are not UTF-8."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
