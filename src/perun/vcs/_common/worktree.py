"""A second working directory beside the user's, through `git worktree`."""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from shutil import move
from typing import Final, NamedTuple

from perun.core.atomic import PathErrors, process_mark
from perun.core.errors import VersionControlError
from perun.core.leftovers import is_left_over, remove_folder
from perun.core.process.git import GitCommand
from perun.core.regular import read_regular

_NOTED: Final = ("gitdir", "commondir", "HEAD")
"""What git writes of each linked working tree; if one is missing or empty, it lists none of the trees."""

_MAX_LEAD: Final = 1 << 16

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

    @cached_property
    def _prefix(self) -> str:
        return self._repository.ask("rev-parse", "--show-prefix")

    def __enter__(self) -> GitWorkingCopy:
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
        return self._place(minor_version)

    def _place(self, minor_version: str) -> Path:
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
        options = ("--quiet", "--force", "--detach")
        answer = self._git.attempt("checkout", *options, minor_version, env=self._here)
        if answer.code or answer.left_files:
            raise self._git.failure("checkout", answer)
        self._git.ask("clean", "-ffdxq", env=self._here)

    @property
    def _here(self) -> dict[str, str]:
        return {"GIT_DIR": str(self._folder / ".git"), "GIT_WORK_TREE": str(self._folder)}

    def _remove(self) -> None:
        if not self._made:
            return
        options = ("--force", "--force")
        removed = self._repository.attempt("worktree", "remove", *options, str(self._folder), shield=True)
        if removed.code:
            remove_folder(self._folder)
            self._repository.alter("worktree", "prune")
        self._made = False

    def _remove_unfinished(self) -> None:
        """Remove what `git worktree add` noted of one of ours before it was killed, or the disk was full.

        With such a half of a note git lists, makes and removes no working tree at all. One whose working tree
        is gone goes, too.
        """
        for notes in (self._folder_of_git() / "worktrees").glob("*"):
            is_own = notes.name.startswith(f"worktree-{process_mark()}")
            if (is_own or is_left_over(notes, _SECONDS_TO_NOTE)) and not _is_whole(notes):
                remove_folder(notes)

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


class GitKeptCopy(GitWorkingCopy):
    """A linked working tree that the repository does not list: what git notes of it lies beside it.

    So it is no concern of `git worktree`, and holds no commit of the user's; it is removed as any folder.

    :param folder: what it is in: the files in `tree`, the notes in `git`.
    :param scratch: where git makes it; it is moved from there at once.
    """

    def __init__(
        self, root: Path, folder: Path, scratch: Path, command: Callable[[Path], GitCommand]
    ) -> None:
        super().__init__(root, scratch, command)
        self._command = command
        self._scratch = self._folder
        folder = Path(os.path.realpath(folder))
        self._tree, self._notes = folder / "tree", folder / "git"

    def make(self, minor_version: str) -> Path:
        """See :meth:`perun.plugin.api.KeptCopy.make`."""
        self._repository.ask("cat-file", "-e", f"{minor_version}^{{commit}}")
        self._work_in(self._scratch)
        with self:
            self._make(minor_version)
            leads = os.fsdecode(read_regular(self._scratch / ".git", _MAX_LEAD))
            notes = self._scratch / leads.removeprefix("gitdir: ").rstrip("\n")
            # The file holds a path that is relative to where the notes were.
            _write(notes / "commondir", f"{self._folder_of_git()}\n")
            self._tree.mkdir(parents=True, exist_ok=True)
            move(notes, self._notes)
            with suppress(OSError):  # there are others
                notes.parent.rmdir()
            self._made = False
            remove_folder(self._scratch)
        self._settle()
        self._reset_to(minor_version)
        return self._place(minor_version)

    def renew(self, minor_version: str) -> Path:
        """See :meth:`perun.plugin.api.KeptCopy.renew`."""
        self._settle()
        # Not followed, as a program may have switched to a branch, which is the user's.
        self._git.ask("update-ref", "--no-deref", "HEAD", f"{minor_version}^{{commit}}", env=self._here)
        self._git.ask("reset", "--quiet", env=self._here)
        return self._place(minor_version)

    def _work_in(self, folder: Path) -> None:
        self._folder, self._git = folder, self._command(folder)

    def _settle(self) -> None:
        """Work where it stays, whatever a program has made of the file that leads to the notes."""
        self._work_in(self._tree)
        file = self._tree / ".git"
        if file.is_dir() and not file.is_symlink():
            remove_folder(file)
        file.unlink(missing_ok=True)
        _write(file, f"gitdir: {self._notes}\n")


def _is_whole(notes: Path) -> bool:
    """Whether git has written all of the notes, and the working tree that they are of is there."""
    with suppress(OSError):
        found = [os.fsdecode(read_regular(notes / name, _MAX_LEAD)) for name in _NOTED]
        return all(found) and os.path.lexists(notes / found[0].rstrip("\n"))
    return False


def _write(file: Path, text: str) -> None:
    with PathErrors(file):
        file.write_bytes(os.fsencode(text))


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


# Commits on their way to another machine: a pack of git, which holds what the other repository lacks.
#
# The whole history of a version goes with it, and the tags in it, as builds may ask for these (`git
# describe`). Nothing is written to the repository that is sent from: no ref, no bundle.


def first_version(git: GitCommand, versions: Sequence[str]) -> str:
    """The first commit of the history of these; the least of several by its name."""
    return min(git.ask("rev-list", "--max-parents=0", *versions).split())


def present(git: GitCommand, versions: Iterable[str]) -> list[str]:
    """Those of the versions that the repository has."""
    wanted = list(versions)
    answer = _checked(git, "cat-file", "--batch-check", given="".join(f"{one}\n" for one in wanted).encode())
    kinds = (line.split()[1:2] for line in answer.decode().splitlines())
    return [one for one, kind in zip(wanted, kinds, strict=True) if kind == ["commit"]]


def pack(git: GitCommand, versions: Sequence[str], known: Iterable[str]) -> tuple[bytes, list[list[str]]]:
    """What a repository that has the history of `known` lacks of the versions and their history.

    :return: a pack, and the tags in that history: the full name and the object of each.
    """
    form = "--format=%(refname) %(objectname)"
    merged = [f"--merged={version}" for version in versions]
    listed = git.ask("for-each-ref", form, *merged, "refs/tags/").splitlines()
    tags = [line.rsplit(" ", 1) for line in listed]
    wanted = [*versions, *(checksum for _, checksum in tags), *(f"^{one}" for one in present(git, known))]
    revisions = "".join(f"{one}\n" for one in wanted).encode()
    return _checked(git, "pack-objects", "--revs", "--stdout", "--quiet", given=revisions), tags


def unpack(git: GitCommand, versions: Sequence[str], data: bytes, tags: Iterable[Sequence[str]]) -> None:
    """Put what :func:`pack` made of the versions into this repository; git checks each object.

    :raises VersionControlError: if it is damaged, or is not all that was lacking.
    """
    _checked(git, "index-pack", "--stdin", given=data)
    lacking = set(versions) - set(present(git, versions))
    if lacking:
        raise VersionControlError(f"version {min(lacking)[:10]} was not in what was sent")
    updates = "".join(f"update {name}\0{checksum}\0\0" for name, checksum in tags)
    _checked(git, "update-ref", "-z", "--stdin", given=updates.encode("utf-8", "surrogateescape"))


def _checked(git: GitCommand, *arguments: str, given: bytes) -> bytes:
    answer = git.attempt(*arguments, given=given, shield=True)
    if answer.code:
        raise git.failure(arguments[0], answer)
    return answer.stdout


# Who makes a version, in a system that has no configuration to say so.

DATE: Final = "%Y-%m-%d %H:%M:%S"
"""How a version tells its date, in UTC."""


class Person(NamedTuple):
    """The author of a version."""

    name: str
    email: str


def current(environ: Mapping[str, str]) -> Person:
    """The user as the system knows them; `EMAIL` in the environment says how to write to them."""
    try:
        account = pwd.getpwuid(os.getuid())
        login, name = account.pw_name, account.pw_gecos.partition(",")[0]
    except KeyError:  # a container with a user of no name
        login = name = ""
    login = login or environ.get("USER") or "unknown"
    address = environ.get("EMAIL", "")
    return Person(name or login, address if "@" in address else f"{login}@{os.uname().nodename}")


def now() -> str:
    """Now, as a version tells its date: `YYYY-MM-DD HH:MM:SS` in UTC."""
    return time.strftime(DATE, time.gmtime())
