"""The order of profiles in lists, which is that of their tags."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable

from perun.porcelain.repository import Repository
from perun.profile.helpers import ProfileInfo, sort_key


def in_order(repo: Repository, infos: Iterable[ProfileInfo]) -> list[ProfileInfo]:
    """The profiles in the order of `format.sort_profiles_by`.

    The index of the manual knows whole seconds. Of profiles of one second the one that was made first comes
    first, by the full clock of their files.
    """
    infos = list(infos)
    if len(infos) < 2:
        return infos
    attributes = repo.config.get("format.sort_profiles_by")
    key = sort_key(attributes)
    # The name keeps tags the same from call to call where nothing else does.
    ordered = sorted(infos, key=lambda info: (key(info), info.source))
    if attributes != "time" and "time" not in attributes:
        return ordered
    found: list[ProfileInfo] = []
    for _, alike in itertools.groupby(ordered, key):
        several = list(alike)
        found += several if len(several) < 2 else sorted(several, key=lambda info: _moment(repo, info))
    return found


def _moment(repo: Repository, info: ProfileInfo) -> int:
    """When the profile was made, in nanoseconds since 1970: the time of its file or object."""
    file = repo.store.object_path(info.checksum) if info.is_registered else info.realpath
    try:
        return os.stat(file).st_mtime_ns
    except OSError:
        return info.time * 10**9
