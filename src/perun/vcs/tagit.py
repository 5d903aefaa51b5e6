"""A version control of snapshots named by tags, for folders without git."""

from __future__ import annotations

import fcntl
import fnmatch
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

from perun.core import atomic
from perun.core.errors import VersionControlError
from perun.core.process.git import GitCommand, GitResult, Purpose
from perun.core.regular import read_regular
from perun.vcs._common import history, worktree
from perun.vcs._common.repository import GitVcs

# The git program on the snapshots of a folder, in a git directory that Perun alone sets up.

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

    def __init__(self, folder: Path, git_folder: Path, environ: Mapping[str, str], purpose: Purpose) -> None:
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


# The files of a folder that a snapshot takes.

IGNORE_FILE: Final = ".tagitignore"
_MAX_BYTES: Final = 1 << 20
"""Bytes of a file of patterns."""
_ALWAYS_IGNORED: Final = frozenset({".tagit", ".svs", ".perun", ".git", ".hg", ".svn", "__pycache__"})


class IgnorePatterns:
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
    ignored = IgnorePatterns(root)
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


# Tagit as the version control system of a project.

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
        author = worktree.current(self.environ)
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


PLUGIN = Tagit
