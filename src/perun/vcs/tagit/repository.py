"""Tagit as the version control system of a project."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

from perun.errors import VersionControlError
from perun.process.git import GitCommand, Purpose
from perun.vcs._common import person
from perun.vcs._common.git import history
from perun.vcs._common.git.repository import GitVcs
from perun.vcs.tagit.command import TagitCommand, secure
from perun.vcs.tagit.files import scan

FOLDER: Final = ".tagit"
LINE: Final = "main"
"""The only line of development."""

_BRANCH: Final = f"refs/heads/{LINE}"
_RESERVED: Final = frozenset({"HEAD", "@", LINE})
_NO_TAG: Final = re.compile(r"[\x00-\x1f\x7f~^]|^-|^\s|\s$|^[0-9a-f]{40,}$")
_SPELLING: Final = re.compile(r"(.*?)((?:~[0-9]*|\^)*)", re.DOTALL)
_UNTAGGED: Final = re.compile(rf"{LINE}|[0-9a-f]{{4,}}")
_MAX_ARGUMENTS: Final = 500_000
"""Bytes of file names that one call of git is given; Linux allows two megabytes."""


class Tagit(GitVcs):
    """Snapshots of a folder, each named by a tag, one after the other; see :class:`perun.plugin.api.Vcs`.

    A snapshot is a commit in a git directory of Perun's own, `.tagit`, which no other program takes for a
    repository; the subject of its message is the tag, and the only branch is `main`. It takes all files that
    `.tagitignore` does not leave out, as they are, byte for byte.
    """

    type: ClassVar[str] = "tagit"

    @cached_property
    def _folder(self) -> Path:
        return self.root / FOLDER

    def _command(self, folder: Path, purpose: Purpose) -> GitCommand:
        if self._folder.is_symlink() or not self._folder.is_dir():
            raise VersionControlError(
                f"{self.root} is not under the version control tagit",
                "put it there with: perun init --vcs-type tagit",
            )
        secure(self._folder)
        return TagitCommand(folder, self._folder, self.environ, purpose)

    def init(self, params: Mapping[str, Any]) -> bool:
        """Make `.tagit`; there are no parameters."""
        given = [str(key) for key, value in params.items() if value not in (False, None)]
        if given:
            raise VersionControlError(
                f"tagit has no parameter {given[0]!r}", "it has none: leave --vcs-param and --vcs-flag out"
            )
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise VersionControlError(
                f"cannot make the folder {self._folder}: {problem.strerror}",
                "choose a folder that you may write to",
            ) from None
        self._git.alter("init", "--quiet", "--template=", f"--initial-branch={LINE}")
        secure(self._folder)  # git has added settings of its own
        return True

    def snapshot(self, name: str, message: str = "") -> str:
        """Make a snapshot of all files that are not ignored, named `name`; its checksum.

        :raises VersionControlError: if the name is taken or cannot be one, or if the folder does not hold
            the newest snapshot, since history is linear; if a file cannot be read.
        """
        git = self._git
        with self._lock():
            newest = self._newest()
            self._refuse_name(name)
            if newest and git.attempt("symbolic-ref", "--quiet", "HEAD").text != _BRANCH:
                tag = history.one(git, newest).subject
                raise VersionControlError(
                    f"{self.root} does not hold the newest snapshot {tag!r}, and history is linear",
                    f"go there first: perun tag --restore {tag!r}",
                )
            tree, index = self._tree_of_folder()
            parents = ("-p", newest) if newest else ()
            texts = ("-m", name, *(("-m", text) if (text := message.strip("\n")) else ()))
            checksum = git.ask("commit-tree", tree, *parents, *texts, env=self._identity())
            os.sync()  # all that the snapshot is made of is on the disk before it has a name
            # The index first: cut off here, the folder only seems changed, and the next snapshot mends it.
            os.replace(index, self._folder / "index")
            git.alter("update-ref", "-m", f"perun tag: {name}", _BRANCH, checksum, newest or "0" * 40)
            os.sync()  # git flushes files, but not the folders in which their names are
            git.attempt("gc", "--auto", "--quiet")
        return checksum

    def get_minor_head(self) -> str:
        """Checksum of the snapshot that the folder holds."""
        answer = self._git.attempt("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        if answer.code == 1:
            raise VersionControlError(
                f"{self.root} has no snapshot yet", "make the first one with: perun tag NAME"
            )
        if answer.code:
            raise self._git.failure("rev-parse", answer)
        return answer.text

    def massage_parameter(self, parameter: str, parameter_type: str | None = None) -> str:
        """The checksum for a tag, HEAD, main, or a prefix of a checksum, also with `~2` or `^` after it."""
        match = _SPELLING.fullmatch(parameter)
        assert match  # whatever it is, the first group may hold it
        start = match[1]
        if start in ("HEAD", "@"):
            start = self.get_minor_head()
        elif start != LINE and not history.is_checksum(start):
            start = self._tags().get(start, start)
        if _UNTAGGED.fullmatch(start):
            spelling = f"{start}{match[2]}^{{commit}}"
            answer = self._git.attempt("rev-parse", "--verify", "--quiet", "--end-of-options", spelling)
            if history.is_checksum(answer.text):
                return answer.text
        raise VersionControlError(f"tagit knows no snapshot {parameter!r}", "see perun log")

    def checkout(self, minor_version: str) -> None:
        """Make the files of the folder those of the snapshot; changed files that do not differ stay changed.

        :raises VersionControlError: names the files, untracked ones included, that would be overwritten.
        """
        checksum = self._checksum(minor_version)
        super().checkout(checksum)
        if checksum == self._newest():
            with self._lock():
                self._git.alter("symbolic-ref", "-m", f"perun: back to {LINE}", "HEAD", _BRANCH)

    def changed_files(self) -> list[str]:
        """Files that differ from the snapshot that the folder holds, and those that the next one adds."""
        known = set(self._git.ask("ls-files", "-z").split("\0"))
        new = [path for path in scan(self.root) if path not in known]
        return [*self._changed("--untracked-files=no"), *new]

    def _checksum(self, minor_version: str) -> str:
        if history.is_checksum(minor_version):
            return minor_version
        return self.massage_parameter(minor_version)

    def _newest(self) -> str:
        """Checksum of the newest snapshot; empty if there is none yet."""
        return self._git.attempt("rev-parse", "--verify", "--quiet", f"{_BRANCH}^{{commit}}").text

    def _tags(self) -> dict[str, str]:
        """The checksums of all snapshots by their tags."""
        newest = self._newest()
        if not newest:
            return {}
        versions = history.walk(self._git, [newest], history.SUBJECT, ordered=False)
        return {version.desc: version.checksum for version in versions}

    def _refuse_name(self, name: str) -> None:
        if not name or name in _RESERVED or _NO_TAG.search(name) or not name.isprintable():
            raise VersionControlError(
                f"{name!r} cannot be the name of a snapshot",
                "take a text without ~ and ^ that does not begin with a dash, e.g. v1.0",
            )
        if name in self._tags():
            raise VersionControlError(f"there is a snapshot {name!r} already", "take another name")

    def _tree_of_folder(self) -> tuple[str, Path]:
        """The tree of all files that are not ignored, and an index file that holds it."""
        index = self._folder / "index.new"
        for earlier in self._folder.glob("index.new*"):
            earlier.unlink(missing_ok=True)
        env = {"GIT_INDEX_FILE": str(index)}
        self._git.ask("read-tree", "--empty", env=env)
        for paths in _batches(scan(self.root)):
            self._git.ask("update-index", "--add", "--", *paths, env=env)
        return self._git.ask("write-tree", env=env), index

    def _identity(self) -> dict[str, str]:
        author = person.current(self.environ)
        return {
            f"GIT_{role}_{field}": value
            for role in ("AUTHOR", "COMMITTER")
            for field, value in (("NAME", author.name), ("EMAIL", author.email))
        }

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Keep other processes from making snapshots; waits for one that does.

        :raises VersionControlError: if git works here, or nothing may be written, now or in the block.
        """
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            with open(os.open(self._folder / "lock", flags, 0o666), "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                lock = self._folder / "index.lock"
                if lock.exists():
                    raise VersionControlError(
                        f"perun tag --restore or a run in place is at work in {self.root}, or was killed",
                        f"wait for it; if nothing runs any more: rm {lock}",
                    )
                # The gits of a snapshot hold our lock, too: what such a git has left is of one that is gone.
                for left_over in (f"{_BRANCH}.lock", "HEAD.lock"):
                    (self._folder / left_over).unlink(missing_ok=True)
                self._git.inherited = (file.fileno(),)
                try:
                    yield
                finally:
                    self._git.inherited = ()
        except OSError as problem:
            where = problem.filename or self._folder
            raise VersionControlError(
                f"tagit failed: {where}: {problem.strerror}",
                "check permissions and the space on the disk",
            ) from problem


def _batches(paths: Iterable[str]) -> Iterator[list[str]]:
    """The paths in batches that the command line of one call can take."""
    batch: list[str] = []
    size = 0
    for path in paths:
        length = len(os.fsencode(path)) + 1
        if batch and size + length > _MAX_ARGUMENTS:
            yield batch
            batch, size = [], 0
        batch.append(path)
        size += length
    if batch:
        yield batch
