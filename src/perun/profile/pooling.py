"""Several profiles of one version and configuration as one: repeated measurements are one sample.

A profile that is judged alone takes the moment when it was measured for the program. Together, the profiles
of several rounds show how much these moments differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from perun.profile import session
from perun.profile.session import KEY as SESSION

if TYPE_CHECKING:
    from perun.profile.factory import Profile

POOLED: Final = "pooled"
"""Key in the header of a pooled profile: how many profiles were pooled into it."""
RUN: Final = "pooled-run"
"""Field of the resources of a pooled profile: the number of the profile that they are of, from 0."""
_OF_RESOURCES: Final = ("resources", "resource_type_map", "models")
"""Regions that are not taken over from a single profile."""


def pool(profiles: Iterable[Profile]) -> Profile:
    """The resources of all the profiles, in the order of the profiles; without models, as those are of one.

    All other regions are those of the last profile. The header says how many profiles there were, and names a
    session only where all of them are of the same side of it.

    :param profiles: one at least; they are taken one by one, and none but the first and the last is kept.
    """
    pooled: Profile | None = None
    sessions: list[session.Session | None] = []
    last: Profile | None = None
    for number, last in enumerate(profiles):
        if pooled is None:
            pooled = type(last)()
        pooled.add_groups(last.groups(), {RUN: number})
        sessions.append(session.of(last))
    if pooled is None or last is None:
        raise ValueError("there is nothing to pool")
    for region, value in last.regions().items():
        if region not in _OF_RESOURCES:
            pooled[region] = value
    rounds = [None if one is None else [one.id, one.round] for one in sessions]
    header = {**_header(last), POOLED: len(sessions), session.POOLED: rounds}
    if any(one != sessions[0] for one in sessions):
        header.pop(SESSION, None)
    pooled["header"] = header
    return pooled


def count_of(profile: Mapping[str, Any]) -> int:
    """The number of profiles that were pooled into this one; 1 for any other profile."""
    number = _header(profile).get(POOLED)
    return number if isinstance(number, int) and number > 0 else 1


def _header(profile: Mapping[str, Any]) -> Mapping[str, Any]:
    header = profile.get("header")
    return header if isinstance(header, Mapping) else {}
