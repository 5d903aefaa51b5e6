"""The order of profiles in lists, which is that of their tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

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
    keys = [key(info) for info in infos]
    if len(set(keys)) == len(keys):  # as mostly, and much quicker for thousands
        return [infos[place] for place in sorted(range(len(keys)), key=keys.__getitem__)]
    timed = "time" in ([attributes] if isinstance(attributes, str) else attributes)
    counts = Counter(keys)

    def whole_key(place: int) -> tuple[Any, int, str]:
        # The name keeps tags the same from call to call where nothing else does.
        info = infos[place]
        return keys[place], _moment(repo, info) if timed and counts[keys[place]] > 1 else 0, info.source

    return [infos[place] for place in sorted(range(len(keys)), key=whole_key)]


def _moment(repo: Repository, info: ProfileInfo) -> int:
    """When the profile was made, in nanoseconds since 1970: the time of its file or object."""
    file = repo.store.object_path(info.checksum) if info.is_registered else info.realpath
    try:
        return repo.store.files.state(file).st_mtime_ns
    except OSError:
        return info.time * 10**9
