"""`perun temp`: the temporary files of collectors and postprocessors (manual 3.6.3 - 3.6.5)."""

from __future__ import annotations

from contextlib import suppress

from perun.errors import LockTimeout, NotPerunRepository, UsageError
from perun.porcelain.repository import Repository
from perun.store.temp import TempFile

SORTED_BY = ("name", "protection", "size")
PROTECTION = ("all", "unprotected", "protected")


def files(repo: Repository, root: str, *, sort_by: str = "name", protection: str = "all") -> list[TempFile]:
    """The files below `root` (in `.perun/tmp`, all of it where empty), the largest first where by size.

    Flags of files that are gone are removed, if the repository can be written.

    :raises ProfileNotFound: if there is no such file or folder.
    """
    temp = repo.store.temp
    found = [
        file
        for file in temp.files(root)
        if protection == "all" or file.protected == (protection == "protected")
    ]
    if temp.stale():
        with suppress(OSError, NotPerunRepository, LockTimeout):
            temp.sync()
    if sort_by == "protection":
        return sorted(found, key=lambda file: (not file.protected, file.path))
    if sort_by == "size":
        return sorted(found, key=lambda file: (-file.size, file.path))
    return found


def delete(
    repo: Repository, path: str, *, warn: bool = False, force: bool = False, keep_folders: bool = False
) -> tuple[int, list[str]]:
    """Delete a file or folder of `.perun/tmp`; protected files only if `force` is set.

    :param warn: delete nothing at all if there are protected files.
    :return: how many files were deleted, and the protected ones that stayed.
    :raises UsageError: if `warn` finds protected files. :raises ProfileNotFound: if nothing is there.
    """
    temp = repo.store.temp
    with repo.store.lock():
        found = temp.files(path)
        protected = [file.path for file in found if file.protected]
        if protected and warn and not force:
            raise UsageError(
                f"nothing was deleted, because these files are protected: {', '.join(protected)}",
                "delete them too with --force, or the others alone without --warn",
            )
        kept = temp.delete(path, force=force, keep_folders=keep_folders)
    return len(found) - len(kept), kept


def sync(repo: Repository) -> list[str]:
    """Remove the flags of files that are gone; the paths of these files."""
    gone = repo.store.temp.stale()
    repo.store.temp.sync()
    return gone
