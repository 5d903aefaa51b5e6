"""Which versions a transfer is about."""

from __future__ import annotations

from perun.porcelain.ranges import ends_of
from perun.porcelain.repository import Repository


def versions_of(repo: Repository, text: str | None) -> frozenset[str] | None:
    """The checksums of the versions that a RANGE names; None, which stands for all, if there is none.

    :param text: a revision, for that version; `A..B` for the versions of B that A does not have, where an A
        or B
        that is left out is HEAD.
    :raises VersionControlError: if there is no such revision.
    """
    if text is None:
        return None
    ends = ends_of(text)
    if ends is None:
        return frozenset([repo.version(text)])
    old, new = ({one.checksum for one in repo.vcs.walk_subjects(repo.version(end or None))} for end in ends)
    return frozenset(new - old)
