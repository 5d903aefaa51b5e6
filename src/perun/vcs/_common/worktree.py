"""A second working directory beside the user's, through `git worktree`."""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from shutil import rmtree
from typing import Final, NamedTuple

from perun.core.atomic import process_mark
from perun.core.errors import VersionControlError
from perun.core.leftovers import is_left_over
from perun.core.process.git import GitCommand

# Folders that a version control system makes beside the user's.


def remove(folder: Path) -> None:
    """Remove a folder, write-protected parts of it included; nothing happens if there is none.

    :raises OSError: names the folder, if something of it cannot be removed.
    """
    if not folder.exists():
        return
    folder.chmod(0o700)
    for place, names, _ in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    try:
        rmtree(folder)
    except OSError as problem:
        problem.filename = str(folder)  # it is told by its name alone
        raise


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
            remove(self._folder)
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
                remove(notes)

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
