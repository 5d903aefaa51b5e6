"""Making a folder another version of itself without overwriting anything of the user's."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from perun.errors import VersionControlError
from perun.vcs.tagit import files
from perun.vcs.tagit.files import Entry, Tree
from perun.vcs.tagit.objects import Objects
from perun.vcs.tagit.trees import paths_of

_SHOWN_FILES: Final = 10


class Plan(NamedTuple):
    """What is to be removed, what is to be written, and what of the user's forbids it."""

    removed: list[str]
    written: dict[str, Entry]
    in_the_way: list[str]


def plan(root: Path, known: Sequence[Tree], target: Tree) -> Plan:
    """How the folder gets from any mixture of the versions `known` to `target`.

    A file that is the same in all of them stays as it is, changed or not. One that differs is in the way
    where it is now none of these: only there, in the folder, would be what it holds.
    """
    removed: list[str] = []
    written: dict[str, Entry] = {}
    in_the_way: list[str] = []
    folders: list[str] = []
    for path in paths_of([*known, target]):
        wanted, before = target.get(path), {tree.get(path) for tree in known}
        if before == {wanted}:
            continue
        now = files.look(root, path)
        if now == wanted:
            continue
        if now is not None and now.kind == files.OTHER:
            if wanted is not None:
                folders.append(path)
                written[path] = wanted
            continue
        if now is not None and now not in before:
            in_the_way.append(path)
        elif wanted is None:
            removed.append(path)
        else:
            written[path] = wanted
    going = set(removed)
    in_the_way += [path for path in folders if not _will_be_empty(root, path, going)]
    in_the_way += _blocking(root, written, going)
    return Plan(removed, written, sorted(set(in_the_way)))


def move(root: Path, steps: Plan, objects: Objects) -> None:
    """Do what the plan says; may be done again where it was cut off, with a new plan.

    :raises VersionControlError: names the files that are in the way; nothing has changed then.
    """
    if steps.in_the_way:
        shown = ", ".join(steps.in_the_way[:_SHOWN_FILES])
        more = ", ..." if len(steps.in_the_way) > _SHOWN_FILES else ""
        raise VersionControlError(
            f"files in {root} that no snapshot holds would be overwritten: {shown}{more}",
            "make a snapshot with `perun tag NAME`, or move them away",
        )
    for path in steps.removed:
        (root / path).unlink(missing_ok=True)
        _remove_empty(root, path)
    write_all(root, steps.written, objects)


def write_all(root: Path, tree: Tree, objects: Objects) -> None:
    """Write every file of the list below `root`, with the folders it lies in."""
    for path, entry in tree.items():
        file = root / path
        if file.is_dir() and not file.is_symlink():
            _remove_empty_folders(file)
        file.parent.mkdir(parents=True, exist_ok=True)
        files.write(file, entry, objects)


def sweep(root: Path, trees: Iterable[Tree]) -> None:
    """Remove what a move that was cut off has left half written beside files of these lists."""
    folders = {root.joinpath(path).parent for path in paths_of(trees)}
    for folder in folders:
        if _is_below(root, folder):
            for unfinished in folder.glob(f"{files.UNFINISHED}*"):
                unfinished.unlink(missing_ok=True)


def _is_below(root: Path, folder: Path) -> bool:
    between = folder.relative_to(root).parts
    return all(not root.joinpath(*between[:count]).is_symlink() for count in range(1, len(between) + 1))


def _will_be_empty(root: Path, folder: str, going: Collection[str]) -> bool:
    for path in (root / folder).rglob("*"):
        is_folder = path.is_dir() and not path.is_symlink()
        if not is_folder and path.relative_to(root).as_posix() not in going:
            return False
    return (root / folder).is_dir()


def _blocking(root: Path, paths: Iterable[str], going: Collection[str]) -> list[str]:
    """What is no folder, but has to become one, and stays."""
    found = set()
    for path in paths:
        for above in files.parents(path):
            place = root / above
            if (place.is_symlink() or (place.exists() and not place.is_dir())) and above not in going:
                found.add(above)
    return sorted(found)


def _remove_empty(root: Path, path: str) -> None:
    with suppress(OSError):
        for above in reversed(list(files.parents(path))):
            (root / above).rmdir()


def _remove_empty_folders(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir()
    folder.rmdir()
