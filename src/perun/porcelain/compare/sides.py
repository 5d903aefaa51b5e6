"""A working copy of each side, several of them where it is built several times; the user's files stay as
they are."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from perun.errors import PerunError
from perun.plugin.api import MinorVersion, Report
from perun.porcelain.compare.plan import Side
from perun.porcelain.repository import Repository
from perun.porcelain.run import pre_run
from perun.porcelain.run.checkouts import copy_folder, inside, remove_leftovers
from perun.porcelain.run.in_place import refuse_after_interruption

Folders = Mapping[str, Sequence[Path]]
"""The folders of each side by its name, one for each build."""


@contextmanager
def prepared(repo: Repository, sides: Iterable[Side], builds: int, report: Report) -> Iterator[Folders]:
    """Working copies of the sides, each built apart; they are removed at the end.

    Copies that a killed process has left are removed first.

    :raises PerunError: names the side that cannot be checked out or built.
    """
    refuse_after_interruption(repo)
    remove_leftovers(repo)
    sides = list(sides)
    found: dict[str, list[Path]] = {side.name: [] for side in sides}
    with ExitStack() as stack:
        for number in range(builds):
            for side in sides:
                report(f"building {side}", len(sides) * number + sides.index(side), len(sides) * builds)
                found[side.name].append(_prepare(repo, side, number, stack))
        yield found


def _prepare(repo: Repository, side: Side, number: int, stack: ExitStack) -> Path:
    # Names of the same length, as the length of a path moves the stack of a program.
    try:
        return built(repo, side.version, f"{side.name}-{number:02}", stack, side.uncommitted)
    except PerunError as problem:
        raise type(problem)(f"{side} cannot be prepared: {problem.message}", problem.hint) from None


def built(
    repo: Repository, version: MinorVersion, name: str, stack: ExitStack, uncommitted: Iterable[str] = ()
) -> Path:
    """The folder of a working copy of the version, which is built there; `stack` removes it.

    :param name: of the copy, among those of this process.
    :param uncommitted: files that are to be as in the working directory of the user.
    :raises PerunError: where it cannot be checked out or built.
    """
    checksum, uncommitted = version.checksum, tuple(uncommitted)
    copy = stack.enter_context(repo.vcs.working_copy(copy_folder(repo, name)))
    top = copy.switch(checksum)
    copy_changes(repo.vcs.root, uncommitted, top)
    folder = top / inside(repo)
    folder.mkdir(parents=True, exist_ok=True)
    pre_run.run_commands(repo, f"{checksum}-uncommitted" if uncommitted else checksum, folder)
    return folder


def copy_changes(source: Path, paths: Iterable[str], target: Path) -> None:
    """Make the files of `target` as those of `source`, which only read.

    :param paths: relative to both; files and symbolic links, those that `source` does not have are deleted.
    """
    for path in paths:
        old, new = source / path, target / path
        if new.is_symlink() or new.is_file():
            new.unlink()
        elif new.is_dir():
            shutil.rmtree(new)  # a folder has become a file
        if old.is_symlink() or old.is_file():
            _make_room(target, path)
            shutil.copy2(old, new, follow_symlinks=False)


def _make_room(target: Path, path: str) -> None:
    """Make the folder of the path, also where the version has a file or a link that has become a folder."""
    folder = target
    for part in Path(path).parts[:-1]:
        folder /= part
        if part != ".." and (folder.is_symlink() or folder.is_file()):
            folder.unlink()
    folder.mkdir(parents=True, exist_ok=True)
