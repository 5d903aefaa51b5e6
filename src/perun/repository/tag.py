"""`perun tag`: make a version of the folder, or go back to one, if the system leaves that to Perun."""

from __future__ import annotations

from perun.plugin.api import MinorVersion, Vcs
from perun.repository.copies import refuse_after_interruption
from perun.repository.repository import Repository


def tag(repo: Repository, name: str, message: str = "") -> MinorVersion:
    """Make a snapshot of the folder as it is, named `name`; profiles of it are stored under its checksum.

    :raises VersionControlError: if the system makes its versions otherwise (git), or refuses.
    """
    refuse_after_interruption(repo)
    return repo.vcs.get_minor_version_info(repo.vcs.snapshot(name, message))


def restore(repo: Repository, name: str) -> tuple[MinorVersion, bool]:
    """Make the folder that of the version `name`.

    :return: the version, and whether files that it shares with the one before have changes, which were left.

    :raises VersionControlError: if files that no version holds would be overwritten; nothing has changed.
    """
    vcs = repo.vcs
    if type(vcs).snapshot is Vcs.snapshot:
        vcs.snapshot(name)  # tells that this is not the way
    refuse_after_interruption(repo)
    checksum = vcs.massage_parameter(name)
    vcs.checkout(checksum)
    return vcs.get_minor_version_info(checksum), vcs.is_dirty()
